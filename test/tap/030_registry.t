# The registry of a fleet on real servers: crashes, a failover, a handover, a move by dump and restore, a restore in place.
# Members are made up. Their clocks and the servers' stand still or are moved, so no result depends on time that passes.
# (033_fleet.t has failovers that lose grants, and directories that are put back, 061_registry_runbooks.t copies of one.)
use UidgenTest 'preloaded';
use Runbook;

my $clock = 0;          # seconds after the instant at which freeze_clock() stops clocks
my $longest = 600;      # uid_fleet_state.longest_grant
my $fence = $longest + 2 * 10;

my $members = 1000;

# A member with a random number of its own and no grant.
sub member ($host)
{
	return { incarnation => ++$members, host => $host };
}

sub call_of ($m, %opts)
{
	my $us = (1795262400 + $clock + ($opts{ahead} // 0)) * 1000000;
	my %fields = (%$m, length => $opts{length} // $longest * 1000, worker_bits => $opts{bits} // 10, sequence_bits => $opts{bits} ? 2 : 12,
		host => "'$m->{host}'", exists $m->{former} ? (former => "ARRAY[$m->{former}]") : ());
	my $other = join ', ', map { "'$_', " . ($fields{$_} // 'NULL') } sort keys %fields;
	return "CALL call_with(request_of(of_newcomer($us) || jsonb_build_object($other)))";
}

# Asks as a member, and keeps the grant. Returns the answer.
sub ask ($node, $m, %opts)
{
	my $run = sub { $node->safe_psql($opts{dbname} // 'postgres', $_[0]) };
	my $answer = '$a$' . $run->(call_of($m, %opts)) . '$a$::fleet_answer';
	my %answer = map { split /=/, $_, 2 }
	  split /\n/, $run->("SELECT concat(key, '=', value) FROM jsonb_each_text(to_jsonb($answer) || of_holder($answer))");
	return \%answer if $answer{refusal} ne '';
	$m->{$_} = $answer{$_} foreach grep { /^(?:held_\w+|fleet|term|term_nonce|serial|seal)$/ } keys %answer;
	delete $m->{former};
	return \%answer;
}

# A member that has asked another registry, too, which has said when it granted last.
sub shown_last ($m, $answer)
{
	return { %$m, other_granted_us => $answer->{granted_last_us}, other_term => $answer->{term},
		other_term_nonce => $answer->{term_nonce}, other_seal => $answer->{granted_last_seal} };
}

# The same clock for all servers.
my @servers;
sub go_on ($seconds)
{
	$clock += $seconds;
	freeze_clock($_, $clock) foreach @servers;
}

# The wait of a start is measured by the monotonic clock, which has no part here. It ends at the next call.
sub end_wait ($node)
{
	my $set = 'UPDATE uid_fleet_state SET (longest_grant, clock_bound) =';
	$node->safe_psql('postgres', "$set ('1 ms', '1 ms')");
	ask($node, { %{member('hello')}, incarnation => undef });
	$node->safe_psql('postgres', "$set ('$longest s', '10 s')");
}

sub term_of ($node)
{
	return $node->safe_psql('postgres', 'SELECT term FROM uid_fleet_state');
}

sub new_registry ($name, $conf = '')
{
	my $node = new_node($name, conf => "autovacuum = off\n$conf");
	use_fake_clock($node);
	push @servers, $node;
	freeze_clock($node, $clock);
	start_uidgen($node);
	$node->safe_psql('postgres', 'CREATE ROLE fleet');
	$node->safe_psql('postgres', "SELECT uid_fleet_admit('fleet', 'new')");
	learn_messages($node);
	return $node;
}

sub new_standby ($primary, $name)
{
	my $standby = standby_of($primary, $name);
	use_fake_clock($standby);
	push @servers, $standby;
	freeze_clock($standby, $clock);
	start_node($standby);
	return $standby;
}

# Grants survive crashes, and a restart raises no fence.

my $registry = new_registry('registry', "synchronous_commit = off\nwal_writer_delay = 10s\n");
my $first_term = term_of($registry);
my $ann = member('a');
my $bob = member('b');
is(ask($registry, $ann)->{refusal}, '', 'a member gets a node');
is(ask($registry, $bob)->{refusal}, '', 'another member gets one');
isnt($ann->{held_node}, $bob->{held_node}, '... which is another one');

# Bob starts again, and then an ask of his former life arrives, or a copy of that life asks.
my $late = {%$bob};
$bob->{former} = $bob->{incarnation};
$bob->{incarnation} = ++$members;
is(ask($registry, $bob)->{node}, $late->{held_node}, 'the next life of a member keeps its node');
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
my @logs = stop_loop($loop);
crash($registry);
my $answers = join ', ', map { "\$a\$$_\$a\$" } map { split /\n/, slurp_file($_) } @logs;
my @answered = split /\n/, sql("SELECT concat_ws(' ', membership, node, granted_until) FROM unnest(ARRAY[$answers]::fleet_answer[])");
my %known = map { $_ => 1 } split /\n/,
  $registry->safe_psql('postgres',
	"SELECT membership || ' ' || node || ' ' || granted_until FROM uid_fleet_node WHERE host = 'crowd'");
my (%nodes, @lost, @twice);
foreach my $answer (@answered)
{
	my (undef, $node) = split / /, $answer;
	push @lost, $answer unless $known{$answer};
	push @twice, $answer if $nodes{$node}++;
}
cmp_ok(scalar(@answered), '>', 20, 'newcomers were answered');
is("@lost", '', 'a crash loses no grant that was answered, although synchronous_commit is off');
is("@twice", '', 'no node was granted twice');

my $cid = member('c');
is(ask($registry, $ann)->{node}, $ann->{held_node}, 'after the crash a holder keeps its node');
is(ask($registry, $cid)->{refusal}, '', '... and a newcomer gets one');
$registry->stop;
start_node($registry);
is(ask($registry, $ann)->{refusal}, '', 'the same after a restart');
is(term_of($registry), $first_term, '... without a fence');

# A failover with all grants.

my $second = new_standby($registry, 'second');
is(sqlstate($second, call_of($ann)), '25006', 'a standby grants nothing');
# The bound of the registry that it follows is greater, and counts.
set_conf($second, "uidgen.registry_clock_bound = '1s'");
go_on(60);
is(ask($registry, $ann)->{refusal}, '', 'a member renews');
$registry->wait_for_catchup('second', 'replay', $registry->lsn('flush'));
$registry->stop('immediate');
$second->promote;

my $kept = $ann->{held_node};
my $log = -s $second->logfile;
is(ask($second, $ann)->{node}, $kept, 'after a failover a holder keeps its node');
cmp_ok($ann->{term}, '>', $first_term, '... in a new term');
my $second_term = $ann->{term};
like(slurp_file($second->logfile, $log), qr/accepts no newcomers for 620 s: timeline has changed from 1 to 2/,
	'... and the log says why');
my $dan = member('d');
my $refused = ask($second, $dan);
is($refused->{refusal}, 'fenced', 'a newcomer is refused');
is(ask($second, $bob)->{node}, $bob->{held_node}, 'a holder that was not heard since keeps its node, too');
is(term_of($second), $second_term, 'there was one fence');
go_on($fence / 2);
is(ask($second, $ann)->{node}, $kept, '... and a holder renews');
go_on($fence / 2 - 1);
is(ask($second, $dan)->{refusal}, 'fenced', 'a second before the end a newcomer is refused');
is(ask($second, $bob)->{refusal}, 'fenced', '... and so is a holder whose grant has ended');
is(ask($second, $ann)->{node}, $kept, '... but not one that has renewed');
go_on(2);
is(ask($second, $bob)->{node}, $bob->{held_node}, 'then the holder keeps its node');
is(ask($second, $dan)->{refusal}, '', 'then a newcomer is accepted');
isnt($dan->{held_node}, $ann->{held_node}, '... with a node that nobody holds');

# The former primary is back, because nobody has told it. It has the row of a term that is over.
start_node($registry);
is(ask($registry, $ann)->{refusal}, 'stale_registry', 'the former primary learns from a member that it is not the registry');
crash($registry);
is(ask($registry, member('e'))->{refusal}, 'stale_registry',
	'... and grants nothing to anyone from then on, although it crashed');
$registry->stop;

# A handover: no fence.

my $fourth = new_standby($second, 'fourth');
$second->safe_psql('postgres', 'SELECT uid_fleet_handover()');
is(ask($second, $ann)->{refusal}, 'handing_over', 'during a handover nothing is granted');
$second->stop;
$fourth->promote;
is(ask($fourth, $ann)->{node}, $kept, 'after the handover a holder keeps its node');
is(ask($fourth, member('f'))->{refusal}, '', '... and a newcomer gets one at once');
cmp_ok(term_of($fourth), '>', $second_term, '... in a new term, without a fence');
start_node($second);
is(ask($second, member('late'))->{refusal}, 'handing_over', 'the former primary stays closed');
like((sqlstate($second, 'SELECT uid_fleet_handover()'))[1], qr/HINT:  At 2026-11-21 [\d:]+\+00, run SELECT uid_fleet_handover\(cancel => true\)\./,
	'... and says when that can be canceled');
$second->stop;

# A handover that was cancelled, and a standby that knows of nothing after the closing.
my $stale = new_standby($fourth, 'stale');
go_on(1);
my $reserve = statement_of('docs/fleet.md', qr/uid_fleet_reserve/);
is(sqlstate($fourth, $reserve), '55000', 'nothing is reserved that a failover could lose');
set_conf($fourth, "synchronous_standby_names = 'stale'");
ok(poll_until('a standby', sub { sqlstate($fourth, $reserve) eq '00000' }), 'a synchronous standby keeps two reservations');
# Without the standby nothing is answered, and the member learns what the registry waits for. Calls do not wait for each other.
$stale->stop;
my $waiter = hold_open($fourth);
my $call = call_of(my $patient = member('waiter'));
send_query($waiter, $call);
my ($state, $error) = sqlstate($fourth, call_of(member('another')));
is($state, '55000', 'while the synchronous standby is away nothing is answered');
like($error, qr/waits for its synchronous standby\nDETAIL:  .*synchronous_standby_names is "stale"/, '... and the error names it');
like((finish_query($waiter))[1], qr/waits for its synchronous standby/, '... to each caller');
# The standby does not have the grant of a call that waits when nobody is to be waited for any more.
$fourth->safe_psql('postgres', 'SET synchronous_commit = local; UPDATE uid_fleet_state SET synchronous = true');
send_query($waiter, call_of(member('hurried')));
$fourth->poll_query_until('postgres', "SELECT count(*) = 1 FROM uid_fleet_node WHERE host = 'hurried'") or die 'no grant';
set_conf($fourth, "synchronous_standby_names = ''");
like((finish_query($waiter))[1], qr/waits for its synchronous standby/,
	'a registry that relies on its standby does not answer because synchronous_standby_names is emptied');
$waiter->quit;
$fourth->safe_psql('postgres', 'UPDATE uid_fleet_state SET synchronous = false');
ok(poll_until('grants go on', sub { my $answer = eval { ask($fourth, $patient) }; $answer && $answer->{refusal} eq '' }),
	'without it grants go on');
is($fourth->safe_psql('postgres', "SELECT count(*) FROM uid_fleet_node WHERE host = 'waiter'"), 1, '... with the same node');
start_node($stale);
$fourth->wait_for_catchup('stale', 'replay', $fourth->lsn('flush'));
is($stale->safe_psql('postgres', "SELECT count(*) FROM uid_fleet_node WHERE policy = 'reserved'"), 2, '... and has them');
$fourth->safe_psql('postgres', 'SELECT uid_fleet_handover()');
$fourth->wait_for_catchup('stale', 'replay', $fourth->lsn('flush'));
$stale->stop;
my $cancel = statement_of('docs/fleet.md', qr/uid_fleet_handover\(cancel/);
go_on(319);
is(sqlstate($fourth, $cancel), '55000', 'a handover cannot be canceled while a standby may count on it');
my $closing = ask($fourth, { %$ann, incarnation => undef });
is($closing->{refusal}, 'handing_over', '... and nothing is granted');
go_on(2);
is(sqlstate($fourth, $cancel), '00000', 'then it can');
is(ask($fourth, shown_last(member('kept'), $closing))->{refusal}, 'fenced', '... and a fence covers the grants of one that is gone');
$fourth->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(ask($fourth, $ann)->{node}, $kept, '... so a holder keeps its node');
$fourth->stop('immediate');
start_node($stale);
$stale->promote;
is(ask($stale, member('early'))->{refusal}, 'fenced', 'a standby that has only the closing raises a fence');
$stale->stop;
start_node($fourth);
is(ask($fourth, $ann)->{node}, $kept, 'the registry starts again');

# A registry in another cluster or another database grants nothing before somebody says what it is.

my $other = new_node('other');
use_fake_clock($other);
push @servers, $other;
go_on(1);
start_node($other);
$other->safe_psql('postgres', 'CREATE ROLE fleet');
sub move ($dbname, $from = $fourth, $from_db = 'postgres')
{
	my $dump = $fourth->basedir . "/$dbname.sql";
	$from->command_ok([ 'pg_dump', '-f', $dump, $from->connstr($from_db) ], "pg_dump for $dbname");
	$other->safe_psql('postgres', "CREATE DATABASE $dbname");
	$other->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $other->connstr($dbname) ],
		"restore of $dbname");
}
move('moved');
is(ask($other, {%$ann}, dbname => 'moved')->{refusal}, 'unclaimed', 'a restored dump grants nothing');
is(sqlstate($other, q{SELECT uid_fleet_admit('fleet', 'unchanged')}, 'moved'), '00000', 'nothing was lost');
my $moved_ann = {%$ann};
is(ask($other, $moved_ann, dbname => 'moved')->{node}, $kept, '... so a holder keeps its node');
is(ask($other, member('m'), dbname => 'moved')->{refusal}, '', '... and newcomers get nodes at once');
# The former one is used by mistake. A member shows it the later term. A newcomer tells the new one when it granted last.
go_on(1);
is(ask($fourth, my $mistaken = member('n'))->{refusal}, '', 'the former registry is still open');
is(ask($fourth, $moved_ann)->{refusal}, 'stale_registry', '... until a member that has moved calls it');
like(slurp_file($fourth->logfile), qr/LOG:  registry no longer grants anything: a:5432 has shown it a later term/, '... and the log says which');
my $closed = ask($fourth, { %$moved_ann, incarnation => undef });
is("$closed->{refusal} $closed->{is_open}", 'stale_registry false', '... and it answers no one');
is(ask($other, shown_last(member('o'), $closed), dbname => 'moved')->{refusal}, 'fenced',
	 'the new registry fences what the former one has granted since');
is(ask($other, $mistaken, dbname => 'moved')->{node}, $mistaken->{held_node}, '... and its holder keeps the node');

$fourth->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(ask($fourth, $ann)->{refusal}, '', 'an administrator makes the former one the registry');
$fourth->safe_psql('postgres', 'SELECT uid_fleet_handover()');
move('handed');
$closing = ask($fourth, $ann);
is($closing->{refusal}, 'handing_over', 'a member that calls the closed one meanwhile');
$ann->{$_} = $closing->{$_} foreach qw(term term_nonce serial seal);
my $term = $ann->{term};
is(ask($other, $ann, dbname => 'handed')->{node}, $kept, 'after a handover a restored dump goes on');
cmp_ok($ann->{term}, '>', $term, '... in a new term');
is(ask($other, member('h'), dbname => 'handed')->{refusal}, '', '... and newcomers get nodes at once');
is( $other->safe_psql('handed', "SELECT has_function_privilege('fleet', p.oid, 'EXECUTE') FROM pg_proc p WHERE proname = 'uid_fleet_call'"),
	't', 'the role may call the function there');

# It remembers claims, which a member of a registry with another key may have shown.
$other->safe_psql('moved', 'SELECT uid_fleet_fence(cancel => true)');
ask($other, { %{member('q')}, fleet => $ann->{fleet}, term => $ann->{term} + 60e6, term_nonce => 7, serial => 1, seal => 1 }, dbname => 'moved');
is(ask($other, member('r'), dbname => 'moved')->{refusal}, 'claimed', 'a claim keeps newcomers away');
$other->safe_psql('moved', 'SELECT uid_fleet_handover()');
move('claimed', $other, 'moved');
is(ask($other, member('s'), dbname => 'claimed')->{refusal}, 'fenced', '... and a restored dump of a handover raises a fence');

# Inside its own cluster, nothing of the server changes.
$log = -s $other->logfile;
$other->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE handed');
is(ask($other, member('i'), dbname => 'twin')->{refusal}, 'unclaimed', 'a copy of the database grants nothing');
like(slurp_file($other->logfile, $log), qr/refuses all members: .*\n.*It differs: database has changed/, '... and the log says why');
# A copy for testing.
is(sqlstate($other, 'SELECT uid_fleet_fork()', 'twin'), '00000', 'it gets a fleet of its own');
is(ask($other, {%$ann}, dbname => 'twin')->{refusal}, 'other_fleet', '... which refuses members of the original');
is(ask($other, member('p'), dbname => 'twin')->{refusal}, '', '... and admits its own');
is(ask($other, $ann, dbname => 'handed')->{refusal}, '', 'the original does not mind');
my $own = $other->basedir . '/own.sql';
$other->command_ok([ 'pg_dump', '--clean', '--if-exists', '-f', $own, $other->connstr('handed') ], 'pg_dump of a database');
is(ask($other, member('j'), dbname => 'handed')->{refusal}, '', 'grants go on');
$other->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $own, $other->connstr('handed') ],
	'the dump replaces it');
is(ask($other, member('k'), dbname => 'handed')->{refusal}, 'unclaimed', '... and grants nothing');

# A node is taken from a holder that runs on, against the advice, and granted again.
my $robbed = member('robbed');
is(ask($other, $robbed, dbname => 'twin', bits => 1)->{refusal}, '', 'a member holds one of two nodes');
my $node = $robbed->{held_node};
my $pool = $other->safe_psql('twin', "SELECT pool FROM uid_fleet WHERE host = 'robbed'");
$other->safe_psql('twin', "SELECT uid_fleet_takeover($pool, $node)");
go_on(320);
$log = -s $other->logfile;
ask($other, member("heir $_"), dbname => 'twin', bits => 1) foreach 1, 2;
is(ask($other, $robbed, dbname => 'twin', bits => 1)->{refusal}, 'superseded', '... and is refused once it was taken over');
like(slurp_file($other->logfile, $log),
	qr/LOG:  two generators hold node $node of pool $pool from \d.* to \d.*\n.*DETAIL:  They are "uid_generators.g" in database "db" on robbed:5432 with login "(\w+)", and "uid_generators.g" in database "db" on heir \d:5432 with login "\g1"\./,
	'... and the log says who else has the node, and for which time');

# The successor of a registry that was lost can verify no grant of that one. An invented one is no sign of two holders.
$other->safe_psql('postgres', 'CREATE DATABASE anew');
$other->safe_psql('anew', $_) for 'CREATE EXTENSION uidgen', "SELECT uid_fleet_admit('fleet', 'successor', fleet => $robbed->{fleet}, term => $robbed->{term})";
learn_messages($other, 'anew');
my $heir = member('an heir');
ask($other, $heir, dbname => 'twin', bits => 2);
is(ask($other, $heir, dbname => 'anew', bits => 2)->{node}, $heir->{held_node}, 'a holder keeps its node by the word of its grant');
$log = -s $other->logfile;
isnt(ask($other, { %{ member('a liar') }, map({ ($_ => $heir->{$_}) } grep { /^held/ } keys %$heir), held_membership => 4711, held_seal => 1,
			held_term => 1, fleet => $heir->{fleet}, term => 1, serial => 1, seal => 1 }, dbname => 'anew', bits => 2)->{refusal}, '',
	'... and an invented grant of it gives none');
unlike(slurp_file($other->logfile, $log), qr/two generators hold/, '... and is no sign of two that hold it');

# A former primary comes back when its grants have ended, and the one that took over has stopped.

# While its clock stands still, a standby does not tell the primary how much it has replayed, and the primary flushes only
# what a commit waits for.
sub follows ($standby, $primary)
{
	$primary->safe_psql('postgres', 'SELECT pg_current_xact_id()');
	my $lsn = $primary->lsn('flush');
	$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'") or die 'the standby does not follow';
}

$_->stop foreach grep { $_->{_pid} } @servers;
@servers = ();
my $wait = 1.5 * $longest + 2 * 10;
my $former = new_registry('former');
my $taker = new_standby($former, 'taker');
my ($one, $two, $three) = map { member($_) } 'one', 'two', 'three';
is(ask($former, $_, bits => 2)->{refusal}, '', 'a member gets a node') foreach $one, $two, $three;
my $backup = $former->basedir . '/backup.sql';
$former->command_ok([ 'pg_dump', '--clean', '--if-exists', '-f', $backup, $former->connstr('postgres') ], 'a backup');
follows($taker, $former);
$former->stop('immediate');
$taker->promote;
is(ask($taker, $one, bits => 2)->{refusal}, '', 'a standby takes over, and one member is extended');
foreach my $part (1, 2)
{
	go_on($longest / 2 + 50);
	is(ask($taker, $one, bits => 2)->{refusal}, '', '... again and again');
}
$taker->stop('immediate');
start_node($former);
is(ask($former, member('new'), bits => 2)->{refusal}, 'starting', 'the former primary, whose grants have ended, accepts no newcomer');
is(ask($former, $two, bits => 2)->{refusal}, 'starting', '... nor the holder of a grant that has ended');
fires($former, 'UidgenNewcomersRefused');
go_on(-960);
is(ask($former, member('newest'), bits => 2)->{refusal}, 'starting', '... nor when its clock is set back');
go_on(960 + $wait + 1);
is(ask($former, member('newer'), bits => 2)->{refusal}, 'starting', '... or forward');
end_wait($former);
is(ask($former, $two, bits => 2)->{node}, $two->{held_node}, 'then the holder keeps its node');
is(ask($former, $three, bits => 2)->{node}, $three->{held_node}, '... and another one');
is($three->{held_from}, (1795262400 + $clock) * 1000 - 1767225600000, '... from now on, not from where its grant began');
is(ask($former, $one, bits => 2)->{refusal}, 'stale_registry', 'a member that has seen the other one closes it');
$former->stop;

# A member whose grant lasts ends the wait, for nodes whose grants had ended before.

start_node($taker);
my ($live, $ended) = map { member($_) } 'live', 'ended';
$taker->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
is(ask($taker, $_, bits => 4)->{refusal}, '', 'a member gets a node') foreach $ended, $live;
go_on($longest / 2);
is(ask($taker, $live, bits => 4)->{refusal}, '', 'one of two renews');
$taker->stop;
start_node($taker);
go_on($longest / 2 + 1);
is(ask($taker, member('early'), bits => 4)->{refusal}, 'starting', 'after a start a newcomer waits');
is(ask($taker, $live, bits => 4)->{refusal}, '', '... for a member whose grant lasts');
my @taken = map { ask($taker, my $next = member("next $_"), bits => 4); $next } 1 .. 15;
is(scalar(grep { defined $_->{held_node} } @taken), 14, '... and then there are the nodes that were free before');
is((grep { defined $_->{held_node} && $_->{held_node} == $ended->{held_node} } @taken) + 0, 0, '... but not one whose grant has ended since');
is(ask($taker, $taken[-1], bits => 4)->{refusal}, 'starting', '... which newcomers wait for');
go_on($wait - $longest / 2);
end_wait($taker);
is(ask($taker, $taken[-1], bits => 4)->{node}, $ended->{held_node}, '... until the whole wait is over');

# A term was drawn by a clock that was an hour ahead. Right afterwards, a backup from before takes over.

$clock += 3600;
freeze_clock($_, $clock) foreach @servers;
my $before = $taker->safe_psql('postgres', "SELECT uid_fleet_key() || ' ' || fleet || ' ' || term FROM uid_fleet_state");
$taker->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
$clock -= 3600;
freeze_clock($_, $clock) foreach @servers;
is(ask($taker, $live, bits => 4)->{refusal}, '', 'a member has seen the term');
my $ahead = $live->{term};
cmp_ok($ahead, '>', term_of($taker) - 1, '... which is ahead of the clock');
$taker->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
cmp_ok(term_of($taker), '>', $ahead, 'the next one is above it nevertheless');
is(ask($taker, $live, bits => 4)->{refusal}, '', '... and counts');
my $latest = $live->{term};
my ($its_key, $its_fleet) = split / /, $before;
$taker->safe_psql('postgres', "CREATE DATABASE $_") foreach 'restored', 'with_key', 'without_key';
$taker->command_ok([ 'psql', '-XAtq', '-f', $backup, $taker->connstr('restored') ], 'a backup from before all that is restored');
is(sqlstate($taker, q{SELECT uid_fleet_admit('fleet', 'successor')}, 'restored'), '00000', '... and made the successor');
is(ask($taker, {%$live}, dbname => 'restored', bits => 4)->{refusal}, 'stale_registry', '... whose term is below, because of that clock');
fires($taker, 'UidgenRegistryRefuses', dbname => 'restored');
is(sqlstate($taker, 'SELECT uid_fleet_fence()', 'restored'), '00000', 'a fence');
cmp_ok($taker->safe_psql('restored', 'SELECT term FROM uid_fleet_state'), '>', $latest, '... draws above what was shown');
fires($taker, 'UidgenFenceStands', dbname => 'restored');
is(ask($taker, {%$live}, dbname => 'restored', bits => 4)->{refusal}, '', '... so that members are extended');

# The same of registries that were made anew, with the key and without.
foreach my $case ([ 'with_key', "'$its_key'", '' ], [ 'without_key', 'NULL', '' ])
{
	my ($name, $key) = @$case;
	is(ask($taker, $live, bits => 4)->{refusal}, '', 'a member of the former one');
	my $heir = {%$live};
	my $told = $live->{term};
	$taker->safe_psql($name, $_) foreach 'CREATE EXTENSION uidgen', "SELECT uid_fleet_admit('fleet', 'successor', fleet => $its_fleet, term => $told, key => $key)";
	learn_messages($taker, $name);
	cmp_ok($taker->safe_psql($name, 'SELECT term FROM uid_fleet_state'), '>', $told, "made anew $name: its term is above what it was told");
	is(ask($taker, $heir, dbname => $name, bits => 4)->{node}, $live->{held_node}, '... and a holder keeps its node');
	is(ask($taker, member("new $name"), dbname => $name, bits => 4)->{refusal}, 'fenced', '... but newcomers wait');
	# The former one comes back, and then it is met by a member of the new one.
	go_on($longest + 1);
	$taker->stop;
	start_node($taker);
	is(ask($taker, {%$live}, bits => 4)->{refusal}, 'starting', '... and the former one extends no ended grant of a member that was down meanwhile');
	my $seen = $key eq 'NULL' ? 'unproven' : 'stale_registry';
	is(ask($taker, {%$heir}, bits => 4)->{refusal}, $seen, "... and the former one answers $seen");
	is(ask($taker, member("newer $name"), bits => 4)->{refusal}, $key eq 'NULL' ? 'claimed' : 'stale_registry', '... and accepts no newcomer');
	$taker->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');
}

# Two standbys are promoted one after the other, from one state.

go_on(4000); # the clock is beyond all terms again
is(ask($taker, $live, bits => 4)->{refusal}, '', 'a member is extended');
my @standbys = map { new_standby($taker, "copy$_") } 1, 2;
follows($_, $taker) foreach @standbys;
$taker->stop('immediate');
my $known = 0;
foreach my $copy (@standbys)
{
	go_on(1);
	$copy->promote;
	is(ask($copy, $live, bits => 4)->{refusal}, '', 'a standby is promoted, and a member is extended');
	cmp_ok($live->{term}, '>', $known, '... in a term that nobody knows');
	fires($copy, 'UidgenFenceStands');
	$known = $live->{term};
}

done_testing();
