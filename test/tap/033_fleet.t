# The registry of a fleet fails over and is restored, while three members draw by all paths. A newcomer is a generator
# that is new on a member: in a layout of four nodes, so that it is at once given what another one holds, if a rule
# fails. Grants last four seconds.
#
# Expected: no id comes twice, on whatever server. Members whose grants reach beyond the fence keep their nodes. Newcomers
# are told from when on they are accepted.
use UidgenTest 'preloaded';

my $lease = 4;     # seconds
my $bound = 0.1;

# The registry's later primaries are second and third.
my $first = new_node('first', conf => "uidgen.registry_clock_bound = '${bound}s'\nautovacuum = off\n");
my ($second, $third) = map { UidgenNode->new($_) } 'second', 'third';
start_uidgen($first);
make_registry($first);
sql($first, "UPDATE uid_fleet_state SET longest_grant = '$lease s'");
my $registry = $first;    # the present primary

my @names = ('a', 'b', 'c');
my (%members, @loops, %small);
foreach my $name (@names)
{
	my $member = new_server($name, registries => [ $first, $second, $third ], conf => "uidgen.registry_lease = '${lease}s'\nuidgen.max_wait = '1s'\nautovacuum = off\n");
	create_load($member);
	push @loops, load($member), load_small($member, 'small');
	$members{$name} = $member;
}

sub new_standby ($primary, $standby)
{
	$primary->backup($standby->name);
	$standby->init_from_backup($primary, $standby->name, has_streaming => 1);
	start_node($standby);
}

# A generator of four nodes that is new, and draws until it is dropped. It begins while the registry is down, so that it
# asks as soon as there is a fence, and not at its end.
sub begin_small ($name, $generator)
{
	create_small($members{$name}, $generator);
	push @loops, $small{$generator} = load_small($members{$name}, $generator);
}

# Its node is free when its grant has ended.
sub end_small ($name, $generator)
{
	stop_loop($small{$generator});
	$small{$generator}{ended} = 1;
	sql($members{$name}, "DROP SEQUENCE uid_generators.$generator");
}

sub living
{
	return grep { !$_->{ended} } @loops;
}

# Draws until a draw fails with that error, or succeeds. Returns the last error.
sub fails_with ($name, $generator, $expected)
{
	my ($state, $error);
	poll_until("a draw from $generator fails with $expected", sub {
		($state, $error) = sqlstate($members{$name}, "SELECT uid_next('uid_generators.$generator')");
		return $state eq '00000' || $error =~ $expected;
	});
	return $error;
}

# For the time when the registry is down, so that no member can renew: the grants of some members.
sub grants_of
{
	return map {
		my $name = $_;
		map { { member => $name, grant => $_ } }
		  split /\n/, sql($members{$name}, q{SELECT generator || ' ' || node || ' ' || extract(epoch FROM granted_until)
			  FROM uid_registry_status WHERE node IS NOT NULL AND generator !~ 'late|lost|next'});
	} @_;
}

# Those that reach beyond the fence must have their nodes still.
sub keeps_nodes ($what, @before)
{
	my $limit = sql($registry, 'SELECT extract(epoch FROM fence_base) FROM uid_fleet_state') + 2 * $bound;
	my ($kept, @moved) = (0);
	foreach my $member (map { $_->{member} } @before)
	{
		$members{$member}->poll_query_until('postgres', q{SELECT count(*) = 0 FROM uid_registry_status
			WHERE granted_until < clock_timestamp() AND generator !~ 'late|lost|next'}) or die "$member does not renew";
	}
	foreach my $one (@before)
	{
		my ($generator, $node, $until) = split / /, $one->{grant};
		next if $until < $limit + 0.001;    # a whole tick
		$kept++;
		my $now = sql($members{ $one->{member} }, "SELECT node FROM uid_registry_status WHERE generator = '$generator'");
		push @moved, "$one->{member}: $generator had $node and has $now" if $now != $node;
	}
	note("$kept of " . @before . ' grants reach beyond the fence');
	is(join("\n", @moved), '', "$what: members that renew in time keep their nodes");
}

# The logs of all servers of the registry so far have one line for each fence.
my %fences_in;
sub wait_for_fence ($fences, $reason, $what)
{
	my $count = sub { $fences_in{ $registry->name } = () = slurp_file($registry->logfile) =~ /accepts no newcomers for \d+ s: /g; my $all = 0; $all += $_ foreach values %fences_in; return $all; };
	ok(poll_until('the log', sub { $count->() >= $fences && slurp_file($registry->logfile) =~ /accepts no newcomers for \d+ s: $reason/ }),
		"$what: the log says that there is a fence, and why");
	is($count->(), $fences, "$what: one fence");
}

# Whatever the time of the acceptance.
sub begins_after_fence ($generator, $what)
{
	is(sql($registry, qq{
		SELECT p.epoch + make_interval(secs => n.granted_from * p.tick_us / 1e6)
		       >= s.fence_base + s.longest_grant + make_interval(secs => 2 * $bound - 0.01)
		  FROM uid_fleet_node n JOIN uid_fleet_pool p USING (pool), uid_fleet_state s
		 WHERE n.generator = 'uid_generators.$generator' AND n.incarnation <> 0}),
		't', "$what: its grant begins after the fence");
}

my $fenced = qr/the registry may have lost grants and accepts no newcomer yet\nHINT:  Try again after \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/;

# A failover with all grants.

new_standby($first, $second);
goes_on('three members draw by all paths', @loops);
# No call is answered after the standby has caught up.
my $session = hold_open($first);
$session->query_safe('BEGIN; LOCK TABLE uid_fleet_state IN EXCLUSIVE MODE');
$first->wait_for_catchup($second);
$first->stop('immediate');
my @before = grants_of(@names);
begin_small('c', 'late');
$second->promote;
$registry = $second;
like(fails_with('c', 'late', qr/newcomer/), $fenced, 'failover: a newcomer is told from when on it is accepted')
  or die 'there is no fence to wait for';
wait_for_fence(1, 'timeline has changed from 1 to 2', 'failover');
goes_on('failover: members go on', grep { $_ != $small{late} } @loops);
keeps_nodes('failover', @before);
goes_on('failover: after the fence the newcomer is accepted', $small{late});
begins_after_fence('late', 'failover');

end_small('c', 'late');
# A failover without the last grants. One member that has a grant which is lost does not show it: its registrar stands
# still. It draws to the end of that grant.

new_standby($second, $third);
$second->poll_query_until('postgres', q{SELECT count(*) < 4 FROM uid_fleet WHERE state <> 'free' AND pool =
	(SELECT pool FROM uid_fleet_pools WHERE nodes = 4)}) or die 'no node is free';
$second->wait_for_catchup($third);
my $walsender = freeze_walsender($second, 'third');
begin_small('a', 'lost');
goes_on('a member draws with a grant that the standby does not have', $small{lost});
my ($registrar) = background_pids($members{a}, 'registrar');
freeze_process($registrar);
# The walsender must not send anything any more.
$second->kill9;
kill 'KILL', $walsender;
poll_until('the end of the walsender', sub { !kill 0, $walsender }) or die 'the walsender lives';
@before = grants_of('b', 'c');
begin_small('c', 'late');
$third->promote;
$registry = $third;
like(fails_with('c', 'late', qr/newcomer/), $fenced, 'lost grants: a newcomer is refused');
is(sql($third, q{SELECT count(*) FROM uid_fleet WHERE generator LIKE '%lost'}), 0, 'lost grants: one is not known');
wait_for_fence(2, 'timeline has changed from 2 to 3', 'lost grants');
goes_on('lost grants: after the fence it is accepted', $small{late});
begins_after_fence('late', 'lost grants');
keeps_nodes('lost grants', @before);
thaw($registrar);
goes_on('lost grants: the member that stood still goes on', @loops[0 .. 3]);
end_small('c', 'late');
end_small('a', 'lost');

# The registry is restored from yesterday's backup.

# New generators of the default layout, on all members.
my $series = 0;
sub many_grants
{
	$series++;
	foreach my $name (@names)
	{
		foreach my $i (1 .. 2)
		{
			my $generator = "next_${series}_$i";
			sql($members{$name}, "SELECT uid_generator_create('$generator')");
			push @loops, background_loop($members{$name}, pace => 0.2, reconnect => 1,
				sql => "SELECT string_agg(uid_next('uid_generators.$generator')::text, E'\\n') FROM generate_series(1, 20)");
		}
	}
	goes_on('many grants', living());
}

sub put_back ($backup)
{
	$registry->stop('immediate');
	system_or_bail('rm', '-rf', $registry->data_dir);
	system_or_bail('cp', '-a', $backup, $registry->data_dir);
}

$third->backup('yesterday');
many_grants();
put_back($third->backup_dir . '/yesterday');
$third->append_conf('postgresql.conf', "restore_command = 'false'\n");
$third->set_recovery_mode;
begin_small('b', 'late_again');
start_node($third);
$third->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
like(fails_with('b', 'late_again', qr/newcomer/), $fenced, 'backup: a newcomer is refused');
wait_for_fence(3, 'timeline has changed from 3 to 4', 'backup');
goes_on('backup: all members go on, and after the fence the newcomer', living());
begins_after_fence('late_again', 'backup');

# The same timeline, host and directory, but the files are copies. The newcomer begins when there is a fence already, which
# therefore lasts longer.
end_small('b', 'late_again');
sql($third, "UPDATE uid_fleet_state SET longest_grant = '20 s'");
$third->stop;
system_or_bail('cp', '-a', $third->data_dir, $third->basedir . '/copy');
start_node($third);
many_grants();
put_back($third->basedir . '/copy');
start_node($third);
ok(poll_until('the log', sub { slurp_file($third->logfile) =~ /refuses all members: .*\n.*It differs: directory has changed/ }),
	'copy: the registry grants nothing, and the log says why');
sql($third, "SELECT uid_fleet_admit('uid_fleet', 'successor')");
wait_for_fence(4, 'an administrator has said what it is', 'copy');
begin_small('b', 'last');
like(fails_with('b', 'last', qr/newcomer/), $fenced, 'copy: a newcomer is refused');
goes_on('copy: all members go on, and after the fence the newcomer', living());
begins_after_fence('last', 'copy');

assert_unique(stop_loop(@loops));

$_->stop foreach @members{@names}, $third;
done_testing();
