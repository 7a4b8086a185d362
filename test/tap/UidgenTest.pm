# What a TAP test begins with: "use UidgenTest;" gives it servers and sessions, beside strict, warnings,
# signatures, Test::More and PostgreSQL::Test::Utils. UidgenNode is PostgreSQL::Test::Cluster (15 and later) with fewer
# processes. A test names the modules that it needs more: Clock, Clients (which draw in the background), Trouble (killed
# servers, frozen processes), Fleet (a registry and its members), Pages (of docs), Installation (of PostgreSQL).
#
#   my $node = new_node('primary');            # initdb
#   start_uidgen($node);                       # start, CREATE EXTENSION
#   my $node = new_server('primary');          # both; with clock => 0 after freeze_clock($node, 0)
#   start_node($node);                         # start again: after a stop, a standby
#   crash($node);                              # an immediate stop, and a start
#   set_conf($node, "uidgen.max_wait = 5s");   # and a reload
#   new_node('x', conf => quiet_conf());       # nothing flushes but uidgen itself
#   my $standby = standby_of($node, 'name');   # from a base backup; start_node() starts it
#   make_synchronous($node, 'name');           # waits until that standby is
#
#   my $rows = sql($sql, $dbname);             # on the test's first server, in postgres if none is named; or sql($node, ...)
#   like(failure($sql, $dbname), qr/.../);     # its message, with the SQLSTATE, or 'no error'; as sql(), or of a session
#   is(sqlstate($node, $sql), '55000', ...);   # '00000': no error; or a session; a third argument names a database
#   my $session = hold_open($node);            # a Session that stays: query, query_safe, quit
#   send_query($session, $sql);                # do not wait for the answer
#   my ($out, $err) = finish_query($session);  # wait for it
#   poll_until('...', sub { ... });            # for what no query tells; 0: timed out; a third argument: seconds
#   wait_for_node_rows($node, 'uid_generators.g', 2);   # in worker_node; of any generator: '%'
#   seed_random();                             # what rand() returns then is the same each time
#
# The environment's UIDGEN_FAULT, if not empty, is passed to the server as uidgen.fault. The tests that must notice a
# broken guarantee run with it (test/faults.tsv), and end with the first assertion that fails, which has noticed it.
# PostgreSQL::Test::Cluster turns fsync and restart_after_crash off. The second is on here. The first needs no test: what a
# killed server has written is there, and only a machine that crashes loses what was not synced.
package UidgenTest;

use v5.36;

use Exporter ();
use feature ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test2::API;
use Test::More;
use Time::HiRes;
use UidgenNode;

our @EXPORT = qw(new_node start_uidgen start_node set_conf quiet_conf standby_of make_synchronous sqlstate hold_open send_query
  finish_query poll_until wait_for_node_rows wait_event seed_random write_file);
our @EXPORT_OK = qw(new_server crash sql failure);

# PostgreSQL 17 and later do without the preload. A test of what needs it there (a registry, a datacenter id) begins with
# "use UidgenTest 'preloaded';".
my $needs_preload = 0;

# A test needs no other line to begin with: beside the helpers it gets strict, warnings, signatures, Test::More, and the functions of
# PostgreSQL::Test::Utils. A module that uses this one gets the helpers only, and not those that a class of the torture has
# as methods.
sub import ($class, $preloaded = undef)
{
	my $user = caller;
	Exporter::export($class, $user);
	return if $user ne 'main';
	Exporter::export($class, $user, @EXPORT_OK);
	$needs_preload = defined $preloaded;
	strict->import;
	warnings->import;
	feature->import('signatures');
	Exporter::export($_, $user) foreach 'PostgreSQL::Test::Utils', 'Test::More';
}

# Replication has no timeouts, because tests freeze walsenders and step clocks.
my $settings = <<'END';
restart_after_crash = on
wal_level = replica
log_checkpoints = off
max_connections = 40
max_prepared_transactions = 5
wal_sender_timeout = 0
wal_receiver_timeout = 0
END

my $first_node;

# new_node($name, conf => lines for postgresql.conf, install_path => another PostgreSQL,
# anything that init takes)
sub new_node ($name, %opts)
{
	my $conf = delete $opts{conf} // '';
	my $node = UidgenNode->new($name, install_path => delete $opts{install_path});
	$first_node //= $node;

	$node->init(allows_streaming => 1, %opts);
	$node->append_conf('postgresql.conf', preload($node) . $settings . fault_setting() . $conf);
	return $node;
}

# The line that loads the library at the start, if the test or the major needs it.
sub preload ($node)
{
	return $needs_preload || $node->{_pg_version} < 17 ? "shared_preload_libraries = 'uidgen'\n" : '';
}

my $fault = $ENV{UIDGEN_FAULT} // '';

sub fault_setting
{
	return $fault eq '' ? '' : "uidgen.fault = '$fault'\n";
}

if ($fault ne '' && $fault ne 'none')
{
	Test2::API::test2_stack()->top->listen(sub { exit 1 if $_[1]->causes_fail });
}

sub start_uidgen ($node)
{
	start_node($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION uidgen');
}

sub new_server ($name, %opts)
{
	my $instant = delete $opts{clock};
	my $node = new_node($name, %opts);
	if (defined $instant)
	{
		require Clock;
		Clock::use_fake_clock($node);
		Clock::freeze_clock($node, $instant);
	}
	start_uidgen($node);
	return $node;
}

sub crash ($node)
{
	$node->stop('immediate');
	start_node($node);
}

# Cluster's start, with the environment that a fake clock needs.
sub start_node ($node, %opts)
{
	local %ENV = (%ENV, %{ $node->{uidgen_env} // {} });
	return $node->start(%opts);
}

sub standby_of ($primary, $name, %opts)
{
	my $standby = UidgenNode->new($name);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1, %opts);
	return $standby;
}

sub make_synchronous ($primary, $name)
{
	set_conf($primary, "synchronous_standby_names = '$name'");
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = '$name' AND sync_state = 'sync'")
	  or BAIL_OUT("$name did not become synchronous");
}

# A session that survives a failed statement.
sub hold_open ($node, %opts)
{
	my $dbname = $opts{dbname} // 'postgres';
	return $node->start_session($dbname) // die 'could not connect to ' . $node->name;
}

# Sends a statement that may take as long as the test wants. finish_query returns the output of it and of all before it,
# and resets the output.
sub send_query ($session, $sql)
{
	$session->send_script($sql);
}

sub finish_query ($session)
{
	$session->finish;
	return $session->take;
}

sub sql
{
	my $on = ref $_[0] ? shift : $first_node;
	my ($sql, $dbname) = @_;
	return $on->safe_psql($dbname // 'postgres', $sql);
}

sub failure
{
	my $on = ref $_[0] ? shift : $first_node;
	my ($sql, $dbname) = @_;
	if ($on->isa('Session'))
	{
		my ($state, $error) = sqlstate($on, $sql);
		return $state eq '00000' ? 'no error' : $error;
	}
	my ($status, undef, $error) = $on->psql($dbname // 'postgres', $sql, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $status == 0 ? 'no error' : $error;
}

# The SQLSTATE of a statement; '00000' if it succeeds, and 08006 if the connection is lost. In list context also the whole
# message. $on is a node, or a session of hold_open.
sub sqlstate ($on, $sql, $dbname = 'postgres')
{
	my ($output, $error);
	if ($on->isa('Session'))
	{
		send_query($on, "\\set VERBOSITY verbose\n$sql");
		($output, $error) = finish_query($on);
	}
	else
	{
		$on->psql($dbname, "\\set VERBOSITY verbose\n$sql",
			on_error_stop => 0, stdout => \$output, stderr => \$error);
	}
	my ($state) = $error =~ /(?:ERROR|FATAL):  (\w{5}):/;
	$state //= '08006' if $error =~ /connection to server/;
	return wantarray ? ($state // '00000', $error) : $state // '00000';
}

# Waits until worker_node has that many rows, which are written after the transaction that draws. Returns how many there
# are.
sub wait_for_node_rows ($node, $generator, $expected, %opts)
{
	my $dbname = $opts{dbname} // 'postgres';
	my $count = 'SELECT count(*) FROM ' . ($opts{table} // 'worker_node') . " WHERE generator LIKE '$generator'";
	$node->poll_query_until($dbname, "SELECT ($count) >= $expected")
	  or die "worker_node has no $expected rows of $generator";
	return $node->safe_psql($dbname, $count);
}

# No reader sees half a file.
sub write_file ($path, @content)
{
	open my $fh, '>:raw', "$path.new" or die "could not write $path: $!";
	print $fh @content;
	close $fh or die "could not write $path: $!";
	rename "$path.new", $path or die "could not write $path: $!";
}

# Lines for a server on which only uidgen itself flushes a range's record.
sub quiet_conf
{
	return <<'END';
autovacuum = off
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
bgwriter_delay = 10s
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1d
END
}

sub set_conf ($node, $line)
{
	$node->append_conf('postgresql.conf', "$line\n");
	$node->reload;
}

# What pg_stat_activity calls a wait of uidgen: before PostgreSQL 17 extensions cannot name theirs.
sub wait_event ($node, $name)
{
	return $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ? $name : 'Extension';
}

# However long the condition itself takes.
sub poll_until ($what, $condition, $seconds = undef)
{
	my $end = monotonic_s() + ($seconds // $PostgreSQL::Test::Utils::timeout_default);
	do
	{
		return 1 if $condition->();
		Time::HiRes::sleep(0.05);
	} while (monotonic_s() < $end);
	diag("timed out: $what");
	return 0;
}

sub monotonic_s
{
	return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
}

# test/night sets another seed, with which a test finds other things.
sub seed_random
{
	my $seed = $ENV{UIDGEN_SEED} // 1;
	srand $seed;
	note("UIDGEN_SEED=$seed");
}


1;
