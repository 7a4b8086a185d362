# What the server remembers of lost generators: a generator that is created again starts above them. A generator that
# lives on is not lost, whatever happened to its slot, and delays no other generator.
use UidgenTest;
use Clock;
use Installation;

skip_with_assertions();

my $node = new_server('lost', conf => "autovacuum = off\nuidgen.max_wait = 100ms\n", clock => 0);
my $day = 86400;

sub next_id
{
	return sql("SELECT uid_next('uid_generators.$_[0]')");
}

# The clock jumps 30 days ahead and back while a generator draws. It is that far ahead now; what is done to it must not
# hold up another generator of its layout, as long as it is there.
sql("SELECT uid_generator_create('altered')");
freeze_clock($node, 30 * $day);
next_id('altered');
freeze_clock($node, 0);
is(sqlstate($node, "SELECT uid_next('uid_generators.altered')"), '55000', 'a generator that is 30 days ahead waits');
sql("SELECT uid_generator_alter('uid_generators.altered', max_ahead_ms => 3000)");
sql("SELECT uid_generator_create('after_alter')");
is(sqlstate($node, "SELECT uid_next('uid_generators.after_alter')"), '00000', '... and when it was altered it holds up no new one');

# A counter that was set back, as by a restore of data or by logical replication of sequences: until it stops, the server
# remembers what it has leased, even after an alteration.
{
	freeze_clock($node, 31 * $day);
	sql("SELECT uid_generator_create('set_back', max_ahead_ms => 10000)");
	my $last = next_id('set_back');
	foreach my $after ('SELECT 1', "SELECT uid_generator_alter('uid_generators.set_back', lease_ms => 900)")
	{
		sql("SELECT setval('uid_generators.set_back', 1000); $after");
		is(sqlstate($node, "SELECT uid_generator_alter('uid_generators.set_back', worker_bits => 4)"), '55000', 'a counter set back gives no other layout');
		my $next = next_id('set_back');
		cmp_ok($next, '>', $last, '... and no id again');
		cmp_ok(sql('SELECT last_value FROM uid_generators.set_back'), '>', 1000, '... and is written up again');
		$last = $next;
	}
	sql("SELECT uid_generator_drop('uid_generators.set_back')");
}

# Each row loses a generator that has drawn: its creation is rolled back, or it is dropped, whatever its slot and its database
# have gone through since. One that is created again, half a second before the time of its last id, starts above it.
my $now = 50 * $day;
my $create = "SELECT uid_generator_create('made'); SELECT uid_next('uid_generators.made')";
my $alter = "SELECT uid_generator_alter('uid_generators.made', max_ahead_ms => 5000)";
my $drop = "SELECT uid_generator_drop('uid_generators.made')";
my $try = 'DO $$ BEGIN PERFORM uid_next($s$uid_generators.made$s$); EXCEPTION WHEN object_in_use OR object_not_in_prerequisite_state THEN END $$';
# As in a session that has not loaded the library: without the preload, it counts from the next definition of any generator on.
my $delete = join '; ', map { "DELETE FROM $_ = 'uid_generators.made'::regclass" } 'pg_seclabel WHERE objoid', 'pg_depend WHERE objid',
  'pg_sequence WHERE seqrelid', 'pg_attribute WHERE attrelid', 'pg_class WHERE oid';
my @unseen = sql('SHOW shared_preload_libraries') =~ /uidgen/ ? () : ('made', 'another');
sql($_) foreach 'SET allow_in_place_tablespaces = on; CREATE TABLESPACE other LOCATION $$$$', map { "CREATE DATABASE $_" } 'moving', 'again';
sql('CREATE EXTENSION uidgen', $_) foreach 'moving', 'again';
foreach my $case (
	[ 'a rollback', "BEGIN; $create; ROLLBACK" ],
	[ 'a rollback to a savepoint', "BEGIN; SAVEPOINT s; $create; ROLLBACK TO s; COMMIT" ],
	[ 'a rollback to a savepoint around one that was released', "BEGIN; SAVEPOINT s; SAVEPOINT t; $create; RELEASE t; ROLLBACK TO s; COMMIT" ],
	[ 'a rollback after an alteration', "BEGIN; $create; $alter; ROLLBACK" ],
	[ 'a rollback after an alteration that did not let it draw', "BEGIN; $create; $alter; $try; ROLLBACK" ],
	[ 'a rollback of a prepared transaction', "BEGIN; $create; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'" ],
	[ 'a DROP after an alteration', "$create; $alter; $drop" ],
	[ 'a DROP after an alteration that made it ready', "$create; $alter; SELECT uid_next_array('uid_generators.made', 0); $drop" ],
	[ 'a DROP after uid_generator_raise', "$create; SELECT uid_generator_raise('uid_generators.made', 5); SELECT uid_next_array('uid_generators.made', 0); $drop" ],
	(map { [ "a DROP that was not seen, created as $_", "$create; $delete", name => $_ ] } @unseen),
	[ 'a DROP in a database that has moved', "$create; $drop", database => 'moving', then => 'ALTER DATABASE moving SET TABLESPACE other' ],
	[ 'a DROP EXTENSION', "$create; DROP EXTENSION uidgen CASCADE; CREATE EXTENSION uidgen", database => 'again' ])
{
	my ($what, $lose, %opts) = @$case;
	my ($database, $name) = ($opts{database} // 'postgres', $opts{name} // 'made');
	$now += $day;
	freeze_clock($node, $now);
	my $lost = (split /\n/, sql($lose, $database))[1];
	sql($opts{then}) if $opts{then};
	freeze_clock($node, $now - 0.5);
	my $next = (split /\n/, sql($create =~ s/made/$name/gr, $database))[1];
	cmp_ok($next, '>', $lost, "lost by $what: one created again starts above it");
	sql("SELECT uid_generator_drop('uid_generators.$name')", $database);
}
sql($_) foreach 'DROP DATABASE moving', 'DROP DATABASE again', 'DROP TABLESPACE other';

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
	sql("$drop; SELECT uid_generator_drop('uid_generators.other')");
}

# A default that is dropped was behind uid_next(). The next one begins above its ids, even after a crash.
{
	$now += $day;
	freeze_clock($node, $now - 5);
	sql("SELECT uid_generator_create(name) FROM unnest('{early,late}'::text[]) name");
	next_id('late');
	sql("SELECT uid_default_set('uid_generators.early')");
	freeze_clock($node, $now);
	my $last = sql('SELECT uid_next()');
	freeze_clock($node, $now - 0.5);
	sql("DROP SEQUENCE uid_generators.early; SELECT uid_default_set('uid_generators.late')");
	$node->stop('immediate');
	start_node($node);
	cmp_ok(sql('SELECT uid_next()'), '>', $last, 'a default chosen after the drop of one starts above it');
	freeze_clock($node, $now + 5);
	sql("SELECT uid_default_set('uid_generators.uid_default'); SELECT uid_generator_drop('uid_generators.late')");
}

# One that is too far ahead to count does not hide one that counts.
{
	$now += $day;
	freeze_clock($node, $now + 30 * $day);
	my $far = (split /\n/, sql("$create; $drop"))[1];
	freeze_clock($node, $now);
	my ($code, $lost, $err) = $node->psql('postgres', $create);
	like($err, qr/WARNING:  generator "made" starts below ids that this database has drawn/, 'a generator that was 30 days ahead holds up no new one, which says so');
	my ($earlier) = $err =~ /HINT:  To stay above them, create another generator whose epoch is earlier by (\d+) s\./;
	my $above = sql("SELECT uid_generator_create('above', template => generator, epoch => epoch - $earlier * interval '1 s') FROM uid_generator"
		  . " WHERE generator = 'uid_generators.made'::regclass; SELECT uid_next('uid_generators.above'); SELECT uid_generator_drop('uid_generators.above')");
	cmp_ok((split /\n/, $above)[1], '>', $far, '... and the generator of the hint draws above');
	sql($drop);
	freeze_clock($node, $now - 0.5);
	cmp_ok((split /\n/, sql($create))[1], '>', (split /\n/, $lost)[1], '... and hides none that is near');
	sql($drop);
	$now += 31 * $day;
}

# Slots of lost generators are freed ten minutes after their last time, and the latest time stays. Many of them are found
# one after another, when other slots are made.
sub slots_of_generators
{
	return sql('SELECT generators FROM uid_stat_server');
}

{
	my $pass = 'DO $$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM uid_generator_create($s$passing$s$, epoch => timestamptz $s$2026-01-01$s$ + i * interval $s$1 s$s$);'
	  . ' PERFORM uid_next($s$uid_generators.passing$s$), uid_generator_drop($s$uid_generators.passing$s$); COMMIT; END LOOP; END $$';
	$now += $day;
	freeze_clock($node, $now);
	my $lost = (split /\n/, sql($create))[1];
	sql($drop);
	sql($pass);
	cmp_ok(slots_of_generators(), '>', 100, 'generators of a hundred layouts are lost, and not forgotten yet');
	freeze_clock($node, $now + 601);
	sql($pass);
	sql($pass);
	freeze_clock($node, $now - 0.5);
	cmp_ok(slots_of_generators(), '<', 250, 'after ten minutes their slots are used again');
	cmp_ok((split /\n/, sql($create))[1], '>', $lost, '... and a generator still starts above the latest one');
}

# A first draw looks no generator up, however many there are. The clock stands still, so that none is passed.
{
	freeze_clock($node, $now);
	my $lookups = sub ($name) {
		my $count = q{SELECT idx_scan FROM pg_stat_xact_sys_tables WHERE relname = 'pg_class'};
		my ($before, $after) = (split /\n/, sql("BEGIN; SELECT uid_generator_create('$name') IS NULL; $count; SELECT uid_next('uid_generators.$name') IS NULL; $count; COMMIT"))[ 1, 3 ];
		return $after - $before;
	};
	my $few = $lookups->('first');
	sql(q{SELECT count(uid_next(uid_generator_create('crowd_' || i))) FROM generate_series(1, 200) AS i});
	cmp_ok($lookups->('last'), '<', $few + 10, 'a first draw looks up as many relations beside 200 generators as before');
}

$node->stop;
done_testing();
