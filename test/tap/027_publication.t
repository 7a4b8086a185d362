# Logical replication of all tables, with the extension on both sides: rows of user tables arrive, those of t_sequence and
# the secrets of keys, too; generators and segments of each side are its own, and stop nothing. And a move to another
# server by it.
use UidgenTest 'preloaded';
use Clients;
use Pages;

my $conf = "wal_level = logical\nmax_logical_replication_workers = 12\nmax_worker_processes = 20\nwal_retrieve_retry_interval = 100ms\n";
my $left = new_node('left', conf => $conf . "uidgen.datacenter_id = 1\n");
my $right = new_node('right', conf => $conf . "uidgen.datacenter_id = 2\n");
start_uidgen($_) foreach ($left, $right);

my $setup = <<'SQL';
CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT uid_next(), made_by text, n bigint DEFAULT segment_next('same'));
SELECT uid_generator_create('same', 'twitter'), segment_create('same', 1, 10), uid_key_create('same');
SELECT uid_t_sequence_create(), uid_leaf_alloc_create();
SQL
sub insert ($node, $rows)
{
	return sql($node, "INSERT INTO rows (made_by) SELECT '" . $node->name . "' FROM generate_series(1, $rows)");
}

# All that has arrived there so far is applied here.
sub arrived ($from, $to)
{
	my $name = $from->name . '_to_' . $to->name;
	sql($from, "INSERT INTO mark VALUES ('$name') ON CONFLICT (name) DO UPDATE SET n = mark.n + 1");
	my $n = sql($from, "SELECT n FROM mark WHERE name = '$name'");
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($to->poll_query_until('postgres', "SELECT count(*) = 1 FROM mark WHERE name = '$name' AND n = $n"), "replication goes on from " . $from->name);
}

# Each side's own: what must be as it was whatever the other does.
my $own = 'SELECT * FROM uid_generator ORDER BY generator::text; SELECT * FROM uid_segment ORDER BY name';

sql($_, $setup . 'CREATE TABLE mark (name text PRIMARY KEY, n integer DEFAULT 1)') foreach ($left, $right);
# Another default on one side; a generator and a segment of different figures.
sql($left, "SELECT uid_generator_alter('uid_generators.same', spread => false, lease_ms => 900)");
sql($right, "SELECT uid_default_set('uid_generators.same')");
sql($right, "SELECT segment_alter('same', 20, 2000)");
insert($left, 100);
sql($left, "INSERT INTO t_sequence VALUES ('same', 1, 100), ('far', 1, 10); INSERT INTO leaf_alloc (biz_tag, step) VALUES ('same', 100)");
sql($left, 'UPDATE t_sequence SET current_val = current_val + increment_val; UPDATE leaf_alloc SET max_id = max_id + step');
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
is(sql($right, $own), $right_rows, 'and generators and segments are not touched');
my $blocks = 'SELECT pk_seq_name, current_val, increment_val FROM t_sequence ORDER BY 1; SELECT biz_tag, max_id, step FROM leaf_alloc ORDER BY 1';
is(sql($right, $blocks), sql($left, $blocks), 'rows of t_sequence and leaf_alloc show what they show there');
is(sql($right, 'SELECT count(*) FROM uid_secrets.uid_key'), 2, 'keys are there, beside those of this side');
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
	[ 'alter a segment', "SELECT segment_alter('same', 30)", '' ],
	[ 'choose a default', "SELECT uid_default_set('uid_generators.same')", '' ],
	[ 'make them, on the other side first', "SELECT uid_generator_create('later'), segment_create('later'), uid_key_create('later')",
		"SELECT uid_generator_create('later', 'js53'), segment_create('later', 5, 6), uid_key_create('later')" ],
	[ 'make them on this side only', "SELECT uid_generator_create('only'), segment_create('only'), uid_key_create('only', 63, 2)", '' ],
	[ 'change a key', "SELECT uid_key_rotate('only')", '' ],
	[ 'blocks', 'UPDATE t_sequence SET current_val = current_val + increment_val; UPDATE leaf_alloc SET max_id = max_id + step', '' ],
	[ 'drop them', "SELECT uid_generator_drop('uid_generators.later'), segment_drop('later'), segment_drop('only'); DROP SEQUENCE uid_keys.later", '' ],
	[ 'drop the default', 'DROP SEQUENCE uid_generators.same', '' ],
	[ 'choose one again', "SELECT uid_default_set('uid_generators.uid_default')", '' ]);
foreach my $change (@changes)
{
	my ($what, $on_left, $on_right) = @$change;
	sql($right, $on_right) if $on_right ne '';
	$right_rows = sql($right, $own);
	sql($left, $on_left);
	$left_rows = sql($left, $own);
	arrived($left, $right);
	arrived($right, $left) if $both_ways;
	is(sql($right, $own), $right_rows, "$what: what the other side has stays");
	is(sql($left, $own), $left_rows, '... and its own');
}
is(sql($right, $blocks), sql($left, $blocks), 'rows of t_sequence and leaf_alloc have followed');
is(sql($right, 'SELECT count(*) FROM uid_secrets.uid_key'), 4, 'and so have keys, and the DROP of one');
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
is(sql($right, 'SELECT count(*) FROM worker_node WHERE system_identifier <> (SELECT system_identifier FROM pg_control_system())'),
	0, 'rows of worker_node do not arrive');

# A node that goes to the other side takes what is above all that was reserved here, though no counter has come. Without
# a segment of its row it gets an error.
{
	my ($block, $max) = split /\n/, sql($left, "SELECT current_val + 2 * increment_val FROM t_sequence WHERE pk_seq_name = 'same'; SELECT max_id FROM leaf_alloc");
	cmp_ok(sql($right, "UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'same' RETURNING current_val - increment_val"),
		'>', $block, 'a block of t_sequence on the other side');
	cmp_ok(sql($right, 'UPDATE leaf_alloc SET max_id = max_id + step RETURNING max_id - step'), '>', $max, '... and of leaf_alloc');
	cmp_ok(sql($right, "SELECT segment_next('same')"), '>', $block, '... and draws there are above both');
	is(sqlstate($right, "UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'far'"), '42704', '... or an error');
}

# Only what replication brings is left out, whatever a restore has set.
sql($right, "SET session_replication_role = replica; INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created)"
	  . " VALUES (4711, 'restored', 0, 2, now(), now(), now())");
is(sql($right, 'SELECT host_name FROM worker_node WHERE id = 4711'), 'restored', 'a session that restores writes rows');

# A restore with disabled triggers leaves them in another state. As docs/operations.md says:
sql($right, 'ALTER TABLE worker_node ENABLE TRIGGER ALL');
sql($right, block_of('docs/operations.md', qr/ENABLE ALWAYS TRIGGER/));
is(sql($right, q{SELECT count(*) FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid WHERE proname = 'uid_keep_local' AND tgenabled <> 'A'}),
	0, 'all triggers that keep rows act on replication again');
sql($left, q{INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created) VALUES (4711, 'left', 0, 2, now(), now(), now())});
insert($left, 10);
arrived($left, $right);
is(sql($right, 'SELECT host_name FROM worker_node WHERE id = 4711'), 'restored', 'a row with the same key stops nothing');

# Only the extension's tables have the trigger.
sql($left, 'CREATE ROLE somebody; CREATE TABLE mine (LIKE worker_node); ALTER TABLE mine OWNER TO somebody');
my $trigger = 'CREATE TRIGGER t BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_keep_local()';
is(sqlstate($left, "SET ROLE somebody; $trigger"), '42501', 'a role cannot have it on a table of its own');

# A move to another server, as docs/operations.md says.
sql($left, 'CREATE DATABASE shop');
sql($left, 'CREATE ROLE clerk; ALTER DATABASE shop SET uidgen.datacenter_id = 7');
sql($left, <<'SQL', 'shop');
CREATE EXTENSION uidgen;
SELECT uid_generator_create('web', 'js53'), uid_generator_create('busy', sequence_bits => 0, max_ahead_ms => 600000), segment_create('orders', 100), uid_key_create('k');
SELECT uid_default_set('uid_generators.web');
SELECT uid_t_sequence_create();
INSERT INTO t_sequence VALUES ('orders', 100, 10);
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), busy bigint DEFAULT uid_next('uid_generators.busy'), n bigint DEFAULT segment_next('orders'), plain bigserial, code bigint);
INSERT INTO orders SELECT FROM generate_series(1, 10000);
UPDATE orders SET code = uid_conceal(id, 'k');
GRANT INSERT ON orders TO clerk;
SQL
sub in_the_move ($block, $what)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	shell_ok($right, for_servers($block, OLD => $left), $what);
}
my $newest = sql($left, 'SHOW server_version_num') >= 190000;
in_the_move(block_of('docs/operations.md', qr/CREATE PUBLICATION move/), 'the schema, and a subscription');
sql($left, "SELECT uid_generator_create('later'), segment_create('later'), uid_key_create('later'); INSERT INTO orders SELECT FROM generate_series(1, 100)", 'shop');
ok($right->poll_query_until('shop', 'SELECT count(*) = 10100 FROM orders'), 'all rows are there, whatever was made meanwhile');
$right->poll_query_until('shop', "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die 'a table is not copied';
my $highest = sql($left, 'SELECT max(id), max(busy), max(n), max(plain) FROM orders', 'shop');
my $block = sql($left, 'UPDATE t_sequence SET current_val = current_val + increment_val RETURNING current_val + 2 * increment_val', 'shop');
$right->poll_query_until('shop', "SELECT current_val + 2 * increment_val = $block FROM t_sequence") or die 'no row of t_sequence';
if ($newest)
{
	sql($left, 'CREATE PUBLICATION counters FOR ALL SEQUENCES', 'shop');
	sql($left, 'DROP SEQUENCE uid_generators.later, uid_segments.later, uid_keys.later', 'shop');
	sql($right, 'ALTER SUBSCRIPTION move ADD PUBLICATION counters', 'shop');
	ok($right->poll_query_until('shop', "SELECT last_value >= 10100 FROM orders_plain_seq"), 'PostgreSQL copies the counters');
	$right->poll_query_until('shop', "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel") or die;
}
my $arrived = statement_of('docs/operations.md', qr/replay_lsn/);
ok($left->poll_query_until('shop', $arrived), 'the last rows are there');
# Here the extension is in public.
in_the_move(block_of('docs/operations.md', qr/DROP SUBSCRIPTION move/) =~ s/uidgen\.worker_node/worker_node/gr, 'the switch') unless $newest;
sub above ($what)
{
	my ($id, $busy, $n, $plain) = split /\|/, $highest;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$highest = sql($right, "INSERT INTO orders DEFAULT VALUES RETURNING id, busy, n, plain", 'shop');
	is(sql($right, "SELECT id > $id, id < 1::bigint << 53, busy > $busy, n > $n, plain > $plain FROM orders WHERE (id, busy, n, plain) = (" . $highest =~ s/\|/, /gr . ')', 'shop'), 't|t|t|t|t', $what);
}
above('ids and values are above those of the old server');
my $numbers = "SELECT generator, protection, datacenter_id FROM uid_generator_status WHERE protection IS NOT NULL AND generator::text NOT LIKE '%later' ORDER BY generator::text";
is(sql($right, $numbers, 'shop'), sql($left, $numbers, 'shop'), '... with the same number');
is(sql($right, "SELECT has_table_privilege('clerk', 'orders', 'INSERT')", 'shop'), 't', '... and the same roles');
my $origin = 'SELECT system_identifier FROM uid_origin((SELECT min(id) FROM orders))';
is(sql($right, $origin, 'shop'), sql($left, $origin, 'shop'), '... and the servers of old ids') unless $newest;
cmp_ok(sql($right, 'UPDATE t_sequence SET current_val = current_val + increment_val RETURNING current_val - increment_val', 'shop'), '>', $block, '... and blocks');
is(sql($right, "SELECT bool_and(uid_reveal(code, 'k') = id) FROM orders WHERE code IS NOT NULL", 'shop'), 't', 'keys reveal what they concealed there');
if ($newest)
{
	# A refresh after the switch sets the counters back. A generator knows better, even if it was altered meanwhile.
	my @ids = split /\n/, sql($right, "SELECT unnest(uid_next_array('uid_generators.busy', 30000))", 'shop');
	my $mark = sql($right, 'SELECT last_value FROM uid_generators.busy', 'shop');
	sql($right, "SELECT uid_generator_alter('uid_generators.busy', lease_ms => 900)", 'shop');
	sql($right, statement_of('docs/operations.md', qr/REFRESH SEQUENCES/), 'shop');
	ok($right->poll_query_until('shop', "SELECT last_value < $mark FROM uid_generators.busy"), 'a refresh after the switch sets counters back');
	push @ids, split /\n/, sql($right, "SELECT unnest(uid_next_array('uid_generators.busy', 1000))", 'shop');
	is(repeated(@ids), '', 'no id comes twice');
	cmp_ok(sql($right, 'SELECT last_value FROM uid_generators.busy', 'shop'), '>=', $mark, 'the generator has written its counter up again');
	sql($right, 'DROP SUBSCRIPTION move', 'shop');
}

done_testing();
