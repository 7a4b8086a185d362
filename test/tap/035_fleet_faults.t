# A fleet of four servers that draw by all paths, while their clocks are stepped by hours, one is cut off from the
# registry, and two fleets meet.
#
# Expected: no id comes twice, on whatever server. Callers get ids, or errors that name the cause. Grants last four
# seconds.
#
# On PostgreSQL 15 a registrar sees the real clock, because libfaketime does not reach processes that are started from
# a signal handler. What a step does to a member's asks is tested by stepping the registry's clock, too.
use UidgenTest 'preloaded';

my $lease = 4;    # seconds
my $soon = 40;    # seconds. A refusal says that a clock must run for an hour, but it may be set before.

my (%servers, %loops, @stopped);

# The default generator's grant, in Unix time.
my $granted_until = q{SELECT extract(epoch FROM granted_until) FROM uid_registry_status WHERE generator LIKE '%uid_default'};

sub fails_with ($name, $expected, $generator = undef)
{
	my $error = '';
	my $draw = 'SELECT uid_next(' . ($generator ? "'uid_generators.$generator'" : '') . ')';
	ok(poll_until("$name: $expected", sub { $error = (sqlstate($servers{$name}, $draw))[1]; $error =~ $expected }),
		"$name fails with $expected") or diag($error);
}

sub begin_load ($name)
{
	push @{ $loops{$name} }, load($servers{$name}), load_small($servers{$name}, 'small');
}

sub stop_load ($name)
{
	push @stopped, stop_loop(@{ delete $loops{$name} });
}

sub all_loops
{
	return map { @$_ } values %loops;
}

# The servers

my $conf = <<"END";
uidgen.registry_clock_bound = '100ms'
uidgen.registry_lease = '${lease}s'
uidgen.max_wait = '1s'
autovacuum = off
END
foreach my $name ('registry', 'a', 'b', 'c')
{
	$servers{$name} = new_node($name, conf => $conf);
	use_fake_clock($servers{$name}) if $name eq 'registry' || $name eq 'a';
}
my $registry = $servers{registry};
start_uidgen($registry);
make_registry($registry);
sql($servers{registry}, "UPDATE uid_fleet_state SET longest_grant = '$lease s'");

# c reaches the registry through a proxy.
my $proxy_directory = PostgreSQL::Test::Utils::tempdir_short();
my $proxy = start_proxy($registry, $proxy_directory);

sub start_member ($name)
{
	my $line = registry_line($registry);
	my $host = $registry->host;
	$line =~ s/host=\Q$host\E/host=$proxy_directory/ if $name eq 'c';
	$servers{$name}->append_conf('postgresql.conf', "uidgen.registry = '$line'\n");
	start_uidgen($servers{$name});
	create_load($servers{$name});
	begin_load($name);
}

start_member('a');
goes_on('one member draws by all paths', all_loops());

# The registry's clock

# Renewed after the step, and for the usual time.
sub renews ($what, @names)
{
	foreach my $name (@names)
	{
		my $after = sql($servers{$name}, 'SELECT extract(epoch FROM clock_timestamp())') + $lease;
		ok(poll_until($what, sub { sql($servers{$name}, "SELECT ($granted_until) > $after") eq 't' }, $soon), "$what: $name renews its grant");
	}
	goes_on("$what: members draw on", map { @{ $loops{$_} } } @names);
}

set_clock($registry, '-1h');
fails_with('a', qr/the generator is too far ahead of the clocks of the fleet, by 3\d\d\d\.\d+ s.*HINT:  Correct the clock/s);
set_clock($registry, '+0');
start_member($_) foreach 'b', 'c';
goes_on('three members draw by all paths', all_loops());
set_clock($registry, '+1h');
renews('the registry is an hour ahead', 'a', 'b', 'c');
set_clock($registry, '+0');
renews('the clock is right again', 'a', 'b', 'c');

# A member's clock, while it holds a grant and while it asks for one

foreach my $step ('+1h', '-1h')
{
	my $generator = $step eq '+1h' ? 'early' : 'late';
	sql($servers{a}, "SELECT uid_generator_create('$generator')");
	set_clock($servers{a}, $step);
	fails_with('a', qr/ERROR:.*(no node from the registry.*ahead of the clocks|clock moved backwards|ahead of the (?:system )?clock)/s);
	push @{ $loops{a} }, background_loop($servers{a}, sql => "SELECT uid_next('uid_generators.$generator') FROM generate_series(1, 20)",
		pace => 0.2, reconnect => 1);
	# A registrar with another clock takes a generator that drew an hour ago for unused.
	my ($state, $error) = sqlstate($servers{a}, "SELECT uid_next('uid_generators.$generator')");
	my $real_clock = $step eq '-1h' && $servers{a}->pg_version < 16;
	ok($state eq '00000' || $error =~ /clock|ahead/ || $real_clock && $error =~ /has not answered yet/,
		"a clock off by $step: a generator that asks first gets an id, or an error that says why")
	  or diag($error);
	goes_on("a clock off by $step: other members draw on", map { @{ $loops{$_} } } 'b', 'c');
	set_clock($servers{a}, '+0');
	goes_on("after $step: the member draws on at once", @{ $loops{a} }, $soon);
}

# The registry becomes a member, and takes the last of four nodes

join_fleet($registry, $registry);
$registry->reload;
create_load($registry);
begin_load('registry');
goes_on('the registry draws by all paths', @{ $loops{registry} });

# A member is cut off from the registry

my $of_small = q{pool = (SELECT pool FROM uid_fleet_pools WHERE nodes = 4)};
my $node = node_of($servers{c}, 'uid_generators.small');
stop_proxy($proxy);
goes_on('cut off, a member draws on', @{ $loops{c} });
$registry->poll_query_until('postgres',
	q{SELECT count(*) = 3 FROM pg_stat_activity WHERE application_name = 'uidgen registrar' AND state = 'idle'}) or die 'not cut off';
my $until = sql($servers{registry}, "SELECT granted_until FROM uid_fleet_node WHERE node = $node AND $of_small");
create_small($servers{b}, 'newcomer');
push @{ $loops{b} }, load_small($servers{b}, 'newcomer');
fails_with('c', qr/has no node from the registry.*DETAIL:  The last request to the registry failed: connection to server on socket/s);
goes_on('its node is given to a newcomer', $loops{b}[-1]);
is(sql($servers{registry}, "SELECT granted_from >= $until FROM uid_fleet_node WHERE node = $node AND generator LIKE '%newcomer'"),
	't', '... from the end of its grant on');
start_proxy($registry, $proxy_directory);
goes_on('the registry can be reached again: the member draws on', @{ $loops{c} }[ 0 .. 3 ]);
fails_with('c', qr/all 4 nodes of the layout are in use/, 'small');
push @stopped, stop_loop(pop @{ $loops{b} });
sql($servers{b}, 'DROP SEQUENCE uid_generators.newcomer');
goes_on('a node is free again', @{ $loops{c} });

# Two fleets. c is the registry of the other one, at first while it is a member of the first one.

make_registry($servers{c});
join_fleet($servers{b}, $servers{c});
$servers{b}->reload;
$servers{b}->poll_query_until('postgres', "SELECT last_error LIKE '%another fleet%' FROM uid_registry_status LIMIT 1")
  or die 'the other fleet is not refused';
fails_with('b', qr/has no node from the registry.*DETAIL:  .*belongs to another fleet.*HINT:  .*uid_fleet_move\(\)/s);
stop_load('b');
sql($servers{b}, 'SELECT uid_fleet_move()');
fails_with('b', qr/DETAIL:  .*the server of the registry is itself a member of another fleet\nHINT:  .*uid_fleet_move\(\) there/s);
is(sql($servers{c}, 'SELECT count(*) FROM uid_fleet_pool'), 0, 'a layout that is refused makes no pool');
sql($servers{c}, "INSERT INTO uid_fleet_pool VALUES (1, 'custom', '2026-01-01', 1000, 41, 0, 7, 12, false, false, 'x')");
like((sqlstate($servers{c}, 'SELECT uid_fleet_reserve(1, without_standby => true)'))[1], qr/itself a member of another fleet/,
	'... nor does it reserve a node');
goes_on('that server draws on in its own fleet', @{ $loops{c} });
stop_load('c');
$servers{c}->stop;
start_node($servers{c});
sql($servers{c}, 'SELECT uid_fleet_fence(cancel => true)');
like((sqlstate($servers{c}, 'SELECT uid_fleet_reserve(1, without_standby => true)'))[1], qr/itself a member of another fleet/,
	'... also after a restart, before anything is drawn there');
join_fleet($servers{c}, $servers{c});
$servers{c}->reload;
ok(poll_until('b in the other fleet', sub {
		sql($servers{c}, 'SELECT uid_fleet_move()');
		return sqlstate($servers{b}, 'SELECT uid_next()') eq '00000';
	}), 'once its registry is a member of that fleet, or of none, b draws there');
is(sql($servers{c}, "SELECT count(*) > 0 FROM uid_fleet WHERE generator LIKE '%uid_default'"), 't', '... which knows it');
ok(poll_until('c in its fleet', sub { sqlstate($servers{c}, 'SELECT uid_next()') eq '00000' }), 'and so does that registry');
is(sql($servers{c}, 'SELECT DISTINCT r.fleet = s.fleet FROM uid_registry_status r, uid_fleet_state s'), 't', '... in its own fleet');

assert_unique(@stopped, stop_loop(all_loops()));

$_->stop foreach @servers{ 'b', 'c', 'a', 'registry' };
done_testing();
