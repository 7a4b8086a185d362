# What Patroni does with a registry: a switchover, a crash, a failover that loses grants, an outage of etcd, a leader that stands
# still. Two members insert all the while, and make generators that are new to the registry.
#
# Expected: no insert fails and no value comes twice. Members keep their nodes. Each change of the timeline raises a fence, for
# which newcomers wait, unless an administrator says that nothing was lost. An outage of etcd raises none.
use lib 'test/patroni';
use UidgenTest 'preloaded';
use Fleet;
use Patroni;
use Trouble;

start_cluster();
my @members = start_members('berlin', 'osaka');
my @loops = draw_all_the_time(@members);
my $kept = nodes_of(@members);

# The timeline has changed, and an administrator knows that nothing was lost.
sub lift_fence ($leader, $event)
{
	like(draw_as_newcomer($members[0], "after_$event"), qr/may have lost grants/, "after a $event newcomers wait");
	is(status_of($leader, 'reason, fenced_until IS NOT NULL, larger_term'), 'takeover|t|', '... for a fence');
	ask($leader, 'SELECT uid_registry.nothing_was_lost()') // die 'the statement fails';
	is(status_of($leader, 'reason, fenced_until'), 'lifted|', '... until an administrator says that nothing was lost');
	ok(poll_until('a newcomer', sub { try_sql($members[0], "SELECT uid_next('uid_generators.after_$event')") =~ /^\d+$/ }), '... and then get nodes');
}

my $seconds = time_without_leader('one', 'two', sub { patronictl('switchover', '--leader', 'one', '--candidate', 'two', '--force') });
note_figure('switchover: %.1f s, with patronictl', $seconds);
lift_fence('two', 'switchover');
wait_for_standby('two');

# Patroni 4 starts the server again on its timeline, Patroni 3 makes it a standby and promotes it.
my $timeline = q{SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)};
my $before = ask('two', $timeline);
$seconds = time_without_leader('two', 'two', sub { kill_now('two', 'server') });
my $is_same = ask('two', $timeline) eq $before;
note_figure('crash: %.1f s without a leader, %s', $seconds, $is_same ? 'the same timeline' : 'another timeline');
if ($is_same) { is(draw_as_newcomer($members[0], 'after_crash'), '', 'after a crash newcomers get nodes') }
else { lift_fence('two', 'crash') }
is(nodes_of(@members), $kept, '... and members keep theirs');
wait_for_standby('two');

wait_for_renewals('two', @members);
my $walsender = ask('two', "SELECT pid FROM pg_stat_replication WHERE application_name = 'one'");
freeze_process($walsender);
is(draw_as_newcomer($members[1], 'late'), '', 'a newcomer gets a node just before a failover');
is(ask('one', "SELECT count(*) FROM uid_registry.node WHERE holder ~ 'late'"), 0, '... which the standby lacks');
my $late = node_of($members[1], 'uid_generators.late');
$seconds = time_without_leader('two', 'one',
	sub {
		kill_now('two', 'patroni', 'server');
		kill 'KILL', $walsender;
	});
note_figure('failover: %.1f s without a leader', $seconds);
$members[1]->safe_psql('postgres', "SELECT uid_next('uid_generators.late')");
like(draw_as_newcomer($members[0], 'after_failover'), qr/may have lost grants/, 'after it newcomers wait');
like(status_of('one', 'reason, fenced_until IS NOT NULL, larger_term'), qr/^(?:takeover|proof)\|t\|$/, '... for a fence');
wait_for_renewals('one', @members);
is(nodes_of(@members), $kept, 'members keep their nodes');
wait_until('the late newcomer is known', sub { (ask('one', "SELECT node FROM uid_registry.node WHERE holder ~ 'late'") // -1) == $late });
pass('... and the late newcomer its own');

start_patroni('two');
wait_for_standby('one');
my $term_before = status_of('one', 'term, reason');
stop_etcd();
wait_until('Patroni notices that etcd is away', sub { says_in_log('one', qr/failsafe/) });
wait_until('the fence is over', sub { status_of('one', 'fenced_until') eq '' });
is(draw_as_newcomer($members[0], 'without_etcd'), '', 'newcomers get nodes while etcd is away');
start_etcd();
wait_until('Patroni notices that etcd is back', sub { says_in_log('one', qr/failsafe.*the leader with the lock/s) });
is(status_of('one', 'term, reason'), $term_before, '... and there is no other takeover');
is(nodes_of(@members), $kept, '... and members keep their nodes');

# As if its machine had paused. Patroni 4 lets it follow, Patroni 3 often lead again, and then the nodes that the other one gave
# are lost.
my $term = status_of('one', 'term');
wait_for_renewals('one', @members);
my @stopped = (patroni_of('one'), server_processes('one'));
kill 'STOP', @stopped;
wait_until('members use the new leader', sub { status_of('two', 'term') > $term });
$term = status_of('two', 'term');
kill 'CONT', @stopped;
my ($leader, $other) = ('two', 'one');
wait_until('there is one leader', sub {
	($leader, $other) = ($other, $leader) unless accepts_writes($leader);
	return has_standby($leader) && !accepts_writes($other);
});
note_figure('a leader that stood still for longer than the ttl %s', $leader eq 'two' ? 'follows' : 'has taken its lock back');
if ($leader eq 'one')
{
	is_fenced_by_term($leader, $term, 'members show it the larger term, and it is fenced');
	make_it_the_registry($leader, $members[0]);
}
wait_for_renewals($leader, @members);
is(nodes_of(@members), $kept, 'a leader stands still for longer than the ttl, and members keep their nodes');

judge(@loops);
$_->stop('fast') foreach @members;
done_testing();
