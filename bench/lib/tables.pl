# Prints the tables of bench/README.md with what a run has measured, ready to be pasted:
#
#   perl bench/lib/tables.pl CELLS
#
# A line of CELLS has the heading of a table, a row, a column and the value, separated by tabs. What was not measured is
# listed, and so is what has no place in a table.
use v5.36;
use utf8;

use File::Basename 'dirname';
use open qw(:std :encoding(UTF-8));

sub contents ($path)
{
	open my $file, '<', $path or die "could not open $path: $!\n";
	local $/ = undef;
	return <$file>;
}

sub grouped ($number)
{
	return $number =~ /^-?\d{4,}(?:\.\d+)?$/ ? scalar reverse join ',', unpack '(A3)*', reverse $number : $number;
}

my %measured;
for my $line (split /\n/, contents($ARGV[0]))
{
	my ($heading, $row, $column, $value) = split /\t/, $line;
	$measured{$heading}{$row}{$column} = grouped($value);
}

my @missing;
for my $section (split /^#+ /m, contents(dirname(__FILE__) . '/../README.md'))
{
	my ($heading) = $section =~ /^(.*)/;
	my $values = $measured{$heading};
	for my $table ($section =~ /((?:^\|.*\n)+)/mg)
	{
		my ($head, $line, @rows) = split /\n/, $table;
		my (undef, @columns) = map { s/^ | $//gr } split /\|/, $head =~ s/^\|//r;
		my ($known, @lacks) = 0;
		for (@rows)
		{
			my ($row, @cells) = map { s/^ | $//gr } split /\|/, s/^\|//r;
			for my $i (0 .. $#columns)
			{
				my $value = delete $values->{$row}{ $columns[$i] };
				$known++ if defined $value;
				next if !defined $value && ($cells[$i] // '') eq '';
				push @lacks, "[$heading: $row | $columns[$i]]" unless defined $value;
				$cells[$i] = $value // "$cells[$i] (not measured)";
			}
			$_ = join ' ', map { "| $_" } $row, @cells;
			$_ = "$_ |" =~ s/  \|/ |/gr;
		}
		push @missing, $known ? @lacks : "all of a table of \"$heading\"" if @lacks;
		print "\n### $heading\n\n", map { "$_\n" } $head, $line, @rows if $known;
	}
}
print "\nNot measured:\n", map { "    $_\n" } @missing if @missing;
for my $heading (sort keys %measured)
{
	my $rows = $measured{$heading};
	for my $row (sort keys %$rows)
	{
		print "Without a place: [$heading: $row | $_]: $rows->{$row}{$_}\n" for sort keys %{ $rows->{$row} };
	}
}
