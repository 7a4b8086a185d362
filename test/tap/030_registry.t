# The registry of a fleet on real servers: crashes, failovers with and without the last grants, a handover, a copied data
# directory, a move by dump and restore, a restore in place. Members are made up. Their clocks and the servers' stand still or are moved, so
# no result depends on time that passes.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest 'preloaded';

my $clock = 0;          # seconds after the instant at which freeze_clock() stops clocks
my $longest = 600;      # uid_fleet_state.longest_grant
my $fence = $longest + 2 * 10;

my @columns = qw(fleet term serial seal held_seal refusal message hint retry_after_ms node granted_from granted_until line
  registry_clock_us registry_version);
my $members = 1000;

# A member with a random number of its own and no grant.
sub member
{
	my ($host) = @_;
	return { incarnation => ++$members, host => $host };
}

sub call_of
{
	my ($m, %opts) = @_;
	my $held = join ', ', map { $m->{$_} // 'NULL' }
	  qw(node granted_from granted_until line held_term held_serial held_seal);
	my $seen = join ', ', map { $m->{$_} // 'NULL' } qw(fleet term serial seal);
	my $us = (1795262400 + $clock + ($opts{ahead} // 0)) * 1000000;
	my $lowest = $us / 1000 - 1767225600000;
	my $length = $opts{length} // $longest * 1000;
	my $former = exists $m->{former} ? "ARRAY[$m->{former}]" : 'NULL';
	return "CALL uid_fleet_call(1, $m->{incarnation}, $former, $seen, $held, $us, $lowest, $length, 'custom', "
	  . "1767225600000000, 1000, 41, 0, " . ($opts{bits} // 10) . ', ' . ($opts{bits} ? 2 : 12) . ", false, false, 'disposable', NULL, NULL, NULL, NULL, "
	  . "'$m->{host}', '5432', 7, 1, 'db', 'g', '1.0.0')";
}

# Asks as a member, and keeps the grant. Returns the answer.
sub ask
{
	my ($node, $m, %opts) = @_;
	my %answer;
	@answer{@columns} = split /\|/,
	  $node->safe_psql($opts{dbname} // 'postgres', call_of($m, %opts)), -1;
	return \%answer if $answer{refusal} ne '';
	$m->{$_} = $answer{$_} foreach qw(node granted_from granted_until line held_seal fleet term serial seal);
	delete $m->{former};
	$m->{held_term} = $answer{term};
	$m->{held_serial} = $answer{serial};
	return \%answer;
}

# The same clock for all servers.
my @servers;
sub go_on
{
	my ($seconds) = @_;
	$clock += $seconds;
	freeze_clock($_, $clock) foreach @servers;
	return;
}

sub term_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
}

sub new_registry
{
	my ($name, $conf) = @_;
	my $node = new_node($name, conf => "autovacuum = off\n" . ($conf // ''));
	use_fake_clock($node);
	push @servers, $node;
	freeze_clock($node, $clock);
	start_uidgen($node);
	$node->safe_psql('postgres', 'CREATE ROLE fleet');
	$node->safe_psql('postgres', "SELECT uid_fleet_admit('fleet')");
	return $node;
}

sub new_standby
{
	my ($primary, $name) = @_;
	my $standby = UidgenNode->new($name);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	use_fake_clock($standby);
	push @servers, $standby;
	freeze_clock($standby, $clock);
	start_node($standby);
	return $standby;
}

# ---------------------------------------------------------------------------
# Grants survive crashes, and a restart raises no fence.
# ---------------------------------------------------------------------------

my $registry = new_registry('registry', "synchronous_commit = off\nwal_writer_delay = 10s\n");
my $ann = member('a');
my $bob = member('b');
is(ask($registry, $ann)->{refusal}, '', 'a member gets a node');
is(ask($registry, $bob)->{refusal}, '', 'another member gets one');
isnt($ann->{node}, $bob->{node}, '... which is another one');

# Bob starts again, and then an ask of his former life arrives, or a copy of that life asks.
my $late = {%$bob};
$bob->{former} = $bob->{incarnation};
$bob->{incarnation} = ++$members;
is(ask($registry, $bob)->{node}, $late->{node}, 'the next life of a member keeps its node');
is(ask($registry, $late)->{refusal}, 'superseded', '... and its former life is refused from then on');
is(ask($registry, { %$ann, fleet => $ann->{fleet} + 1 })->{refusal}, 'other_fleet', 'a member of another fleet gets nothing');

# A layout with two nodes.
my @of_two = map { ask($registry, member('two'), bits => 1) } 1 .. 3;
is(join(' ', map { $_->{refusal} } @of_two), '  none_free', 'while the grants of all nodes last, a newcomer is refused');
isnt($of_two[0]{node}, $of_two[1]{node}, '... and before, no two have one node');

# The WAL writer would flush commits that their sessions leave to it.
my $wal_writer = $registry->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
kill 'STOP', $wal_writer or die "could not stop the WAL writer: $!";
my $loop = background_loop($registry, clients => 4,
	sql => call_of({ incarnation => 'RANDOM', host => 'crowd' }, bits => 20) =~ s/RANDOM/(random() * 9e17)::bigint + 1000000/r);
$registry->poll_query_until('postgres', "SELECT count(*) > 50 FROM uid_fleet_node WHERE host = 'crowd'")
  or die 'no crowd';
kill 'KILL', $wal_writer;
my @answered = map { join ' ', (split /\|/)[ 12, 9, 11 ] } grep { /\|/ } map { split /\n/, slurp_file($_) } stop_loop($loop);
$registry->stop('immediate');
start_node($registry);
my %known = map { $_ => 1 } split /\n/,
  $registry->safe_psql('postgres',
	"SELECT line || ' ' || node || ' ' || granted_until FROM uid_fleet_node WHERE host = 'crowd'");
my (%nodes, @lost, @twice);
foreach my $answer (@answered)
{
	my ($line, $node) = split / /, $answer;
	push @lost, $answer unless $known{$answer};
	push @twice, $answer if $nodes{$node}++;
}
cmp_ok(scalar(@answered), '>', 20, 'newcomers were answered');
is("@lost", '', 'a crash loses no grant that was answered, although synchronous_commit is off');
is("@twice", '', 'no node was granted twice');

my $cid = member('c');
is(ask($registry, $ann)->{node}, $ann->{node}, 'after the crash a holder keeps its node');
is(ask($registry, $cid)->{refusal}, '', '... and a newcomer gets one');
$registry->restart;
is(ask($registry, $ann)->{refusal}, '', 'the same after a restart');
is(term_of($registry), 1, '... without a fence');

# ---------------------------------------------------------------------------
# A failover with all grants.
# ---------------------------------------------------------------------------

my $second = new_standby($registry, 'second');
is(sqlstate($second, call_of($ann)), '25006', 'a standby grants nothing');
# The bound of the registry that it follows is greater, and counts.
$second->append_conf('postgresql.conf', "uidgen.registry_clock_bound = '1s'");
$second->reload;
go_on(60);
is(ask($registry, $ann)->{refusal}, '', 'a member renews');
$registry->wait_for_catchup('second', 'replay', $registry->lsn('flush'));
$registry->stop('immediate');
$second->promote;

my $kept = $ann->{node};
my $log = -s $second->logfile;
is(ask($second, $ann)->{node}, $kept, 'after a failover a holder keeps its node');
is($ann->{term}, 2, '... in a new term');
like(slurp_file($second->logfile, $log), qr/accepts no newcomers for 620 s: the timeline has changed from 1 to 2/,
	'... and the log says why');
my $dan = member('d');
my $refused = ask($second, $dan);
is($refused->{refusal}, 'fenced', 'a newcomer is refused');
cmp_ok($refused->{retry_after_ms}, '>=', $fence * 1000, '... until all grants that may be lost have ended');
cmp_ok($refused->{retry_after_ms}, '<', $fence * 1000 + 1000, '... and no longer');
is(ask($second, $bob)->{node}, $bob->{node}, 'a holder that was not heard since keeps its node, too');
is(term_of($second), 2, 'there was one fence');
go_on($fence - 1);
is(ask($second, $dan)->{refusal}, 'fenced', 'a second before the end a newcomer is refused');
is(ask($second, $ann)->{node}, $kept, '... and a holder renews');
go_on(2);
is(ask($second, $dan)->{refusal}, '', 'then a newcomer is accepted');
isnt($dan->{node}, $ann->{node}, '... with a node that nobody holds');

# The former primary is back, because nobody has told it. It has the row of a term that is over.
start_node($registry);
is(ask($registry, $ann)->{refusal}, 'stale_registry', 'the former primary learns from a member that it is not the registry');
$registry->stop('immediate');
start_node($registry);
is(ask($registry, member('e'))->{refusal}, 'stale_registry',
	'... and grants nothing to anyone from then on, although it crashed');
$registry->stop;

# ---------------------------------------------------------------------------
# A failover without the last grants.
# ---------------------------------------------------------------------------

my $third = new_standby($second, 'third');
my $short = member('short');
is(ask($second, $short, length => 5000)->{refusal}, '', 'a member gets a short grant');
$second->wait_for_catchup('third', 'replay', $second->lsn('flush'));
$third->stop;
go_on(4);
my $lost = member('lost');
is(ask($second, $lost)->{refusal}, '', 'a newcomer gets a node that the standby does not know of');
is(ask($second, $ann)->{refusal}, '', 'a holder renews, which the standby does not know either');
go_on(1.5);
my $after = member('after');
is(ask($second, $after)->{refusal}, '', 'another newcomer gets one');
my $lost_grant = {%$after};
go_on(30);
$second->stop('immediate');
start_node($third);
$third->promote;
is($third->safe_psql('postgres', "SELECT count(*) FROM uid_fleet_node WHERE host IN ('lost', 'after')"),
	0, 'the promoted standby knows of neither newcomer');
my $newcomer = member('newcomer');
is(ask($third, $newcomer)->{refusal}, 'fenced', 'a newcomer is refused before any member has shown a lost grant');
is(ask($third, $lost)->{node}, $lost->{node}, 'a holder whose grant was lost keeps its node');
is(ask($third, $ann)->{node}, $kept, 'one whose renewal was lost keeps its node');
is($ann->{term}, 3, '... in the third term');
is(ask($third, $short)->{refusal}, 'fenced', 'one whose grant has ended is a newcomer, because its node may be granted to another');
# The holder "after" is dead. Its node must not be granted below the end of its grant.
go_on($fence + 1);
my %granted;
my @early;
foreach (1 .. 200)
{
	my $m = member('many');
	is(ask($third, $m)->{refusal}, '', 'a newcomer gets a node') if !@early && !%granted;
	ask($third, $m) unless defined $m->{node};
	push @early, $m if $m->{node} == $lost_grant->{node} && $m->{granted_from} < $lost_grant->{granted_until};
	$granted{ $m->{node} }++;
}
is(scalar(@early), 0, 'after the fence no node is granted below the end of a lost grant');
is(join(' ', grep { $granted{$_} > 1 } keys %granted), '', '... and none twice');
ok(!$granted{ $lost->{node} } && !$granted{$kept}, '... nor one that a member holds');

# ---------------------------------------------------------------------------
# A handover: no fence.
# ---------------------------------------------------------------------------

my $fourth = new_standby($third, 'fourth');
$third->safe_psql('postgres', 'SELECT uid_fleet_handover()');
is(ask($third, $ann)->{refusal}, 'handing_over', 'during a handover nothing is granted');
$third->stop;
$fourth->promote;
is(ask($fourth, $ann)->{node}, $kept, 'after the handover a holder keeps its node');
is(ask($fourth, member('f'))->{refusal}, '', '... and a newcomer gets one at once');
is(term_of($fourth), 3, '... without a fence');
start_node($third);
is(ask($third, $ann)->{refusal}, 'handing_over', 'the former primary stays closed');
$third->stop;

# A handover that was cancelled, and a standby that knows of nothing after the closing.
my $stale = new_standby($fourth, 'stale');
my $reserve = statement_of('docs/fleet.md', qr/uid_fleet_reserve/);
is(sqlstate($fourth, $reserve), '55000', 'nothing is reserved that a failover could lose');
$fourth->append_conf('postgresql.conf', "synchronous_standby_names = 'stale'");
$fourth->reload;
ok(poll_until('a standby', sub { sqlstate($fourth, $reserve) eq '00000' }), 'a synchronous standby keeps two reservations');
# Without the standby the first call of a member waits. Those that follow must not pile up behind it.
$stale->stop;
my $waiter = hold_open($fourth);
my $call = call_of(member('waiter'));
send_query($waiter, $call);
$fourth->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
  or die 'no wait';
is(sqlstate($fourth, "SET lock_timeout = '100ms'; $call"), '55P03',
	'a call that is repeated while the first one waits for the standby fails at lock_timeout');
$fourth->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$fourth->reload;
like((finish_query($waiter))[0], qr/^\d+\|/m, '... and the first one goes on');
$waiter->quit;
start_node($stale);
$fourth->wait_for_catchup('stale', 'replay', $fourth->lsn('flush'));
is($stale->safe_psql('postgres', 'SELECT count(*) FROM uid_fleet_node WHERE reserved'), 2, '... and has them');
$fourth->safe_psql('postgres', 'SELECT uid_fleet_handover()');
$fourth->wait_for_catchup('stale', 'replay', $fourth->lsn('flush'));
$stale->stop;
my $cancel = statement_of('docs/fleet.md', qr/cancel/);
go_on(319);
is(sqlstate($fourth, $cancel), '55000', 'a handover cannot be canceled while a standby may count on it');
is(ask($fourth, $ann)->{refusal}, 'handing_over', '... and nothing is granted');
go_on(2);
is(sqlstate($fourth, $cancel), '00000', 'then it can');
is(ask($fourth, member('kept'))->{refusal}, '', '... and grants go on');
is(term_of($fourth), 3, '... without a fence');
$fourth->stop('immediate');
start_node($stale);
$stale->promote;
is(ask($stale, member('early'))->{refusal}, 'fenced', 'a standby that has only the closing raises a fence');
$stale->stop;
start_node($fourth);

# ---------------------------------------------------------------------------
# A copied data directory, and a restored dump.
# ---------------------------------------------------------------------------

$fourth->stop;
$fourth->backup_fs_cold('cold');
my $copy = UidgenNode->new('copy');
$copy->init_from_backup($fourth, 'cold');
use_fake_clock($copy);
push @servers, $copy;
go_on(10);
start_node($copy);
is(ask($copy, $ann)->{node}, $kept, 'on a copy of the data directory a holder keeps its node');
is(ask($copy, member('g'))->{refusal}, 'fenced', '... but newcomers wait, because it may be an old copy');
is(term_of($copy), 4, '... in a new term');
go_on($fence + 1);
is(ask($copy, $ann)->{refusal}, '', 'time passes');

my $other = new_node('other');
use_fake_clock($other);
push @servers, $other;
go_on(1);
start_node($other);
$other->safe_psql('postgres', 'CREATE ROLE fleet');
sub move
{
	my ($dbname) = @_;
	my $dump = $copy->basedir . "/$dbname.sql";
	$copy->command_ok([ 'pg_dump', '-f', $dump, $copy->connstr('postgres') ], "pg_dump for $dbname");
	$other->safe_psql('postgres', "CREATE DATABASE $dbname");
	$other->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $other->connstr($dbname) ],
		"restore of $dbname");
	return;
}
move('moved');
my $copy_of_ann = {%$ann};
is(ask($other, $copy_of_ann, dbname => 'moved')->{node}, $kept, 'a fleet moves by dump and restore');
is($copy_of_ann->{term}, 5, '... with a fence');
$copy->safe_psql('postgres', 'SELECT uid_fleet_handover()');
move('handed');
is(ask($other, $ann, dbname => 'handed')->{node}, $kept, 'after a handover, too');
is($ann->{term}, 4, '... without a fence');
is(ask($other, member('h'), dbname => 'handed')->{refusal}, '', '... and newcomers get nodes at once');
is( $other->safe_psql('handed', "SELECT has_function_privilege('fleet', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = 'uid_fleet_call'"),
	't', 'the role may call the function there');

# Inside its own cluster, nothing of the server changes.
$log = -s $other->logfile;
$other->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE handed');
is(ask($other, member('i'), dbname => 'twin')->{refusal}, 'fenced', 'in a copy of the database newcomers wait');
like(slurp_file($other->logfile, $log), qr/accepts no newcomers for .*: the database's OID has changed/,
	'... and the log says why');
my $own = $other->basedir . '/own.sql';
$other->command_ok([ 'pg_dump', '--clean', '--if-exists', '-f', $own, $other->connstr('handed') ], 'pg_dump of a database');
is(ask($other, member('j'), dbname => 'handed')->{refusal}, '', 'grants go on');
$other->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $own, $other->connstr('handed') ],
	'the dump replaces it');
is(ask($other, member('k'), dbname => 'handed')->{refusal}, 'fenced', '... and newcomers wait');

done_testing();
