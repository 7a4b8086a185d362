# PostgreSQL 17 and later: uidgen on a server that does not preload it. A server whose postgresql.conf nobody has touched, and
# an owner of a database who is no superuser; then first calls in all places where a process may load the library, and many at
# once. Expected: what holds with the preload. (001_matrix.t does not preload there either, and
# 058_changed_package.t has crashes.)
use UidgenTest;
use Clients;
use Trouble;

plan skip_all => 'PostgreSQL 15 and 16 need the preload' if `pg_config --version` =~ /\b1[56]\./;

# A node with the settings of initdb's own file, but for where it listens.
sub untouched_node ($name)
{
	my $node = UidgenNode->new($name);
	$node->init;
	my $fault = ($ENV{UIDGEN_FAULT} // '') ne '' ? "uidgen.fault = '$ENV{UIDGEN_FAULT}'" : '';
	chomp(my $sample = `pg_config --sharedir`);
	my ($file, $host, $port) = ($node->data_dir . '/postgresql.conf', $node->host, $node->port);
	unlink $file;
	append_to_file($file, slurp_file("$sample/postgresql.conf.sample")
		  . "listen_addresses = ''\nunix_socket_directories = '$host'\nport = $port\n$fault\n");
	return $node;
}

sub as_owner ($node, $sql)
{
	return scalar $node->safe_psql('shop', $sql, extra_params => [ '-U', 'owner' ]);
}

sub lines
{
	return split /\n/, $_[0];
}

sub sorted
{
	my ($before, @wrong) = (0);
	foreach my $value (@_)
	{
		push @wrong, "$value after $before" if $value <= $before;
		$before = $value;
	}
	return $wrong[0] // 'in order';
}

my $node = untouched_node('untouched');
$node->start;
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), '', 'a server that preloads nothing');
$node->safe_psql('postgres', $_) foreach 'CREATE ROLE owner LOGIN', 'CREATE DATABASE shop OWNER owner';

# Ids at once, each statement in a session of its own, which loads the library. The last one has drawn from one generator all
# along, so its ids are in order.
my (undef, undef, $notices) = $node->psql('shop', 'CREATE EXTENSION uidgen', extra_params => [ '-U', 'owner' ]);
is(() = $notices =~ /NOTICE:/g, 1, 'CREATE EXTENSION, by the owner of the database, says one thing');
my @ids = as_owner($node, 'SELECT uid_next()');
as_owner($node, "SELECT uid_generator_create('cached', mode => 'cached', spread => false); SELECT segment_create('invoice')");
as_owner($node, 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item int)');
push @ids, lines(as_owner($node, 'SELECT unnest(uid_next_array(1000))'));
push @ids, as_owner($node, 'BEGIN READ ONLY; SELECT uid_next(); COMMIT');
push @ids, as_owner($node, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT uid_next(); COMMIT');
push @ids, lines(as_owner($node, 'INSERT INTO orders (item) SELECT * FROM generate_series(1, 100) RETURNING id'));
is(sorted(@ids), 'in order', 'calls, an array, a read-only transaction, defaults: ids in order');
is(join(' ', map { lines(as_owner($node, $_)) } ("SELECT segment_next('invoice')") x 2, "SELECT unnest(segment_next_array('invoice', 2))"),
	'1 2 3 4', 'values of a segment, one after the other');
is(as_owner($node, "SELECT count(DISTINCT id) FROM unnest(uid_next_array('uid_generators.cached', 5000)) id"), 5000, 'cached mode');
ok(poll_until('a refiller', sub { background_pids($node, 'refiller') }), 'the refiller runs');
my ($time_and_node) = lines(as_owner($node, <<"END"));
SELECT d.generated_at BETWEEN now() - interval '1 hour' AND now(), (d.datacenter_id, d.worker_id) = (s.datacenter_id, s.worker_id)
  FROM uid_decode($ids[0]) d, uid_generator_status s WHERE s.generator = 'uid_generators.uid_default'::regclass
END
is($time_and_node, 't|t', 'an id has its time and its node');
is(wait_for_node_rows($node, '%', 2, dbname => 'shop'), 2, 'worker_node has a row of each generator');
is(as_owner($node, "SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.uid_default'::regclass"),
	'auto', 'the status of a generator');
is(as_owner($node, "SELECT ids FROM uid_stat WHERE sequence = 'uid_generators.uid_default'::regclass"), scalar(@ids), 'its statistics');

# In a parallel query. The first call of a session may come in a worker, and in the leader when it runs the same plan.
as_owner($node, <<'END');
CREATE FUNCTION draw() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS 'BEGIN RETURN uid_next(); END';
CREATE TABLE many AS SELECT * FROM generate_series(1, 20000) AS n;
ANALYZE many;
END
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ';
foreach my $leader ('on', 'off')
{
	foreach my $call ('uid_next()', 'draw()')
	{
		my $set = "${parallel}SET parallel_leader_participation = $leader; ";
		my @drawn = lines(as_owner($node, $set . "SELECT $call FROM many"));
		push @ids, sort { $a <=> $b } @drawn;
		like(as_owner($node, $set . "EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT $call FROM many"),
			qr/Workers Launched: [1-9]/, "$call in parallel workers, and in the leader: $leader");
	}
}
is(sorted(@ids), 'in order', 'ids of a statement are above those of the statements before it');

# A first call in odd places.
my $again = as_owner($node, <<'END');
BEGIN; SAVEPOINT s; SELECT uid_next(); ROLLBACK TO s; SELECT uid_next(); COMMIT; SELECT uid_next()
END
push @ids, lines($again);
my $failed = $node->start_session('shop');
is(sqlstate($failed, $_), '42P01', "a session whose first call fails: $_")
  foreach "SELECT segment_next('nothing')", 'SELECT uid_next(1::regclass)';
push @ids, $failed->query_safe('SELECT uid_next()');
as_owner($node, <<'END');
CREATE TABLE late (id bigint);
CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE late SET id = uid_next() WHERE id IS NULL; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER set_id AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION set_id();
END
as_owner($node, 'INSERT INTO late VALUES (NULL)');
push @ids, as_owner($node, 'SELECT id FROM late');
as_owner($node, 'DECLARE c CURSOR WITH HOLD FOR SELECT uid_next() FROM generate_series(1, 3)');
push @ids, lines($node->safe_psql('shop', "LOAD 'uidgen'; SELECT uid_next()"));
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=uidgen';
	push @ids, lines($node->safe_psql('shop', 'SELECT uid_next()'));
}
my ($sent) = run_command([ 'psql', '-XAtq', '-d', $node->connstr('shop') . ' replication=database', '-c', 'SELECT uid_next()' ]);
push @ids, $sent;
$node->safe_psql('shop', <<'END');
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO late VALUES (uid_next()); END';
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
ALTER EVENT TRIGGER at_login ENABLE ALWAYS;
END
$node->safe_psql('shop', 'DROP EVENT TRIGGER at_login');
push @ids, as_owner($node, 'SELECT max(id) FROM late');
is(sorted(@ids), 'in order', 'subtransactions, triggers, LOAD, a walsender, a login: ids in order');

# Settings that do not keep databases apart may be set before the library is loaded, even where the first call is in a
# parallel query, which loses them.
is(as_owner($node, "SET uidgen.max_wait = '3s'; SELECT uid_next() > 0; SHOW uidgen.max_wait"), "t\n3s", 'uidgen.max_wait, set before the first call');
my $lost = $node->start_session('shop');
is($lost->query("SET uidgen.max_wait = '3s'; ${parallel}SELECT count(DISTINCT draw()) FROM many"), 20000, '... and lost in a parallel query');
$_->quit foreach $failed, $lost;

# A cancel that comes while the library is loaded, at a WARNING about a setting that it does not know: the session must be able
# to load it at the next call. (A function of this kind is looked up when it is called, not before the statement.)
$node->safe_psql('shop', <<'END');
CREATE FUNCTION late_next() RETURNS bigint LANGUAGE c SECURITY DEFINER AS '$libdir/uidgen', 'uid_next_default';
END
my $canceled = $node->start_session('shop');
$canceled->query_safe("SET uidgen.unknown = '1'");
is(sqlstate($canceled, 'SELECT pg_cancel_backend(pg_backend_pid()), late_next()'), '57014', 'a first call that is canceled');
is(sqlstate($canceled, 'SELECT uid_next()'), '00000', '... and the next one draws');
is($canceled->query('SHOW uidgen.max_wait'), '5s', '... with all settings');
$canceled->quit;

# In single-user mode, between two lives of the server.
push @ids, as_owner($node, 'SELECT uid_next()');
$node->stop;
my ($single, $messages) = ('', '');
IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'shop' ], '<', \"SELECT uid_next() AS id\n", '>', \$single, '2>', \$messages);
push @ids, $single =~ /id = "(\d+)"/ ? $1 : diag("$single\n$messages");
$node->start;
push @ids, as_owner($node, 'SELECT uid_next()');
is(sorted(@ids), 'in order', 'in single-user mode ids go on, and after it');

# Many sessions at once make the state of the server, and the slots.
foreach my $mode ('fast', 'immediate')
{
	$node->stop($mode);
	$node->start;
	my $before = $ids[-1];
	my @sessions = map { $node->start_session('shop') } 1 .. 24;
	send_query($_, 'SELECT uid_next(); SELECT unnest(uid_next_array(100))') foreach @sessions;
	my @drawn = sort { $a <=> $b } map { lines((finish_query($_))[0]) } @sessions;
	$_->quit foreach @sessions;
	push @ids, @drawn;
	is(scalar(@drawn), 24 * 101, "after a stop in mode $mode 24 sessions make the first call at once");
	is(sorted(@ids), 'in order', '... above all ids before it, and none comes twice');
}
$node->stop;

# In a subscription; while the extension is dropped.
# Every draw is the first one of its session.
my $new_sessions = 'SELECT uid_next(); SELECT pg_terminate_backend(pg_backend_pid())';
my $primary = new_server('primary', conf => "wal_level = logical\n");

# A subscription's process makes the first call: a column that the publisher has not gets its default there.
my $publisher = $primary->connstr('postgres') =~ s{'}{''}gr;
$primary->safe_psql('postgres', $_) foreach "SELECT pg_create_logical_replication_slot('s', 'pgoutput')",
  'CREATE TABLE r (n int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE r', 'CREATE DATABASE copy';
$primary->safe_psql('copy', $_) foreach 'CREATE EXTENSION uidgen', 'CREATE TABLE r (n int PRIMARY KEY, id bigint DEFAULT uid_next())',
  "CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p WITH (create_slot = false, copy_data = false)";
$primary->safe_psql('postgres', 'INSERT INTO r SELECT generate_series(1, 10)');
ok($primary->poll_query_until('copy', 'SELECT count(DISTINCT id) = 10 FROM r'), 'defaults in a subscription');
$primary->safe_psql('copy', 'DROP SUBSCRIPTION s');

# A restore sets labels in a session that has called nothing. An event trigger loads the library for it, whatever
# session_replication_role is.
$primary->safe_psql('copy', "CREATE SEQUENCE $_") foreach 'x', 'y';
my $label = sub { return "SECURITY LABEL FOR uidgen ON SEQUENCE $_[0] IS 'segment name=\"$_[0]\" step=null max_step=null registry_name=null fleet=null increment=null'" };
hold_open($primary, dbname => 'copy')->query_safe('SET session_replication_role = replica; ' . $label->('x'));
is($primary->safe_psql('copy', "SELECT segment_next('x')"), 1, 'a label loads the library');
like(failure(hold_open($primary, dbname => 'copy'), 'SET event_triggers = off; ' . $label->('y')), qr/security label provider "uidgen" is not loaded/, '... but not where event triggers are off');

# The extension comes and goes while new sessions call it. Some fail for lack of it.
my $calls = background_loop($primary, sql => $new_sessions, dbname => 'copy', clients => 3, on_error_stop => 0, reconnect => 1);
foreach my $time (1 .. 4)
{
	goes_on("created for the $time. time", $calls);
	$primary->safe_psql('copy', $_) foreach 'DROP EXTENSION uidgen CASCADE', 'CREATE EXTENSION uidgen';
}
goes_on('created at last', $calls);
assert_unique(stop_loop($calls));

$primary->stop;
done_testing();
