# A registry that lies: its procedure answers as the fleet's registry would, but for one thing that a member can check. It
# gives no node and no block that a member can accept, because no member can notice that another one may have it.
package Liar;

use v5.36;

use Exporter 'import';
use PostgreSQL::Test::Utils qw(slurp_file);

our @EXPORT_OK = qw(create_liar lies set_answer);

my $most = '9223372036854775807';
my $no_number = q{'12x'};
my $other_fleet = '4711';

# What it answers, by column, from the request: to each of them, to a generator that asks for a node, and for a block of a
# segment. A lie is another value of a column, or of two.
my %answers = (
	hello => {
		honest => {
			fleet => "coalesce(request.fleet, $other_fleet)",
			term => 'coalesce(request.term, 1)',
			term_nonce => 'coalesce(request.term_nonce, 1)',
			serial => 'greatest(request.serial, request.held_serial, 0) + 1',
			seal => 1,
			clock_us => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint',
			server => 1,
			is_open => 'true',
			awaits_member => 'false',
			longest_us => 600000000 },
		lies => {
			refusal => [ q{''}, q{'nonsense'}, q{repeat('x', 100000)} ],
			fleet => [ 'NULL', 0, -1, $other_fleet, $no_number ],
			term => [ 'NULL', 0, -1, 'request.term - 1', $most ],
			term_nonce => [ 'NULL', -1, 'request.term_nonce + 1', $no_number ],
			serial => [ 'NULL', 0, -1 ],
			seal => [ 'NULL', $no_number ],
			clock_us => [ 'NULL', 0, -1, $most, "'infinity'" ],
			server => [ 'NULL', 0, -1 ],
			is_open => [ 'NULL', 'false', $no_number ],
			awaits_member => [ 'NULL', 'true', $no_number ],
			longest_us => [ 'NULL', 0, -1, $most ],
			granted_last_us => [ 1, -1, $most ] } },
	generator => {
		honest => {
			node => 'coalesce(request.held_node, 1)',
			granted_from => 'coalesce(request.held_from, request.lowest)',
			granted_until => 'coalesce(request.held_until, request.lowest) + request.length',
			membership => 'coalesce(request.held_membership, 77)',
			held_seal => 1 },
		lies => {
			node => [ 'NULL', -1, 2**40, $most, $no_number, q{''} ],
			granted_from => [ 'NULL', -1, $most, $no_number ],
			granted_until => [ 'NULL', 0, -1, $most, 'coalesce(request.held_from, request.lowest)' ],
			membership => [ 'NULL', 0, -1 ],
			held_seal => [$no_number],
			'term serial' =>
			  [ 'request.held_term | request.held_serial', 'request.held_term | request.held_serial - 1' ] } },
	segment => {
		honest => {
			first => 'request.shown + request.increment',
			count => 'request.count',
			increment => 'request.increment',
			is_synchronous => 'true' },
		lies => {
			first => [ 'NULL', 'request.shown', 'request.shown - request.increment', 'request.shown - request.increment * 99', $no_number, $most ],
			count => [ 'NULL', 0, -1, 'request.count + 1', $most ],
			increment => [ 'NULL', 0, '-request.increment', 'request.increment + 1' ] } });

# A database of the server that says of itself that it is a registry.
sub create_liar ($node)
{
	$node->safe_psql('postgres', 'CREATE DATABASE liar');
	$node->safe_psql('liar', "SET default_transaction_isolation = 'read committed'; CREATE EXTENSION uidgen; SELECT uid_fleet_admit('uid_fleet', 'new')");
	$node->safe_psql('liar', 'ALTER EXTENSION uidgen DROP PROCEDURE uid_internal.uid_fleet_call; ALTER PROCEDURE uid_internal.uid_fleet_call RENAME TO honest');
	$node->safe_psql('liar', slurp_file('test/fleet_messages.sql'));
}

# The columns of an answer, each with its type.
sub columns ($node)
{
	return map { [ split /\|/ ] } split /\n/, $node->safe_psql('liar',
		q{SELECT attname, atttypid::regtype FROM pg_attribute WHERE attrelid = 'fleet_answer'::regclass AND attnum > 0 ORDER BY attnum});
}

# Each as what it answers, columns, values.
sub lies
{
	my @lies;
	foreach my $to (sort keys %answers)
	{
		my $lies = $answers{$to}{lies};
		foreach my $columns (sort keys %$lies)
		{
			push @lies, map { [ $to, $columns, $_ ] } @{ $lies->{$columns} };
		}
	}
	return @lies;
}

# From now on it tells this lie.
sub set_answer ($node, $to, $columns, $values)
{
	my %lie;
	@lie{ split ' ', $columns } = split / \| /, $values;
	my @columns = columns($node);
	my $row_of = sub ($kind) {
		my %given = $kind eq 'hello' || $kind eq $to ? %{ $answers{$kind}{honest} } : (refusal => q{'fenced'});
		my %answer = (%{ $answers{hello}{honest} }, %given, $to eq 'hello' || $to eq $kind ? %lie : ());
		# A text in the place of a number is a lie about the type.
		my @values = map {
			my ($column, $type) = @$_;
			my $value = $answer{$column} // 'NULL';
			"($value)::" . ($value =~ /^'/ ? 'text' : $type)
		} @columns;
		return 'record_send(ROW(' . join(', ', @values) . '))';
	};
	$node->safe_psql('liar', <<"SQL");
CREATE OR REPLACE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS \$body\$
DECLARE
  request fleet_request;
BEGIN
  answers := '';
  FOR request IN SELECT (jsonb_populate_record(NULL::fleet_request, fields)).* FROM rows_in(requests, 'fleet_request') fields LOOP
    answers := answers || CASE WHEN request.incarnation IS NOT NULL THEN @{[ $row_of->('generator') ]}
                               WHEN request.segment IS NOT NULL THEN @{[ $row_of->('segment') ]}
                               ELSE @{[ $row_of->('hello') ]} END;
  END LOOP;
END \$body\$
SQL
}

1;
