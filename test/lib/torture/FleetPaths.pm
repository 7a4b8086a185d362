# What the sessions of a fleet draw from: on each member generators whose nodes come from the registry, segments that
# are attached to segments of the registry, and some of its own. On the registry the segments that members are attached
# to. What no two members may be given is one scope of the checker.
package FleetPaths;

use v5.36;

use parent 'Paths';

# order and scarce as in log.hpp and checker.cpp. Of the default layout there are two generators, and one that comes and
# goes. `small` has four nodes and eight ids a tick, so that two holders of one node collide at once. `tight` has two, so
# that a member waits for a node, and takes the one that another member's grant leaves.
my %generators = (
	uid_default => { order => 2 },
	cached => { create => "mode => 'cached', spread => false", order => 2 },
	js53 => { create => "'js53'", order => 0, is_scarce => 1 },
	baidu => { create => "'baidu'", order => 2 },
	small => { create => 'datacenter_bits => 0, worker_bits => 2, sequence_bits => 3', order => 2, is_scarce => 1 },
	tight => { create => 'datacenter_bits => 0, worker_bits => 1, sequence_bits => 3', order => 2, is_scarce => 1 });

# At the registry, where members are attached to them. Blocks are short, so that there are many.
my %attached = (
	shared => { create => '', sign => 1 },
	falling => {
		create => ', -1, increment => -1, min_value => -9000000000000000000, max_value => -1', sign => -1 });
my $attach = "step => 50, max_step => 300, without_standby => true";

my $tables = <<'END';
CREATE SEQUENCE mixed;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), v bigint UNIQUE DEFAULT segment_next('shared'));
END

my @of_member = (
	[ 10, 'uid_default', 'SELECT uid_next()' ],
	[ 10, 'uid_default', 'SELECT uid_next() FROM generate_series(1, {50})' ],
	[ 10, 'uid_default', 'SELECT unnest(uid_next_array({500}))' ],
	[ 5, 'uid_default', 'BEGIN; SELECT uid_next() ;; SELECT pg_sleep(0.05 * {20}) ;; SELECT unnest(uid_next_array({20})) ;; ROLLBACK' ],
	[ 2, 'churn', 'BEGIN; SELECT uid_generator_create(\'churn_{w}_{c}\') ;; SELECT unnest(uid_next_array(\'uid_generators.churn_{w}_{c}\', {100})) ;;'
		  . ' SELECT uid_generator_drop(\'uid_generators.churn_{w}_{c}\'); COMMIT' ],
	[ 10, 'uid_default,shared', 'INSERT INTO orders SELECT FROM generate_series(1, {30}) RETURNING id, v' ],
	[ 5, 'uid_default,shared', 'BEGIN; INSERT INTO orders DEFAULT VALUES RETURNING id, v; ROLLBACK' ],
	[ 5, 'named', 'SELECT segment_next($$named$$) FROM generate_series(1, {50})' ],
	[ 3, 'named:b', 'SELECT generate_series(first, last, increment) FROM segment_reserve($$named$$, {50})' ],
	[ 3, 'mixed', 'SELECT segment_next($$mixed$$::regclass) FROM generate_series(1, {50})' ],
	[ 3, 'mixed:l', 'SELECT nextval($$mixed$$) FROM generate_series(1, {20})' ],
	[ 3, 'mixed:b', 'SELECT generate_series(first, last, increment) FROM segment_reserve($$mixed$$::regclass, {50})' ]);

sub databases
{
	return ('postgres');
}

# What a registry has before any member comes.
sub create_at_registry ($self, $node)
{
	$node->safe_psql('postgres', join '', map { "SELECT segment_create('$_'$attached{$_}{create}, step => 100, max_step => 1000);"
			  . " GRANT USAGE ON SEQUENCE uid_segments.$_ TO uid_fleet;" } sort keys %attached);
}

# Beyond all values that members have: how often others have taken the registry's place.
sub raise_attached ($self, $node, $times)
{
	my $value = 1_000_000_000_000 * $times;
	$node->safe_psql('postgres', "SELECT segment_set('$_', " . $attached{$_}{sign} * $value . ')') foreach sort keys %attached;
}

# What is drawn at the registry, and what the nemesis draws from generators that come and go, in layouts of their own.
sub add_streams_of_fleet ($self)
{
	$self->add_attached('registry', $_) foreach sort keys %attached;
	$self->add_stream('postgres', 'late', 0, 1, 1, '9223372036854775807', 'late', (0) x 7);
}

sub create_at_member ($self, $member, $node)
{
	$node->safe_psql('postgres', join '',
		"SET client_min_messages = error;\n",
		(map { "SELECT uid_generator_create('$_', $generators{$_}{create});\n" } grep { $generators{$_}{create} } sort keys %generators),
		(map { attach($_) } sort keys %attached),
		"SELECT segment_create('named');\n", $tables);
	$self->add_ids($member, $node);
	$self->add_attached($member, $_) foreach sort keys %attached;
	$self->add_attached($member, 'shared', 'of_copy');
	$self->add_stream($member, $_, $_ eq 'mixed' ? 1 : 2, 1, 1, '9223372036854775807', 'history', (0) x 7) foreach qw(named mixed);
}

# Statements that attach a segment; again if it is attached.
sub attach ($segment)
{
	return "SELECT segment_attach('$segment', '$segment', $attach);\n";
}

sub attached
{
	return sort keys %attached;
}

# Ids of one layout differ in the whole fleet. A grant of another node reorders ids inside a tick.
sub add_ids ($self, $member, $node)
{
	my $layout = "concat_ws('-', 'ids', extract(epoch FROM epoch), tick_us, time_bits, datacenter_bits, worker_bits, sequence_bits)";
	foreach my $of (Paths::generators_of($node, 'postgres', $layout, 'datacenter_bits + worker_bits + sequence_bits'))
	{
		my ($name, @fields) = @$of[ 0 .. 10 ];
		push @fields, $node->{uidgen_clock} // '-';
		$self->add_stream($member, $name, $generators{$name}{order}, 1, @fields);
		# Of generators that come and go, and of copies of the schema.
		$self->add_stream($member, 'churn', 0, 1, @fields) if $name eq 'uid_default';
		$self->add_stream($member, 'copied', 0, 1, @fields) if $name eq 'small';
	}
}

# A registry that loses commits may give a block again, but not to the member that has had it. What copies draw is another
# stream, in no order.
sub add_attached ($self, $server, $name, $stream = undef)
{
	my $sign = $attached{$name}{sign};
	my @range = $sign > 0 ? (1, '9223372036854775807') : ('-9000000000000000000', -1);
	my $scope = $self->{setting}->loses_commits ? 'history' : "segment-$name";
	my $order = defined $stream ? 0 : $server eq 'registry' ? 1 : 2;
	return $self->add_stream($server, $stream // $name, $order, $sign, @range, $scope, (0) x 7);
}

sub calls
{
	return ('uid_next()', 'uid_next_array(10)', "uid_next('uid_generators.cached')", "segment_next('shared')",
		"segment_next('named')", "(SELECT last FROM segment_reserve('mixed'::regclass, 5))");
}

sub statements ($self, $server, $dice)
{
	my @ways = $server eq 'registry' ? $self->ways_of_registry : $self->ways_of_member;
	@ways = grep { $_->[2] !~ /pg_sleep/ } @ways if $self->{setting}{clock};
	my @lines = $self->lines_of($server, $dice, @ways);
	return @lines ? @lines : $self->statements($server, $dice);
}

sub ways ($self)
{
	return ($self->ways_of_member, $self->ways_of_registry);
}

sub ways_of_member
{
	my @ways = @of_member;
	my $tight = q{BEGIN; SET LOCAL uidgen.max_wait = '100ms'; SELECT unnest(uid_next_array('uid_generators.tight', {500})); COMMIT};
	push @ways, [ 10, 'tight:s', $tight ];
	foreach my $name (grep { $_ !~ /uid_default|tight/ } sort keys %generators)
	{
		my $flags = $generators{$name}{is_scarce} ? ':s' : '';
		push @ways,
		  [ 3, "$name$flags", "SELECT uid_next('uid_generators.$name') FROM generate_series(1, {50})" ],
		  [ 3, "$name$flags", "SELECT unnest(uid_next_array('uid_generators.$name', {200}))" ];
	}
	foreach my $name (sort keys %attached)
	{
		push @ways,
		  [ 5, $name, "SELECT segment_next('$name') FROM generate_series(1, {50})" ],
		  [ 3, $name, "SELECT unnest(segment_next_array('$name', {200}))" ],
		  [ 3, $name, "BEGIN; SELECT segment_next('$name') ;; SELECT pg_sleep(0.05 * {20}) ;; SELECT segment_next('$name') ;; ROLLBACK" ];
	}
	return @ways;
}

# Nearly every tick, so that two holders of one node collide at once.
sub statements_of_few_nodes ($self, $member)
{
	return "1\t" . $self->numbered($member, 'small:s') . "\tSELECT unnest(uid_next_array('uid_generators.small', 500))\n";
}

# Blocks of attached segments are short, so only what a member has of its own.
sub ways_in_bulk
{
	return (
		[ 10, 'uid_default', '/*binary*/ SELECT uid_next_array(50000)' ],
		[ 5, 'cached', "/*binary*/ SELECT uid_next_array('uid_generators.cached', 50000)" ],
		[ 3, 'named', "/*binary*/ SELECT segment_next_array('named', 50000)" ]);
}

# The registry's own sessions, beside the members: from its segments, and by nextval from the same sequences.
sub ways_of_registry
{
	my @ways;
	foreach my $name (sort keys %attached)
	{
		push @ways,
		  [ 5, $name, "SELECT segment_next('$name') FROM generate_series(1, {50})" ],
		  [ 2, "$name:l", "SELECT nextval('uid_segments.$name') FROM generate_series(1, {20})" ],
		  [ 3, "$name:b", "SELECT generate_series(first, last, increment) FROM segment_reserve('$name', {50})" ];
	}
	return @ways;
}

1;
