# Keys that ids are concealed with: on a standby, in sessions that are open while a key changes, without the library
# preloaded; and no log and no message has a secret. 006_restores.t has them dumped and restored.
use UidgenTest;

# All that PostgreSQL can be told to log, and what two of its modules keep.
my $source = new_node('source', conf => <<'CONF');
log_statement = 'all'
log_min_duration_statement = 0
log_parameter_max_length_on_error = -1
log_error_verbosity = verbose
debug_print_plan = on
shared_preload_libraries = 'uidgen, auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_nested_statements = on
auto_explain.log_verbose = on
CONF
my ($available) = run_command([ 'pg_config', '--pkglibdir' ]);
my $has_statistics = -e "$available/pg_stat_statements.so";
$source->append_conf('postgresql.conf',
	"shared_preload_libraries = 'uidgen, auto_explain, pg_stat_statements'\npg_stat_statements.track = all\n") if $has_statistics;
start_uidgen($source);
my $directory = PostgreSQL::Test::Utils::tempdir();

sql($source, <<'SQL');
CREATE ROLE dba;
CREATE ROLE app LOGIN;
CREATE DATABASE shop OWNER dba;
SQL
sql($source, 'CREATE EXTENSION uidgen', 'shop');
sql($source, <<'SQL', 'shop');
SET ROLE dba;
SELECT uid_key_create('orders', 53, 4), uid_key_create('local'), uid_key_create('full');
GRANT USAGE ON SEQUENCE uid_keys.orders TO app;
CREATE TABLE codes AS SELECT id, uid_conceal(id, 'orders') AS code FROM generate_series(1, 500) AS id;
SELECT uid_key_rotate('orders');
UPDATE codes SET code = uid_conceal(id, 'orders') WHERE id > 250;
SQL
my $reveals = "SELECT count(*) FROM codes WHERE uid_reveal(code, 'orders') = id";
is(sql($source, $reveals, 'shop'), 500, 'values of two versions are revealed');
$source->command_ok([ 'pg_dump', '--role=dba', '-f', "$directory/plain.sql", '-d', $source->connstr('shop') ], 'pg_dump');

# A standby has the keys, and learns of changes. It makes none.
my $standby = standby_of($source, 'standby');
start_node($standby);
$source->wait_for_catchup($standby);
my $session = hold_open($standby, dbname => 'shop');
$session->query_safe("SET ROLE app");
is($session->query_safe("SELECT uid_conceal(5, 'orders')"), sql($source, "SELECT uid_conceal(5, 'orders')", 'shop'), 'a standby conceals as the primary does');
sql($source, "SELECT uid_key_rotate('orders')", 'shop');
$source->wait_for_catchup($standby);
is($session->query_safe("SELECT uid_conceal(5, 'orders')"), sql($source, "SELECT uid_conceal(5, 'orders')", 'shop'), 'a session there takes a new version');
sql($source, "REVOKE USAGE ON SEQUENCE uid_keys.orders FROM app", 'shop');
$source->wait_for_catchup($standby);
is(sqlstate($session, "SELECT uid_conceal(5, 'orders')"), '42501', 'and loses the key');
$session->quit;
like(failure($standby, "SELECT $_", 'shop'), qr/ERROR:  25006/, "not on a standby: $_") foreach ("uid_key_create('x')", "uid_key_rotate('orders')");

# Sessions of the primary that are open while another one rotates, rolls back and drops.
my $reader = hold_open($source, dbname => 'shop');
my $writer = hold_open($source, dbname => 'shop');
my $version = "SELECT (uid_conceal(5, 'orders') >> 49) + 1";
is($reader->query_safe($version), 3, 'a session uses the newest version');
$writer->query_safe("BEGIN; SELECT uid_key_rotate('orders')");
is($reader->query_safe($version), 3, 'not one that is not committed');
$writer->query_safe('ROLLBACK');
is($writer->query_safe($version), 3, 'one that is rolled back is forgotten');
$writer->query_safe("SELECT uid_key_rotate('orders')");
is($reader->query_safe($version), 4, 'one that is committed is used by the next statement');
$reader->query_safe("SELECT uid_conceal(5, 'full')");
$writer->query_safe("DROP SEQUENCE uid_keys.full");
is(sqlstate($reader, "SELECT uid_conceal(5, 'full')"), '42704', 'a key that is dropped cannot be used');
$_->quit foreach ($reader, $writer);

# Two rotations at a time make two versions.
my $first = hold_open($source, dbname => 'shop');
$first->query_safe("BEGIN; SELECT uid_key_rotate('orders')");
my $second = hold_open($source, dbname => 'shop');
send_query($second, "SELECT uid_key_rotate('orders');");
ok($source->poll_query_until('shop', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"), 'a second rotation waits for the first');
$first->query_safe('COMMIT');
my ($answer) = finish_query($second);
like($answer, qr/\b6\b/, 'and makes the version after it');
is(sql($source, "SELECT versions FROM uid_key_config WHERE name = 'orders'", 'shop'), 6, 'there are two new versions');
$_->quit foreach ($first, $second);

# Lines of COPY that are refused, in each place where a line can be. What the client is told counts, too.
my $line = sql($source, "COPY (SELECT * FROM uid_secrets.uid_key WHERE id = (SELECT id FROM uid_internal.keys WHERE name = 'orders')) TO STDOUT", 'shop');
my $spaces = $line =~ s/\t/ /gr;
sql($source, 'SET ROLE dba; CREATE SEQUENCE uid_keys.restored; SECURITY LABEL FOR uidgen ON SEQUENCE uid_keys.restored IS $$key id=4711$$', 'shop');
my $restored = $line =~ s/\t\d+\t/\t4711\t/r;
my $messages = '';
foreach my $refused (
	[ 'of a key that is there', $line, qr/23505/ ],
	[ 'of a key of another role', $restored, qr/42501/, 'SET ROLE app;' ],
	[ 'with a column too much', "$line\tmore", qr/extra data/ ],
	[ 'without the last column', $line =~ s/\t[^\t]*$//r, qr/missing data/ ],
	[ 'without the id', $line =~ s/\t\d+\t/\t/r, qr/ERROR/ ],
	[ 'with another width', $restored =~ s/\t53\t/\t5\t/r, qr/invalid width/ ],
	[ 'with a word for the width', $restored =~ s/\t53\t/\twide\t/r, qr/22P02/ ],
	[ 'with a digit too few', $restored =~ s/[0-9a-f]\t/\t/r, qr/invalid secrets/ ],
	[ 'with a digit that is none', $restored =~ s/[0-9a-f]\t/x\t/r, qr/invalid secrets/ ],
	[ 'with spaces for tabs', $spaces, qr/missing data/ ],
	[ 'with a delimiter that COPY is not told', $spaces =~ s/ /;/gr, qr/missing data/ ],
	[ 'whose delimiter is the space', $spaces, qr/extra data|invalid input/, '', "WITH (DELIMITER ' ')" ],
	[ 'as a comma-separated one', $line, qr/missing data/, '', 'WITH (FORMAT csv)' ],
	[ 'with a byte that is no character', $line =~ s/\t53\t/\t\xff\t/r, qr/22021/ ],
	[ 'after a cancel', $restored, qr/57014/, 'ALTER TABLE uid_secrets.uid_key ADD CHECK (pg_sleep(100) IS NULL) NOT VALID; SET statement_timeout = 100;' ],
	[ 'for a CHECK of somebody', $restored, qr/23514/, 'ALTER TABLE uid_secrets.uid_key ADD CHECK (width < 20) NOT VALID;' ])
{
	my ($what, $text, $error, $before, $how) = (@$refused, '', '');
	my (undef, undef, $stderr) = $source->psql('shop', "BEGIN; $before\nCOPY uid_secrets.uid_key FROM STDIN $how;\n$text\n\\.\n",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like($stderr, $error, "a line is refused: $what");
	$messages .= $stderr;
}
is(($source->psql('shop', "SET ROLE dba;\nCOPY uid_secrets.uid_key FROM STDIN;\n$restored\n\\.\n", on_error_stop => 1))[0], 0, 'the line itself is not');

# A plain dump, where COPY is refused before its first line. An older psql sends the lines as a statement then, unless it
# stops at the error.
my ($copy) = slurp_file("$directory/plain.sql") =~ /^(COPY uid_secrets\.uid_key .*?^\\\.$)/ms;
PostgreSQL::Test::Utils::append_to_file("$directory/copy.sql", "$copy\nSELECT 1;\n");
PostgreSQL::Test::Utils::append_to_file("$directory/harmless.sql", "COPY absent FROM stdin;\nharmless\n\\.\nSELECT 1;\n");
my @restore = ('psql', '-X', '-d', $source->connstr('template1'));
my (undef, $harmless) = run_command([ @restore, '-f', "$directory/harmless.sql" ]);
push @restore, '-v', 'ON_ERROR_STOP=1' if $harmless =~ /"harmless"/;
my (undef, $refusal) = run_command([ @restore, '-f', "$directory/copy.sql" ]);
like($refusal, qr/schema "uid_secrets" does not exist/, 'a plain dump is restored where there is no table uid_key');

# No twelve digits of a secret are in the log, although all statements, parameters and plans are.
my $log = slurp_file($source->logfile);
my %secrets = map { $_ => 1 } map { /(.{64})/g } split /\n/, sql($source, q{SELECT substring(secrets FROM '[0-9a-f]+$') FROM uid_secrets.uid_key}, 'shop');
my @secrets = keys %secrets;
cmp_ok(scalar @secrets, '>=', 6, 'there are secrets');

sub shown_in ($text)
{
	return scalar grep { my $secret = $_; grep { index($text, substr($secret, $_, 12)) >= 0 } 0 .. 52 } @secrets;
}
is(shown_in(slurp_file("$directory/plain.sql")), 3, 'a dump has secrets');
is(shown_in($log), 0, 'no secret is in the log');
is(shown_in($messages), 0, 'nor in a message');
like($log, qr/uid_key_create\('orders', 53, 4\)/, 'the log has the statements');
like($log, qr/Query Text: INSERT INTO uid_secrets\.uid_key/, '... also those inside of functions');
like($messages, qr/CONTEXT: +COPY uid_key, line 1: "secret\.keys\.of\.uidgen\./, 'messages show the start of lines');
SKIP:
{
	skip 'pg_stat_statements is not installed', 2 unless $has_statistics;
	sql($source, 'CREATE EXTENSION pg_stat_statements');
	my $statements = sql($source, 'SELECT query FROM pg_stat_statements');
	like($statements, qr/INSERT INTO uid_secrets\.uid_key/, 'pg_stat_statements has the statements');
	is(shown_in($statements), 0, 'and no secret');
}

# A version that another session has used outlives a crash, whatever synchronous_commit says.
my $crashed = new_server('crashed', conf => quiet_conf());
foreach my $change (q{uid_key_create('k', version_bits => 1)}, q{uid_key_rotate('k')})
{
	sql($crashed, "SET synchronous_commit = off; SELECT $change");
	my $code = sql($crashed, q{SELECT uid_conceal(42, 'k')});
	crash($crashed);
	is(failure($crashed, "DO 'BEGIN ASSERT uid_reveal($code, ''k'') = 42; END'"), 'no error', "$change: the secret outlives a crash");
}

# Without the library preloaded ids cannot be drawn, but revealed.
$source->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$source->restart;
is(sql($source, $reveals, 'shop'), 500, 'a server that does not preload the library reveals ids');
$_->stop foreach ($standby, $source, $crashed);
done_testing();
