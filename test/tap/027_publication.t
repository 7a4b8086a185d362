# Logical replication of all tables, with the extension on both sides: rows of user tables arrive, and the rows that
# describe each side's generators and segments stay local.
use UidgenTest;

my $conf = "wal_level = logical\nmax_logical_replication_workers = 12\nmax_worker_processes = 20\nwal_retrieve_retry_interval = 100ms\n";
my $left = new_node('left', conf => $conf . "uidgen.datacenter_id = 1\n");
my $right = new_node('right', conf => $conf . "uidgen.datacenter_id = 2\n");
start_uidgen($_) foreach ($left, $right);

my $setup = <<'SQL';
CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT uid_next(), made_by text, n bigint DEFAULT segment_next('same'));
SELECT uid_generator_create('same', 'twitter'), segment_create('same', 1, 10);
SQL
sub sql
{
	my ($node, $sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

sub insert
{
	my ($node, $rows) = @_;
	return sql($node, "INSERT INTO rows (made_by) SELECT '" . $node->name . "' FROM generate_series(1, $rows)");
}

# All that has arrived there so far is applied here.
sub arrived
{
	my ($from, $to) = @_;
	my $name = $from->name . '_to_' . $to->name;
	sql($from, "INSERT INTO mark VALUES ('$name') ON CONFLICT (name) DO UPDATE SET n = mark.n + 1");
	my $n = sql($from, "SELECT n FROM mark WHERE name = '$name'");
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($to->poll_query_until('postgres', "SELECT count(*) = 1 FROM mark WHERE name = '$name' AND n = $n"), "replication goes on from " . $from->name);
	return;
}

# Each side's own: what must be as it was whatever the other does.
my $own = 'SELECT * FROM uid_generator ORDER BY generator::text; SELECT * FROM uid_segment ORDER BY name';

sql($_, $setup . 'CREATE TABLE mark (name text PRIMARY KEY, n integer DEFAULT 1)') foreach ($left, $right);
# An altered builtin generator on both sides, another default on one; a generator and a segment of different figures.
sql($left, "SELECT uid_generator_alter('uid_generators.uid_default', spread => false, lease_ms => 900)");
sql($right, "SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 800)");
sql($right, "SELECT uid_default_set('uid_generators.same')");
sql($right, "SELECT segment_alter('same', 20, 2000, 'of the right')");
insert($left, 100);
my $right_rows = sql($right, $own);
my $left_rows = sql($left, $own);

# From left to right, with the initial copy.
sql($left, 'CREATE PUBLICATION everything FOR ALL TABLES');
# In both directions only what was not itself received goes on; PostgreSQL 15 does not tell the two apart.
my $both_ways = $left->pg_version >= 16;
my $option = $both_ways ? ', origin = none' : '';
sql($right, "CREATE SUBSCRIPTION from_left CONNECTION '" . $left->connstr . " dbname=postgres' PUBLICATION everything WITH (copy_data = true$option)");
ok( $right->poll_query_until('postgres', "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel"),
	'all tables are copied, those of the extension too');
is(sql($right, $own), $right_rows, 'and the rows of generators and segments are not touched');
is(sql($right, 'SELECT count(*) FROM rows'), 100, 'rows of a user table are there');
if ($both_ways)
{
	sql($right, 'CREATE PUBLICATION everything FOR ALL TABLES');
	sql($left, "CREATE SUBSCRIPTION from_right CONNECTION '" . $right->connstr . " dbname=postgres' PUBLICATION everything WITH (copy_data = false, origin = none)");
	ok($left->poll_query_until('postgres', "SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel"), 'and back');
}

# Every kind of change, on one side or on both.
my @changes = (
	[ 'alter a generator', "SELECT uid_generator_alter('uid_generators.same', lease_ms => 500)", '' ],
	[ 'alter the builtin one', "SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 700)", '' ],
	[ 'alter a segment', "SELECT segment_alter('same', 30)", '' ],
	[ 'choose a default', "SELECT uid_default_set('uid_generators.same')", '' ],
	[ 'make them, on the other side first',
		"SELECT uid_generator_create('later'), segment_create('later')", "SELECT uid_generator_create('later', 'js53'), segment_create('later', 5, 6)" ],
	[ 'drop them', "SELECT uid_generator_drop('uid_generators.later'), segment_drop('later')", '' ],
	[ 'drop the default', 'DROP SEQUENCE uid_generators.same', '' ],
	[ 'choose one again', "SELECT uid_default_set('uid_generators.uid_default')", '' ],
	[ 'delete a row by hand', "DELETE FROM uid_generator WHERE generator = 'uid_generators.uid_default'::regclass", '' ]);
foreach my $change (@changes)
{
	my ($what, $on_left, $on_right) = @$change;
	sql($right, $on_right) if $on_right ne '';
	$right_rows = sql($right, $own);
	sql($left, $on_left);
	$left_rows = sql($left, $own);
	arrived($left, $right);
	arrived($right, $left) if $both_ways;
	is(sql($right, $own), $right_rows, "$what: the other side's rows stay");
	is(sql($left, $own), $left_rows, '... and its own');
}
like($right_rows, qr/^later\|/m, 'what the other side made last is there on this side only');

# Draws on both sides while the publisher restarts.
foreach my $round (1 .. 3)
{
	insert($left, 50);
	insert($right, 50);
	$round == 2 ? $left->stop('immediate') : $left->stop;
	start_node($left);
	insert($left, 50);
	if ($round == 3)
	{
		$right->stop;
		start_node($right);
	}
	insert($right, 50);
	arrived($left, $right);
	arrived($right, $left) if $both_ways;
}
my $count = 'SELECT made_by, count(*), count(DISTINCT id) FROM rows GROUP BY 1 ORDER BY 1';
is(sql($right, $count), "left|400|400\nright|300|300", 'all rows are there, made with the default on each side');
is(sql($left, $count), $both_ways ? "left|400|400\nright|300|300" : 'left|400|400', 'on the other side as well');
is(sql($right, "SELECT DISTINCT datacenter_id FROM rows, uid_decode(id) WHERE made_by = 'right'"), 2, 'ids tell the side');
is(sql($right, "SELECT datacenter_id FROM rows, uid_decode(id, 'uid_generators.uid_default') WHERE made_by = 'left' ORDER BY n DESC LIMIT 1"), 1, 'also those that arrived');
is(sql($right, 'SELECT count(*) > 0 FROM worker_node WHERE system_identifier <> (SELECT system_identifier FROM pg_control_system())'),
	't', 'and the server, as rows of worker_node arrive');

# A TRUNCATE could not be left out, so it is refused where it would begin.
is(sqlstate($left, 'TRUNCATE uid_generator'), '0A000', 'nobody truncates uid_generator');
is(sqlstate($left, 'SET session_replication_role = replica; TRUNCATE uid_segment'), '0A000', 'or uid_segment');
is(sql($right, $own), $right_rows, 'the rows are there');

# What exists on the publisher only stops the subscription until it is made there, as any DDL.
sql($left, "SELECT segment_create('only left')");
insert($left, 10);
ok($right->wait_for_log(qr/relation "uid_segments.only left" does not exist/), 'a segment that is not there: the log tells its name');
sql($right, "SELECT segment_create('only left', 7)");
arrived($left, $right);
is(sql($right, "SELECT count(*) FROM rows WHERE made_by = 'left'"), 410, 'made there, replication goes on');
like(sql($right, $own), qr/^only left\|/m, 'with the row as it was made there');

# Between two databases of one server, whose rows of worker_node have the same keys: those that an application inserts, and
# those of live generators.
sql($left, 'CREATE DATABASE twin');
sub twin { return $left->safe_psql('twin', $_[0]) }
sub receiver { return $left->safe_psql('receiver', $_[0]) }
sub row_of_application
{
	my ($id, $host, $database) = @_;
	return 'INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created, database)'
	  . " VALUES ($id, '$host', 0, 2, now(), now(), clock_timestamp(), " . ($database // 'NULL') . ')';
}

sub caught_up
{
	my ($what) = @_;
	$left->wait_for_catchup('twin');
	my $rows = twin('SELECT count(*) FROM rows');
	is(receiver('SELECT count(*) FROM rows'), $rows, "$what: the subscription goes on");
	return;
}

twin('CREATE EXTENSION uidgen; CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT uid_next(), made_by text, n bigint);'
	  . q{SELECT uid_generator_create('sticky', worker_policy => 'sticky')});
twin('CREATE PUBLICATION everything FOR ALL TABLES');
twin(q{SELECT pg_create_logical_replication_slot('twin', 'pgoutput')});
sql($left, 'CREATE DATABASE receiver TEMPLATE twin');
receiver(row_of_application($_, 'receiver')) foreach 1 .. 9;
receiver(q{SELECT uid_generator_create('other', 'baidu'), setval('worker_node_id_seq', 9)});
foreach my $name ('sticky', 'other')
{
	receiver("SELECT uid_next('uid_generators.$name')");
	wait_for_node_rows($left, "%$name", 1, dbname => 'receiver');
}
receiver("CREATE SUBSCRIPTION twin CONNECTION '" . $left->connstr . " dbname=twin' PUBLICATION everything WITH (create_slot = false, copy_data = false)");
my $nodes = 'SELECT * FROM worker_node ORDER BY id';
my $own_nodes = receiver($nodes);
my $sticky = 'SELECT worker_id FROM worker_node WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())'
  . q{ AND generator LIKE '%sticky' ORDER BY created DESC LIMIT 1};
my $own_worker = receiver($sticky);

# Row 1 is of an application at the receiver, and row 11 of the receiver's `other`. The node of row 10 is taken.
twin('INSERT INTO rows DEFAULT VALUES');
wait_for_node_rows($left, '%uid_default', 1, dbname => 'twin');
twin(q{SELECT setval('worker_node_id_seq', 9); SELECT uid_next('uid_generators.sticky')});
wait_for_node_rows($left, '%sticky', 1, dbname => 'twin');
is(twin('SELECT array_agg(id ORDER BY id) FROM worker_node'), '{1,11}', 'rows of live generators have the same keys');
caught_up('rows whose keys are taken');
twin(q{UPDATE worker_node SET tags = '{"a": 1}'; INSERT INTO rows DEFAULT VALUES});
caught_up('they change');
twin('UPDATE worker_node SET id = 8 WHERE id = 1; INSERT INTO rows DEFAULT VALUES');
caught_up('one gets another key that is taken');
twin('DELETE FROM worker_node WHERE id = 11; INSERT INTO rows DEFAULT VALUES');
caught_up('one is deleted');
twin(row_of_application(40, 'copy', q{(SELECT oid FROM pg_database WHERE datname = 'receiver')}) . '; INSERT INTO rows DEFAULT VALUES');
caught_up('one says that it is of the receiver, as those of a physical copy');
is(receiver($nodes), $own_nodes, 'the rows of the receiver stay');
twin('DELETE FROM worker_node WHERE id IN (8, 40); INSERT INTO rows DEFAULT VALUES');
caught_up('others are deleted');
is(receiver('SELECT count(*) FROM worker_node WHERE id = 8'), 0, 'that of an application goes, because a DELETE brings only the key');

# Rows that have arrived follow the publisher's, up to a key that is taken.
twin(row_of_application($_, 'twin')) foreach 30, 31;
twin(q{UPDATE worker_node SET tags = '{"b": 2}' WHERE id = 30; UPDATE worker_node SET id = 9 WHERE id = 31; INSERT INTO rows DEFAULT VALUES});
caught_up('others arrive');
is(receiver('SELECT id, tags FROM worker_node WHERE id > 11 ORDER BY id'), qq(30|{"b": 2}\n31|{}), 'but a change to a key that is taken does not');
twin('DELETE FROM worker_node WHERE id IN (9, 30); INSERT INTO rows DEFAULT VALUES');
caught_up('they are deleted');
is(receiver('SELECT count(*) FROM worker_node WHERE id = 30'), 0, 'here, too');

# Only what replication brings is left out, whatever a restore has set.
my $as_replica = 'SET session_replication_role = replica';
is($left->psql('receiver', "$as_replica; " . row_of_application(10, 'restore')), 3, 'a session that restores is told of a key that is taken');
is(receiver("$as_replica; UPDATE worker_node SET created = now() WHERE id = 31 RETURNING id"), 31, 'and may change a row');
is(receiver("$as_replica; DELETE FROM worker_node WHERE id = 31 RETURNING id"), 31, 'and delete one');

# A restore with disabled triggers leaves them in another state. As docs/operations.md says:
receiver('ALTER TABLE worker_node ENABLE TRIGGER ALL; ALTER TABLE uid_segment ENABLE TRIGGER ALL');
receiver(block_of('docs/operations.md', qr/ENABLE ALWAYS TRIGGER/));
my $states = q{SELECT count(*) FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid WHERE proname IN ('uid_keep_local', 'uid_keep_node') AND tgenabled <> 'A'};
is(receiver($states), 0, 'all triggers that keep rows act on replication again');

# The latest row of a generator of that name is the other database's.
twin(q{INSERT INTO rows DEFAULT VALUES; SELECT uid_generator_alter('uid_generators.sticky', lease_ms => 700)});
twin(q{SELECT setval('worker_node_id_seq', 50); SELECT uid_next('uid_generators.sticky')});
wait_for_node_rows($left, '%sticky', 1, dbname => 'twin');
twin(row_of_application(5, 'twin') . '; INSERT INTO rows DEFAULT VALUES');
caught_up('a later row of the other database, and one whose key is taken');
$left->stop;
start_node($left);
receiver(q{SELECT uid_next('uid_generators.sticky')});
wait_for_node_rows($left, '%sticky', 3, dbname => 'receiver');
is(receiver($sticky), $own_worker, 'sticky keeps the node of its own database');
is(receiver('SELECT count(*) FROM worker_node WHERE id BETWEEN 2 AND 7'), 6, 'rows of applications are there');
twin('TRUNCATE worker_node; INSERT INTO rows DEFAULT VALUES');
caught_up('TRUNCATE');
is(receiver('SELECT count(*) FROM worker_node WHERE id BETWEEN 2 AND 7'), 0, 'no row of applications is left on either side');
receiver('DROP SUBSCRIPTION twin');

# The trigger looks for keys in the table that it is on.
sql($left, 'CREATE ROLE somebody; CREATE TABLE mine (LIKE worker_node); ALTER TABLE mine OWNER TO somebody');
my $trigger = 'CREATE TRIGGER t BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_node()';
is(sqlstate($left, "SET ROLE somebody; $trigger"), '42501', 'a role cannot have it on a table of its own');

done_testing();
