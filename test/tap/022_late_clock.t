# Clocks beyond 2262-04-11 23:47:16.854775807, where 2^63 nanoseconds since 1970 end. Expected: whatever the clock
# shows, and however it got there, each call returns an id or an error within uidgen.max_wait. An id's time is that of
# the clock. A layout that reaches so far draws there, and one that does not reports that its time bits are used up.
use UidgenTest;
use Clock;
use Installation;

skip_with_assertions();

# Far more than uidgen.max_wait: a call that takes so long is one that never ends.
my $patience = 60;

my $node = new_server('late_clock', conf => "autovacuum = off\nuidgen.max_wait = 300ms\n", clock => 0);

my @presets = split /\n/, $node->safe_psql('postgres', 'SELECT preset FROM uid_preset ORDER BY preset');
cmp_ok(scalar(@presets), '>=', 9, 'there are presets: ' . join(' ', @presets));
# Milliseconds for 4,400 years.
my $wide = 'time_bits => 47, datacenter_bits => 0, worker_bits => 4, sequence_bits => 12';
my %made = (
	(map { $_ => "preset => '$_'" } @presets),
	wide => $wide,
	wide_cached => "$wide, mode => 'cached', spread => false",
	wide_wait => "$wide, when_full => 'wait', when_back => 'wait'");
$node->safe_psql('postgres', join '', map { "SELECT uid_generator_create('$_', $made{$_});\n" } sort keys %made);

# What three calls of one session give, by the SQLSTATE of the last one; how far the last id is from the clock.
sub try_generator ($name)
{
	my ($output, $error, $late) = ('', '', 0);
	my $call = "SELECT id, abs(extract(epoch FROM uid_timestamp(id, 'uid_generators.$name') - clock_timestamp())) <= 33"
	  . " FROM uid_next('uid_generators.$name') AS id;\n";
	$node->psql('postgres', "\\set VERBOSITY verbose\n" . $call x 3, on_error_stop => 0, stdout => \$output, stderr => \$error,
		timeout => $patience, timed_out => \$late);
	return ('endless', '', '') if $late;
	my ($state) = $error =~ /(?:ERROR|FATAL|PANIC):  (\w{5}):/;
	my @ids = map { [ split /\|/ ] } split /\n/, $output;
	return ($state // '00000', $error, \@ids);
}

my %latest;

sub check ($when, @draws)
{
	my %draws = map { $_ => 1 } @draws;
	my (@endless, @strange, @untrue, @disorder, @silent);
	foreach my $name (sort keys %made)
	{
		my ($state, $error, $ids) = try_generator($name);
		if ($state eq 'endless')
		{
			push @endless, $name;
			next;
		}
		push @strange, "$name $state" unless $state =~ /^(00000|2200H|55000)$/;
		push @untrue, grep { $_->[1] ne 't' } @$ids;
		foreach my $id (map { $_->[0] } @$ids)
		{
			push @disorder, "$name $id" if $id <= ($latest{$name} // 0);
			$latest{$name} = $id;
		}
		push @silent, "$name: $error" if $draws{$name} && @$ids != 3;
	}
	is("@endless", '', "$when: each call comes to an end");
	is("@strange", '', '... with an id, the end of the time bits, or the clock as the reason');
	is(scalar(@untrue), 0, '... no id is far from the clock');
	is("@disorder", '', '... none comes twice, or below one before');
	is("@silent", '', '... and layouts that reach so far draw');
}

my @wide = grep { /^wide/ } sort keys %made;
check('in 2026', sort keys %made);
foreach my $clock ('2262-04-10 12:00:00', '2262-04-11 23:47:16.250000', '2262-04-11 23:47:17.000000', '2262-04-12 00:00:00',
	'2300-01-01 00:00:00', '2500-01-01 00:00:00')
{
	set_clock($node, $clock);
	check($clock, @wide);
}

# The clock goes on within the session, and across the instant.
{
	my $session = hold_open($node);
	set_clock($node, '2262-04-11 23:47:16.000000');
	my $name = 'uid_generators.crossing';
	$node->safe_psql('postgres', "SELECT uid_generator_create('crossing', $wide)");
	my $shows = "SELECT date_trunc('second', uid_timestamp(uid_next('$name'), '$name') AT TIME ZONE 'UTC')";
	is($session->query_safe($shows), '2262-04-11 23:47:16', 'a session draws before the instant');
	set_clock($node, '2262-04-11 23:47:18.000000');
	is($session->query_safe($shows), '2262-04-11 23:47:18', '... and after it, with the time after it');
	$session->quit;
}

# A server that starts there, after a crash.
set_clock($node, '2500-01-01 00:00:10');
crash($node);
check('a start in 2500', grep { $_ ne 'wide_wait' } @wide);

# Back before the instant: the ids of then are an error or wait, and nothing comes twice.
set_clock($node, '2262-04-11 23:47:16.250000');
check('back in 2262');
freeze_clock($node, 100);
check('back in 2026');

$node->stop;
done_testing();
