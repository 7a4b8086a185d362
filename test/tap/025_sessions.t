# The state of a session: its last values, which DISCARD resets; its memory for sequences, which is freed when they are
# dropped; and how it finds the slots of other sessions.
use UidgenTest;
use Clients;

my $node = new_server('sessions', conf => "autovacuum = off\n");
$node->safe_psql('postgres', "CREATE SEQUENCE plain; SELECT segment_create('a'), segment_create('b'), uid_generator_create('ring', 'baidu_cached', max_ahead_ms => 600000, when_full => 'borrow')");

# DISCARD ALL and DISCARD SEQUENCES end uid_last() and segment_last(), as they end currval() and lastval(). Nothing else
# does, and the next values are the very next ones.
{
	my $session = hold_open($node);
	my @last = ('uid_last()', "segment_last('a')", "segment_last('b')", "segment_last('uid_segments.a')", 'lastval()');
	my $states = sub { return join ' ', map { scalar sqlstate($session, "SELECT $_") } @last };
	my $lasts = sub { return join ' ', map { $session->query_safe("SELECT $_") } @last };
	my $expected = 0;
	foreach my $draw ('uid_next()', "uid_next('uid_generators.ring')")
	{
		foreach my $discard ('DISCARD ALL', 'DISCARD SEQUENCES', 'DO $$ BEGIN EXECUTE \'DISCARD SEQUENCES\'; END $$')
		{
			$expected++;
			my $id = $session->query_safe("SELECT $draw");
			is($session->query_safe("SELECT segment_next('a'), segment_next('b')"), "$expected|$expected", 'the very next values');
			$session->query_safe("SELECT nextval('plain')");
			my $before = $lasts->();
			like($before, qr/^$id $expected $expected $expected \d+$/, 'the last values of the session');
			$session->query_safe('DISCARD PLANS; DISCARD TEMP; RESET ALL');
			is($lasts->(), $before, 'DISCARD PLANS and TEMP leave them');
			is(sqlstate($session, 'BEGIN; DISCARD ALL'), '25001', 'DISCARD ALL that fails');
			$session->query_safe('ROLLBACK');
			is($lasts->(), $before, '... leaves them, too');
			$session->query_safe($discard);
			is($states->(), '55000 55000 55000 55000 55000', "$discard ends them");
		}
	}
	is($session->query_safe("SELECT segment_next('b')"), $expected + 1, 'and draws go on');
	is(sqlstate($session, "SELECT segment_last('a')"), '55000', '... each with a last value of its own');
	is($session->query_safe("SELECT segment_last('b')"), $expected + 1, '... once it was drawn from');
	$session->quit;
}

# A session that goes on creating, drawing from and dropping sequences does not grow, and keeps what is still there.
{
	my $session = hold_open($node);
	$session->query_safe('SET client_min_messages = warning');
	my $used = 'SELECT sum(used_bytes) FROM pg_backend_memory_contexts';
	my $rounds = 'DO $$ BEGIN FOR i IN 1 .. %d LOOP CREATE SEQUENCE passing; PERFORM segment_next($s$passing$s$); DROP SEQUENCE passing;'
	  . ' PERFORM uid_generator_create($s$passing$s$); PERFORM uid_next($s$uid_generators.passing$s$); PERFORM uid_generator_drop($s$uid_generators.passing$s$);'
	  . ' COMMIT; END LOOP; END $$';
	is($session->query_safe("SELECT segment_next('a')"), 7, 'a segment that stays');
	$session->query_safe("SELECT segment_next('b')");
	$session->query_safe(sprintf $rounds, 100);
	my $before = $session->query_safe($used);
	$session->query_safe(sprintf $rounds, 500);
	my $grown = $session->query_safe($used) - $before;
	cmp_ok($grown, '<', 1000 * 100, "a thousand sequences that were drawn from and dropped take less than 100 bytes each ($grown)");
	is($session->query_safe("SELECT segment_last('a')"), 7, '... and those that are there are known');
	is($session->query_safe("SELECT segment_next('a')"), 8, '... and go on');

	# Sequences that another session drops; a failed call for what is no sequence; a creation that is rolled back.
	$session->query_safe("DO \$\$ BEGIN FOR i IN 1 .. 200 LOOP EXECUTE format('CREATE SEQUENCE s%s', i); PERFORM segment_next(format('s%s', i)); END LOOP; END \$\$");
	$node->safe_psql('postgres', "DO \$\$ BEGIN FOR i IN 1 .. 200 LOOP EXECUTE format('DROP SEQUENCE s%s', i); END LOOP; END \$\$");
	# (PostgreSQL's own caches keep that an oid is not there.)
	$used .= " WHERE name = 'TopMemoryContext'";
	$before = $session->query_safe($used);
	my $failing = 'DO $$ BEGIN FOR i IN 1 .. 500 LOOP BEGIN PERFORM segment_next((4000000000 + i)::regclass); EXCEPTION WHEN undefined_table THEN NULL; END;'
	  . ' BEGIN CREATE SEQUENCE passing; PERFORM segment_next($s$passing$s$); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$';
	$session->query_safe($failing);
	$grown = $session->query_safe($used) - $before;
	cmp_ok($grown, '<', 1000 * 100, "... also where others drop them, calls fail, creations are rolled back ($grown)");
	is($session->query_safe("SELECT segment_next('a'), segment_last('b')"), '9|8', '... and those that stay go on');
	$session->quit;
}

# Sessions whose first calls make the first slots of the server at the same time.
{
	$node->safe_psql('postgres', join ';', map { "SELECT uid_generator_create('g$_')" } 1 .. 5);
	$node->restart;
	my @calls = ("segment_next('plain'::regclass)", map { "uid_next('uid_generators.g$_')" } 1 .. 5);
	my $locker = hold_open($node);
	my @sessions = map { hold_open($node) } @calls;
	$locker->query_safe('BEGIN; LOCK TABLE pg_seclabel');
	send_query($sessions[$_], "SELECT $calls[$_] > 0") foreach 0 .. $#calls;
	$node->poll_query_until('postgres', "SELECT count(*) = 6 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") or die 'they do not wait';
	$locker->query_safe('COMMIT');
	is(join(' ', map { (finish_query($_))[0] } @sessions), 't t t t t t', 'first calls as the slots of other sessions appear');
	$_->quit foreach ($locker, @sessions);
}

# With the preload, the first draws of a connection read neither labels nor pg_extension, because other sessions have read
# them.
if ($node->safe_psql('postgres', 'SHOW shared_preload_libraries') =~ /uidgen/)
{
	my @calls = ('uid_next()', "uid_next('uid_generators.g1')", "segment_next('known')", "segment_next('uid_segments.known'::regclass)");
	my $draw = 'SELECT ' . join ', ', map { "$_ > 0" } @calls;
	$node->safe_psql('postgres', "SELECT segment_create('known', step => 10000)");
	$node->safe_psql('postgres', $draw);
	my ($locker, $late) = map { hold_open($node) } 1, 2;
	$locker->query_safe('BEGIN; LOCK TABLE pg_seclabel, pg_extension');
	is($late->query_safe("SET statement_timeout = '1min'; $draw"), 't|t|t|t', 'what other sessions know is not read again');
	$locker->query_safe('COMMIT');
	$_->quit foreach $locker, $late;
}

# A failed draw resets only what its own transaction has created. Otherwise other sessions, which draw from the sequence
# under the same lock, would have the values of the former slot and those of the new one.
foreach my $kind ([ 'segment', 'segment_create', 'segment_next', 'uid_segments' ], [ 'generator', 'uid_generator_create', 'uid_next', 'uid_generators', ", 'baidu_cached', boost_power => 0" ])
{
	my ($what, $create, $next, $schema, $options) = (@$kind, '');
	my ($creator, $drawer, $other) = map { hold_open($node) } 1 .. 3;
	$creator->query_safe('SET client_min_messages = error');
	my $draw = sub { split /\n/, $_[0]->query_safe("SELECT $next('$schema.${what}_1'::regclass) FROM generate_series(1, $_[1])") };
	$creator->query_safe("BEGIN; SELECT $create('${what}_1'$options); SELECT $next('$schema.${what}_1'::regclass); COMMIT");
	$drawer->query_safe('BEGIN');
	my @values = ($draw->($drawer, 1), $draw->($other, 50));
	$creator->query_safe("BEGIN; SELECT $create('${what}_2'$options); SELECT $next('$schema.${what}_2'::regclass)");
	is(sqlstate($creator, "SET LOCAL ROLE pg_monitor; SELECT $next('$schema.${what}_1'::regclass)"), '42501', "a draw from a $what fails in a transaction that has created another one");
	$creator->query_safe('ROLLBACK');
	push @values, $draw->($other, 10), $draw->($drawer, 20);
	is(repeated(@values), '', '... and no value comes twice');
	$drawer->query_safe('COMMIT');
	$_->{stderr} = '', $_->quit foreach $creator, $drawer, $other;
}

$node->stop;
done_testing();
