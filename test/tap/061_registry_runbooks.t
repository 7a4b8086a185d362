# The runbooks of a fleet (docs/runbooks/registry-*.md): each is run verbatim, block by block, in the situation that it is
# for. Its symptom is what the server says, and afterwards it is over. Runbook.pm says what marks in a page mean.
use UidgenTest 'preloaded';
use Runbook;

my $lease = "uidgen.registry_lease = '10s'\n";

sub new_primary ($name, $conf = '')
{
	my $node = new_server($name, conf => "autovacuum = off\n$conf");
	$node->safe_psql('postgres', "CREATE ROLE fleet_app1 LOGIN; SELECT uid_fleet_admit('fleet_app1', 'new')");
	return $node;
}

sub name_registries ($node, @registries)
{
	$node->append_conf('postgresql.conf', "uidgen.registry = '" . (registry_line(@registries) =~ s/uid_fleet/fleet_app1/r) . "'\n");
}

sub new_member ($name, $conf, @registries)
{
	my $node = new_node($name, conf => "autovacuum = off\nuidgen.max_wait = 60s\n$conf");
	name_registries($node, @registries);
	start_uidgen($node);
	$node->safe_psql('postgres', 'SELECT uid_next()');
	return $node;
}

# The first words of a log line, or of an error.
sub logs ($node, $name, $from = 0)
{
	my ($words) = symptom($name) =~ /^((?:.(?!server|ids\d))*.)/;
	return ok(poll_until("$name: the symptom", sub { slurp_file($node->logfile, $from) =~ /(?:LOG|WARNING):  $words/ }),
		"$name: the symptom");
}

sub fails ($node, $name, $detail, $sql)
{
	my $error = '';
	poll_until("$name: the symptom",
		sub { (sqlstate($node, "SET uidgen.max_wait = '500ms'; $sql"))[1] =~ /DETAIL:  [^\n]*$detail/ and $error = 1 });
	return is($error, 1, "$name: the symptom");
}

# Away, a failover, two registries: one story.

my $first = new_primary('first');
my $second = standby_of($first, 'second');
$second->start;
my $member = new_member('member', '', $first, $second);
my %nodes = (member => $member);
# Another one draws from a segment alone.
my $counter = new_node('counter', conf => "autovacuum = off\n");
name_registries($counter, $first, $second);
start_uidgen($counter);
$first->safe_psql('postgres', "SELECT segment_create('orders', step => 20, max_step => 60); GRANT USAGE ON SEQUENCE uid_segments.orders TO fleet_app1");
$_->safe_psql('postgres', "SELECT segment_attach('orders', without_standby => true)") foreach $member, $counter;
sub values_of ($node) { return split /\n/, $node->safe_psql('postgres', "SELECT segment_next('orders') FROM generate_series(1, 70)") }

sub run_on ($name, $node, %opts)
{
	checks_fail($name, $node, nodes => \%nodes);
	return run_page($name, $node, dbname => 'postgres', nodes => \%nodes, %opts);
}
sub is_over ($name, $node)
{
	my $check = block_of("docs/runbooks/$name.md", qr/bool_and\(connected/);
	ok(poll_until("$name: a segment", sub { $node->safe_psql('postgres', $check) eq 't' }), "$name: it is over where only a segment is used, too");
}

# What a member says of a generator, which the page of questions has.
sub says ($node, $name, $word, $generator = 'uid_default')
{
	my $state = "SELECT state FROM uid_registry_status WHERE generator LIKE '%$generator'";
	ok(poll_until("$name: $word", sub { $node->safe_psql('postgres', $state) eq $word }), "$name: a member says $word")
	  or diag($node->safe_psql('postgres', 'SELECT * FROM uid_registry_status'));
	return leads_to($name, $word);
}

# Nothing is wrong.
run_page('registry', $first, dbname => 'postgres', nodes => \%nodes);

# The page's server answers by another address.
$first->stop;
logs($member, 'registry-away');
says($member, 'registry-away', 'unreachable');
fires($member, 'UidgenRegistryAway', bound => 0);
run_on('registry-away', $first);
is_over('registry-away', $counter);

$first->wait_for_catchup('second', 'replay', $first->lsn('flush'));
my %old = (OLD_HOST => $first->host, OLD_PORT => $first->port);
# The standby lacks the last blocks that the members have.
my @values = (values_of($member), values_of($counter));
$second->stop;
push @values, map { values_of($counter) } 1 .. 3;
$first->stop('immediate');
$second->start;
$member->safe_psql('postgres', "SELECT uid_generator_create('orders')");
run_on('registry-failover', $second, %old,
	before => sub {
		isnt($member->psql('postgres', "SET uidgen.max_wait = '500ms'; SELECT count(segment_next('orders')) FROM generate_series(1, 200)"), 0, '... no member gets values until they are raised')
		  if $_[0] =~ /segment_set/;
		return unless $_[0] =~ /cancel/;
		fails($member, 'registry-failover', 'the registry may have lost grants and accepts no newcomer yet', q{SELECT uid_next('uid_generators.orders')});
		says($member, 'registry-failover', 'fenced', 'orders');
		fires($member, 'UidgenMemberRefused');
		fires($second, 'UidgenFenceStands');
	});
ok($member->safe_psql('postgres', q{SELECT uid_next('uid_generators.orders')}), '... and the newcomer draws');
is_over('registry-failover', $counter);
push @values, values_of($member), values_of($counter);
is(repeated(@values), '', '... and no value of a segment came twice');
$counter->stop;

my $log = -s $member->logfile;
$first->start;
my $late = new_member('late', '', $first, $second);
logs($late, 'registry-two');
fires($late, 'UidgenTwoRegistries');
$nodes{member} = $late;
$nodes{former} = $first;
run_on('registry-two', $second);

# It is lost. The new one has the name of the role, and nothing else.

$nodes{member} = $member;
%old = (OLD_HOST => $second->host, OLD_PORT => $second->port);
$second->stop('immediate');
# README.md puts the extension into a schema.
$member->safe_psql('postgres', 'CREATE DATABASE shop');
$member->safe_psql('shop', $_) for 'CREATE SCHEMA uidgen', 'CREATE EXTENSION uidgen SCHEMA uidgen';
my $third = new_node('third', conf => "autovacuum = off\n");
$third->start;
$member->append_conf('postgresql.conf', "uidgen.registry_lease = '20s'\n");
my $line = registry_line($third) =~ s/uid_fleet/fleet2_app1/r =~ s/postgres/ids2/r;
run_page('registry-lost', $third, dbname => 'postgres', nodes => \%nodes, %old, MEMBER_HOST => $member->host, MEMBER_PORT => $member->port, MEMBER_DB => 'shop',
	before => sub {
		return unless $_[0] =~ /ALTER SYSTEM/;
		is($third->safe_psql('ids2', 'SELECT pool IS NULL, refuses FROM uid_fleet_pools'), 't|fenced', 'registry-lost: the view shows the fence before a member has called');
		fires($third, 'UidgenFenceStands', dbname => 'ids2');
	},
	after => sub {
		return unless $_[0] =~ /ALTER SYSTEM/;
		# NEW is the name of a host that there is not.
		$member->safe_psql('postgres', "ALTER SYSTEM SET uidgen.registry = '$line'");
		$member->reload;
	});
is($third->safe_psql('ids2', 'SELECT count(*) > 0 FROM uid_fleet'), 't', 'registry-lost: the new one knows the members');
fails($member, 'registry-lost', 'the registry may have lost grants and accepts no newcomer yet', q{SELECT uid_generator_create('new'); SELECT uid_next('uid_generators.new')});
$_->stop foreach $member, $late, $third;

# Nodes, a superseded member, a copy: grants are short.

my $registry = new_primary('registry', "uidgen.registry_clock_bound = '100ms'\n");
$registry->safe_psql('postgres', "UPDATE uid_fleet_state SET longest_grant = '10 s'");
my $app = new_member('app', $lease, $registry);
$nodes{member} = $app;
$app->safe_psql('postgres', "SELECT uid_generator_create('$_', datacenter_bits => 0, worker_bits => 1)") foreach qw(first second third);
$app->safe_psql('postgres', "SELECT uid_next('uid_generators.$_')") foreach qw(first second);
my $third_draws = q{SELECT uid_next('uid_generators.third')};
fails($app, 'registry-nodes', 'all 2 nodes of the layout are in use', $third_draws);
says($app, 'registry-nodes', 'none_free', 'third');
fires($app, 'UidgenMemberRefused');
fires($registry, 'UidgenNodesNearlyUsed');
run_on('registry-nodes', $registry);
ok($app->safe_psql('postgres', $third_draws), '... and the newcomer draws');

# As if a copy had called first.
$registry->safe_psql('postgres', "SELECT format('SELECT uid_fleet_takeover(%s, %s)', pool, node) FROM uid_fleet WHERE generator LIKE '%uid_default' \\gexec");
fails($app, 'registry-superseded', 'another server continues as this generator', 'SELECT uid_next()');
says($app, 'registry-superseded', 'superseded');
fires($app, 'UidgenSuperseded');
run_on('registry-superseded', $registry);

$nodes{copy} = standby_of($registry, 'copy', has_streaming => 0);
$nodes{copy}->append_conf('postgresql.conf', "primary_conninfo = ''\n");
$nodes{restored} = standby_of($registry, 'restored', has_streaming => 0);
$nodes{restored}->append_conf('postgresql.conf', "primary_conninfo = ''\n");
$nodes{restored}->start;
name_registries($app, $nodes{restored});
$app->reload;
logs($nodes{restored}, 'registry-copy');
is($nodes{restored}->safe_psql('postgres', 'SELECT max(refuses) FROM uid_fleet_pools'), 'unclaimed', '... and a view says it');
says($app, 'registry-copy', 'unclaimed');
fires($app, 'UidgenMemberRefused');
fires($nodes{restored}, 'UidgenRegistryRefuses');
run_on('registry-copy', $registry);
is($nodes{copy}->safe_psql('postgres', 'SELECT count(*) FROM uid_fleet'), '0', '... and a copy for tests has no members');
isnt($nodes{copy}->safe_psql('postgres', 'SELECT fleet FROM uid_fleet_state'), $registry->safe_psql('postgres', 'SELECT fleet FROM uid_fleet_state'), '... and a fleet of its own');

# A login attacks: that of a member, so that nobody can connect any more.

sub fill_lock_table ($node, $login)
{
	my $attacker = hold_open($node);
	$attacker->query_safe("SET SESSION AUTHORIZATION $login");
	send_query($attacker, 'SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 1000000) n');
	return ($attacker, (finish_query($attacker))[1]);
}
$app->safe_psql('postgres', "DROP SEQUENCE uid_generators.$_") foreach qw(second third);
name_registries($app, $registry);
$app->reload;
$app->poll_query_until('postgres', "SELECT bool_and(connected AND state IN ('granted', 'idle')) FROM uid_registry_status") or die 'not connected';
$log = -s $registry->logfile;
my ($attacker, $full) = fill_lock_table($registry, 'fleet_app1');
my $symptom = symptom('registry-attack');
like($full, qr/$symptom/, 'registry-attack: the symptom');
isnt($registry->psql('postgres', 'SELECT 1'), 0, '... and a superuser cannot connect');
undef $attacker;
run_on('registry-attack', $registry,
	before => sub {
		my $unmoved = "SELECT count(*) FROM uid_fleet WHERE login = 'fleet_app1' AND state = 'live' AND host IS NOT NULL";
		poll_until('the new login', sub { $registry->safe_psql('postgres', $unmoved) eq '0' }) if $_[0] =~ /takeover/;
	},
	after => sub {
		return unless $_[0] =~ /ALTER SYSTEM/;
		$app->safe_psql('postgres', q{ALTER SYSTEM SET uidgen.registry = '} . (registry_line($registry) =~ s/uid_fleet/fleet_app9/r) . q{'});
		$app->reload;
	});
my $revoke = block_of('docs/security.md', qr/advisory/) =~ s/DATABASE ids/DATABASE postgres/r =~ s/fleet_app1/fleet_app9/r;
$registry->safe_psql('postgres', $revoke);
like((fill_lock_table($registry, 'fleet_app9'))[1], qr/permission denied for function pg_advisory_lock/, 'without the right to lock the next one fails');
foreach my $statement ('CREATE TEMP TABLE t ()', 'SELECT lo_unlink(lo_create(0))', 'SELECT pg_try_advisory_lock_shared(1, 1)')
{
	is((sqlstate($registry, "SET SESSION AUTHORIZATION fleet_app9; $statement"))[0], '42501', "... nor with $statement");
}
is($registry->psql('postgres', 'SELECT 1'), 0, '... and a superuser can connect');

# What the registry says before a member has called.
$app->stop;
$registry->restart;
is($registry->safe_psql('postgres', 'SELECT DISTINCT refuses FROM uid_fleet_pools'), 'starting', 'a registry that has started says so');
leads_to('registry-away', 'starting');
fires($registry, 'UidgenNewcomersRefused');
quiet($registry, 'UidgenRegistryRefuses');
my ($end) = slurp_file('docs/runbooks/registry-away.md') =~ /`(SELECT\s+uid_fleet_fence\N+;)`/;
$registry->safe_psql('postgres', $end);
is($registry->safe_psql('postgres', 'SELECT bool_and(refuses IS NULL) FROM uid_fleet_pools'), 't', '... until its administrator ends the wait');
$registry->safe_psql('postgres', 'UPDATE uid_fleet_state SET synchronous = true');
is($registry->safe_psql('postgres', 'SELECT DISTINCT refuses FROM uid_fleet_pools'), 'no_standby', 'one that lacks its standby says so');
leads_to('registry-failover', 'no_standby');
fires($registry, 'UidgenRegistryRefuses');

is_deeply([ used_pages() ], [ grep { !/zh-CN/ } sort glob 'docs/runbooks/registry*.md' ], 'each page of a fleet has been run');
done_testing();
