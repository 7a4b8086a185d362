# The runbooks of a fleet (docs/runbooks/registry-*.md): each is run verbatim, block by block, in the situation that it is
# for. The alert that leads to it fires before, and not after.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Runbook;

my ($first, $second) = map { UidgenNode->new("registry$_") } 1, 2;
$first->init(allows_streaming => 1);
$first->append_conf('postgresql.conf', "autovacuum = off\n");
start_node($first);
make_registry($first, longest => 5, bound => 0.5);
my $member = new_server('member', conf => registry_setting($first, $second) . "uidgen.max_wait = '1s'\nautovacuum = off\n");
my %at = (nodes => { member => $member, former => $first }, dbname => 'postgres');
my @loops;

sub loop_of ($generator)
{
	push @loops, background_loop($member, sql => "SELECT uid_next('uid_generators.$generator')", on_error_stop => 0, reconnect => 1, pace => 0.2);
	return $loops[-1];
}

sub error_of ($generator)
{
	return (sqlstate($member, "SELECT uid_next('uid_generators.$generator')"))[1];
}

sub create ($generator, $options = '')
{
	$member->safe_psql('postgres', "SELECT uid_generator_create('$generator'$options)");
}

# Its page says why the registry is unreachable, and starts it.
my $default = loop_of('uid_default');
goes_on('a member draws', $default);
quiet($member, 'UidgenRegistryUnreachable', dbname => 'postgres');
$first->stop('immediate');
my $log = sub { slurp_file($member->logfile) };
my ($said) = symptom('registry-unreachable') =~ /^(.*?):/;
ok(poll_until('the log', sub { $log->() =~ /LOG:  $said: / }), 'unreachable: the symptom') or diag $said;
fires($member, 'UidgenRegistryUnreachable', dbname => 'postgres');
fires($member, 'UidgenGrantsEnd', dbname => 'postgres');
checks_fail('registry-unreachable', $first, %at);
run_page('registry-unreachable', $first, %at);
goes_on('... the member draws again', $default);
quiet($member, 'UidgenRegistryUnreachable', dbname => 'postgres');

# The standby is promoted.
$first->backup('backup');
$second->init_from_backup($first, 'backup', has_streaming => 1);
start_node($second);
$first->wait_for_catchup($second);
$first->stop('immediate');
$second->promote;
create('late');
my $error;
poll_until('a newcomer is refused', sub { ($error = error_of('late')) =~ /may have lost grants/ });
like($error, qr/ERROR:  55000: generator "late" has no node from the registry.*the registry may have lost grants/s, 'failover: the symptom');
fires($second, 'UidgenRegistryFenced', dbname => 'postgres');
checks_fail('registry-failover', $second, %at);
run_page('registry-failover', $second, %at);
my $late = loop_of('late');
goes_on('... the newcomer draws', $late, $default);
quiet($second, 'UidgenRegistryFenced', dbname => 'postgres');

# A layout of two nodes, and three generators. Then one of them is dropped, as the page says.
my $two_nodes = ', datacenter_bits => 0, worker_bits => 1';
create($_, $two_nodes) foreach 'one', 'two', 'three';
my @holders = map { loop_of($_) } 'one', 'two';
goes_on('two generators have the nodes', @holders);
my $third = loop_of('three');
ok(poll_until('the third is refused', sub { ($error = error_of('three')) =~ /no node is free/ }), 'refuses: the symptom') or diag $error;
fires($member, 'UidgenRegistryRefuses', dbname => 'postgres');
fires($second, 'UidgenNodesNearlyUsed', dbname => 'postgres');
checks_fail('registry-refuses', $second, %at);
$second->safe_psql('postgres', 'CREATE ROLE fleet_app7 LOGIN IN ROLE uid_member');
stop_loop($holders[0]);
run_page('registry-refuses', $second, %at,
	before => sub ($block) { $member->safe_psql('postgres', 'DROP SEQUENCE uid_generators.one') if $block =~ /REVOKE/ });
goes_on('... the third one draws', $third);
is($second->safe_psql('postgres', q{SELECT has_schema_privilege('fleet_app7', 'uid_registry', 'USAGE')}), 'f', '... and a login is ended');

is_deeply([ used_pages() ], [ grep { !/zh-CN/ } sort glob 'docs/runbooks/registry-*.md' ], 'each page has been run');
stop_loop($default, $late, $third, $holders[1]);
$_->stop foreach $member, $second;
done_testing();
