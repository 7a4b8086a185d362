# Citus, first without it: what it sends to a worker, and a coordinator that is registry and member at once and fails over.
#
# Then with it: a coordinator, which is the registry of the fleet, and workers, which are members. All insert into one
# distributed table at once. Then a node is added, and the coordinator's standby is promoted.
#
# Expected: no id comes twice, no insert fails, and no node sees a deadlock. The statements are those of docs/citus.md.
#
# The second part needs the extension citus, 11 or later, for this major of PostgreSQL, and is skipped without it. Debian has
# no package of it, so test/check does not run it. It was run by hand with Citus 12.1.12 on PostgreSQL 15, also the part with a
# segment, and with no other version.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Pages;

# What Citus does with each sequence that a default of a distributed table depends on, on the worker with group id 1:
# AlterSequenceMinMax() of its src/backend/distributed/worker/worker_data_fetch_protocol.c.
my $first = 2**48 + 1;
sub send_range ($node, $sequence)
{
	return $node->psql('postgres', "ALTER SEQUENCE $sequence START $first MINVALUE $first MAXVALUE " . ($first + 2**48) . " RESTART $first");
}

# Which sequences a default depends on: the catalog's rows that GetDependentSequencesWithRelation() of its
# src/backend/distributed/metadata/metadata_sync.c follows.
my $depends = q{SELECT coalesce(string_agg(refobjid::regclass::text, ' '), '') FROM pg_attrdef d JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass
  AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass AND p.refobjid IN (SELECT seqrelid FROM pg_sequence) WHERE d.adrelid = '%s'::regclass};
{
	my $worker = new_server('sent');
	$worker->safe_psql('postgres', $_) foreach "SELECT uid_generator_create('web'), uid_generator_create('kept'), segment_create('numbers')",
	  q{CREATE TABLE by_name (id bigint DEFAULT uid_next('uid_generators.web'))},
	  q{CREATE TABLE by_text (k int, id bigint DEFAULT uid_next('uid_generators.web'::text::regclass), n bigint DEFAULT segment_next('numbers'))},
	  'CREATE TABLE source_102016 AS SELECT k FROM generate_series(1, 100) k', 'ALTER TABLE by_text RENAME TO by_text_102008';
	is($worker->safe_psql('postgres', sprintf $depends, 'by_name'), 'uid_generators.web', 'a default names a generator: Citus finds its sequence');
	is($worker->safe_psql('postgres', sprintf $depends, 'by_text_102008'), '', '... but not by way of text, nor a segment');
	is($worker->safe_psql('postgres', 'INSERT INTO by_text_102008 DEFAULT VALUES RETURNING id > 0, n'), 't|1', '... which draw');
	# INSERT ... SELECT between tables that are distributed by k, pushed down: RouterModifyTaskForShardInterval() of its
	# src/backend/distributed/planner/insert_select_planner.c names the shard and the alias, and adds the condition.
	# ReorderInsertSelectTargetLists() there moves the defaults of the columns that are not named into the SELECT.
	my $defaults = q{public.uid_next('uid_generators.web'::text::regclass) AS id, public.segment_next('numbers'::text) AS n};
	is($worker->safe_psql('postgres', qq{INSERT INTO public.by_text_102008 AS citus_table_alias (k, id, n) SELECT source.k, $defaults
		FROM public.source_102016 source WHERE (source.k IS NOT NULL) RETURNING n}) =~ tr/\n//, 99, '... in an INSERT ... SELECT that is pushed down, too');
	# The same where id is the column by which the table is distributed. Workers run the SELECT inside
	# worker_partition_query_result(), by WrapTasksForPartitioning() of its
	# src/backend/distributed/executor/distributed_intermediate_results.c, and insert what that has written.
	$worker->safe_psql('postgres', qq{INSERT INTO by_text_102008 (id, n) SELECT intermediate_result.id, intermediate_result.n
		FROM (SELECT $defaults FROM public.source_102016 source WHERE true) intermediate_result});
	is($worker->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), count(DISTINCT n), max(n) FROM by_text_102008'), '201|201|201|201', '... and no value comes twice');
	my $last = $worker->safe_psql('postgres', q{SELECT uid_next('uid_generators.kept')});
	is(send_range($worker, 'uid_generators.kept'), 0, 'Citus gives a generator a range of its own');
	isnt(sqlstate($worker, q{SELECT uid_next('uid_generators.kept')}), '00000', '... and then it draws nothing, rather than an id twice');
	send_range($worker, 'uid_segments.numbers');
	is($worker->safe_psql('postgres', q{SELECT segment_next('numbers')}), $first, 'a segment goes on in that range');
	$worker->stop;
}

# The coordinator is the registry and a member. Its own draws fail after a failover until the fence has ended, or an
# administrator says that nothing was lost.
{
	my $promoted = UidgenNode->new('promoted');
	my $former = new_node('former');
	join_fleet($former, $former, $promoted);
	start_uidgen($former);
	$former->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)');
	make_registry($former);
	# Of INSERT ... VALUES the node that the client is connected to evaluates the default: ExecuteCoordinatorEvaluableExpressions()
	# of its src/backend/distributed/utils/citus_clauses.c. So what runs here is the client's statement.
	my $insert = 'INSERT INTO orders (item) VALUES (1), (2)';
	$former->safe_psql('postgres', $insert);
	$former->backup('backup');
	$promoted->init_from_backup($former, 'backup', has_streaming => 1);
	start_node($promoted);
	$former->wait_for_catchup('promoted');
	$former->stop('immediate');
	$promoted->promote;
	my ($state, $error) = sqlstate($promoted, "SET uidgen.max_wait = '1s'; $insert");
	is($state, '55000', 'a promoted coordinator: its own inserts fail');
	like($error, qr/may have lost grants/, '... because of the fence');
	$promoted->safe_psql('postgres', statement_of('docs/citus.md', qr/nothing_was_lost/));
	$promoted->safe_psql('postgres', $insert);
	is($promoted->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM orders'), '4|4', '... until nothing is said to be lost');
	$promoted->stop;
}

my $sharedir = `pg_config --sharedir`;
chomp $sharedir;
if (!-e "$sharedir/extension/citus.control")
{
	note('citus is not installed');
	done_testing();
	exit;
}

# All nodes are reached through their sockets, which are in one directory.
my $standby = UidgenNode->new('standby');
my $socket = $standby->host;
my $conf = <<"END";
shared_preload_libraries = 'citus,uidgen'
wal_level = logical
max_connections = 100
max_prepared_transactions = 200
citus.local_hostname = '$socket'
citus.node_conninfo = 'sslmode=prefer'
END

# A server with Citus that is a member of the fleet. uidgen itself is created by Citus.
my $coordinator;
sub new_citus_node ($name)
{
	my $node = new_node($name, conf => $conf);
	join_fleet($node, $coordinator // $node, $standby);
	start_node($node);
	$node->safe_psql('postgres', statement_of('docs/citus.md', qr/CREATE EXTENSION citus/));
	return $node;
}

# A recipe with the addresses of these servers.
sub addressed ($sql, %nodes)
{
	$sql =~ s/'(\w+)', 5432/"'$socket', " . $nodes{$1}->port/eg;
	return $sql;
}

sub has_uidgen ($node)
{
	return is($node->safe_psql('postgres', "SELECT count(*) FROM pg_extension WHERE extname = 'uidgen'"), 1, 'Citus creates uidgen on ' . $node->name);
}

# Each row of a statement that inserts several has an id of its own.
sub insert_into
{
	return map { background_loop($_, clients => 2, sql => "INSERT INTO orders (item) VALUES ('x'), ('y') RETURNING id", on_error_stop => 0) } @_;
}

my @logs;
sub stop_inserts
{
	my @stopped = map { stop_loop($_) } @_;
	is(join('', map { slurp_file("$_.err") } @stopped), '', 'no insert failed');
	push @logs, @stopped;
}

sub wait_for_rows ($node, $more)
{
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM orders');
	$node->poll_query_until('postgres', "SELECT count(*) > $rows + $more FROM orders") or die 'no inserts';
}

sub nodes_in_ids ($node, $condition = 'true')
{
	return $node->safe_psql('postgres', "SELECT count(DISTINCT (id >> 12) & 1023) FROM orders WHERE $condition");
}

$coordinator = new_citus_node('coordinator');
make_registry($coordinator, longest => 60, bound => 1);
my @workers = map { new_citus_node($_) } 'worker1', 'worker2';
my $recipe = block_of('docs/citus.md', qr/citus_add_node/) =~ s/fleet_coordinator/uid_member_of_citus/gr;
$coordinator->safe_psql('postgres', "SET citus.shard_count = 8;\n"
	  . addressed($recipe, coordinator1 => $coordinator, worker1 => $workers[0], worker2 => $workers[1]));
has_uidgen($_) foreach @workers;
$coordinator->safe_psql('postgres', block_of('docs/citus.md', qr/run_command_on_all_nodes/));
is($_->safe_psql('postgres', q{SELECT uid_next('uid_generators.web') > 0}), 't', 'the statement creates a generator on ' . $_->name) foreach $coordinator, @workers;

# One series of numbers for all nodes. All attach to the segment of the registry.
$coordinator->safe_psql('postgres', q{
	INSERT INTO uid_registry.segment (name) VALUES ('numbers');
	SET citus.shard_count = 8;
	CREATE TABLE tickets (id bigint PRIMARY KEY DEFAULT segment_next('numbers'), item text);
	SELECT create_distributed_table('tickets', 'id')});
$_->safe_psql('postgres', q{SELECT segment_attach('numbers', step => 50, max_step => 50)}) foreach $coordinator, @workers;
my @tickets = map {
	background_loop($_, clients => 2, sql => "INSERT INTO tickets (item) VALUES ('x'), ('y') RETURNING id", on_error_stop => 0)
} $coordinator, @workers;
$coordinator->poll_query_until('postgres', 'SELECT count(*) > 1000 FROM tickets') or die 'no inserts';
goes_on('all nodes insert numbers of one segment', @tickets);
my @numbers = stop_loop(@tickets);
is(join('', map { slurp_file("$_.err") } @numbers), '', 'no insert of a number failed');
assert_unique(@numbers);

my @loops = insert_into($coordinator, @workers);
wait_for_rows($coordinator, 1000);
stop_inserts(@loops);
is(nodes_in_ids($coordinator), 3, 'the coordinator and both workers draw from nodes of their own');

# The workers that run the SELECT evaluate the default. All shards are on them.
$coordinator->safe_psql('postgres', q{
	INSERT INTO orders (item) SELECT 'selected' FROM tickets;
	INSERT INTO tickets (item) SELECT 'selected' FROM tickets});
is(nodes_in_ids($coordinator, "item = 'selected'"), 2, 'INSERT ... SELECT draws ids on both workers');
is($coordinator->safe_psql('postgres', "SELECT count(*) = 2 * count(*) FILTER (WHERE item = 'selected') FROM tickets"),
	't', '... and numbers of the segment');

push @workers, new_citus_node('worker3');
$coordinator->safe_psql('postgres', "SELECT citus_add_node('$socket', " . $workers[2]->port . ')');
has_uidgen($workers[2]);
@loops = insert_into($workers[2]);
wait_for_rows($coordinator, 100);
stop_inserts(@loops);
is(nodes_in_ids($coordinator), 4, 'so does a worker that is added later');

my $insert = "INSERT INTO tickets (item) VALUES ('x')";
is(scalar $workers[2]->psql('postgres', $insert), 3, 'it has no segment yet');
$workers[2]->safe_psql('postgres', "SELECT segment_attach('numbers')");
is(scalar $workers[2]->psql('postgres', $insert), 0, '... until it is attached');

$coordinator->backup('backup');
$standby->init_from_backup($coordinator, 'backup', has_streaming => 1);
start_node($standby);
@loops = insert_into(@workers);
wait_for_rows($coordinator, 100);
$coordinator->wait_for_catchup('standby');
$coordinator->stop('immediate');
$standby->promote;
$standby->safe_psql('postgres', addressed(statement_of('docs/citus.md', qr/citus_update_node/), coordinator2 => $standby));
my $promoted = $standby->safe_psql('postgres', 'SELECT clock_timestamp()');
my $ports = join '|', map { $_->port } @workers;
ok($standby->poll_query_until('postgres', "SELECT count(*) >= 3 FROM uid_registry.node WHERE holder ~ ':($ports),' AND heard > '$promoted'"),
	'the new coordinator renews the grants of all workers');
wait_for_rows($standby, 100);
stop_inserts(@loops);
is(nodes_in_ids($standby), 4, '... and each keeps its node');

assert_unique(@logs);
is($standby->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM orders'), 0, 'all rows are distinct');
unlike(slurp_file($_->logfile), qr/deadlock/, $_->name . ' saw no deadlock') foreach $coordinator, $standby, @workers;
$_->stop('fast') foreach @workers, $standby;
done_testing();
