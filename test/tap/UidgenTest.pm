# Helpers of the TAP tests, on top of UidgenNode, which is PostgreSQL::Test::Cluster (15 and later) with fewer processes.
# A test begins with "use UidgenTest;" (see import).
#
#   my $node = new_node('primary');            # initdb
#   start_uidgen($node);                       # start, CREATE EXTENSION
#   my $node = new_server('primary');          # both; with clock => 0 after freeze_clock($node, 0); with registries => [...]
#                                              # after join_fleet()
#   start_node($node);                         # start again: after a stop, a standby
#   crash($node);                              # an immediate stop, and a start
#   kill_hard($node);                          # kill -9, and a wait for its end
#   my $copy = copy_installation();            # $copy->{SHAREDIR}; new_node('x', install_path => $copy->{install_path})
#
#   use_fake_clock($node);                     # before start_node or start_uidgen
#   set_clock($node, '-1h');                   # at any time: relative to the real clock
#   freeze_clock($node, 2.5);                  # stands still, 2.5 s after a fixed instant
#
#   my $loop = background_loop($node, clients => 4, sql => 'SELECT uid_next()');
#   ... crash, promote, wait ...
#   my @logs = stop_loop($loop);               # one file per client: what it received
#   assert_unique(@logs);                      # one assertion; lists values seen twice
#   is(repeated(@values), '', ...);            # the same of values in a list
#
#   my $session = hold_open($node);            # a Session that stays: query, query_safe, quit
#   send_query($session, $sql);                # do not wait for the answer
#   my ($out, $err) = finish_query($session);  # wait for it
#   my $rows = sql($sql, $dbname);             # on the test's first server, in postgres if none is named; or sql($node, ...)
#   like(failure($sql, $dbname), qr/.../);     # its message, with the SQLSTATE, or 'no error'; as sql(), or of a session
#   is(sqlstate($node, $sql), '55000', ...);   # '00000': no error; or a session; a third argument names a database
#   my $pid = freeze_walsender($node, 'standby1');   thaw($pid);   # or freeze_process($pid)
#   my @pids = background_pids($node, 'refiller');
#   wait_for_node_rows($node, 'uid_generators.g', 2);   # in worker_node; of any generator: '%'
#
#   my $standby = standby_of($node, 'name');   # from a base backup; start_node() starts it
#   make_synchronous($node, 'name');           # waits until that standby is
#
#   my $node = make_registry($node, keeps => 'failovers');   # on a running server
#   join_fleet($node, $registry, $standby);    # before the start, or with a reload
#   node_of($node);                            # the default generator's node
#   create_load($node);                        # the generators and the table of load()
#   my @loops = load($node);                   # draws by all paths, through crashes and errors
#   my $loop = load_small($node, 'small');     # the same with create_small()
#   goes_on('...', @loops);                    # an assertion: every client of them receives values again
#   poll_until('...', sub { ... });            # for what no query tells; 0: timed out. Both take a number of seconds.
#   my $rows = try_sql($node, $sql);           # '' while the server is down
#   my @said = psql_at_once($node, @scripts);  # output and messages of a psql for each, all at the same time
#   sql_with_path($node, 'shop', @sql);        # in a database whose extension is in the schema uidgen
#   my $sql = sql_to_use_up_locks($then);      # fills the lock table, and then runs a statement of PL/pgSQL
#   wait_for_service($node);                   # after the server has restarted by itself
#   my $sql = block_of('docs/several-servers.md', qr/CREATE SUBSCRIPTION/);
#   my $sql = statement_of('docs/several-servers.md', qr/DROP SUBSCRIPTION/);   # in its text
#   for_servers($text, OLD => $node);          # the text, with the address of that server: host=OLD, -h OLD
#   my ($status, $output) = run_shell($node, $command);
#   shell_ok($node, $command, 'a dump');       # an assertion
#   new_node('x', conf => quiet_conf());       # nothing flushes but uidgen itself
#   set_conf($node, "uidgen.max_wait = 5s");   # and a reload
#   write_file($path, @content);
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
use File::Basename;
use File::Spec;
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test2::API;
use Test::More;
use Time::HiRes;
use UidgenNode;

our @EXPORT = qw(new_node start_uidgen start_node kill_hard pg_upgrade_command copy_installation skip_with_assertions standby_of make_synchronous
  has_assertions parallel_setting use_fake_clock set_clock freeze_clock send_query finish_query sqlstate
  background_loop stop_loop wait_for_loop repeated assert_unique hold_open freeze_walsender freeze_process thaw
  wait_for_node_rows reads_of_node_rows background_pids make_registry registry_line join_fleet node_of create_load
  create_small load load_small goes_on poll_until try_sql psql_at_once sql_with_path sql_to_use_up_locks
  wait_for_service wait_event set_conf quiet_conf write_file bytes_held block_of
  statements_of statement_of for_servers run_shell shell_ok seed_random);
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
	my ($instant, $registries) = delete @opts{qw(clock registries)};
	my $node = new_node($name, %opts);
	if (defined $instant)
	{
		use_fake_clock($node);
		freeze_clock($node, $instant);
	}
	join_fleet($node, @$registries) if $registries;
	start_uidgen($node);
	return $node;
}

sub crash ($node)
{
	$node->stop('immediate');
	start_node($node);
}

# Only the postmaster is killed. The others end by themselves, so a start may have to wait for them.
sub kill_hard ($node)
{
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	$node->kill9;
	poll_until('the end of ' . $node->name, sub { !kill 0, $pid }) or die 'the server lives';
}

# Cluster's start, with the environment that a fake clock needs.
sub start_node ($node, %opts)
{
	local %ENV = (%ENV, %{ $node->{uidgen_env} // {} });
	return $node->start(%opts);
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

# PostgreSQL with assertions aborts when its clock goes back by more than 24 days: the checkpointer computes a time to
# sleep that is out of range.
sub skip_with_assertions
{
	plan skip_all => 'the clock steps by more than PostgreSQL with assertions bears' if has_assertions();
}

# Whether PostgreSQL was built with them. Such a build can also throw away what a session has cached of the catalogs,
# whenever it may become invalid.
sub has_assertions
{
	return `pg_config --configure` =~ /--enable-cassert/ ? 1 : 0;
}

# Makes PostgreSQL run each statement in a parallel worker that can be run there. The name changed in PostgreSQL 16.
sub parallel_setting
{
	my ($major) = `pg_config --version` =~ /(\d+)/;
	return ($major < 16 ? 'force_parallel_mode' : 'debug_parallel_query') . ' = on';
}

# The library reads the file at each call. It leaves the monotonic clock alone, so that waits last as long as they
# should, and the times of files, because the file of grants is known by the time of its birth.
sub use_fake_clock ($node)
{
	my ($library) = glob('/usr/lib/*/faketime/libfaketime.so.1');
	die "libfaketime is not installed" unless defined $library;

	$node->{uidgen_clock} = $node->basedir . '/clock';
	$node->{uidgen_env} = {
		LD_PRELOAD => $library,
		FAKETIME_TIMESTAMP_FILE => $node->{uidgen_clock},
		FAKETIME_NO_CACHE => 1,
		DONT_FAKE_MONOTONIC => 1,
		NO_FAKE_STAT => 1,
		TZ => 'UTC'
	};
	set_clock($node, '+0');
}

# Offsets are libfaketime's: '-1h', '+5m', '+2.5' (seconds), '-1y'.
sub set_clock ($node, $offset)
{
	write_file($node->{uidgen_clock}, "$offset\n");
}

# Stops the clock, some seconds after a fixed instant: 2026-11-21 12:00:00 UTC. So no result of a test depends on time
# that passes. libfaketime's fractions are floating point: use exact ones, such as 0.5 or 0.125.
sub freeze_clock ($node, $seconds = 0)
{
	my $micros = sprintf('%.0f', $seconds * 1e6);
	my $whole = 1795262400 + POSIX::floor($micros / 1e6);
	return set_clock($node,
		POSIX::strftime('%Y-%m-%d %H:%M:%S', gmtime $whole)
		  . sprintf('.%06d', $micros % 1e6));
}

# Each client sends one script after the other until it is stopped, its server is down, or a statement fails. With
# on_error_stop => 0 it goes on after errors, with reconnect => 1 in a new session after whatever went wrong. It pauses
# for pace seconds after each script, so that a few clients do not take all of the processors. The client, a process of its
# own, writes what it has received after each script, so the logs survive whatever the server does.
sub background_loop ($node, %opts)
{
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my %loop = (stop => "$directory/stop", logs => [ map { "$directory/client$_" } 1 .. $opts{clients} // 1 ]);
	my $statements = Session::statements($opts{sql} // 'SELECT uid_next()') or die "needs psql: $opts{sql}";
	foreach my $log (@{ $loop{logs} })
	{
		append_to_file($_, '') foreach $log, "$log.err";
		my $test = $$;
		my $pid = fork // die "could not fork: $!";
		if ($pid == 0)
		{
			POSIX::close($_) foreach 3 .. 255;
			# Ends with this program, however that ends.
			eval { run_client($node, $statements, $log, sub { -e $loop{stop} || getppid() != $test }, %opts) };
			POSIX::_exit(0);
		}
		push @{ $loop{pids} }, $pid;
	}
	return \%loop;
}

sub run_client ($node, $statements, $log, $is_over, %opts)
{
	my $session;
	until ($is_over->())
	{
		$session //= $node->start_session($opts{dbname} // 'postgres', verbose => $opts{verbosity});
		my $status = $session ? $session->run($statements, on_error_stop => $opts{on_error_stop}) : 2;
		if ($session)
		{
			append_to_file($log, $session->{stdout}) if $session->{stdout} ne '';
			append_to_file("$log.err", $session->{stderr}) if $session->{stderr} ne '';
			$session->take;
		}
		return if $status && !$opts{reconnect};
		undef $session if $status;
		Time::HiRes::sleep($status ? 0.1 : $opts{pace} // 0.002);
	}
}

sub stop_loop
{
	my @loops = @_;
	append_to_file($_->{stop}, '') foreach @loops;
	wait_for_loop(@loops);
	return map { @{ $_->{logs} } } @loops;
}

# For the errors that end its clients.
sub wait_for_loop
{
	waitpid $_, 0 foreach map { @{ $_->{pids} } } @_;
}

# A psql for each script, which ends with its first error.
sub psql_at_once ($node, @scripts)
{
	my @psql = ($node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'));
	my @runs;
	foreach my $script (@scripts)
	{
		my $input = PostgreSQL::Test::Utils::tempdir() . '/script';
		append_to_file($input, $script);
		my ($output, $messages) = ('', '');
		push @runs, [ IPC::Run::start(\@psql, '<', $input, '>', \$output, '2>', \$messages), \$output, \$messages ];
	}
	$_->[0]->finish foreach @runs;
	return map { [ ${ $_->[1] }, ${ $_->[2] } ] } @runs;
}

# The first few of the values that come more than once.
sub repeated
{
	my %count;
	$count{$_}++ foreach @_;
	my @twice = sort grep { $count{$_} > 1 } keys %count;
	return join ' ', splice @twice, 0, 5;
}

# One assertion over all values in all files, one value per line. Returns the number of values. No value at all is a
# failure, because it proves nothing.
sub assert_unique
{
	my @values = map { split /\n/, slurp_file($_) } @_;
	my $twice = repeated(@values);
	my $several = @_ > 1 ? scalar(@_) . ' clients' : 'one client';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(@values && $twice eq '', "no value came twice ($several)") or diag(scalar(@values) . " values, more than once $twice");
	note(scalar(@values) . ' values');
	return scalar @values;
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

# How often a call reads worker_node: whole, and by its indexes.
sub reads_of_node_rows ($on, $call)
{
	my $reads = q{SELECT coalesce(seq_scan, 0), coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables WHERE relname = 'worker_node'};
	my $sql = "BEGIN; $reads; SELECT $call IS NULL; $reads; COMMIT";
	my @lines = split /\n/, $on->isa('Session') ? $on->query_safe($sql) : $on->safe_psql('postgres', $sql);
	my ($before, $after) = map { [ split /\|/ ] } @lines[ 0, 2 ];
	return join ' ', map { $after->[$_] - $before->[$_] } 0, 1;
}

# Makes a registry in a database of that server (postgres), which the role uid_fleet may call. Other options are the script's
# variables: keeps (restarts), longest, bound, fleet.
sub make_registry ($node, %variables)
{
	my $dbname = delete $variables{dbname} // 'postgres';
	%variables = (keeps => 'restarts', %variables);
	my $script = $node->config_data('--sharedir') . '/extension/uidgen_registry.sql';
	my @variables = map { ('-v', "$_=$variables{$_}") } sort keys %variables;
	my $output;
	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr($dbname), @variables, '-f', $script ], '>', \$output, '2>&1')
	  or die "the script fails: $output";
	$node->safe_psql('postgres', 'CREATE ROLE uid_fleet LOGIN') unless $node->safe_psql('postgres', "SELECT to_regrole('uid_fleet')");
	$node->safe_psql('postgres', 'GRANT uid_member TO uid_fleet');
	return $node;
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

# The value of uidgen.registry: the servers that may be the registry, in the order given.
sub registry_line
{
	my @nodes = @_;
	return
		'host='
	  . join(',', map { $_->host } @nodes)
	  . ' port='
	  . join(',', map { $_->port } @nodes)
	  . ' dbname=postgres user=uid_fleet connect_timeout=3';
}

sub join_fleet ($node, @registries)
{
	$node->append_conf('postgresql.conf', "uidgen.registry = '" . registry_line(@registries) . "'\n");
}

sub node_of ($node, $generator = 'uid_generators.uid_default')
{
	return $node->safe_psql('postgres',
		"SELECT node FROM uid_generator_status WHERE generator = '$generator'::regclass");
}

# Beside the default generator there are one in cached mode, which shares its nodes, one of the preset js53, and one of
# a layout with four nodes and so few sequence numbers that two generators on one node collide at once.
sub create_load ($node)
{
	$node->safe_psql('postgres', <<'END');
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next());
SELECT uid_generator_create('cached', mode => 'cached', spread => false);
SELECT uid_generator_create('js53', 'js53');
END
	create_small($node, 'small');
}

sub create_small ($node, $name)
{
	$node->safe_psql('postgres',
		"SELECT uid_generator_create('$name', datacenter_bits => 0, worker_bits => 2, sequence_bits => 3)");
}

# The name of the layout stands before each id but those of the default layout: only ids of one layout are unique. Lines in
# one row cost less than rows.
sub load ($node)
{
	my $twenty = q{SELECT string_agg(%s::text, E'\n') FROM generate_series(1, 20)};
	my @paths = (
		sprintf($twenty, 'uid_next()'),
		q{SELECT array_to_string(uid_next_array(20), E'\n'); INSERT INTO orders DEFAULT VALUES RETURNING id},
		sprintf($twenty, q{uid_next('uid_generators.cached')}),
		sprintf($twenty, q{('js53 ' || uid_next('uid_generators.js53'))}));
	return map { background_loop($node, sql => $_, pace => 0.2, on_error_stop => 0, reconnect => 1) } @paths;
}

sub load_small ($node, $name)
{
	my $sql = "SELECT 'small ' || array_to_string(uid_next_array('uid_generators.$name', 200), E'\nsmall ')";
	return background_loop($node, sql => $sql, pace => 0.1, on_error_stop => 0, reconnect => 1);
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

sub try_sql ($node, $sql)
{
	my $session = $node->start_session('postgres') or return '';
	$session->run([ [ $sql, 1 ] ]);
	$session->quit;
	return ($session->take)[0];
}

# Each in a session of its own. Returns the output of the last one.
sub sql_with_path ($node, $dbname, @sql)
{
	my $output;
	$output = $node->safe_psql($dbname, "SET search_path = public, uidgen;\n$_") foreach @sql;
	return $output;
}

# Locks of the session, so that they stay when the lock table is full and the transaction fails.
sub sql_to_use_up_locks ($then)
{
	return <<"END";
DO \$\$
BEGIN
  FOR i IN 1 .. 1000000 LOOP
    PERFORM pg_advisory_lock(i);
  END LOOP;
EXCEPTION WHEN out_of_memory THEN
  $then;
END \$\$;
END
}

sub monotonic_s
{
	return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
}

sub wait_for_service ($node)
{
	poll_until('service', sub { try_sql($node, 'SELECT true') eq 't' }) or die 'the server does not answer';
}

sub goes_on ($what, @loops)
{
	my $seconds = ref $loops[-1] ? undef : pop @loops;
	my @logs = map { @{ $_->{logs} } } @loops;
	my %before = map { $_ => -s $_ } @logs;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(poll_until($what, sub { !grep { -s $_ <= $before{$_} } @logs }, $seconds), $what);
}

# The first block of statements, or of commands for a shell, in which the pattern is found.
sub block_of ($file, $pattern)
{
	my $text = slurp_file($file);
	while ($text =~ /^( *)```(?:sql|sh)\n(.*?)^\g{1}```$/msg)
	{
		my ($indent, $block) = ($1, $2);
		return $block =~ s/^$indent//mgr if $block =~ $pattern;
	}
	die "$file has no block with $pattern";
}

# All whole statements in the text of a document, between its blocks. Left out: text with "…", the bare name of a command,
# and a call whose arguments are names that stand for others.
sub statements_of ($file)
{
	my $text = slurp_file($file) =~ s/^( *)```.*?^\1```$//msgr;
	my $command = qr/SELECT|INSERT|UPDATE|DELETE|SET|SHOW|CREATE|ALTER|DROP|GRANT|REVOKE/;
	my $name_of_command = qr/^(?:\w+ (?:[A-Z]+|\w+ \w+ SET \w+)|(?:SET|UPDATE|DELETE) [\w.]+|ALTER TYPE \w+);?$/;
	my $form_of_call = qr/^SELECT \w+\([a-z]+(?:, [a-z]+)*\)$/;
	return grep { !/…|\.\.\./ && !/$name_of_command/ && !/$form_of_call/ } map { s/\s+/ /gr =~ s/;$//r } $text =~ /(?<!`)`($command\s[^`]+)`/g;
}

sub statement_of ($file, $pattern)
{
	my ($found) = grep { $_ =~ $pattern } statements_of($file);
	return $found // die "$file has no statement with $pattern";
}

# Pages name the servers of an example. Their sockets are in directories of their own.
sub for_servers ($text, %nodes)
{
	foreach my $name (keys %nodes)
	{
		my ($host, $port) = map { $nodes{$name}->$_ } 'host', 'port';
		$text =~ s/\bhost=$name\b/host=$host port=$port/g;
		$text =~ s/-h $name\b/-h '$host' -p $port/g;
	}
	return $text;
}

# Runs commands on the server's host, and stops at the first one that fails. Returns the exit status and the output. The
# directory is a new one, unless `directory` names it. What else is named is in the environment.
sub run_shell ($node, $command, %environment)
{
	my $directory = delete $environment{directory} // PostgreSQL::Test::Utils::tempdir();
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATA => $node->data_dir, %environment);
	# In a file of its own, because a server that was started writes to its output on.
	my $log = PostgreSQL::Test::Utils::tempdir() . '/output';
	my $bin = $node->config_data('--bindir');
	my $script = "set -e -o pipefail; cd '$directory'; PATH=$bin:\$PATH\n$command";
	my $status = system('bash', '-c', 'exec timeout 300 bash -c "$0" >"$1" 2>&1 </dev/null', $script, $log);
	return ($status, slurp_file($log));
}

sub shell_ok ($node, $command, $what, %environment)
{
	my ($status, $output) = run_shell($node, $command, %environment);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($status, 0, $what) or diag($output);
}

# Bytes of dynamic shared memory that uidgen holds, if it is in files (dynamic_shared_memory_type = mmap). The statistics
# of PostgreSQL, too, have an area of segments, but one without a handle. A segment's first word is a constant, xor the
# handle of its area, xor its number in the area.
sub bytes_held ($node)
{
	my $bytes = 0;
	foreach my $file (glob $node->data_dir . '/pg_dynshmem/mmap.*')
	{
		open my $fh, '<:raw', $file or next;
		read $fh, my $word, 4;
		$bytes += -s $file if length $word == 4 && (unpack('L', $word) ^ 0x0ce26608) >= 1024;
	}
	return $bytes;
}

# The processes "uidgen NAME" of a server; without a name all its processes but the postmaster. Of a background process
# without a connection only the process table tells.
sub background_pids ($node, $name = undef)
{
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @found;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		open my $fh, '<', $stat or next;
		my ($pid, $parent) = (<$fh> // '') =~ /^(\d+) \(.*\) \w (\d+) / or next;
		next unless $parent == $postmaster;
		open my $command, '<', "/proc/$pid/cmdline" or next;
		push @found, $pid if !defined $name || (<$command> // '') =~ /uidgen $name/;
	}
	return @found;
}

# Makes a standby unresponsive: stops its walsender on the primary.
my %frozen;

sub freeze_walsender ($node, $standby)
{
	my $pid = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_replication WHERE application_name = '$standby'");
	die "$standby is not connected" unless $pid =~ /^\d+$/;
	return freeze_process($pid);
}

# Until thaw().
sub freeze_process ($pid)
{
	kill 'STOP', $pid or die "could not stop process $pid: $!";
	$frozen{$pid} = 1;
	# A signal takes a moment; "T" is the state of a stopped process.
	Time::HiRes::sleep(0.01)
	  until slurp_file("/proc/$pid/stat") =~ /^\d+ \(.*\) T/;
	return $pid;
}

sub thaw ($pid)
{
	delete $frozen{$pid};
	return kill 'CONT', $pid;
}

# test/night sets another seed, with which a test finds other things.
sub seed_random
{
	my $seed = $ENV{UIDGEN_SEED} // 1;
	srand $seed;
	note("UIDGEN_SEED=$seed");
}

# A stopped process would block the shutdown of its server.
END
{
	my $status = $?;
	thaw($_) foreach keys %frozen;
	$? = $status;
}

1;
