# Which node the ids of a generator have: another one than those of a server that was told nothing either, and of a copy;
# what stays over a crash and a stop, and what comes round; the backup worker's bit. What needs no start is in sql/nodes.sql.
#
# All clocks stand still, so two servers draw in the same ticks.
use UidgenTest 'preloaded';
use Clients;
use Clock;
use Pages;

my %session;
my %node = map { $_ => new_node($_, conf => "autovacuum = off\nuidgen.max_wait = 0\nlog_min_messages = log\n") } qw(left right);
my $clock = 0.5;

sub move_clocks ($seconds)
{
	$clock += $seconds;
	freeze_clock($node{$_}, $clock) foreach qw(left right);
}

sub on_both ($sql)
{
	return map { $session{$_}->query_safe($sql) } qw(left right);
}

use_fake_clock($node{$_}) foreach qw(left right);
move_clocks(0);
foreach my $side (qw(left right))
{
	start_uidgen($node{$side});
	$session{$side} = hold_open($node{$side});
}
is(repeated(on_both('SELECT system_identifier FROM pg_control_system()')), '', 'two servers, each with its own initdb');

# Two fresh servers without any setting. Generators of a layout with few nodes may have the same one by chance.

my %count = (snowflake => 100_000, leaf => 3_900, js53 => 60_000, baidu => 8_000, sonyflake => 250, instagram => 1_000);
on_both("SELECT uid_generator_create('$_', '$_'); SELECT uid_next('uid_generators.$_')") foreach sort keys %count;
move_clocks(10);
foreach my $preset (sort keys %count)
{
	my ($left, $right) = on_both("SELECT node || protection FROM uid_generator_status WHERE generator = 'uid_generators.$preset'::regclass");
	like("$left $right", qr/^\d+auto \d+auto$/, "$preset: nodes that nobody has chosen");
	isnt($left, $right, '... and from so many that two servers have different ones') if $preset eq 'baidu';
	my ($ids, $others) = on_both("SELECT unnest(uid_next_array('uid_generators.$preset', $count{$preset}))");
	my %drawn = map { $_ => 1 } split /\n/, $ids;
	is(scalar(keys %drawn), $count{$preset}, "... $count{$preset} ids");
	is(scalar(grep { $drawn{$_} } split /\n/, $others), 0, '... and none that the other server has drawn') unless $left eq $right;
}

# Two servers that share a node draw in the same ticks. Each has starts of its own where the layout spreads them.

my $same = "tick_us => 1000000, time_bits => 31, datacenter_bits => 0, worker_bits => 10, sequence_bits => 22, worker_policy => 'static', worker_number => 5";
on_both("SELECT uid_generator_create('spread', $same), uid_generator_create('plain', $same, spread => false)");
my %equal;
foreach my $tick (1 .. 4)
{
	move_clocks(10);
	foreach my $generator (qw(plain spread))
	{
		my @ids = on_both("SELECT uid_next('uid_generators.$generator')");
		$equal{$generator} += $ids[0] == $ids[1];
	}
}
is_deeply(\%equal, { plain => 4, spread => 0 }, 'a tick begins with the same id on both servers without a spread, and with one it does not');

# Their rows, brought together, show who shares a node.
foreach my $side (qw(left right))
{
	wait_for_node_rows($node{$side}, "uid_generators.$_", 1) foreach 'plain', 'spread', keys %count;
}
my $rows = $session{right}->query_safe('COPY worker_node TO STDOUT');
$session{left}->query_safe('CREATE TABLE all_nodes (LIKE worker_node); INSERT INTO all_nodes SELECT * FROM worker_node');
my ($of_pairs) = block_of('docs/operations.md', qr/JOIN all_nodes b/) =~ /^(SELECT .*);/ms;
is($session{left}->query_safe("SELECT count(*) FROM ($of_pairs) p"), 0, 'the rows of one database show no pair');
sql("COPY all_nodes FROM STDIN;\n$rows\n\\.\n");
$session{left}->query_safe("UPDATE all_nodes SET modified = '2100-01-01'"); # both are in use still
my $pairs = "SELECT string_agg(generator || ' ' || other_generator, ', ' ORDER BY generator, other_generator)"
  . " FROM (SELECT DISTINCT generator, other_generator FROM ($of_pairs) all_pairs WHERE generator ~ 'plain|spread' AND worker_id = 5 AND layout LIKE '31/0/10/22,%') p";
is( $session{left}->query_safe($pairs) =~ s/uid_generators\.//gr,
	'plain plain, plain spread, spread plain, spread spread', 'two generators of each server share node 5');
$session{$_}->quit foreach qw(left right);
$node{right}->stop;

# One server through crashes and stops, with a database that has a datacenter id, and one that has none. There the numbers
# that are drawn reach over 2^22, where every field comes round, and then come once more.

my $node = $node{left};
my @generators = (
	# database, name, how it is made, what its node is at each start
	[ 'postgres', 'sticky', "worker_policy => 'sticky'", 'stays' ],
	[ 'postgres', 'kept', "'leaf'", 'stays' ],
	[ 'postgres', 'fixed', "worker_policy => 'static', worker_number => 5", 'stays' ],
	[ 'postgres', 'other', "'baidu'", 'is another one' ],
	[ 'given', 'sticky', "worker_policy => 'sticky'", 'stays' ],
	[ 'given', 'fixed', "worker_policy => 'static', worker_number => 20", 'stays' ],
	[ 'given', 'field_4', 'worker_bits => 4', 'comes round', 4 ],
	[ 'given', 'field_5', 'worker_bits => 5', 'comes round', 5 ],
	[ 'given', 'field_10', 'time_bits => 40, datacenter_bits => 1, worker_bits => 10', 'comes round', 10 ],
	[ 'given', 'field_22', "'baidu', datacenter_bits => 1, sequence_bits => 12", 'comes round', 22 ]);
sql('CREATE DATABASE given; ALTER DATABASE given SET uidgen.datacenter_id = 1');
sql('CREATE EXTENSION uidgen', 'given');
sql("SELECT uid_generator_create('$_->[1]', $_->[2])", $_->[0]) foreach @generators;
my (%nodes, %lines, @ids, %row_of);
foreach my $start (1 .. 4)
{
	$node->stop($start % 2 ? 'immediate' : 'fast');
	move_clocks(10);
	start_node($node);
	sql("SELECT setval('worker_node_id_seq', @{[ $start * 2**22 - 6 ]}, false)", 'given') if $start % 2;
	my %drawn;
	foreach (@generators)
	{
		my ($database, $name) = @$_;
		$drawn{"$database $name"} = sql("SELECT uid_next('uid_generators.$name') FROM generate_series(1, 3)", $database);
	}
	foreach (@generators)
	{
		my ($database, $name, undef, undef, $bits) = @$_;
		my $key = "$database $name";
		my @drawn = split /\n/, $drawn{$key};
		wait_for_node_rows($node, "uid_generators.$name", $start, dbname => $database);
		my ($of_ids, $of_status, $is_node, $of_row, $is_here, $row, $line) = split /\|/, sql(<<"SQL", $database);
SELECT (SELECT string_agg(DISTINCT concat_ws('/', datacenter_id, worker_id, CASE WHEN backup THEN 'backup' END), ' ') FROM unnest('{@{[ join ',', @drawn ]}}'::bigint[]) id, uid_decode(id, g.generator)),
       concat_ws('/', s.datacenter_id, s.worker_id), s.node = (s.datacenter_id::bigint << g.worker_bits) + s.worker_id,
       concat_ws('/', n.datacenter_id, n.worker_id), n.database = d.oid, n.id,
       format('datacenter id %s and worker id %s, Preset: %s. Layout: %s. Protection: %s.', n.datacenter_id, n.worker_id, g.preset, n.layout, s.protection)
  FROM uid_generator g JOIN uid_generator_status s USING (generator), pg_database d, LATERAL (SELECT * FROM worker_node WHERE sequence = g.generator ORDER BY id DESC LIMIT 1) n
 WHERE g.generator = 'uid_generators.$name'::regclass AND d.datname = current_database()
SQL
		is("$of_status $is_node $of_row $is_here", "$of_ids t $of_ids t", "start $start, $key: ids, uid_generator_status and worker_node have the same node");
		push @{ $nodes{$key} }, $of_ids;
		push @{ $lines{$key} }, $line;
		push @ids, map { "$key $_" } @drawn;
		$row_of{$key}{$_} = $row foreach @drawn;
		is($nodes{$key}[-1], '1/' . $row % 2**$bits, '... which is the datacenter id, and the number modulo the field') if $bits;
	}
}
is(repeated(@ids), '', 'no id came twice');

my $log = slurp_file($node->logfile);
foreach (@generators)
{
	my ($database, $name, undef, $is) = @$_;
	my $key = "$database $name";
	my @of_starts = @{ $nodes{$key} };
	is_deeply(\@of_starts, [ ($of_starts[0]) x 4 ], "$key: the node stays") if $is eq 'stays';
	is(repeated(@of_starts), '', "$key: the node is another one at each start") if $is eq 'is another one';
	if ($is eq 'comes round')
	{
		my @numbers = map { s{.*/}{}r } @of_starts;
		cmp_ok($numbers[1], '<', $numbers[0], "$key: the number comes round");
		is_deeply([ @numbers[ 2, 3 ] ], [ @numbers[ 0, 1 ] ], '... and comes once more');
	}
	my @said = $log =~ /LOG:  generator "$name" in database "$database" draws with (.*)\n.*DETAIL:  (.*)\n/g;
	is_deeply([ map { "$said[2 * $_], $said[2 * $_ + 1]" } 0 .. @said / 2 - 1 ], $lines{$key}, '... the log has a line for each start');
	# Where the node stays, the ids just after a start may lead to the row before it, which is of the same server.
	my $pairs = join ', ', map { "($_, $row_of{$key}{$_})" } sort keys %{ $row_of{$key} };
	my $wrong = $is eq 'stays' ? 'o.node_id IS NULL' : 'o.node_id IS DISTINCT FROM v.row_id';
	is( sql("SELECT count(*) FROM (VALUES $pairs) v (id, row_id), LATERAL uid_origin(v.id, 'uid_generators.$name') o WHERE $wrong OR o.generator_name <> 'uid_generators.$name'", $database),
		0, '... and uid_origin() finds the row of each id');
}
is_deeply([ map { $lines{$_}[0] =~ s/.* Protection/Protection/r } 'postgres kept', 'given fixed' ], [ 'Protection: auto.', 'Protection: set.' ],
	'which says whether a datacenter id was given');

# The backup worker: the top bit of the field, which no draw has.

my $session = hold_open($node);

sub backup_at ($seconds)
{
	freeze_clock($node, $clock + $seconds);
	my ($state) = sqlstate($session, "SELECT uid_next('uid_generators.backup')");
	$session->{stderr} = '';
	return $state eq '00000' ? $session->query_safe("SELECT worker_id, backup FROM uid_decode(uid_last(), 'uid_generators.backup')") : $state;
}

$session->query_safe("SELECT uid_generator_create('backup', 'js53')");
backup_at(0);
# Of the time before it was altered, the backup worker does not know which ids it made itself.
move_clocks(10);
$session->query_safe("SELECT uid_generator_alter('uid_generators.backup', lease_ms => 1000)");
my ($worker) = split /\|/, backup_at(0);
is(backup_at(-3600), '55000', 'the backup worker does not go back beyond the instant from which the generator is in use');
is(backup_at(-5), "$worker|t", '5 s back: the backup worker makes the id, which shows the number without the bit');
# Its tolerance is a second, a tick.
is(backup_at(-6), "$worker|t", 'back once more, by its tolerance: the backup worker goes on');
is(backup_at(-7), '55000', '... and by more it does not');
is(backup_at(0), "$worker|f", 'the clock is right again, and so is the primary worker');
# Four ids a second. When they are used up, the backup worker goes on, and borrows: the primary worker's ids keep the time
# that the clock shows.
$session->query_safe("SELECT uid_generator_create('borrows', 'js53', sequence_bits => 2)");
my $made = "SELECT string_agg(format('%%s %%ss %%s', backup, round(extract(epoch FROM generated_at - date_trunc('second', clock_timestamp()))), n), ', ' ORDER BY backup, generated_at)"
  . " FROM (SELECT d.backup, d.generated_at, count(*) AS n FROM unnest(uid_next_array('uid_generators.borrows', %d)) AS id, uid_decode(id, 'uid_generators.borrows') d GROUP BY 1, 2) AS d";
is($session->query_safe(sprintf $made, 16), 'f 0s 4, t 0s 4, t 1s 4, t 2s 4', 'the backup worker borrows from the next two seconds');
is(sqlstate($session, "SELECT uid_next('uid_generators.borrows')"), '55000', '... and no more');
$session->{stderr} = '';
is($session->query_safe("SELECT ahead_ms / 1000, last_time = generated_at FROM uid_generator_status s, uid_decode(uid_last(), 'uid_generators.borrows') WHERE s.generator = 'uid_generators.borrows'::regclass"),
	'1|t', 'the status shows how far ahead the ids of the backup worker are');
move_clocks(1);
is($session->query_safe(sprintf $made, 5), 'f 0s 4, t 2s 1', '... a second later the primary worker has the time of the clock');
$session->quit;

# Copies of a data directory. The layout makes a meeting by chance 1 in 4 million. A copy that has not drawn has other
# nodes even where nothing tells it from the original, as a container of one image, or a volume that was set back. Where
# the rows of a sticky generator were copied, the path of the directory and the birth of its files tell them apart.

my @policies = qw(disposable sticky);
sql("SELECT uid_generator_create('copied_$_', 'baidu', worker_policy => '$_')") foreach @policies;
my %drawn;
sub draw_in ($place, $count)
{
	move_clocks(10);
	start_node($node);
	foreach my $policy (@policies)
	{
		$drawn{$policy}{$place} = sql("SELECT worker_id FROM uid_decode(uid_next('uid_generators.copied_$policy'), 'uid_generators.copied_$policy')");
	}
	wait_for_node_rows($node, "uid_generators.copied_$_", $count) foreach @policies;
	$node->stop;
}
$node->stop;
my $data = $node->data_dir;
my ($image, $original, $copy) = map { "$data.$_" } qw(image original copy);
system_or_bail('cp', '-a', $data, $image);
draw_in('at first', 1);
# All but the file by which a place is known.
system_or_bail('sh', '-c', "cd '$data' && find . -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec rm -r {} + && cd '$image' && find . -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec cp -a {} '$data' ';'");
draw_in('set back', 1);
rename $data, $original or die "could not move the data directory: $!";
system_or_bail('cp', '-a', $original, $data);
draw_in('in the same directory', 2);
my $sticky = $drawn{sticky}{'in the same directory'};
draw_in('in the same directory', 3);
is($drawn{sticky}{'in the same directory'}, $sticky, 'a sticky generator of a copy keeps the node that it has there');
system_or_bail('rm', '-r', $data);
system_or_bail('cp', '-a', $original, $copy);
symlink $copy, $data or die "could not make a link: $!";
draw_in('in another directory', 2);
unlink $data;
rename $original, $data or die "could not move the data directory: $!";
draw_in('in place', 2);
is($drawn{sticky}{'in place'}, delete $drawn{sticky}{'set back'}, 'the original keeps its node');
is(repeated(values %{ $drawn{$_} }), '', "$_: the original and its copies have different nodes") foreach @policies;

done_testing();
