# Where worker ids come from, on a server that stops and crashes: fields that wrap, the worker policies disposable,
# sticky and static, generators of one layout side by side, and the backup worker's bit. No id is issued twice, whatever
# the worker ids are.
#
# The datacenter id is set, so the drawn bits are those of the worker field; 029_nodes.t has the rest.
#
# The sequence of worker_node is moved to where the widest field wraps, instead of starting the server four million
# times. All clocks stand still.
use UidgenTest 'preloaded';
use Clients;
use Clock;

my $node = new_node('worker_ids', conf => "autovacuum = off\nuidgen.max_wait = 0\nuidgen.datacenter_id = 0\n");
use_fake_clock($node);
my $clock = 0.5;
freeze_clock($node, $clock);
start_uidgen($node);
my $session = hold_open($node);

my (%given, %rows, %row_of);

# Draws ids, one after the other, and waits for the row of worker_node if it is the first draw since a start or an
# alteration; returns the last id's worker id, backup bit and row.
sub draw ($generator, $again = 0)
{
	my @ids = split /\n/, $session->query_safe("SELECT uid_next('uid_generators.$generator') FROM generate_series(1, 3)");
	push @{ $given{$generator} }, @ids;
	wait_for_node_rows($node, "uid_generators.$generator", ++$rows{$generator}) unless $again;
	my %draw;
	@draw{qw(worker backup row row_worker)} = split /\|/, $session->query_safe(
		"SELECT d.worker_id, d.backup, n.id, n.worker_id FROM uid_decode($ids[-1], 'uid_generators.$generator') d,"
		  . " LATERAL (SELECT id, worker_id FROM worker_node WHERE generator = 'uid_generators.$generator' ORDER BY id DESC LIMIT 1) n"),
	  -1;
	$row_of{$generator}{$_} = $draw{row} foreach @ids;
	return \%draw;
}

sub create ($name, $arguments)
{
	$session->query_safe("SELECT uid_generator_create('$name', $arguments)");
}

# The next number that is drawn will be this one.
sub draw_next ($number)
{
	$session->query_safe("SELECT setval('worker_node_id_seq', $number, false)");
}

# Six starts. The draws before the third reach over 2^22, where every field here comes round;
# from the fourth on they come once more, with the same numbers in every field.

my %bits = (field_4 => 4, field_5 => 5, field_10 => 10, field_22 => 22);
my @drawn = sort { $bits{$a} <=> $bits{$b} } keys %bits;
my @everyone = (@drawn, 'sticky', 'static', 'disposable');
create('field_4', "worker_bits => 4");
create('field_5', "worker_bits => 5, sequence_bits => 11");
create('field_10', "time_bits => 40, datacenter_bits => 1, worker_bits => 10");
create('field_22', "preset => 'baidu', datacenter_bits => 1, sequence_bits => 12, when_full => 'borrow', when_back => 'hold'");
create('sticky', "worker_policy => 'sticky'");
create('static', "worker_policy => 'static', worker_number => 20");
create('disposable', "worker_policy => 'disposable'");

my %workers;
foreach my $start (1 .. 6)
{
	$session->quit;
	# A crash, a clean stop, a crash, ...
	$node->stop($start % 2 ? 'immediate' : 'fast');
	$clock += 2;
	freeze_clock($node, $clock);
	start_node($node);
	$session = hold_open($node);
	draw_next(($start < 4 ? 1 : 2) * 2**22 - 8) if $start == 1 || $start == 4;
	foreach my $generator (@everyone)
	{
		my $draw = draw($generator);
		push @{ $workers{$generator} }, $draw->{worker};
		is($draw->{row_worker}, $draw->{worker}, "start $start: worker_node has the worker id of $generator");
		is($draw->{worker}, $draw->{row} % 2**$bits{$generator}, '... which is the draw, modulo the field')
		  if $bits{$generator};
		is($draw->{backup}, 'f', '... and a layout without a backup worker has no backup ids') if $start == 1;
	}
}
foreach my $generator (@drawn)
{
	my @numbers = @{ $workers{$generator} };
	cmp_ok($numbers[2], '<', $numbers[0], "a field of $bits{$generator} bits comes round");
	is_deeply([ @numbers[ 3 .. 5 ] ], [ @numbers[ 0 .. 2 ] ], '... and each of its numbers was drawn again');
}
is_deeply($workers{sticky}, [ (28) x 6 ], 'sticky keeps its number over crashes and stops');
is_deeply($workers{static}, [ (20) x 6 ], 'static has the number that it was given');
is_deeply($workers{disposable}, [ 30, 5, 12, 30, 5, 12 ], 'disposable draws a new one at each start');

# How often a call reads worker_node: whole, and by its indexes.
sub reads_of_node_rows ($session, $call)
{
	my $reads = q{SELECT coalesce(seq_scan, 0), coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables WHERE relname = 'worker_node'};
	my $sql = "BEGIN; $reads; SELECT $call IS NULL; $reads; COMMIT";
	my @lines = split /\n/, $session->query_safe($sql);
	my ($before, $after) = map { [ split /\|/ ] } @lines[ 0, 2 ];
	return join ' ', map { $after->[$_] - $before->[$_] } 0, 1;
}

# A first draw reads the rows only where it asks for the former one: those with the generator's oid, then with its name.
foreach my $reads ([ 'sticky', '0 2' ], [ 'static', '0 0' ], [ 'disposable', '0 0' ])
{
	my ($policy, $expected) = @$reads;
	$session->query_safe("SELECT uid_generator_create('reads_$policy', worker_policy => '$policy'" . ($policy eq 'static' ? ', worker_number => 3)' : ')'));
	is(reads_of_node_rows($session, "uid_next('uid_generators.reads_$policy')"), $expected, "a first draw with the policy $policy reads worker_node: scans, and lookups");
}

# Live generators of one layout hold different numbers while there are enough.

my $crowd = 'worker_bits => 4, sequence_bits => 10';
create("crowd_$_", $crowd) foreach 0 .. 16;
my @crowd;
foreach my $number (0 .. 15)
{
	# All would have the same number if they took what they draw.
	draw_next(2**23 + 16 * (20 * $number + 1) + 5);
	push @crowd, draw("crowd_$number")->{worker};
}
is_deeply([ sort { $a <=> $b } @crowd ], [ 0 .. 15 ], '16 generators with 4 bits have a number each');

# The number that is given up is the only one that is left.
$clock += 10;
freeze_clock($node, $clock);
$session->query_safe("SELECT uid_generator_alter('uid_generators.crowd_3', lease_ms => 500)");
draw_next(2**24 + $crowd[3] + 1);
is(draw('crowd_3')->{worker}, $crowd[3], 'one that draws anew takes the number that is free, wherever the draw begins');
my $one_too_many = draw('crowd_16');
is(scalar(grep { $_ == $one_too_many->{worker} } @crowd), 1, 'one more than there are numbers has that of another');
draw_next(2**25 + $workers{field_4}[5]);
$session->query_safe("SELECT uid_generator_alter('uid_generators.field_4', lease_ms => 500)");
is(draw('field_4')->{worker}, $workers{field_4}[5], 'generators of another layout are not in the way');

# The backup worker: the top bit of the field, which no draw has.

create('backup', "preset => 'js53', datacenter_bits => 1");
my (%seen, %backup);
foreach my $number (0 .. 31)
{
	$clock += 10;
	freeze_clock($node, $clock);
	$session->query_safe("SELECT uid_generator_alter('uid_generators.backup', lease_ms => 1000)");
	draw_next(2**26 + $number);
	my $draw = draw('backup');
	$seen{ $draw->{worker} }++;
	$backup{ $draw->{backup} }++;
}
is_deeply([ sort { $a <=> $b } keys %seen ], [ 0 .. 15 ], 'of 5 bits with a backup worker 4 are drawn');
is_deeply(\%backup, { f => 32 }, '... and uid_decode() says that the primary worker made the ids');

# It was altered ten seconds ago. Of the time before, the backup worker does not know which ids it made itself.
freeze_clock($node, $clock - 3600);
is(sqlstate($session, "SELECT uid_next('uid_generators.backup')"), '55000',
	'the backup worker does not go back beyond the instant from which the generator is in use');
$session->{stderr} = '';
freeze_clock($node, $clock - 5);
my $primary = $given{backup}[-1];
my $draw = draw('backup', 1);
is($draw->{backup}, 't', '5 s back: uid_decode() says that the backup worker made the id');
is($draw->{worker}, 15, '... and shows the number without the bit');
is( $session->query_safe("SELECT " . join(', ', map { "($_ >> 16) & 31" } $primary, $given{backup}[-1])),
	'15|31', '... which is the top one of the field');
# Its tolerance is a second, a tick.
freeze_clock($node, $clock - 6);
is(draw('backup', 1)->{backup}, 't', 'back once more, by its tolerance: the backup worker goes on');
freeze_clock($node, $clock - 7);
is(sqlstate($session, "SELECT uid_next('uid_generators.backup')"), '55000', '... and by more it does not');
$session->{stderr} = '';
freeze_clock($node, $clock);
is(draw('backup', 1)->{backup}, 'f', 'the clock is right again, and so is the primary worker');
# Four ids a second. When they are used up, the backup worker goes on, and borrows: the primary worker's ids keep the time
# that the clock shows.
create('borrows', "preset => 'js53', sequence_bits => 2, datacenter_bits => 1");
my $made = "SELECT string_agg(format('%%s %%ss %%s', backup, round(extract(epoch FROM generated_at - date_trunc('second', clock_timestamp()))), n), ', ' ORDER BY backup, generated_at)"
  . " FROM (SELECT d.backup, d.generated_at, count(*) AS n FROM unnest(uid_next_array('uid_generators.borrows', %d)) AS id, uid_decode(id, 'uid_generators.borrows') d GROUP BY 1, 2) AS d";
my $shown = "SELECT ahead_ms / 1000, last_time = max(d.generated_at) FROM uid_generator_status,"
  . " LATERAL (SELECT generated_at FROM uid_decode(%s, 'uid_generators.borrows')) d WHERE generator = 'uid_generators.borrows'::regclass GROUP BY 1, last_time";
is($session->query_safe(sprintf $made, 16), 'f 0s 4, t 0s 4, t 1s 4, t 2s 4', 'the backup worker borrows from the next two seconds');
is(sqlstate($session, "SELECT uid_next('uid_generators.borrows')"), '55000', '... and no more');
$session->{stderr} = '';
is($session->query_safe(sprintf $shown, 'uid_last()'), '1|t', 'the status shows how far ahead the ids of the backup worker are');
freeze_clock($node, ++$clock);
is($session->query_safe(sprintf $made, 5), 'f 0s 4, t 2s 1', '... a second later the primary worker has the time of the clock');

is(sqlstate($session, "SELECT uid_generator_create('bit', preset => 'js53', worker_policy => 'static', worker_number => 16)"),
	'22023', 'a worker number with the bit is refused');
is(sqlstate($session, "SELECT uid_generator_create('bit', preset => 'js53', worker_policy => 'static', worker_number => 15)"),
	'00000', '... and the one below it is not');

# Over all of the above.

is(repeated(map { my $generator = $_; map { "$generator $_" } @{ $given{$generator} } } keys %given), '', 'no id came twice');

# An id leads to the row of its draw, also where numbers came round, and from the backup worker. Where the worker id stays
# the same over a restart, the ids just after it may lead to the row before it, which is of the same server.
foreach my $generator (sort keys %row_of)
{
	my $pairs = join ', ', map { "($_, $row_of{$generator}{$_})" } sort keys %{ $row_of{$generator} };
	my $wrong = $generator =~ /^(?:sticky|static)$/ ? 'o.node_id IS NULL' : 'o.node_id IS DISTINCT FROM v.row_id';
	is( $session->query_safe("SELECT count(*) FILTER (WHERE $wrong OR o.generator_name <> 'uid_generators.$generator')"
			  . " FROM (VALUES $pairs) v (id, row_id), LATERAL uid_origin(v.id, 'uid_generators.$generator') o"),
		0, "uid_origin() finds the rows of $generator");
}

$session->quit;
$node->stop;
done_testing();
