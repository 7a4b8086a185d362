# Chance that repeats itself: the same seed gives the same numbers on every machine. A part of a run has dice of its
# own, so that what one part rolls, or how often, does not change what another gets.
package Dice;

use strict;
use warnings;

use Digest::SHA qw(sha1_hex);

sub new
{
	my ($class, $seed) = @_;
	return bless { seed => $seed, rolls => 0 }, $class;
}

# Dice of their own for a part of the run.
sub part
{
	my ($self, $name) = @_;
	return Dice->new("$self->{seed}/$name");
}

# 0 <= number < 1
sub fraction
{
	my ($self) = @_;
	my ($high, $low) = unpack 'a6 a6', sha1_hex("$self->{seed} " . $self->{rolls}++);
	return (hex($high) * 2**24 + hex($low)) / 2**48;
}

# A whole number, both ends included.
sub between
{
	my ($self, $least, $most) = @_;
	return $least + int($self->fraction * ($most - $least + 1));
}

sub chance
{
	my ($self, $of_hundred) = @_;
	return $self->fraction * 100 < $of_hundred;
}

sub one_of
{
	my ($self, @list) = @_;
	return $list[ int($self->fraction * @list) ];
}

# A key of name => weight.
sub weighted
{
	my ($self, %weights) = @_;
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
sub seed
{
	my ($self) = @_;
	return int($self->fraction * 2**40);
}

1;
