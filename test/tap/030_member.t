# A member of a fleet: it joins, draws in its grant, renews it, restarts, draws without the registry to the grant's end,
# and shows each of this in uid_registry_status.
use UidgenTest 'preloaded';
use Clients;
use Clock;
use Fleet;

my $longest = 4;    # seconds
my $hasty = new_node('hasty', conf => "autovacuum = off\n");
use_fake_clock($hasty);
my $registry = new_node('registry', conf => "track_functions = all\nautovacuum = off\n");
start_node($registry);
make_registry($registry, longest => $longest, bound => 1, keeps => 'failovers');

my $member = new_server('member', conf => registry_setting($registry) . "uidgen.max_wait = '1min'\nautovacuum = off\n");

sub status ($columns, $generator = 'uid_generators.uid_default')
{
	return sql($member, "SELECT $columns FROM uid_registry_status WHERE generator = '$generator'");
}

sub row ($columns)
{
	return sql($registry, "SELECT $columns FROM uid_registry.node ORDER BY node");
}

# It joins.
is(sql($member, 'SELECT state, generator FROM uid_registry_status'), 'waiting|', 'before the first draw nothing is asked');
my @ids = sql($member, 'SELECT uid_next()');
my $node = status('node');
is(status('state'), 'granted', 'the first draw gets a grant');
is(row('node'), $node, '... of a node that the registry has given away');
like(row('holder'), qr/database postgres, generator uid_generators\.uid_default, preset snowflake/, '... and whose holder it can name');
is(status('fleet, longest'), sql($registry, 'SELECT fleet FROM uid_registry.registry') . "|$longest", 'the member knows its fleet');
is(status('registry'), registry_line($registry) =~ s/ connect_timeout.*//r, '... and shows the registry');
is(sql($member, "SELECT worker_id + 32 * datacenter_id FROM uid_decode($ids[0])"), $node, 'its ids have that node');

# It renews, and draws on.
my $until = row('until');
ok(poll_until('a renewal', sub { push @ids, sql($member, 'SELECT uid_next()'); row('until') > $until }), 'half of the grant later it is extended');
is(row('node'), $node, '... with the same node');
cmp_ok(status('renewals'), '>=', 2, '... as the status says');
is(sql($registry, q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'uid_fleet'}), 0, 'no connection stays open')
  or diag(sql($registry, q{SELECT query FROM pg_stat_activity WHERE usename = 'uid_fleet'}));

# It restarts, and the registry is away.
$member->restart;
push @ids, sql($member, 'SELECT uid_next()');
is(status('node'), $node, 'after a restart it has the same node');
$member->stop('immediate');
$registry->stop;
start_node($member);
push @ids, sql($member, 'SELECT uid_next()');
is(status('node'), $node, 'after a crash, too, even without the registry');
ok($member->poll_query_until('postgres', q{SELECT state = 'unreachable' AND away_since IS NOT NULL AND error <> '' FROM uid_registry_status WHERE generator IS NOT NULL}), '... which the status shows');
$member->poll_query_until('postgres', 'SELECT granted_until < clock_timestamp() FROM uid_registry_status') or die 'the grant does not end';
like((sqlstate($member, q{SET uidgen.max_wait = '100ms'; SELECT uid_next()}))[1] // '', qr/55000/, 'when the grant has ended it draws nothing');
start_node($registry);
push @ids, sql($member, 'SELECT uid_next()');
is(status('state, node'), "granted|$node", 'when the registry is back, it continues with its node');

# Other rows and other layouts.
sql($member, q{SELECT uid_generator_create('static', worker_policy => 'static', worker_number => 3, datacenter_id => 2)});
push @ids, sql($member, q{SELECT uid_next('uid_generators.static')});
is(status('node', 'uid_generators.static'), 32 * 2 + 3, 'a worker number and a datacenter id are a node');
sql($member, q{SELECT uid_generator_create('elsewhere', datacenter_id => 7)});
push @ids, sql($member, q{SELECT uid_next('uid_generators.elsewhere')});
is(status('node >> 5', 'uid_generators.elsewhere'), 7, 'a datacenter id is a range');
my (undef, undef, $notice) = $member->psql('postgres', q{SELECT uid_generator_create('whole', 'leaf', own_pool => true, datacenter_id => 1023)});
like($notice, qr/datacenter id 1023 does not choose the node of generator "whole"/, 'in a layout without a datacenter field the registry does not ask for it');
sql($member, $notice =~ /run (SELECT uid_generator_alter\(\N+\))\.$/m);
sql($member, q{SELECT uid_next('uid_generators.whole')});
is(status('node', 'uid_generators.whole'), 1023, '... but for a worker number, as the notice says');
sql($member, q{SELECT uid_generator_create('later', epoch => '2026-02-01')});
my $refused = q{SET uidgen.max_wait = '100ms'; SELECT uid_next('uid_generators.later')};
like((sqlstate($member, $refused))[1] // '', qr/55000/, 'a layout whose ids could be equal is refused');
ok($member->poll_query_until('postgres', "SELECT state || why FROM uid_registry_status WHERE generator = 'uid_generators.later'", 'refusedlayout_differs'), '... as the status says');

# The registry waits for a standby that never comes. Calls that the member has given up do not stay.
set_conf($registry, "synchronous_standby_names = 'nobody'");
sql($member, q{SELECT uid_generator_create('late')});
my $session = hold_open($member);
send_query($session, q{SELECT uid_next('uid_generators.late')});
my (%pids, $waiting);
poll_until('three calls', sub { my ($pid) = split /\n/, sql($registry, q{SELECT pid FROM pg_stat_activity WHERE usename = 'uid_fleet' AND wait_event = 'SyncRep' ORDER BY backend_start DESC});
	$pids{$pid} = 1 if $pid; keys %pids >= 3 });
$waiting = sql($registry, q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'uid_fleet' AND wait_event = 'SyncRep'});
is($waiting, 1, 'of three calls that wait for a standby, one is left');
set_conf($registry, "synchronous_standby_names = ''");
push @ids, (finish_query($session))[0];
like($ids[-1], qr/^\d+$/, '... and when there is no standby to wait for, the grant comes');
$session->quit;

# A clock is ahead once. The registry refuses such a time, and neither a holder nor a newcomer asks for it again.
join_fleet($hasty, $registry);
start_uidgen($hasty);
sql($hasty, q{SET uidgen.max_wait = '1min'; SELECT uid_next()});
sql($hasty, q{SELECT uid_generator_create('new')});
set_clock($hasty, '+1h');
my @asking = map { "uid_generators.$_" } qw(uid_default new);
like((sqlstate($hasty, "SET uidgen.max_wait = '100ms'; SELECT uid_next('$_')"))[1] // '', qr/55000/, "a clock is ahead, and $_ draws nothing") foreach @asking;
ok($hasty->poll_query_until('postgres', "SELECT count(*) = 2 FROM uid_registry_status WHERE why = 'ahead'"), '... because no grant reaches that time');
set_clock($hasty, '+0');
my $draws = sub ($generator) {
	like(($hasty->psql('postgres', "SET uidgen.max_wait = '20s'; SELECT uid_next('$generator')"))[1], qr/^\d+$/, "when it is right again, $generator draws");
};
$draws->('uid_generators.new');
$hasty->stop;
start_node($hasty);    # which reads what is stored
$draws->('uid_generators.uid_default');
$hasty->stop;

# What no registry answers: a node outside the generator's range, values that nobody asked for.
sql($registry, q{INSERT INTO uid_registry.segment (name) VALUES ('orders')});
sql($member, q{SELECT uid_generator_create('wrong', datacenter_id => 9); SELECT segment_attach('orders')});
sql($registry, q{ALTER FUNCTION uid_registry.grant RENAME TO grant_truly; ALTER FUNCTION uid_registry.block RENAME TO block_truly;
	CREATE FUNCTION uid_registry.grant(fleet bigint, seen bigint, requests jsonb) RETURNS SETOF uid_registry.answer LANGUAGE sql SECURITY DEFINER AS
	$$ SELECT request, why, node - 32, since, until, taken, term, detail FROM uid_registry.grant_truly($1, $2, $3) $$;
	CREATE FUNCTION uid_registry.block(fleet bigint, seen bigint, segment text, count bigint, last bigint, OUT why text, OUT first bigint, OUT given bigint,
	OUT increment bigint, OUT term bigint, OUT detail text) LANGUAGE sql SECURITY DEFINER AS
	$$ SELECT why, 1, given, increment, term, detail FROM uid_registry.block_truly($1, $2, $3, $4, $5) $$});
foreach my $draw (q{uid_next('uid_generators.wrong')}, q{segment_next('orders') FROM generate_series(1, 3000)})
{
	like((sqlstate($member, "SET uidgen.max_wait = '1s'; SELECT $draw"))[1] // '', qr/55000.*(answer is not valid|had before)/s, "a wrong answer: $draw fails");
}
is(status('node', 'uid_generators.wrong'), '', '... and the generator has no such node');
sql($registry, 'DROP FUNCTION uid_registry.grant; ALTER FUNCTION uid_registry.grant_truly RENAME TO "grant"');
push @ids, sql($member, q{SELECT uid_next('uid_generators.wrong')});
is(status('node >> 5', 'uid_generators.wrong'), 9, '... until the registry gives one that it asked for');

is(repeated(@ids), '', 'no id came twice');
$_->stop foreach $member, $registry;
done_testing();
