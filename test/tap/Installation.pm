# The PostgreSQL under test: what it was built with, and copies of it.
#
#   my $copy = copy_installation();            # $copy->{SHAREDIR}; new_node('x', install_path => $copy->{install_path})
package Installation;

use v5.36;

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(copy_installation pg_upgrade_command has_assertions skip_with_assertions parallel_setting);

# A copy of the PostgreSQL under test. Its programs find their files relative to themselves.
sub copy_installation
{
	my $tree = PostgreSQL::Test::Utils::tempdir() . '/tree';
	my %copy;
	foreach my $name ('BINDIR', 'PKGLIBDIR', 'SHAREDIR')
	{
		chomp(my $directory = `pg_config --\L$name`);
		$copy{$name} = "$tree$directory";
		system_or_bail('mkdir', '-p', dirname($copy{$name}));
		system_or_bail('cp', '-R', $directory, dirname($copy{$name})) unless -e $copy{$name};
	}
	$copy{install_path} = dirname($copy{BINDIR});
	return \%copy;
}

# Both servers have the same programs unless an option gives others. pg_upgrade leaves a script where it runs.
sub pg_upgrade_command ($old, $new, @options)
{
	my $programs = $new->config_data('--bindir');
	return (
		'sh', '-c', 'cd "$0" && exec pg_upgrade "$@"', $new->basedir, '--no-sync', '--socketdir', $new->host,
		'--old-bindir', $programs, '--old-datadir', $old->data_dir, '--old-port', $old->port,
		'--new-bindir', $programs, '--new-datadir', $new->data_dir, '--new-port', $new->port, @options);
}

# Whether PostgreSQL was built with them. Such a build can also throw away what a session has cached of the catalogs,
# whenever it may become invalid.
sub has_assertions
{
	return `pg_config --configure` =~ /--enable-cassert/ ? 1 : 0;
}

# PostgreSQL with assertions aborts when its clock goes back by more than 24 days: the checkpointer computes a time to
# sleep that is out of range.
sub skip_with_assertions
{
	plan skip_all => 'the clock steps by more than PostgreSQL with assertions bears' if has_assertions();
}

# Makes PostgreSQL run each statement in a parallel worker that can be run there. The name changed in PostgreSQL 16.
sub parallel_setting
{
	my ($major) = `pg_config --version` =~ /(\d+)/;
	return ($major < 16 ? 'force_parallel_mode' : 'debug_parallel_query') . ' = on';
}

1;
