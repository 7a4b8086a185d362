# test/one and test/server, in a copy of the checkout: what they build, what they say of tests that pass and fail, what
# they take over as expected, and that they leave nothing behind.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

my $directory = PostgreSQL::Test::Utils::tempdir_short();
my $checkout = "$directory/uidgen";
$ENV{XDG_CACHE_HOME} = "$directory/cache";
system_or_bail('cp', '-R', '.', $checkout);
# A server of the test may not decide for them where theirs is.
delete @ENV{ grep { /^PG(?!_CONFIG$)/ } keys %ENV };

# Runs a command there: its status and all that it says.
sub run_there
{
	my ($command) = @_;
	my $output = `cd $checkout && $command 2>&1`;
	return ($?, $output);
}

sub passes
{
	my ($command, $expected, $name) = @_;
	my ($status, $output) = run_there($command);
	is($status, 0, "$name: status");
	like($output, $expected, $name);
	return;
}

sub fails
{
	my ($command, $expected, $name) = @_;
	my ($status, $output) = run_there($command);
	isnt($status, 0, "$name: status");
	like($output, $expected, $name);
	return;
}

# A function of C that answers a number.
sub write_function
{
	my ($answer) = @_;
	append_to_file("$checkout/src/pg/sql/added.cpp.new", <<"END");
#include "base/compat.hpp"

extern "C" {

UIDGEN_SQL_FUNCTION(uid_added);

#ifndef ADDED
#define ADDED $answer
#endif
Datum uid_added(PG_FUNCTION_ARGS) {
    PG_RETURN_INT32(ADDED);
}
}
END
	rename "$checkout/src/pg/sql/added.cpp.new", "$checkout/src/pg/sql/added.cpp" or die;
	return;
}

write_function(41);
append_to_file("$checkout/sql/added.sql", <<'END');
CREATE FUNCTION uid_added() RETURNS int LANGUAGE c AS '$libdir/uidgen';
SELECT uid_added();
DROP FUNCTION uid_added();
END

my $expected = "$checkout/expected/added.out";
fails('test/one added', qr/^\+ *41$/m, 'a test without expected output fails and shows what it says');
ok(!-e $expected, 'which is not taken over');
passes('test/one --accept added', qr{^accepted: expected/added\.out$}m, '--accept takes it over');
like(slurp_file($expected), qr/^ *41$/m, 'as it is');
passes('test/one sql/added.sql workers', qr/added .*workers /s, 'then the test passes, and with it another one');

write_function(42);
fails('test/one added', qr/^- *41\n\+ *42$/m, 'a change of a source shows');
append_to_file("$checkout/src/pg/base/postgres.hpp", "#define ADDED 43\n");
fails('test/one added', qr/^- *41\n\+ *43$/m, 'and one of the header that all sources include');
passes('test/server -Atc "SELECT uid_next() > 0"', qr/^t$/m, 'test/server has a database with the extension');

append_to_file("$checkout/src/pg/sql/added.cpp", "broken;\n");
fails('test/one added', qr/error: .*broken/, 'what cannot be compiled is shown');
unlink "$checkout/src/pg/sql/added.cpp" or die;
fails('test/one added', qr/could not find function "uid_added"/, 'what is deleted is no longer built');
unlink "$checkout/sql/added.sql" or die;
fails('test/one added', qr/there is no such test/, 'neither is a test that is deleted run');
passes('test/one moved', qr/moved /, 'an isolation spec');
passes('test/one 016', qr{ok +test/tap/016_bad_samples\.t}, 'a TAP file');

passes('test/one --clean', qr/^$/, '--clean');
is(join(' ', glob "$directory/cache/uidgen-test/*"), '', 'leaves no file behind');
is(join(' ', grep { (readlink "$_/cwd" // '') =~ /^\Q$directory\E/ } glob '/proc/[0-9]*'), '', 'and no process');

done_testing();
