# Segments of a fleet: members draw the values of one segment at the registry, in blocks.
#
# Expected: no value comes twice, on whatever server, and none is missing unless a server is killed, copied or promoted.
# A registry that is away or refuses is named in an error, once the values in hand are used up.
use UidgenTest 'preloaded';

my $conf = "uidgen.max_wait = '60s'\nautovacuum = off\n";
my (%nodes, @drawn);

# Creates a segment at the registry, and attaches members to it, with blocks of a hundred values.
sub make_segment ($registry, $segment, @members)
{
	sql($nodes{$registry}, "SELECT segment_create('$segment'); GRANT USAGE ON SEQUENCE uid_segments.$segment TO uid_fleet");
	sql($nodes{$_}, "SELECT segment_attach('$segment', step => 100, max_step => 100, without_standby => true)") foreach @members;
}

# Draws so many values one by one, and returns them.
sub draw ($name, $segment, $count)
{
	my @values = split /\n/, sql($nodes{$name}, "SELECT segment_next('$segment') FROM generate_series(1, $count)");
	push @drawn, map { "$segment $_" } @values;
	return @values;
}

sub status ($name, $segment, $column)
{
	return sql($nodes{$name}, "SELECT $column FROM segment_status WHERE name = '$segment'");
}

sub wait_for_next ($name, $segment)
{
	$nodes{$name}->poll_query_until('postgres', "SELECT next_ready FROM segment_status WHERE name = '$segment'")
	  or die "no next block for $name";
}

# Fails at once instead of after uidgen.max_wait, unless the registry answers.
sub fails_with ($name, $segment, $expected, $what)
{
	my ($state, $error) = sqlstate($nodes{$name}, "SET uidgen.max_wait = '2s'; SELECT segment_next('$segment')");
	like($error, $expected, $what);
	return $state;
}

sub new_member ($name, @registries)
{
	$nodes{$name} = new_server($name, conf => $conf, registries => [ @nodes{@registries} ]);
}

sub new_standby ($primary, $standby)
{
	$nodes{$primary}->backup($standby);
	$nodes{$standby} = UidgenNode->new($standby) unless $nodes{$standby};
	$nodes{$standby}->init_from_backup($nodes{$primary}, $standby, has_streaming => 1);
	start_node($nodes{$standby});
}

# The registry's later primary is second.
$nodes{first} = new_node('first', conf => $conf);
$nodes{second} = UidgenNode->new('second');
start_uidgen($nodes{first});
make_registry($nodes{first});
new_member($_, 'first', 'second') foreach 'a', 'b';

# As docs/segments.md says it.
sql($nodes{first}, block_of('docs/segments.md', qr/GRANT USAGE ON SEQUENCE uid_segments.orders/) =~ s/fleet_app1, fleet_app2/uid_fleet/r);
my $attach = block_of('docs/segments.md', qr/segment_attach/);
like((sqlstate($nodes{a}, $attach))[1], qr/the registry has no synchronous standby\nDETAIL:  At a failover .*\nHINT:  .* pass without_standby => true/,
	'without a synchronous standby of the registry a member attaches to a segment by a word of its own only');
my $without = sub { $_[0] =~ s/'orders'\)/'orders', without_standby => true)/r };
like(sql($nodes{a}, $without->($attach)), qr/^1$/m, '... and draws');
like(sql($nodes{b}, $without->($attach)), qr/^1001$/m, '... another one draws from the next block');
like(sql($nodes{a}, $without->(statement_of('docs/segments.md', qr/segment_attach/))), qr/orders/, '... it may attach again');
like(sql($nodes{a}, $without->(statement_of('docs/fleet.md', qr/segment_attach/))), qr/orders/, '... and again');

# docs/ids-for-people.md, "Numbers that begin again", of a fleet.
my $numbers = block_of('docs/ids-for-people.md', qr/CREATE TABLE number_series/) =~ s/uidgen\.//gr;
sql($nodes{first}, block_of('docs/ids-for-people.md', qr/ALTER DEFAULT PRIVILEGES/) =~ s/fleet_app1, fleet_app2/uid_fleet/r);
sql($nodes{first}, $numbers);
sql($nodes{$_}, $numbers =~ s/segment_create\(name, /segment_attach(name, without_standby => true, /r) foreach 'a', 'b';
my $year = sql($nodes{first}, q{SELECT number_segment(number_period('C', now()))}) =~ s/.*"C-(\d+)"/$1/r;
is(join(' ', map { sql($nodes{$_}, q{SELECT next_number('C')}) } 'a', 'b', 'a'), "C-$year-000001 C-$year-000011 C-$year-000002",
	'numbers of a year, from two servers');
sql($nodes{first}, 'ALTER DEFAULT PRIVILEGES IN SCHEMA uid_segments REVOKE USAGE ON SEQUENCES FROM uid_fleet');

# Made anew at the registry, it begins after all that members were given.
sub stderr_of ($name, $sql)
{
	$nodes{$name}->psql('postgres', $sql, stderr => \my $error);
	return $error;
}
my $given = sql($nodes{first}, q{SELECT last_value FROM uid_fleet_segment WHERE name = 'orders'});
is($given, 2000, 'the registry knows what members were given');
like(stderr_of('first', q{DROP SEQUENCE uid_segments.orders}), qr/WARNING:  members of the fleet have values of segment "orders", up to 2000\n.*HINT:  .*it begins after that value/s,
	'a drop of the segment is warned of');
like(stderr_of('first', q{SELECT segment_create('orders')}), qr/NOTICE:  segment "orders" begins after 2000\n/, 'made anew, it says where it begins');
is(sql($nodes{first}, q{SELECT segment_next('orders')}), 2001, '... also at the registry itself');
sql($nodes{first}, q{GRANT USAGE ON SEQUENCE uid_segments.orders TO uid_fleet});
is((sort { $a <=> $b } split /\n/, sql($nodes{a}, q{SELECT segment_next('orders') FROM generate_series(1, 2000)}))[-1] > 3001, 1,
	'... members go on beyond it');
like(stderr_of('first', q{SELECT segment_drop('orders'); SELECT segment_create('orders', start => 10, max_value => 2500)}),
	qr/ERROR:  setval: value \d+ is out of bounds for sequence "orders"/, 'with bounds below them it cannot be created');
is(stderr_of('first', q{SELECT segment_create('orders', start => 100000); SELECT segment_drop('orders')}) =~ /NOTICE/, '', 'beyond them it begins at its start');
is(stderr_of('first', q{SELECT segment_create('down', increment => -1); SELECT segment_drop('down')}), '', 'others are not warned of');
sql($nodes{$_}, "SELECT segment_drop('orders')") foreach 'a', 'b';

# Exactly 1 to M: two members, and sessions on the registry itself, draw until the segment is used up.

my $last = 2000;
make_segment('first', 'all', 'a', 'b');
sql($nodes{first}, "ALTER SEQUENCE uid_segments.all MAXVALUE $last");
my @loops = map {
	background_loop($nodes{$_}, clients => 2, sql => "SELECT segment_next('all')")
} 'first', 'a', 'b';
wait_for_loop(@loops);
my (%seen, %of, @unordered);
foreach my $i (0 .. 2)
{
	foreach my $log (@{ $loops[$i]{logs} })
	{
		my $before = 0;
		foreach my $value (split /\n/, slurp_file($log))
		{
			push @unordered, $value if $value <= $before;
			$before = $value;
			$seen{$value}++;
			$of{$i}++;
		}
	}
	like(slurp_file("$loops[$i]{logs}[0].err"),
		$i == 0 ? qr/reached maximum value of sequence "all" \($last\)/ : qr/segment "all" has no value left at the registry/,
		'the last draw says that the segment is used up');
}
note(join ' ', map { "$_: " . ($of{$_} // 0) } 0 .. 2);
is(scalar(@unordered), 0, 'each client gets its values in order');
is(scalar(grep { $_ > 1 } values %seen), 0, 'no value comes twice');
is(join(',', grep { !$seen{$_} } 1 .. $last), '', "the values are 1 to $last, and none is missing");
is(scalar(keys %seen), $last, 'and there are no others');
is(scalar(grep { ($of{$_} // 0) > 20 } 0 .. 2), 3, 'all three servers drew');
is(fails_with('a', 'all', qr/HINT:  Run ALTER SEQUENCE uid_segments\."?all"? MAXVALUE/, 'used up'), '2200H', 'as a local segment');

# What the local sequence refuses, and what the views show

# Members have no value of an earlier segment of that name any more.
sql($nodes{first}, q{DELETE FROM uid_fleet_segment});
make_segment('first', 'orders', 'a', 'b');
is(join(',', draw('a', 'orders', 3), draw('b', 'orders', 2), draw('a', 'orders', 2)), '1,2,3,101,102,4,5', 'each member has a block');
my $refused = qr/segment of sequence "orders" is attached to a fleet's registry/;
like((sqlstate($nodes{a}, $_))[1], $refused, $_)
  foreach "SELECT segment_set('orders', 1)", "SELECT segment_set('uid_segments.orders', 1)",
  "SELECT * FROM segment_reserve('orders', 1)";
like((sqlstate($nodes{a}, q{SELECT nextval('uid_segments.orders')}))[1], qr/reached maximum value of sequence "orders"/, 'nextval fails');
is((draw('a', 'orders', 1))[0], 6, 'and has moved nothing');
is(status('a', 'orders', 'registry_name, range_first, range_length, next_ready, next_asked, registry_error IS NULL'),
	'orders|1|100|f|f|t', 'segment_status shows the block');

# A segment of a member's own: whoever asks for one that is not attached is led to segment_attach().
like((sqlstate($nodes{a}, q{SELECT segment_next('alone')}))[1], qr/"alone" does not exist\nHINT:  Attach it to a segment of the registry with segment_attach\(\)/,
	'a member without the segment: the hint says how to attach');
my $notice;
$nodes{a}->psql('postgres', q{SELECT segment_create('alone')}, stderr => \$notice);
like($notice, qr/NOTICE:  values of segment "alone" are those of this server alone\nDETAIL:.*\nHINT:  Use segment_attach/, '... and so does the notice of segment_create()');
like((sqlstate($nodes{a}, q{SELECT segment_attach('alone')}))[1], qr/ERROR:  42710: segment "alone" exists, and has values of its own\nHINT:  Raise the segment of the registry above/,
	'... and segment_attach() says how to take it over');
sql($nodes{a}, q{SELECT segment_drop('alone')});
like((sqlstate($nodes{a}, q{SELECT segment_attach('nowhere')}))[1],
	qr/segment "nowhere" has no values from the registry\nDETAIL:  .*: segment "nowhere" does not exist at the registry\nHINT:  Run SELECT segment_create\('nowhere'\) on the registry/,
	'a segment that the registry does not have');
is(sql($nodes{a}, q{SELECT count(*) FROM pg_class WHERE relname = 'nowhere'}), 0, 'leaves nothing behind');
sql($nodes{first}, q{SELECT segment_create('closed')});
like((sqlstate($nodes{a}, q{SELECT segment_attach('closed')}))[1],
	qr/this server's login may not use segment "closed"\nHINT:  Run GRANT USAGE ON SEQUENCE uid_segments.closed on the registry, to the role that uidgen.registry names/,
	'a segment that the role may not use');
like((sqlstate($nodes{a}, q{SELECT segment_attach('orders', 'closed')}))[1], qr/is attached to another segment of the registry/,
	'a segment that is attached to another one');

# A look-up of another segment in the name of one that is attached does not change what that one draws, even if it fails.
make_segment('first', 'near', 'a');
draw('a', 'near', 3);
sql($nodes{first}, q{SELECT segment_create('far', 1000000); GRANT USAGE ON SEQUENCE uid_segments.far TO uid_fleet});
like(sql($nodes{a}, q{SELECT uid_internal.uid_look_up_segment('uid_segments.near', 'near', 'far')}), qr/,1,f/, 'a look-up of another segment');
like((sqlstate($nodes{a}, q{SELECT uid_internal.uid_look_up_segment('uid_segments.near', 'near', 'nowhere')}))[1], qr/"nowhere" does not exist/, '... and one that is not there');
is(join(',', grep { $_ >= 1000000 } draw('a', 'near', 300)), '', '... and the attached segment draws its own values');
like((sqlstate($nodes{first}, q{SELECT segment_attach('mine', 'orders')}))[1], qr/uidgen.registry is not set\nHINT:  Set/,
	'a server without a registry');

# The registry as a member, with a segment of another name, which has letters of its encoding. Rolled back and again.
join_fleet($nodes{first}, $nodes{first});
$nodes{first}->reload;
$nodes{first}->poll_query_until('postgres', q{SELECT current_setting('uidgen.registry') <> ''}) or die 'no reload';
make_segment('first', "gr\x{c3}\x{b6}\x{c3}\x{9f}e");
is(stderr_of('first', q{SELECT segment_create('here')}), '', 'a segment of the registry itself: no notice');
sql($nodes{first}, "BEGIN; SELECT segment_attach('mine', 'gr\x{c3}\x{b6}\x{c3}\x{9f}e', without_standby => true); SELECT segment_next('mine'); ROLLBACK");
sql($nodes{first}, "SELECT segment_attach('mine', 'gr\x{c3}\x{b6}\x{c3}\x{9f}e', step => 10, without_standby => true)");
is(sql($nodes{first}, "SELECT segment_next('mine'), segment_next('gr\x{c3}\x{b6}\x{c3}\x{9f}e')"), '1001|1011', 'the registry is a member of its own');
sql($nodes{a}, "SELECT segment_attach('gr\x{c3}\x{b6}\x{c3}\x{9f}e', without_standby => true)");
sql($nodes{first}, 'GRANT USAGE ON SEQUENCE uid_segments.mine TO uid_fleet');
like((sqlstate($nodes{a}, q{SELECT segment_attach('again', 'mine')}))[1], qr/segment "mine" at the registry is itself attached/,
	'an attached segment cannot be attached to');
set_conf($nodes{first}, "uidgen.registry = ''");

# The length of blocks follows the demand.
sql($nodes{first}, q{SELECT segment_create('busy'); GRANT USAGE ON SEQUENCE uid_segments.busy TO uid_fleet});
sql($nodes{a}, q{SELECT segment_attach('busy', step => 10, max_step => 80, without_standby => true)});
is((draw('a', 'busy', 400))[-1], 400, 'a member draws from several blocks');
is(status('a', 'busy', 'range_length'), 80, 'blocks grow from step to max_step');

# Of the sessions that wait for a block, one takes it. The others ask for the next one.
sql($nodes{first}, q{SELECT segment_create('few'); GRANT USAGE ON SEQUENCE uid_segments.few TO uid_fleet});
sql($nodes{a}, q{SELECT segment_attach('few', step => 5, max_step => 5, without_standby => true)});
my $waiting = background_loop($nodes{a}, clients => 12, sql => q{SELECT segment_next('few') FROM generate_series(1, 100)});
$nodes{a}->poll_query_until('postgres', q{SELECT last_value > 10000 FROM uid_segments.few}) or die 'no values';
my @waited = stop_loop($waiting);
is(join('', map { slurp_file("$_.err") } @waited), '', 'no session that waits for a block fails because another one takes it');
assert_unique(@waited);

# The registry is away, while a member stops cleanly, and crashes

draw('a', 'orders', 20);    # 7 to 26
wait_for_next('a', 'orders');
$nodes{first}->stop('fast');
is(join(',', (draw('a', 'orders', 170))[0, 73, 74, 169]), '27,100,201,296',
	'the registry is away: draws go on into the next block');
draw('b', 'orders', 98);
is(fails_with('b', 'orders', qr/segment "orders" has no values from the registry\nDETAIL:  The last request to the registry failed: .*connection to server/, 'the values are used up'),
	'55000', 'which is an error with the last error of the registry');
is(status('b', 'orders', q{next_asked, registry_error ~ 'connection'}), 't|t', 'segment_status shows it');
my $session = hold_open($nodes{b});
send_query($session, q{SELECT segment_next('orders')});
$nodes{first}->start;
my ($value, $error) = finish_query($session);
is($error, '', 'the registry is back: a draw that waits goes on');
cmp_ok($value, '>', 300, 'with a new block');
push @drawn, "orders $value";

my ($before) = (draw('b', 'orders', 20))[-1];
wait_for_next('b', 'orders');
$nodes{b}->stop('immediate');
start_node($nodes{b});
cmp_ok((draw('b', 'orders', 1))[0], '>', $before + 100, 'after a crash a member draws from a new block');

# Copies: a stopped directory, one put back in its place, a standby

($before) = (draw('a', 'orders', 50))[-1];
wait_for_next('a', 'orders');
cmp_ok(status('a', 'orders', 'range_left'), '>', 20, 'a member has values in hand');
$nodes{a}->stop('fast');
$nodes{copy} = UidgenNode->new('copy');
mkdir $nodes{copy}->basedir;
system_or_bail('cp', '-a', $nodes{a}->data_dir, $nodes{copy}->data_dir);
my $cold = $nodes{a}->basedir . '/cold';
system_or_bail('cp', '-a', $nodes{a}->data_dir, $cold);
$nodes{copy}->append_conf('postgresql.conf', 'port = ' . $nodes{copy}->port . "\nunix_socket_directories = '" . $nodes{copy}->host . "'\n");
start_node($nodes{$_}) foreach 'a', 'copy';
my @a = draw('a', 'orders', 100);
my @copy = draw('copy', 'orders', 100);
cmp_ok($a[0], '>', $before + 20, 'after a clean stop a member draws from a new block');
cmp_ok($copy[0], '>', $a[-1], 'so does a copy of the stopped directory');
$nodes{copy}->stop;
$nodes{a}->stop('fast');
system_or_bail('rm', '-rf', $nodes{a}->data_dir);
system_or_bail('mv', $cold, $nodes{a}->data_dir);
start_node($nodes{a});
cmp_ok((draw('a', 'orders', 100))[0], '>', $copy[-1], 'so does a copy that was put back in its place');

new_standby('b', 'standby');
draw('b', 'orders', 30);
wait_for_next('b', 'orders');
$nodes{b}->wait_for_catchup($nodes{standby});
$nodes{standby}->promote;
draw($_, 'orders', 150) foreach 'standby', 'b', 'standby';
$nodes{standby}->stop;

# A database that is restored from a dump.
my $dump = $nodes{b}->basedir . '/dump';
$nodes{b}->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'a dump of a member');
sql($nodes{b}, 'CREATE DATABASE restored');
$nodes{b}->command_ok([ 'pg_restore', '-d', 'restored', $dump ], 'is restored');
push @drawn, map { "orders $_" } split /\n/, $nodes{b}->safe_psql('restored', q{SELECT segment_next('orders') FROM generate_series(1, 150)});
draw('b', 'orders', 150);

is(repeated(@drawn), '', 'no value of a segment came twice');

# The registry fails over: to a standby that has all blocks, and to one that has lost the last ones

learn_messages($nodes{first});
new_standby('first', 'second');
make_synchronous($nodes{first}, 'second');

# While the standby does not answer, no block is given. Calls that are given up use up one. The last block before must
# have reached the standby, as a commit after it has.
sql($nodes{first}, 'CREATE TABLE reached ()');
my $state = q{SELECT last_value FROM uid_segments.orders};
$before = sql($nodes{first}, $state);
my $walsender = freeze_walsender($nodes{first}, 'second');
my $fleet = sql($nodes{first}, 'SELECT fleet FROM uid_fleet_state');
my $call = qq{SET ROLE uid_fleet;
	CALL call_with(request_of(of_server() || '{"fleet": $fleet, "segment": "orders", "count": 100, "increment": 1}'))};
foreach my $call_number (1, 2)
{
	like((sqlstate($nodes{first}, $call))[1], qr/the registry waits for its synchronous standby\nDETAIL:  .*synchronous_standby_names is "second"/,
		'without its standby the registry gives no block');
}
is(sql($nodes{first}, $state), $before + 100, '... and uses up one');
thaw($walsender);
is(sql($nodes{a}, q{SELECT segment_attach('orders')}), 'uid_segments.orders', 'with a synchronous standby a member attaches without a further word');

draw('a', 'orders', 150);
wait_for_next('a', 'orders');
$nodes{first}->stop('immediate');
$nodes{second}->promote;
my @after = draw('a', 'orders', 250);
draw('b', 'orders', 250);
is(repeated(@drawn), '', 'a failover to a synchronous standby: no value came twice');

$nodes{third} = UidgenNode->new('third');
$nodes{$_}->append_conf('postgresql.conf', "uidgen.registry = '" . registry_line($nodes{second}, $nodes{third}) . "'\n"),
  $nodes{$_}->reload
  foreach 'a', 'b';
new_standby('second', 'third');
draw('a', 'orders', 150);
wait_for_next($_, 'orders') foreach 'a', 'b';
$nodes{second}->wait_for_catchup($nodes{third});
$walsender = freeze_walsender($nodes{second}, 'third');
my $known = sql($nodes{second}, $state);
# The standby may know one block more than this query sees. The member draws beyond that one.
draw('a', 'orders', 250);
wait_for_next('a', 'orders');
cmp_ok(sql($nodes{second}, $state), '>', $known, 'a member draws from blocks that the standby does not have');
@after = draw('a', 'orders', 500);
$nodes{second}->kill9;
kill 'KILL', $walsender;
$nodes{third}->promote;
cmp_ok(sql($nodes{third}, $state), '<', $after[-1], 'they are lost');
draw('a', 'orders', 250);
is(repeated(@drawn), '', 'the registry stands above the values that a member shows');
cmp_ok(sql($nodes{third}, $state), '>', $after[-1], 'and so do later blocks');

# The segment changes at the registry

# A refusal counts for a second, so the first error may be that of the registry as it was before.
sub draws_until ($name, $segment, $expected, $what)
{
	my ($state, $error);
	poll_until($what, sub {
		($state, $error) = sqlstate($nodes{$name}, "SELECT segment_next('$segment') FROM generate_series(1, 90)");
		return $error =~ $expected;
	});
	like($error, $expected, $what);
}

sub draws_again ($what)
{
	ok(poll_until($what, sub { sqlstate($nodes{a}, q{SELECT segment_next('orders')}) eq '00000' }), $what);
}

my $reattach = qr/HINT:  Correct uidgen.registry or the segment there, or run SELECT segment_attach\('orders', 'orders'\)/;
my $long = 'of a name longer than shared memory keeps: ' . 'long ' x 30;
sql($nodes{a}, "SELECT segment_attach('$long', 'orders', step => 5, max_step => 5, without_standby => true)");
sql($nodes{third}, 'ALTER SEQUENCE uid_segments.orders INCREMENT 10');
draws_until('a', 'orders', qr/the increment of segment "orders" is 10 at the registry, and was 1\n$reattach/, 'another increment is an error');
draws_until('a', $long, qr/the increment of segment "orders" is 10 at .*or attach it again\./s, '... also where shared memory has only a part of the name');
sql($nodes{a}, "SELECT segment_drop('$long')");
sql($nodes{a}, q{SELECT segment_attach('orders', 'orders', without_standby => true)});
my @tens = draw('a', 'orders', 3);
is(join(',', map { $_ - $tens[0] } @tens), '0,10,20', 'attached again, the member draws with the new increment');

# An answer that no registry gives.
my $signature = '(requests bytea, INOUT answers bytea DEFAULT NULL)';
sub lies ($fields, $expected, $what)
{
	my $term = sql($nodes{third}, 'SELECT term FROM uid_fleet_state');
	sql($nodes{third}, 'ALTER PROCEDURE uid_internal.uid_fleet_call RENAME TO honest');
	sql($nodes{third}, "CREATE PROCEDURE uid_internal.uid_fleet_call$signature LANGUAGE plpgsql AS \$\$
		BEGIN
		  answers := record_send(jsonb_populate_record(NULL::public.fleet_answer, jsonb_build_object('fleet', $fleet, 'term', $term, 'term_nonce', 1, 'serial', 1,
		    'seal', 1, 'clock_us', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'server', 1, 'is_open', true, 'awaits_member', false, 'longest_us', 600000000,
		    'first', 90000001, 'count', 100, 'increment', 10) || '$fields'));
		END \$\$");
	draws_until('a', 'orders', $expected, $what);
	sql($nodes{third}, 'DROP PROCEDURE uid_internal.uid_fleet_call; ALTER PROCEDURE uid_internal.honest RENAME TO uid_fleet_call');
	draws_again("$what: the next answer counts");
}
lies('{"first": 1}', qr/the registry gave values that this database had before/, 'values that the member had before');
lies('{"first": 9223372036854775800}', qr/the registry's answer is not valid/, 'a block beyond the last bigint');
lies('{"count": null}', qr/the registry's answer is not valid/, 'no count');
lies('{"fleet": 4711}', qr/the registry's answer is not valid/, 'a block of another fleet');
sql($nodes{third}, q{SELECT segment_drop('orders')});
draws_until('a', 'orders', qr/segment "orders" does not exist at the registry/, 'the segment was dropped at the registry');

# Another fleet. Its values up to the last one of this database may be those of its other members.
$nodes{other} = new_node('other', conf => $conf);
start_uidgen($nodes{other});
make_registry($nodes{other});
make_segment('other', 'orders');
cmp_ok(status('b', 'orders', 'range_left'), '>', 0, 'a member has values in hand');
foreach my $name ('a', 'b')
{
	set_conf($nodes{$name}, "uidgen.registry = '" . registry_line($nodes{other}) . "'");
	$before = sql($nodes{$name}, $state);
	draws_until($name, 'orders', qr/the registry belongs to another fleet\n$reattach/, 'another fleet is an error') if $name eq 'a';
	if ($name eq 'b')
	{
		my $attach = q{SELECT segment_attach('orders', without_standby => true)};
		poll_until('the other fleet', sub { sqlstate($nodes{b}, "BEGIN; $attach; ROLLBACK") eq '00000' }) or die 'no other fleet';
		my $next = q{SELECT segment_next('orders')};
		my ($own, undef, $others) = split /\n/, sql($nodes{b}, "BEGIN; $next; $attach; $next; ROLLBACK");
		cmp_ok($own, '<=', $before, 'values are in hand');
		cmp_ok($others, '>', $before, 'the transaction that attaches draws from the other fleet at once');
		is(fails_with('b', 'orders', qr/the registry belongs to another fleet/, 'and if it is rolled back, nothing of that fleet is left'),
			'55000', 'to draw');
	}
	ok(poll_until('the other fleet', sub { sqlstate($nodes{$name}, q{SELECT segment_attach('orders', 'orders', without_standby => true)}) eq '00000' }),
		"$name is attached again");
	cmp_ok((draw($name, 'orders', 1))[0], '>', $before, "$name draws beyond its last value");
}

# Without a registry.
set_conf($nodes{a}, "uidgen.registry = ''");
draws_until('a', 'orders', qr/uidgen.registry is not set/, 'without a registry the values run out');
sql($nodes{a}, q{SELECT segment_drop('orders')});
is(sql($nodes{a}, q{SELECT count(*) FROM uid_segment WHERE name = 'orders'}), 0, 'an attached segment can be dropped');

done_testing();
