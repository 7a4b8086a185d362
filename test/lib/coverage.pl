#!/usr/bin/perl
# Which lines and branches of src have run, by what gcov says of all programs that were built with COVERAGE=1.
#
#   coverage.pl DIRECTORY...   where they were built; called in the checkout
#
# On 2026-11-22, with PostgreSQL 15, all of unit, regress, isolation and tap ran 8,854 of the 9,098 lines of src (97.3 %) and
# 4,989 of its 5,824 branches (85.7 %). Missing are failures of the system, internal errors, damage that checksums do not
# show, races of src/pg that no test can bring about step by step, what a killed process ran, and branches of PostgreSQL's
# macros.
#
# A line or branch has run if it has in any program and, of a template or an inline function, in any instance. The
# branches of a line that reports an error or a message are left out: one of them asks if the level is reported, and that
# of an error always is.
use v5.36;
use File::Find;
use JSON::PP;

my (%lines, %branches);

sub add_file ($file, $report)
{
	foreach my $line (@{ $report->{lines} })
	{
		my $number = $line->{line_number};
		$lines{$file}{$number} += $line->{count};
		my @own = grep { !$_->{throw} } @{ $line->{branches} };
		$branches{$file}{$number}[$_] += $own[$_]{count} foreach 0 .. $#own;
	}
}

# gcov reads one program's counters: of a source, and of what it includes.
sub add_counters ($counters)
{
	open(my $gcov, '-|', 'gcov', '--json-format', '--branch-probabilities', '--stdout', $counters) or die "gcov: $!\n";
	my $text = do { local $/; <$gcov> };
	close($gcov) && $text or die "gcov cannot read $counters\n";
	foreach my $report (@{ decode_json($text)->{files} })
	{
		add_file($1, $report) if $report->{file} =~ m{\b(src/(?:core|pg)/.*)};
	}
}

sub leave_out_reports ($file)
{
	open(my $source, '<', $file) or die "$file: $!\n";
	while (my $text = <$source>)
	{
		delete $branches{$file}{$.} if $text =~ /\b(ereport|elog)\(/;
	}
}

# How many there are, and how many of them have run.
sub of_all { return (scalar(@_), scalar(grep { $_ > 0 } @_)); }

sub row ($name, @counts)
{
	my ($lines, $lines_run, $branches, $branches_run) = @counts;
	my $shown = sub { $_[0] ? sprintf('%5d of %5d %5.1f %%', $_[1], $_[0], 100 * $_[1] / $_[0]) : ' ' x 22 };
	printf("%-38s %s  %s\n", $name, $shown->($lines, $lines_run), $shown->($branches, $branches_run));
	return @counts;
}

# 3, 4, 5 and 9 become 3-5 9.
sub ranges
{
	my @ranges;
	foreach my $number (@_)
	{
		if (@ranges && $ranges[-1][1] == $number - 1) { $ranges[-1][1] = $number; }
		else { push @ranges, [ $number, $number ]; }
	}
	return join ' ', map { $_->[0] == $_->[1] ? $_->[0] : "$_->[0]-$_->[1]" } @ranges;
}

my @counters;
find({ no_chdir => 1, wanted => sub { push @counters, $_ if /\.gcda$/ } }, @ARGV);
die "nothing has run\n" unless @counters;
add_counters($_) foreach sort @counters;
leave_out_reports($_) foreach keys %lines;

print ' ' x 43, "lines that ran", ' ' x 10, "branches that ran\n";
my @sum = (0, 0, 0, 0);
foreach my $file (sort keys %lines)
{
	my @counts = row($file, of_all(values %{ $lines{$file} }), of_all(map { @$_ } values %{ $branches{$file} }));
	$sum[$_] += $counts[$_] foreach 0 .. $#sum;
}
row('all', @sum);

print "\nLines that did not run:\n";
foreach my $file (sort keys %lines)
{
	my @missed = sort { $a <=> $b } grep { $lines{$file}{$_} == 0 } keys %{ $lines{$file} };
	print "$file: " . ranges(@missed) . "\n" if @missed;
}
