# A server never goes back to an earlier registry of its fleet, whatever becomes of its data directory: after a base
# backup and a promotion, and after pg_upgrade, the databases know the term of the fleet.
use UidgenTest 'preloaded';

sub status { return $_[0]->safe_psql('postgres', "SELECT DISTINCT $_[1] FROM uid_registry_status") }

sub term_in_database { return $_[0]->safe_psql('postgres', 'SELECT last_value FROM uid_internal.uid_fleet_term') }

# What a draw says in the end, after the registrar has looked at all hosts.
sub finds_only_a_former_registry ($node, $draw, $name)
{
	my $found = poll_until($name, sub { (sqlstate($node, "SET uidgen.max_wait = '300ms'; $draw"))[1] =~ /only a former registry of this server's fleet answers/ });
	ok($found, $name);
	is(status($node, 'connected, term'), 'f|' . term_in_database($node), '... it is not connected, and knows the term');
}

my $of_another_fleet = make_registry(new_server('of_another_fleet', conf => "autovacuum = off\n"));
my $first = new_server('first', conf => "autovacuum = off\n");
make_registry($first);
$first->safe_psql('postgres', "SELECT segment_create('shared', 10); GRANT USAGE ON SEQUENCE uid_segments.shared TO uid_fleet");
my $second = standby_of($first, 'second');
$second->start;

sub new_member ($name)
{
	return new_server($name, conf => "autovacuum = off\nuidgen.max_wait = 60s\n", registries => [ $first, $second ]);
}

my $member = new_member('member');
my $of_segment = new_member('of_segment');
my $segments_alone = new_member('segments_alone');
my $standby = standby_of($member, 'standby');
start_node($standby);
$member->safe_psql('postgres', 'SELECT uid_next()');
$of_segment->safe_psql('postgres', "SELECT uid_next(), segment_attach('shared', without_standby => true)");
my $term = $first->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
is(term_in_database($member), $term, 'the first draw leaves the term in the database');

# A later term. A draw that is canceled before it has left the number leaves that to the next one.
$first->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
$term = $first->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
$of_segment->safe_psql('postgres', "SELECT segment_next('shared')");
is(term_in_database($of_segment), $term, 'the first block in another term leaves that one');
my $attach_and_draw = "SELECT segment_attach('shared', without_standby => true), segment_next('shared')";
$segments_alone->safe_psql('postgres', $attach_and_draw);
is(term_in_database($segments_alone), $term, '... also on a server that draws from no generator');
$member->safe_psql('postgres', "SELECT uid_generator_create('late')");
my $session = hold_open($member);
$session->query_safe('BEGIN');
$session->query_safe('ALTER SEQUENCE uid_internal.uid_fleet_term CACHE 1');
my $late = "SELECT uid_next('uid_generators.late')";
is(sqlstate($member, "SET statement_timeout = '2s'; $late"), '57014', 'a draw waits for a lock on the number') foreach 1 .. 3;
$session->query_safe('ROLLBACK');
$session->quit;
is(sqlstate($member, $late), '00000', '... and after that');
is(term_in_database($member), $term, '... leaves the number');

# No clock has drawn a number that is more than a day ahead. A server whose clock is behind must not forget it.
my $days = 2 * 86_400_000_000;
$member->safe_psql('postgres', "SELECT setval('uid_internal.uid_fleet_term', $term + $days), uid_generator_create('other')");
my ($state, $error) = sqlstate($member, "SELECT uid_next('uid_generators.other')");
is($state, '55000', 'while the number is days ahead of its clock, a server asks for no node');
like($error, qr/this server's clock is more than a day behind the fleet's term\nDETAIL:.* term @{[ $term + $days ]}\./, '... and says why');
is(status($member, "string_agg(generator, ' ') FILTER (WHERE generator ~ 'other')"), '', '... nor later');
$member->safe_psql('postgres', "SELECT setval('uid_internal.uid_fleet_term', $term)");
is(sqlstate($member, "SELECT uid_next('uid_generators.other')"), '00000', '... until it is not');

# The second registry takes over.
$first->wait_for_catchup('second', 'replay', $first->lsn('flush'));
$first->stop('immediate');
$second->promote;
$second->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
my $later = $second->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
$member->safe_psql('postgres', "SELECT uid_generator_create('newcomer')");
$member->safe_psql('postgres', "SELECT uid_next('uid_generators.newcomer')");
is(term_in_database($member), $later, 'a draw in the term of the server that takes over leaves that one');
$of_segment->safe_psql('postgres', "SELECT count(segment_next('shared')) FROM generate_series(1, 10000)");
is(term_in_database($of_segment), $later, '... as a block of a segment does');
$segments_alone->safe_psql('postgres', 'CREATE DATABASE other');
$segments_alone->safe_psql('other', "CREATE EXTENSION uidgen; $attach_and_draw");
is(term_in_database($segments_alone), $term, '... in its database alone');
my $file = 'global/pgsql_tmp_uidgen.grants';

# Only the former one answers.
$member->wait_for_catchup($standby, 'replay', $member->lsn('flush'));
$member->stop;
$second->stop('immediate');
$first->start;
ok(!-e $standby->data_dir . "/$file", 'a base backup has no file of grants');
$standby->promote;
finds_only_a_former_registry($standby, 'SELECT uid_next()', 'a promoted standby does not go back to it');

my $upgraded = new_node('upgraded', conf => "autovacuum = off\n");
join_fleet($upgraded, $first, $second);
my @command = pg_upgrade_command($member, $upgraded);
$member->command_ok(\@command, 'pg_upgrade');
ok(!-e $upgraded->data_dir . "/$file", '... leaves the file of grants out');
start_node($upgraded);
finds_only_a_former_registry($upgraded, 'SELECT uid_next()', 'an upgraded server does not go back either');

my $many_values = "SELECT count(segment_next('shared')) FROM generate_series(1, 100000)";
$segments_alone->stop;
my $path = $segments_alone->data_dir . "/$file";
system_or_bail('sh', '-c', 'cp "$0" "$0.copy" && mv "$0.copy" "$0"', $path);
start_node($segments_alone);
finds_only_a_former_registry($segments_alone, $many_values, 'nor does one that draws from segments alone and has a copy of the file');
$segments_alone->stop;
unlink $path or die "no file of grants: $!";
start_node($segments_alone);
finds_only_a_former_registry($segments_alone, $many_values, '... or none');

$of_segment->stop;
unlink $of_segment->data_dir . "/$file" or die "no file of grants: $!";
start_node($of_segment);
finds_only_a_former_registry($of_segment, $many_values, 'nor does one without the file that draws from a segment first');

# By the word of an administrator it does. The databases learn of that, too.
$first->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
ok(poll_until('a draw', sub { sqlstate($standby, 'SELECT uid_next()') eq '00000' }), 'a fence there makes it the registry again');
cmp_ok(term_in_database($standby), '>', $later, '... in a later term');
my $far = $later + $days;
$upgraded->safe_psql('postgres', "SELECT setval('uid_internal.uid_fleet_term', $far)");
$upgraded->safe_psql('postgres', 'SELECT uid_fleet_move()');
is(sqlstate($upgraded, 'SELECT uid_next()'), '00000', 'after uid_fleet_move() a later term that a database knows does not count');
cmp_ok(term_in_database($upgraded), '<', $far, '... and the database forgets it');
$upgraded->safe_psql('postgres', "SELECT setval('uid_internal.uid_fleet_term', $far)");
$upgraded->stop;
start_node($upgraded);
is(sqlstate($upgraded, 'SELECT uid_next()'), '00000', '... nor does one after a restart');

# To another fleet, whose term is smaller, while the answer to a call is under way, and back.
my $mover = new_server('mover', conf => "autovacuum = off\nuidgen.max_wait = 60s\n", registries => [ $first ]);
$mover->safe_psql('postgres', "SELECT uid_next(uid_generator_create('g' || n)) FROM generate_series(1, 2) n");
$mover->safe_psql('postgres', "SELECT segment_attach('shared', step => 10, max_step => 10, without_standby => true)");
$term = term_in_database($mover);
my $lock = hold_open($first);
$lock->query_safe('BEGIN');
$lock->query_safe('LOCK TABLE uid_fleet_state IN EXCLUSIVE MODE');
my $waiting = hold_open($mover);
send_query($waiting, "SELECT count(segment_next('shared')) FROM generate_series(1, 100);");
my $called = "FROM pg_stat_activity WHERE application_name = 'uidgen registrar' AND wait_event_type = 'Lock'";
$first->poll_query_until('postgres', "SELECT count(*) > 0 $called") or die 'no call';
foreach my $to ($of_another_fleet, $first)
{
	join_fleet($mover, $to);
	$mover->reload;
	$mover->safe_psql('postgres', 'SELECT uid_fleet_move()');
	$lock->quit if $to == $of_another_fleet;
	my $draw = "SELECT uid_next('uid_generators.g" . ($to == $first ? 2 : 1) . "')";
	ok(poll_until('a draw', sub { sqlstate($mover, "SET uidgen.max_wait = '1s'; $draw") eq '00000' }), 'a generator draws in the fleet that the server has moved to');
	my $there = $to->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
	is(join(' ', status($mover, 'term'), term_in_database($mover)), "$there $there", '... in its term, which the database has');
}
$waiting->quit;

done_testing();
