# A registry that lies: its functions answer as the fleet's registry would, but for one thing that a member can check. It
# never grants a node that another member may have, because no member can notice that.
package Liar;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(create_liar lies set_answer);

my $most = '9223372036854775807';
my $no_number = q{'12x'};
my $other_fleet = '4711';

# What each function answers, by column, from the parameters of the call: of uid_fleet_call() $4 to $6 are fleet, term and
# serial, $7 to $12 the grant that the generator holds (node, ticks, line, term, serial), $14 the lowest tick that it can use
# and $15 how many it wants; of uid_fleet_block() $2 and $3 are fleet and term, $5 the count, $6 the value that it shows and
# $7 the increment. A lie is another value of a column, or of two; or 'rows', another number of rows. A generator that holds
# no grant must refuse it, because node 1 may have another holder.
my %answers = (
	uid_fleet_call => {
		honest => {
			node => 'coalesce($7, 1)',
			granted_from => 'coalesce($8, $14)',
			granted_until => 'coalesce($9, $14) + $15',
			line => 'coalesce($10, 77)',
			fleet => "coalesce(nullif(\$4, 0), $other_fleet)",
			term => 'greatest($5, 1)',
			serial => 'greatest($6, coalesce($12, 0)) + 1',
			registry_clock_us => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint' },
		lies => {
			rows => [ 0, 2 ],
			refusal => [ q{''}, q{'nonsense'}, q{repeat('x', 100000)} ],
			node => [ 'NULL', -1, 2**40, $most, $no_number, q{''} ],
			granted_from => [ 'NULL', -1, $most, $no_number ],
			granted_until => [ 'NULL', 0, -1, $most, 'coalesce($8, $14)' ],
			line => [ 'NULL', 0, -1 ],
			fleet => [ 'NULL', 0, -1, $other_fleet, $no_number ],
			term => [ 'NULL', 0, -1, '$5 - 1', $most ],
			serial => [ 'NULL', 0, -1 ],
			'term serial' => [ '$11 | $12', '$11 | $12 - 1' ],
			registry_clock_us => [ 'NULL', 0, -1, $most, "'infinity'" ] } },
	uid_fleet_block => {
		honest => {
			fleet => '$2',
			term => '$3',
			first => '$6 + $7',
			last => '$6 + $7 * $5',
			count => '$5',
			increment => '$7' },
		lies => {
			rows => [ 0, 2 ],
			refusal => [ q{''}, q{'nonsense'} ],
			fleet => [ 'NULL', 0, -1, $other_fleet ],
			first => [ 'NULL', '$6', '$6 - $7', $no_number, $most ],
			last => [ 'NULL', '$6', '$6 + $7 * $5 + 1', $most ],
			'first last' => [ '$6 | $6 + $7 * ($5 - 1)', '$6 - $7 * 99 | $6 + $7 * ($5 - 100)' ],
			count => [ 'NULL', 0, -1, '$5 + 1', $most ],
			increment => [ 'NULL', 0, '-$7', '$7 + 1' ] } });

# A database of the server that says of itself that it is a registry.
sub create_liar
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'CREATE DATABASE liar');
	$node->safe_psql('liar', "CREATE EXTENSION uidgen; SELECT uid_fleet_admit('uid_fleet')");
	$node->safe_psql('liar', "ALTER EXTENSION uidgen DROP FUNCTION $_; ALTER FUNCTION $_ RENAME TO honest_$_") foreach sort keys %answers;
	return;
}

# Each as function, columns, values.
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

# From now on the function tells this lie, and the other one is missing.
sub set_answer
{
	my ($node, $function, $columns, $values) = @_;
	my %answer = (refusal => 'NULL', message => 'NULL', hint => 'NULL', %{ $answers{$function}{honest} });
	@answer{ split ' ', $columns } = split / \| /, $values;
	my $rows = delete $answer{rows} // 1;
	my $body = 'SELECT ' . join(', ', map { "($answer{$_})::text" } sort keys %answer) . " FROM generate_series(1, $rows)";
	my $types = "SELECT string_agg(format_type(t, NULL), ', ') FROM unnest((SELECT proargtypes FROM pg_proc WHERE proname = 'honest_$function')) t";
	my $result = 'TABLE (' . join(', ', map { "$_ text" } sort keys %answer) . ')';
	$node->safe_psql('liar', 'DROP FUNCTION IF EXISTS ' . join(', ', sort keys %answers));
	my $create = "CREATE FUNCTION $function(" . $node->safe_psql('liar', $types) . ") RETURNS $result";
	$node->safe_psql('liar', "$create LANGUAGE sql AS \$body\$ $body \$body\$");
	return;
}

1;
