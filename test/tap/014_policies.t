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

# The page.

# The rows below a heading, as lists of cells; the heading of the table is the first.
sub table_below ($heading)
{
	my ($section) = slurp_file('docs/clocks.md') =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms;
	return rows_of($section // '');
}

sub rows_of ($text)
{
	my @lines = grep { /^\|/ && !/^\| ---/ } split /\n/, $text;
	return map {
		s/^\| | \|$//g;
		[ split / \| / ]
	} @lines;
}

# '1 h - 2 s' in milliseconds.
sub milliseconds ($amount)
{
	my $sum = 0;
	die "'$amount' is no amount of time" unless $amount =~ /^[\d.]+ \w+( [-+] [\d.]+ \w+)*$/;
	while ($amount =~ /([-+]?) ?([\d.]+) (\w+)/g)
	{
		die "unit of '$amount'" unless defined $unit{$3};
		$sum += ($1 eq '-' ? -1 : 1) * $2 * $unit{$3};
	}
	return sprintf('%.0f', $sum);
}

# A cell with its amount in milliseconds, as outcome() has it.
sub cell_of ($text)
{
	return $text if $text =~ /^(id|backup)$/;
	my ($kind, $amount, $ahead) = $text =~ /^(id,|waits|error:) (.*?)( ahead)?$/
	  or die "no such outcome: '$text'";
	return "$kind " . milliseconds($amount) . ' ms' . ($ahead // '');
}

my (undef, @made) = table_below('The generators');
my %made_with = map { $_->[0] => $_->[1] =~ s/`//gr } @made;
my @policies = map { $_->[0] } @made;

# "id, 1 s ahead": an id whose time is that far ahead of the clock. "backup": one of the backup worker. "waits 1 s": an id
# when the clock has advanced by that much. "error: 1 s": the clock is back by that much.
my %matrix = (
	'While the server runs' => <<'TABLE',
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
	'Across a restart' => <<'TABLE',
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
);

# outcomes->{policy}[step]
sub outcomes ($heading)
{
	my ($titles, @rows) = rows_of($matrix{$heading});
	my %cells = map {
		my ($policy, @texts) = @$_;
		($policy => [ map { cell_of($_) } @texts ])
	} @rows;
	is_deeply([ sort keys %cells ], [ sort @policies ], "the table has every policy of the page: $heading");
	is(scalar(grep { @$_ != @$titles - 1 } values %cells), 0, '... with an outcome for each step');
	return (\%cells, @$titles[ 1 .. $#$titles ]);
}

my ($live, @steps) = outcomes('While the server runs');
my ($restarted, @same_steps) = outcomes('Across a restart');
is_deeply(\@same_steps, \@steps, 'both tables have the same steps');

# How far a step goes back from the instant of the last id, in seconds.
sub back_by ($step)
{
	return 0 if $step eq 'no step';
	return $unit{year} / 1000 if $step =~ /^forward 1 year/;
	return milliseconds($step =~ s/^back //r) / 1000;
}

# Drawing.

my $node = new_server('policies', conf => "autovacuum = off\nuidgen.max_wait = 0\n", clock => $in_tick);

# The presets, as docs/layouts.md has them: widths, tick, end, rate, and numbers of ids; without remarks in brackets.
{
	my ($rows) = slurp_file('docs/layouts.md') =~ /^\| preset \|.*?\n\| ---.*?\n((?:\|.*\n)+)/m;
	my %said;
	foreach my $row (split /\n/, $rows)
	{
		my (undef, $names, @cells) = split / *\| */, $row =~ s/, twice//r;
		$said{$_} = join '|', @cells[ 0, 1 ], $cells[2] =~ /^day/ ? '' : $cells[3], $cells[4] =~ s/ .*//r, $cells[5] foreach $names =~ /`(\w+)`/g;
	}
	my %layouts = map { split /\|/, $_, 2 } split /\n/, $node->safe_psql('postgres', <<'SQL');
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
my $try_next = <<'SQL';
CREATE FUNCTION try_next(generator regclass, OUT id bigint, OUT ahead_ms bigint, OUT tick bigint, OUT worker integer,
    OUT backup boolean, OUT counter bigint, OUT state text, OUT message text, OUT detail text)
LANGUAGE plpgsql AS $$
DECLARE
  g uid_generator;
BEGIN
  SELECT * INTO g FROM uid_generator AS c WHERE c.generator = try_next.generator;
  BEGIN
    id := uid_next(generator);
    SELECT ceil(extract(epoch FROM d.generated_at - clock_timestamp()) * 1000000 / g.tick_us) * g.tick_us / 1000,
           d.worker_id, d.backup
      INTO ahead_ms, worker, backup FROM uid_decode(id, generator) d;
    tick := id >> (g.datacenter_bits + g.worker_bits + g.sequence_bits);
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
  END;
  EXECUTE format('SELECT last_value FROM %s', generator) INTO counter;
END
$$;
CREATE TABLE committed (at timestamptz);
SQL
$node->safe_psql('postgres', $try_next);

my @fields = qw(id ahead_ms tick worker backup counter state message detail);
my $session;

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

# The outcome in the words of the page. $former is the last draw that gave an id.
sub outcome ($generator, $draw, $former)
{
	if ($draw->{id} ne '')
	{
		my $ahead = $draw->{ahead_ms} == 0 ? '' : ", $draw->{ahead_ms} ms ahead";
		return "backup$ahead" if $draw->{backup} eq 't';
		return "id$ahead";
	}
	return 'waits ' . milliseconds("$1 s") . ' ms'
	  if $draw->{state} eq '55000'
	  && $draw->{detail} =~ /The call waited \d+ ms and took no id\.$/
	  && $draw->{message} =~ /^generator "\Q$generator\E" is ahead of the clock by ([\d.]+) s more than allowed$/;
	return 'error: ' . milliseconds("$1 s") . ' ms'
	  if $draw->{state} eq '55000'
	  && $draw->{message} =~ /^clock moved backwards by ([\d.]+) s; generator "\Q$generator\E" cannot issue ids$/;
	return "$draw->{state}: $draw->{message}";
}

# Of freeze_clock(), from an instant that the server wrote. libfaketime's clock may be a microsecond off.
sub seconds_of ($instant)
{
	return $session->query_safe(
		"SELECT round(extract(epoch FROM timestamptz '$instant' - timestamptz '2026-11-21 12:00:00+00'), 4)");
}

# A generator each for every policy and step, so that no cell depends on another.
sub name_of ($policy, $step)
{
	return "${policy}_$step";
}

sub everyone ($step)
{
	return map { name_of($_, $step) } @policies;
}

foreach my $policy (@policies)
{
	$node->safe_psql('postgres', join('',
			map { "SELECT uid_generator_create('" . name_of($policy, $_) . "', $made_with{$policy});\n" }
			  0 .. $#steps));
}
# In seconds: a tick, and how far the clock may be back without an error of its own.
my (%tick_s, %tolerance_s);
foreach my $policy (@policies)
{
	($tick_s{$policy}, $tolerance_s{$policy}) = split /\|/, $node->safe_psql('postgres',
		"SELECT tick_us / 1e6, CASE WHEN when_back IN ('hold', 'wait') THEN coalesce(tolerance_ms, 0) / 1e3 ELSE 0 END"
		  . " FROM uid_generator WHERE generator = 'uid_generators.${policy}_0'::regclass");
}

# The matrix.

# A call that failed took nothing: the counter stands, and the next id is what it would have been.
sub check_unchanged ($what, $draw, $former, $mended, $restarted)
{
	is($draw->{counter}, $former->{counter}, "$what: the call that failed left the counter alone");
	my $expected = $restarted ? $former->{counter} + 1 : $former->{tick};
	is($mended->{tick}, $expected, "$what: the next id is what it would have been");
}

# "waits": not one tick before that time, and then at once.
sub check_wait ($what, $generator, $draw, $former, $at, $seconds, $restarted)
{
	my ($policy) = $generator =~ /^(.*)_/;
	freeze_clock($node, $at + $seconds - $tick_s{$policy});
	my $early = try_next($generator);
	is( outcome($generator, $early, $former),
		'waits ' . milliseconds("$tick_s{$policy} s") . ' ms',
		"$what: one tick before the end of the wait it waits for that tick");
	freeze_clock($node, $at + $seconds);
	my $then = try_next($generator);
	isnt($then->{id}, '', "$what: then there is an id") or diag($then->{message});
	check_unchanged($what, $draw, $former, $then, $restarted);
}

# "error": the detail names the instant at which there is an id again, and a call that comes less than a tick earlier gets
# none. What is back by less than the tolerance is no error.
sub check_error ($what, $generator, $draw, $former, $at, $seconds, $restarted)
{
	my ($policy) = $generator =~ /^(.*)_/;
	my ($again) = $draw->{detail} =~ /^The generator issues ids again when the server's clock reaches (.*)\.$/;
	my $short = $tolerance_s{$policy} + $tick_s{$policy};
	freeze_clock($node, $at + $seconds - $short);
	my $early = try_next($generator);
	is( outcome($generator, $early, $former),
		'error: ' . milliseconds("$short s") . ' ms',
		"$what: one tick more than the tolerance before it is over there is an error still");
	# libfaketime's clock may be a microsecond off, and a tick is a millisecond or more.
	my $then = seconds_of($again // '-infinity') + 0.0005;
	freeze_clock($node, $then - 0.001);
	is(try_next($generator)->{id}, '', "$what: just before the instant that the detail names there is no id");
	freeze_clock($node, $then);
	$draw = try_next($generator);
	isnt($draw->{id}, '', "$what: at that instant there is an id") or diag($draw->{message});
	check_unchanged($what, $early, $former, $draw, $restarted);
}

sub check_cell ($what, $generator, $expected, $former, $at, $restarted)
{
	freeze_clock($node, $at);
	my $draw = try_next($generator);
	is(outcome($generator, $draw, $former), $expected, $what);
	my ($kind, $seconds) = ($expected =~ /^(waits|error:) (\d+) ms$/) ? ($1, $2 / 1000) : ('', 0);
	check_wait($what, $generator, $draw, $former, $at, $seconds, $restarted) if $kind eq 'waits';
	check_error($what, $generator, $draw, $former, $at, $seconds, $restarted) if $kind eq 'error:';
	try_next($generator) foreach 1 .. 3;    # for the check of all ids
}

# Everybody draws at $at; what is to step forward does so; then $between, and the steps.
sub check_steps ($mode, $cells, $at, $between = undef)
{
	my %former;
	my $restarted = defined $between;
	foreach my $forward (0, 1)
	{
		freeze_clock($node, $at + $forward * $year);
		foreach my $step (grep { !$forward || $steps[$_] =~ /^forward/ } 0 .. $#steps)
		{
			$former{$_} = try_next($_) foreach everyone($step);
		}
	}
	freeze_clock($node, $at);
	is(join(' ', sort grep { $former{$_}{id} eq '' } keys %former), '', "$mode: everyone draws with a clock that is right");
	$between->() if $restarted;
	foreach my $step (0 .. $#steps)
	{
		my $back = $steps[$step] =~ /^forward/ ? 0 : back_by($steps[$step]);
		foreach my $policy (@policies)
		{
			my $generator = name_of($policy, $step);
			check_cell("$mode, $steps[$step], $policy", $generator, $cells->{$policy}[$step],
				$former{$generator}, $at - $back, $restarted);
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
$session = hold_open($node);
check_steps('running', $live, $at);
$at += $year + $day;
check_steps('crash', $restarted, $at, \&restart);

# The end of time. A field of 26 bits of seconds is 776 days.

my $now = Time::Local::timegm(0, 0, 12, 1, 0, 2042) - Time::Local::timegm(0, 0, 12, 21, 10, 2026) + $in_tick - 0.5;
my %ends = (far => $now + 731 * $day, near => $now + 729 * $day);

# A psql of its own; returns what it says on stderr.
sub messages_of ($generator, $statement = "SELECT uid_next('uid_generators.$generator')")
{
	my $messages;
	$node->psql('postgres', "\\set VERBOSITY verbose\n" . $statement,
		on_error_stop => 0, stderr => \$messages);
	return $messages;
}

my $warning = qr/WARNING:  01000: the time bits of generator "near" end at 2043-12-31 /;

freeze_clock($node, $now);
foreach my $name (sort keys %ends)
{
	my $seconds = POSIX::floor($ends{$name}) - 2**26;
	my $said = messages_of($name, "SELECT uid_generator_create('$name', epoch => timestamptz '2026-11-21 12:00:00+00'"
		  . " + interval '1 s' * $seconds, tick_us => 1000000, time_bits => 26, spread => false)");
	like($said, $name eq 'near' ? $warning : qr/^$/, $name eq 'near' ? 'less than two years left at the creation: a warning' : 'more than two years: none');
}
is($session->query_safe(
		"SELECT generator, extract(epoch FROM ends - clock_timestamp())::int / 86400, round((life_used * 776.72)::numeric), ids_per_second"
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
my $counted = "SELECT count(*), min(sequence), max(sequence), bool_and(id > 0) FROM (SELECT id, (uid_decode(id, 'uid_generators.near')).* FROM"
  . " unnest(uid_next_array('uid_generators.near', 4095)) AS id) AS d";
is($session->query_safe($counted), '4095|0|4094|t', 'the last tick has its ids');
is(sqlstate($session, "SELECT count(*) FROM unnest(uid_next_array('uid_generators.near', 2))"), '2200H', 'a batch of more than are left: 2200H');
my $used_up = try_next('near');
is($used_up->{state}, '2200H', '... and when they are used up, every call');
is($used_up->{message}, 'the time bits of generator "near" are used up', '... says so');
like($used_up->{detail}, qr/^Its layout ends at 2043-12-31 /, '... and when that was');
foreach my $clock ([ 'a year later', $last_tick + $year ], [ 'a clock that goes back', $now ])
{
	freeze_clock($node, $clock->[1]);
	is(try_next('near')->{state}, '2200H', "... also $clock->[0]");
}
$session->quit;
crash($node);
$session = hold_open($node);
my $draw = try_next('near');
is("$draw->{state} $draw->{counter}", "2200H $used_up->{counter}", '... and after a crash; the counter stands at the end');
freeze_clock($node, $last_tick + $year);
is($session->query_safe("SELECT life_used > 1 FROM uid_generator_limits WHERE generator = 'uid_generators.near'::regclass"),
	't', 'uid_generator_limits shows that it is used up');
# 41 bits of milliseconds since 1970 end in 2039.
like(messages_of('old', "SELECT uid_generator_create('old', epoch => '1970-01-01 00:00:00+00')"),
	qr/WARNING:  01000: the time bits of generator "old" ended at 2039-09-07 /, 'a layout that has ended: a warning at the creation');
is(try_next('old')->{state}, '2200H', 'an epoch long ago: no id at all');

# Over all of the above.

my (@ids, @disorder);
foreach my $generator (sort keys %given)
{
	my %latest;
	foreach my $draw (@{ $given{$generator} })
	{
		my $stream = $draw->{backup} eq 't' ? 'backup' : '';
		push @ids, "$generator $draw->{id}";
		push @disorder, "$generator $draw->{id}" if $draw->{id} <= ($latest{$stream} // 0);
		$latest{$stream} = $draw->{id};
	}
}
is(repeated(@ids), '', 'no id came twice');
is(join(' ', @disorder), '', 'ids increase in the order of the calls');
note(@ids . ' ids of ' . scalar(keys %given) . ' generators');

$session->quit;
$node->stop;
done_testing();
