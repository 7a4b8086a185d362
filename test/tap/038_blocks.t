# Nodes outside the database and draws in it use one segment at once, by all statements that take values: those of a
# t_sequence table, of Leaf's leaf_alloc, segment_reserve(), segment_next() and nextval(). And nodes outside and
# generators draw worker ids from worker_node at once, as Baidu's uid-generator does.
#
# Expected: no value belongs to two of them, whichever side of the new current_val a node of t_sequence takes its block
# from, and also not across a crash of the server.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

# Nobody flushes but who has to.
my $node = new_node('blocks', conf => <<'END');
autovacuum = off
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
END
start_uidgen($node);
$node->safe_psql('postgres', "SELECT uid_leaf_alloc_create()");

my $lock = "SELECT format('p %s %s', current_val, current_val + increment_val - 1) FROM t_sequence WHERE pk_seq_name = 's' FOR UPDATE";
my $advance = "UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 's'";
my $reread = "SELECT format('p %s %s', current_val, current_val + increment_val - 1) FROM t_sequence WHERE pk_seq_name = 's'";
my $max = sub { return "SELECT format('p %s %s', max_id - $_[0], max_id - 1) FROM leaf_alloc WHERE biz_tag = 's'" };

# A line `p first last` is a block that the node may use once its commit is acknowledged, by a line `ok`.
my %nodes = (
	'before the update' => "BEGIN; $lock; $advance; COMMIT; SELECT 'ok'",
	'after the update' => "$advance RETURNING format('p %s %s', current_val, current_val + increment_val - 1); SELECT 'ok'",
	'after the update, read again' => "BEGIN; $lock; $advance; $reread; COMMIT; SELECT 'ok'",
	'with a savepoint' => "BEGIN; $lock; SAVEPOINT x; $advance; ROLLBACK TO x; $advance; COMMIT; SELECT 'ok'",
	'rolled back' => "BEGIN; $lock; $advance; ROLLBACK",
	'Leaf' => 'BEGIN; UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = \'s\'; ' . $max->('step') . "; COMMIT; SELECT 'ok'",
	'Leaf, longer' => 'BEGIN; UPDATE leaf_alloc SET max_id = max_id + 55 WHERE biz_tag = \'s\'; ' . $max->(55) . "; COMMIT; SELECT 'ok'",
	'segment_reserve' => "SELECT format('p %s %s', first, last) FROM segment_reserve('s', 33); SELECT 'ok'",
	'segment_next' => "SELECT format('p %1\$s %1\$s', segment_next('s')) FROM generate_series(1, 7); SELECT 'ok'",
	'nextval' => "SELECT format('p %1\$s %1\$s', nextval('uid_segments.s')) FROM generate_series(1, 3); SELECT 'ok'");

# The blocks that a log says are in use. The last line may be cut off.
sub blocks_in
{
	my (@blocks, @pending);
	foreach my $line (split /\n/, slurp_file($_[0]))
	{
		push @pending, [ $1, $2 ] if $line =~ /^p (\d+) (\d+)$/;
		if ($line eq 'ok')
		{
			push @blocks, @pending;
			@pending = ();
		}
	}
	return @blocks;
}

sub assert_disjoint
{
	my ($what, @logs) = @_;
	my @blocks = sort { $a->[0] <=> $b->[0] } map { blocks_in($_) } @logs;
	my @meet = map { "@{ $blocks[$_ - 1] } and @{ $blocks[$_] }" }
	  grep { $blocks[$_][0] <= $blocks[ $_ - 1 ][1] } 1 .. $#blocks;
	note(scalar(@blocks) . ' blocks');
	is(join(', ', splice(@meet, 0, 5)), '', $what);
	return;
}

# Each client takes as many blocks again.
sub go_on
{
	my ($what, @logs) = @_;
	my %before = map { $_ => scalar(blocks_in($_)) } @logs;
	ok(poll_until($what, sub { return !grep { blocks_in($_) < $before{$_} + 10 } @logs }), $what);
	return;
}

$node->safe_psql('postgres', "INSERT INTO t_sequence VALUES ('s', 1, 40)");

# The lock has taken what lies on both sides of the next value. The block after that belongs to another node.
{
	my $session = hold_open($node);
	$session->query_safe("BEGIN; $lock");
	$node->safe_psql('postgres', "SELECT segment_reserve('s', 33)");
	is($session->query("$advance;\n\\echo :SQLSTATE"), '00000', 'a node advances to the block that its lock has taken');
	is($session->query("$advance;\n\\echo :SQLSTATE"), '40001', '... and has to retry if the one after that is taken');
	$session->query('ROLLBACK');
	$session->quit;
}

my %loops = map { $_ => background_loop($node, sql => $nodes{$_}, reconnect => 1, on_error_stop => 0) } sort keys %nodes;
my @logs = map { @{ $loops{$_}{logs} } } grep { $_ ne 'rolled back' } sort keys %loops;
go_on('all nodes take blocks', @logs);
$node->stop('immediate');
start_node($node);
go_on('... again after a crash', @logs);
$node->stop('immediate');
start_node($node);
go_on('... and after another one', @logs);
stop_loop(values %loops);
assert_disjoint('no value belongs to two of them', @logs);

# Without draws that move the counter between two statements, no node is sent back to retry.
{
	my $errors = join '', map { slurp_file("$_.err") } map { @{ $loops{$_}{logs} } } 'before the update', 'after the update', 'after the update, read again';
	unlike($errors, qr/ERROR/, 'a node of t_sequence that locks its row, or reads it after the update, never has to retry');
}

# What a call returned is durable, although its transaction is still open.
foreach my $call (
	"SELECT last FROM segment_reserve('s', 10)",
	"UPDATE leaf_alloc SET max_id = max_id + 10 WHERE biz_tag = 's' RETURNING max_id - 1",
	"SELECT current_val + increment_val - 1 FROM t_sequence WHERE pk_seq_name = 's' FOR UPDATE")
{
	my $session = hold_open($node);
	$session->query_safe('BEGIN');
	my $last = $session->query_safe($call);
	$node->stop('immediate');
	start_node($node);
	cmp_ok($node->safe_psql('postgres', "SELECT first FROM segment_reserve('s', 1)"), '>', $last, "durable: $call");
}

# A clean stop keeps what is left of the segment's ranges, also below a block that was reserved above them.
{
	my $draw = "SELECT segment_next('kept')";
	is($node->safe_psql('postgres', "SELECT segment_create('kept', 1, 100); $draw; SELECT first FROM segment_reserve('kept', 50)"),
		"uid_segments.kept\n1\n101", 'a block above the range in use');
	$node->stop;
	start_node($node);
	is($node->safe_psql('postgres', "$draw; SELECT first FROM segment_reserve('kept', 50)"), "2\n151", '... and after a clean stop the range goes on');
	$node->stop('immediate');
	start_node($node);
	is($node->safe_psql('postgres', $draw), 201, '... and after a crash the next range is above the blocks');
}

# A segment that starts over, while others take blocks and draw, and rolls back.
{
	my @others = map { background_loop($node, sql => $nodes{$_}, reconnect => 1) } 'before the update', 'segment_next';
	my @logs_of_others = map { @{ $_->{logs} } } @others;
	go_on('nodes take blocks', @logs_of_others);
	foreach (1 .. 20)
	{
		$node->safe_psql('postgres', "BEGIN; UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 's'; $advance; ROLLBACK");
	}
	go_on('... also while the segment starts over and rolls back', @logs_of_others);
	stop_loop(@others);
	assert_disjoint('... and no value comes twice', @logs_of_others);
	unlike(slurp_file($node->logfile), qr/deadlock detected/, '... without a deadlock');
}

# A node outside inserts its row, and makes ids with that worker id. A generator draws a new number after each alteration.
{
	$node->safe_psql('postgres', q{
		SELECT uid_generator_create('web', 'baidu', datacenter_id => 4194303);
		SELECT uid_generator_create('many', datacenter_bits => 2, worker_bits => 14, sequence_bits => 6, datacenter_id => 3, lease_ms => 100);
		CREATE TABLE drawn (generator regclass, id bigint)});
	my $insert = q{INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)}
	  . q{ VALUES ('10.0.0.7', '8080', 2, CURRENT_DATE, NOW(), NOW()) RETURNING ID};
	my $draw = join '; ', map {
		"INSERT INTO drawn SELECT 'uid_generators.$_', uid_next('uid_generators.$_') FROM generate_series(1, 20)"
	} 'web', 'many';
	my $alter = q{DO $$BEGIN PERFORM uid_generator_alter('uid_generators.many', lease_ms => 100); END$$};
	my @loops = (
		background_loop($node, clients => 2, pace => 0.01, sql => $insert),
		background_loop($node, clients => 2, pace => 0.02, sql => $draw),
		background_loop($node, pace => 0.2, sql => $alter));
	my $worker_ids = 'drawn JOIN LATERAL uid_decode(drawn.id, drawn.generator) d ON true';
	my $outside = 'worker_node w WHERE w.generator IS NULL';
	ok($node->poll_query_until('postgres', "SELECT (SELECT count(*) > 200 FROM $outside)"
			  . " AND (SELECT count(DISTINCT worker_id) > 10 FROM $worker_ids WHERE generator = 'uid_generators.many'::regclass)"),
		'nodes outside and generators draw numbers');
	my @logs_of_all = stop_loop(@loops);
	is(join('', map { slurp_file("$_.err") } @logs_of_all), '', '... without an error');
	assert_unique(@logs_of_all[ 0, 1 ]);
	is($node->safe_psql('postgres', "SELECT count(*) FROM $worker_ids, $outside AND w.id = d.worker_id"),
		0, '... and no generator has the worker id of a node outside');
	is($node->safe_psql('postgres', 'SELECT max(id) < 16384 FROM worker_node'), 't', '... before the numbers come round');
}

$node->stop;
done_testing();
