# What keeps databases apart that were told nothing: their nodes come from a hash of the database, and where a tick's
# sequence numbers start is a secret of the incarnation. And what is said of it. All clocks stand still, so two servers
# draw in the same ticks.
use UidgenTest 'preloaded';
use Clock;
use Pages;

my $conf = "autovacuum = off\nuidgen.max_wait = 0\n";
my %session;
my %node = map { $_ => new_node($_, conf => $conf) } qw(left right);
my $clock = 0.5;

sub set_clocks
{
	freeze_clock($node{$_}, $clock) foreach qw(left right);
}

sub on_both ($sql)
{
	return map { $session{$_}->query_safe($sql) } qw(left right);
}

use_fake_clock($node{$_}) foreach qw(left right);
set_clocks();
foreach my $side (qw(left right))
{
	start_uidgen($node{$side});
	$session{$side} = hold_open($node{$side});
}
my ($left, $right) = on_both('SELECT system_identifier FROM pg_control_system()');
isnt($left, $right, 'two servers, each with its own initdb');

# Two fresh servers without any setting. Two generators that have the same node by chance (1 in 16 to 1 in 4 million) are
# no test; one of them draws another number then. An alteration ends the lease, so the clock goes on.

my %count = (snowflake => 100_000, leaf => 3_900, js53 => 60_000, baidu => 8_000, sonyflake => 250, instagram => 1_000);
on_both("SELECT uid_generator_create('$_', '$_')") foreach sort keys %count;
foreach my $preset (sort keys %count)
{
	my $node_of = "SELECT uid_next('uid_generators.$preset') FROM generate_series(1, 1) OFFSET 1;"
	  . "SELECT node FROM uid_generator_status WHERE generator = 'uid_generators.$preset'::regclass AND protection = 'auto'";
	$clock += 10;
	set_clocks();
	($left, $right) = on_both($node_of);
	isnt($left, $right, 'the nodes are from far more than a test could meet by chance') if $preset eq 'baidu';
	while ($left == $right)
	{
		note("$preset: both have node $left by chance");
		$clock += 10;
		set_clocks();
		$session{right}->query_safe("SELECT uid_generator_alter('uid_generators.$preset', lease_ms => 1000)");
		$right = $session{right}->query_safe($node_of);
	}
	$clock += 10;
	set_clocks();
	my ($ids, $others) = on_both("SELECT unnest(uid_next_array('uid_generators.$preset', $count{$preset}))");
	my %drawn = map { $_ => 1 } split /\n/, $ids;
	is(scalar(keys %drawn), $count{$preset}, "$preset: $count{$preset} ids");
	is(scalar(grep { $drawn{$_} } split /\n/, $others), 0, '... and none that the other server has drawn');
}

# Two servers that share a node draw in the same ticks. Each has starts of its own where the layout spreads them.

my $same = "datacenter_bits => 0, worker_bits => 10, worker_policy => 'static', worker_number => 5";
on_both("SELECT uid_generator_create('spread', $same), uid_generator_create('plain', $same, spread => false)");

# How many of 20 ticks begin with the same id on both servers.
sub same_first_ids ($generator)
{
	my $equal = 0;
	foreach (1 .. 20)
	{
		$clock += 10.25;
		set_clocks();
		my @ids = on_both("SELECT uid_next('uid_generators.$generator')");
		$equal++ if $ids[0] == $ids[1];
	}
	return $equal;
}

is(same_first_ids('plain'), 20, 'without a spread every tick begins with the number 0');
my $equal = same_first_ids('spread');
foreach (1 .. 3)
{
	last if $equal == 0;
	note("equal in $equal ticks by chance"); # two of 3000 starts
	$session{right}->quit;
	$node{right}->stop;
	start_node($node{right});
	$session{right} = hold_open($node{right});
	$equal = same_first_ids('spread');
}
is($equal, 0, 'with a spread no tick begins as on the other server');

# Their rows, brought together, show who shares a node.
foreach my $side (qw(left right))
{
	wait_for_node_rows($node{$side}, "uid_generators.$_", 1) foreach 'plain', 'spread', keys %count;
}
my ($rows) = $session{right}->query_safe("COPY worker_node TO STDOUT");
$session{left}->query_safe('CREATE TABLE all_nodes (LIKE worker_node); INSERT INTO all_nodes SELECT * FROM worker_node');
$node{left}->safe_psql('postgres', "COPY all_nodes FROM STDIN;\n$rows\n\\.\n");
my ($of_pairs) = block_of('docs/operations.md', qr/JOIN all_nodes b/) =~ /^(SELECT .*);/ms;
my $pairs = "SELECT string_agg(generator || ' ' || other_generator, ', ' ORDER BY generator, other_generator)"
  . " FROM (SELECT DISTINCT generator, other_generator FROM ($of_pairs) all_pairs"
  . " WHERE generator ~ 'plain|spread' AND worker_id = 5 AND layout LIKE '41/0/10/12,%') p";
$session{left}->query_safe("UPDATE all_nodes SET modified = '2100-01-01'"); # both are in use still
is( $session{left}->query_safe($pairs) =~ s/uid_generators\.//gr,
	'plain plain, plain spread, spread plain, spread spread', 'two generators of each server share node 5');
$session{left}->query_safe('TRUNCATE all_nodes; INSERT INTO all_nodes SELECT * FROM worker_node');
is($session{left}->query_safe("SELECT count(*) FROM ($of_pairs) p"), 0, 'the rows of one database show no pair');
$session{$_}->quit foreach qw(left right);
$node{right}->stop;

# One server: what is said, what stays over a restart, and what the rows have.

my $node = $node{left};
$node->stop;
$node->append_conf('postgresql.conf', "log_min_messages = log\n");
$clock += 10;
set_clocks();
start_node($node);
$node->safe_psql('postgres', "CREATE DATABASE given");
my ($out, $error);
$node->psql('given', 'CREATE EXTENSION uidgen', stdout => \$out, stderr => \$error);
like($error, qr/NOTICE:  ids of this database could collide.*HINT:  To rule collisions out, set uidgen.datacenter_id/s,
	'CREATE EXTENSION says that nothing is set, and what to set');
$node->safe_psql('postgres', 'ALTER DATABASE given SET uidgen.datacenter_id = 1');
$node->psql('given', 'DROP EXTENSION uidgen; CREATE EXTENSION uidgen', stderr => \$error);
is($error, '', '... and then it says nothing');

$node->safe_psql('postgres', "SELECT uid_generator_create('sticky', worker_policy => 'sticky'), uid_generator_create('kept', 'leaf'), uid_generator_create('fixed', worker_policy => 'static', worker_number => 5)");
foreach my $round (1, 2)
{
	$node->safe_psql('postgres', "SELECT uid_next(), uid_next('uid_generators.$_')") foreach qw(sticky kept fixed);
	$node->safe_psql('given', 'SELECT uid_next()');
}

sub nodes ($generator)
{
	return $node->safe_psql('postgres', "SELECT d.datacenter_id, d.worker_id, s.protection, (d.datacenter_id, d.worker_id) = (s.datacenter_id, s.worker_id), s.node = d.datacenter_id * 32 + d.worker_id"
		  . " FROM uid_decode(uid_next('uid_generators.$generator'), 'uid_generators.$generator') d, uid_generator_status s WHERE s.generator = 'uid_generators.$generator'::regclass");
}

my (%first, %rows);
foreach my $generator (qw(uid_default sticky kept fixed))
{
	$rows{$generator} = wait_for_node_rows($node, "uid_generators.$generator", 1);
	$first{$generator} = nodes($generator);
	like($first{$generator}, qr/^\d+\|\d+\|auto\|t\|t$/, "$generator: ids and uid_generator_status have the same node");
	my ($datacenter, $worker) = split /\|/, $first{$generator};
	is( $node->safe_psql('postgres', "SELECT datacenter_id, worker_id, database = (SELECT oid FROM pg_database WHERE datname = 'postgres') FROM worker_node WHERE generator = 'uid_generators.$generator' ORDER BY id DESC LIMIT 1"),
		"$datacenter|$worker|t", '... and so has the row of worker_node');
}
foreach my $mode ('immediate', 'fast')
{
	$node->stop($mode);
	$clock += 10;
	set_clocks();
	start_node($node);
	$node->safe_psql('postgres', 'SELECT uid_next()');
	is(nodes('sticky'), $first{sticky}, "after a stop ($mode) sticky has its node");
	is(nodes('kept'), $first{kept}, '... and so has the preset leaf, as the original');
	is(nodes('fixed'), $first{fixed}, '... a static one has its worker id, and its datacenter id from the hash');
	isnt(nodes('uid_default'), $first{uid_default}, '... and a disposable one has another node');
	wait_for_node_rows($node, "uid_generators.$_", $rows{$_} + 1) foreach qw(sticky kept uid_default);
	$rows{$_}++ foreach qw(sticky kept uid_default);
}

# The log has a line for each start in which a generator drew, with what tells its ids from others.
my $log = slurp_file($node->logfile);
foreach my $generator (qw(sticky kept fixed))
{
	my ($datacenter, $worker) = split /\|/, $first{$generator};
	my $detail = $generator eq 'kept' ? 'Preset: leaf. Layout: 41/0/10/12, tick 1000 us, epoch 1288834974657000 us.'
	  : 'Preset: snowflake. Layout: 41/5/5/12, tick 1000 us, epoch 1767225600000000 us.';
	is(scalar(() = $log =~ /LOG:  generator "$generator" in database "postgres" draws with datacenter id $datacenter and worker id $worker\n.*DETAIL:  \Q$detail\E Protection: auto\.\n/g),
		3, "$generator: the log shows layout, node and protection, once for each start");
}
is(scalar(() = $log =~ /LOG:  generator "uid_default" in database "given" draws with datacenter id 1 and worker id \d+\n.*Protection: set\.\n/g),
	1, '... and that a number was given');

# Copies of a data directory. The layout makes a meeting by chance 1 in 4 million. A copy that has not drawn has other
# nodes even where nothing tells it from the original, as a container of one image, or a volume that was set back. Where
# the rows of a sticky generator were copied, the path of the directory and the birth of its files tell them apart.

my @policies = qw(disposable sticky);
$node->safe_psql('postgres', "SELECT uid_generator_create('copied_$_', 'baidu', worker_policy => '$_')") foreach @policies;
my %drawn;
sub draw_in ($place, $count)
{
	$clock += 10;
	set_clocks();
	start_node($node);
	foreach my $policy (@policies)
	{
		$drawn{$policy}{$place} = $node->safe_psql('postgres',
			"SELECT worker_id FROM uid_decode(uid_next('uid_generators.copied_$policy'), 'uid_generators.copied_$policy')");
		wait_for_node_rows($node, "uid_generators.copied_$policy", $count);
	}
	$node->stop;
}
$node->stop;
my $image = $node->data_dir . '.image';
my $data = $node->data_dir;
system_or_bail('cp', '-a', $data, $image);
draw_in('at first', 1);
# All but the file by which a place is known.
system_or_bail('sh', '-c', "cd '$data' && find . -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec rm -r {} + && cd '$image' && find . -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec cp -a {} '$data' ';'");
draw_in('set back', 1);
my $original = $node->data_dir . '.original';
rename $node->data_dir, $original or die "could not move the data directory: $!";
system_or_bail('cp', '-a', $original, $node->data_dir);
draw_in('in the same directory', 2);
my $sticky = $drawn{sticky}{'in the same directory'};
draw_in('in the same directory', 3);
is($drawn{sticky}{'in the same directory'}, $sticky, 'a sticky generator of a copy keeps the node that it has there');
system_or_bail('rm', '-r', $node->data_dir);
my $copy = $node->data_dir . '.copy';
system_or_bail('cp', '-a', $original, $copy);
symlink $copy, $node->data_dir or die "could not make a link: $!";
draw_in('in another directory', 2);
unlink $node->data_dir;
rename $original, $node->data_dir or die "could not move the data directory: $!";
draw_in('in place', 2);
is($drawn{sticky}{'in place'}, delete $drawn{sticky}{'set back'}, 'the original keeps its node');
foreach my $policy (@policies)
{
	my %places = reverse %{ $drawn{$policy} };
	is(scalar(keys %places), scalar(keys %{ $drawn{$policy} }), "$policy: the original and its copies have different nodes")
	  || diag(explain($drawn{$policy}));
}

done_testing();
