# A generator that is altered while its request is under way draws nothing in the grant of its former layout.
use UidgenTest 'preloaded';

my $registry = make_registry(new_server('registry'));
my $member = new_server('member', conf => "uidgen.max_wait = 300ms\n", registries => [$registry]);
$member->safe_psql('postgres', "SELECT uid_generator_create('g', datacenter_bits => 0, worker_bits => 10)");
$registry->stop;
is(sqlstate($member, "SELECT uid_next('uid_generators.g')"), '55000', 'a generator asks, and no registry answers');
$member->safe_psql('postgres', "SELECT uid_generator_alter('uid_generators.g', worker_bits => 9, sequence_bits => 13)");
$member->safe_psql('postgres', "SELECT uid_next_array('uid_generators.g', 0)"); # makes the slot again, and asks nothing
start_node($registry);
$registry->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
ok(poll_until('a grant', sub { $member->safe_psql('postgres', "SELECT count(granted_until) FROM uid_registry_status WHERE generator = 'uid_generators.g'") eq '1' }), 'the answer to the former request comes');
$member->safe_psql('postgres', "SET uidgen.max_wait = '30s'; SELECT uid_next('uid_generators.g')");
is($registry->safe_psql('postgres', 'SELECT count(*) FROM uid_fleet_pool WHERE worker_bits = 9'), '1', 'the draw asks for a node of the present layout');
done_testing();
