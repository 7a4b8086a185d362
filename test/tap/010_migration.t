# Migration of other systems' tables to segments, as docs/segments.md describes it, and an ORM's repair statements. The
# other systems' algorithms are here in short form. Each node serves from a block of its own, and is in mid-block at the
# migration. Expected: every value of the segment is above all values that any node ever handed out.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

my $node = new_node('migration', conf => "autovacuum = off\n");
start_node($node);

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

my (%highest, %handed_out, $repeated);

sub hand_out
{
	my ($key, $value) = @_;
	$highest{$key} = $value if $value > ($highest{$key} // -1);
	$repeated //= "$key: $value" if $handed_out{$key}{$value}++;
	return;
}

# One value: from the node's block of that key, or from a new one that the code reference takes.
sub serve
{
	my ($blocks, $key, $take) = @_;
	my $block = $blocks->{$key};
	$block = $blocks->{$key} = $take->($key) if !defined $block || $block->{next} >= $block->{end};
	hand_out($key, $block->{next}++);
	return;
}

# Five nodes serve some hundreds of values of each key, in an order that is always the same.
sub serve_many
{
	my ($keys, $take, $values) = @_;
	my @nodes = map { {} } 1 .. 5;
	(%highest, %handed_out, $repeated) = ();
	srand 2;
	serve($nodes[ rand @nodes ], $keys->[ rand @$keys ], $take) foreach 1 .. $values;
	return @nodes;
}

# ---------------------------------------------------------------------------
# A t_sequence table. A node takes a block under the row's lock with UPDATE t_sequence SET current_val = current_val +
# increment_val. Two variants are in use: the block begins at current_val as it was before the update, or as it is
# after it (so the first block is never used).
# ---------------------------------------------------------------------------

my $t_sequence = <<'SQL';
CREATE TABLE t_sequence (pk_seq_name varchar(50) PRIMARY KEY, current_val bigint NOT NULL, increment_val int NOT NULL);
INSERT INTO t_sequence VALUES ('t_order', 0, 10), ('order item', 123456, 100), ('用户', 1, 1), ('never used', 5, 10),
  ('pg_class', 2147483600, 7)
SQL
sql($t_sequence);
like((sqlstate($node, 'CREATE EXTENSION uidgen'))[1], qr/"t_sequence" already exists/,
	'a table of that name in the same schema is in the way');
is(sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; SELECT count(*) FROM uidgen.t_sequence'), 0, '... another schema is not');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET search_path = public, uidgen');

foreach my $variant ('before', 'after')
{
	sql("DROP TABLE t_sequence; $t_sequence");
	my $take = sub {
		my ($key) = @_;
		my ($from, $length) = split /\|/,
		  sql( $variant eq 'before'
			? "BEGIN; SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = '$key' FOR UPDATE;"
			  . " UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = '$key'; COMMIT"
			: "UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = '$key' RETURNING current_val, increment_val");
		return { next => $from, end => $from + $length };
	};
	my @nodes = serve_many([ 't_order', 'order item', '用户', 'pg_class' ], $take, 250);
	is($repeated // '', '', "a t_sequence service whose blocks begin at current_val $variant the update");
	my @open = grep { $_->{next} < $_->{end} } map { values %$_ } @nodes;
	cmp_ok(scalar(@open), '>=', 5, '... several nodes are in mid-block');
	my $next_block = sql("SELECT current_val + increment_val FROM t_sequence WHERE pk_seq_name = 't_order'");
	cmp_ok($next_block, '>', $highest{t_order}, '... current_val + increment_val is above');
	# The statement of docs/segments.md.
	is(sql('SELECT count(segment_create(pk_seq_name, current_val + increment_val, increment_val)) FROM t_sequence'), 5, '... five segments are made');
	is(sql('SELECT count(*) FROM uidgen.t_sequence AS new JOIN t_sequence AS old USING (pk_seq_name) WHERE new.current_val = old.current_val + old.increment_val AND new.increment_val = old.increment_val'),
		5, '... the view t_sequence shows them as the table did');
	is(sql("SELECT segment_next('never used')"), 15, '... one that was never used, too');
	foreach my $key ('t_order', 'order item', '用户', 'pg_class')
	{
		my @new = split /\n/, sql("SELECT segment_next_batch('$key', 1000)");
		cmp_ok($new[0], '>', $highest{$key}, "... $key goes on above");
		# What the nodes had left would not have met them either, had they not been stopped.
		my ($end) = sort { $b <=> $a } map { exists $_->{$key} ? $_->{$key}{end} : () } @nodes;
		my $length = sql("SELECT increment_val FROM t_sequence WHERE pk_seq_name = '$key'");
		is($new[0] - $end, $variant eq 'after' ? 0 : $length,
			$variant eq 'after' ? '... right where the last block ends' : '... one block above where the last one ends');
	}
	sql('SELECT segment_drop(name) FROM uid_segment');
}

# CYCLE, for those that started again on overflow.
sql("SELECT segment_create('rounds'); ALTER SEQUENCE uid_segments.rounds MAXVALUE 3 CYCLE");
is(sql("SELECT string_agg(v::text, ',') FROM segment_next_batch('rounds', 7) AS v"), '1,2,3,1,2,3,1', 'ALTER SEQUENCE uid_segments.name CYCLE begins again');

# ---------------------------------------------------------------------------
# Leaf (Meituan-Dianping/Leaf, SegmentIDGenImpl and IDAllocMapper, 1.0): UPDATE leaf_alloc SET max_id = max_id + step,
# in one transaction with the SELECT; the block is [max_id - step, max_id). The step is the table's, or doubled by the
# node: UPDATE leaf_alloc SET max_id = max_id + #{step}.
# ---------------------------------------------------------------------------
{
	sql(<<'SQL');
CREATE TABLE leaf_alloc (
  biz_tag varchar(128) PRIMARY KEY DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
  description varchar(256), update_time timestamp NOT NULL DEFAULT now());
INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES
  ('leaf-segment-test', 1, 20, 'Test leaf Segment Mode Get Id'), ('leaf order', 1000000, 100, NULL), ('leaf idle', 1, 2000, 'nobody asked');
SQL
	my $factor = 1;
	my $take = sub {
		my ($key) = @_;
		$factor = $factor % 4 + 1;
		my ($max_id, $step) = split /\|/,
		  sql("WITH own AS (SELECT step * $factor AS step FROM leaf_alloc WHERE biz_tag = '$key')"
			  . " UPDATE leaf_alloc AS a SET max_id = a.max_id + own.step FROM own WHERE biz_tag = '$key' RETURNING a.max_id, own.step");
		return { next => $max_id - $step, end => $max_id };
	};
	serve_many([ 'leaf-segment-test', 'leaf order' ], $take, 600);
	is($repeated // '', '', 'a Leaf service');
	# The statement of docs/segments.md.
	is(sql('SELECT count(segment_create(biz_tag, max_id + 1, step, description => description)) FROM leaf_alloc'), 3, '... three segments are made');
	is(sql('SELECT count(*) FROM uid_segment AS new JOIN leaf_alloc AS old ON new.name = old.biz_tag WHERE new.step = old.step AND new.description IS NOT DISTINCT FROM old.description'),
		3, '... with step and description');
	foreach my $key ('leaf-segment-test', 'leaf order')
	{
		cmp_ok(sql("SELECT segment_next('$key')"), '>', $highest{$key}, "... $key goes on above");
	}
	is(sql("SELECT segment_next('leaf idle')"), 2, '... and one that was never asked, too');
}

# ---------------------------------------------------------------------------
# What ORMs send after an import with ids of its own. Expected: it takes effect in every session, at the first call of
# its next transaction.
# ---------------------------------------------------------------------------
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

$node->stop;
done_testing();
