# Clock policies on a real server whose clock steps: each policy of docs/clocks.md and each step, while the server runs and
# across a crash (a clean stop leaves no more behind: 001_matrix.t); and the end of a generator's time.
#
# All clocks stand still at instants that the test chooses, in the middle
# of a tick of every layout. uidgen.max_wait is 0, so a wait shows as its error, and nothing else waits.
use POSIX ();
use Time::Local ();
use UidgenTest;
use Clients;
use Clock;
use Installation;

skip_with_assertions();

my $day = 24 * 3600;
my $year = 365 * $day;
my %unit = (ms => 1, s => 1000, h => 3600 * 1000, year => $year * 1000);

# Not at 0.5 s: the clock may step by 4 ms without leaving a tick of 10 ms.
my $in_tick = 0.5055;

# The rows of a table, as lists of cells.
sub rows_of ($text)
{
	return map { [ split / *\| */, s/^\| //r ] } grep { /^\|/ && !/^\| ---/ } split /\n/, $text;
}

# A cell with its amount in milliseconds: 'waits 1 h - 2 s' is 'waits 3598000 ms'.
sub in_ms ($cell)
{
	my $amount = qr/([\d.]+) (ms|s|h|year)\b/;
	return $cell =~ s{$amount(?: [-+] $amount)*}{sprintf '%.0f ms', eval $& =~ s/$amount/$1 * $unit{$2}/gr}er;
}

my ($page) = slurp_file('docs/clocks.md') =~ /^## The generators\n(.*?)^## /ms;
my (undef, @made) = rows_of($page);
my %made_with = map { $_->[0] => $_->[1] =~ s/`//gr } @made;
my @policies = map { $_->[0] } @made;

# "id, 1 s ahead": an id whose time is that far ahead of the clock. "backup": one of the backup worker. "waits 1 s": an id
# when the clock has advanced by that much. "error: 1 s": the clock is back by that much.
my %matrix = (running => <<'TABLE', crash => <<'TABLE');
| generator | no step | back 1 ms | back 4 ms | back 1 s | back 1 h | back 1 year | forward 1 year, id, back |
| snowflake | id | id, 1 ms ahead | id, 4 ms ahead | id, 1 s ahead | waits 1 h - 2 s | waits 1 year - 2 s | waits 1 year - 2 s |
| twitter | id | error: 1 ms | error: 4 ms | error: 1 s | error: 1 h | error: 1 year | error: 1 year |
| hutool | id | id, 1 ms ahead | id, 4 ms ahead | id, 1 s ahead | error: 1 h | error: 1 year | error: 1 year |
| leaf | id | waits 1 ms | waits 4 ms | error: 1 s | error: 1 h | error: 1 year | error: 1 year |
| baidu | id | id | id | error: 1 s | error: 1 h | error: 1 year | error: 1 year |
| js53 | id | id | id | backup | backup | backup | backup |
| sonyflake | id | id | id | id, 1 s ahead | waits 1 h - 2 s | waits 1 year - 2 s | waits 1 year - 2 s |
| instagram | id | id, 1 ms ahead | id, 4 ms ahead | id, 1 s ahead | waits 1 h - 2 s | waits 1 year - 2 s | waits 1 year - 2 s |
TABLE
| generator | no step | back 1 ms | back 4 ms | back 1 s | back 1 h | back 1 year | forward 1 year, id, back |
| snowflake | id, 1 s ahead | id, 1.001 s ahead | id, 1.004 s ahead | waits 62 ms | waits 1 h - 938 ms | waits 1 year - 938 ms | waits 1 year - 938 ms |
| twitter | waits 1 s | waits 1.001 s | waits 1.004 s | waits 2 s | error: 1 h - 1.001 s | error: 1 year - 1.001 s | error: 1 year - 1.001 s |
| hutool | waits 1 s | waits 1.001 s | waits 1.004 s | waits 2 s | error: 1 h - 1.001 s | error: 1 year - 1.001 s | error: 1 year - 1.001 s |
| leaf | waits 1 s | waits 1.001 s | waits 1.004 s | waits 2 s | error: 1 h - 1.001 s | error: 1 year - 1.001 s | error: 1 year - 1.001 s |
| baidu | waits 2 s | waits 2 s | waits 2 s | waits 3 s | error: 1 h - 1 s | error: 1 year - 1 s | error: 1 year - 1 s |
| js53 | id, 2 s ahead | id, 2 s ahead | id, 2 s ahead | waits 1 s | error: 1 h - 1 s | error: 1 year - 1 s | error: 1 year - 1 s |
| sonyflake | waits 1 s | waits 1 s | waits 1 s | waits 2 s | waits 1 h + 1 s | waits 1 year + 1 s | waits 1 year + 1 s |
| instagram | waits 1 s | waits 1.001 s | waits 1.004 s | waits 2 s | waits 1 h + 1 s | waits 1 year + 1 s | waits 1 year + 1 s |
TABLE

# $cells{mode}{policy}[step]
my (@steps, %cells);
foreach my $mode (sort keys %matrix)
{
	my ($titles, @rows) = rows_of($matrix{$mode});
	(undef, @steps) = @$titles;
	$cells{$mode} = { map { my ($policy, @texts) = @$_; ($policy => [ map { in_ms($_) } @texts ]) } @rows };
	is_deeply([ sort keys %{ $cells{$mode} } ], [ sort @policies ], "the table has every policy of the page: $mode");
}

# Drawing.

my $node = new_server('policies', conf => "autovacuum = off\nuidgen.max_wait = 0\n", clock => $in_tick);

# The presets, as docs/layouts.md has them: widths, tick, end, rate, and numbers of ids; without remarks in brackets.
{
	my ($rows) = slurp_file('docs/layouts.md') =~ /^\| preset \|.*?\n((?:\|.*\n)+)/m;
	my %said;
	foreach my $row (rows_of($rows =~ s/, twice//r))
	{
		my ($names, @cells) = @$row;
		$said{$_} = join '|', @cells[ 0, 1 ], $cells[2] =~ /^day/ ? '' : $cells[3], $cells[4] =~ s/ .*//r, $cells[5] foreach $names =~ /`(\w+)`/g;
	}
	my %layouts = map { split /\|/, $_, 2 } split /\n/, sql(<<'SQL');
SELECT preset, concat_ws(' / ', time_bits, datacenter_bits, worker_bits, sequence_bits),
       CASE WHEN tick_us < 1000000 THEN tick_us / 1000 || ' ms' ELSE tick_us / 1000000 || ' s' END,
       (to_timestamp(extract(epoch FROM epoch)::float8 + 2 ^ time_bits * (tick_us / 1e6)) AT TIME ZONE 'UTC')::date,
       to_char(2 ^ (sequence_bits + backup_worker::int) * 1e6 / tick_us, 'FM999,999,999'),
       to_char(2 ^ datacenter_bits, 'FM999,999,999') || ' × ' || to_char(2 ^ (worker_bits - backup_worker::int), 'FM999,999,999')
  FROM uid_preset
SQL
	is_deeply(\%said, \%layouts, 'docs/layouts.md has the layouts of the presets');
}

# One draw: the id and its parts, or the error; and the counter after it.
my @fields = qw(id ahead_ms tick backup counter state message detail);
sql(<<'SQL');
CREATE FUNCTION try_next(generator regclass, OUT id bigint, OUT ahead_ms bigint, OUT tick bigint, OUT backup boolean,
    OUT counter bigint, OUT state text, OUT message text, OUT detail text)
LANGUAGE plpgsql AS $$
DECLARE
  g uid_generator;
BEGIN
  SELECT * INTO g FROM uid_generator AS c WHERE c.generator = try_next.generator;
  BEGIN
    id := uid_next(generator);
    SELECT ceil(extract(epoch FROM d.generated_at - clock_timestamp()) * 1000000 / g.tick_us) * g.tick_us / 1000, d.backup
      INTO ahead_ms, backup FROM uid_decode(id, generator) d;
    tick := id >> (g.datacenter_bits + g.worker_bits + g.sequence_bits);
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
  END;
  EXECUTE format('SELECT last_value FROM %s', generator) INTO counter;
END
$$;
CREATE TABLE committed (at timestamptz);
SQL

my $session = hold_open($node);

# All ids that a client was given, in the order of the calls.
my %given;

sub try_next ($generator)
{
	# What else it says, a warning that the time bits end, is not an error.
	my $row = $session->query("SELECT * FROM try_next('uid_generators.$generator')");
	$session->{stderr} = '';
	my %draw;
	@draw{@fields} = split /\|/, $row, -1;
	push @{ $given{$generator} }, \%draw if $draw{id} ne '';
	return \%draw;
}

# The outcome in the words of the tables.
sub outcome ($generator, $draw)
{
	return ($draw->{backup} eq 't' ? 'backup' : 'id') . ($draw->{ahead_ms} == 0 ? '' : ", $draw->{ahead_ms} ms ahead")
	  if $draw->{id} ne '';
	return in_ms("waits $1 s")
	  if $draw->{state} eq '55000'
	  && $draw->{detail} =~ /The call waited \d+ ms and took no id\.$/
	  && $draw->{message} =~ /^generator "\Q$generator\E" is ahead of the clock by ([\d.]+) s more than allowed$/;
	return in_ms("error: $1 s")
	  if $draw->{state} eq '55000'
	  && $draw->{message} =~ /^clock moved backwards by ([\d.]+) s; generator "\Q$generator\E" cannot issue ids$/;
	return "$draw->{state}: $draw->{message}";
}

# A generator each for every policy and step, so that no cell depends on another: POLICY_STEP.
sub everyone ($step)
{
	return map { "${_}_$step" } @policies;
}

sql(join '', map { my $policy = $_; map { "SELECT uid_generator_create('${policy}_$_', $made_with{$policy});\n" } 0 .. $#steps } @policies);
# In seconds: a tick, and how far the clock may be back without an error of its own.
my %tick_s = map { split /\|/ } split /\n/, sql('SELECT generator, tick_us / 1e6 FROM uid_generator');
my %tolerance_s = map { split /\|/ } split /\n/, sql(
	"SELECT generator, CASE WHEN when_back IN ('hold', 'wait') THEN coalesce(tolerance_ms, 0) / 1e3 ELSE 0 END FROM uid_generator");

# The matrix.

# A generator draws, or must not draw yet, at an instant.
sub at ($instant, $generator)
{
	freeze_clock($node, $instant);
	return try_next($generator);
}

# "waits": not one tick before that time, and then at once. "error": the detail names the instant at which there is an id
# again, and a call that comes less than a tick earlier gets none. What is back by less than the tolerance is no error.
# A call that failed took nothing: the counter stands, and the next id is what it would have been.
sub check_cell ($what, $generator, $expected, $former, $at, $restarted)
{
	my $draw = at($at, $generator);
	is(outcome($generator, $draw), $expected, $what);
	if (my ($kind, $ms) = $expected =~ /^(waits|error:) (\d+) ms$/)
	{
		my ($then, $short) = ($at + $ms / 1000, $tick_s{"uid_generators.$generator"});
		$short += $tolerance_s{"uid_generators.$generator"} if $kind eq 'error:';
		my $early = at($then - $short, $generator);
		is(outcome($generator, $early), in_ms("$kind $short s"), "$what: it fails to the end of its time");
		if ($kind eq 'error:')
		{
			# libfaketime's clock may be a microsecond off, and a tick is a millisecond or more.
			my ($again) = $draw->{detail} =~ /^The generator issues ids again when the server's clock reaches (.*)\.$/;
			$again //= '-infinity';
			$then = 0.0005 + $session->query_safe("SELECT round(extract(epoch FROM timestamptz '$again' - timestamptz '2026-11-21 12:00+00'), 4)");
			is(at($then - 0.001, $generator)->{id}, '', "$what: just before the instant that the detail names there is no id");
		}
		my $mended = at($then, $generator);
		isnt($mended->{id}, '', "$what: at its end there is an id") or diag($mended->{message});
		is($draw->{counter}, $former->{counter}, "$what: the call that failed left the counter alone");
		is($early->{counter}, $former->{counter}, '... so did the next one');
		is($mended->{tick}, $restarted ? $former->{counter} + 1 : $former->{tick}, '... and the next id is what it would have been');
	}
	try_next($generator) foreach 1 .. 3;    # for the check of all ids
}

# Everybody draws at $at; what is to step forward does so; then $between, and the steps.
sub check_steps ($mode, $at, $between = undef)
{
	my %former;
	foreach my $step (0 .. $#steps)
	{
		$former{$_} = at($at, $_) foreach everyone($step);
	}
	$former{$_} = at($at + $year, $_) foreach map { everyone($_) } grep { $steps[$_] =~ /^forward/ } 0 .. $#steps;
	freeze_clock($node, $at);
	is(join(' ', sort grep { $former{$_}{id} eq '' } keys %former), '', "$mode: everyone draws with a clock that is right");
	$between->() if defined $between;
	foreach my $step (0 .. $#steps)
	{
		my ($back) = in_ms($steps[$step]) =~ /^back (\d+) ms$/;
		foreach my $policy (@policies)
		{
			my $generator = "${policy}_$step";
			check_cell("$mode, $steps[$step], $policy", $generator, $cells{$mode}{$policy}[$step],
				$former{$generator}, $at - ($back // 0) / 1000, defined $between);
		}
	}
}

# The last lease may have been written ahead, and a crash may lose such a record; a commit keeps it.
sub restart
{
	$session->query_safe('INSERT INTO committed VALUES (clock_timestamp())');
	$session->quit;
	crash($node);
	$session = hold_open($node);
}

my $at = 400 * $day + $in_tick;
check_steps('running', $at);
check_steps('crash', $at + $year + $day, \&restart);

# The end of time. A field of 26 bits of seconds is 776 days.

my $now = Time::Local::timegm(0, 0, 12, 1, 0, 2042) - Time::Local::timegm(0, 0, 12, 21, 10, 2026) + $in_tick - 0.5;
my %ends = (far => $now + 731 * $day, near => $now + 729 * $day);

# What a session of its own says on stderr.
sub messages_of ($generator, $statement = "SELECT uid_next('uid_generators.$generator')")
{
	return (sqlstate($node, $statement))[1];
}

my $warning = qr/WARNING:  01000: the time bits of generator "near" end at 2043-12-31 /;

freeze_clock($node, $now);
foreach my $name (sort keys %ends)
{
	my $seconds = POSIX::floor($ends{$name}) - 2**26;
	my $said = messages_of($name, "SELECT uid_generator_create('$name', epoch => timestamptz '2026-11-21 12:00:00+00'"
		  . " + interval '1 s' * $seconds, tick_us => 1000000, time_bits => 26, spread => false)");
	like($said, $name eq 'near' ? $warning : qr/^$/, "$name: a warning at the creation if less than two years are left");
}
is(sql("SELECT generator, extract(epoch FROM ends - clock_timestamp())::int / 86400, round((life_used * 776.72)::numeric), ids_per_second"
		  . " FROM uid_generator_limits WHERE preset = 'snowflake' AND generator::text ~ 'near|far' ORDER BY 1"),
	"uid_generators.far|731|46|4096\nuid_generators.near|729|48|4096",
	'uid_generator_limits: when the time bits end, and how much of them is used');
is(messages_of('far'), '', 'more than two years left: no warning');
like(messages_of('near'), $warning, 'less than two years left: a warning');
is(messages_of('near'), '', '... at the first use, not at each');
$session->quit;
$node->stop;
start_node($node);
$session = hold_open($node);
like(messages_of('near'), qr/WARNING:/, '... of each start of the server');

my $last_tick = $ends{near} - 1;
freeze_clock($node, $last_tick);
is(sql("SELECT count(*), min(sequence), max(sequence), bool_and(id > 0) FROM (SELECT id, (uid_decode(id, 'uid_generators.near')).* FROM"
		  . " unnest(uid_next_array('uid_generators.near', 4095)) AS id) AS d"), '4095|0|4094|t', 'the last tick has its ids');
is(sqlstate($session, "SELECT count(*) FROM unnest(uid_next_array('uid_generators.near', 2))"), '2200H', 'a batch of more than are left: 2200H');
my $used_up = try_next('near');
is($used_up->{state}, '2200H', '... and when they are used up, every call');
is($used_up->{message}, 'the time bits of generator "near" are used up', '... says so');
like($used_up->{detail}, qr/^Its layout ends at 2043-12-31 /, '... and when that was');
is(at($last_tick + $year, 'near')->{state}, '2200H', '... also a year later');
is(at($now, 'near')->{state}, '2200H', '... also when the clock goes back');
restart();
my $draw = try_next('near');
is("$draw->{state} $draw->{counter}", "2200H $used_up->{counter}", '... and after a crash; the counter stands at the end');
freeze_clock($node, $last_tick + $year);
is(sql("SELECT life_used > 1 FROM uid_generator_limits WHERE generator = 'uid_generators.near'::regclass"),
	't', 'uid_generator_limits shows that it is used up');
# 41 bits of milliseconds since 1970 end in 2039.
like(messages_of('old', "SELECT uid_generator_create('old', epoch => '1970-01-01 00:00:00+00')"),
	qr/WARNING:  01000: the time bits of generator "old" ended at 2039-09-07 /, 'a layout that has ended: a warning at the creation');
is(try_next('old')->{state}, '2200H', 'an epoch long ago: no id at all');

# Over all of the above. Ids of the backup worker are in order among themselves.

my (@ids, @disorder);
foreach my $generator (sort keys %given)
{
	my %latest;
	foreach my $draw (@{ $given{$generator} })
	{
		push @ids, "$generator $draw->{id}";
		push @disorder, $ids[-1] if $draw->{id} <= ($latest{ $draw->{backup} } // 0);
		$latest{ $draw->{backup} } = $draw->{id};
	}
}
is(repeated(@ids), '', 'no id came twice');
is(join(' ', @disorder), '', 'ids increase in the order of the calls');
note(@ids . ' ids of ' . scalar(keys %given) . ' generators');

$session->quit;
$node->stop;
done_testing();
