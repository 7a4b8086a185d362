# An ORM's repair statements on a segment; uid_adopt() and uid_release() beside other sessions, of which sql/adopt.sql has what
# one session sees; then the statements of docs/moving.md, and of docs/originals for those who move.
use UidgenTest;
use Pages;
use Time::HiRes ();

my $node = new_node('migration', conf => "autovacuum = off\n");
start_node($node);

sub adopt ($table, $source = undef) { return "SELECT uid_adopt('$table', 'id', " . (defined $source ? "'$source'" : 'NULL') . ', false)' }
sub release ($table) { return "SELECT uid_release('$table', 'id', NULL, false)" }

# Waits until so many locks are waited for, of a table or any.
sub waiting ($count, $table = undef)
{
	my $of = defined $table ? "AND relation = '$table'::regclass" : '';
	return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM pg_locks WHERE NOT granted $of");
}

sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; ALTER DATABASE postgres SET search_path = public, uidgen');

# What ORMs send after an import with ids of its own. Expected: it takes effect in every session, at the first call of
# its next transaction.
sql(<<'SQL');
CREATE TABLE shop_ticket (id bigserial PRIMARY KEY, title text);
ALTER TABLE shop_ticket ALTER id SET DEFAULT segment_next('shop_ticket_id_seq'::regclass);
SQL
my @sessions = map { hold_open($node) } 1 .. 3;
my $insert = 'INSERT INTO shop_ticket (title) VALUES ($$new$$) RETURNING id';

# Django 3.2.25, manage.py sqlsequencereset, on a model Ticket of an app shop.
sub django
{
	sql(q{BEGIN; SELECT setval(pg_get_serial_sequence('"shop_ticket"','id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "shop_ticket"; COMMIT});
}

# Rails, ActiveRecord 6.1.7, reset_pk_sequence!: the maximum, and then a literal; without rows the least value. It finds the
# sequence by its dependency on the primary key, whatever the default is.
sub rails
{
	my $max = sql('SELECT MAX("id") FROM "shop_ticket"');
	my $min = sql(q{SELECT seqmin FROM pg_sequence WHERE seqrelid = '"public"."shop_ticket_id_seq"'::regclass});
	sql(sprintf q{SELECT setval('"public"."shop_ticket_id_seq"', %s)}, $max eq '' ? "$min, false" : "$max, true");
}

is(sql(<<'SQL'), 'id|public|shop_ticket_id_seq', 'Rails finds the sequence behind segment_next');
SELECT attr.attname, nsp.nspname, seq.relname
  FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp
 WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid
   AND attr.attrelid = cons.conrelid AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid AND cons.contype = 'p'
   AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"shop_ticket"'::regclass
SQL

foreach ([ 'Django', \&django ], [ 'Rails', \&rails ])
{
	my ($name, $repair) = @$_;
	sql('TRUNCATE shop_ticket');
	$repair->();
	is(join(' ', map { $_->query_safe($insert) } @sessions), '1 2 3', "$name on an empty table: from 1, in every session");
	$sessions[2]->query_safe("BEGIN; $insert");
	foreach my $highest (12, 5100, 100_000)
	{
		sql("INSERT INTO shop_ticket SELECT generate_series($highest - 2, $highest)");
		$repair->();
		is(join(' ', map { $_->query_safe($insert) } @sessions[ 0, 1, 0 ]),
			join(' ', $highest + 1, $highest + 2, $highest + 3), "$name after an import: every session goes on above it");
	}
	is($sessions[2]->query_safe($insert), 100_004, '... an open transaction, too, as the others have given its range up');
	$sessions[2]->query_safe('COMMIT');
	is($sessions[2]->query_safe($insert), 100_005, '... and its next one');
}

# An import that ends exactly where the range in hand ends: the counter says what it said before. Expected: the next
# value is above all the same, as the page's lsn tells that it was set.
sql(<<'SQL');
CREATE TABLE alike (id bigserial PRIMARY KEY);
ALTER TABLE alike ALTER id SET DEFAULT segment_next('alike_id_seq'::regclass);
INSERT INTO alike DEFAULT VALUES;
INSERT INTO alike SELECT generate_series(2, (SELECT last_value FROM alike_id_seq));
SQL
my $end = sql('SELECT setval($$alike_id_seq$$, max(id)) FROM alike');
is(sql('INSERT INTO alike DEFAULT VALUES RETURNING id'), $end + 1, 'an import up to the end of the range in hand: above it');
sql("SELECT setval('alike_id_seq', $end + 4), nextval('alike_id_seq')");
cmp_ok(sql('INSERT INTO alike DEFAULT VALUES RETURNING id'), '>', $end + 5, '... and above what nextval gave');
$_->quit foreach @sessions;

# uid_adopt() and uid_release() while other sessions insert. Expected: they give up after lock_timeout; what they say
# of rows holds once they have the lock; an INSERT that waits for them gets an id of the new default, and after a
# rollback one of the old.
my ($mover, $writer, $prepared) = map { hold_open($node) } 1 .. 3;
sql('CREATE TABLE busy (id bigserial PRIMARY KEY, v int); INSERT INTO busy (v) VALUES (1)');
$insert = 'INSERT INTO busy (v) VALUES (2) RETURNING id';
my $default = q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'busy'::regclass};

$writer->query_safe("BEGIN; $insert");
is(sqlstate($node, "SET lock_timeout = '50ms'; " . adopt('busy')), '55P03', 'uid_adopt() gives up after lock_timeout');
is(sql($default), q{nextval('busy_id_seq'::regclass)}, '... and changes nothing');

send_query($mover, adopt('busy'));
ok(waiting(1, 'busy'), '... it waits for a session that has inserted');
my $late = $writer->query_safe('INSERT INTO busy (id) VALUES (uid_encode(now(), 31, 31, 4095)) RETURNING id');
$writer->query_safe('COMMIT');
like((finish_query($mover))[0], qr/^-- furthest id: $late; new ids of uid_generators.uid_default are from/m,
	'... and sees the id that the session inserted meanwhile');
cmp_ok(sql($insert), '>', $late, '... above which the generator goes on');

$writer->query_safe('BEGIN; INSERT INTO busy (id) VALUES (777)');
send_query($mover, release('busy'));
ok(waiting(1, 'busy'), 'uid_release() waits, too');
$writer->query_safe('COMMIT');
finish_query($mover);
is(sql($insert), 778, '... and goes on above the largest small id, also that of the last moment');

$prepared->query_safe("PREPARE again AS $insert; EXECUTE again");
foreach ([ 'ROLLBACK', 'sequence' ], [ 'COMMIT', 'generator' ])
{
	my ($end, $source) = @$_;
	$mover->query_safe('BEGIN; ' . adopt('busy'));
	send_query($writer, $insert);
	send_query($prepared, 'EXECUTE again');
	ok(waiting(2, 'busy'), 'two sessions wait for the end of the move');
	$mover->query_safe($end);
	is(join(' ', map { (finish_query($_))[0] > $late ? 'generator' : 'sequence' } $writer, $prepared), "$source $source",
		"... after $end their ids are of the $source");
}

# A reader stays for long. A queue behind uid_release() would fail by the other session's statement_timeout.
$prepared->query_safe('BEGIN; SELECT count(*) FROM busy');
send_query($mover, release('busy'));
ok(waiting(1, 'busy'), 'uid_release() waits for a reader');
$writer->query_safe("SET statement_timeout = '10s'");
is(join(' ', map { scalar sqlstate($writer, $insert) } 1 .. 3), '00000 00000 00000', '... and sessions that insert do not wait for uid_release()');
$writer->query_safe('RESET statement_timeout');
$prepared->query_safe('COMMIT');
finish_query($mover);
like(sql($default), qr/nextval/, '... which succeeds when the reader has ended');

# Two calls for one identity, whose sequence the first one replaces.
sql('CREATE TABLE twice (id bigint GENERATED ALWAYS AS IDENTITY)');
$prepared->query_safe('BEGIN; ' . adopt('twice'));
send_query($mover, adopt('twice'));
waiting($_) foreach 1, 0, 1;
$prepared->query_safe('COMMIT');
like((finish_query($mover))[0], qr/^-- former default: uidgen.uid_next/m, 'a second call waits for the first one, again and again, and finds what it has made');

# A deadlock with a session that waits already, and so looks for it no more. Expected: uid_adopt() finds it and fails.
sql('CREATE TABLE first (id bigserial, v int); CREATE TABLE second (id bigint GENERATED ALWAYS AS IDENTITY, v int);'
  . ' CREATE TABLE third (id bigint GENERATED ALWAYS AS IDENTITY);' . adopt('third')
  . q{; SELECT uid_generator_create('elsewhere'); CREATE SEQUENCE elsewhere START 100});
foreach (
	[ 'INSERT INTO second (v) VALUES (1)', adopt('second') ],
	[ q{SELECT nextval('second_id_seq')}, adopt('second') ],
	[ 'SELECT last_value FROM second_id_seq', adopt('second') ],
	[ 'SELECT last_value FROM third_id_seq', release('third') ],
	[ q{SELECT uid_generator_alter('uid_generators.elsewhere', lease_ms => 900)}, adopt('second', 'uid_generators.elsewhere') ],
	[ 'ALTER SEQUENCE elsewhere CACHE 5', adopt('second', 'elsewhere') ],
	[ 'LOCK TABLE second', q{SELECT uid_adopt('second', 'id')} ]) # a dry run
{
	my ($holds, $move) = @$_;
	$prepared->query_safe("BEGIN; $holds");
	$mover->query_safe(q{BEGIN; SET LOCAL statement_timeout = '60s'; } . adopt('first'));
	send_query($prepared, 'INSERT INTO first (v) VALUES (1) RETURNING id');
	ok(waiting(1), "$holds: the client waits");
	Time::HiRes::sleep(1.5); # longer than deadlock_timeout
	is(sqlstate($mover, $move), '40P01', '... and the move ends as a deadlock');
	$mover->query_safe('ROLLBACK');
	like((finish_query($prepared))[0], qr/^\d+$/m, '... not the client');
	$prepared->query_safe('COMMIT');
}

# A column draws from a sequence of which a session has reserved values below the largest id. Expected: it draws none of
# them, not even in the transaction in which it has drawn.
sql(q{CREATE TABLE other (id bigint); SELECT segment_create('seg'); INSERT INTO other VALUES (3)});
$prepared->query_safe(q{BEGIN; SELECT segment_next('seg')});
sql(adopt('other', 'uid_segments.seg'));
cmp_ok($prepared->query_safe('INSERT INTO other DEFAULT VALUES RETURNING id'), '>', 3, 'values of another sequence are beyond in a transaction that is open');
$prepared->query_safe('COMMIT');

# A session has values of nextval() in its cache. Expected: after uid_release() it draws none of them.
sql('CREATE TABLE cached (id bigserial PRIMARY KEY); ALTER SEQUENCE cached_id_seq CACHE 10');
$prepared->query_safe('INSERT INTO cached DEFAULT VALUES');
sql(adopt('cached') . '; INSERT INTO cached VALUES (50)');
sql(release('cached'));
is($prepared->query_safe('INSERT INTO cached DEFAULT VALUES RETURNING id'), 51, 'values of before uid_adopt() are not drawn after uid_release()');

# The generator is ahead of the clock. Expected: uid_adopt() does not hold the table while it waits.
sql(q{CREATE TABLE early (id bigserial); SELECT uid_generator_create('ahead', datacenter_bits => 0, worker_bits => 0, sequence_bits => 1,}
  . q{ lease_ms => 600000, max_ahead_ms => 600000, spread => false); SELECT cardinality(uid_next_array('uid_generators.ahead', 600000));}
  . q{ SELECT uid_generator_alter('uid_generators.ahead', when_ring_empty => 'pad')}); # ends the lease
send_query($mover, q{SET uidgen.max_wait = '10min'; } . adopt('early', 'uid_generators.ahead'));
my $event = wait_event($node, 'UidgenClock');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '$event' AND backend_type = 'client backend'"), 'uid_adopt() waits for the clock');
is(sql(q{SELECT count(*) FROM pg_locks WHERE relation = 'early'::regclass}), 0, '... without a lock on the table');
sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%ahead%' AND pid <> pg_backend_pid()});
like((finish_query($mover))[1], qr/canceling statement/, '... and is canceled');

# The hint that converts columns to bigint, beside a client that inserts into the table that refers, in two statements.
# Expected: no deadlock, of which the client would be the victim, because it looks for one sooner. The conversion is
# repeated.
sql('CREATE TABLE client (id serial PRIMARY KEY); CREATE TABLE bill (client_id int REFERENCES client);'
  . ' CREATE TABLE item (id int, client_id bigint REFERENCES client); INSERT INTO client DEFAULT VALUES');
my ($convert) = failure(adopt('client')) =~ /(BEGIN; SET LOCAL .* COMMIT;)/;
$writer->query_safe("SET deadlock_timeout = '10ms'");
foreach my $table ('bill', 'item')
{
	$writer->query_safe("BEGIN; LOCK TABLE $table IN ROW EXCLUSIVE MODE");
	send_query($mover, "\\set VERBOSITY verbose\n$convert");
	ok(waiting(1), "a session inserts into $table: the conversion waits");
	$writer->query_safe("INSERT INTO $table (client_id) VALUES (1)");
	like((finish_query($mover))[1], qr/ERROR:  55P03/, '... and gives up, not the session');
	$writer->query_safe('COMMIT');
}
$mover->query_safe($convert);
like(sql(adopt('client')), qr/SET DEFAULT/, 'it is repeated, and the column adopted');
$_->quit foreach $mover, $writer, $prepared;

# docs/moving.md, and what docs/originals says of moving: the statements of each section or page run, in order, on the schemas
# that the other systems publish, each in a database of its own. Names and types of columns, defaults and keys are those of
#
#   Instagram            the article "Sharding & IDs at Instagram" (2011)
#   pgEdge snowflake     snowflake--2.2.sql and its updates to 2.6.0
#   uid-generator        src/main/scripts/WORKER_NODE.sql of baidu/uid-generator (2018)
#   Leaf                 scripts/leaf_alloc.sql of Meituan-Dianping/Leaf (2020)
#   tinyid               tinyid-server/db.sql of didi/tinyid (2020)
#
# The last three are for MySQL: bigint(20) is bigint here, int(11) integer, AUTO_INCREMENT an identity.
my ($database, %section) = ('', slurp_file('docs/moving.md') =~ /^## ([^\n]+)\n(.*?)(?=^## |\z)/msg);

sub in_database ($statements) { return $node->safe_psql($database, $statements) }

my $databases = 0;

sub new_database ($fixture)
{
	$database = 'moving_' . ++$databases;
	sql("CREATE DATABASE $database");
	sql("ALTER DATABASE $database SET search_path = public, uidgen");
	in_database("CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; $fixture");
}

# A section of docs/moving.md, or blocks.
sub run_blocks ($from)
{
	my @blocks = ref $from ? @$from : (delete $section{$from} // die "docs/moving.md has no section $from") =~ /^```sql\n(.*?)^```$/msg;
	foreach my $statements (@blocks)
	{
		my ($code, undef, $error) = $node->psql($database, $statements, on_error_stop => 1);
		is($code, 0, $statements) or diag($error);
	}
}

# What comes after them: a name, a statement, and what it returns.
sub expect (@expected)
{
	while (my ($what, $statement, $result) = splice @expected, 0, 3)
	{
		is(in_database($statement), $result, "... $what");
	}
}

# A table whose rows have a positive v. Expected: rows of after the move, with 0, have larger ids.
sub move ($from, $table, $fixture, @expected)
{
	new_database($fixture);
	run_blocks($from);
	in_database("INSERT INTO $table (v) SELECT 0 FROM generate_series(1, 1000)");
	expect('new ids are above', "SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0) FROM $table", 't', @expected);
}

new_database(<<'SQL');
CREATE TABLE orders (id bigserial PRIMARY KEY, v int);
CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int);
CREATE TABLE invoices (id bigserial PRIMARY KEY, v int);
INSERT INTO orders (v) SELECT generate_series(1, 5);
INSERT INTO items (v) SELECT v FROM orders;
INSERT INTO invoices (v) SELECT v FROM orders;
SQL
my $new = 'INSERT INTO %s (v) VALUES (0) RETURNING id';
run_blocks('A table that has a sequence');
cmp_ok(in_database(sprintf $new, $_), '>', 10**17, "$_ draw from a generator") foreach 'orders', 'items';
is(in_database(sprintf $new, 'invoices'), 8, 'invoices draw from their segment');
delete @section{'A large table with an integer key', 'From UUIDs'};    # 073_large_key.t runs them
run_blocks('Back to a sequence');
is(in_database(sprintf $new, $_), 6, "$_ draw from a sequence again") foreach 'orders', 'items';

# A table that is partitioned by small ids needs partitions for the new ones, and the old ones again after it.
in_database('CREATE TABLE events (id bigserial PRIMARY KEY, data jsonb) PARTITION BY RANGE (id);'
	  . ' CREATE TABLE small PARTITION OF events FOR VALUES FROM (0) TO (1000000)');
my ($partitions) = block_of('docs/ids-for-people.md', qr/PARTITION BY RANGE/) =~ /^CREATE TABLE events [^;]*;\n(.*)/s or die 'no partitions';
in_database(q{SELECT uid_adopt('events', 'id', dry_run => false)});
is(sqlstate($node, q{INSERT INTO events (data) VALUES ('{}')}, $database), '23514', 'without new partitions an INSERT fails');
in_database($partitions);
in_database(q{SELECT uid_release('events', 'id', dry_run => false); INSERT INTO events (data) VALUES ('{}')});
is(in_database('SELECT string_agg((tableoid::regclass = $$small$$::regclass)::text, $$ $$ ORDER BY id) FROM events'),
	'true false', '... and rows go to the new ones, and after uid_release() to the old one');

my ($repair) = slurp_file('docs/moving.md') =~ /`(setval\('orders_id_seq'.*?)`\./ or die 'no setval in docs/moving.md';
in_database("INSERT INTO orders (id) VALUES (99); SELECT $repair");
is(in_database(sprintf $new, 'orders'), 100, '... and go on above an import');
run_blocks('Another default for the whole database');
is(in_database('SELECT uid_decode(uid_next()) IS NOT NULL AND uid_next() > 2 * 10::numeric ^ 18'), 't', 'the new default has larger ids');

delete $section{'From MySQL'};    # it has no statements

# The article's function: our_epoch, shard_id and the arithmetic are public; a schema for each shard.
move('From Instagram-style functions', 'insta5.posts', <<'SQL',
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE FUNCTION insta5.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
  milliseconds bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
  result := ((milliseconds - 1314220021721) << 23) | (5 << 10) | (nextval('insta5.table_id_seq') % 1024);
END $$;
CREATE TABLE insta5.posts (id bigint PRIMARY KEY DEFAULT insta5.next_id(), v int);
INSERT INTO insta5.posts (v) SELECT generate_series(1, 2000);
SQL
	'old and new ids have the shard and the time', <<'SQL', '3000|t');
SELECT count(*), bool_and(abs(extract(epoch FROM generated_at - clock_timestamp())) < 3600)
  FROM insta5.posts, uid_decode(id, 'uid_generators.posts') WHERE datacenter_id = 5
SQL

# The extension's ids: milliseconds since 2023, node, counter. The last id is the counter of the sequence, which
# convert_sequence_to_snowflake() widens. Rows from before it keep their small ids.
move('From pgEdge snowflake', 'orders', <<'SQL',
CREATE SCHEMA snowflake;
CREATE SEQUENCE snowflake.id_seq;
CREATE FUNCTION snowflake.nextval(regclass DEFAULT 'snowflake.id_seq'::regclass) RETURNS bigint LANGUAGE sql AS $$
  SELECT setval($1, greatest(pg_sequence_last_value($1) + 1, (7 << 12)
         | (floor(extract(epoch FROM clock_timestamp() - timestamptz '2023-01-01 00:00+00') * 1000)::bigint << 22)))
$$;
CREATE TABLE orders (id bigserial PRIMARY KEY, v int);
INSERT INTO orders (v) SELECT generate_series(1, 3);
ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake.nextval('orders_id_seq'::regclass);
ALTER SEQUENCE orders_id_seq AS bigint NO CYCLE MAXVALUE 9223372036854775807;
INSERT INTO orders (v) SELECT generate_series(4, 1003);
SQL
	'all ids but those from before the snowflakes have the node', <<'SQL', 2000);
SELECT count(*) FROM orders, uid_decode(id, 'uid_generators.orders') WHERE worker_id = 7
SQL

# WORKER_NODE of uid-generator; ids of 29/21/13 bits since 2016-09-20, and of 28/22/13 bits from the service's last day.
move([ block_of('docs/originals/uid-generator.md', qr/FROM public.worker_node/),
		block_of('docs/originals/uid-generator.md', qr/time_bits => 29/),
		block_of('docs/originals/uid-generator.md', qr/AS disjoint/) ], 'orders', <<'SQL',
CREATE TABLE public.worker_node (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, host_name varchar(64) NOT NULL, port varchar(64) NOT NULL,
  type int NOT NULL, launch_date date NOT NULL, modified timestamp NOT NULL, created timestamp NOT NULL);
INSERT INTO worker_node (host_name, port, type, launch_date, modified, created)
SELECT '10.0.0.' || i, '8080', 2, '2024-01-01', '2024-01-01', '2024-01-01' FROM generate_series(1, 9) i;
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
INSERT INTO orders
SELECT (floor(extract(epoch FROM clock_timestamp() - timestamptz '2016-09-20 00:00+08'))::bigint << 34) | (9 << 13) | i, i
  FROM generate_series(1, 100) i;
CREATE TABLE events (id bigint PRIMARY KEY, v int);
INSERT INTO events SELECT (second << 35) | (9 << 13), 1 FROM unnest(ARRAY[40000000, 268435455]::bigint[]) second;
CREATE ROLE service;
GRANT SELECT, INSERT ON events TO service;
SQL
	'with 28 bits new ids are below the old ones',
	'SET ROLE service; INSERT INTO events (v) VALUES (0), (0); SELECT max(id) FILTER (WHERE v = 0) < min(id) FILTER (WHERE v > 0) FROM events', 't',
	'the rows of the servers came along, and worker ids go on above',
	'SELECT (SELECT count(*) FROM uidgen.worker_node WHERE id <= 9), (SELECT last_value >= 9 FROM uidgen.worker_node_id_seq)', '9|t');

# t_sequence, in whose values a block begins at current_val as it was before a node's update, or as it is after it. So what
# nodes may have handed out is below current_val + increment_val.
new_database(<<'SQL');
CREATE TABLE t_sequence (pk_seq_name varchar(50) PRIMARY KEY, current_val bigint NOT NULL, increment_val int NOT NULL);
INSERT INTO t_sequence VALUES ('t_order', 250, 10), ('order item', 123456, 100), ('用户', 1, 1), ('never used', 5, 10),
  ('pg_class', 2147483600, 7)
SQL
run_blocks([ block_of('docs/originals/t_sequence.md', qr/SELECT segment_create/) ]);
expect('each segment goes on above all blocks, with the length of a block as its step', <<'SQL', "1 2\n10 15\n10 260\n100 123556\n7 2147483607");
SELECT step || ' ' || segment_next(pk_seq_name) FROM t_sequence JOIN uid_segment ON name = pk_seq_name ORDER BY current_val
SQL

# Nodes that keep their statements, on our table and then without its trigger. A block of "before" begins at current_val as
# it was before the UPDATE, one of "after" at the new one. The second shares its segment.
new_database(<<'SQL');
CREATE TABLE t_sequence (pk_seq_name varchar(50) PRIMARY KEY, current_val bigint NOT NULL, increment_val int NOT NULL);
INSERT INTO t_sequence VALUES ('before', 250, 100), ('after', 250, 100);
CREATE TABLE taken (series text, id bigint, PRIMARY KEY (series, id));
GRANT ALL ON t_sequence, taken TO service;
SELECT segment_create('after'), segment_create('other');
SQL
sub take_blocks ()
{
	my $block = 'INSERT INTO taken SELECT pk_seq_name, generate_series(current_val, current_val + increment_val - 1) FROM t_sequence WHERE pk_seq_name =';
	in_database("SET ROLE service; $block 'before'; UPDATE t_sequence SET current_val = current_val + increment_val; $block 'after'") for 1 .. 3;
}
take_blocks();
expect('a name of the table that a segment has is listed', statement_of('docs/originals/t_sequence.md', qr/JOIN uid_segment/), 'after');
run_blocks([ block_of('docs/originals/t_sequence.md', qr/ON ALL SEQUENCES/) ]);
take_blocks();
in_database('INSERT INTO taken SELECT pk_seq_name, segment_next(pk_seq_name) FROM t_sequence, generate_series(1, 300)');
expect('the service adds rows, takes long blocks also of rows that were added later, and starts over', <<'SQL', 4);
INSERT INTO t_sequence VALUES ('later', 1, 1000000);
SET ROLE service;
INSERT INTO t_sequence VALUES ('of the service', 1, 10);
UPDATE t_sequence SET current_val = current_val + increment_val;
UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'later';
SELECT count(*) FROM t_sequence
SQL
run_blocks([ block_of('docs/originals/t_sequence.md', qr/DROP TRIGGER/) ]);
take_blocks();
expect('no value comes twice', 'SELECT count(*) FROM taken', 2 * (3 * 300 + 300));

# leaf_alloc. Leaf's code takes ids up to max_id - 1, and the article's one more.
my $old_leaf_alloc = <<'SQL';
CREATE TABLE old_leaf_alloc (
  biz_tag varchar(128) PRIMARY KEY DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
  description varchar(256), update_time timestamp NOT NULL DEFAULT now());
INSERT INTO old_leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', 4001, 2000, 'orders'), ('users', 1, 100, NULL);
SQL
move([ block_of('docs/originals/leaf.md', qr/max_id \+ 1,/) ], 'orders', $old_leaf_alloc . <<'SQL',
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
INSERT INTO orders SELECT i, i FROM generate_series(2001, 4001) i;
SQL
	'also of a tag that was never asked', q{SELECT segment_next('users'), step FROM uidgen.uid_segment WHERE name = 'users'}, '2|100',
	'on the way back the table draws no more',
	statement_of('docs/originals/leaf.md', qr/DROP DEFAULT/) . q{; SELECT count(*) FROM pg_attrdef WHERE adrelid = 'orders'::regclass}, 0);

# Nodes move one after the other: some draw blocks of the former table, others of ours, and an application draws itself.
new_database($old_leaf_alloc . 'CREATE TABLE taken (id bigint PRIMARY KEY); CREATE ROLE leaf; GRANT ALL ON old_leaf_alloc, taken TO leaf');
run_blocks([ block_of('docs/originals/leaf.md', qr/max_id \+ 100000000/) ]);
foreach my $table (('old_leaf_alloc', 'leaf_alloc') x 3)
{
	in_database("SET ROLE leaf; UPDATE $table SET max_id = max_id + step WHERE biz_tag = 'orders';"
		  . " INSERT INTO taken SELECT generate_series(max_id - step, max_id - 1) FROM $table WHERE biz_tag = 'orders'; RESET ROLE;"
		  . " INSERT INTO taken SELECT segment_next('orders') FROM generate_series(1, 100)");
}
expect('no id comes twice', 'SELECT count(*), count(*) FILTER (WHERE id > 100000000) FROM taken', '12600|6600');
expect('the steps of a hot tag grow to the longest of Leaf, also of a tag that was added later', <<'SQL', 't');
INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('later', 1, 2000);
SET ROLE leaf;
UPDATE leaf_alloc SET max_id = max_id + 500000;
UPDATE leaf_alloc SET max_id = max_id + 1000000;
SELECT min(max_id) > 1500000 FROM leaf_alloc
SQL

# The way back, where a database `leaf` is that of MySQL.
sql('CREATE DATABASE leaf');
$node->safe_psql('leaf', $old_leaf_alloc =~ s/old_//gr . q{INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('later', 7, 10)});
in_database(q{SELECT segment_set('later', 5)});
shell_ok($node, 'mysql() { psql -Xqv ON_ERROR_STOP=1 "${@: -1}"; }' . "\n" . block_of('docs/originals/leaf.md', qr/greatest/) =~ s/\bshop\b/$database/r,
	'max_id is raised there');
my $resumed = $node->safe_psql('leaf', q{SELECT max_id FROM leaf_alloc WHERE biz_tag IN ('orders', 'users') ORDER BY max_id DESC});
is($resumed, in_database(q{SELECT pg_sequence_last_value(sequence) + 1 FROM uid_segment WHERE name <> 'later' ORDER BY 1 DESC}), '... above all draws');
is($node->safe_psql('leaf', q{SELECT max_id FROM leaf_alloc WHERE biz_tag = 'later'}), 7, '... and never lowered');

# tiny_id_info of two databases, odd and even, from which the page's query copies: a block is (max_id - step, max_id].
$section{'From tinyid'} =~ s/^```sql\n(.*?)^```$//ms;
my $tiny_id_info = $1;
my ($query) = $section{'From tinyid'} =~ /'(SELECT .*? FROM tiny_id_info)'/ or die 'no query of MySQL';
move('From tinyid', 'orders', <<"SQL",
CREATE SCHEMA even;
CREATE TABLE even.tiny_id_info (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, biz_type varchar(63) NOT NULL DEFAULT '' UNIQUE,
  begin_id bigint NOT NULL DEFAULT 0, max_id bigint NOT NULL DEFAULT 0, step int DEFAULT 0, delta int NOT NULL DEFAULT 1,
  remainder int NOT NULL DEFAULT 0, create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
  update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', version bigint NOT NULL DEFAULT 0);
CREATE SCHEMA odd;
CREATE TABLE odd.tiny_id_info (LIKE even.tiny_id_info INCLUDING ALL);
INSERT INTO even.tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES ('orders', 1, 200000, 100000, 2, 0);
INSERT INTO odd.tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES
  ('orders', 1, 300000, 100000, 2, 1), ('users', 1, 1, 10, 1, 0), ('not set up', 0, 0, 0, 1, 0);
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
INSERT INTO orders VALUES (200000, 1), (300000, 1);
$tiny_id_info
SET search_path = even; INSERT INTO public.tiny_id_info $query;
SET search_path = odd; INSERT INTO public.tiny_id_info $query;
SQL
	'also of a type that has not been used', q{SELECT segment_next('users')}, 2);

# A table with ids of 53 bits, from two processes that go on.
move([ block_of('docs/originals/js53.md', qr/worker_number => 15/) ], 'articles', <<'SQL',
CREATE TABLE articles (id bigint PRIMARY KEY, v int);
CREATE FUNCTION process(id bigint, worker bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (floor(extract(epoch FROM clock_timestamp()) - 1546300800)::bigint << 21) | (worker << 16) | id
$$;
INSERT INTO articles SELECT process(i, i % 2), i FROM generate_series(1, 1000) i;
SQL
	'a process may go on, and ids have 53 bits',
	'INSERT INTO articles SELECT process(i, 0), -i FROM generate_series(1001, 1100) i; SELECT max(id) < 2::numeric ^ 53 FROM articles', 't');

# A table whose ids come with the INSERT, from two applications.
move([ block_of('docs/originals/snowflake.md', qr/worker_number => 31/) ], 'orders', <<'SQL',
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
CREATE FUNCTION application(id bigint, worker bigint, datacenter bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000 - 1288834974657)::bigint << 22) | (datacenter << 17) | (worker << 12) | id
$$;
INSERT INTO orders SELECT application(i, i % 2, 1), i FROM generate_series(1, 1000) i;
SQL
	'an application may go on, and new ids have the numbers that were chosen', <<'SQL', '31|31');
INSERT INTO orders SELECT application(i, 0, 1), -i FROM generate_series(1001, 1100) i;
SELECT DISTINCT datacenter_id, worker_id FROM orders, uid_decode(id, 'uid_generators.orders') WHERE v = 0
SQL

is(join(', ', sort keys %section), '', 'every section of docs/moving.md was run');
my ($key) = slurp_file('docs/comparison.md') =~ /^```sql\n(.*?)^```$/ms;
is(in_database("$key; SELECT count(DISTINCT public_id) FROM orders"), 2100, 'docs/comparison.md: a random public key');

$node->stop;
done_testing();
