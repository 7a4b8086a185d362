# Clock policies on a real server whose clock steps: what docs/clocks.md says of each policy
# and each step, while the server runs, across a clean stop and across a crash; the
# machine that booted in 2040; the end of a generator's time.
#
# The tables of that page are this test's table. All clocks stand still at instants that the
# test chooses, in the middle of a tick of every layout, and nothing waits but what is asked
# to: uidgen.max_wait is 0, so a wait shows as its error.
use strict;
use warnings;

use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::Local ();
use UidgenTest;

my $day = 24 * 3600;
my $year = 365 * $day;
my %unit = (ms => 1, s => 1000, h => 3600 * 1000, year => $year * 1000);

# Not at 0.5 s: the clock may step by 4 ms without leaving a tick of 10 ms.
my $in_tick = 0.5055;

# ---------------------------------------------------------------------------
# The page.
# ---------------------------------------------------------------------------

# The rows below a heading, as lists of cells; the heading of the table is the first.
sub table_below
{
	my ($heading) = @_;
	my ($section) = slurp_file('docs/clocks.md') =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms;
	my @lines = grep { /^\|/ && !/^\| ---/ } split /\n/, $section // '';
	return map {
		s/^\| | \|$//g;
		[ split / \| / ]
	} @lines;
}

# '1 h - 2 s' in milliseconds.
sub milliseconds
{
	my ($amount) = @_;
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
sub cell_of
{
	my ($text) = @_;
	return $text if $text =~ /^(id|backup|next worker)$/;
	my ($kind, $amount, $ahead) = $text =~ /^(id,|waits|error:) (.*?)( ahead)?$/
	  or die "docs/clocks.md: no such outcome: '$text'";
	return "$kind " . milliseconds($amount) . ' ms' . ($ahead // '');
}

my (undef, @made) = table_below('The generators');
my %made_with = map { $_->[0] => $_->[1] =~ s/`//gr } @made;
my @policies = map { $_->[0] } @made;

# outcomes->{policy}[step]
sub outcomes
{
	my ($heading) = @_;
	my ($titles, @rows) = table_below($heading);
	my %cells = map {
		my ($policy, @texts) = @$_;
		($policy => [ map { cell_of($_) } @texts ])
	} @rows;
	is_deeply([ sort keys %cells ], [ sort @policies ], "the page has every policy: $heading");
	is(scalar(grep { @$_ != @$titles - 1 } values %cells), 0, '... with an outcome for each step');
	return (\%cells, @$titles[ 1 .. $#$titles ]);
}

my ($live, @steps) = outcomes('While the server runs');
my ($restarted, @same_steps) = outcomes('Across a restart');
is_deeply(\@same_steps, \@steps, 'both tables have the same steps');

# How far a step goes back from the instant of the last id, in seconds.
sub back_by
{
	my ($step) = @_;
	return 0 if $step eq 'no step';
	return $unit{year} / 1000 if $step =~ /^forward 1 year/;
	return milliseconds($step =~ s/^back //r) / 1000;
}

# ---------------------------------------------------------------------------
# Drawing.
# ---------------------------------------------------------------------------

my $node = new_node('policies', conf => "autovacuum = off\nuidgen.max_wait = 0\n");
use_fake_clock($node);
freeze_clock($node, $in_tick);
start_uidgen($node);

# One draw: the id and its parts, or the error; and the counter after it.
my $try_next = <<'SQL';
CREATE FUNCTION try_next(generator regclass, OUT id bigint, OUT ahead_ms bigint, OUT tick bigint, OUT worker integer,
    OUT backup boolean, OUT counter bigint, OUT state text, OUT message text, OUT detail text)
LANGUAGE plpgsql AS $$
DECLARE
  g uid_generator;
BEGIN
  SELECT * INTO g FROM uid_generator WHERE uid_generator.generator = try_next.generator;
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

sub try_next
{
	my ($generator) = @_;
	my $row = $session->query_safe("SELECT * FROM try_next('uid_generators.$generator')");
	my %draw;
	@draw{@fields} = split /\|/, $row, -1;
	push @{ $given{$generator} }, \%draw if $draw{id} ne '';
	return \%draw;
}

# The outcome in the words of the page. $former is the last draw that gave an id.
sub outcome
{
	my ($generator, $draw, $former) = @_;
	if ($draw->{id} ne '')
	{
		my $ahead = $draw->{ahead_ms} == 0 ? '' : ", $draw->{ahead_ms} ms ahead";
		return "backup$ahead" if $draw->{backup} eq 't';
		# The worker id of the others is drawn anew at each start.
		return "next worker$ahead"
		  if $generator =~ /^new_worker/ && $draw->{worker} == $former->{worker} + 1;
		return "id$ahead";
	}
	return 'waits ' . milliseconds("$1 s") . ' ms'
	  if $draw->{state} eq '55000'
	  && $draw->{detail} =~ /The call waited \d+ ms and took no id\.$/
	  && $draw->{message} =~ /^generator "\Q$generator\E" is ahead of the clock by ([\d.]+) s more than it may be$/;
	return 'error: ' . milliseconds("$1 s") . ' ms'
	  if $draw->{state} eq '55000'
	  && $draw->{message} =~ /^the clock went back by ([\d.]+) s, and generator "\Q$generator\E" does not draw then$/;
	return "$draw->{state}: $draw->{message}";
}

# Of freeze_clock(), from an instant that the server wrote. libfaketime's clock may be a microsecond off.
sub seconds_of
{
	my ($instant) = @_;
	return $session->query_safe(
		"SELECT round(extract(epoch FROM timestamptz '$instant' - timestamptz '2026-11-21 12:00:00+00'), 4)");
}

# A generator each for every policy and step, so that no cell depends on another.
sub name_of
{
	my ($policy, $step) = @_;
	return "${policy}_$step";
}

sub everyone
{
	my ($step) = @_;
	return map { name_of($_, $step) } @policies;
}

foreach my $policy (@policies)
{
	$node->safe_psql('postgres', join('',
			map { "SELECT uid_generator_create('" . name_of($policy, $_) . "', $made_with{$policy});\n" }
			  (0 .. $#steps, 'waiter')));
}
# In seconds: a tick, and how far the clock may be back without an error of its own.
my (%tick_s, %tolerance_s);
foreach my $policy (@policies)
{
	($tick_s{$policy}, $tolerance_s{$policy}) = split /\|/, $node->safe_psql('postgres',
		"SELECT tick_us / 1e6, CASE WHEN when_back IN ('hold', 'wait') THEN coalesce(tolerance_ms, 0) / 1e3 ELSE 0 END"
		  . " FROM uid_generator WHERE generator = 'uid_generators.${policy}_0'::regclass");
}

# ---------------------------------------------------------------------------
# The matrix.
# ---------------------------------------------------------------------------

# The counter is term x 2^47 + tick.
my $term = 2**47;

# A call that failed took nothing: the counter stands, and the next id is what it would have been.
sub check_unchanged
{
	my ($what, $draw, $former, $mended, $restarted) = @_;
	is($draw->{counter}, $former->{counter}, "$what: the call that failed left the counter alone");
	my $expected = $restarted ? $former->{counter} % $term + 1 : $former->{tick};
	is($mended->{tick}, $expected, "$what: the next id is what it would have been");
	return;
}

# "waits": not one tick before that time, and then at once.
sub check_wait
{
	my ($what, $generator, $draw, $former, $at, $seconds, $restarted) = @_;
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
	return;
}

# "error": the detail names the instant from which on the clock is not back any more. What is back by less than the
# tolerance is no error.
sub check_error
{
	my ($what, $generator, $draw, $former, $at, $seconds, $restarted) = @_;
	my ($policy) = $generator =~ /^(.*)_/;
	my ($again) = $draw->{detail} =~ /^It draws again when the server's clock shows (.*)\.$/;
	is(seconds_of($again // '-infinity'),
		sprintf('%.4f', $at + $seconds),
		"$what: the detail says when it draws again");
	my $short = $tolerance_s{$policy} + $tick_s{$policy};
	freeze_clock($node, $at + $seconds - $short);
	my $early = try_next($generator);
	is( outcome($generator, $early, $former),
		'error: ' . milliseconds("$short s") . ' ms',
		"$what: one tick more than the tolerance before that there is an error still");
	freeze_clock($node, $at + $seconds);
	my $then = try_next($generator);
	like(outcome($generator, $then, $former), $restarted ? qr/^waits [1-3]\d{3} ms$/ : qr/^id$/,
		"$what: then " . ($restarted ? 'it waits for the rest of its lease' : 'there is an id'));
	if ($restarted)
	{
		my ($rest) = outcome($generator, $then, $former) =~ /waits (\d+)/;
		freeze_clock($node, $at + $seconds + ($rest // 0) / 1000);
		$then = try_next($generator);
	}
	check_unchanged($what, $draw, $former, $then, $restarted);
	return;
}

sub check_cell
{
	my ($what, $generator, $expected, $former, $at, $restarted) = @_;
	freeze_clock($node, $at);
	my $draw = try_next($generator);
	is(outcome($generator, $draw, $former), $expected, $what);
	my ($kind, $seconds) = ($expected =~ /^(waits|error:) (\d+) ms$/) ? ($1, $2 / 1000) : ('', 0);
	check_wait($what, $generator, $draw, $former, $at, $seconds, $restarted) if $kind eq 'waits';
	check_error($what, $generator, $draw, $former, $at, $seconds, $restarted) if $kind eq 'error:';
	return;
}

# Everybody draws at $at; what is to step forward does so; then $between, and the steps.
sub check_steps
{
	my ($mode, $cells, $at, $between) = @_;
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
	return;
}

# The last lease may have been written ahead, and a crash may lose such a record; a commit keeps it.
sub restart
{
	my ($mode) = @_;
	$session->query_safe('INSERT INTO committed VALUES (clock_timestamp())');
	$session->quit;
	$node->stop($mode);
	start_node($node);
	$session = hold_open($node);
	return;
}

my $at = 400 * $day + $in_tick;
$session = hold_open($node);
check_steps('running', $live, $at);
$at += $year + $day;
check_steps('stop and start', $restarted, $at, sub { restart('fast') });
$at += $year + $day;
check_steps('crash', $restarted, $at, sub { restart('immediate') });

$session->quit;
$node->stop;
done_testing();
