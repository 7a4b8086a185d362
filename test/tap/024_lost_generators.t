# What the server remembers of lost generators: a generator that is created again starts above them. A generator that
# lives on is not lost, whatever happened to its slot, and delays no other generator.
use UidgenTest;

skip_with_assertions();

# Few slots, so that each can be taken away.
my $node = new_node('lost', conf => <<'END');
autovacuum = off
uidgen.max_slots = 5
uidgen.max_wait = 100ms
END
use_fake_clock($node);
freeze_clock($node);
start_uidgen($node);
my $day = 86400;

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub next_id
{
	return sql("SELECT uid_next('uid_generators.$_[0]')");
}

# ---------------------------------------------------------------------------
# The clock jumps 30 days ahead and back while two generators of one layout draw. They are that far ahead now; what is
# done to them must not hold up another generator, as long as they are there.
# ---------------------------------------------------------------------------
sub has_slot
{
	return sql("SELECT count(*) FROM uid_internal.uid_slots() WHERE sequence = 'uid_generators.$_[0]'::regclass");
}

# A transaction that uses as many generators as there are slots.
sub take_all_slots
{
	sql('BEGIN; ' . join('; ', map { "SELECT uid_next('uid_generators.taker$_')" } 1 .. 5) . '; COMMIT');
	return;
}

# Another layout than that of the generators under test.
sql("SELECT uid_generator_create('taker' || i, 'sonyflake', max_ahead_ms => 600000) FROM generate_series(1, 5) AS i");
sql("SELECT uid_generator_create(name) FROM unnest(ARRAY['altered', 'reclaimed']) AS name");
freeze_clock($node, 30 * $day);
next_id($_) foreach qw(altered reclaimed);
freeze_clock($node, 0);
is(sqlstate($node, "SELECT uid_next('uid_generators.altered')"), '55000', 'a generator that is 30 days ahead waits');
sql("SELECT uid_generator_alter('uid_generators.altered', max_ahead_ms => 3000)");
sql("SELECT uid_generator_create('after_alter')");
is(sqlstate($node, "SELECT uid_next('uid_generators.after_alter')"), '00000', '... and when it was altered it holds up no new one');
take_all_slots();
is(has_slot($_), 0, "$_ has no slot") foreach qw(altered reclaimed);
sql("SELECT uid_generator_create('after_reclaim')");
is(sqlstate($node, "SELECT uid_next('uid_generators.after_reclaim')"), '00000', '... nor when its slot was taken away');

# Dropped, each counts, though it has no slot: the clock is half a second behind its last id.
foreach my $name (qw(altered reclaimed))
{
	freeze_clock($node, ($name eq 'altered' ? 30 : 40) * $day);
	my $last = next_id($name);
	sql("SELECT uid_generator_alter('uid_generators.altered', max_ahead_ms => 4000)") if $name eq 'altered';
	take_all_slots() if $name eq 'reclaimed';
	is(has_slot($name), 0, "$name has no slot");
	freeze_clock($node, ($name eq 'altered' ? 30 : 40) * $day - 0.5);
	sql("SELECT uid_generator_drop('uid_generators.$name'); SELECT uid_generator_create('$name')");
	cmp_ok(next_id($name), '>', $last, '... and when it is dropped, one created again starts above it');
}

# ---------------------------------------------------------------------------
# A creation that is rolled back is a loss, too: of the transaction, or of a savepoint in it.
# ---------------------------------------------------------------------------
my $now = 50 * $day;
my $create = "SELECT uid_generator_create('made'); SELECT uid_next('uid_generators.made')";
foreach my $case ([ 'a transaction', "BEGIN; $create; ROLLBACK" ], [ 'a savepoint', "BEGIN; SAVEPOINT s; $create; ROLLBACK TO s; COMMIT" ],
	[ 'a transaction that has altered it', "BEGIN; $create; SELECT uid_generator_alter('uid_generators.made', max_ahead_ms => 5000); ROLLBACK" ],
	[ 'a savepoint around one that was released', "BEGIN; SAVEPOINT s; SAVEPOINT t; $create; RELEASE t; ROLLBACK TO s; COMMIT" ])
{
	my ($what, $sql) = @$case;
	$now += $day;
	freeze_clock($node, $now);
	my $lost = (split /\n/, sql($sql))[1];
	freeze_clock($node, $now - 0.5);
	my $next = (split /\n/, sql($create))[1];
	cmp_ok($next, '>', $lost, "a creation rolled back with $what: created again it starts above");
	sql("SELECT uid_generator_drop('uid_generators.made')");
}

# A savepoint takes only what it has created itself.
{
	$now += $day;
	freeze_clock($node, $now);
	my $session = hold_open($node);
	my $kept = (split /\n/, $session->query_safe("BEGIN; $create"))[1];
	$session->query_safe('SAVEPOINT s; SELECT uid_generator_create($$other$$); ROLLBACK TO s');
	freeze_clock($node, $now - 0.5);
	my $other = $session->query_safe("SELECT uid_generator_create('other'); SELECT uid_next('uid_generators.other')");
	cmp_ok((split /\n/, $other)[1], '<', $kept, 'a savepoint that is rolled back loses nothing that was created before it');
	cmp_ok($session->query_safe("SELECT uid_next('uid_generators.made')"), '>', $kept, '... which goes on');
	$session->query_safe('COMMIT');
	$session->quit;
	sql("SELECT uid_generator_drop('uid_generators.made'), uid_generator_drop('uid_generators.other')");
}

# ---------------------------------------------------------------------------
# More are lost than the server remembers: the latest time stays.
# ---------------------------------------------------------------------------
{
	$now += $day;
	freeze_clock($node, $now);
	my $lost = (split /\n/, sql($create))[1];
	sql("SELECT uid_generator_drop('uid_generators.made')");
	freeze_clock($node, $now - $day / 2);
	sql('DO $$ BEGIN FOR i IN 1 .. 1100 LOOP PERFORM uid_generator_create($s$passing$s$, epoch => timestamptz $s$2026-01-01$s$ + i * interval $s$1 s$s$);'
		  . ' PERFORM uid_next($s$uid_generators.passing$s$), uid_generator_drop($s$uid_generators.passing$s$); COMMIT; END LOOP; END $$');
	freeze_clock($node, $now - 0.5);
	cmp_ok((split /\n/, sql($create))[1], '>', $lost, 'after 1100 other layouts a generator still starts above the latest one');
}

$node->stop;
done_testing();
