# Dynamic shared memory that cannot be had: a draw fails with an error that says what to do, the server stays usable, and
# when there is room again all goes on. (013_same_oids.t and 046_workers.t have what else can go wrong with a slot.)
use lib 'test/lib/torture';
use Disk;
use UidgenTest 'preloaded';
use Fleet;

# Shared memory is in files below the data directory, where a library that is preloaded lets writes fail.
my $library = PostgreSQL::Test::Utils::tempdir() . '/disk.so';
system_or_bail('g++', '-std=c++17', '-O1', '-shared', '-fPIC', 'test/lib/torture/disk.cpp', '-o', $library, '-ldl');
$ENV{TORTURE_DISK} = $library;

my $registry = make_registry(new_server('registry'));
# PostgreSQL may crash where its own statistics cannot grow: a later session reads the entry that has got no memory.
my $node = new_node('full', conf => "autovacuum = off\ntrack_counts = off\ndynamic_shared_memory_type = mmap\nuidgen.segment_step = 10\nuidgen.segment_max_step = 10\n");
use_shaky_disk($node);
join_fleet($node, $registry);
start_uidgen($node);

sub fill { set_disk($node, 'ENOSPC', 'write', '/pg_dynshmem') }
sub make_room { set_disk($node) }

# Draws fail for lack of memory, and name /dev/shm.
sub refused ($on, $sql, $what, $for = undef)
{
	my ($state, $error) = sqlstate($on, $sql);
	is($state, '53100', $what) or diag($error);
	like($error, qr/CONTEXT:  allocation of dynamic shared memory for $for/, '... it says what for') if $for;
	like($error, qr{HINT:  Make more room in /dev/shm .*, or set min_dynamic_shared_memory\.}, '... and what to do');
}

my $many = 3000;
my $slots = 'SELECT generators, segments FROM uid_stat_server';

# From the start on there is no room. Nothing is burned, and nothing is left in a transaction.
sql($node, "DO \$\$ BEGIN FOR i IN 1 .. $many LOOP EXECUTE format('CREATE SEQUENCE s%s', i); IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END \$\$");
sql($node, 'CREATE SEQUENCE plain');
my $session = hold_open($node);
fill();
refused($node, $_, "no room: $_", 'the table of generators and segments') foreach 'SELECT uid_next()', q{SELECT segment_next('s1')};
$session->query_safe('BEGIN; SAVEPOINT s');
refused($session, q{SELECT segment_next('s1')}, 'in a transaction');
is($session->query_safe(q{ROLLBACK TO s; SELECT nextval('plain'); COMMIT}), 1, '... which goes on without it');
is(sql($node, 'SELECT count(*) FROM uid_stat') . ' ' . sql($node, $slots) . ' ' . sql($node, 'SELECT count(*) FROM segment_status'), '0 0|0 0', '... the views answer');
make_room();
is($session->query_safe(q{SELECT segment_next('s1'), uid_next() > 0}), '1|t', 'there is room, and draws begin');
my $granted = node_of($node);

# The area cannot grow, at many points of its growth.
{
	my ($drawn, $refusals) = (1, 0);
	while ($drawn < $many)
	{
		fill();
		while ($drawn < $many)
		{
			my ($state, $error) = sqlstate($session, "SELECT segment_next('s" . ($drawn + 1) . q{'), segment_next('s1')});
			last if $state ne '00000';
			$drawn++;
		}
		if ($drawn < $many && $refusals++ < 2)
		{
			refused($session, "SELECT segment_next('s" . ($drawn + 1) . "')", "no room for a slot after $drawn");
			is(sql($node, $slots), "1|$drawn", '... no slot is half made');
			is(sql($node, "SELECT segment_next('s$drawn'), uid_next() > 0"), '2|t', '... and what has one goes on');
		}
		make_room();
		# Another session finds room, and takes what this one could not.
		sql($node, "SELECT segment_next('s" . ++$drawn . "')") if $drawn < $many;
	}
	cmp_ok($refusals, '>', 1, "the area grows to $drawn segments, with $refusals refusals");
	is(sql($node, $slots), "1|$many", '... each has a slot');
}

$session->quit;

# The first draw after a start, which reads the file of grants.
$registry->stop;
$node->stop;
start_node($node);
fill();
refused($node, 'SELECT uid_next()', 'after a start', 'the table of generators and segments') foreach 1, 2;
make_room();
is(sql($node, 'SELECT uid_next() > 0'), 't', 'when there is room the generator goes on without its registry');
is(node_of($node), $granted, '... with the grant of before');

$node->stop;
done_testing();
