# A server that does not preload uidgen. PostgreSQL 15 and 16: a draw fails with the line to add, and all else works. Later ones:
# what holds with the preload holds in all places where a process may load the library, and if many do at once. But if
# uidgen.registry or uidgen.datacenter_id, which keep databases apart, is set in any way, a draw fails with that line, whenever
# the library was loaded. (001_matrix.t does not preload either, and 058_changed_package.t has crashes.)
use UidgenTest;
use Clients;
use Trouble;

# Nobody has touched its settings, but for where it listens. The owner of the database is no superuser.
my $node = UidgenNode->new('untouched');
$node->init;
my $conf = $node->data_dir . '/postgresql.conf';
my $fault = ($ENV{UIDGEN_FAULT} // '') ne '' ? "uidgen.fault = '$ENV{UIDGEN_FAULT}'" : '';
chomp(my $sample = `pg_config --sharedir`);
write_file($conf, slurp_file("$sample/postgresql.conf.sample"),
	"listen_addresses = ''\nunix_socket_directories = '", $node->host, "'\nport = ", $node->port, "\n$fault\n");
$node->start;
my ($super, $version) = split /\|/, $node->safe_psql('postgres', q{SELECT current_user, current_setting('server_version_num')});
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), '', 'a server that preloads nothing');
$node->safe_psql('postgres', $_) foreach 'CREATE ROLE owner LOGIN', 'CREATE DATABASE shop OWNER owner',
  map { "ALTER DATABASE shop SET $_ = 0" } 'parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size';

sub owner ($sql)
{
	return scalar $node->safe_psql('shop', $sql, extra_params => [ '-U', 'owner' ]);
}

sub session ($user, $options = '', $first = 'SELECT 1')
{
	local $ENV{PGOPTIONS} = $options;
	my $session = $node->start_session('shop', user => $user) // die 'no connection';
	$session->query_safe($first);
	return $session;
}

my $in_workers = 'SELECT count(draw()) FROM many';
my @draws = (
	'SELECT uid_next()', q{SELECT uid_next('uid_generators.g')}, q{SELECT uid_next('uid_generators.cached')}, 'SELECT uid_next_array(10)',
	'SELECT uid_next_uuid()', 'INSERT INTO orders DEFAULT VALUES', q{SELECT segment_next('s')}, q{SELECT segment_next('plain'::regclass)},
	q{SELECT segment_next_array('s', 10)}, q{SELECT * FROM segment_reserve('s', 10)});

# An assertion for each case: what it is, a session, and the statements, if not all draws. The outcome is that they succeed, or that
# each fails for that reason and names that line.
sub outcome ($expected, @cases)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $case (@cases)
	{
		my ($what, $session, @sql) = @$case;
		my %outcomes;
		foreach my $sql (@sql ? @sql : @draws)
		{
			my ($state, $error) = sqlstate($session, $sql);
			my ($reason, $line) = $error =~ m{ERROR:  55000: uidgen must be loaded via shared_preload_libraries
DETAIL:  (?|uidgen\.(\w+) is set\.|Before (PostgreSQL 17),).*
HINT:  (?:Set|Reconnect\. If that does not help, set) shared_preload_libraries = '(.*)' in postgresql\.conf and restart the server\.\n};
			$outcomes{ $state eq '00000' ? 'draws' : defined $line ? "$reason: $line" : "$sql: $error" } = 1;
		}
		is(join("\n", sort keys %outcomes), $expected, $what);
	}
}

my @ids;

sub draw ($sql, $user = 'owner')
{
	push @ids, split /\n/, $node->safe_psql('shop', $sql, extra_params => [ '-U', $user ]);
}

# Each above those before it, so none comes twice.
sub in_order ($what)
{
	my ($wrong) = grep { $ids[$_] <= $ids[ $_ - 1 ] } 1 .. $#ids;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(defined $wrong ? "$ids[$wrong] after $ids[$wrong - 1]" : 'in order', 'in order', $what);
}

# The line of the hint, and a restart.
sub preload ($line)
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$line'\nuidgen.datacenter_id = 3\n");
	$node->restart;
	is(owner('SELECT datacenter_id FROM uid_decode(uid_next())'), 3, 'preloaded, the number is in the ids');
	outcome('draws', [ 'preloaded', session('owner') ]);
	unlike(($node->psql('shop', 'DROP EXTENSION uidgen CASCADE; CREATE EXTENSION uidgen'))[2], qr/WARNING/, 'CREATE EXTENSION without a warning');
	$node->stop;
}

my (undef, undef, $said) = $node->psql('shop', 'CREATE EXTENSION uidgen', extra_params => [ '-U', 'owner' ]);
my @create = ('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item int)', 'CREATE SEQUENCE plain',
	q{SELECT uid_generator_create('g'), uid_generator_create('cached', mode => 'cached', spread => false), segment_create('s')});

if ($version < 170000)
{
	like($said, qr/WARNING:  no id can be drawn until the server has loaded uidgen\nHINT:  Set shared_preload_libraries = 'uidgen' in postgresql.conf and restart/,
		'the extension can be created, with a warning that says what is missing');
	owner($_) foreach @create;
	foreach my $loaded ('', 'auto_explain, pg_prewarm, ', 'auto_explain, ')
	{
		$node->append_conf('postgresql.conf', sprintf "shared_preload_libraries = '%s'\n", $loaded =~ s/, $//r);
		$node->restart;
		outcome("PostgreSQL 17: ${loaded}uidgen", [ "beside '$loaded'", session($super) ]);
	}
	outcome('PostgreSQL 17: uidgen', [ 'a role that may not read settings', session('owner') ]);
	outcome('PostgreSQL 17: auto_explain, uidgen', [ 'the library loaded by the session', session($super, '', q{LOAD 'uidgen'}) ]);
	is(sqlstate(session('owner'), 'SELECT uid_last()'), '55000', 'nothing was drawn');
	is(sqlstate(session('owner'), q{SELECT uid_t_sequence_create(); INSERT INTO t_sequence VALUES ('tickets', 10, 5)}), '55000', 'no blocks can be taken');
	is(owner(q{CREATE SEQUENCE gone; CREATE TABLE serials (n serial); DROP SEQUENCE gone; DROP TABLE serials; SELECT to_regclass('gone') IS NULL}),
		't', 'a DROP, which loads the library, needs no preload');
	is(owner("SELECT uid_encode('2026-01-01 00:00:00.002+00', 1, 2, 3), datacenter_id, worker_id, sequence, generated_at = uid_timestamp(8527875) "
			  . 'FROM uid_decode(8527875)'),
		((2 << 22) + (1 << 17) + (2 << 12) + 3) . '|1|2|3|t', 'arithmetic on ids works');
	is($node->safe_psql('shop', "SELECT count(*) FROM $_"), 0, "$_ is empty")
	  foreach 'segment_status', 'uid_stat', 'uid_stat_server', 'uid_internal.uid_live_generators()', 'uid_internal.uid_live_segments()';
	is(owner('SELECT DISTINCT worker_id, last_time, leased_until, ring_size FROM uid_generator_status'), '|||', 'uid_generator_status has NULLs');
	is(owner(q{SELECT segment_create('t'), uid_generator_create('h'); SELECT segment_drop('t'); DROP SEQUENCE uid_generators.h;}
		  . q{ SELECT count(*) FROM uid_segment WHERE name = 't'; SELECT count(*) FROM uid_generator WHERE generator::text LIKE '%h'}),
		"uid_segments.t|uid_generators.h\n\n0\n0", 'generators and segments can be made, and DROP takes their rows along');
	preload('auto_explain, uidgen');
	done_testing();
	exit;
}

# Ids at once, each statement in a session of its own, which loads the library.
is(() = $said =~ /NOTICE:/g, 1, 'CREATE EXTENSION, by the owner of the database, says one thing');
draw('SELECT uid_next()');
owner($_) foreach @create;
draw($_) foreach 'SELECT unnest(uid_next_array(1000))', 'BEGIN READ ONLY; SELECT uid_next(); COMMIT',
  'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT uid_next(); COMMIT', 'INSERT INTO orders (item) SELECT * FROM generate_series(1, 100) RETURNING id';
in_order('calls, an array, a read-only transaction, defaults: ids in order');
is(owner("SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.uid_default'::regclass"), scalar(@ids), 'statistics of the generator');
is(join(' ', map { owner($_) } (q{SELECT segment_next('s')}) x 2, q{SELECT array_to_string(segment_next_array('s', 2), ' ')}),
	'1 2 3 4', 'values of a segment, one after the other');
is(owner("SELECT count(DISTINCT id) FROM unnest(uid_next_array('uid_generators.cached', 5000)) id"), 5000, 'cached mode');
ok(poll_until('a refiller', sub { background_pids($node, 'refiller') }), 'the refiller runs');
is(owner(<<"END"), 't|t|auto', 'an id has its time and its node, and its generator a status');
SELECT d.generated_at BETWEEN now() - interval '1 hour' AND now(), (d.datacenter_id, d.worker_id) = (s.datacenter_id, s.worker_id), s.protection
  FROM uid_decode($ids[0]) d, uid_generator_status s WHERE s.generator = 'uid_generators.uid_default'::regclass
END
is(wait_for_node_rows($node, '%', 2, dbname => 'shop'), 2, 'worker_node has a row of each generator');

# In a parallel query. The first call of a session may come in a worker, and in the leader when it runs the same plan.
owner(<<'END');
CREATE FUNCTION draw() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS 'BEGIN RETURN uid_next(); END';
CREATE TABLE many AS SELECT * FROM generate_series(1, 20000) AS n;
ANALYZE many;
END
foreach my $leader ('on', 'off')
{
	foreach my $call ('uid_next()', 'draw()')
	{
		my $set = "SET parallel_leader_participation = $leader";
		push @ids, sort { $a <=> $b } split /\n/, owner("$set; SELECT $call FROM many");
		like(owner("$set; EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT $call FROM many"),
			qr/Workers Launched: [1-9]/, "$call in parallel workers, and in the leader: $leader");
	}
}
in_order('ids of a statement are above those of the statements before it');

# A first call in odd places.
draw('BEGIN; SAVEPOINT s; SELECT uid_next(); ROLLBACK TO s; SELECT uid_next(); COMMIT; SELECT uid_next()');
my $failed = session('owner');
is(sqlstate($failed, $_), '42P01', "a session whose first call fails: $_")
  foreach "SELECT segment_next('nothing')", 'SELECT uid_next(1::regclass)';
push @ids, $failed->query_safe('SELECT uid_next()');
owner(<<'END');
CREATE TABLE late (id bigint);
CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE late SET id = uid_next() WHERE id IS NULL; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER set_id AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION set_id();
END
owner('INSERT INTO late VALUES (NULL)');
draw('SELECT id FROM late');
owner('DECLARE c CURSOR WITH HOLD FOR SELECT uid_next() FROM generate_series(1, 3)');
draw(q{LOAD 'uidgen'; SELECT uid_next()}, $super);
push @ids, session($super, '-c session_preload_libraries=uidgen')->query_safe('SELECT uid_next()');
push @ids, run_command([ 'psql', '-XAtq', '-d', $node->connstr('shop') . ' replication=database', '-c', 'SELECT uid_next()' ]) =~ /(\d+)/;
$node->safe_psql('shop', <<'END');
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO late VALUES (uid_next()); END';
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
ALTER EVENT TRIGGER at_login ENABLE ALWAYS;
END
$node->safe_psql('shop', 'DROP EVENT TRIGGER at_login');
draw('SELECT max(id) FROM late');
in_order('subtransactions, triggers, LOAD, a walsender, a login: ids in order');

# Settings that do not keep databases apart may be set before the library is loaded, even where the first call is in a
# parallel query, which loses them.
is(owner("SET uidgen.max_wait = '3s'; SELECT uid_next() > 0; SHOW uidgen.max_wait"), "t\n3s", 'uidgen.max_wait, set before the first call');
is(owner("SET uidgen.max_wait = '3s'; SELECT count(DISTINCT draw()) FROM many"), 20000, '... and lost in a parallel query');

# A cancel that comes while the library is loaded, at a WARNING about a setting that it does not know: the session must be able
# to load it at the next call. (A function of this kind is looked up when it is called, not before the statement.)
$node->safe_psql('shop', <<'END');
CREATE FUNCTION late_next() RETURNS bigint LANGUAGE c SECURITY DEFINER AS '$libdir/uidgen', 'uid_next_default';
END
my $canceled = session($super, '', "SET uidgen.unknown = '1'");
is(sqlstate($canceled, 'SELECT pg_cancel_backend(pg_backend_pid()), late_next()'), '57014', 'a first call that is canceled');
is(sqlstate($canceled, 'SELECT uid_next()'), '00000', '... and the next one draws');
is($canceled->query('SHOW uidgen.max_wait'), '5s', '... with all settings');
$_->quit foreach $failed, $canceled;

# In single-user mode, between two lives of the server.
draw('SELECT uid_next()');
$node->stop;
my ($single, $messages) = ('', '');
IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'shop' ], '<', \"SELECT uid_next() AS id\n", '>', \$single, '2>', \$messages);
push @ids, $single =~ /id = "(\d+)"/ ? $1 : diag("$single\n$messages");
$node->append_conf('postgresql.conf', 'wal_level = logical');
$node->start;
draw('SELECT uid_next()');
in_order('in single-user mode ids go on, and after it');

# Many sessions at once make the state of the server, and the slots.
foreach my $mode ('fast', 'immediate')
{
	$node->stop($mode);
	$node->start;
	my @sessions = map { session($super) } 1 .. 24;
	send_query($_, 'SELECT uid_next(); SELECT unnest(uid_next_array(100))') foreach @sessions;
	my @drawn = sort { $a <=> $b } map { split /\n/, (finish_query($_))[0] } @sessions;
	$_->quit foreach @sessions;
	push @ids, @drawn;
	is(scalar(@drawn), 24 * 101, "after a stop in mode $mode 24 sessions make the first call at once");
	in_order('... above all ids before it, and none comes twice');
}

# A subscription's process makes the first call: a column that the publisher has not gets its default there.
my $publisher = $node->connstr('postgres') =~ s{'}{''}gr;
$node->safe_psql('postgres', $_) foreach "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
  'CREATE TABLE r (n int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE r', 'CREATE DATABASE copy';
$node->safe_psql('copy', $_) foreach 'CREATE EXTENSION uidgen', 'CREATE TABLE r (n int PRIMARY KEY, id bigint DEFAULT uid_next())',
  "CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p WITH (create_slot = false, copy_data = false)";
$node->safe_psql('postgres', 'INSERT INTO r SELECT generate_series(1, 10)');
ok($node->poll_query_until('copy', 'SELECT count(DISTINCT id) = 10 FROM r'), 'defaults in a subscription');
$node->safe_psql('copy', 'DROP SUBSCRIPTION s');

# A restore sets labels in a session that has called nothing. An event trigger loads the library for it, whatever
# session_replication_role is.
$node->safe_psql('copy', "CREATE SEQUENCE $_") foreach 'x', 'y';
my $label = sub { return "SECURITY LABEL FOR uidgen ON SEQUENCE $_[0] IS 'segment name=\"$_[0]\" step=null max_step=null registry_name=null fleet=null increment=null'" };
hold_open($node, dbname => 'copy')->query_safe('SET session_replication_role = replica; ' . $label->('x'));
is($node->safe_psql('copy', "SELECT segment_next('x')"), 1, 'a label loads the library');
like(failure(hold_open($node, dbname => 'copy'), 'SET event_triggers = off; ' . $label->('y')),
	qr/security label provider "uidgen" is not loaded/, '... but not where event triggers are off');

# The extension comes and goes while new sessions call it. Some fail for lack of it.
my $calls = background_loop($node, sql => 'SELECT uid_next(); SELECT pg_terminate_backend(pg_backend_pid())',
	dbname => 'copy', clients => 3, on_error_stop => 0, reconnect => 1);
foreach my $time (1 .. 4)
{
	goes_on("created for the $time. time", $calls);
	$node->safe_psql('copy', $_) foreach 'DROP EXTENSION uidgen CASCADE', 'CREATE EXTENSION uidgen';
}
goes_on('created at last', $calls);
assert_unique(stop_loop($calls));

# The settings that keep databases apart, with values that are good and bad.
my %values = (registry => [ 'host=/nowhere dbname=ids', 'no connection string' ], datacenter_id => [ '3', '0' ]);

# Takes it out of the file if there is no value.
sub set_in_file ($setting, $value = undef)
{
	my $line = defined $value ? "uidgen.$setting = '$value'\n" : '';
	write_file($conf, slurp_file($conf) =~ s/^uidgen\.$setting = .*\n//mr, $line);
	$node->reload;
	my $known = defined $value ? "= '$value'" : q{IN ('', '-1')};
	ok($node->poll_query_until('postgres', "SELECT coalesce(current_setting('uidgen.$setting', true), '') $known"), $line || "without $setting");
}

foreach my $setting (sort keys %values)
{
	my $refused = "$setting: uidgen";
	my $hidden = "-c uidgen.$setting=";

	# In postgresql.conf, which is reloaded: for sessions that have loaded the library, that have not, and that connect later.
	# When it is gone again, a session that loaded the library before or after goes on. One that loaded it meanwhile does not
	# know whether the value was the file's or its client's, so it has to reconnect.
	foreach my $value (@{ $values{$setting} })
	{
		my ($loaded, $busy, $idle) = (session($super), session($super, '', 'BEGIN; SELECT uid_next()'), session($super));
		outcome('draws', [ "a session that loads the library, before $setting is set", $loaded ]);
		set_in_file($setting, $value);
		my $first_in_worker = session($super);
		outcome($refused,
			[ 'a session that has loaded it', $loaded ],
			[ 'a session that is drawing', $busy, 'SELECT uid_next()' ],
			[ 'a session that has not', $idle ],
			[ 'a new session', session($super) ],
			[ 'a client that hides it', session('owner', $hidden) ],
			[ 'a parallel query that loads it', $first_in_worker, $in_workers ],
			[ '... and its session', $first_in_worker ],
			[ '... of a client that hides it', session('owner', $hidden), $in_workers ]);
		set_in_file($setting);
		$busy->query('ROLLBACK');
		outcome('draws', [ 'a session that has loaded the library before', $loaded ], [ 'another one, after a rollback', $busy ], [ 'a new session', session($super) ]);
		outcome($refused, [ 'a session that loaded it meanwhile', $idle ]);
		like(failure($idle, 'SELECT uid_next()'), qr/HINT:  Reconnect\./, '... which a reconnection helps');
	}

	# For the database or the role: sessions from now on, and their parallel workers. By a session that has loaded the library
	# this is an error for uidgen.registry, which it knows then.
	foreach my $of ('DATABASE shop', 'ROLE owner')
	{
		my $older = session('owner', '', 'SELECT uid_next()');
		$node->safe_psql('postgres', "ALTER $of SET uidgen.$setting = '$values{$setting}[0]'");
		outcome($refused,
			[ "a session after ALTER $of SET uidgen.$setting", session('owner') ],
			[ 'one whose client hides it', session('owner', $hidden) ],
			[ '... in a parallel query', session('owner', $hidden), $in_workers ]);
		outcome('draws', [ 'the session from before', $older ]);
		$node->safe_psql('postgres', "ALTER $of RESET uidgen.$setting");
		outcome('draws', [ 'a session after RESET', session('owner') ]);
	}

	# By a client, who harms nobody else; whether the role may set it or not.
	foreach my $user ('owner', $super)
	{
		foreach my $value (@{ $values{$setting} }, '', '-1')
		{
			my $set = "SET uidgen.$setting = '$value'";
			# Without effect if the role may not set it, or the value is none.
			my $counts = $user eq $super && $setting eq 'datacenter_id' && $value =~ /^\d/;
			my $pooled = session($user, '', "SET client_min_messages = error; $set; SELECT uid_to_base62(1)");
			outcome($refused,
				[ "options of $user: $setting=$value", session($user, $hidden . $value =~ s/ /\\ /gr) ],
				[ '... SET before a parallel query loads the library', session($user, '', $set), $in_workers ]);
			outcome($counts ? $refused : 'draws', [ '... SET before the library is loaded', $pooled ]);
			$pooled->query_safe('DISCARD ALL');
			outcome('draws',
				[ '... and after DISCARD ALL, as a pooler sends it', $pooled, @draws, $in_workers ],
				[ '... and reset before', session($user, '', "$set; RESET uidgen.$setting; BEGIN; SET LOCAL uidgen.$setting = '$value'; COMMIT") ]);
		}
	}
}

# By ALTER SYSTEM, and by a superuser, after the library was loaded.
my $loaded = session($super);
foreach (
	[ q{LOAD 'uidgen'; ALTER SYSTEM SET uidgen.registry = 'host=/nowhere'}, 'ALTER SYSTEM RESET uidgen.registry', 'registry' ],
	[ 'SET uidgen.datacenter_id = 3', 'RESET uidgen.datacenter_id', 'datacenter_id' ],
	[ 'BEGIN; SET LOCAL uidgen.datacenter_id = 3', 'ROLLBACK', 'datacenter_id' ])
{
	my ($set, $reset, $setting) = @$_;
	my $is_system = $set =~ /SYSTEM/;
	outcome('draws', [ "a session before $set", $loaded ]);
	$loaded->query_safe($_) foreach split /; /, $set;
	$node->reload;
	poll_until('the reload', sub { sqlstate($loaded, 'SELECT uid_next()') ne '00000' }) if $is_system;
	outcome("$setting: uidgen", [ $set, $loaded, 'SELECT uid_next()' ]);
	outcome($is_system ? "$setting: uidgen" : 'draws', [ '... another session', session('owner') ]);
	$loaded->query_safe($reset);
	$node->reload;
	poll_until('the reload', sub { sqlstate($loaded, 'SELECT uid_next()') eq '00000' }) if $is_system;
}
outcome('draws', [ 'that session', $loaded ]);

# A number in a generator's row needs no preload, and a fleet does.
owner(q{SELECT uid_generator_create('own', datacenter_id => 7)});
is(owner(<<'END'), "7\nset", 'the number of a row is in its ids, as the status says');
SELECT datacenter_id FROM uid_decode(uid_next('uid_generators.own'));
SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.own'::regclass
END
like(failure(session($super), $_), qr/ERROR:  55000.*(?:must be loaded via shared_preload_libraries|uidgen\.registry)/s, "$_ fails, and says why")
  foreach 'SELECT uid_fleet_move()', "SELECT segment_attach('a')";
is($node->safe_psql('shop', 'SELECT count(*) FROM uid_registry_status'), 0, 'the views of a fleet are empty');
preload('uidgen');
done_testing();
