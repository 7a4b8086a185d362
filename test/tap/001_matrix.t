# Ways to draw × what became of the transaction × what then happens to the server. What was given before is never given
# again, and where P2 promises an order, the next value is above it.
#
# A line of a table is a way, a situation or a fault. Each way has an object of its own in each situation, so that no other
# one's record hides that its own is missing. The clock stands still, so the clock cannot be what keeps ids apart, and whatever
# flushes on its own is postponed.
use IO::Select;
use UidgenTest;
use Installation;
use Trouble;

# Of each way: which values come next (1: above, -1: below), what makes its object, the values that a draw brings, and its
# situations, if they are not all. OBJ is the object's name. A parallel worker may read the real clock before it finds the
# one that stands still, so generators draw in none.
my $generator = q{SELECT uid_generator_create('OBJ', max_ahead_ms => 600000)};
my $no_worker = qr/^(?!made_by_worker)/;
my %ways = (
	id => [ 1, $generator, q{uid_next('uid_generators.OBJ')}, $no_worker ],
	ids => [ 1, $generator, q{unnest(uid_next_array('uid_generators.OBJ', 5000))}, $no_worker ],
	ring => [ 1, q{SELECT uid_generator_create('OBJ', mode => 'cached', spread => false, boost_power => 0, max_ahead_ms => 600000)},
		q{unnest(uid_next_array('uid_generators.OBJ', 1000))}, $no_worker ],
	value => [ 1, q{SELECT segment_create('OBJ')}, q{segment_next('OBJ')} ],
	values => [ 1, q{SELECT segment_create('OBJ', 1, 100, 800)}, q{segment_next('OBJ') FROM generate_series(1, 250)} ], # to a range reserved ahead
	block => [ 1, q{SELECT segment_create('OBJ')}, q{generate_series(first, last) FROM segment_reserve('OBJ', 7)} ],
	plain => [ 1, 'CREATE SEQUENCE OBJ', q{segment_next('OBJ'::regclass)} ],
	down => [ -1, 'CREATE SEQUENCE OBJ INCREMENT -3', q{unnest(segment_next_array('OBJ'::regclass, 20))} ],
	serial => [ 1, 'CREATE TABLE of_OBJ (v bigserial); ALTER SEQUENCE of_OBJ_v_seq RENAME TO OBJ', q{segment_next('OBJ'::regclass)} ],
	# nextval moves the page without a record for up to 32 values. Values of its own are safe in rows that are committed only.
	mixed => [ 1, 'CREATE SEQUENCE OBJ', q{nextval('OBJ') UNION ALL SELECT segment_next('OBJ'::regclass) UNION ALL SELECT nextval('OBJ')}, qr/^(?:committed|prepared)$/ ],
	# It has logged 0x108 and stands at 0xff; the range up to 0x1ff changes one byte.
	byte => [ 1, q{SELECT segment_create('OBJ', 1, 256, 256); SELECT count(nextval('uid_segments.OBJ')) FROM generate_series(1, 255)},
		q{segment_next('OBJ') FROM generate_series(1, 20)}, qr/first|committed/ ]);

# A session for each way and situation, which stays open. After `--` it goes on when the standby, if there is one, no longer
# answers; then nothing is a value that comes only when the wait is canceled.
my %situations = (
	first => '-- BEGIN READ ONLY; DRAW',
	again => 'DRAW -- BEGIN READ ONLY; DRAW',
	committed => 'INSERT',
	rolled_back => 'BEGIN; INSERT; ROLLBACK',
	prepared => q{BEGIN; INSERT; PREPARE TRANSACTION 'OBJ'},
	savepoint => 'BEGIN; DRAW; SAVEPOINT s; DRAW; ROLLBACK TO s; DRAW',
	kept => 'BEGIN; SAVEPOINT s; DRAW; ROLLBACK TO s',
	altered => 'DRAW; BEGIN; ALTER SEQUENCE RELATION RESTART; REFUSED',
	undone => 'BEGIN; DRAW; SAVEPOINT s; ALTER SEQUENCE RELATION CACHE 10; ROLLBACK TO s; DRAW; COMMIT; DRAW',
	rewritten => 'DRAW; ALTER SEQUENCE RELATION CACHE 10; DRAW',
	# A commit that nobody waits for: whoever has drawn afterwards has waited for it.
	made => 'BEGIN; MAKE; UNSEEN -- SET synchronous_commit = LEVEL; COMMIT; OTHER',
	made_by_worker => 'BEGIN; MAKE; SET LOCAL ' . parallel_setting() . '; UNSEEN -- SET synchronous_commit = LEVEL; COMMIT; OTHER',
	moved => 'DRAW; BEGIN; ALTER SEQUENCE RELATION CACHE 20; ALLOWED -- SET synchronous_commit = LEVEL; COMMIT; OTHER',
	moved_prepared => q{DRAW; BEGIN; ALTER SEQUENCE RELATION CACHE 20; ALLOWED; PREPARE TRANSACTION 'OBJ'}
	  . q{ -- SET synchronous_commit = LEVEL; COMMIT PREPARED 'OBJ'; OTHER});

my (%last, @sessions, @wrong, $round, $level, $is_alone, @situations);
our @only = sort keys %ways;

sub relation ($way, $name)
{
	return $ways{$way}[1] =~ /_generator_/ ? "uid_generators.$name" : $ways{$way}[1] =~ /_segment_|segment_create/ ? "uid_segments.$name" : $name;
}

sub ways_in ($situation)
{
	return grep { $situation =~ ($ways{$_}[3] // qr/./) } @only;
}

sub name_of ($way, $situation)
{
	return $situation =~ /^made/ ? "${way}_${situation}_$round" : "${way}_$situation";
}

# A script of a situation, for one way.
sub fill ($script, $way, $name)
{
	my (undef, $make, $values) = @{ $ways{$way} };
	my $draw = "SELECT $values";
	my $is_refused = $way =~ /^(?:id|ids|ring|block)$/; # what a rollback would bring back
	my %words = (
		INSERT => "INSERT INTO rows SELECT 'OBJ', v FROM ($draw) d(v) RETURNING v",
		UNSEEN => "SELECT FROM ($draw) AS d",
		ALLOWED => $is_refused ? 'SELECT' : "SELECT FROM ($draw) AS d",
		DRAW => $draw,
		MAKE => $make =~ s/^SELECT (.*)/SELECT FROM $1/r,
		RELATION => relation($way, $name),
		REFUSED => $is_refused ? 'SAVEPOINT refused; \\refused' : 'SELECT',
		LEVEL => $level);
	$script =~ s/\b(INSERT|UNSEEN|ALLOWED|DRAW|MAKE|RELATION|REFUSED|LEVEL)\b/$words{$1}/g;
	return $script =~ s/OBJ/$name/gr;
}

# Each value is above all that came before it.
sub receive ($name, @values)
{
	my ($way) = split /_/, $name;
	my $sign = $ways{$way}[0];
	my @bad;
	foreach my $value (@values)
	{
		if (!defined $last{$name} || $sign * $value > $last{$name}) { $last{$name} = $sign * $value }
		else { push @bad, "$value after " . $sign * $last{$name} }
	}
	push @wrong, "$name: $bad[0]" if @bad;
}

# Which values a session gets. If it waits for the standby, the wait is canceled.
sub run ($node, $session, $script, $name, $way)
{
	my $is_refused = $script =~ s/; \\refused$//;
	foreach my $statement (split /; /, $script)
	{
		send_query($session, $statement);
		sql($node, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $session->{pid} AND wait_event = 'SyncRep'")
		  until !$is_alone || IO::Select->new($session->{socket})->can_read(0.02);
		my ($output, $error) = finish_query($session);
		push @wrong, "$name: $error" if $error =~ /ERROR/ && $error !~ /canceling statement/;
		receive($name, grep { /^-?\d+$/ } split /\n/, $output);
	}
	push @wrong, "$name: draws from a sequence that it has altered" if $is_refused && sqlstate($session, "SELECT $ways{$way}[2]" =~ s/OBJ/$name/gr) ne '55000';
}

sub make_all ($node)
{
	sql($node, 'CREATE TABLE rows (of text, v bigint); ' . join '; ', map { my $situation = $_; map { fill('MAKE', $_, "${_}_$situation") } ways_in($situation) } grep { !/^made/ } @situations);
}

sub draw_all ($node, $then = sub { })
{
	$round++;
	$_->quit foreach splice @sessions;
	my @later;
	foreach my $situation (@situations)
	{
		foreach my $way (ways_in($situation))
		{
			my $name = name_of($way, $situation);
			my ($now, $later) = map { fill($_, $way, $name) } split /-- /, $situations{$situation};
			push @sessions, my $session = hold_open($node);
			$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
			run($node, $session, $now, $name, $way);
			push @later, [ $session, $later, $name, $way ] if defined $later;
		}
	}
	my $locks = sql($node, q{SELECT count(DISTINCT relation) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation::regclass::text ~ '_kept$'});
	push @wrong, "$locks locks have survived ROLLBACK TO" if $locks != (grep { $_ eq 'kept' } @situations) * ways_in('kept');
	$then->();
	# Nothing that flushes comes after what must be durable without a commit, nor after a commit that does not wait.
	foreach ((grep { $_->[1] !~ /OTHER/ } @later), grep { $_->[1] =~ /OTHER/ } @later)
	{
		my ($session, $later, $name, $way) = @$_;
		my $has_other = $later =~ s/; OTHER$//;
		run($node, $session, $later, $name, $way);
		next unless $has_other;
		push @sessions, my $other = hold_open($node);
		$other->{pid} = $other->query_safe('SELECT pg_backend_pid()');
		run($node, $other, fill('BEGIN READ ONLY; DRAW', $way, $name), $name, $way);
	}
}

# Everything draws once more, on the server that there is now. If it has lost commits, only what is in its rows counts.
sub judge ($node, $what, %opts)
{
	my $session = hold_open($node, dbname => $opts{database} // 'postgres');
	my $lines = sub ($sql) { split /\n/, $session->query_safe($sql) };
	$session->query_safe($_) foreach $lines->(q{SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts WHERE database = current_database()});
	my %is_there = map { $_ => 1 } $lines->(q{SELECT relname FROM pg_class WHERE relkind = 'S'});
	my %is_judged = map { $_ => 1 } @only;
	my %before = %last;
	my @names = grep { $is_judged{ s/_.*//r } } sort keys %last;
	if ($opts{survivors})
	{
		%last = ();
		receive(split /\|/) foreach $lines->('SELECT of, v FROM rows ORDER BY of, CASE WHEN of ~ $$down$$ THEN -v ELSE v END');
	}
	foreach my $name (@names)
	{
		my ($way) = split /_/, $name;
		if ($is_there{$name}) { receive($name, $lines->(fill('DRAW', $way, $name))) }
		elsif (!$opts{survivors} && $last{$name}) { push @wrong, "$name is gone" }
	}
	$session->quit;
	%last = %before if $opts{database}; # a copy is another history
	is(join("\n", splice @wrong), '', $what);
}

sub frozen ($name, $conf = '', %opts)
{
	@situations = sort @{ delete $opts{situations} // [ keys %situations ] };
	my $node = new_server($name, conf => quiet_conf() . "max_connections = 200\nmax_prepared_transactions = 200\nuidgen.max_wait = 200ms\n$conf", clock => 0, %opts);
	%last = ();
	$round = 0;
	make_all($node);
	return $node;
}

# ---------------------------------------------------------------------------------------------------------------
# One server.
# ---------------------------------------------------------------------------------------------------------------

$level = 'off';
my $node = frozen('alone');
my %faults = (
	crash => sub { crash($node) },
	'clean stop' => sub { $_->quit foreach splice @sessions; $node->stop('fast'); start_node($node) });
@situations = grep { !/made|moved/ } @situations;
# The default generator's max_ahead is so small that two lives use it up at one instant. A lease is not resumed, also then.
foreach my $case ([ 'crash', '00000' ], [ 'crash', '55000' ], [ 'clean stop', '55000' ])
{
	my ($fault, $state) = @$case;
	# Before all others, because the node writer may commit after the first draw, and its commit flushes what they have written.
	sqlstate($node, 'SELECT uid_next()');
	draw_all($node);
	$faults{$fault}->();
	judge($node, $fault);
	is(sqlstate($node, 'SELECT uid_next()'), $state, "... the default generator, after one more life at one instant: $state");
}

sql($node, 'CREATE DATABASE copied TEMPLATE postgres', 'template1');
judge($node, 'a copy of the database', database => 'copied');
# A commit that nobody waits for wakes the process that flushes it. So each has a crash of its own, at once.
foreach my $way ('id', 'value', 'plain', 'serial')
{
	foreach my $situation ('made', 'made_by_worker', 'moved')
	{
		local @only = ($way);
		@situations = ($situation);
		next unless ways_in($situation);
		draw_all($node);
		crash($node);
		judge($node, "$way, $situation: a crash after another session has drawn");
	}
}
freeze_clock($node, 60);
is(sqlstate($node, 'SELECT uid_next()'), '00000', 'the default generator draws again when the clock goes on');
$node->stop;

# ---------------------------------------------------------------------------------------------------------------
# Processes are killed while clients draw in all ways. Service resumes by itself.
# ---------------------------------------------------------------------------------------------------------------

set_clock($node, '+0');
start_node($node);
# After a crash it makes slots one after another.
sql($node, "SELECT count(segment_create('s' || i)) FROM generate_series(1, 300) AS i");
my $slots = q{SELECT 'value s' || i || ' ' || segment_next('s' || i) FROM (SELECT 1 + (random() * 299)::int AS i FROM generate_series(1, 30) OFFSET 0) AS n};
my (%received, @killed);

sub pid_of ($type)
{
	my @found;
	poll_until($type, sub {
			@found = $type eq 'refiller' ? background_pids($node, $type) : split /\n/,
			  sql($node, 'SELECT pid FROM pg_stat_activity WHERE ' . ($type eq 'maker of slots' ? q{query LIKE '%random()%'} : "backend_type = '$type'") . ' AND pid <> pg_backend_pid() ORDER BY pid');
			return @found > 0 }) or die "no $type";
	return $found[0];
}

sub kill_one ($signal, $process)
{
	my %loops = map { $_ => background_loop($node, clients => 1, sql => fill('DRAW; BEGIN; DRAW; COMMIT; BEGIN READ ONLY; DRAW; ROLLBACK', $_, "${_}_again") =~ s/\b\d000\b/20/gr) } qw(id ids ring value values plain down);
	$loops{slots} = background_loop($node, sql => $slots);
	my @logs = map { @{ $_->{logs} } } values %loops;
	poll_until('every client has received something', sub { !grep { !-s } @logs }) or BAIL_OUT('no load');
	my ($offset, $pid) = (-s $node->logfile, pid_of($process));
	my %before = map { $_ => sql($node, fill('DRAW', $_, "${_}_again") . ' LIMIT 1') } qw(id ring value plain);
	kill $signal, $pid or die "could not send SIG$signal to $pid: $!";
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset) if $signal eq 'KILL';
	poll_until("process $pid is gone", sub { !kill 0, $pid });
	wait_for_service($node);
	foreach my $way (sort keys %before)
	{
		my $now = sql($node, fill('DRAW', $way, "${way}_again") . ' LIMIT 1');
		push @wrong, "$way: $now after $before{$way}" if $now <= $before{$way};
	}
	stop_loop(values %loops);
	foreach my $way (keys %loops)
	{
		my @values = map { split /\n/, slurp_file($_) } @{ $loops{$way}{logs} };
		push @wrong, map { "$way: $_ comes again" } splice @{ [ grep { $received{"$way $_"}++ } @values ] }, 0, 3;
	}
	is(join("\n", splice @wrong), '', "SIG$signal to a $process, under load");
}

kill_one(@$_) foreach [ 'KILL', 'client backend' ], [ 'TERM', 'client backend' ], [ 'KILL', 'walwriter' ], [ 'KILL', 'checkpointer' ],
  [ 'TERM', 'walwriter' ], [ 'KILL', 'refiller' ], map { [ 'KILL', 'maker of slots' ] } 1 .. 3;
# There is a slot for what was drawn from since the last crash, and no other.
is(sql($node, "SELECT count(segment_next('s' || i)) FROM generate_series(1, 300) AS i; SELECT generators, segments FROM uid_stat_server"), "300\n2|302", 'no slot is lost');
ok(poll_until('a refiller', sub { sql($node, fill('DRAW', 'ring', 'ring_again')); background_pids($node, 'refiller') == 1 }), 'there is one refiller again');
$node->stop;

# ---------------------------------------------------------------------------------------------------------------
# A primary that is lost. A synchronous standby has all that a session was given. An asynchronous one is behind: nothing comes
# again that is in a row that survives. It may lack the library, until it is promoted.
# ---------------------------------------------------------------------------------------------------------------

sub promoted ($primary, $name, %opts)
{
	my $copy = $opts{bare} ? copy_installation() : undef;
	my $standby = UidgenNode->new($name, install_path => $copy ? $copy->{install_path} : undef);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n" . ($copy ? "shared_preload_libraries = ''\n" : ''));
	use_fake_clock($standby);
	freeze_clock($standby);
	if ($copy) { unlink "$copy->{PKGLIBDIR}/uidgen.so" or die "no library: $!" }
	start_node($standby);
	make_synchronous($primary, $name) if $opts{synchronous};
	sql($primary, q{SELECT uid_t_sequence_create(); INSERT INTO t_sequence VALUES ('tabled', 1, 10)});
	my $walsender;
	draw_all($primary, sub {
			$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
			my @shown = ('SELECT count(*), max(v) FROM rows', $copy ? () : ('SELECT current_val, increment_val FROM t_sequence', q{SELECT uid_timestamp(max(v)) FROM rows WHERE of = 'id_committed'}));
			is(sql($standby, $_), sql($primary, $_), "$name shows the same: $_") foreach @shown;
			$walsender = freeze_walsender($primary, $name);
			$is_alone = $opts{synchronous};
		});
	# Who asks for less does not wait, but the next session does, for the very same range.
	foreach my $way ($opts{synchronous} ? ('id', 'value') : ())
	{
		my ($of, $session) = ("${way}_first", hold_open($primary));
		my ($draw, $last) = (fill('DRAW', $way, $of), $last{$of});
		like(sql($primary, "SET synchronous_commit = local; $draw"), qr/^\d+$/, "$way: with synchronous_commit = local a session does not wait");
		$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
		run($primary, $session, $draw, $of, $way);
		is($last{$of}, $last, '... and the next one gets nothing without the standby');
		$session->quit;
	}
	$is_alone = 0;
	sql($primary, q{INSERT INTO rows SELECT 'id_committed', uid_next('uid_generators.id_committed') FROM generate_series(1, 3000)}) unless $opts{synchronous};
	is(sqlstate($standby, $_), $copy ? '58P01' : '25006', "$name does not draw") foreach 'SELECT uid_next()', q{SELECT segment_next('value_committed')}, q{SELECT segment_reserve('value_committed', 5)};
	is(sqlstate($standby, 'UPDATE t_sequence SET current_val = current_val + 1'), '25006', '... nor does its t_sequence');
	like(failure($standby, 'SELECT uid_next()'), qr/HINT:  Draw on the primary/, '... and says where to draw') unless $copy;
	$primary->kill9;
	kill 'KILL', $walsender;
	thaw($walsender);
	$standby->promote;
	if ($copy)
	{
		system_or_bail('cp', `pg_config --pkglibdir` =~ s/\n//r . '/uidgen.so', $copy->{PKGLIBDIR});
		$standby->stop;
		$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\n");
		start_node($standby);
	}
	judge($standby, "$name, promoted", survivors => !$opts{synchronous});
	$standby->stop;
}

my $standby_conf = "wal_consistency_checking = 'all'\n";
$level = 'local';
promoted(frozen('primary', $standby_conf, situations => [qw(first again committed made made_by_worker moved moved_prepared)]), 'synchronous', synchronous => 1);
$level = 'off';
promoted(frozen('primary2', $standby_conf, situations => ['committed']), 'asynchronous');
promoted(frozen('primary3', $standby_conf, situations => ['committed']), 'bare', bare => 1);

# What a transaction makes is not logged, but written out at its commit: as a file that is synced, or as pages.
foreach my $threshold ('0', '2MB')
{
	$node = frozen("minimal$threshold", "wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off\nwal_skip_threshold = $threshold\n", allows_streaming => 0, situations => ['made']);
	draw_all($node);
	crash($node);
	judge($node, "wal_level = minimal, wal_skip_threshold = $threshold, a crash");
	# A parallel worker sees that the file is not logged, and does not take that for an ALTER SEQUENCE.
	set_clock($node, '+0');
	is(sql($node, 'BEGIN; ' . fill('MAKE', 'id', 'id_by_worker') . '; SET LOCAL ' . parallel_setting() . q{; SELECT uid_next('uid_generators.id_by_worker') > 0; COMMIT}), 't', '... a parallel worker draws in the transaction that makes its generator');
	$node->stop;
}

done_testing();
