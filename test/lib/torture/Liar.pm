# A registry that lies: its procedures answer as the fleet's registry would, but for one thing that a member can check. It
# never grants a node that another member may have, because no member can notice that.
package Liar;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(create_liar lies set_answer);

my $most = '9223372036854775807';
my $no_number = q{'12x'};
my $other_fleet = '4711';

# What each procedure answers, by column, from the parameters of the call: of uid_fleet_call() $4 to $6 are fleet, term and
# serial, $8 to $13 the grant that the generator holds (node, ticks, line, term, serial), $16 the lowest tick that it can use
# and $17 how many it wants; of uid_fleet_block() $2 and $3 are fleet and term, $7 the count, $8 the value that it shows and
# $9 the increment. A lie is another value of a column, or of two. A generator that holds no grant must refuse it, because
# node 1 may have another holder.
my %answers = (
	uid_fleet_call => {
		honest => {
			node => 'coalesce($8, 1)',
			granted_from => 'coalesce($9, $16)',
			granted_until => 'coalesce($10, $16) + $17',
			line => 'coalesce($11, 77)',
			held_seal => 1,
			fleet => "coalesce(nullif(\$4, 0), $other_fleet)",
			term => 'greatest($5, 1)',
			serial => 'greatest($6, coalesce($13, 0)) + 1',
			seal => 1,
			registry_clock_us => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint' },
		lies => {
			refusal => [ q{''}, q{'nonsense'}, q{repeat('x', 100000)} ],
			node => [ 'NULL', -1, 2**40, $most, $no_number, q{''} ],
			granted_from => [ 'NULL', -1, $most, $no_number ],
			granted_until => [ 'NULL', 0, -1, $most, 'coalesce($9, $16)' ],
			line => [ 'NULL', 0, -1 ],
			fleet => [ 'NULL', 0, -1, $other_fleet, $no_number ],
			term => [ 'NULL', 0, -1, '$5 - 1', $most ],
			serial => [ 'NULL', 0, -1 ],
			held_seal => [ 'NULL', $no_number ],
			seal => [ 'NULL', $no_number ],
			'term serial' => [ '$12 | $13', '$12 | $13 - 1' ],
			registry_clock_us => [ 'NULL', 0, -1, $most, "'infinity'" ] } },
	uid_fleet_block => {
		honest => {
			fleet => '$2',
			term => '$3',
			first => '$8 + $9',
			last => '$8 + $9 * $7',
			count => '$7',
			increment => '$9' },
		lies => {
			refusal => [ q{''}, q{'nonsense'} ],
			fleet => [ 'NULL', 0, -1, $other_fleet ],
			first => [ 'NULL', '$8', '$8 - $9', $no_number, $most ],
			last => [ 'NULL', '$8', '$8 + $9 * $7 + 1', $most ],
			'first last' => [ '$8 | $8 + $9 * ($7 - 1)', '$8 - $9 * 99 | $8 + $9 * ($7 - 100)' ],
			count => [ 'NULL', 0, -1, '$7 + 1', $most ],
			increment => [ 'NULL', 0, '-$9', '$9 + 1' ] } });

# A database of the server that says of itself that it is a registry.
sub create_liar
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'CREATE DATABASE liar');
	$node->safe_psql('liar', "CREATE EXTENSION uidgen; SELECT uid_fleet_admit('uid_fleet')");
	$node->safe_psql('liar', "ALTER EXTENSION uidgen DROP PROCEDURE $_; ALTER PROCEDURE $_ RENAME TO honest_$_") foreach sort keys %answers;
	return;
}

# Each as procedure, columns, values.
sub lies
{
	my @lies;
	foreach my $function (sort keys %answers)
	{
		my $lies = $answers{$function}{lies};
		foreach my $columns (sort keys %$lies)
		{
			push @lies, map { [ $function, $columns, $_ ] } @{ $lies->{$columns} };
		}
	}
	return @lies;
}

# From now on the procedure tells this lie, and the other one is missing.
sub set_answer
{
	my ($node, $procedure, $columns, $values) = @_;
	my %answer = (refusal => 'NULL', message => 'NULL', hint => 'NULL', %{ $answers{$procedure}{honest} });
	@answer{ split ' ', $columns } = split / \| /, $values;
	my $body = 'SELECT ' . join(', ', map { "($answer{$_})::text" } sort keys %answer);
	my $types = "SELECT format_type(unnest(proargtypes[0:pronargs - pronargdefaults - 1]), NULL) FROM pg_proc WHERE proname = 'honest_$procedure'";
	my @parameters = (split(/\n/, $node->safe_psql('liar', $types)), map { "INOUT $_ text DEFAULT NULL" } sort keys %answer);
	$node->safe_psql('liar', 'DROP PROCEDURE IF EXISTS ' . join(', ', sort keys %answers));
	$node->safe_psql('liar', "CREATE PROCEDURE $procedure(" . join(', ', @parameters) . ") LANGUAGE sql AS \$body\$ $body \$body\$");
	return;
}

1;
