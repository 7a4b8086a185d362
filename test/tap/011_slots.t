# As many slots as are used: thousands of segments in one transaction, in several databases, hinder nobody, and what
# was dropped makes room for others.
use UidgenTest 'preloaded';

# Shared memory as files of this server's own, so that what it holds can be measured.
my $conf = "autovacuum = off\ndynamic_shared_memory_type = mmap\nmax_locks_per_transaction = 256\nuidgen.segment_step = 10\nuidgen.segment_max_step = 10\n";
my $node = new_server('slots', conf => $conf);

my $many = 2000;

# Runs a statement of PL/pgSQL for each i, in transactions of so many.
sub loop ($statement, $count, $at_once)
{
	return "DO \$\$ BEGIN FOR i IN 1 .. $count LOOP $statement; IF i % $at_once = 0 THEN COMMIT; END IF; END LOOP; END \$\$";
}

my $create = q{EXECUTE format('CREATE SEQUENCE s%s', i)};

# How often each of the values that all segments have given next was given.
sub draw_all ($on)
{
	my $sql = "SELECT v, count(*) FROM (SELECT segment_next(format('s%s', i)) AS v FROM generate_series(1, $many) AS i OFFSET 0) AS d GROUP BY v";
	return $on->isa('Session') ? $on->query_safe($sql) : $on->safe_psql('postgres', $sql);
}

# Bytes of dynamic shared memory that uidgen holds, if it is in files (dynamic_shared_memory_type = mmap). The statistics
# of PostgreSQL, too, have an area of segments, but one without a handle. A segment's first word is a constant, xor the
# handle of its area, xor its number in the area.
sub bytes_held ($node)
{
	my $bytes = 0;
	foreach my $file (glob $node->data_dir . '/pg_dynshmem/mmap.*')
	{
		open my $fh, '<:raw', $file or next;
		read $fh, my $word, 4;
		$bytes += -s $file if length $word == 4 && (unpack('L', $word) ^ 0x0ce26608) >= 1024;
	}
	return $bytes;
}

# One open transaction draws from all segments of its database. Other sessions, and other databases, draw as before.
sql(loop($create, $many, 500));
foreach my $database ('other', 'third')
{
	sql("CREATE DATABASE $database");
	sql("CREATE EXTENSION uidgen; SELECT uid_generator_create('g')", $database);
	sql(loop($create, 500, 500), $database);
}
my $open = hold_open($node);
$open->query_safe('BEGIN');
is(draw_all($open), "1|$many", "an open transaction draws from $many segments");
is(draw_all($node), "2|$many", '... and so does another session, the next values');
is(sql("SELECT count(segment_next(format('s%s', i))), uid_next() > 0, uid_next('uid_generators.g') > 0 FROM generate_series(1, 500) AS i GROUP BY 2, 3", 'other'),
	"500|t|t", '... and another database');
is($open->query_safe('SAVEPOINT s; SELECT segment_next($$s1$$)'), 3, 'the open transaction goes on');
$open->query_safe("ROLLBACK TO s; PREPARE TRANSACTION 'open'");
is(sql("SELECT segment_next('s1'), segment_next('s$many')"), '4|3', '... and what it has drawn is drawn');
sql("ROLLBACK PREPARED 'open'");
$open->quit;
is(sql("SELECT generators, segments FROM uid_stat_server"), '2|' . ($many + 500), 'the server has a slot for each');
is(sql("SELECT (SELECT count(*) FROM segment_status WHERE range_length = 10), (SELECT count(*) FROM uid_stat), (SELECT sum(ids) FROM uid_stat)"),
	join('|', $many, $many, 2 * $many + 3), 'the views show all of them');

# What was dropped makes room: its slots are used again, of whatever database they were.
{
	sql("SELECT count(segment_next(format('s%s', i))), count(uid_next('uid_generators.g')) FROM generate_series(1, 500) AS i", 'other');
	my $before = bytes_held($node);
	cmp_ok($before, '>', 0, 'the slots take memory');
	sql(loop(q{EXECUTE format('DROP SEQUENCE s%s', i)}, $many, 500));
	sql("DROP DATABASE $_") foreach 'other', 'third';
	sql(loop(q{CREATE SEQUENCE passing; PERFORM segment_next('passing'); DROP SEQUENCE passing}, 2 * $many, 100));
	cmp_ok(sql('SELECT segments FROM uid_stat_server'), '<', $many, 'slots of dropped segments and databases are freed');
	cmp_ok(bytes_held($node), '<=', $before, '... and used again');
	is(sql('SELECT generators FROM uid_stat_server'), 0, '... those of generators, too');
}

$node->stop;
done_testing();
