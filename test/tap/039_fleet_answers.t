# What a member does with the answers of its registry: those that are late, lost or repeated, those whose commit nobody has
# awaited, and those of another registry (030_member.t has those that no registry gives). Then a segment that several members
# draw from.
#
# Expected: a grant counts once, and only when it is durable. A member that is killed between the registry's commit and its
# answer keeps its node.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Pages;
use Trouble;

my ($registry, $other) = map { new_node($_, conf => "autovacuum = off\n") } 'registry', 'other';
start_node($_) foreach $registry, $other;
make_registry($registry, longest => 20, bound => 1, keeps => 'failovers');
make_registry($other, longest => 20, bound => 1);
my $member = new_server('member', conf => registry_setting($registry) . "uidgen.max_wait = '1min'\nautovacuum = off\n");
my $log = $member->logfile;
my @drawn;

sub drawn_from ($generator, $count = 1)
{
	my @ids = split /\n/, $member->safe_psql('postgres', "SELECT uid_next('uid_generators.$generator') FROM generate_series(1, $count)");
	push @drawn, map { "$generator $_" } @ids;
	return @ids;
}

sub rows
{
	return $registry->safe_psql('postgres', 'SELECT count(*), md5(string_agg(n::text, $$,$$ ORDER BY layout, node)) FROM uid_registry.node n');
}

# A generator asks, its registrar stands still, and the registry commits.
sub commit_unheard ($ask)
{
	my $holder = hold_up_registry($registry);
	my $session = hold_open($member);
	my $before = rows();
	$ask->($session);
	await_held_call($registry);
	my ($registrar) = background_pids($member, 'registrar');
	freeze_process($registrar);
	$holder->quit;
	poll_until('the commit', sub { rows() ne $before }) or die 'no commit';
	return ($session, $registrar);
}

sub newcomer ($name)
{
	$member->safe_psql('postgres', "SELECT uid_generator_create('$name')");
	return sub ($session) { send_query($session, "SELECT uid_next('uid_generators.$name')") };
}

drawn_from('uid_default');

# The answer comes late: the call was given up, and its repeat changes nothing.
{
	my ($session, $registrar) = commit_unheard(newcomer('late'));
	my ($count) = split /\|/, rows();
	Time::HiRes::sleep(0.1) until slurp_file("/proc/$registrar/stat") =~ /\) T /;
	$registry->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'uid_fleet'});
	thaw($registrar);
	like((finish_query($session))[0], qr/^\d+$/, 'a call whose answer is late or lost is repeated, and the generator draws');
	is((split /\|/, rows())[0], $count, '... with the node of the first one');
	$session->quit;
}

# The member is killed after the registry's commit.
{
	my $node = node_of($member);
	my ($session, $registrar) = commit_unheard(sub ($session) { });
	kill_hard($member);
	kill 'KILL', $registrar;
	eval { $session->quit };
	start_node($member);
	drawn_from('uid_default');
	my $since = $registry->safe_psql('postgres', 'SELECT clock_timestamp()');
	ok($registry->poll_query_until('postgres', "SELECT count(*) > 0 FROM uid_registry.node WHERE node = $node AND heard > '$since'"),
		'a member that is killed before it has the answer renews its grant');
	is(node_of($member), $node, '... and keeps its node');
}

# A host whose processes all stand still accepts connections and answers nothing. It holds up neither calls of the other one,
# nor, when it stops in the middle of a call, what is drawn in grants.
{
	my $pid = freeze_process(postmaster_pid($other));
	set_conf($member, registry_setting($other, $registry));
	cmp_ok(drawn_from($_), '==', 1, "a host of the line does not answer, and $_ gets its node") foreach grep { newcomer($_) } qw(past past_again);
	thaw($pid);
	set_conf($member, registry_setting($registry));

	my $holder = hold_up_registry($registry);
	my $session = hold_open($member);
	newcomer('halted')->($session);
	await_held_call($registry);
	my $called = $registry->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE usename = 'uid_fleet'});
	my @frozen = map { freeze_process($_) } $called, postmaster_pid($registry);
	drawn_from('uid_default');
	ok($member->poll_query_until('postgres', q{SELECT state = 'unreachable' FROM uid_registry_status WHERE generator = 'uid_generators.halted'}),
		'a call that is not answered is given up, although its cancellation is not answered either');
	drawn_from('uid_default');
	thaw($_) foreach @frozen;
	$holder->quit;
	like((finish_query($session))[0], qr/^\d+$/, '... and made again when the host answers');
	$session->quit;
}

# The registry commits, but a standby does not have it: whoever cancels the wait gets the answer, with a warning.
{
	set_conf($registry, "synchronous_standby_names = 'nobody'");
	my $session = hold_open($member);
	newcomer('unsafe')->($session);
	my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'uid_fleet' AND wait_event = 'SyncRep'};
	foreach my $time (1, 2)
	{
		$registry->poll_query_until('postgres', $waits) or die 'no call waits';
		$registry->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'uid_fleet' AND wait_event = 'SyncRep'});
	}
	isnt($member->safe_psql('postgres', q{SELECT state FROM uid_registry_status WHERE generator = 'uid_generators.unsafe'}), 'granted', 'a grant that no standby has does not count');
	is($member->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%unsafe%' AND state = 'active' AND pid <> pg_backend_pid()}), 1, '... and nothing is drawn');
	set_conf($registry, "synchronous_standby_names = ''");
	like((finish_query($session))[0], qr/^\d+$/, '... until one has it');
	$session->quit;
}

# A refusal is of what was asked, and not of what is asked after an alteration.
{
	my ($first, $second) = map { "uid_next('uid_generators.$_')" } qw(static_1 static_2);
	$member->safe_psql('postgres', "SELECT uid_generator_create('static_$_', worker_policy => 'static', worker_number => 31, datacenter_id => 31)") foreach 1, 2;
	$member->safe_psql('postgres', "SELECT $first");
	my $fails = sub { (sqlstate($member, "SET uidgen.max_wait = '100ms'; SELECT $second"))[1] };
	ok(poll_until('a refusal', sub { $fails->() =~ /55000.*no node is free/s }), 'a node that another generator has is refused');
	my $holder = hold_up_registry($registry);
	$member->safe_psql('postgres', q{SELECT uid_generator_alter('uid_generators.static_2', worker_number => 30)});
	unlike($fails->(), qr/no node is free/, '... another one, which is asked for, is not');
	$holder->quit;
	like($member->safe_psql('postgres', "SELECT $second"), qr/^\d+$/, '... but granted');
}

# Another fleet's registry answers: the grants in hand last to their ends, and nobody joins it.
set_conf($member, "uidgen.max_wait = 1s\nuidgen.registry = '" . registry_line($other) . "'");
$member->poll_query_until('postgres', q{SELECT current_setting('uidgen.registry') LIKE '%port=} . $other->port . q{ %'}) or die 'no reload';
drawn_from('uid_default');
$member->safe_psql('postgres', "SELECT uid_generator_create('stray')");
like((sqlstate($member, q{SELECT uid_next('uid_generators.stray')}))[1], qr/55000/, 'a member does not join another fleet');
is($other->safe_psql('postgres', 'SELECT count(*) FROM uid_registry.node'), 0, '... whose registry grants nothing');
$member->safe_psql('postgres', 'SELECT uid_fleet_move()');
ok(poll_until('a node of the other fleet', sub { try_sql($member, q{SELECT uid_next('uid_generators.stray')}) =~ /^\d+$/ }), '... until it is told to move');

# A segment of the fleet.
{
	my @members = ($member, map { new_server($_, conf => registry_setting($registry) . "uidgen.max_wait = '1min'\nautovacuum = off\n") } 'second');
	set_conf($member, "uidgen.registry = '" . registry_line($registry) . "'");
	$member->poll_query_until('postgres', q{SELECT current_setting('uidgen.registry') LIKE '%port=} . $registry->port . q{ %'}) or die 'no reload';
	$member->safe_psql('postgres', 'SELECT uid_fleet_move()');

	# Leaf's table becomes segments of the fleet. Expected: a member that has fetched a block of each draws without the registry.
	my $table = q{CREATE TABLE old_leaf_alloc (biz_tag text, max_id bigint, step integer); INSERT INTO old_leaf_alloc VALUES ('users', 4001, 2000), ('bills', 1, 100)};
	sql($registry, "$table; " . block_of('docs/originals/leaf.md', qr/INSERT INTO uid_registry/));
	$_->safe_psql('postgres', "$table; CREATE ROLE leaf; " . block_of('docs/originals/leaf.md', qr/segment_attach/)) foreach @members;
	my $fetch = 'SET ROLE leaf; ' . block_of('docs/fleet-reference.md', qr/count\(segment_next/);
	my $users = q{SET ROLE leaf; SET uidgen.max_wait = '100ms'; SELECT segment_next('users')};
	is_deeply([ map { $_->safe_psql('postgres', "$fetch; $users") } @members ], [ "2\n4005", "2\n6005" ], 'segments of Leaf, on two members');
	$members[1]->restart;
	foreach my $fetched (0, 1)
	{
		$members[1]->safe_psql('postgres', $fetch) if $fetched;
		my $holder = hold_up_registry($registry);
		is(sqlstate($members[1], $users), $fetched ? '00000' : '55000', 'without the registry, after a restart' . ($fetched ? ' and a fetch' : ''));
		$holder->quit;
	}
	my $largest = $members[1]->safe_psql('postgres', q{SELECT pg_sequence_last_value('uid_segments.users')});
	like(sql($registry, block_of('docs/originals/leaf.md', qr/FROM uid_registry/)), qr/greatest\(max_id, @{[ $largest + 1 ]}\) WHERE biz_tag = 'users';/, 'the way back is above all members');

	sql($registry, "INSERT INTO uid_registry.segment (name, max_step) VALUES ('orders', 100)");
	my $attach = block_of('docs/segments.md', qr/segment_attach\('orders'\)/);
	is_deeply([ map { $_->safe_psql('postgres', $attach) =~ /^(\d+)$/m } @members ], [ 2, 103 ], 'a new segment loses one value, by which the registry is tested');
	$members[1]->safe_psql('postgres', statement_of('docs/fleet.md', qr/segment_attach/));
	my @loops = map { background_loop($_, clients => 2, sql => q{SELECT segment_next('orders') FROM generate_series(1, 7)}, on_error_stop => 0, reconnect => 1, pace => 0.02) } @members;
	goes_on('two members draw one series', @loops);
	crash($members[1]);
	kill_hard($registry);
	start_node($registry);
	goes_on('... when one of them and the registry have crashed', @loops);
	my @logs = stop_loop(@loops);
	assert_unique(@logs);
	$members[1]->stop;

	# A loss that is not announced. The member that has the last values asks first.
	my $draw = q{SELECT segment_next('orders') FROM generate_series(1, 300)};
	my @values = split /\n/, $member->safe_psql('postgres', $draw);
	sql($registry, q{ALTER TABLE uid_registry.segment DISABLE TRIGGER ALL; UPDATE uid_registry.segment SET next_value = next_value - 50 WHERE name = 'orders'; ALTER TABLE uid_registry.segment ENABLE TRIGGER ALL});
	push @values, split /\n/, $member->safe_psql('postgres', $draw);
	is(repeated(@values), '', 'after a loss that a member has shown, no value comes twice');
	is(sql($registry, q{SELECT lost_at IS NOT NULL FROM uid_registry.segment WHERE name = 'orders'}), 't', '... and the row says when it was noticed');

	# Commits may be lost: a block could have no end.
	sql($registry, 'SELECT uid_registry.fence()');
	my $refuses = sub ($pattern) {
		my $error;
		return poll_until("$pattern", sub { $error = (sqlstate($member, "SET uidgen.max_wait = '100ms'; $draw"))[1]; $error =~ /55000.*$pattern/s }) || diag $error;
	};
	ok($refuses->('SET fence = DEFAULT'), 'after a fence a segment gives no values, and the error says what to do');
	sql($registry, q{UPDATE uid_registry.segment SET next_value = next_value + 1000, fence = DEFAULT WHERE name = 'orders'});
	my $more = '';
	poll_until('values', sub { ($more = try_sql($member, $draw)) ne '' }) or die 'no values';
	push @values, split /\n/, $more;
	is(repeated(@values), '', '... until its counter is raised');
	sql($registry, q{SELECT uid_registry.promise('nothing')});
	ok($refuses->('keeps nothing'), 'without a promise it gives none');
}

is(repeated(@drawn), '', 'no id came twice');
$_->stop foreach $member, $registry, $other;
done_testing();
