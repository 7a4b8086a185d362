# How much a segment loses when its server ends, and that it never loses more.
#
# Reserved are the rest of the range in use and, once it is reserved, the next range: everything up to the sequence's
# counter. Expected after a crash and in a restored dump: the next value is above every one handed
# out, and at most the reserved values are lost, which are never more than two ranges. A clean stop is no exception.
use UidgenTest;

my $node = new_server('crash', conf => quiet_conf());

# Segments in every state: how many values are drawn at a time. Ranges are 100 values, then 200, 400, 800.
my %draws = (one => 1, tenth => 10, prefetched => 11, most => 99, whole => 100, switched => 101, growing => 777, long => 2500);
$node->safe_psql('postgres', "SELECT segment_create('$_', 1, 100, 800)") foreach sort keys %draws;
$node->safe_psql('postgres', 'CREATE SEQUENCE downward INCREMENT -1; CREATE SEQUENCE stride START 2 INCREMENT 3');

my %last;

# In a read-only transaction that stays open, so that no commit flushes anything.
sub draw_all ($on)
{
	my $session = hold_open($on);
	$session->query_safe('BEGIN READ ONLY');
	foreach my $name (sort keys %draws)
	{
		$last{$name} = $session->query_safe("SELECT max(segment_next('$name')) FROM generate_series(1, $draws{$name})");
	}
	$last{downward} = $session->query_safe("SELECT min(segment_next('downward')) FROM generate_series(1, 150)");
	$last{stride} = $session->query_safe("SELECT max(segment_next('stride')) FROM generate_series(1, 150)");
	return $session;
}

# The number of values in hand, of each segment: two ranges of 800 at most, or of a sequence's 1000 that may have doubled.
sub in_hand ($on)
{
	my %hand;
	foreach my $name (sort keys %last)
	{
		my $counter = $on->safe_psql('postgres', 'SELECT last_value FROM ' . ($name =~ /^(?:downward|stride)$/ ? $name : "uid_segments.$name"));
		$hand{$name} = abs($counter - $last{$name}) / ($name eq 'stride' ? 3 : 1);
	}
	my @more = grep { $hand{$_} > ($_ =~ /^(?:downward|stride)$/ ? 3000 : 1600) } sort keys %hand;
	is("@more", '', 'no segment has more than two ranges in hand');
	return %hand;
}

sub compare ($on, $dbname, $what, %hand)
{
	my (@below, @wasted);
	foreach my $name (sort keys %last)
	{
		my $next = $on->safe_psql($dbname, "SELECT segment_next('$name')");
		my $skipped = $next - $last{$name} - 1;
		$skipped = $last{$name} - $next - 1 if $name eq 'downward';
		$skipped = ($next - $last{$name}) / 3 - 1 if $name eq 'stride';
		push @below, "$name: $next after $last{$name}" if $skipped < 0;
		push @wasted, "$name: $skipped of $hand{$name}" if $skipped > $hand{$name};
	}
	is(join(', ', @below), '', "$what: the next value is above all handed out");
	is(join(', ', @wasted), '', '... and no more is lost than was in hand');
}

foreach my $how ('crash', 'clean stop', 'second crash')
{
	my $session = draw_all($node);
	my %hand = in_hand($node);
	$session->quit if $how eq 'clean stop';
	$node->stop($how eq 'clean stop' ? 'fast' : 'immediate');
	start_node($node);
	compare($node, 'postgres', $how, %hand);
}

# A dump, while the segments are in use.
{
	my $session = draw_all($node);
	my %hand = in_hand($node);
	my $file = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
	$node->command_ok([ 'pg_dump', '-f', $file, '-d', $node->connstr('postgres') ], 'pg_dump');
	$node->safe_psql('postgres', 'CREATE DATABASE restored');
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr('restored') ], 'restored');
	compare($node, 'restored', 'in a restored dump', %hand);
	is($session->query_safe("SELECT segment_next('one')"), $last{one} + 1, '... and the dumped database loses nothing');
	$session->quit;
}

done_testing();
