# Rows of worker_node are written by a separate process. Expected: the outcome of a row never affects transactions that
# draw, and the row is written whatever the outcome of those transactions.
use UidgenTest;
use Clock;
use Trouble;

my $node = new_node('rows', conf => "max_locks_per_transaction = 10\nautovacuum = off\n");
use_fake_clock($node);
start_uidgen($node);

sub make
{
	sql("SELECT uid_generator_create('$_')") foreach @_;
}

sub next_id
{
	return "SELECT uid_next('uid_generators.$_[0]') > 0";
}

sub rows_of
{
	return sql("SELECT count(*) FROM worker_node WHERE generator = 'uid_generators.$_[0]'");
}

sub has_row ($generator, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(wait_for_node_rows($node, "uid_generators.$generator", 1), 1, $name);
}

# Where a row could not be written before: a transaction has it tried again, though not at once.
sub draws_until_row ($generator, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	poll_until('a row', sub { sql(next_id($generator)); return rows_of($generator) > 0 });
	return is(rows_of($generator), 1, $name);
}

# What the writer says of a row that it could not write.
sub has_said ($reason, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(poll_until($name, sub { $node->log_contains("could not write the row of worker_node: $reason") }), $name);
}

my $writers = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'uidgen node writer'};

# No transaction draws once more.
{
	my %transactions = (
		'a READ ONLY session' => 'SET default_transaction_read_only = on; %s',
		'a savepoint that is rolled back' => 'BEGIN; SAVEPOINT a; %s; ROLLBACK TO a; COMMIT',
		'a session that ends' => 'BEGIN; %s',
		'a transaction that fails' => 'BEGIN; %s; SELECT 1 / 0',
		'a transaction that is prepared' => "BEGIN; %s; PREPARE TRANSACTION 'p'");
	make('serializable_1', 'serializable_2', sort keys %transactions);
	foreach my $what (sort keys %transactions)
	{
		$node->psql('postgres', sprintf $transactions{$what}, next_id(qq{"$what"}));
		has_row(qq{"$what"}, "the row of a generator that only $what has drawn from");
	}
	sql("ROLLBACK PREPARED 'p'");
	# The extension, or the generator, is made in the transaction that draws.
	sql('CREATE DATABASE made');
	sql('BEGIN; CREATE EXTENSION uidgen; SELECT uid_next(); COMMIT', 'made');
	is(wait_for_node_rows($node, '%', 1, dbname => 'made'), 1, 'and one that makes the extension');
	sql("BEGIN; SELECT uid_generator_create('g'); SELECT uid_next('uid_generators.g'); COMMIT", 'made');
	is(wait_for_node_rows($node, '%.g', 1, dbname => 'made'), 1, 'or the generator');

	# What is set for sessions of the database is not meant for the writer.
	sql("ALTER DATABASE made SET default_transaction_read_only = on; ALTER DATABASE made SET default_transaction_isolation = 'serializable'");
	my $has_timeout = sql("SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'");
	sql("ALTER DATABASE made SET transaction_timeout = '1ms'") if $has_timeout;
	local $ENV{PGOPTIONS} = '-c transaction_timeout=0' if $has_timeout;
	sql("SET default_transaction_read_only = off; SELECT uid_generator_create('h')", 'made');
	sql("SELECT uid_next('uid_generators.h')", 'made');
	is(wait_for_node_rows($node, '%.h', 1, dbname => 'made'), 1, 'also in a database that is READ ONLY by default');
	sql('DROP DATABASE made');

	# Two that read worker_node and draw, side by side.
	my @sessions = map { hold_open($node) } 1 .. 2;
	$_->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM worker_node') foreach @sessions;
	is($sessions[$_]->query_safe(next_id('serializable_' . ($_ + 1))), 't', 'a SERIALIZABLE transaction draws') foreach 0, 1;
	is(sqlstate($sessions[$_], 'COMMIT'), '00000', 'and commits beside another one') foreach 0, 1;
	has_row("serializable_$_", 'its row is written') foreach 1, 2;
	$_->quit foreach @sessions;
}

# A full lock table. The transaction's own places for locks are taken, so its commit could get no other.
{
	make('crowded');
	sql('CREATE TABLE kept (id bigint)');
	sql("CREATE TABLE locked_$_ ()") foreach 1 .. 40;
	my $session = hold_open($node);
	$session->query_safe('BEGIN; ' . join '; ', map { "SELECT count(*) FROM locked_$_" } 1 .. 40);
	$session->query_safe("INSERT INTO kept VALUES (uid_next('uid_generators.crowded'))");
	my $filler = hold_open($node);
	$filler->query_safe(sql_to_use_up_locks('NULL'));
	is(sqlstate($filler, 'SELECT pg_advisory_lock(i) FROM generate_series(2000001, 2100000) AS i'), '53200', 'the lock table is full');
	is(sqlstate($session, 'COMMIT'), '00000', 'a transaction that has drawn commits');
	$filler->quit;
	is(sql('SELECT count(*) FROM kept'), 1, 'with what it did');
	draws_until_row('crowded', 'the row is written when there is room for locks');
	$session->quit;
}

# The id is taken, by a transaction that is open, or because the sequence is set back.
{
	make('behind_id', 'set_back_1', 'set_back_2');
	my $taken = sql('SELECT last_value + 1 FROM worker_node_id_seq');
	my $taker = hold_open($node);
	$taker->query_safe("BEGIN; INSERT INTO worker_node (id, host_name, port, type, launch_date, modified, created) VALUES ($taken, '', '', 1, now(), now(), now())");
	is(sql(next_id('behind_id')), 't', 'a row with the same id in an open transaction does not hold up those who draw');
	$taker->query_safe('COMMIT');
	$taker->quit;
	draws_until_row('behind_id', 'the generator gets a row with another id then');
	is(sql("SELECT id > $taken FROM worker_node WHERE generator = 'uid_generators.behind_id'"), 't', '... which was drawn');

	sql("SELECT setval('worker_node_id_seq', last_value - 5) FROM worker_node_id_seq");
	sql(next_id("set_back_$_")) foreach 1, 2;
	has_row("set_back_$_", 'a generator has its row, though the sequence was set back') foreach 1, 2;
	is(sql('SELECT count(*) - count(DISTINCT id) FROM worker_node'), 0, '... and overwrites none');
}

# A trigger that does not come to an end, in a database that is copied and dropped meanwhile; and a writer that is killed,
# while it sleeps, which the next one does if this one was late.
{
	sql('CREATE DATABASE busy');
	sql("CREATE EXTENSION uidgen; CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1000); RETURN NEW; END'", 'busy');
	sql('CREATE TRIGGER slow BEFORE INSERT ON worker_node FOR EACH ROW EXECUTE FUNCTION slow()', 'busy');
	is(sql('SELECT uid_next() > 0', 'busy'), 't', 'a trigger that sleeps does not hold up those who draw');
	is(sqlstate($node, 'CREATE DATABASE copy TEMPLATE busy'), '00000', '... nor does it keep a database from being copied');
	is(sqlstate($node, 'DROP DATABASE copy'), '00000', '... or dropped');
	has_said('canceling statement due to statement timeout', 'the writer is cancelled before long');
	make('after_kill');
	my $number = 0;
	ok( poll_until('the restart',
			sub {
				$number++;
				sql("SELECT uid_generator_create('slow_$number'); SELECT uid_next('uid_generators.slow_$number')", 'busy');
				my $pid = '';
				poll_until('a writer that sleeps', sub { $pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'uidgen node writer' AND wait_event = 'PgSleep' LIMIT 1") }, 1);
				return 0 unless $pid ne '' && kill 'KILL', $pid;
				poll_until('the end of the process', sub { !-e "/proc/$pid" });
				return $node->log_contains("\\(PID $pid\\) was terminated by signal 9");
			}),
		'one that is killed has the server restart');
	wait_for_service($node);
	sql('DROP DATABASE busy');
	sql(next_id('after_kill'));
	has_row('after_kill', 'after a writer was killed, rows are written');
}

# Rows that cannot be written. They come at the end of this test, after what follows: each is put off for seconds.
my $count = 300;
my $draw_many = 'DO $$ BEGIN FOR i IN %d .. %d LOOP PERFORM %s; COMMIT; END LOOP; END $$';
{
	# A trigger of the table's owner runs as pg_database_owner.
	sql(<<'SQL');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generator ~ '(refused|many_7|many_150)$' THEN
    RAISE EXCEPTION 'no rows today';
  ELSIF NEW.generator ~ 'draws' THEN
    PERFORM public.uid_next('uid_generators.from_trigger');
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER refuse BEFORE INSERT ON worker_node FOR EACH ROW EXECUTE FUNCTION refuse();
SQL
	make('refused', 'neighbour', 'draws', 'from_trigger', 'behind_lock', 'held');
	sql('GRANT USAGE ON SEQUENCE uid_generators.from_trigger TO pg_database_owner');
	is(sql('BEGIN; ' . next_id('refused') . '; ' . next_id('neighbour') . '; SELECT current_user; COMMIT'),
		"t\nt\n" . sql('SELECT current_user'), 'a trigger that raises does not hurt a transaction that draws');
	has_row('neighbour', 'nor the rows of other generators');
	has_said('no rows today', 'the log says why');
	is(rows_of('refused'), 0, '... there is no row');
	sql(next_id('draws'));
	has_row('draws', 'a trigger may draw');
	has_row('from_trigger', '... and that generator has its row, too');

	# Another database has its turn.
	sql('CREATE DATABASE turn');
	sql('CREATE EXTENSION uidgen; SELECT uid_next(); DROP EXTENSION uidgen', 'turn');
	sql('CREATE EXTENSION uidgen; SELECT uid_next()', 'turn');
	is(wait_for_node_rows($node, '%', 1, dbname => 'turn'), 1, 'another database has its rows, too');
	sql(q{CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$never$$; END'; CREATE TRIGGER never BEFORE INSERT ON worker_node FOR EACH ROW EXECUTE FUNCTION never()}, 'turn');
	sql(q{SELECT uid_generator_create('g'); SELECT uid_next('uid_generators.g')}, 'turn');
	has_said('never', 'one that cannot write them');
	sql('DROP DATABASE turn');

	# The table is locked. First draws of many generators have one writer, which needs few transactions, and goes on where it was.
	my $locker = hold_open($node);
	$locker->query_safe('BEGIN; LOCK TABLE worker_node IN ACCESS EXCLUSIVE MODE');
	my ($timed_out, $drawn) = (0);
	$node->psql('postgres', 'BEGIN; ' . next_id('behind_lock') . '; COMMIT; ' . next_id('behind_lock'),
		stdout => \$drawn, timeout => 60, timed_out => \$timed_out);
	is($timed_out . $drawn, "0t\nt", 'LOCK TABLE worker_node does not hold up those who draw');
	has_said('canceling statement due to lock timeout', 'the writer does not wait for the lock for long');
	sql(sprintf $draw_many, 1, $count, q{uid_generator_create('many_' || i)});
	sql(next_id('held'));
	poll_until('a writer', sub { sql("$writers AND wait_event_type = 'Lock'") eq '1' }) or die 'no writer waits';
	my ($writer) = background_pids($node, 'node writer');
	freeze_process($writer);
	sql(sprintf $draw_many, 1, $count, q{uid_next(('uid_generators.many_' || i)::regclass)});
	is(join(' ', background_pids($node, 'node writer')), $writer, "$count first draws start no other writer");
	$locker->query_safe('COMMIT');
	kill 'TERM', $writer;
	thaw($writer);
	is(wait_for_node_rows($node, 'uid_generators.many%', $count - 2), $count - 2, 'when a writer was told to end, another one writes all rows but those that a trigger refuses');
	cmp_ok(sql(q{SELECT count(DISTINCT xmin::text) FROM worker_node WHERE generator ~ 'many_'}), '<', $count / 3, '... many of them in a transaction');
	sql('DROP TRIGGER refuse ON worker_node');
	$locker->quit;
}

# However many sessions draw for the first time, one writer is at work. One that hands over to the next may still be
# seen while it ends, so those count that are seen twice, 20 ms apart.
{
	my ($firsts, $sessions) = (600, 4);
	sql(sprintf $draw_many, 1, $firsts, q{uid_generator_create('first_' || i)});
	sql(<<'SQL');
CREATE FUNCTION most_writers(rows bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  most bigint := 0;
  seen integer[];
  seen_before integer[] := '{}';
BEGIN
  FOR i IN 1 .. 6000 LOOP
    PERFORM pg_stat_clear_snapshot();
    seen := ARRAY(SELECT pid FROM pg_stat_activity WHERE backend_type = 'uidgen node writer');
    most := greatest(most, (SELECT count(*) FROM unnest(seen) AS p WHERE p = ANY (seen_before)));
    EXIT WHEN (SELECT count(*) >= rows FROM worker_node WHERE generator ~ 'first_');
    seen_before := seen;
    PERFORM pg_sleep(0.02);
  END LOOP;
  RETURN most;
END
$$;
SQL
	my $watcher = hold_open($node);
	send_query($watcher, "SELECT most_writers($firsts)");
	my @sessions = map { hold_open($node) } 1 .. $sessions;
	my $each = $firsts / $sessions;
	send_query($sessions[$_], sprintf $draw_many, $_ * $each + 1, ($_ + 1) * $each, q{uid_next(('uid_generators.first_' || i)::regclass)}) foreach 0 .. $#sessions;
	finish_query($_) foreach @sessions;
	is((finish_query($watcher))[0], 1, "$firsts first draws of $sessions sessions have one writer, never two");
	is(wait_for_node_rows($node, 'uid_generators.first%', $firsts), $firsts, '... which writes all rows');
	$_->quit foreach @sessions, $watcher;
}

# No standby is waited for with a connection open.
{
	make('alone');
	sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	$node->reload;
	$node->poll_query_until('postgres', 'SHOW synchronous_standby_names', 'nobody') or die 'not reloaded';
	sql("SET synchronous_commit = local; " . next_id('alone'));
	has_row('alone', 'the row is written while a standby is awaited');
	sql('SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names');
	$node->reload;
}

# `modified`, to the hour.
{
	make('hourly', 'idle', 'half_an_hour', 'another_hour');
	my $modified = sub { return sql("SELECT modified FROM worker_node WHERE generator = 'uid_generators.$_[0]'") };
	sql(next_id('hourly') . '; ' . next_id('idle'));
	has_row($_, 'a row is written') foreach 'hourly', 'idle';
	my ($first, $idle) = map { $modified->($_) } 'hourly', 'idle';
	set_clock($node, '+30m');
	sql(next_id('hourly'));
	sql(next_id('half_an_hour'));
	has_row('half_an_hour', 'half an hour later the writer is at work');
	is($modified->('hourly'), $first, '... and the row says what it said');
	set_clock($node, '+61m');
	sql(next_id('hourly'));
	ok($node->poll_query_until('postgres', "SELECT modified > '$first'::timestamptz + interval '1 h' FROM worker_node WHERE generator = 'uid_generators.hourly'"),
		'after an hour `modified` says that the generator is in use');
	is($modified->('idle'), $idle, '... of one that is not in use it says when it was');
	set_clock($node, '+0');
}

# The rows that were put off.
{
	has_row($_, "the row of $_ comes when nothing is in its way any more, though nobody draws") foreach 'refused', 'behind_lock';
	is(wait_for_node_rows($node, 'uid_generators.many%', $count), $count, '... and so do those of others');
	ok(poll_until('the end of the writer', sub { background_pids($node, 'node writer') == 0 }), '... the writer ends, and has forgotten the database that was dropped');
	ok( poll_until('a writer that waits for more',
			sub {
				sql(q{SELECT uid_generator_alter('uid_generators.held', lease_ms => 900)} . '; ' . next_id('held'));
				return sql("$writers AND wait_event_type = 'Extension'") eq '1';
			}),
		'a writer waits for other first draws before it ends');
}

# A single-user server, and one without background workers.
{
	make('single', 'without', 'with_again');
	$node->stop;
	my ($out, $err) = ('', '');
	my $query = next_id('single') . "\n";
	IPC::Run::run([ $node->installed_command('postgres'), '--single', '-D', $node->data_dir, 'postgres' ], '<', \$query, '>', \$out, '2>', \$err);
	like($out, qr/= "t"/, 'a single-user server draws');
	unlike($err, qr/ERROR|FATAL|PANIC/, '... and has nothing to say');
	$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
	start_node($node);
	is(sql(next_id('without') . ';' . next_id('without')), "t\nt", 'without background workers ids go on');
	is(rows_of('without'), 0, '... and rows are not written');
	$node->append_conf('postgresql.conf', 'max_worker_processes = 4');
	$node->stop;
	start_node($node);
	sql(next_id('with_again'));
	has_row('with_again', '... until there are background workers');
	$node->stop;
}

done_testing();
