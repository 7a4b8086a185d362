# More than one registry, with members that run: a former primary that comes back, and a promoted copy beside production.
# Whatever members are told, no id comes twice, each of them finds the registry, and views and logs say what happened.
# 030_registry.t has the registry's side with clocks that it moves, 033_fleet.t directories that were put back, and
# 061_registry_runbooks.t copies that were restored for tests.
use UidgenTest 'preloaded';
use Runbook;

my $none = "uidgen.max_wait = '300ms'";

# Of a layout with sixteen nodes and so few sequence numbers that two generators with one node collide at once.
sub create ($node, $name)
{
	return "SELECT uid_generator_create('$name', datacenter_bits => 0, worker_bits => 4, sequence_bits => 3)";
}

my @ids;
sub draw ($node, $name)
{
	my @new = split /\n/, $node->safe_psql('postgres', "SELECT unnest(uid_next_array('uid_generators.$name', 500))");
	push @ids, @new;
	return scalar @new;
}

sub new_generator ($node, $name)
{
	$node->safe_psql('postgres', create($node, $name));
	return draw($node, $name);
}

# A newcomer that gets nothing: the refusal that the view shows.
sub refusal_of ($node, $name)
{
	my $refusal = '';
	$node->safe_psql('postgres', create($node, $name) =~ s/\)$/, if_not_exists => true)/r);
	poll_until('a refusal',
		sub {
			return 1 if sqlstate($node, "SET $none; SELECT uid_next('uid_generators.$name')") eq '00000';
			$refusal = status($node, "refusal FROM uid_registry_status WHERE generator LIKE '%.$name'");
			$refusal ne '';
		});
	isnt($refusal, '', "$name is refused");
	return $refusal;
}

sub status ($node, $columns)
{
	return $node->safe_psql('postgres', "SELECT $columns");
}

sub says ($node, $from, $pattern, $what)
{
	return ok(poll_until($what, sub { slurp_file($node->logfile, $from) =~ $pattern }), $what);
}

sub term_of { return $_[0]->safe_psql('postgres', 'SELECT term FROM uid_fleet_state') }

# A registry that is tried first by a process of any kind must be found at once.
sub use_registries ($node, @registries)
{
	join_fleet($node, @registries);
	$node->reload;
}

sub new_member ($name, @registries)
{
	return new_server($name, conf => "autovacuum = off\nuidgen.max_wait = 60s\n", registries => \@registries);
}

sub host_of { return $_[0]->host . ':' . $_[0]->port }

# The former primary comes back. Nothing was lost, so the administrator needs no fence.

my $first = make_registry(new_server('first', conf => "autovacuum = off\n"));
my $second = standby_of($first, 'second');
$second->start;
my $holder = new_member('holder', $first, $second);
is(new_generator($holder, 'one'), 500, 'a member draws');
is(status($holder, 'DISTINCT host, registries, connected FROM uid_registry_status'), host_of($first) . '|1|t', '... and shows the registry');
$first->wait_for_catchup('second', 'replay', $first->lsn('flush'));
$first->stop('immediate');
$second->promote;
is(refusal_of($holder, 'two'), 'fenced', 'the promoted standby accepts no newcomer');
is(status($second, 'refuses FROM uid_fleet_pools'), 'fenced', '... as its view says');
fires($second, 'UidgenFenceStands');
fires($holder, 'UidgenMemberRefused');
$second->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(draw($holder, 'two'), 500, 'without the fence the newcomer gets a node');
is(status($holder, 'DISTINCT host, registries FROM uid_registry_status'), host_of($second) . '|1', 'and the member shows the new registry');

my $log = -s $first->logfile;
$first->start;
my $lonely = new_member('lonely', $first);
is(refusal_of($lonely, 'three'), 'starting', 'a member that knows only the former primary gets nothing');
fires($first, 'UidgenNewcomersRefused');
fires($lonely, 'UidgenMemberRefused');
my $member = new_member('member', $first, $second);
is(new_generator($member, 'four'), 500, 'one that knows both gets a node');
is(status($member, 'DISTINCT host, registries FROM uid_registry_status'), host_of($second) . '|2', '... from the new one, and shows that there are two');
says($member, 0, qr/WARNING:  there is more than one registry: \Q${\host_of($second)} and ${\host_of($first)}\E/, '... as its log does');
says($first, $log, qr/LOG:  registry no longer grants anything: \S+ has shown it a later term/, 'the former primary has closed itself, and logs it');
poll_until('the refusal', sub { refusal_of($lonely, 'three') eq 'stale_registry' });
is(refusal_of($lonely, 'three'), 'stale_registry', '... and refuses the other member for that');
fires($first, 'UidgenRegistryRefuses');
fires($lonely, 'UidgenMemberRefused');
fires($member, 'UidgenTwoRegistries');
quiet($second, 'UidgenRegistryRefuses');
use_registries($lonely, $first, $second);
is(draw($lonely, 'three'), 500, '... which gets a node once it knows the new one');
$second->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'uid_fleet'");
is(new_generator($holder, 'five'), 500, 'a member that connects again reaches the new registry');
draw(@$_) foreach [ $holder, 'one' ], [ $holder, 'two' ], [ $member, 'four' ];
is(repeated(@ids), '', 'a former primary is back: no id came twice');
$first->stop;

# A copy that was promoted, and that nobody has told what it is, takes over. Production learns of it from a member that is
# pointed at it.

my $term = term_of($second);
my $promoted = standby_of($second, 'promoted');
$promoted->start;
$second->wait_for_catchup('promoted', 'replay', $second->lsn('flush'));
$promoted->promote;
$log = -s $second->logfile;
use_registries($holder, $promoted);
$holder->poll_query_until('postgres', "SELECT bool_and(connected AND host = '" . host_of($promoted) . "' AND term > $term) FROM uid_registry_status")
  or die 'the copy was not used';
use_registries($holder, $second);
says($second, $log, qr/LOG:  registry no longer grants anything: \S+ has shown it a later term.*\n.*\n.*If another server is the registry/, 'production closes itself, and says why');
ok(poll_until('the refusal', sub { status($second, 'max(refuses) FROM uid_fleet_pools') eq 'stale_registry' }), '... and its view says it');
fires($second, 'UidgenRegistryRefuses');
$promoted->stop;
$second->safe_psql('postgres', "SELECT uid_fleet_fence(cancel => true)");
is(new_generator($holder, 'eight'), 500, 'by the word of the administrator it goes on without a fence');
cmp_ok(term_of($second), '>', $term + 1, '... in a term above both');
draw(@$_) foreach [ $holder, 'one' ], [ $member, 'four' ], [ $lonely, 'three' ];
is(repeated(@ids), '', 'members were pointed at copies: no id came twice');
ok(poll_until('one registry', sub { status($member, 'max(registries) FROM uid_registry_status') == 1 }),
	'without the former primary a member that has seen it finds one registry again');

# The registry is lost, and made anew with its key. Then the former one comes back while the new one restarts.

sub made_anew ($name, $key)
{
	my $node = new_server($name, conf => "autovacuum = off\n");
	my ($fleet, $term) = split /\|/, status($holder, 'DISTINCT fleet, term FROM uid_registry_status');
	$node->safe_psql('postgres', "CREATE ROLE uid_fleet LOGIN; SELECT uid_fleet_admit('uid_fleet', 'successor', fleet => $fleet, term => $term, key => $key)");
	return $node;
}

sub state_becomes ($node, $state, $what)
{
	return ok(poll_until($what, sub { status($node, "bool_or(state = '$state') FROM uid_registry_status") eq 't' }), $what);
}

# A value of a segment that is attached to one of the registry; '' without an error.
my @values;
sub draw_value
{
	my ($status, $value, $error) = $holder->psql('postgres', "SET $none; SELECT segment_next('orders')");
	push @values, $value if $status == 0;
	return $status == 0 ? '' : $error;
}

sub create_segment ($node, $start)
{
	$node->safe_psql('postgres', "SELECT segment_create('orders', $start); GRANT USAGE ON SEQUENCE uid_segments.orders TO uid_fleet");
}

create_segment($second, 1);
$holder->safe_psql('postgres', "SELECT segment_attach('orders', step => 10, max_step => 10, without_standby => true)");
is(draw_value(), '', 'a member draws from a segment of the registry');
my $key = $second->safe_psql('postgres', "SELECT quote_literal(uid_fleet_key())");
$second->stop('immediate');
my $anew = made_anew('anew', $key);
use_registries($_, $second, $anew) foreach $holder, $member;
$holder->poll_query_until('postgres', "SELECT bool_and(host = '" . host_of($anew) . "') FROM uid_registry_status") or die 'the new one is not used';
is(refusal_of($holder, 'nine'), 'fenced', 'made anew with the key: newcomers wait');
fires($anew, 'UidgenFenceStands');
fires($holder, 'UidgenMemberRefused');
$anew->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(draw($holder, 'nine'), 500, '... until the fence is over');
create_segment($anew, 1000);
is(draw_value(), '', '... as does the segment') foreach 1 .. 25;
cmp_ok($values[-1], '>', 999, '... with a block of the new one');
$anew->stop('immediate');
$log = -s $second->logfile;
$second->start;
state_becomes($holder, 'outdated', 'a member does not go back to the former one');
is(status($holder, 'DISTINCT connected FROM uid_registry_status'), 'f', '... and is not connected');
is(refusal_of($holder, 'ten'), 'outdated', '... and neither does a new generator of it');
fires($holder, 'UidgenMemberRefused');
fires($holder, 'UidgenRegistryAway', bound => 0);
my $refused = '';
poll_until('no block', sub { $refused = draw_value(); $refused ne '' });
like($refused, qr/only a former registry of this server's fleet answers/, '... nor does its segment take a block of that one');
draw(@$_) foreach [ $holder, 'one' ], [ $holder, 'nine' ];
says($second, $log, qr/LOG:  registry no longer grants anything: \S+ has shown it a later term/, 'the former one is shown the term, and closes itself');
my $fresh = new_member('fresh', $second, $anew);
is(refusal_of($fresh, 'eleven'), 'stale_registry', '... so that a new server gets nothing from it');
fires($second, 'UidgenRegistryRefuses');
fires($fresh, 'UidgenMemberRefused');
$anew->start;
$second->stop;
# It fences what the former one may have granted before it was closed (030_registry.t), and waits for a member.
$anew->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(draw($fresh, 'eleven'), 500, 'the new one is back, and the new server draws');
is(draw($holder, 'ten'), 500, '... and so does the new generator');
ok(poll_until('a value', sub { draw_value() eq '' }), '... and so does the segment');
draw(@$_) foreach [ $holder, 'one' ], [ $holder, 'nine' ], [ $member, 'four' ];
is(repeated(@ids), '', 'a lost registry is back: no id came twice');
is(repeated(@values), '', '... and no value');

# Without the key no line leads to the former one. If one does, that is closed by the claim.

$anew->stop;
my $keyless = made_anew('keyless', 'NULL');
use_registries($_, $keyless) foreach $holder, $member, $fresh;
$holder->poll_query_until('postgres', "SELECT bool_and(host = '" . host_of($keyless) . "') FROM uid_registry_status") or die 'it is not used';
$keyless->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(new_generator($holder, 'twelve'), 500, 'made anew without the key: a newcomer draws');
$keyless->stop('immediate');
$log = -s $anew->logfile;
$anew->start;
use_registries($holder, $anew, $keyless);
says($anew, $log, qr/LOG:  registry accepts no newcomers: login "uid_fleet" shows a later term without a proof/, 'a line that leads to the former one shows it a claim');
is(status($anew, 'max(refuses) FROM uid_fleet_pools'), 'claimed', '... as its view says');
is(refusal_of($holder, 'thirteen'), 'outdated', '... but no member goes back to it');
use_registries($lonely, $anew);
is(refusal_of($lonely, 'fourteen'), 'claimed', '... and it accepts no newcomer that knows nothing of the other one');
fires($anew, 'UidgenNewcomersRefused');
fires($_, 'UidgenMemberRefused') foreach $holder, $lonely;
$keyless->start;
is(draw($holder, 'thirteen'), 500, 'the new one is back, and the newcomer draws');
draw(@$_) foreach [ $holder, 'one' ], [ $holder, 'twelve' ], [ $member, 'four' ], [ $fresh, 'eleven' ];
is(repeated(@ids), '', 'without the key: no id came twice');

# A former primary comes back after its successor has admitted a newcomer without a fence and has stopped. A member that
# has only said hello to the successor does not end the former one's wait.

$_->stop foreach $anew, $keyless, $holder, $member, $lonely, $fresh;
my $former = make_registry(new_server('former', conf => "autovacuum = off\n"));
my $later = standby_of($former, 'later');
$later->start;
my $keeper = new_member('keeper', $former, $later);
is(new_generator($keeper, 'kept'), 500, 'a member draws');
my $absent = new_member('absent', $former, $later);
is(new_generator($absent, 'apart'), 500, '... and another one');
$absent->stop('immediate');
my $in_way = $keeper->data_dir . '/global/pgsql_tmp_uidgen.grants.tmp';
mkdir $in_way or die "could not make a directory: $!";
my $of_former = term_of($former);
$former->wait_for_catchup('later', 'replay', $former->lsn('flush'));
$former->stop('immediate');
$later->promote;
# As if the clock had been behind: what it grants now has a time below the number of its term.
$later->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true); UPDATE uid_fleet_state SET term = term + 3600000000');
$keeper->poll_query_until('postgres', "SELECT bool_and(last_error = 'could not write the file of grants') FROM uid_registry_status") or die 'no error';
is(status($keeper, 'DISTINCT connected, term FROM uid_registry_status'), "f|$of_former", '... and uses no new primary whose term it cannot store');
rmdir $in_way or die "could not remove a directory: $!";
$keeper->poll_query_until('postgres', "SELECT bool_and(connected AND host = '" . host_of($later) . "') FROM uid_registry_status") or die 'not connected';
is(status($keeper, 'DISTINCT term, renewals FROM uid_registry_status'), term_of($later) . '|1', '... until it can, although it has asked nothing of it');
my $early = new_member('early', $later);
is(new_generator($early, 'x'), 500, '... which admits a newcomer without a fence');
$later->safe_psql('postgres', 'SELECT uid_fleet_handover()');
$absent->start;
is(draw($absent, 'apart'), 500, 'a member starts');
ok($absent->poll_query_until('postgres', 'SELECT bool_and(NOT connected AND term = ' . term_of($later) . ') FROM uid_registry_status'),
	'... and keeps the term of the new primary, which is closed by now');
$absent->stop;
$later->stop('immediate');
crash($keeper);
is(draw($keeper, 'kept'), 500, 'the member draws in the grant of the former one');
$former->start;
my $tardy = new_member('tardy', $former);
my $why = '';
poll_until('the former one has heard of the new one', sub { ($why = refusal_of($tardy, 'y')) ne 'starting' });
is($why, 'stale_registry', '... which gives away no node, because that could be the one of the newcomer');
state_becomes($keeper, 'outdated', 'the member says that only a former registry answers');
is(status($keeper, 'DISTINCT connected, term FROM uid_registry_status'), 'f|' . status($early, 'DISTINCT term FROM uid_registry_status'), '... and in which term the new one is');

done_testing();
