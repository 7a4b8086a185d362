# Segments together with everything else that uses a sequence: nextval on the same one, commands of other sessions,
# transactions of every kind, and the rows that the views show of them.
use Time::HiRes;
use UidgenTest;
use Clients;

my $node = new_server('segments', conf => "autovacuum = off\nwal_writer_delay = 10ms\n");

sub status ($sequence, $columns)
{
	return sql("SELECT $columns FROM segment_status WHERE sequence = '$sequence'::regclass");
}

sql('CREATE SEQUENCE alone');
is(sql("SELECT count(DISTINCT segment_next('alone')) FROM generate_series(1, 5000)"), 5000, 'one session, 5000 values');

# A default goes from nextval to segment_next and back while four sessions insert.
# Expected: nobody notices; no value twice, neither in the table nor at a client.
{
	sql('CREATE TABLE t (id bigserial PRIMARY KEY, by text)');
	my $load = background_loop($node, clients => 4, sql => "INSERT INTO t (by) VALUES ('load') RETURNING id");
	foreach my $round (1 .. 3)
	{
		foreach my $draw ('segment_next', 'nextval')
		{
			sql("ALTER TABLE t ALTER id SET DEFAULT $draw('t_id_seq'::regclass), ALTER by SET DEFAULT '$draw'");
			my $rows = sql('SELECT count(*) FROM t');
			$node->poll_query_until('postgres', "SELECT count(*) > $rows + 200 FROM t") or die 'the load has ended';
		}
	}
	my @logs = stop_loop($load);
	is(join('', map { slurp_file("$_.err") } @logs), '', 'the default moves six times under load: no client sees an error');
	my $total = assert_unique(@logs);
	is(sql('SELECT count(*) FROM t'), $total, '... and each client got what is in the table');
	# Back for good: nextval alone takes one after the other.
	my $last = sql('INSERT INTO t DEFAULT VALUES RETURNING id');
	is(sql('INSERT INTO t DEFAULT VALUES RETURNING id'), $last + 1, '... after which nextval is nextval');
}

# Both at once, in turns, from one session or from two. Expected: about two ranges are lost at the start (here a
# range is 1000 values), nothing in the end; when nextval stops the step grows back.
foreach my $sessions (1, 2)
{
	my $sequence = "both$sessions";
	sql("CREATE SEQUENCE $sequence");
	my @sessions = map { hold_open($node) } 1 .. $sessions;
	my @values = map { ($sessions[0]->query_safe("SELECT segment_next('$sequence')"), $sessions[-1]->query_safe("SELECT nextval('$sequence')")) } 1 .. 200;
	my $falls = grep { $values[$_] <= $values[ $_ - 1 ] } 1 .. $#values;
	is($falls, 0, "segment_next and nextval in turns, from $sessions: each value above all before");
	my $burned = sql("SELECT last_value FROM $sequence") - @values;
	cmp_ok($burned, '<=', 5 * 1000, "... of $values[-1] values $burned are lost, at most five ranges");
	is($values[-1] - $values[-101], 100, '... and none in the end');
	is(status($sequence, 'step'), 1, '... where the step is 1');
	is($sessions[0]->query_safe("SELECT max(v) - min(v) FROM unnest(segment_next_array('$sequence', 5000)) AS v"),
		4999, '... left alone, it loses nothing');
	like(status($sequence, 'step'), qr/^(?:1024|2048|4096|8192)$/, '... and the step is what it was, or more');
	$_->quit foreach @sessions;
}

# What other commands do (docs/segments.md), with one session that draws now and then and one in an open transaction
# that has drawn. Values 1 to 3 are drawn before; the range in hand is 1 to 1000.
my ($drawer, $open, $other) = map { hold_open($node) } 1 .. 3;
my $draw = "SELECT segment_next('q'::regclass)";
my $table = 'CREATE TABLE owner_of_q (id bigserial, i int); ALTER SEQUENCE owner_of_q_id_seq RENAME TO q';

sub is_waiting ($what)
{
	ok( $node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND backend_type = 'client backend'"),
		$what);
}

sub begin ($make = undef)
{
	sql('DROP TABLE IF EXISTS owner_of_q; DROP SEQUENCE IF EXISTS q, r; DROP SCHEMA IF EXISTS elsewhere CASCADE; ' . ($make // 'CREATE SEQUENCE q'));
	my @values = ($drawer->query_safe($draw), $open->query_safe("BEGIN; $draw"));
	is("@values", '1 2', 'a new sequence');
}

# A command that waits for open draws.
sub after_open_draws ($command, $make = undef)
{
	begin($make);
	send_query($other, $command);
	is_waiting("$command waits for an open transaction that has drawn");
	is($open->query_safe($draw), 3, '... which draws on');
	$open->query_safe('COMMIT');
	my (undef, $error) = finish_query($other);
	is($error, '', '... and then does its work');
}

sub next_ones ($expected, $what)
{
	is(join(' ', map { $_->query_safe($draw) } $drawer, $open, $drawer), $expected, $what);
}

# Those that wait for nobody take effect at each session's next transaction.
foreach my $case (
	[ "SELECT nextval('q')", '1002 1003 1004', 'nextval takes the value after the range in hand, and all go on above' ],
	[ "SELECT setval('q', 50000)", '50001 50002 50003', 'setval' ],
	[ "SELECT setval('q', 50000, false)", '50000 50001 50002', 'setval, not called' ],
	[ "BEGIN; SELECT setval('q', 50000); ROLLBACK", '50001 50002 50003', 'setval rolled back, which makes no difference' ],
	[ "SELECT segment_set('q', 50000)", '50000 50001 50002', 'segment_set' ],
	[ "SELECT setval('q', 1, false)", '1 2 3', 'setval downward, where values come again' ])
{
	my ($command, $expected, $what) = @$case;
	begin();
	$other->query_safe($command);
	is($open->query_safe($draw), 3, "$what: the open transaction goes on with its range");
	$open->query_safe('COMMIT');
	next_ones($expected, '... from its next transaction on, every session is there');
}
# In turns with the open transaction: also that one goes on above.
begin();
$other->query_safe("SELECT nextval('q')");
is($drawer->query_safe($draw) . ' ' . $open->query_safe($draw), '1002 1003', 'nextval: when another session gives the range up, the open transaction follows');
$open->query_safe('COMMIT');
# The open transaction reserves its next range itself, and has not looked at the counter since.
begin();
my $taken = $other->query_safe("SELECT nextval('q')");
is($open->query_safe("SELECT count(*) FROM unnest(segment_next_array('q'::regclass, 2000)) AS value WHERE value = $taken"), 0,
	'nextval: a transaction that reserves again meanwhile does not get the value');
$open->query_safe('COMMIT');

foreach my $case (
	[ 'RESTART 70000', '70000 70001 70002' ], [ 'RESTART', '1 2 3' ],
	[ 'INCREMENT 10', '1010 1020 1030' ], [ 'MINVALUE -5', '1001 1002 1003' ],
	[ 'MAXVALUE 1003', '1001 1002 1003' ], [ 'START 500', '1001 1002 1003' ],
	[ 'CACHE 20', '1001 1002 1003' ], [ 'MAXVALUE 1002 CYCLE', '1001 1002 1' ],
	[ 'AS integer', '1001 1002 1003' ])
{
	my ($change, $expected) = @$case;
	after_open_draws("ALTER SEQUENCE q $change");
	next_ones($expected, '... the new definition counts');
	if ($change eq 'MAXVALUE 1003')
	{
		is(sqlstate($drawer, $draw), '2200H', '... and is the limit');
	}

	# Rolled back, without a draw inside: the range in hand is as good as before.
	begin();
	$open->query_safe('COMMIT');
	$other->query_safe("BEGIN; ALTER SEQUENCE q $change");
	send_query($drawer, $draw);
	is_waiting("a draw waits for an open ALTER SEQUENCE $change");
	$other->query_safe('ROLLBACK');
	is((finish_query($drawer))[0], 3, '... rolled back: the old counter counts again');
	is($open->query_safe($draw), 4, '... for all');

	# With a draw inside: that one is as the new definition says, and all others are above what was drawn before.
	$other->query_safe("BEGIN; ALTER SEQUENCE q $change");
	is($other->query_safe($draw), (split / /, $expected)[0], "ALTER SEQUENCE $change and a draw in one transaction");
	$other->query_safe('ROLLBACK');
	next_ones('1001 1002 1003', '... rolled back: the old counter counts again, above the range that was in hand');
}

after_open_draws('TRUNCATE owner_of_q RESTART IDENTITY', $table);
next_ones('1 2 3', 'TRUNCATE RESTART IDENTITY: from the start');
begin($table);
$open->query_safe('COMMIT');
$other->query_safe('BEGIN; TRUNCATE owner_of_q RESTART IDENTITY; ROLLBACK');
next_ones('3 4 5', '... rolled back: as if nothing had been');

# Privileges are looked at again at each transaction's first call, however the sequence is named (privilege.spec).
{
	sql('CREATE ROLE one');
	begin();
	$open->query_safe('COMMIT; SET ROLE one');
	is(sqlstate($open, $_), '42501', "without a privilege, though all is cached: $_")
	  foreach $draw, "SELECT segment_next('q')", "SELECT * FROM unnest(segment_next_array('q', 2))", "SELECT segment_last('q')";
	sql('ALTER SEQUENCE q OWNER TO one');
	is($open->query_safe($draw), 3, 'OWNER TO: the new one may, and nothing was lost');
	$open->query_safe('RESET ROLE');
	sql('ALTER SEQUENCE q OWNER TO CURRENT_USER; GRANT UPDATE ON SEQUENCE q TO one');
	is($open->query_safe("SET ROLE one; $draw"), 4, 'GRANT UPDATE: in the next transaction');
	$open->query_safe('RESET ROLE');
}

after_open_draws('DROP SEQUENCE q');
is(join(' ', map { scalar sqlstate($_, $draw) } $drawer, $open), '42P01 42P01', 'a dropped sequence is gone for all');
begin();
$open->query_safe("PREPARE TRANSACTION 'drawn'");
next_ones('3 4 5', 'PREPARE TRANSACTION: all go on drawing');
send_query($other, 'ALTER SEQUENCE q RESTART 300');
is_waiting('... ALTER SEQUENCE waits for the prepared transaction');
sql("COMMIT PREPARED 'drawn'");
finish_query($other);
next_ones('300 301 302', '... until COMMIT PREPARED');
$_->quit foreach $drawer, $open, $other;

# A segment that is dropped, made again and used in one transaction. (sql/transaction.sql has those that a transaction makes.)
{
	my $session = hold_open($node);
	sql("SELECT segment_create('other')");
	my $value = sql("SELECT segment_next('other')");
	is($session->query_safe("BEGIN; SELECT segment_drop('other'), segment_create('other', 50); SELECT segment_next('other')"),
		"|uid_segments.other\n50", 'dropped, made again and used in one transaction');
	$session->query_safe('ROLLBACK');
	is($session->query_safe("SELECT segment_next('other')"), $value + 1, '... rolled back: the old one goes on');
	$session->quit;
}

# What segment_status says. A range of 100 values; the next one is reserved at the first call after ten of them.
{
	my $range = 'range_first, range_length, range_left, round(share_used::numeric, 3), next_ready, step';
	my $causes = 'refills_late, refills_disturbed';
	my $session = hold_open($node);
	my $use = sub { return $session->query_safe("SELECT count(segment_next('shown')) FROM generate_series(1, $_[0])") };
	sql("SELECT segment_create('shown', 1, 100, 400)");
	is(status('uid_segments.shown', '1'), '', 'a segment that was not used has no row in segment_status');
	$use->(1);
	is(status('uid_segments.shown', $range), '1|100|99|0.010|f|100', 'the first value');
	is(status('uid_segments.shown', $causes), '0|0', '... from the first range');
	$use->(9);
	is(status('uid_segments.shown', $range), '1|100|90|0.100|f|100', 'a tenth is used');
	$use->(1);
	is(status('uid_segments.shown', $range), '1|100|89|0.110|t|200', 'the next range is reserved, twice as long');
	is(status('uid_segments.shown', $causes), '0|0', '... ahead of its use');
	$use->(89);
	is(status('uid_segments.shown', $range), '101|200|200|0.000|f|200', 'the first range is used up');
	$use->(200);
	is(status('uid_segments.shown', $range), '301|400|400|0.000|f|400', 'the second, too: the step is the largest');
	$use->(400);
	is(status('uid_segments.shown', $range), '701|400|400|0.000|f|400', '... and stays so');
	is(status('uid_segments.shown', $causes), '0|0', '... all reserved ahead');
	is($session->query_safe("SELECT nextval('uid_segments.shown')"), 1101, 'nextval takes the value after it');
	$use->(1);
	is(status('uid_segments.shown', $range), '1102|200|199|0.005|f|200', '... so the range is given up, and the step halved');
	is(status('uid_segments.shown', $causes), '0|1', '... for this cause');
	$use->(198);
	is(status('uid_segments.shown', $range), '1102|200|1|0.995|f|200', 'a disturbed segment reserves nothing ahead');
	$use->(2);
	is(status('uid_segments.shown', $range), '1302|400|399|0.003|f|400', '... but when all is used');
	is(status('uid_segments.shown', $causes), '1|1', '... late');
	$use->(40);
	is(status('uid_segments.shown', "next_ready, step, $causes"), 't|400|1|1', '... and is itself again');
	$session->quit;
}

# A changed definition counts from the next range on: step is how many are reserved at first and at least,
# max_step how far that may grow. Only the owner may change it.
{
	my $length = sub ($update) {
		sql("SELECT segment_drop(name) FROM uid_segment WHERE name = 'changed'; SELECT segment_create('changed', 1, 10, 20)");
		sql("SELECT segment_next('changed')");
		sql("SELECT segment_alter('changed', $update)");
		is(sql("SELECT segment_next('changed')"), 2, "$update: the range in use is used on");
		sql("SELECT count(segment_next('changed')) FROM generate_series(1, 9)");
		return status('uid_segments.changed', 'range_first, range_length');
	};
	is($length->('step => 10'), '11|20', '... the same step changes nothing');
	is($length->('max_step => 15'), '11|15', '... a smaller max_step counts from the next range on');
	is($length->('step => 3, max_step => 5'), '11|5', '... also below the step in use');
	is($length->('step => 500, max_step => 500'), '11|500', '... a larger step counts from the next range on');
	cmp_ok((split /\|/, $length->('step => 300, max_step => 1000'))[1], '>=', 300, '... and is the least');
	cmp_ok((split /\|/, $length->('step => 0, max_step => 0'))[1], '>=', 1000, '... 0: the setting, likewise');
	sql('GRANT CREATE ON SCHEMA uid_segments TO one; SET ROLE one; SELECT segment_create($$of one$$, 1, 5)');
	is(sqlstate($node, q{SET ROLE one; SELECT segment_alter('changed', 6)}), '42501', 'no other owner changes it');
}

# The steady state: the next range is reserved when a tenth of one is used, and the WAL writer flushes it before its
# use. Here the calls wait for the WAL writer each quarter of a range, so that it is never slow.
# Expected: no caller waits for a flush, no range comes late.
{
	sql("SELECT segment_create('steady', 1, 1000, 1000)");
	my $session = hold_open($node);
	my $wait = sub {
		my $lsn = $session->query_safe('SELECT pg_current_wal_insert_lsn()');
		poll_until('a flush by the WAL writer', sub { $session->query_safe("SELECT pg_current_wal_flush_lsn() >= '$lsn'") eq 't' })
		  or die "the WAL writer has not come to $lsn";
	};
	my $use = sub { $session->query_safe("SELECT count(segment_next('steady')) FROM generate_series(1, 250)"); $wait->() };
	$use->() foreach 1 .. 4;
	my $counted = sub { return sql("SELECT $_[0] FROM uid_stat JOIN segment_status USING (sequence) WHERE name = 'steady'") };
	my ($waits, $records) = split /\|/, $counted->('flush_waits, records');
	$use->() foreach 1 .. 80;
	is($counted->("flush_waits - $waits, refills_late, records - $records, step"),
		'0|0|20|1000', 'twenty ranges of a thousand values, and nobody waited for a flush');
	# In one open transaction it is the same.
	$session->query_safe('BEGIN READ ONLY');
	$use->() foreach 1 .. 80;
	is($counted->("flush_waits - $waits, refills_late, records - $records"),
		'0|0|40', 'nor in an open transaction');
	$session->quit;
}

$node->stop;
done_testing();
