# Standbys, promotion, and wal_level = minimal.
#
# A value is safe when the record of its range is as durable as a commit's record would be: flushed on this server, and
# on the synchronous standby if synchronous_commit requires that. Whatever part of the log survives, the range of a
# surviving row survives too.
#
# All clocks stand still at one instant, so the counter keeps ids apart, not the clock.
use UidgenTest;

# Each standby compares each page that it replays with the primary's.
my $conf = "autovacuum = off\nuidgen.max_wait = 200ms\nwal_consistency_checking = 'all'\n";

sub frozen_node ($name, %opts)
{
	my $node = new_node($name, conf => $conf . (delete $opts{conf} // ''), %opts);
	use_fake_clock($node);
	freeze_clock($node);
	return $node;
}

sub standby_from ($primary, $backup, $name, %opts)
{
	my $node = UidgenNode->new($name, %opts);
	$node->init_from_backup($primary, $backup, has_streaming => 1);
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
	use_fake_clock($node);
	freeze_clock($node);
	return $node;
}

# The primary's machine is gone: neither it nor its frozen walsender sends any more.
sub lose ($primary, $walsender)
{
	$primary->kill9;
	kill 'KILL', $walsender;
	thaw($walsender);
}

sub waits_for_standby ($node, $what)
{
	ok( $node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
		$what);
}

sub cancel_wait ($node)
{
	sql($node, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
}

sub lines
{
	return split /\n/, $_[0];
}

# A synchronous standby that does not answer. Expected: a draw that needs a new range
# waits as a commit would; a cancel ends the wait with an error (57014), without a
# value; with synchronous_commit = local it does not wait, but the next session with
# `on` does, for the very same range. After a promotion nothing comes again that was
# returned under the promise of the standby.

my $primary = frozen_node('primary');
start_uidgen($primary);
sql($primary, "SELECT uid_generator_create(name) FROM (VALUES ('steady'), ('fresh'), ('local')) AS v(name)");
sql($primary, "SELECT segment_create(name) FROM (VALUES ('steady'), ('fresh'), ('local')) AS v(name)");
$primary->backup('first');
my $standby = standby_from($primary, 'first', 'sync');
start_node($standby);
make_synchronous($primary, 'sync');

# Drawn in read-only transactions: they take no xid, so their commit waits for nobody.
my $session = hold_open($primary);
my (@ids, @values);

sub draw_steady ($ids, $values)
{
	$session->query_safe('BEGIN READ ONLY');
	push @ids, lines($session->query_safe("SELECT unnest(uid_next_array('uid_generators.steady', $ids))"));
	push @values,
	  lines($session->query_safe("SELECT segment_next('steady') FROM generate_series(1, $values)"));
	$session->query_safe('COMMIT');
}
draw_steady(100, 50);

# The standby has what these transactions reserve in a new file, but not the commit that makes the file count. Whoever
# draws after the commit must wait for that, or the former file counts again.
sql($primary, <<'END');
SELECT segment_create(name), segment_next(name) FROM (VALUES ('altered'), ('prepared')) AS v(name);
CREATE TABLE emptied (id bigserial);
SELECT segment_next('emptied_id_seq'::regclass);
END
my $parallel = UidgenTest::parallel_setting();
my %uncommitted = (
	"'altered'" => [ 'ALTER SEQUENCE uid_segments.altered MAXVALUE 9000000000', 'COMMIT' ],
	"'prepared'" => [ 'ALTER SEQUENCE uid_segments.prepared MAXVALUE 9000000000', "COMMIT PREPARED 'altered'" ],
	"'emptied_id_seq'::regclass" => [ "TRUNCATE emptied RESTART IDENTITY; SET LOCAL $parallel", 'COMMIT' ]);
my @names = sort keys %uncommitted;
foreach my $name (@names)
{
	my ($change, $end) = @{ $uncommitted{$name} };
	push @{ $uncommitted{$name} }, my $by = hold_open($primary);
	$by->query_safe("BEGIN; $change; SELECT segment_next($name)");
	$by->query_safe("PREPARE TRANSACTION 'altered'") if $end ne 'COMMIT';
}

my $walsender = freeze_walsender($primary, 'sync');
my %drawn;
foreach my $name (@names)
{
	my (undef, $end, $by) = @{ $uncommitted{$name} };
	$by->query_safe("SET synchronous_commit = local; $end");
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	send_query($session, "SELECT segment_next($name)");
	$primary->poll_query_until('postgres',
		"SELECT query ~ 'segment_next' AND (wait_event = 'SyncRep' OR state = 'idle') FROM pg_stat_activity WHERE pid = $pid");
	cancel_wait($primary);
	my ($output) = finish_query($session);
	is($output, '', "segment_next($name) gets no value from a file whose commit the standby has not got");
	$drawn{$name} = [ lines($output) ];
	$by->quit;
}
# The ranges in use are with the standby, so that there is nothing to wait for.
draw_steady(100, 40);
is(scalar(@ids) + scalar(@values), 290, 'while the standby is stalled, ranges that it has are used up');

# A generator's first lease starts above all leases of the database: give it time.
freeze_clock($primary, 5);
foreach my $case (
	[ 'uid_next', "SELECT uid_next('uid_generators.local')" ],
	[ 'segment_next', "SELECT segment_next('local')" ])
{
	my ($name, $sql) = @$case;
	my $local = hold_open($primary);
	$local->query_safe('SET synchronous_commit = local');
	like($local->query_safe($sql), qr/^\d+$/, "$name with synchronous_commit = local does not wait");
	send_query($session, $sql);
	waits_for_standby($primary, '... the next session with on waits for the same range');
	cancel_wait($primary);
	my ($output) = finish_query($session);
	is($output, '', '... and gets no value without the standby');
	like($local->query_safe($sql), qr/^\d+$/, '... while the first one still does not wait');
	$local->quit;
}

lose($primary, $walsender);
$standby->promote;
my @new_ids = lines(sql($standby, "SELECT unnest(uid_next_array('uid_generators.steady', 5000))"));
my @new_values = lines(sql($standby, "SELECT segment_next('steady') FROM generate_series(1, 5000)"));
is(repeated(@ids, @new_ids), '', 'after the promotion no id comes again');
cmp_ok($new_ids[0], '>', $ids[-1], '... they are above');
is(repeated(@values, @new_values), '', 'after the promotion no value comes again');
cmp_ok($new_values[0], '>', $values[-1], '... they are above');
sql($standby, "ROLLBACK PREPARED 'altered'");
foreach my $name (@names)
{
	my @again = lines(sql($standby, "SELECT segment_next($name) FROM generate_series(1, 1500)"));
	is(repeated(@{ $drawn{$name} }, @again), '', "... nor of segment_next($name)");
}
freeze_clock($standby, 5);
is(sqlstate($standby, "SELECT uid_next('uid_generators.fresh'), segment_next('fresh')"),
	'00000', 'generator and segment whose draws were cancelled work');
$standby->stop;

# Standbys read, and don't draw. One has no uidgen in shared_preload_libraries, and
# the library not even installed: replay does not need it.
# An asynchronous standby is behind when the primary is lost: rows are lost, but no
# new id equals one in a row that survived.

$primary = frozen_node('primary2');
start_uidgen($primary);
# A copy of the installation, without the library.
my $bare_copy = copy_installation();
my ($library, $missing) = (`pg_config --pkglibdir` =~ s/\n//r . '/uidgen.so', "$bare_copy->{PKGLIBDIR}/uidgen.so");
unlink $missing or die "no library to remove: $!";
sql($primary, <<'END');
SELECT segment_create('rows', 1, 20);
SELECT uid_t_sequence_create();
INSERT INTO t_sequence VALUES ('rows', 1, 10);
CREATE TABLE rows (id bigint DEFAULT uid_next(), v bigint DEFAULT segment_next('rows'));
INSERT INTO rows SELECT FROM generate_series(1, 100);
END
$primary->backup('second');
$standby = standby_from($primary, 'second', 'async');
start_node($standby);
my $bare = standby_from($primary, 'second', 'bare', install_path => $bare_copy->{install_path});
$bare->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
start_node($bare);
sql($primary, 'INSERT INTO rows SELECT FROM generate_series(1, 1000)');
# Up to what is flushed: while the clock stands still, the WAL writer writes more than it flushes.
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
$primary->wait_for_catchup($bare, 'replay', $primary->lsn('flush'));

my ($state, $message) = sqlstate($standby, 'SELECT uid_next()');
is($state, '25006', 'uid_next on a standby: an error');
like($message, qr/HINT:  Draw on the primary/, '... that says where to draw');
is(sqlstate($standby, "SELECT segment_next('rows')"), '25006', 'segment_next on a standby: the same');
is(sqlstate($standby, "SELECT segment_reserve('rows', 5)"), '25006', '... and segment_reserve');
is(sqlstate($standby, "UPDATE t_sequence SET current_val = current_val + 1"), '25006', '... and an UPDATE of t_sequence');
is(sql($standby, 'SELECT current_val, increment_val FROM t_sequence'),
	sql($primary, 'SELECT current_val, increment_val FROM t_sequence'), 't_sequence shows the same');
is( sql($standby, 'SELECT generated_at FROM rows, uid_decode(id) ORDER BY id LIMIT 1'),
	sql($primary, 'SELECT generated_at FROM rows, uid_decode(id) ORDER BY id LIMIT 1'), 'uid_decode works on a standby');
is( sql($bare, 'SELECT count(*), max(id), max(v) FROM rows'),
	sql($primary, 'SELECT count(*), max(id), max(v) FROM rows'), 'a standby without the library replays all');
like((sqlstate($bare, 'SELECT uid_next()'))[1], qr/could not access file/, '... where uidgen really is missing');

my $async_walsender = freeze_walsender($primary, 'async');
my $bare_walsender = freeze_walsender($primary, 'bare');
sql($primary, 'INSERT INTO rows SELECT FROM generate_series(1, 3000)');
my $written = sql($primary, 'SELECT count(*) FROM rows');
kill 'KILL', $bare_walsender;
lose($primary, $async_walsender);
thaw($bare_walsender);

my $duplicates = 'SELECT count(*) - count(DISTINCT id), count(*) - count(DISTINCT v) FROM rows';
$standby->promote;
cmp_ok(sql($standby, 'SELECT count(*) FROM rows'), '<', $written, 'the asynchronous standby was behind: rows are lost');
sql($standby, 'INSERT INTO rows SELECT FROM generate_series(1, 5000)');
is(sql($standby, $duplicates), '0|0', 'after its promotion no new id or value equals one in a surviving row');
$standby->stop;

$bare->promote;
# Now install the library, and preload it.
system_or_bail('cp', $library, $missing);
$bare->stop;
$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\n");
start_node($bare);
sql($bare, 'INSERT INTO rows SELECT FROM generate_series(1, 5000)');
is(sql($bare, $duplicates), '0|0', 'promoted, with the library, the bare standby draws: no id or value of a surviving row');
$bare->stop;

# wal_level = minimal: what a transaction makes is not logged, but written out at its
# commit. Expected: a generator and a segment work in the transaction that makes them,
# and after a crash that follows the commit nothing comes again.

my $minimal = frozen_node('minimal', allows_streaming => 0,
	conf => "wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off\n");
start_node($minimal);
foreach my $database ('logged', 'synced')
{
	# 0: a new relation's file is synced at commit; otherwise its pages are logged.
	freeze_clock($minimal, 0);
	my $threshold = $database eq 'synced' ? '0' : '2MB';
	sql($minimal, "CREATE DATABASE $database");
	my $output = sql($minimal, <<END, $database);
SET wal_skip_threshold = '$threshold';
BEGIN;
CREATE EXTENSION uidgen;
SELECT segment_create('small', 1, 100) IS NULL;
SELECT uid_generator_create('small') IS NULL;
SELECT unnest(uid_next_array(1000));
SELECT unnest(uid_next_array('uid_generators.small', 1000));
SELECT segment_next('small') FROM generate_series(1, 250);
COMMIT;
END
	my @all = grep { /^\d+$/ } lines($output);
	is(scalar(@all), 2250, "wal_level = minimal, $database: draws in the transaction that makes everything");
	crash($minimal);
	cmp_ok(sql($minimal, 'SELECT uid_next()', $database), '>', $all[999], '... after a crash the next id is above');
	# Its lease began a second ahead, above the default generator's: half a second of
	# the clock makes room for one more lease, and is still below what was drawn.
	freeze_clock($minimal, 0.5);
	cmp_ok(sql($minimal, "SELECT uid_next('uid_generators.small')", $database),
		'>', $all[1999], '... also of the generator that the transaction made');
	cmp_ok(sql($minimal, "SELECT segment_next('small')", $database), '>', $all[2249], '... the next value is above');
}

# A parallel worker sees that the file is not logged. It must not take that for an ALTER. libfaketime may not
# have read the stopped clock yet in one of two workers, which then draws days ahead of the other: it is the real one.
set_clock($minimal, '+0');
my $in_worker = sql($minimal, <<'END', 'logged');
CREATE TABLE many AS SELECT i FROM generate_series(1, 20000) AS i;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
BEGIN;
SELECT uid_generator_create('parallel') IS NULL;
SELECT count(DISTINCT id) FROM (SELECT uid_next('uid_generators.parallel') AS id FROM many OFFSET 0) AS drawn;
COMMIT;
END
is($in_worker, "f\n20000", '... a parallel worker draws in the transaction that makes the generator');
$minimal->stop;

done_testing();
