# PgBouncer is between a member and its registry. Each call is one statement, so that both modes work.
use UidgenTest 'preloaded';
use Bouncer;
use Fleet;

plan skip_all => 'PgBouncer is not there' unless defined Bouncer::program();

my $registry = new_node('registry');
start_node($registry);
make_registry($registry);
my $member = new_node('member', conf => "uidgen.max_wait = '1min'\n");
start_node($member);
$member->safe_psql('postgres', 'CREATE EXTENSION uidgen');
foreach my $mode ('session', 'transaction')
{
	my $bouncer = Bouncer->start($registry, $mode, 'default_pool_size = 1');
	set_conf($member, registry_setting($bouncer));
	$member->poll_query_until('postgres', "SELECT current_setting('uidgen.registry') LIKE '%@{[ $bouncer->host ]}%'") or die 'no reload';
	$member->safe_psql('postgres', "SELECT uid_generator_create('by_$mode')");
	is($member->safe_psql('postgres', "SELECT count(uid_next('uid_generators.by_$mode')) FROM generate_series(1, 10)"), 10, "a generator draws, pool_mode $mode");
	like($registry->safe_psql('postgres', q{SELECT string_agg(holder, ' ') FROM uid_registry.node}), qr/by_$mode/, '... in a grant of the registry');
}
$_->stop foreach $member, $registry;
done_testing();
