# A t_sequence table whose values go on in segments, as docs/originals describes it, and an ORM's repair statements. Then
# uid_adopt() and uid_release() beside other sessions, and the statements of docs/moving.md and docs/originals.
use UidgenTest;
use Clients;
use Pages;
use Time::HiRes ();

my $node = new_node('migration', conf => "autovacuum = off\n");
start_node($node);

# A t_sequence table, in whose values a block begins at current_val as it was before a node's update, or as it is after it. So
# what nodes may have handed out is below current_val + increment_val.
sql(<<'SQL');
CREATE TABLE t_sequence (pk_seq_name varchar(50) PRIMARY KEY, current_val bigint NOT NULL, increment_val int NOT NULL);
INSERT INTO t_sequence VALUES ('t_order', 250, 10), ('order item', 123456, 100), ('用户', 1, 1), ('never used', 5, 10),
  ('pg_class', 2147483600, 7)
SQL
sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET search_path = public, uidgen');
sql(block_of('docs/originals/t_sequence.md', qr/SELECT segment_create/));
is(sql('SELECT string_agg(segment_next(pk_seq_name)::text, $$ $$ ORDER BY current_val) FROM t_sequence'), '2 15 260 123556 2147483607',
	'... each segment goes on above all blocks');
is(sql('SELECT count(*) FROM uid_segment AS n JOIN t_sequence AS t ON n.name = t.pk_seq_name WHERE n.step = t.increment_val'), 5, '... with the length of a block as its step');

# What ORMs send after an import with ids of its own. Expected: it takes effect in every session, at the first call of
# its next transaction.
sql(<<'SQL');
CREATE TABLE shop_ticket (id bigserial PRIMARY KEY, title text);
ALTER TABLE shop_ticket ALTER id SET DEFAULT segment_next('shop_ticket_id_seq'::regclass);
SQL
my @sessions = map { hold_open($node) } 1 .. 3;
my $insert = 'INSERT INTO shop_ticket (title) VALUES ($$new$$) RETURNING id';

# Django 3.2.25, manage.py sqlsequencereset, on a model Ticket of an app shop.
my $django = <<'SQL';
BEGIN;
SELECT setval(pg_get_serial_sequence('"shop_ticket"','id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "shop_ticket";
COMMIT;
SQL

# Rails, ActiveRecord 6.1.7, reset_pk_sequence!: the maximum, and then a literal; without rows the least value.
my $rails_max = 'SELECT MAX("id") FROM "shop_ticket"';
my $rails_min = q{SELECT seqmin FROM pg_sequence WHERE seqrelid = '"public"."shop_ticket_id_seq"'::regclass};
my $rails = sub {
	my $max = sql($rails_max);
	my $min = $max eq '' ? sql($rails_min) : '';
	return sql(sprintf q{SELECT setval('"public"."shop_ticket_id_seq"', %s, %s)}, $max eq '' ? ($min, 'false') : ($max, 'true'));
};

# How Rails finds the sequence: by its dependency on the primary key, whatever the default is.
is(sql(<<'SQL'), 'id|public|shop_ticket_id_seq', 'Rails finds the sequence behind segment_next');
            SELECT attr.attname, nsp.nspname, seq.relname
            FROM pg_class      seq,
                 pg_attribute  attr,
                 pg_depend     dep,
                 pg_constraint cons,
                 pg_namespace  nsp
            WHERE seq.oid           = dep.objid
              AND seq.relkind       = 'S'
              AND attr.attrelid     = dep.refobjid
              AND attr.attnum       = dep.refobjsubid
              AND attr.attrelid     = cons.conrelid
              AND attr.attnum       = cons.conkey[1]
              AND seq.relnamespace  = nsp.oid
              AND cons.contype      = 'p'
              AND dep.classid       = 'pg_class'::regclass
              AND dep.refobjid      = '"shop_ticket"'::regclass
SQL

foreach my $case ([ 'Django', sub { sql($django) } ], [ 'Rails', $rails ])
{
	my ($name, $repair) = @$case;
	sql('TRUNCATE shop_ticket');
	$repair->();
	is(join(' ', map { $_->query_safe($insert) } @sessions), '1 2 3', "$name on an empty table: from 1, in every session");
	$sessions[2]->query_safe("BEGIN; $insert");
	my $highest = 0;
	foreach my $import ('10, 12', '5000, 5100', '100000, 100000')
	{
		sql("INSERT INTO shop_ticket SELECT i FROM generate_series($import) AS i");
		$repair->();
		($highest) = $import =~ /(\d+)$/;
		is(join(' ', map { $_->query_safe($insert) } @sessions[ 0, 1, 0 ]),
			join(' ', $highest + 1, $highest + 2, $highest + 3), "$name after an import: every session goes on above it");
	}
	my $inside = $sessions[2]->query_safe($insert);
	is($inside, $highest + 4, '... an open transaction, too, as the others have given its range up');
	$sessions[2]->query_safe('COMMIT');
	is($sessions[2]->query_safe($insert), $highest + 5, '... and its next one');
}
is(sql('SELECT count(*) - count(DISTINCT id) FROM shop_ticket'), 0, 'no row has the id of another');

# An import that ends exactly where the range in hand ends: the counter says what it said before. Expected: the next
# value is above all the same, as the page's lsn tells that it was set.
my $ends_alike = <<'SQL';
CREATE TABLE alike (id bigserial PRIMARY KEY);
ALTER TABLE alike ALTER id SET DEFAULT segment_next('alike_id_seq'::regclass);
INSERT INTO alike DEFAULT VALUES;
INSERT INTO alike SELECT generate_series(2, (SELECT last_value FROM alike_id_seq));
SELECT setval('alike_id_seq', max(id)) FROM alike;
SQL
my $end = (split /\n/, sql($ends_alike))[-1];
is(sql('INSERT INTO alike DEFAULT VALUES RETURNING id'), $end + 1, 'an import up to the end of the range in hand: above it');
sql("SELECT setval('alike_id_seq', $end + 4), nextval('alike_id_seq')");
cmp_ok(sql('INSERT INTO alike DEFAULT VALUES RETURNING id'), '>', $end + 5, '... and above what nextval gave');
$_->quit foreach @sessions;

# uid_adopt() and uid_release() while other sessions insert. Expected: they give up after lock_timeout; what they say
# of rows holds once they have the lock; an INSERT that waits for them gets an id of the new default, and after a
# rollback one of the old.
{
	sql('CREATE TABLE busy (id bigserial PRIMARY KEY, v int); INSERT INTO busy (v) VALUES (1)');
	my ($writer, $mover, $prepared) = map { hold_open($node) } 1 .. 3;
	my $adopt = q{SELECT uid_adopt('busy', 'id', dry_run => false)};
	my $release = q{SELECT uid_release('busy', 'id', dry_run => false)};
	my $default = q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'busy'::regclass};
	my $waiting = sub ($sessions) {
		return $node->poll_query_until('postgres',
			"SELECT count(*) = $sessions FROM pg_locks WHERE NOT granted AND relation = 'busy'::regclass");
	};

	$writer->query_safe('BEGIN; INSERT INTO busy (v) VALUES (2)');
	is(sqlstate($node, "SET lock_timeout = '50ms'; $adopt"), '55P03', 'uid_adopt() gives up after lock_timeout');
	is(sql($default), q{nextval('busy_id_seq'::regclass)}, '... and changes nothing');

	send_query($mover, $adopt);
	ok($waiting->(1), '... it waits for a session that has inserted');
	my $late = $writer->query_safe('INSERT INTO busy (id) VALUES (uid_encode(now(), 31, 31, 4095)) RETURNING id');
	$writer->query_safe('COMMIT');
	like((finish_query($mover))[0], qr/^-- furthest id: $late; new ids of uid_generators.uid_default are from/m,
		'... and sees the id that the session inserted meanwhile');
	cmp_ok(sql('INSERT INTO busy (v) VALUES (3) RETURNING id'), '>', $late, '... above which the generator goes on');

	$writer->query_safe('BEGIN; INSERT INTO busy (id) VALUES (777)');
	send_query($mover, $release);
	ok($waiting->(1), 'uid_release() waits, too');
	$writer->query_safe('COMMIT');
	finish_query($mover);
	is(sql('INSERT INTO busy (v) VALUES (4) RETURNING id'), 778, '... and goes on above the largest small id, also that of the last moment');

	my $insert = 'INSERT INTO busy (v) VALUES (5) RETURNING id';
	$prepared->query_safe("PREPARE again AS $insert; EXECUTE again");
	foreach my $end ('ROLLBACK', 'COMMIT')
	{
		$mover->query_safe("BEGIN; $adopt");
		send_query($writer, $insert);
		send_query($prepared, 'EXECUTE again');
		ok($waiting->(2), 'two sessions wait for the end of the move');
		$mover->query_safe($end);
		my @ids = map { (finish_query($_))[0] } $writer, $prepared;
		is(scalar(grep { $end eq 'COMMIT' ? $_ > $late : $_ < 1000 } @ids), 2,
			$end eq 'COMMIT' ? '... after COMMIT their ids are of the generator' : '... after ROLLBACK of the sequence')
		  or diag("@ids");
	}
	is(sql('SELECT count(*) - count(DISTINCT id) FROM busy'), 0, '... no id comes twice');

	# Two calls for one identity, whose sequence the first one replaces.
	sql('CREATE TABLE twice (id bigint GENERATED ALWAYS AS IDENTITY)');
	$writer->query_safe(q{BEGIN; SELECT uid_adopt('twice', 'id', dry_run => false)});
	send_query($mover, q{SELECT uid_adopt('twice', 'id', dry_run => false)});
	$node->poll_query_until('postgres', "SELECT count(*) $_ FROM pg_locks WHERE NOT granted") foreach '> 0', '= 0', '> 0';
	$writer->query_safe('COMMIT');
	like((finish_query($mover))[0], qr/^-- former default: uidgen.uid_next/m, 'a second call waits for the first one, again and again, and finds what it has made');

	# A reader stays for long. A queue behind uid_release() would fail by the other session's statement_timeout.
	$prepared->query_safe('BEGIN; SELECT count(*) FROM busy');
	send_query($mover, $release);
	ok($waiting->(1), 'uid_release() waits for a reader');
	$writer->query_safe("SET statement_timeout = '10s'");
	$writer->query_safe($insert) foreach 1 .. 3;
	ok(1, '... and sessions that insert do not wait for uid_release()');
	$prepared->query_safe('COMMIT');
	finish_query($mover);
	like(sql($default), qr/nextval/, '... which succeeds when the reader has ended');
	$_->quit foreach $writer, $mover, $prepared;
}

# A deadlock with a session that waits already, and so looks for it no more. Expected: uid_adopt() finds it and fails.
{
	my ($mover, $client) = map { hold_open($node) } 1, 2;
	sql('CREATE TABLE first (id bigserial, v int); CREATE TABLE second (id bigint GENERATED ALWAYS AS IDENTITY, v int);'
	  . q{ CREATE TABLE third (id bigint GENERATED ALWAYS AS IDENTITY); SELECT uid_adopt('third', 'id', dry_run => false);}
	  . q{ SELECT uid_generator_create('elsewhere'); CREATE SEQUENCE elsewhere START 100});
	foreach (
		[ 'INSERT INTO second (v) VALUES (1)', q{uid_adopt('second', 'id', NULL, false)} ],
		[ q{SELECT nextval('second_id_seq')}, q{uid_adopt('second', 'id', NULL, false)} ],
		[ 'SELECT last_value FROM second_id_seq', q{uid_adopt('second', 'id', NULL, false)} ],
		[ 'SELECT last_value FROM third_id_seq', q{uid_release('third', 'id', NULL, false)} ],
		[ q{SELECT uid_generator_alter('uid_generators.elsewhere', lease_ms => 900)}, q{uid_adopt('second', 'id', 'uid_generators.elsewhere', false)} ],
		[ 'ALTER SEQUENCE elsewhere CACHE 5', q{uid_adopt('second', 'id', 'elsewhere', false)} ],
		[ 'LOCK TABLE second', q{uid_adopt('second', 'id')} ]) # a dry run
	{
		my ($holds, $move) = @$_;
		$client->query_safe("BEGIN; $holds");
		$mover->query_safe(q{BEGIN; SET LOCAL statement_timeout = '60s'; SELECT uid_adopt('first', 'id', dry_run => false)});
		send_query($client, 'INSERT INTO first (v) VALUES (1) RETURNING id');
		ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted}), "$holds: the client waits");
		Time::HiRes::sleep(1.5); # longer than deadlock_timeout
		is(sqlstate($mover, "SELECT $move"), '40P01', '... and the move ends as a deadlock');
		$mover->query_safe('ROLLBACK');
		like((finish_query($client))[0], qr/^\d+$/m, '... not the client');
		$client->query_safe('COMMIT');
	}
	sql(q{DROP TABLE first, second, third; DROP SEQUENCE elsewhere; SELECT uid_generator_drop('uid_generators.elsewhere')});
	$_->quit foreach $mover, $client;
}

# A column draws from a sequence of which sessions have reserved values below the largest id. Expected: none of them
# draws one, not even in the transactions in which they have drawn.
{
	sql('CREATE TABLE own (id serial PRIMARY KEY, v int); CREATE TABLE other (id bigint PRIMARY KEY, v int);'
	  . q{ SELECT segment_create('seg'), segment_next('own_id_seq'::regclass); INSERT INTO own VALUES (3); INSERT INTO other VALUES (3)});
	sql(q{SELECT uid_adopt('own', 'id', 'own_id_seq', false)});
	cmp_ok(sql('INSERT INTO own (v) VALUES (1) RETURNING id'), '>', 3, 'the sequence of the column: its values are beyond');
	my ($draws, $adopts) = map { hold_open($node) } 1, 2;
	$_->query_safe(q{BEGIN; SELECT segment_next('seg')}) foreach $draws, $adopts;
	$adopts->query_safe(q{SELECT uid_adopt('other', 'id', 'uid_segments.seg', false)});
	my $insert = 'INSERT INTO other (v) VALUES (1) RETURNING id';
	cmp_ok($adopts->query_safe($insert), '>', 3, 'another sequence: its values are beyond in the transaction that adopts');
	$adopts->query_safe('COMMIT');
	cmp_ok($draws->query_safe($insert), '>', 3, '... and in one that is open');
	$_->quit foreach $draws, $adopts;
}

# A session has values of nextval() in its cache. Expected: after uid_release() it draws none of them.
{
	sql('CREATE TABLE cached (id bigserial PRIMARY KEY); ALTER SEQUENCE cached_id_seq CACHE 10');
	my $session = hold_open($node);
	$session->query_safe('INSERT INTO cached DEFAULT VALUES');
	sql(q{SELECT uid_adopt('cached', 'id', dry_run => false); INSERT INTO cached VALUES (50)});
	sql(q{SELECT uid_release('cached', 'id', dry_run => false)});
	is($session->query_safe('INSERT INTO cached DEFAULT VALUES RETURNING id'), 51, 'values of before uid_adopt() are not drawn after uid_release()');
	$session->quit;
}

# The generator is ahead of the clock. Expected: uid_adopt() does not hold the table while it waits.
{
	sql(q{CREATE TABLE early (id bigserial); SELECT uid_generator_create('ahead', datacenter_bits => 0, worker_bits => 0, sequence_bits => 1,}
	  . q{ lease_ms => 600000, max_ahead_ms => 600000, spread => false); SELECT cardinality(uid_next_array('uid_generators.ahead', 600000));}
	  . q{ SELECT uid_generator_alter('uid_generators.ahead', when_ring_empty => 'pad')}); # ends the lease
	my $mover = hold_open($node);
	send_query($mover, q{SET uidgen.max_wait = '10min'; SELECT uid_adopt('early', 'id', 'uid_generators.ahead', false)});
	my $event = wait_event($node, 'UidgenClock');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '$event' AND backend_type = 'client backend'"), 'uid_adopt() waits for the clock');
	is(sql(q{SELECT count(*) FROM pg_locks WHERE relation = 'early'::regclass}), 0, '... without a lock on the table');
	sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%ahead%' AND pid <> pg_backend_pid()});
	like((finish_query($mover))[1], qr/canceling statement/, '... and is canceled');
	$mover->quit;
}

# The hint that converts columns to bigint, beside a client that inserts into the table that refers, in two statements.
# Expected: no deadlock, of which the client would be the victim, because it looks for one sooner. The conversion is
# repeated.
{
	sql('CREATE TABLE client (id serial PRIMARY KEY); CREATE TABLE bill (client_id int REFERENCES client);'
	  . ' CREATE TABLE item (id int, client_id bigint REFERENCES client); INSERT INTO client DEFAULT VALUES');
	my (undef, $error) = sqlstate($node, q{SELECT uid_adopt('client', 'id')});
	my ($convert) = $error =~ /(BEGIN; SET LOCAL .* COMMIT;)/ or diag($error);
	my ($client, $converter) = map { hold_open($node) } 1, 2;
	$client->query_safe("SET deadlock_timeout = '10ms'");
	foreach my $table ('bill', 'item')
	{
		$client->query_safe("BEGIN; LOCK TABLE $table IN ROW EXCLUSIVE MODE");
		send_query($converter, "\\set VERBOSITY verbose\n$convert");
		ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"),
			"a session inserts into $table: the conversion waits");
		$client->query_safe("INSERT INTO $table (client_id) VALUES (1)");
		like((finish_query($converter))[1], qr/ERROR:  55P03/, '... and gives up, not the session');
		$client->query_safe('COMMIT');
	}
	$converter->query_safe($convert);
	like(sql(q{SELECT uid_adopt('client', 'id', dry_run => false)}), qr/SET DEFAULT/, 'it is repeated, and the column adopted');
	$_->quit foreach $client, $converter;
}

# docs/moving.md, and what docs/originals says of moving: the statements of each section run, in order, on the schemas that
# the other systems publish. Each section with a fixture begins a database of its own. Names and types of columns, defaults
# and keys are those of
#
#   Instagram            the article "Sharding & IDs at Instagram" (2011)
#   pgEdge snowflake     snowflake--2.2.sql and its updates to 2.6.0
#   uid-generator        src/main/scripts/WORKER_NODE.sql of baidu/uid-generator (2018)
#   Leaf                 scripts/leaf_alloc.sql of Meituan-Dianping/Leaf (2020)
#   tinyid               tinyid-server/db.sql of didi/tinyid (2020)
#
# The last three are for MySQL: bigint(20) is bigint here, int(11) integer, AUTO_INCREMENT an identity.
my ($database, %section) = ('', slurp_file('docs/moving.md') =~ /^## ([^\n]+)\n(.*?)(?=^## |\z)/msg);
my $databases = 0;

sub in_database ($statement)
{
	return $node->safe_psql($database, $statement);
}

sub new_database ($fixture)
{
	$database = 'moving_' . ++$databases;
	sql("CREATE DATABASE $database");
	sql("ALTER DATABASE $database SET search_path = public, uidgen");
	in_database("CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; $fixture");
}

sub run_blocks ($title, @blocks)
{
	foreach my $statements (@blocks)
	{
		my ($code, undef, $error) = $node->psql($database, $statements, on_error_stop => 1);
		is($code, 0, "$title: $statements") or diag($error);
	}
}

sub run_section ($title, $fixture = undef)
{
	my $text = delete $section{$title} // die "docs/moving.md has no section $title";
	new_database($fixture) if defined $fixture;
	run_blocks($title, $text =~ /^```sql\n(.*?)^```$/msg);
}

run_section('A table that has a sequence', <<'SQL');
CREATE TABLE orders (id bigserial PRIMARY KEY, v int);
CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int);
CREATE TABLE invoices (id bigserial PRIMARY KEY, v int);
CREATE TABLE articles (id bigserial PRIMARY KEY, v int);
INSERT INTO orders (v) SELECT generate_series(1, 5);
INSERT INTO items (v) SELECT v FROM orders;
INSERT INTO invoices (v) SELECT v FROM orders;
SQL
my $new = 'INSERT INTO %s (v) VALUES (0) RETURNING id';
cmp_ok(in_database(sprintf $new, $_), '>', 10**17, "$_ draw from a generator") foreach 'orders', 'items';
is(in_database(sprintf $new, 'invoices'), 8, 'invoices draw from their segment');
delete $section{'A large table with an integer key'};    # 073_large_key.t runs it
run_section('Back to a sequence');
is(in_database(sprintf $new, $_), 6, "$_ draw from a sequence again") foreach 'orders', 'items';
my ($repair) = slurp_file('docs/moving.md') =~ /`(setval\('orders_id_seq'.*?)`\./ or die 'no setval in docs/moving.md';
in_database("INSERT INTO orders (id) VALUES (99); SELECT $repair");
is(in_database(sprintf $new, 'orders'), 100, '... and go on above an import');
run_section('Another default for the whole database');
is(in_database('SELECT uid_decode(uid_next()) IS NOT NULL AND uid_next() > 2 * 10::numeric ^ 18'), 't', 'the new default has larger ids');
cmp_ok(in_database(sprintf $new, 'articles'), '<', 2**53, 'articles have ids that are exact in JavaScript');

# A uuid key that becomes a bigint, and a column that refers to it. Expected: each row refers to the same row as before.
run_section('From UUIDs', <<'SQL');
CREATE TABLE visits (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v int);
CREATE TABLE clicks (visit_id uuid NOT NULL REFERENCES visits, v int);
INSERT INTO visits (v) SELECT generate_series(1, 100);
INSERT INTO clicks SELECT id, v FROM visits;
SQL
is(in_database('SELECT count(*) FROM visits JOIN clicks ON clicks.visit_id = visits.id AND clicks.v = visits.v'), 100,
	'... each click has its visit');
is(in_database(q{WITH visit AS (INSERT INTO visits (v) VALUES (0) RETURNING id, uuid)
	INSERT INTO clicks (visit_id) SELECT id FROM visit WHERE uuid IS NOT NULL RETURNING visit_id > (SELECT max(id) FROM visits)}),
	't', '... a new visit has an id above all others, and a UUID');
like(($node->psql($database, 'INSERT INTO clicks (visit_id) VALUES (1)'))[2], qr/violates foreign key/, '... and a click needs a visit');
delete $section{'From MySQL'};    # it has no statements

# The article's function: our_epoch, shard_id and the arithmetic are public; a schema for each shard.
run_section('From Instagram-style functions', <<'SQL');
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
in_database('INSERT INTO insta5.posts (v) SELECT 0 FROM generate_series(1, 2000)');
is(in_database('SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0), count(*) FROM insta5.posts'),
	't|4000', '... the new ids sort behind the old ones');
is(in_database(q{SELECT count(*), bool_and(abs(extract(epoch FROM generated_at - clock_timestamp())) < 3600)
	FROM insta5.posts, uid_decode(id, 'uid_generators.posts') WHERE datacenter_id = 5}),
	'4000|t', '... old and new ids have the shard and the time');

# The extension's ids: milliseconds since 2023, node, counter. The last id is the counter of the sequence, which
# convert_sequence_to_snowflake() widens. Rows from before it keep their small ids.
run_section('From pgEdge snowflake', <<'SQL');
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
in_database('INSERT INTO orders (v) SELECT 0 FROM generate_series(1, 1000)');
is(in_database('SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0), count(*) FROM orders'),
	't|2003', '... the new ids sort behind the old ones');
is(in_database(q{SELECT count(*) FROM orders, uid_decode(id, 'uid_generators.orders') WHERE worker_id = 7}),
	'2000', '... and all but those from before the snowflakes have the node');

# WORKER_NODE of uid-generator; ids of 29/21/13 bits since 2016-09-20, and of 28/22/13 bits from the service's last day.
new_database(<<'SQL');
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
SQL
run_blocks('uid-generator',
	block_of('docs/originals/uid-generator.md', qr/FROM public.worker_node/),
	block_of('docs/originals/uid-generator.md', qr/time_bits => 29/),
	block_of('docs/originals/uid-generator.md', qr/AS disjoint/));
in_database('INSERT INTO orders (v) VALUES (0); INSERT INTO events (v) VALUES (0), (0)');
is(in_database('SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0) FROM orders'), 't',
	'... with 29 bits of seconds the new ids sort behind the old ones');
is(in_database('SELECT max(id) FILTER (WHERE v = 0) < min(id) FILTER (WHERE v > 0) FROM events'), 't',
	'... with 28 bits new ids are below the old ones');
is(in_database('SELECT (SELECT count(*) FROM uidgen.worker_node WHERE id <= 9), (SELECT last_value >= 9 FROM uidgen.worker_node_id_seq)'),
	'9|t', '... the rows of the servers came along, and worker ids go on above');

# leaf_alloc; ids of the table are below max_id.
new_database(<<'SQL');
CREATE TABLE old_leaf_alloc (
  biz_tag varchar(128) PRIMARY KEY DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
  description varchar(256), update_time timestamp NOT NULL DEFAULT now());
INSERT INTO old_leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', 4001, 2000, 'orders'), ('users', 1, 100, NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
INSERT INTO orders SELECT i, i FROM generate_series(2001, 4000) i;
SQL
run_blocks('Leaf', block_of('docs/originals/leaf.md', qr/max_id \+ 1,/));
cmp_ok(in_database(sprintf $new, 'orders'), '>', 4001, '... ids go on above the last block');
is(in_database("SELECT segment_next('users'), step FROM uidgen.uid_segment WHERE name = 'users'"), '2|100', '... also of a tag that was never asked');

# Nodes move one after the other: some draw blocks of the former table, others of ours, and an application draws itself.
new_database(<<'SQL');
CREATE TABLE old_leaf_alloc (
  biz_tag varchar(128) PRIMARY KEY DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
  description varchar(256), update_time timestamp NOT NULL DEFAULT now());
INSERT INTO old_leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', 4001, 2000, 'orders'), ('users', 1, 100, NULL);
CREATE TABLE taken (id bigint PRIMARY KEY);
SQL
run_blocks('Leaf', block_of('docs/originals/leaf.md', qr/max_id \+ 100000000/));
sql('CREATE ROLE leaf');
run_blocks('Leaf', block_of('docs/originals/leaf.md', qr/ON ALL SEQUENCES/));
for (1 .. 3)
{
	for my $table ('old_leaf_alloc', 'leaf_alloc')
	{
		in_database("UPDATE $table SET max_id = max_id + step WHERE biz_tag = 'orders';"
			  . " INSERT INTO taken SELECT generate_series(max_id - step, max_id - 1) FROM $table WHERE biz_tag = 'orders'");
	}
	in_database(q{INSERT INTO taken SELECT segment_next('orders') FROM generate_series(1, 100)});
}
is(in_database('SELECT count(*), count(*) FILTER (WHERE id > 100000000) FROM taken'), '12300|6300', '... and no id comes twice');

# tiny_id_info of two databases, odd and even, from which the page's query copies: a block is (max_id - step, max_id].
my $tinyid = delete $section{'From tinyid'};
my ($table, @blocks) = $tinyid =~ /^```sql\n(.*?)^```$/msg;
my ($query) = $tinyid =~ /'(SELECT .*? FROM tiny_id_info)'/ or die 'no query of MySQL';
new_database(<<'SQL');
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
  ('orders', 1, 300000, 100000, 2, 1), ('users', 1, 1, 10, 1, 0);
INSERT INTO odd.tiny_id_info (biz_type) VALUES ('not set up');
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
INSERT INTO orders SELECT i, 1 FROM (SELECT generate_series(200001, 300000, 2) UNION ALL SELECT 200000) x(i);
SQL
run_blocks('From tinyid', $table);
in_database("SET search_path = $_; INSERT INTO public.tiny_id_info $query") foreach 'even', 'odd';
run_blocks('From tinyid', @blocks);
cmp_ok(in_database(sprintf $new, 'orders'), '>', 300000, '... ids go on above the largest block of both databases');
is(in_database(q{SELECT segment_next('users')}), 2, '... also of a type that has not been used');

# A table with ids of 53 bits, from two processes that go on.
new_database(<<'SQL');
CREATE TABLE articles (id bigint PRIMARY KEY, v int);
CREATE FUNCTION process(id bigint, worker bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (floor(extract(epoch FROM clock_timestamp()) - 1546300800)::bigint << 21) | (worker << 16) | id
$$;
INSERT INTO articles SELECT process(i, i % 2), i FROM generate_series(1, 1000) i;
SQL
run_blocks('53 bits', block_of('docs/originals/js53.md', qr/worker_number => 15/));
in_database('INSERT INTO articles (v) VALUES (0); INSERT INTO articles SELECT process(i, 0), -i FROM generate_series(1001, 1100) i');
is(in_database('SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0), count(*), max(id) < 2::numeric ^ 53 FROM articles'),
	't|1101|t', 'the new ids of 53 bits sort behind the old ones, and a process may go on');

# A table whose ids come with the INSERT, from two applications.
new_database(<<'SQL');
CREATE TABLE orders (id bigint PRIMARY KEY, v int);
CREATE FUNCTION application(id bigint, worker bigint, datacenter bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000 - 1288834974657)::bigint << 22) | (datacenter << 17) | (worker << 12) | id
$$;
INSERT INTO orders SELECT application(i, i % 2, 1), i FROM generate_series(1, 1000) i;
SQL
run_blocks('hutool', block_of('docs/originals/snowflake.md', qr/worker_number => 31/));
in_database('INSERT INTO orders (v) VALUES (0); INSERT INTO orders SELECT application(i, 0, 1), -i FROM generate_series(1001, 1100) i');
is(in_database('SELECT max(id) FILTER (WHERE v > 0) < min(id) FILTER (WHERE v = 0), count(*) FROM orders'),
	't|1101', '... the new ids sort behind the old ones, and an application may go on');
is(in_database(q{SELECT DISTINCT datacenter_id, worker_id FROM orders, uid_decode(id, 'uid_generators.orders') WHERE v = 0}),
	'31|31', '... with the numbers that were chosen');

is(join(', ', sort keys %section), '', 'every section of docs/moving.md was run');
my ($key) = slurp_file('docs/comparison.md') =~ /^```sql\n(.*?)^```$/ms;
is(in_database("$key; SELECT count(DISTINCT public_id) FROM orders"), 1101, 'docs/comparison.md: a random public key');

$node->stop;
done_testing();
