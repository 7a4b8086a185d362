# What changes the node of a generator while its server runs: uidgen.datacenter_id by a reload, for new sessions, and gone
# again. A generator draws a number for each datacenter id that its sessions have, so that no two generators of a layout
# have one node; each leaves its row, and its line in the log. All clocks stand still, so equal nodes give equal ids.
use UidgenTest 'preloaded';
use Clock;

my $node = new_node('changed', conf => "autovacuum = off\nuidgen.max_wait = 0\nlog_min_messages = log\n");
use_fake_clock($node);
my $clock = 0.5;
freeze_clock($node, $clock);
start_uidgen($node);
$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql('shop', 'CREATE EXTENSION uidgen');

# As pairs of a database and a generator. Two have numbers that differ by a multiple of the worker ids. The one with a
# worker id that was given comes first, because it avoids no other one's.
my @generators = ([ 'shop', 'given' ], [ 'postgres', 'uid_default' ], [ 'shop', 'uid_default' ], [ 'shop', 'one' ], [ 'shop', 'other' ]);
$node->safe_psql('shop', "SELECT uid_generator_create('one'), uid_generator_create('other'), uid_generator_create('given', worker_policy => 'static', worker_number => 31)");
my %session = map { $_ => hold_open($node, dbname => $_) } qw(postgres shop);
my (%times, @repeated, %nodes_of);

# Draws from each generator, in the session or a new one, and returns the nodes as text.
sub draw ($what, %opts)
{
	$clock += 10;
	freeze_clock($node, $clock);
	my @nodes;
	foreach my $pair (@generators)
	{
		my ($database, $generator) = @$pair;
		my $draw = "SELECT unnest(uid_next_array('uid_generators.$generator', 1500))";
		my $ids = $opts{new} ? $node->safe_psql($database, $draw) : $session{$database}->query_safe($draw);
		my @ids = split /\n/, $ids;
		push @repeated, grep { $times{$_}++ } @ids;
		push @nodes, $node->safe_psql($database, "SELECT DISTINCT datacenter_id || '/' || worker_id FROM unnest('{" . join(',', @ids) . "}'::bigint[]) id, uid_decode(id)");
		$nodes_of{"$database $generator"}{ $nodes[-1] } = $ids[-1];
	}
	is(scalar(@repeated), 0, "$what: no id comes twice");
	my %nodes = map { $_ => 1 } @nodes;
	is(scalar(keys %nodes), scalar(@generators), '... and each generator has a node of its own') || diag("@nodes");
	return "@nodes";
}

# Waits until sessions of both databases have the value.
sub reload ($value)
{
	$node->reload;
	foreach my $session (values %session)
	{
		poll_until("uidgen.datacenter_id = $value", sub { $session->query_safe('SHOW uidgen.datacenter_id') == $value }) or die 'not reloaded';
	}
}

$session{shop}->query_safe("SELECT uid_next('uid_generators.given'), uid_next(), setval('worker_node_id_seq', 1000, false), uid_next('uid_generators.one'), setval('worker_node_id_seq', 1032, false), uid_next('uid_generators.other')");
my $automatic = draw('without a number');
# Two that no node has by chance.
my ($three, $four) = grep { " $automatic" !~ / $_\// } 3 .. 31;
$node->safe_psql('postgres', "ALTER SYSTEM SET uidgen.datacenter_id = $three");
reload($three);
my $set = draw('with a number since a reload');
like($set, qr{^$three/31( $three/\d+){4}$}, '... which all nodes have');
is(draw('in a new session', new => 1), $set, '... and stay');

# Old sessions keep the old number; both draw in turn.
$node->safe_psql('postgres', "ALTER DATABASE $_ SET uidgen.datacenter_id = $four") foreach qw(postgres shop);
my $later = draw('in new sessions, with another number', new => 1);
like($later, qr{^$four/31( $four/\d+){4}$}, '... which their nodes have');
foreach my $turn (1 .. 3)
{
	is(draw("turn $turn of an old session"), $set, '... keeps its nodes');
	is(draw("turn $turn of a new session", new => 1), $later, '... keeps its nodes');
}

$node->safe_psql('postgres', 'ALTER SYSTEM RESET uidgen.datacenter_id; ALTER DATABASE postgres RESET uidgen.datacenter_id; ALTER DATABASE shop RESET uidgen.datacenter_id');
reload(-1);
is(draw('without a number again'), $automatic, '... all have the nodes that they had without one');

# One row and one line for each node, whatever the turns.
$_->quit foreach values %session;
my $log = slurp_file($node->logfile);
foreach my $pair (@generators)
{
	my ($database, $generator) = @$pair;
	my $of = $nodes_of{"$database $generator"};
	my $rows = "SELECT datacenter_id || '/' || worker_id FROM worker_node WHERE generator = 'uid_generators.$generator' ORDER BY 1";
	wait_for_node_rows($node, "uid_generators.$generator", scalar(keys %$of), dbname => $database);
	is_deeply([ split /\n/, $node->safe_psql($database, $rows) ], [ sort keys %$of ], "$database, $generator: worker_node has a row for each node");
	foreach my $its (sort keys %$of)
	{
		my ($datacenter, $worker) = split m{/}, $its;
		is(scalar(() = $log =~ /LOG:  generator "$generator" in database "$database" draws with datacenter id $datacenter and worker id $worker\n/g), 1, "... the log has a line of $its");
		is($node->safe_psql($database, "SELECT w.datacenter_id || '/' || w.worker_id FROM uid_origin($of->{$its}, 'uid_generators.$generator') o JOIN worker_node w ON w.id = o.node_id AND w.generator = o.generator_name"),
			$its, '... and uid_origin() finds the row of an id');
	}
}

$node->stop;
done_testing();
