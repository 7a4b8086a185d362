# Processes that end, and sequences that are dropped, while something is under way between a session and a background
# process: no slot is lost, none is found again by the next sequence, nobody waits for long, and no process touches memory
# that is gone. (001_matrix.t kills processes under load.)
use Time::HiRes;
use UidgenTest 'preloaded';
use Fleet;
use Trouble;

my $conf = "autovacuum = off\nuidgen.max_wait = 1min\n";
my $registry = make_registry(new_server('registry', conf => $conf));
$registry->safe_psql('postgres', "INSERT INTO uid_registry.segment (name, next_value) VALUES ('a', 1), ('b', 1000000)");
my $node = new_server('node', conf => registry_setting($registry) . $conf);
seed_random();

# A process "uidgen NAME", once it is there.
sub worker ($name)
{
	my @found;
	poll_until("a $name", sub { @found = background_pids($node, $name) }) or die "no $name";
	return $found[0];
}

# It ends at SIGTERM.
sub ends ($name, $what)
{
	my $pid = worker($name);
	kill 'TERM', $pid;
	ok(poll_until("the end of $name", sub { !kill 0, $pid }), "$name ends $what");
}

sub waits_for_registry ($count)
{
	my $event = wait_event($node, 'UidgenGrant');
	return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM pg_stat_activity WHERE wait_event = '$event' AND backend_type = 'client backend'");
}

# A session that waits for a grant or a block is terminated, and another one waits on.
sql($node, "SELECT uid_generator_create('g'); SELECT segment_attach('a', step => 100, max_step => 100)");
my $holder = hold_up_registry($registry);
my @calls = (q{SELECT uid_next('uid_generators.g') > 0}, q{SELECT segment_next('a') > 0});
my @sessions = map { my $call = $_; map { [ hold_open($node), $call ] } 1, 2 } @calls;
send_query(@$_) foreach @sessions;
waits_for_registry(4) or die 'no session waits';
is(sql($node, "SELECT count(pg_terminate_backend(pid, 60000)) FROM (SELECT min(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT%next(%' AND pid <> pg_backend_pid() GROUP BY query) AS s(pid)"), 2, 'of four sessions that wait for the registry two are terminated');
$holder->quit;
is(join('', map { (eval { finish_query($_->[0]) })[0] // '' } @sessions), 'tt', '... and the others get their values');
is(sql($node, 'SELECT generators, segments FROM uid_stat_server'), '1|1', '... from the slots that they had');
eval { $_->[0]->quit } foreach @sessions;

# A call that has its grant, and fails before its row of worker_node has an id. The next one draws that.
{
	my $row = q{FROM worker_node WHERE generator = 'uid_generators.late_row'};
	my $session = hold_open($node);
	sql($node, q{SELECT uid_generator_create('late_row')});
	$session->query_safe('BEGIN; ALTER SEQUENCE worker_node_id_seq CACHE 1');
	like(sqlstate($node, q{SET lock_timeout = '1s'; SELECT uid_next('uid_generators.late_row')}), qr/^55P03$/, 'a call has no id for its row');
	$session->quit;
	ok(poll_until('the row', sub { sql($node, "SELECT uid_next('uid_generators.late_row') > 0; SELECT count(*) $row") =~ /^1$/m }), '... and the next one has one');
	is(sql($node, "SELECT n.datacenter_id = d.datacenter_id AND n.worker_id = d.worker_id FROM uid_decode(uid_next('uid_generators.late_row'), 'uid_generators.late_row') AS d, (SELECT * $row) AS n"), 't', '... for the node of its ids');
	sql($node, 'DROP SEQUENCE uid_generators.late_row');
}

# A sequence is dropped while the registry is asked for it. The next one of its kind gets its slot at once, because the slot
# that was freed last is used first, and what the registry then answers is for neither. Slots are freed when others are made,
# here of the other kind.
my $fleet = sql($node, 'SELECT fleet FROM uid_registry_status LIMIT 1');
sql($node, "DROP SEQUENCE uid_segments.a; SELECT segment_attach('x', 'a', step => 100, max_step => 100), uid_generator_create('h')");
foreach my $case (
	{ slots => 'generators', dropped => 'uid_generators.h', draw => q{uid_next('uid_generators.h')}, lacks => qr/has no node from the registry/,
		others => [ q{EXECUTE format('CREATE SEQUENCE passing%s', i)}, q{segment_next(format('passing%s', i))} ],
		next => q{SELECT uid_generator_create('k')}, next_draw => q{uid_next('uid_generators.k') > 0}, value => 't' },
	{ slots => 'segments', dropped => 'uid_segments.x', draw => q{segment_next('x')}, lacks => qr/has no values from the registry/,
		others => [ q{PERFORM uid_generator_create('passing' || i)}, q{uid_next(format('uid_generators.passing%s', i)::regclass)} ],
		next => attached_segment('y', 'b', $fleet), next_draw => q{segment_next('y')}, value => 1000000 })
{
	my $count = "SELECT $case->{slots} FROM uid_stat_server";
	my ($create, $draw) = @{ $case->{others} };
	$holder = hold_up_registry($registry);
	my $session = hold_open($node);
	send_query($session, "SET uidgen.max_wait = '100ms'; SELECT $case->{draw}");
	await_held_call($registry);
	like((finish_query($session))[1], $case->{lacks}, "$case->{dropped} waits for the registry in vain");
	my $slots_before = sql($node, $count);
	my $began = Time::HiRes::time();
	sql($node, "DROP SEQUENCE $case->{dropped}");
	cmp_ok(Time::HiRes::time() - $began, '<', 30, '... and is dropped without a wait for the registrar');
	sql($node, "SET uidgen.max_wait = 0; DO \$\$ BEGIN FOR i IN 1 .. 40 LOOP $create; BEGIN PERFORM $draw; EXCEPTION WHEN object_not_in_prerequisite_state THEN END; END LOOP; END \$\$");
	is(sql($node, $count), $slots_before - 1, '... its slot is freed');
	sql($node, $case->{next});
	send_query($session, "RESET uidgen.max_wait; SELECT $case->{next_draw}");
	waits_for_registry(1) or die 'no session waits';
	is(sql($node, $count), $slots_before, '... and used by another one');
	$holder->quit;
	is((finish_query($session))[0], $case->{value}, '... which gets values of its own');
	$session->quit;
}
# On a busy machine the registrar may have given up its call for the former generator, which then has no row.
is($registry->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE holder ~ 'generator uid_generators.k,'), count(DISTINCT node) = count(*) FROM uid_registry.node WHERE holder ~ 'generator uid_generators.[hk],'}), '1|t', 'the second generator has another grant than the registry gave for the first');
my $granted = q{SELECT string_agg(substr(generator, 16), '' ORDER BY generator) FROM uid_registry_status WHERE generator !~ 'passing'};
is(sql($node, $granted), 'gk', '... of which nothing is left');
$node->restart;
is(sql($node, "SELECT uid_next('uid_generators.k') > 0, uid_next('uid_generators.g') > 0; $granted"), "t|t\ngk", '... nor after a restart');

# Background processes end at SIGTERM, whatever they do. Calls start others.
{
	my $session = hold_open($node);
	ends('registrar', 'while it has nothing to do');
	my $postmaster = postmaster_pid($registry);
	my %held_up = (
		'is asked for a grant' => [ sub { $holder = hold_up_registry($registry) }, sub { $holder->quit } ],
		'is connected to' => [ sub { await_no_call($registry); freeze_process($postmaster) }, sub { thaw($postmaster) } ]);
	foreach my $how (sort keys %held_up)
	{
		my ($hold_up, $let_go) = @{ $held_up{$how} };
		$hold_up->();
		sql($node, "SELECT uid_generator_create('again')");
		send_query($session, q{SELECT uid_next('uid_generators.again') > 0});
		waits_for_registry(1) or die 'no session waits';
		await_held_call($registry) if $how =~ /asked/;
		ends('registrar', "while the registry $how");
		$let_go->();
		is((finish_query($session))[0], 't', '... and the next one brings the grant');
		sql($node, 'DROP SEQUENCE uid_generators.again');
	}

	# A writer of rows that waits for a lock.
	$session->query_safe('BEGIN; LOCK TABLE worker_node IN ACCESS EXCLUSIVE MODE');
	sql($node, "SELECT uid_generator_create('late'); SELECT uid_next('uid_generators.late')");
	ends('node writer', 'while it waits for a lock');
	$session->query_safe('COMMIT');
	ok(poll_until('the row', sub { sql($node, "SELECT uid_next('uid_generators.late'); SELECT count(*) FROM worker_node WHERE generator = 'uid_generators.late'") =~ /^1$/m }), '... and a later one writes the row');
	$session->quit;
}

# A refiller at random points of its work, and a DROP while it does not move. If it was stopped while it held the slot's
# lock, the DROP waits until it goes on.
{
	my $large = "mode => 'cached', spread => false, max_ahead_ms => 600000, lease_ms => 60000, schedule_ms => 1";
	my ($ended, $dropped) = (0, 0);
	foreach my $round (1 .. 10)
	{
		sql($node, "SELECT uid_generator_create('large', $large); SELECT uid_next('uid_generators.large'); SELECT uid_generator_create('other', $large); SELECT uid_next('uid_generators.other')");
		my $pid = 0; # calls start one, at most once a second
		poll_until('a refiller', sub { sql($node, q{SELECT count(*) FROM unnest(uid_next_array('uid_generators.large', 10000))}); ($pid) = background_pids($node, 'refiller') }) or die 'no refiller';
		Time::HiRes::sleep(rand 0.02);
		freeze_process($pid);
		my $session = hold_open($node);
		send_query($session, 'DROP SEQUENCE uid_generators.large');
		my $waits = q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DROP SEQUENCE %large' AND wait_event_type = 'LWLock'};
		$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'DROP SEQUENCE %large' AND state = 'active' AND wait_event_type IS DISTINCT FROM 'LWLock')") or die;
		my $is_free = sql($node, $waits) eq '0';
		thaw($pid) unless $is_free;
		$dropped++ if (finish_query($session))[1] eq '';
		thaw($pid);
		is(sql($node, "SELECT count(DISTINCT uid_next('uid_generators.other')) FROM generate_series(1, 10000)"), 10000, 'another generator goes on');
		kill 'TERM', $pid;
		$ended++ if poll_until('the end', sub { !kill 0, $pid });
		sql($node, 'DROP SEQUENCE uid_generators.other');
		$session->quit;
	}
	is("$dropped $ended", '10 10', 'a refiller stops, goes on and ends at any point');
}

unlike(slurp_file($_->logfile), qr/terminated by signal|PANIC|TRAP/, $_->name . ' has not crashed') foreach $node, $registry;
$_->stop foreach $node, $registry;
done_testing();
