# A server in a container: 64 MB of /dev/shm, which something else fills. Without the preload the state of the server is there,
# too. Expected: whatever does not fit is an error that says so, the server goes on, and when there is room again, so does the
# rest. (019_memory.t has what does not fit later.) The section majors runs it alone, because servers of other
# tests need /dev/shm, too.
use UidgenTest;

my ($total) = `df --output=size -k /dev/shm` =~ /(\d+)/;
plan skip_all => '/dev/shm is not as small as in a container' if $total > 1024 * 1024;
plan skip_all => 'PostgreSQL 15 and 16 need the preload' if `pg_config --version` =~ /\b1[56]\./;

my $filler = '/dev/shm/uidgen-test-filler';
END { unlink $filler }

sub make_room
{
	unlink $filler;
}

# Leaves so many kilobytes.
sub fill ($left)
{
	make_room();
	my ($free) = `df --output=avail -k /dev/shm` =~ /(\d+)/;
	system_or_bail('fallocate', '-l', ($free - $left) . 'k', $filler) if $free > $left;
}

my $node = new_server('contained', conf => "autovacuum = off\n");
$node->safe_psql('postgres', "CREATE SEQUENCE plain; SELECT segment_create('s')");

sub refused ($on, $sql, $what, $for)
{
	my ($state, $error) = sqlstate($on, $sql);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($state, '53100', $what) or diag($error);
	like($error, qr{could not resize shared memory segment .* No space left on device}, '... it says what is full');
	like($error, qr{HINT:  Make more room in /dev/shm .*, or set min_dynamic_shared_memory\.}, '... and what to do');
	like($error, qr/CONTEXT:  allocation of dynamic shared memory for $for/, '... and what it is for');
}

# At the first call of the server. PostgreSQL's list of such memory, the state of the server and the area for slots need it, one
# after the other.
my %for = (0 => 'the state of the server', 1028 => 'the state of the server', 1040 => 'the table of generators and segments');
foreach my $left (sort { $a <=> $b } keys %for)
{
	$node->restart;
	my $session = hold_open($node);
	fill($left);
	refused($_, 'SELECT uid_next()', "$left kB are left at a first call", $for{$left}) foreach $session, $node, $session;
	is($session->query_safe("BEGIN; SELECT nextval('plain') > 0; COMMIT"), 't', 'the server and the session are usable');
	make_room();
	is($session->query_safe('SELECT uid_next() > 0'), 't', 'with room the session draws');
	is($node->safe_psql('postgres', 'SELECT uid_next() > 0'), 't', '... and a new one');
	$session->quit;
}

# The way out without more room in /dev/shm, and other kinds of such memory.
foreach my $setting ("min_dynamic_shared_memory = '8MB'", "dynamic_shared_memory_type = 'mmap'", "dynamic_shared_memory_type = 'sysv'")
{
	make_room();
	$node->append_conf('postgresql.conf', "$setting\n");
	$node->restart;
	fill(0);
	is($node->safe_psql('postgres', "SELECT count(DISTINCT uid_next()) FROM generate_series(1, 10)"), 10, $setting);
	is($node->safe_psql('postgres', 'SELECT uid_next() > 0'), 't', '... and in a new session');
}
make_room();
$node->stop;
done_testing();
