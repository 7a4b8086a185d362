# Two servers that accept writes: Patroni alone is killed; then a standby is promoted by hand while Patroni is paused, so that the
# leader keeps its lock and its timeline, and the nodes that the other one gave are lost. Two members insert all the while, and
# make generators that are new to the registry.
#
# Expected: no insert fails and no value comes twice. Members keep their nodes. A server that members show a larger term than its
# own is fenced, also for members that know of no other one.
use lib 'test/patroni';
use UidgenTest 'preloaded';
use Fleet;
use Patroni;

start_cluster();
my ($berlin, $osaka, $lima) = start_members('berlin', 'osaka', 'lima');
my @members = ($berlin, $osaka);
my @loops = draw_all_the_time(@members);
my $kept = nodes_of(@members);

# The layout of this one and of those that come later has four nodes.
create_small($berlin, 'known');
push @loops, load_small($berlin, 'known');
ok(poll_until('a node', sub { node_of($berlin, 'uid_generators.known') ne '' }), 'a generator has one of four nodes');

my $term = status_of('one', 'term');
wait_for_renewals('one', @members);
kill_now('one', 'patroni');
wait_until('members use the new leader', sub { status_of('two', 'term') > $term });
ok(accepts_writes('one'), 'after Patroni alone was killed there are two leaders');
is_fenced_by_term('one', status_of('two', 'term'), 'members show the former one the larger term, and it is fenced');
start_patroni('one');
wait_for_standby('two');
wait_for_renewals('two', @members);
is(nodes_of(@members), $kept, '... and members keep their nodes');

# The leader is shown the larger term at once, but its fence lasts as long as the other one gives nodes.
patronictl('pause', '--wait');
ask('one', 'SELECT pg_promote()') // die 'no promotion';
foreach my $generator ('lost_1', 'lost_2')
{
	create_small($osaka, $generator);
	push @loops, load_small($osaka, $generator);
}
wait_until('the server that was promoted by hand gives nodes', sub { !grep { node_of($osaka, "uid_generators.$_") eq '' } 'lost_1', 'lost_2' });
$term = status_of('one', 'term');
wait_for_renewals('one', @members);
is_fenced_by_term('two', $term, 'members show the former leader the larger term, and it is still fenced');
patronictl('resume', '--wait');
wait_until('Patroni ends the other leader', sub { !accepts_writes('one') });
foreach my $generator ('first', 'second')
{
	create_small($lima, $generator);
	push @loops, load_small($lima, $generator);
}
my $states = 'SELECT state FROM uid_registry_status WHERE generator IS NOT NULL';
ok(poll_until('an answer', sub { $lima->safe_psql('postgres', $states) =~ /^(?:fenced|granted)\n(?:fenced|granted)$/ }), 'a member that knows no other registry asks it');
is($lima->safe_psql('postgres', $states), "fenced\nfenced", '... and waits, too');
make_it_the_registry('two', $berlin);
wait_for_renewals('two', @members);
is(nodes_of(@members), $kept, '... and members keep their nodes');
wait_until('the fence is over', sub { $lima->safe_psql('postgres', $states) =~ /granted/ });
wait_for_standby('two');

judge(@loops);
$_->stop('fast') foreach @members, $lima;
done_testing();
