# What the sessions of a fleet draw from: on each member generators whose nodes come from the registry, and a segment of the
# registry. What no two members may be given is one scope of the checker.
package FleetPaths;

use v5.36;

use parent 'Paths';

use Ways;

# Of the default layout there are two generators, and one that comes and goes. `small` has four nodes and eight ids a tick,
# so that two holders of one node collide at once.
my %generators = (
	uid_default => { order => 2 },
	cached => { create => "mode => 'cached', spread => false", order => 0 },
	js53 => { create => "'js53'", order => 0, flags => ':s' },
	baidu => { create => "'baidu'", order => 2 },
	small => { create => 'datacenter_bits => 0, worker_bits => 2, sequence_bits => 3', order => 2, flags => ':s' });

my @others = (
	[ 5, 'uid_default', 'BEGIN; SELECT uid_next() ;; SELECT pg_sleep(0.05 * {20}) ;; SELECT unnest(uid_next_array({20})) ;; ROLLBACK' ],
	[ 2, 'churn', 'BEGIN; SELECT uid_generator_create(\'churn_{w}_{c}\') ;; SELECT unnest(uid_next_array(\'uid_generators.churn_{w}_{c}\', {100})) ;;'
		  . ' SELECT uid_generator_drop(\'uid_generators.churn_{w}_{c}\'); COMMIT' ],
	[ 10, 'uid_default,shared', 'INSERT INTO orders SELECT FROM generate_series(1, {30}) RETURNING id, v' ],
	[ 5, 'shared', Ways::draw('values', q{'shared'}, '{50}') ],
	[ 3, 'shared', Ways::draw('value_array', q{'shared'}, '{200}') ]);

sub ways
{
	return @others, map {
		my ($name, $flags, $object) = ($_, $generators{$_}{flags} // '', "'uid_generators.$_'");
		([ 5, "$name$flags", Ways::draw('ids', $object, '{50}') ], [ 5, "$name$flags", Ways::draw('id_array', $object, '{200}') ])
	} sort keys %generators;
}

sub ways_in_bulk
{
	return map { [ 1, $_, "/*binary*/ SELECT uid_next_array('uid_generators.$_', 50000)" ] } qw(uid_default cached);
}

sub statements ($self, $member, $dice)
{
	my @lines = $self->lines_of($member, $dice, $self->ways);
	return @lines ? @lines : $self->statements($member, $dice);
}

# Nearly every tick, so that two holders of one node collide at once.
sub statements_of_few_nodes ($self, $member)
{
	return "1\t" . $self->numbered($member, 'small:s') . "\t" . Ways::draw('id_array', q{'uid_generators.small'}, 500) . "\n";
}

sub calls
{
	return ('uid_next()', 'uid_next_array(10)', "uid_next('uid_generators.cached')", "segment_next('shared')");
}

sub databases
{
	return ('postgres');
}

sub create_at_member ($self, $member, $node)
{
	$node->safe_psql('postgres', join '',
		"SET client_min_messages = error;\nCREATE EXTENSION uidgen;\n",
		(map { "SELECT uid_generator_create('$_', $generators{$_}{create});\n" } grep { $generators{$_}{create} } sort keys %generators),
		"SELECT segment_attach('shared');\n",
		"CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), v bigint UNIQUE DEFAULT segment_next('shared'));\n");
	$self->add_stream($member, 'shared', 1, 1, 1, '9223372036854775807', 'shared', (0) x 7);
	foreach my $of (Paths::generators_of($node, 'postgres'))
	{
		my ($name, @fields) = @{$of}[ 0 .. 10 ];
		# Ids of one layout differ in the whole fleet. A grant of another node reorders ids inside a tick.
		@fields[ 2, 3 ] = (join('-', 'ids', @fields[ 1, 4 .. 6 ]), $fields[6]);
		$self->add_stream($member, $name, $generators{$name}{order}, 1, @fields, '-');
		$self->add_stream($member, 'churn', 0, 1, @fields, '-') if $name eq 'uid_default';
	}
}

1;
