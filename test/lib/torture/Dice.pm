# Chance that repeats itself: the same seed gives the same numbers on every machine. A part of a run has dice of its
# own, so that what one part rolls, or how often, does not change what another gets.
package Dice;

use v5.36;

use Digest::SHA qw(sha1_hex);

sub new ($class, $seed)
{
	return bless { seed => $seed, rolls => 0 }, $class;
}

# Dice of their own for a part of the run.
sub part ($self, $name)
{
	return Dice->new("$self->{seed}/$name");
}

# 0 <= number < 1
sub fraction ($self)
{
	my ($high, $low) = unpack 'a6 a6', sha1_hex("$self->{seed} " . $self->{rolls}++);
	return (hex($high) * 2**24 + hex($low)) / 2**48;
}

# A whole number, both ends included.
sub between ($self, $least, $most)
{
	return $least + int($self->fraction * ($most - $least + 1));
}

sub chance ($self, $of_hundred)
{
	return $self->fraction * 100 < $of_hundred;
}

sub one_of ($self, @list)
{
	return $list[ int($self->fraction * @list) ];
}

# A key of name => weight.
sub weighted ($self, %weights)
{
	my $total = 0;
	$total += $_ foreach values %weights;
	my $at = $self->fraction * $total;
	foreach my $name (sort keys %weights)
	{
		$at -= $weights{$name};
		return $name if $at < 0;
	}
	die 'nothing to choose from';
}

# A seed for a program.
sub seed ($self)
{
	return int($self->fraction * 2**40);
}

1;
