# Nodes outside the database and draws in it use one segment at once, by all statements that take values: those of a
# t_sequence table, of Leaf's leaf_alloc, segment_reserve(), segment_next() and nextval(). And nodes outside and
# generators draw worker ids from worker_node at once, as Baidu's uid-generator does.
#
# Expected: no value belongs to two of them, however a node reads its row, as long as all nodes of one row read it in the
# same way. Also not across a crash of the server with synchronous_commit off, a restore, a rollback, and when the
# counter is set to 0. (001_matrix.t has what is durable before a commit.)
use UidgenTest;
use Clients;

# Nobody flushes but who has to.
my $node = new_server('blocks', conf => <<'END');
autovacuum = off
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
END
$node->safe_psql('postgres', 'SELECT uid_leaf_alloc_create()');

# Which values a node takes from c, the current_val of its row, and n, its increment_val. Before the UPDATE, or after it.
my %readings = (
	'before, from' => [ 'c', 'c + n - 1' ],
	'before, beyond' => [ 'c + 1', 'c + n' ],
	'before, added' => [ 'c + n', 'c + 2 * n - 1' ], # by the node itself, which does not read again
	'after, from' => [ 'c', 'c + n - 1' ],
	'after, beyond' => [ 'c + 1', 'c + n' ],
	'after, below' => [ 'c - n', 'c - 1' ],
	'after, up to' => [ 'c - n + 1', 'c' ]);
# From m, the max_id of its row after the UPDATE by n.
my %readings_of_leaf = ('Leaf' => [ 'm - n', 'm - 1' ], 'article' => [ 'm - n + 1', 'm' ]);

# A line `p row first last` is a block that the node may use once its commit is acknowledged, by a line `ok`.
sub in_transaction ($begin, @statements)
{
	return join '; ', "SELECT 'begin'", $begin, @statements, 'COMMIT', "SELECT 'ok'";
}

sub take_block ($begin, $row)
{
	my ($first, $last) = @{ $readings{$row} };
	my $read = "SELECT format('p %s|%s|%s', pk_seq_name, $first, $last)"
	  . " FROM (SELECT pk_seq_name, current_val AS c, increment_val AS n FROM t_sequence WHERE pk_seq_name = '$row' FOR UPDATE) AS r";
	my $advance = "UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = '$row'";
	return (
		in_transaction($begin, $row =~ /before/ ? ($read, $advance) : ($advance, $read)),
		in_transaction($begin, $row =~ /before/ ? ($read, 'SAVEPOINT s', $advance, 'ROLLBACK TO s', $advance) : ('SAVEPOINT s', $advance, 'ROLLBACK TO s', $advance, $read)),
		"BEGIN; $advance; ROLLBACK");
}

sub take_block_of_leaf ($begin, $row)
{
	my ($first, $last) = @{ $readings_of_leaf{$row} };
	return map {
		in_transaction($begin, "UPDATE leaf_alloc SET max_id = max_id + $_ WHERE biz_tag = '$row'",
			"SELECT format('p %s|%s|%s', biz_tag, $first, $last) FROM (SELECT biz_tag, max_id AS m, $_ AS n FROM leaf_alloc WHERE biz_tag = '$row') AS r")
	} 'step', 55;
}

sub node_of_services ($begin)
{
	return join '; ', 'SET synchronous_commit = off',
	  map({ take_block($begin, $_) } sort keys %readings), map({ take_block_of_leaf($begin, $_) } sort keys %readings_of_leaf);
}

my @rows = sort(keys %readings, keys %readings_of_leaf);
my $draws = join '; ', map {
	(   "SELECT format('p $_|%1\$s|%1\$s', segment_next('$_')) FROM generate_series(1, 3)",
		"SELECT format('p $_|%1\$s|%1\$s', nextval('uid_segments.\"$_\"')) FROM generate_series(1, 2)",
		"SELECT format('p $_|%s|%s', first, last) FROM segment_reserve('$_', 7)",
		"SELECT 'ok'")
} @rows;

# The blocks of each row that a log says are in use. The last line may be cut off.
sub blocks_in
{
	my (%blocks, @pending);
	foreach my $line (map { split /\n/, slurp_file($_) } @_)
	{
		@pending = () if $line eq 'begin';
		push @pending, [ $1, $2, $3 ] if $line =~ /^p (.+)\|(-?\d+)\|(-?\d+)$/;
		next unless $line eq 'ok';
		push @{ $blocks{ $_->[0] } }, [ $_->[1], $_->[2] ] foreach splice @pending;
	}
	return %blocks;
}

sub assert_disjoint ($what, @logs)
{
	my %blocks = blocks_in(@logs);
	my @meet;
	foreach my $row (sort keys %blocks)
	{
		my @sorted = sort { $a->[0] <=> $b->[0] } @{ $blocks{$row} };
		push @meet, map { "$row: @{ $sorted[$_ - 1] } and @{ $sorted[$_] }" } grep { $sorted[$_][0] <= $sorted[ $_ - 1 ][1] } 1 .. $#sorted;
		note("$row: " . scalar(@sorted) . ' blocks');
	}
	is(join(', ', splice(@meet, 0, 5)), '', $what);
}

# Each client takes blocks of each row again.
sub go_on ($what, @logs)
{
	my $least = sub { my %blocks = blocks_in($_[0]); return (sort { $a <=> $b } map { scalar(@{ $blocks{$_} // [] }) } @rows)[0] };
	my %before = map { $_ => $least->($_) } @logs;
	ok(poll_until($what, sub { return !grep { $least->($_) < $before{$_} + 5 } @logs }), $what);
}

$node->safe_psql('postgres', 'SELECT uid_t_sequence_create()');
$node->safe_psql('postgres', "INSERT INTO t_sequence VALUES ('$_', 1, 40)") foreach sort keys %readings;
$node->safe_psql('postgres', "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('$_', 1, 40)") foreach sort keys %readings_of_leaf;
{
	my @loops = map { background_loop($node, sql => $_, reconnect => 1) } (node_of_services('BEGIN')) x 2,
	  node_of_services('BEGIN ISOLATION LEVEL SERIALIZABLE'), $draws;
	my $clear = background_loop($node, pace => 0.2, reconnect => 1,
		sql => join('; ', 'BEGIN', map({ "UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = '$_'" } sort keys %readings), 'COMMIT', 'UPDATE leaf_alloc SET max_id = 0'));
	my @logs = map { @{ $_->{logs} } } @loops;
	go_on('all nodes take blocks', @logs[ 0, 1, 3 ]);
	crash($node);
	go_on('... again after a crash', @logs[ 0, 1, 3 ]);
	crash($node);
	go_on('... and after another one', @logs[ 0, 1, 3 ]);
	stop_loop(@loops, $clear);
	assert_disjoint('no value belongs to two of them', @logs);
	my $errors = join '', map { slurp_file("$_.err") } @logs[ 0, 1 ];
	unlike($errors, qr{ERROR:}, '... and no node meets an error');
}

# A dump that is taken while nodes take blocks.
{
	my $directory = PostgreSQL::Test::Utils::tempdir();
	$node->safe_psql('postgres', q{CREATE TABLE used (name text, first bigint, last bigint); INSERT INTO t_sequence VALUES ('dumped', 1, 10)});
	my $take = "BEGIN; INSERT INTO used SELECT pk_seq_name, current_val, current_val + increment_val - 1 FROM t_sequence WHERE pk_seq_name = 'dumped' FOR UPDATE;"
	  . " UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'dumped'; COMMIT;"
	  . " BEGIN; UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'Leaf'; INSERT INTO used SELECT biz_tag, max_id - step, max_id - 1 FROM leaf_alloc WHERE biz_tag = 'Leaf'; COMMIT;"
	  . " INSERT INTO used SELECT name, value, value FROM (SELECT name, segment_next(name) AS value FROM unnest(ARRAY['dumped', 'Leaf']) AS name) AS n";
	my $loop = background_loop($node, clients => 2, sql => $take);
	ok($node->poll_query_until('postgres', 'SELECT count(*) > 30 FROM used'), 'nodes take blocks');
	$node->command_ok([ 'pg_dump', '-f', "$directory/dump", '-d', $node->connstr('postgres') ], '... while pg_dump runs');
	stop_loop($loop);
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/dump", '-d', $node->connstr('restored') ], '... and a database is restored from it');
	$node->safe_psql('restored', $take) foreach 1 .. 10;
	is($node->safe_psql('restored', 'SELECT count(*) FROM used AS a JOIN used AS b ON a.ctid < b.ctid AND a.name = b.name AND a.first <= b.last AND b.first <= a.last'),
		0, '... where no value is taken again');
}

# A row that is restored without its sequence.
foreach my $row ('before, from', 'Leaf')
{
	my ($table, $name, $value, $length) = $row eq 'Leaf' ? qw(leaf_alloc biz_tag max_id step) : qw(t_sequence pk_seq_name current_val increment_val);
	$node->safe_psql('postgres', qq{ALTER SEQUENCE uid_segments."$row" RESTART});
	my $shown = $node->safe_psql('postgres', "SELECT $value FROM $table WHERE $name = '$row'");
	$node->safe_psql('postgres', "UPDATE $table SET $value = $value + $length WHERE $name = '$row'");
	cmp_ok($node->safe_psql('postgres', "SELECT segment_next('$row')"), '>', $shown + ($row eq 'Leaf' ? 0 : 40), "a row of $table that is restored without its sequence keeps its values");
}

# Near 2^63 the published code finds that the next block would overflow, and sets the counter to 0. Draws in the database
# do not keep it from that: they get no values between the last block and 2^63, and go on when it starts over.
{
	$node->safe_psql('postgres', q{
		INSERT INTO t_sequence VALUES ('top', 9223372036854775807 - 1099511627776 - 50000, 10);
		CREATE FUNCTION next_block() RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
		  r record;
		BEGIN
		  SELECT current_val, increment_val INTO r FROM t_sequence WHERE pk_seq_name = 'top' FOR UPDATE;
		  IF r.current_val > 9223372036854775807 - r.increment_val THEN
		    UPDATE t_sequence SET current_val = 0 WHERE pk_seq_name = 'top';
		    SELECT current_val, increment_val INTO r FROM t_sequence WHERE pk_seq_name = 'top' FOR UPDATE;
		  END IF;
		  UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'top';
		  RETURN format('p top|%s|%s', r.current_val, r.current_val + r.increment_val - 1);
		END $$});
	my $nodes = background_loop($node, clients => 2, sql => q{SELECT 'begin'; SELECT next_block(); SELECT 'ok'});
	my $draws_from_top = background_loop($node, reconnect => 1, sql => q{SELECT format('p top|%1$s|%1$s', segment_next('top')) FROM generate_series(1, 100); SELECT 'ok'});
	my $has_begun = sub { my %blocks = blocks_in(@{ $_[0]{logs} }); return grep { $_->[0] >= $_[1] && $_->[0] < 1e9 } @{ $blocks{top} // [] } };
	ok(poll_until('start over', sub { return $has_begun->($nodes, 200) }), 'nodes start over near 2^63, beside draws');
	my ($last) = $node->safe_psql('postgres', q{SELECT current_val FROM t_sequence WHERE pk_seq_name = 'top'});
	ok(poll_until('draws', sub { return $has_begun->($nodes, $last + 1000) && $has_begun->($draws_from_top, $last) }), '... and go on');
	my @logs = map { stop_loop($_) } $nodes, $draws_from_top;
	is(join('', map { slurp_file("$_.err") } @{ $nodes->{logs} }), '', '... without an error');
	is(join('', grep { !/reached maximum value of sequence "top"/ } map { /^.*ERROR: .*$/mg } map { slurp_file("$_.err") } @{ $draws_from_top->{logs} }),
		'', '... draws have none but that the sequence ends');
	assert_disjoint('... and no value comes twice', @logs);
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
