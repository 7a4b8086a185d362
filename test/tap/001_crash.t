# Crashes: a value that a session has received is never issued again, and no new id equals one in a surviving row.
#
# The clock stands still, so the clock cannot be what keeps ids apart. Everything else is idle, and every process that
# flushes WAL on its own is postponed, so another process's flush cannot be the reason either.
use UidgenTest;

my $generator = 'uid_generators.uid_default';

# A test's instant: far above every lease that an earlier test left.
my $instant = 0;

sub next_instant ($node)
{
	freeze_clock($node, $instant += 60);
}

sub values_of
{
	return split /\n/, $_[0];
}

my $node = new_node('crash', conf => quiet_conf() . "uidgen.max_wait = 200ms\n");
use_fake_clock($node);
next_instant($node);
start_uidgen($node);

# Ids and values drawn in read-only transactions that are still open at the crash.
# Such a transaction takes no xid and commits nothing, so that the only flush is the
# range's own. Without it the record is lost, and the range is handed out again.
# Expected: everything after the crash is above everything before it.

sql("SELECT segment_create('idle'); SELECT uid_generator_create('idle')");
next_instant($node);
# The first id of this server's life draws a worker id; later ones don't.
my $ids = hold_open($node);
my $segment = hold_open($node);
$ids->query_safe('BEGIN READ ONLY');
my $highest = $ids->query_safe('SELECT max(id) FROM unnest(uid_next_array(50000)) AS id');
$segment->query_safe('BEGIN READ ONLY');
my $value = $segment->query_safe("SELECT segment_next('idle')");
crash($node);
cmp_ok(sql('SELECT uid_next()'), '>', $highest, 'a crash in an open read-only transaction: the next id is above');
cmp_ok(sql("SELECT segment_next('idle')"), '>', $value, 'the same for a segment');

# A generator that never drew has an untouched counter, and draws a single id.
next_instant($node);
$ids = hold_open($node);
$ids->query_safe('BEGIN READ ONLY');
$highest = $ids->query_safe("SELECT uid_next('uid_generators.idle')");
crash($node);
cmp_ok(sql("SELECT uid_next('uid_generators.idle')"), '>', $highest, 'the same for a single id, the first of its generator');

# The range that was reserved ahead of its use, and then used: its record was written
# without a flush, so the flush is owed at the switch.
$segment = hold_open($node);
$segment->query_safe('BEGIN READ ONLY');
$value = $segment->query_safe(
	"SELECT max(segment_next('idle')) FROM generate_series(1, 1500)");
crash($node);
cmp_ok(sql("SELECT segment_next('idle')"),
	'>', $value, 'a crash after the switch to a range reserved ahead: the next value is above');

# A lease is never resumed: after a crash, a generator does not know which ids of its
# lease were handed out. With the clock at the same instant, a generator that went on
# inside the lease that it finds would repeat itself.
# Expected: strictly above, as long as max_ahead allows; then an error, and no id.

next_instant($node);
# The same worker id each time, so that no difference in it can hide a repetition.
my $positions =
  '(SELECT (extract(epoch FROM d.generated_at) * 1000 * 4096)::bigint + d.sequence AS position'
  . ' FROM unnest(uid_next_array(5000)) AS id, uid_decode(id) AS d) AS p';
my ($last_position, @lives) = (0);
foreach my $life (1 .. 2)
{
	my ($lowest, $highest_position, @drawn) =
	  split /[|,]/, sql("SELECT min(position), max(position), string_agg(position::text, ',') FROM $positions");
	push @lives, @drawn;
	cmp_ok($lowest, '>', $last_position, "life $life: positions begin above those of all before")
	  if $last_position;
	$last_position = $highest_position;
	crash($node);
}
is(repeated(@lives), '', 'no position came twice at one instant of the clock');
my $state = sqlstate($node, 'SELECT uid_next()');
is($state, '55000', 'a third life at the same instant: an error, when max_ahead is used up');
next_instant($node);
is(sqlstate($node, 'SELECT uid_next()'), '00000', 'it draws again when the clock goes on');

# nextval and segment_next on one sequence. nextval moves the page without logging
# for up to 32 values; so a record that holds only what changed on the page would be
# applied by recovery to a different page. Here nextval has logged 264 = 0x108 and
# moved to 255 = 0xFF; the range up to 511 = 0x1FF changes one byte, and recovery
# would come out at 0x108, below values that were handed out.
# Expected: none of them again. Fewer than a tenth of the range are drawn, because
# the record of the next range would hide the error.

sql('CREATE SEQUENCE mixed');
sql('SELECT nextval(\'mixed\') FROM generate_series(1, 255)');
my @before = values_of(sql("SET uidgen.segment_step = 256; SELECT segment_next('mixed') FROM generate_series(1, 20)"));
is("$before[0] $before[-1]", '256 275', 'segment_next goes on where nextval stands');
crash($node);
my @after = values_of(sql("SET uidgen.segment_step = 256; SELECT segment_next('mixed') FROM generate_series(1, 20)"));
is(repeated(@before, @after), '', 'nextval, then segment_next, then a crash: no value comes again');
cmp_ok($after[0], '>', $before[-1], '... and the next value is above');

# The other way round: nextval after segment_next. If the page kept nextval's count
# of values logged ahead, nextval would go on above our range without logging; a
# crash would take the counter back to the range's end, and the values of committed
# rows would come again, from segment_next as from nextval.
# Expected: nextval keeps its own guarantee; no value of a surviving row comes again.

sql(<<'END');
CREATE SEQUENCE counted;
CREATE TABLE counted_rows (v bigint, drawn_by text);
INSERT INTO counted_rows SELECT nextval('counted'), 'nextval, logs 32 more';
END
sql("INSERT INTO counted_rows SELECT segment_next('counted'), 'segment_next' FROM generate_series(1, 5)");
sql("INSERT INTO counted_rows SELECT nextval('counted'), 'nextval' FROM generate_series(1, 5)");
crash($node);
is(sql('SELECT count(*) FROM counted_rows'), 11, 'the committed rows survived the crash');
sql("INSERT INTO counted_rows SELECT segment_next('counted'), 'segment_next after' FROM generate_series(1, 5)");
sql("INSERT INTO counted_rows SELECT nextval('counted'), 'nextval after' FROM generate_series(1, 5)");
is( sql('SELECT v, string_agg(drawn_by, $$, $$) FROM counted_rows GROUP BY v HAVING count(*) > 1 ORDER BY v LIMIT 5'),
	'', 'segment_next, then nextval, then a crash: no value of a committed row comes again');

# Rows of transactions that committed, rolled back or were open at the crash.
# Expected: what survives, and what comes after, has distinct ids; and no id that any
# session ever received comes again, whatever became of its transaction.

next_instant($node);
sql(<<'END');
SELECT segment_create('rows');
CREATE TABLE rows (id bigint DEFAULT uid_next(), v bigint DEFAULT segment_next('rows'), fate text);
END
my $insert = "INSERT INTO rows (fate) SELECT '%s' FROM generate_series(1, 100) RETURNING id || ' ' || v";
my @sessions = map { hold_open($node) } 1 .. 4;
my @received;
foreach my $round (1 .. 3)
{
	$_->query_safe('BEGIN') foreach @sessions;
	push @received, values_of($_->query_safe(sprintf $insert, "round $round")) foreach @sessions;
	$sessions[0]->query_safe('COMMIT');
	$sessions[1]->query_safe('ROLLBACK');
	$sessions[2]->query_safe("PREPARE TRANSACTION 'round $round'");
	$sessions[3]->query_safe($round < 3 ? 'SAVEPOINT s; ROLLBACK TO s; COMMIT' : 'SELECT 1');
}
crash($node);
sql("COMMIT PREPARED 'round $_'") foreach 1 .. 3;
is(sql('SELECT count(*) FROM rows'), 800, 'the rows of committed and prepared transactions survived');
push @received, values_of($node->safe_psql('postgres', sprintf $insert, 'after'));
is( sql('SELECT count(*) - count(DISTINCT id), count(*) - count(DISTINCT v) FROM rows'),
	'0|0', 'surviving and new rows have distinct ids and values');
is(repeated(map { (split / /)[0] } @received), '', 'no id that a session received came again');
is(repeated(map { (split / /)[1] } @received), '', 'no value that a session received came again');

# ALTER SEQUENCE gives a sequence a new file; a rollback brings the old file and page
# back. A lease taken on the new one would be forgotten.
# Expected: a generator refuses to draw there (55000), works again after ROLLBACK TO,
# and repeats nothing, whether the transaction goes on or ends in a crash.

my @drawn;
foreach my $change ('CACHE 10', 'RESTART', 'OWNED BY NONE CACHE 1 RESTART WITH 7')
{
	next_instant($node);
	my $session = hold_open($node);
	push @drawn, $session->query_safe('SELECT uid_next()');
	$session->query_safe('BEGIN');
	push @drawn, $session->query_safe('SELECT uid_next()');
	$session->query_safe('SAVEPOINT s');
	$session->query_safe("ALTER SEQUENCE $generator $change");
	is(sqlstate($session, 'SELECT uid_next()'),
		'55000', "no id in a transaction that altered the sequence ($change)");
	$session->query_safe('ROLLBACK TO s');
	push @drawn, values_of($session->query_safe('SELECT unnest(uid_next_array(2000))'));
	cmp_ok($drawn[-2000], '>', $drawn[-2001], '... after ROLLBACK TO it goes on above');
	$session->query_safe('COMMIT');
	push @drawn, $session->query_safe('SELECT uid_next()');

	$session->query_safe("BEGIN; ALTER SEQUENCE $generator $change");
	crash($node);
	push @drawn, values_of(sql('SELECT unnest(uid_next_array(2000))'));
	cmp_ok($drawn[-2000], '>', $drawn[-2001], '... after a crash before the commit, too');
}
# Committed, the new file is what counts: drawn from, and remembered after a crash.
next_instant($node);
push @drawn, values_of(sql('SELECT unnest(uid_next_array(2000))'));
sql("ALTER SEQUENCE $generator CACHE 10");
push @drawn, values_of(sql('SELECT unnest(uid_next_array(2000))'));
cmp_ok($drawn[-2000], '>', $drawn[-2001], 'after a committed ALTER SEQUENCE it goes on above');
crash($node);
freeze_clock($node, $instant + 0.5);
push @drawn, values_of(sql('SELECT unnest(uid_next_array(2000))'));
cmp_ok($drawn[-2000], '>', $drawn[-2001], '... and above that after a crash');
is(repeated(@drawn), '', 'no id came twice');

# The lock that keeps the sequence as it is belongs to the transaction: ROLLBACK TO
# must not drop it, because the session goes on drawing in the belief that it holds it.
next_instant($node);
my $session = hold_open($node);
$session->query_safe('BEGIN; SAVEPOINT s');
$session->query_safe('SELECT uid_next()');
$session->query_safe("SELECT segment_next('rows')");
$session->query_safe('ROLLBACK TO s');
is( $session->query_safe(
		"SELECT relation::regclass FROM pg_locks WHERE mode = 'RowExclusiveLock' AND pid = pg_backend_pid()"
		  . " AND relation IN ('$generator'::regclass, 'uid_segments.rows'::regclass) ORDER BY relation::regclass::text"),
	"$generator\nuid_segments.rows", 'the locks on the sequences survive ROLLBACK TO');
$session->query_safe('COMMIT');

# A segment: after a crash in such a transaction the old definition counts, above what was drawn outside.
# (009_segments.t has rollbacks.)
sql("SELECT segment_create('altered')");
foreach my $change ('RESTART 5000000', 'INCREMENT 10')
{
	my $open = hold_open($node);
	my $before = $open->query_safe("SELECT segment_next('altered')");
	$open->query_safe("BEGIN; ALTER SEQUENCE uid_segments.altered $change; SELECT segment_next('altered')");
	crash($node);
	my $next = sql("SELECT segment_next('altered')");
	ok($before < $next && $next < 5000000, "a segment after ALTER SEQUENCE $change and a crash: the old counter, above");
}

$node->stop;
done_testing();
