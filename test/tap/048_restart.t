# uid_generator_restart(): the clock was far ahead and is back. Each policy begins again at the clock, and no id comes
# twice: across kill -9, before and after the first id; with rows of worker_node that are missing; when the nodes of a
# small layout are used up; on a standby that is promoted; in a dump that is restored.
#
# All clocks stand still at instants that the test chooses. uidgen.max_wait is 0, so no call waits for the clock.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

skip_with_assertions();

my $hour = 3600;
my $year = 365 * 24 * $hour;

my $node = new_node('restart',
	allows_streaming => 1,
	conf => "autovacuum = off\nuidgen.max_wait = 0\nsynchronous_commit = off\n");
use_fake_clock($node);
freeze_clock($node, 0);
start_uidgen($node);

# All ids of a generator, whichever test has drawn them.
my %ids;

# Returns how many ids came, and the error.
sub draw
{
	my ($generator, $count, $on) = @_;
	my ($output, $error);
	($on // $node)->psql(
		'postgres',
		"SELECT uid_next('uid_generators.$generator') FROM generate_series(1, $count)",
		on_error_stop => 0, stdout => \$output, stderr => \$error);
	my @drawn = split /\n/, $output;
	push @{ $ids{$generator} }, @drawn;
	return (scalar @drawn, $error);
}

# Returns the message with its detail and hint; a WARNING, if it succeeds.
sub restart
{
	my ($generator, $arguments, $on) = @_;
	my $error;
	($on // $node)->psql(
		'postgres',
		"\\set VERBOSITY verbose\nSELECT uid_generator_restart('uid_generators.$generator'" . ($arguments // '') . ')',
		on_error_stop => 0, stderr => \$error);
	return $error;
}

sub draws
{
	my ($generator, $what, $on) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($count, $error) = draw($generator, 20, $on);
	return is($count, 20, $what) || diag($error);
}

sub field
{
	my ($field, $id, $generator, $on) = @_;
	return ($on // $node)->safe_psql('postgres', "SELECT ($field)::text FROM uid_decode($id, 'uid_generators.$generator') d");
}

sub kill_and_start
{
	my ($at) = @_;
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @children = split /\n/, `ps -o pid= --ppid $pid`;
	$node->kill9;
	poll_until('the end of the server', sub { !grep { kill 0, $_ } $pid, @children }) or die 'the server lives';
	freeze_clock($node, $at);
	start_node($node);
	return;
}

sub unique
{
	my ($generator, $what) = @_;
	my %seen;
	$seen{$_}++ foreach @{ $ids{$generator} };
	my @twice = grep { $seen{$_} > 1 } sort keys %seen;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(%seen && !@twice, $what) || diag(scalar(@twice) . " ids came twice, such as $twice[0]");
}

# ---------------------------------------------------------------------------
# The default generator.
# ---------------------------------------------------------------------------

my $default = 'uid_default';
draws($default, 'the clock is right: ids');
wait_for_node_rows($node, '%', 1);
# The row must be so old that its lease cannot reach the clock at the restart.
like(restart($default), qr/ERROR:  55000: generator "uid_default" is not too far ahead of the clock/,
	'nothing to restart while the clock is right');
freeze_clock($node, $year);
draws($default, 'a year ahead: ids');
my $far = $ids{$default}[-1];
like(restart($default), qr/ERROR:  55000:.*not too far ahead.*HINT:  If the clock is still ahead, set it first/s,
	'... and nothing to restart while the clock is ahead');
freeze_clock($node, $hour);
my (undef, $error) = draw($default, 1);
like($error, qr/generator "uid_default" is ahead of the clock/, 'the clock is back: no id');

$node->safe_psql('postgres', 'BEGIN; ' . statement_of('docs/clocks.md', qr/uid_generator_restart/) . '; ROLLBACK');
(undef, $error) = draw($default, 1);
like($error, qr/generator "uid_default" is ahead of the clock/, 'a restart that is rolled back changes nothing');
is(sqlstate($node, "BEGIN; SELECT uid_generator_restart('uid_generators.uid_default'); SELECT uid_next()"),
	'55000', 'the transaction that restarts it cannot draw');
is(sqlstate($node, "BEGIN READ ONLY; SELECT uid_generator_restart('uid_generators.uid_default')"),
	'25006', 'a read-only transaction cannot restart it');

my $warning = restart($default);
like($warning, qr/WARNING:  01000: generator "uid_default" begins again at the clock, below ids that it has issued/,
	'a restart says what it gives up');
like($warning, qr/From 2026-11-21 13:00:00\+00 to 2027-11-21 12:00:01\+00 its new ids do not sort after its earlier ones. They are unique by datacenter id \d+ and worker id \d+/,
	'... with both times and the node');
draws($default, '... and ids come at once');
my $near = $ids{$default}[-1];
is(field('generated_at', $near, $default), '2026-11-21 13:00:00+00', '... with the time of the clock');
ok($near < $far, '... below the ids of the year ahead');
isnt(field('(datacenter_id, worker_id)', $near, $default), field('(datacenter_id, worker_id)', $far, $default),
	'... with another node');
is($node->safe_psql('postgres', "SELECT restart_term FROM uid_generator WHERE builtin"), '1', 'the row says so');
is(field('generated_at::date', $far, $default), '2027-11-21', 'the ids from before decode as before');
like(restart($default), qr/ERROR:  55000:.*not too far ahead/, 'a second call finds nothing to do');

wait_for_node_rows($node, '%uid_default', 2);
is($node->safe_psql('postgres', "SELECT count(DISTINCT (uid_origin(id)).node_id) FROM unnest(ARRAY[$near, $far]) id"),
	'2', 'uid_origin() knows both nodes');
# ALTER ends the lease, and the node stays.
$node->safe_psql('postgres', "SELECT uid_generator_alter('uid_generators.uid_default', max_ahead_ms => 3000)");
draws($default, 'an altered generator keeps the node');
is(field('(datacenter_id, worker_id)', $ids{$default}[-1], $default), field('(datacenter_id, worker_id)', $near, $default),
	'... that the restart chose');
is(sqlstate($node, "UPDATE uid_generator SET restart_term = NULL"), '55000', 'not even a superuser undoes a restart by hand');
is(sqlstate($node, "DELETE FROM uid_generator"), '55000', '... or by deleting the row');

# The pinned node lasts until the clock has passed the ids of the year ahead.
kill_and_start(2 * $hour);
draws($default, 'after kill -9: ids');
is(field('(datacenter_id, worker_id)', $ids{$default}[-1], $default), field('(datacenter_id, worker_id)', $near, $default),
	'... with the node of the restart');
$node->stop('fast');
freeze_clock($node, $year + $hour);
start_node($node);
draws($default, 'beyond the year: ids');
ok($ids{$default}[-1] > $far, '... above all earlier ones');
kill_and_start($year + $hour);
draws($default, '... and after the next start, too');
isnt(field('(datacenter_id, worker_id)', $ids{$default}[-1], $default), field('(datacenter_id, worker_id)', $near, $default),
	'... with a node that was drawn');
unique($default, 'no id came twice');

# ---------------------------------------------------------------------------
# Every policy.
# ---------------------------------------------------------------------------

freeze_clock($node, $year + 2 * $hour);
my %made = (
	(map { $_ => "preset => '$_'" } qw(twitter hutool leaf baidu js53 sonyflake instagram baidu_cached)),
	static => "worker_policy => 'static', worker_number => 7",
	given => 'datacenter_id => 3',
	whole => "preset => 'sonyflake', datacenter_id => 9",
	new_worker => "worker_policy => 'static', worker_number => 3, when_back => 'new_worker'",
);
my %argument = (static => ', 8', whole => ', 10');
foreach my $generator (sort keys %made)
{
	$node->safe_psql('postgres', "SELECT uid_generator_create('$generator', $made{$generator})");
	draws($generator, "$generator: ids");
}
wait_for_node_rows($node, q{%}, 3 + keys %made);
freeze_clock($node, 2 * $year);
draws($_, "$_: ids from a year ahead") foreach sort keys %made;
freeze_clock($node, $year + 4 * $hour);
my %refused = (
	static => [ '', qr/ERROR:  22023: generator "static" needs another worker id to restart.*HINT:  Run SELECT uid_generator_restart\('uid_generators.static', worker_number => N\)/s ],
	whole => [ '', qr/ERROR:  22023: generator "whole" needs another worker id/ ],
	new_worker => [ ', 5', qr/ERROR:  22023: cannot choose the worker id of generator "new_worker"/ ],
	given => [ ', 32', qr/ERROR:  22023: .*worker_number/ ],
);
foreach my $generator (sort keys %refused)
{
	my ($arguments, $expected) = @{ $refused{$generator} };
	like(restart($generator, $arguments), $expected, "$generator: a call that is refused");
}
like(restart('static', ', 7'), qr/ERROR:  22023: ids of generator "static" above the clock may have worker id 7 already/,
	'static: its own worker id is refused');
foreach my $generator (sort keys %made)
{
	like(restart($generator, $argument{$generator}), qr/WARNING:.*begins again at the clock/, "$generator: begins again");
	draws($generator, '... and draws');
	my $count = @{ $ids{$generator} };
	isnt(field('(datacenter_id, worker_id)', $ids{$generator}[-1], $generator),
		field('(datacenter_id, worker_id)', $ids{$generator}[ $count - 21 ], $generator), '... with another node');
}
is(field('datacenter_id', $ids{given}[-1], 'given'), 3, 'a datacenter id stays');
is(field('worker_id', $ids{static}[-1], 'static'), 8, 'a worker id that was given is used');
is(field('worker_id', $ids{new_worker}[-1], 'new_worker'), 4, 'new_worker has its next one');
# Into the time of the ids from before.
freeze_clock($node, 2 * $year);
draws($_, "$_: ids where there are some already") foreach sort keys %made;
unique($_, "$_: no id came twice") foreach sort keys %made;

# ---------------------------------------------------------------------------
# A crash right after the commit, which synchronous_commit = off does not flush: the restart is there or not, and the
# first id makes it last.
# ---------------------------------------------------------------------------

$node->safe_psql('postgres', "SELECT uid_generator_create('crash')");
draws('crash', 'a generator that will crash: ids');
wait_for_node_rows($node, '%crash', 1);
freeze_clock($node, 3 * $year);
draws('crash', '... from a year ahead');
kill_and_start(2 * $year + $hour);
like(restart('crash'), qr/WARNING/, '... begins again');
kill_and_start(2 * $year + $hour);
my ($count) = draw('crash', 20);
like(restart('crash'), qr/WARNING/, '... and again, if the crash has undone it') if $count == 0;
draws('crash', '... draws');
kill_and_start(2 * $year + $hour);
draws('crash', '... and after a crash after the first ids it draws at once');
kill_and_start(3 * $year);
draws('crash', '... where there are ids already');
unique('crash', '... and no id came twice');

# ---------------------------------------------------------------------------
# Few nodes, many restarts: the clock steps about, the server is killed, rows are missing. A call that is refused says
# until when. 4 nodes, and ticks so long and so few numbers that two incarnations with one node would collide at once.
# ---------------------------------------------------------------------------

srand(20261122);
$node->safe_psql('postgres',
	"SET synchronous_commit = on; SELECT uid_generator_create('few', epoch => '2020-01-01', tick_us => 1000000, datacenter_bits => 0, worker_bits => 2,"
	  . " sequence_bits => 5, spread => false, max_ahead_ms => 1000, worker_policy => 'disposable')");
my $begin = 4 * $year;
my ($restarts, $refusals) = (0, 0);
my $was_refused = qr/generator "few" has no worker id left.*The generator draws ids again from .* on.*Otherwise wait/s;
foreach my $round (1 .. 60)
{
	my $at = $begin + $hour * int(rand 6) + $round * 20;
	if (rand() < 0.4)
	{
		kill_and_start($at);
	}
	else
	{
		freeze_clock($node, $at);
	}
	# A row that is not written looks like this.
	$node->safe_psql('postgres', "DELETE FROM worker_node WHERE id = (SELECT max(id) FROM worker_node)") if rand() < 0.3;
	($count) = draw('few', 40);
	next if $count == 40;
	my $said = restart('few');
	$restarts++ if $said =~ /WARNING/;
	if ($said =~ /ERROR/ && like($said, $was_refused, 'a call that is refused says what helps'))
	{
		$refusals++;
		$begin += 12 * $hour;
		next;
	}
	draws('few', "round $round: draws after a restart");
}
cmp_ok($restarts, '>=', 5, "there were $restarts restarts");
cmp_ok($refusals, '>=', 1, "... and $refusals calls were refused");
unique('few', 'few nodes: no id came twice');

# ---------------------------------------------------------------------------
# Sessions that draw meanwhile.
# ---------------------------------------------------------------------------

$node->safe_psql('postgres', "SELECT uid_generator_create('busy')");
$begin += 24 * $hour;
freeze_clock($node, $begin);
draws('busy', 'a busy generator: ids');
wait_for_node_rows($node, '%busy', 1);
freeze_clock($node, $begin + $year);
draws('busy', '... from a year ahead');
freeze_clock($node, $begin + $hour);
my $loop = background_loop($node, clients => 3, on_error_stop => 0, pace => 0.01,
	sql => "SELECT uid_next('uid_generators.busy')");
like(restart('busy'), qr/WARNING/, '... begins again while sessions draw');
goes_on('... and they go on', $loop);
push @{ $ids{busy} }, map { split /\n/, slurp_file($_) } stop_loop($loop);
unique('busy', '... and no id came twice');

# ---------------------------------------------------------------------------
# A standby refuses, and continues once it is promoted. A dump has the restart.
# ---------------------------------------------------------------------------

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
use_fake_clock($standby);
freeze_clock($standby, $begin + $hour);
start_node($standby);
freeze_clock($node, $begin + $year);
draws('busy', 'the clock is ahead again');
freeze_clock($node, $begin + $hour + 60);
like(restart('busy', '', $standby), qr/ERROR:  25006: .*recovery/, 'a standby cannot restart a generator');
like(restart('busy'), qr/WARNING/, 'the primary can');
draws('busy', '... and draws');
$node->wait_for_catchup($standby, 'replay', $node->lsn('flush'));
$node->kill9;
freeze_clock($standby, $begin + $hour + 120);
$standby->promote;
draws('busy', 'the promoted standby draws at once', $standby);
freeze_clock($standby, $begin + $year);
draws('busy', '... where there are ids already', $standby);
unique('busy', '... and no id came twice');

freeze_clock($standby, $begin + $hour + 180);
$standby->safe_psql('postgres', 'CREATE DATABASE restored');
$standby->command_ok(
	[ 'bash', '-c', 'pg_dump -d "$0" | psql -Xq -v ON_ERROR_STOP=1 -d "$1"', $standby->connstr('postgres'), $standby->connstr('restored') ],
	'a dump is restored');
my $rows = 'SELECT generator, restart_term, restarted_at, restart_until, restart_node, former_nodes FROM uid_generator ORDER BY generator::text';
is($standby->safe_psql('restored', $rows), $standby->safe_psql('postgres', $rows), '... with the restarts');
is($standby->safe_psql('restored', "SELECT last_value >> 47 FROM uid_generators.busy"), '2', '... and the counter');

# ---------------------------------------------------------------------------
# In a fleet the registry decides. Here the server is its own registry, and both have had a wrong clock.
# ---------------------------------------------------------------------------

make_registry($standby);
$standby->append_conf('postgresql.conf', "uidgen.registry = '" . registry_line($standby) . "'\nuidgen.max_wait = 60s\n");
$standby->reload;
ok($standby->poll_query_until('postgres', "SELECT current_setting('uidgen.registry') <> ''"), 'the server joins a fleet');
freeze_clock($standby, $begin + 2 * $year);
my $node_drawn = "SELECT datacenter_id || '/' || worker_id FROM uid_decode(uid_next('uid_generators.%s'), 'uid_generators.%s')";
$standby->safe_psql('postgres', "SELECT uid_generator_create('member')");
my $member_node = $standby->safe_psql('postgres', sprintf $node_drawn, ('member') x 2);
freeze_clock($standby, $begin + $hour + 240);
is(sqlstate($standby, "SET uidgen.max_wait = 0; SELECT uid_next('uid_generators.member')"), '55000', 'a member whose clock was ahead does not draw');
like(restart('member', '', $standby), qr/ERROR:  0A000: cannot restart generator "member" in a fleet.*HINT:  Run SELECT uid_generator_create/s,
	'in a fleet a restart is refused');
$standby->safe_psql('postgres', "SELECT uid_generator_create('instead')");
isnt($standby->safe_psql('postgres', sprintf $node_drawn, ('instead') x 2), $member_node, 'another generator draws at once, with another node');

$standby->stop;
done_testing();
