# PgBouncer before a server. A member connects to it as to the server:
#
#   plan skip_all => 'PgBouncer is not there' unless defined Bouncer::program();
#   my $bouncer = Bouncer->start($registry, 'transaction', 'default_pool_size = 1');   # more settings
#   registry_setting($bouncer);                # of Fleet
#
# It ends with the last reference to it.
package Bouncer;

use v5.36;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

# The section patroni has unpacked it. Debian installs it where only root looks.
sub program
{
	my @directories = ("$ENV{UIDGEN_WORK}/patroni/usr/sbin", '/usr/sbin', split /:/, $ENV{PATH});
	return (grep { -x } map { "$_/pgbouncer" } @directories)[0];
}

sub start ($class, $node, $mode, @settings)
{
	my $directory = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	append_to_file("$directory/users", "\"uid_fleet\" \"\"\n");
	append_to_file("$directory/ini", join "\n", '[databases]', 'postgres = host=' . $node->host . ' port=' . $node->port,
		'[pgbouncer]', "unix_socket_dir = $directory", "listen_port = $port", "pool_mode = $mode", @settings,
		'auth_type = trust', "auth_file = $directory/users", "logfile = $directory/log", '');
	return bless { host => $directory, port => $port,
		run => IPC::Run::start([ program(), '-q', "$directory/ini" ], '<', '/dev/null', '>', '/dev/null', '2>&1') }, $class;
}

sub host ($self) { return $self->{host} }
sub port ($self) { return $self->{port} }

sub DESTROY ($self)
{
	$self->{run}->kill_kill;
}

1;
