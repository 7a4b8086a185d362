# Drawing inside the grants of a fleet's registry: which node ids have, when a node changes, and what a draw does when
# there is no grant. Registry and members are servers of their own. (032_registrar.t tests the registrar.)
use Time::HiRes;
use UidgenTest 'preloaded';
use Runbook;

my $registry = new_node('registry');
use_fake_clock($registry);
start_uidgen($registry);
$registry->safe_psql('postgres', q{CREATE ROLE uid_fleet LOGIN; SELECT uid_fleet_admit('uid_fleet', 'new')});
my $conninfo = 'host=' . $registry->host . ' port=' . $registry->port . ' dbname=postgres user=uid_fleet';

sub member ($name, %opts)
{
	my $conf = "uidgen.registry = '$conninfo'\n" . ($opts{conf} // '');
	my $node = new_node($name, conf => $conf);
	use_fake_clock($node) if $opts{fake_clock};
	start_uidgen($node);
	return $node;
}

sub status ($node, $generator, $columns)
{
	return sql($node, "SELECT $columns FROM uid_generator_status WHERE generator = '$generator'::regclass");
}

# The error of a draw: the whole message, in verbose form.
sub refused ($node, $sql, $setting = 'SET uidgen.max_wait = 0')
{
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$setting;\n$sql");
	return $code == 0 ? "no error: $out" : $err;
}

my $default = 'uid_generators.uid_default';
my $a = member('a');
my $b = member('b');

# The nodes in ids, and those that the registry has granted

my $nodes_of = q{SELECT DISTINCT d.datacenter_id << 5 | d.worker_id FROM unnest(uid_next_array(5000)) u, uid_decode(u) d};
my %node = map { $_->name => sql($_, $nodes_of) } $a, $b;
like($node{a}, qr/^\d+$/, 'all ids of a member have one node');
isnt($node{a}, $node{b}, 'members have different nodes');
is(status($a, $default, 'protection, node, granted_until > leased_until'), "registry|$node{a}|t",
	'the status shows the grant');
is(status($a, $default, 'datacenter_id << 5 | worker_id'), $node{a}, 'the status shows the fields of the node');
is(sql($a, 'SELECT count(DISTINCT u) FROM unnest(uid_next_array(20000)) u'), 20000, 'a batch');
is(sql($a, 'SELECT cardinality(uid_next_array(20000))'), 20000, 'an array');

wait_for_node_rows($a, $default, 1);
is(sql($a, "SELECT datacenter_id << 5 | worker_id FROM worker_node WHERE generator = '$default'"),
	$node{a}, 'worker_node shows the node');

# A datacenter id: the registry keeps it, unless the layout cannot hold it

foreach my $number (7, 40)
{
	my $drawn = sql($a, qq{
		SET client_min_messages = error;
		SET uidgen.datacenter_id = $number;
		SELECT FROM uid_generator_create('number_$number');
		SELECT d.datacenter_id FROM uid_decode(uid_next('uid_generators.number_$number')) d});
	like($drawn, $number == 7 ? qr/^7$/m : qr/^\d+$/m, "with datacenter id $number a generator draws");
}

# Every preset, on two members: no id twice

sub ids_of_presets ($node)
{
	my $ids = sql($node, q{
		SELECT g.preset || ' ' || u FROM uid_generator g, LATERAL unnest(uid_next_array(g.generator, 200)) u
		 WHERE g.preset <> 'baidu' AND g.generator::text LIKE '%of_preset%'});
	my $path = $node->basedir . '/ids';
	append_to_file($path, "$ids\n");
	return $path;
}
# The epoch of baidu is the day of creation, which may differ. Other presets have the widths of the default generator.
foreach my $node ($a, $b)
{
	sql($node, q{SELECT uid_generator_create('of_preset_' || preset, preset, own_pool => true) FROM uid_preset WHERE preset NOT LIKE 'baidu%'});
	sql($node, q{SELECT uid_generator_create('of_preset_baidu_cached', 'baidu_cached', epoch => '2026-01-01')});
	sql($node, q{SELECT uid_generator_create('day', 'baidu', epoch => '2026-01-01')});
}
assert_unique(map { ids_of_presets($_) } $a, $b);
isnt(sql($a, "SELECT uid_next('uid_generators.day') & ((1 << 22) - 1)"),
	sql($b, "SELECT uid_next('uid_generators.day') & ((1 << 22) - 1)"), 'the preset baidu');

# Two presets of one layout that were made on two days, and a split of the node that is another one: ids could be equal. So
# the second is refused, unless it was asked for. The hint says what to run.

sub is_refused ($create, $why)
{
	my $draws = q{SELECT uid_next('uid_generators."my ""own"""')};
	my $refusal = '';
	sql($b, "SELECT uid_generator_create('my \"own\"', $create)");
	ok(poll_until('the refusal', sub { ($refusal = refused($b, $draws)) =~ /generators of the same widths in this fleet have another $why/ }),
		"$create: another $why is refused") or diag($refusal);
	fires($b, 'UidgenMemberRefused');
	my ($remedy) = $refusal =~ /HINT:  Drop it, and run (SELECT .*?\))\. Or pass/m;
	sql($b, q{SELECT uid_generator_drop('uid_generators."my ""own"""')});
	sql($b, $remedy =~ s/'name'/'my "own"'/r);
	like(sql($b, $draws), qr/^\d+$/, '... and with the statement of the hint it draws');
	sql($b, q{SELECT uid_generator_drop('uid_generators."my ""own"""')});
}
is_refused(q{'baidu_cached', epoch => '2026-01-02'}, 'epoch');
is_refused(q{'leaf', epoch => '2025-06-01 00:00+00'}, 'epoch');
is_refused(q{datacenter_bits => 2, worker_bits => 8}, 'split');
sql($a, q{SELECT uid_next(uid_generator_create('wide', time_bits => 39, datacenter_bits => 0, worker_bits => 12))});
is_refused(q{time_bits => 39, datacenter_bits => 2, worker_bits => 10}, 'split');
is(sql($registry, q{SELECT count(*) FROM uid_fleet_pools WHERE collides_with IS NOT NULL AND preset LIKE 'baidu%'}), 0,
	'no ids of the two days are equal');
sql($b, q{SELECT uid_generator_create('next_day', 'baidu_cached', epoch => '2026-01-02', own_pool => true)});
sql($b, block_of('docs/fleet.md', qr/old_ids/));
like(sql($b, q{SELECT uid_next('uid_generators.old_ids')}), qr/^\d+$/, 'another epoch or split that was asked for draws');
like(sql($b, q{SELECT uid_next('uid_generators.next_day')}), qr/^\d+$/, '... in a pool of its own');
is(sql($registry, q{SELECT string_agg(v.epoch::date::text, ' ' ORDER BY v.epoch) FROM uid_fleet_pools v JOIN uid_fleet_pool p USING (pool)
	  WHERE v.collides_with IS NOT NULL AND p.tick_us = 1000000}), '2026-01-01 2026-01-02', '... and the registry shows which ids may be equal');

# Cached mode

sql($_, q{SELECT uid_generator_create('cached', mode => 'cached', spread => false)}) foreach $a, $b;
{
	my $generator = 'uid_generators.cached';
	my $nodes = "SELECT DISTINCT d.datacenter_id << 5 | d.worker_id FROM unnest(uid_next_array('$generator', 50000)) u, uid_decode(u) d";
	my $of_a = sql($a, $nodes);
	like($of_a, qr/^\d+$/, 'cached mode: one node');
	is($of_a, status($a, $generator, 'node'), 'cached mode: the one of the grant');
	isnt($of_a, sql($b, $nodes), 'cached mode: members have different nodes');
}

# Under load, with nodes that change: generators of one layout share no id, whatever their mode and server.

my @loads = map {
	background_loop($_, clients => 2, sql => 'SELECT uid_next()'),
	background_loop($_, clients => 1, sql => q{SELECT unnest(uid_next_array('uid_generators.cached', 20))}),
	background_loop($_, clients => 1, sql => q{SELECT uid_next('uid_generators.cached_64')})
} $a, $b;
my %nodes_in_use;
foreach (1 .. 4)
{
	$nodes_in_use{ status($a, $default, 'node') } = 1;
	sql($a, 'SELECT uid_fleet_move()');
	ok(poll_until('a node', sub { status($a, $default, 'node') ne '' }), 'a member that begins anew gets a node');
	Time::HiRes::sleep(0.3);
}
assert_unique(map { stop_loop($_) } @loads);
cmp_ok(scalar keys %nodes_in_use, '>', 1, 'its node has changed');

# Joining with a reload, while sessions draw

my $late = new_server('late');
my $before = sql($late, $nodes_of);
is(status($late, $default, 'protection'), 'auto', 'without a registry');
is(status($late, $default, 'granted_until IS NULL'), 't', 'and without a grant');
is(scalar(my @registrars = background_pids($late, 'registrar')), 0, '... and no process runs');
my $loop = background_loop($late, clients => 3, sql => 'SELECT uid_next()');
# A query that runs on over the reload. Its session reads the setting afterwards.
my $long = hold_open($late);
send_query($long, 'SELECT count(DISTINCT u) FROM (SELECT uid_next() u, pg_sleep(0.0002) FROM generate_series(1, 10000)) s');
set_conf($late, "uidgen.registry = '$conninfo'");
ok(poll_until('the registry', sub { status($late, $default, 'protection, node IS NOT NULL') eq 'registry|t' }),
	'a reload is enough to join');
my $joined = status($late, $default, 'node');
ok(poll_until('ids with the granted node', sub { sql($late, $nodes_of) eq $joined }), 'ids have the granted node');
is((finish_query($long))[0], 10000, 'a query goes on over the change');
$long->quit;
my @logs = stop_loop($loop);
assert_unique(@logs);
ok(poll_until('the row', sub { sql($late, "SELECT count(*) FROM worker_node WHERE generator = '$default'") >= 2 }),
	'the change of node has a row of its own');

# Leaving and joining again, without a draw in between

set_conf($late, "uidgen.registry = ''");
ok(poll_until('no registrar', sub { !background_pids($late, 'registrar') }), 'the registrar ends when the server leaves');
set_conf($late, "uidgen.registry = '$conninfo'");
ok(poll_until('a registrar', sub { sql($late, $nodes_of) eq $joined && background_pids($late, 'registrar') == 1 }),
	'... and the next draw starts one, to renew the grant');

# Leaving with a reload

set_conf($late, "uidgen.registry = ''");
ok(poll_until('no registry', sub { status($late, $default, 'protection') eq 'auto' }), 'a reload is enough to leave');
is(sql($late, $nodes_of), $before, 'ids have the own node again');
is( join(' ', slurp_file($late->logfile) =~ /LOG:  generator "uid_default" .* draws with .*\n.*Protection: (\w+)\./g),
	'auto registry auto', '... as the log shows');

my $drawn_until = sql($late, "SELECT leased_until FROM uid_generator_status WHERE generator = '$default'::regclass");

# Joining after a setting that was wrong: the registry still learns of the node that was used before. No other generator
# has the layout, so nothing else can have got that node.

sql($late, q{SELECT uid_generator_create('former', datacenter_bits => 0, worker_bits => 20, sequence_bits => 2)});
my $former = sql($late, q{SELECT worker_id FROM uid_decode(uid_next('uid_generators.former'), 'uid_generators.former')});
my $former_mark = sql($late, 'SELECT last_value FROM uid_generators.former');
foreach my $wrong ('host=/nowhere', 'host=/nowhere dbname=ids')
{
	set_conf($late, "uidgen.registry = '$wrong'");
	ok(poll_until('an error', sub { refused($late, q{SELECT uid_next('uid_generators.former')}) =~ /has no node/ }),
		'a wrong setting');
}
set_conf($late, "uidgen.registry = '$conninfo'");
ok(poll_until('ids with a granted node', sub { sql($late, $nodes_of) ne $before }), 'a server joins again');
is(sql($registry, "SELECT max(granted_until) >= '$drawn_until' FROM uid_fleet WHERE node = $before AND preset = 'snowflake'"), 't',
	'... and nobody gets the ticks of the node that it drew with outside');
sql($late, q{SET uidgen.max_wait = '1min'; SELECT uid_next('uid_generators.former')});
is(sql($registry, "SELECT granted_until >= $former_mark FROM uid_fleet_node JOIN uid_fleet_pools USING (pool) WHERE node = $former AND nodes = 1 << 20"),
	't', 'the registry knows the former node');
$late->stop;

# Joining while the clock is behind ids that were drawn before: the registry learns of their node at the first call, and
# not when the clock has caught up. No other generator has the layouts.

my $ahead = new_node('ahead');
use_fake_clock($ahead);
set_clock($ahead, '+300');
start_uidgen($ahead);
my %worker_bits = (hold => 19, error => 18);
my %drawn;
foreach my $policy (sort keys %worker_bits)
{
	sql($ahead, "SELECT uid_generator_create('$policy', datacenter_bits => 0, worker_bits => $worker_bits{$policy}, sequence_bits => 2, when_back => '$policy')");
	$drawn{$policy} = sql($ahead, "SELECT worker_id FROM uid_decode(uid_next('uid_generators.$policy'), 'uid_generators.$policy')");
}
set_clock($ahead, '+0');
set_conf($ahead, "uidgen.max_wait = 200ms\nuidgen.registry = '$conninfo'");
foreach my $policy (sort keys %worker_bits)
{
	ok(poll_until(
			"the node of '$policy'",
			sub {
				my $mark = sql($ahead, "SELECT last_value FROM uid_generators.$policy");
				refused($ahead, "SELECT uid_next('uid_generators.$policy')") =~ /ahead of the clock|clock moved backwards/
				  && sql($registry, "SELECT count(*) FROM uid_fleet_node JOIN uid_fleet_pools USING (pool) WHERE node = $drawn{$policy} AND nodes = 1 << $worker_bits{$policy} AND granted_until > $mark") eq '1';
			}),
		"'$policy', and the clock is behind: the registry knows the former node");
}
$ahead->stop;

# The registry is away

my $short = member('short', fake_clock => 1, conf => "uidgen.registry_lease = 10s\nuidgen.max_wait = 300ms\n");
sql($short, q{SET uidgen.max_wait = '1min'; SELECT uid_next()});
$short->append_conf('postgresql.conf', "uidgen.registry_lease = 60s\n");
set_clock($short, '+6s');
$short->reload;
ok($short->poll_query_until('postgres', q{SELECT granted_until > clock_timestamp() + interval '30 s' FROM uid_registry_status}),
	'a longer lease counts from the next renewal on');
sql($short, q{SELECT uid_generator_create('cached', mode => 'cached', spread => false)});
sql($short, q{SET uidgen.max_wait = '1min'; SELECT uid_next('uid_generators.cached')});
sql($short, q{SELECT uid_generator_create('never_drawn')});
my $node_of_short = status($short, $default, 'node');
$registry->stop;

like(refused($short, q{SELECT uid_next('uid_generators.never_drawn')}, ''),
	qr/ERROR:  55000: generator "never_drawn" has no node from the registry/, 'no grant, no id');
is(sql($short, $nodes_of), $node_of_short, 'a member with a grant goes on');
set_clock($short, '+25s');
is(sql($short, $nodes_of), $node_of_short, 'for as long as the grant lasts');

# A restart goes on inside the grant.
crash($short);
is(sql($short, $nodes_of), $node_of_short, 'after a crash, too');

set_clock($short, '+3600s');
is(sql($short, 'SELECT DISTINCT state FROM uid_registry_status'), 'idle', 'a generator that has not drawn for ten leases is idle');
quiet($short, 'UidgenGrantsEnd');
my $error = refused($short, 'SELECT uid_next()', '');
like($error, qr/ERROR:  55000: generator "uid_default" has no node from the registry/, 'then draws fail')
  or die 'draws without a grant';
like($error, qr/DETAIL:  The (last request to the registry failed: \S|registry has not answered yet)/, 'with the reason');
like($error, qr/HINT:  \S/, 'and a hint');
like(refused($short, 'SELECT uid_next_array(10)'), qr/has no node from the registry/, 'arrays');
like(refused($short, q{SELECT uid_next('uid_generators.cached')}), qr/"cached" has no node from the registry/,
	'cached mode');
is(status($short, $default, 'granted_until < clock_timestamp()'), 't', 'the status shows the end of the grant');
is(sql($short, "SELECT state FROM uid_registry_status WHERE generator = '$default'"), 'unreachable', '... and the state of the registry');
fires($short, 'UidgenGrantsEnd');

# The wait is bounded by uidgen.max_wait, and can be cancelled.
my $session = hold_open($short);
$session->query_safe("SET uidgen.max_wait = '1h'");
my $pid = $session->query_safe('SELECT pg_backend_pid()');
send_query($session, 'SELECT uid_next()');
ok(poll_until('the wait', sub { sql($short, "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid") eq 'Extension' }),
	'a draw waits for its grant');
sql($short, "SELECT pg_cancel_backend($pid)");
like((finish_query($session))[1], qr/canceling statement/, 'the wait can be cancelled');

# The wait ends when the registry is back.
send_query($session, 'SELECT uid_next() > 0');
set_clock($registry, '+3600s');
start_node($registry);
# No member's grant lasts that could end the wait of a start.
my $no_successor = 'SELECT uid_fleet_fence(cancel => true)';
sql($registry, $no_successor);
is((finish_query($session))[0], 't', 'a waiting draw gets its grant');
$session->quit;

# Another layout by default, above all that the fleet may have drawn in the former one

my $end = sql($registry, q{SELECT max(granted_until) FROM uid_fleet WHERE preset = 'snowflake' AND state <> 'reserved'});
foreach my $node ($a, $b)
{
	sql($node, q{SELECT uid_default_set('uid_generators.day')});
	sql($node, "SELECT uid_generator_raise('uid_generators.day', uid_lower_bound('$end', '$default') - 1)");
	is(sql($node, "SELECT uid_next() >= uid_lower_bound('$end', '$default')"), 't', 'another layout by default');
}

# A generator that has a node and has drawn nothing yet: the file's grant could be that of a generator that was dropped.

my $late_answer = member('late_answer', conf => "uidgen.max_wait = 300ms\n");
$registry->stop;
like(refused($late_answer, 'SELECT uid_next()', ''), qr/has no node from the registry/, 'a first draw fails');
start_node($registry);
sql($registry, $no_successor);
my $nodes_of_it = "SELECT count(*) FROM uid_fleet_node WHERE port = '" . $late_answer->port . "'";
ok(poll_until('the grant', sub { sql($registry, $nodes_of_it) eq '1' }), '... and its grant comes later');
$late_answer->restart;
ok(sql($late_answer, q{SET uidgen.max_wait = '1min'; SELECT uid_next()}), 'after a restart it draws');
is(sql($registry, $nodes_of_it), 2, '... with another node, as docs/fleet.md says');
like(slurp_file('docs/fleet.md'), qr/A generator that has a node but has drawn no id yet/, '... which does');
$late_answer->stop;

# No background worker for the registrar

my $crowded = member('crowded', conf => "max_worker_processes = 0\n");
$error = refused($crowded, 'SELECT uid_next()');
like($error, qr/DETAIL:  The registry has not answered yet/, 'the registry has not answered');
like($error, qr/HINT:  Check uidgen.registry, max_worker_processes and /, '... and the hint names what may be missing');

# The registry's clock has passed the end of its grants.
my $mistaken = sql($registry, q{SELECT pool FROM uid_fleet_pools WHERE preset = 'baidu_cached' AND epoch = '2026-01-02'});
my $term = sql($registry, 'SELECT term FROM uid_fleet_state');
# After a start a member asks at once.
sub draw_in_mistaken ($rows)
{
	$b->restart;
	sql($b, q{SELECT uid_next('uid_generators.next_day')});
	return poll_until('the registry knows of it', sub { sql($registry, "SELECT count(*) > 0 FROM $rows") eq 't' });
}
ok(draw_in_mistaken("uid_fleet_node WHERE pool = $mistaken AND term = $term"), 'a member of a pool calls');
sql($registry, block_of('docs/fleet.md', qr/uid_fleet_drop_pool/) =~ s/=> 7/=> $mistaken/r);
is(sql($registry, q{SELECT count(*) FROM uid_fleet_pools WHERE collides_with IS NOT NULL AND preset LIKE 'baidu%'}), 0, 'a pool without live grants is dropped');
ok(draw_in_mistaken("uid_fleet_pools WHERE pool = $mistaken"), '... and is back when the member brings it');
is(sql($registry, 'SELECT term FROM uid_fleet_state'), $term, '... whose grant is not taken for one that was lost');

$_->stop foreach $crowded, $short, $a, $b, $registry;
done_testing();
