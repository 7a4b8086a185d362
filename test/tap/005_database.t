# Databases and sequences that are dropped and created again. Later ones must not meet the slots of former ones, draws
# must go on if the DROP does not happen, and a slot must never block a DROP or a copy.
use UidgenTest;

my $node = new_node('database');
start_uidgen($node);

# The lock is taken under the transaction, not under the savepoint that happened to be open.
{
	$node->safe_psql('postgres', 'CREATE SEQUENCE locked');
	my $one = hold_open($node);
	$one->query_safe('BEGIN; SAVEPOINT a');
	my $first = $one->query_safe("SELECT segment_next('locked'::regclass)");
	$one->query_safe('ROLLBACK TO a');

	is( $node->safe_psql(
			'postgres',
			"SELECT mode FROM pg_locks WHERE relation = 'locked'::regclass AND locktype = 'relation'"),
		'RowExclusiveLock',
		'ROLLBACK TO leaves the lock of a draw held');
	like(
		failure("SET lock_timeout = '10ms'; ALTER SEQUENCE locked INCREMENT 2"),
		qr/55P03/, 'ALTER SEQUENCE waits for a draw made inside a savepoint that was rolled back');
	like(
		failure("SET lock_timeout = '10ms'; DROP SEQUENCE locked"),
		qr/55P03/, 'and so does DROP SEQUENCE');
	is($one->query_safe("SELECT segment_next('locked'::regclass)"),
		$first + 1, 'the session draws on in order');
	$one->query_safe('COMMIT');
	$one->quit;
	$node->safe_psql('postgres', 'DROP SEQUENCE locked');
}

# A DROP DATABASE that is refused changes nothing for those who draw.
{
	$node->safe_psql('postgres', 'CREATE DATABASE busy');
	$node->safe_psql('busy', 'CREATE EXTENSION uidgen; CREATE SEQUENCE s');
	my $session = hold_open($node, dbname => 'busy');
	my $segment = $session->query_safe("SELECT segment_next('s'::regclass)");
	my $id = $session->query_safe('SELECT uid_next()');
	my $ids = background_loop($node, clients => 2, dbname => 'busy');
	$node->poll_query_until('busy',
		"SELECT bool_or(records > 0) FROM uid_stat WHERE kind = 'generator'")
	  or die 'nobody draws';

	like(failure('DROP DATABASE busy'), qr/55006/, 'DROP DATABASE is refused while sessions draw');
	is($session->query_safe("SELECT segment_next('s'::regclass)"),
		$segment + 1, 'the range in hand goes on after a refused DROP DATABASE');
	cmp_ok($session->query_safe('SELECT uid_next()'), '>', $id, 'ids go on above');
	assert_unique(stop_loop($ids));

	# The same in a transaction that fails later.
	$session->query_safe('SELECT 1');
	like(failure('BEGIN; DROP DATABASE busy'), qr/25001/, 'DROP DATABASE in a transaction block');
	is($session->query_safe("SELECT segment_next('s'::regclass)"),
		$segment + 2, 'leaves the range in hand too');
	$session->quit;
	$node->safe_psql('postgres', 'DROP DATABASE busy WITH (FORCE)');
	pass('DROP DATABASE WITH (FORCE) is not held up');
}

# A database made again with the same oid, sequence oid, file and page must not meet the old one's range.
{
	$node->safe_psql('postgres', 'CREATE DATABASE mould');
	$node->safe_psql('mould', 'CREATE EXTENSION uidgen; CREATE SEQUENCE s');
	my $identity = "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), 's'::regclass::oid, "
	  . "pg_relation_filenode('s'), last_value, is_called FROM s";

	$node->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE mould OID 50000');
	is($node->safe_psql('twin', "SELECT segment_next('s'::regclass)"), 1, 'the first twin draws');
	$node->safe_psql('twin', 'SELECT count(uid_next()) FROM generate_series(1, 10)');
	my $before = $node->safe_psql('twin', $identity);
	$node->safe_psql('postgres', 'DROP DATABASE twin');

	# The page that the first twin left behind, in the mould.
	my $last = (split /\|/, $before)[3];
	$node->safe_psql('mould', "SELECT setval('s', $last, true)");
	$node->safe_psql('postgres', 'CREATE DATABASE twin TEMPLATE mould OID 50000');
	is($node->safe_psql('twin', $identity), $before, 'the second twin cannot be told from the first');
	is($node->safe_psql('twin', 'SELECT count(*) FROM uid_internal.uid_slots()'),
		0, 'a new database has no slots');
	is($node->safe_psql('twin', "SELECT segment_next('s'::regclass)"),
		$last + 1, 'it goes on above its own page, not inside the range of a dropped database');
	is($node->safe_psql('twin', 'SELECT uid_next() > 0'), 't', 'its generator works');
	is(wait_for_node_rows($node, '%', 1, dbname => 'twin'), 1, 'and drew a worker id of its own');
	$node->safe_psql('postgres', 'DROP DATABASE twin');
	$node->safe_psql('postgres', 'DROP DATABASE mould');
}

# Nothing of ours stays connected: a copy or a DROP right after use goes through. The copy goes on above.
{
	$node->safe_psql('postgres', 'CREATE DATABASE round0');
	$node->safe_psql('round0',
		"CREATE EXTENSION uidgen; CREATE SEQUENCE s; SELECT uid_generator_create('g'); CREATE TABLE t (id bigint, other bigint, n bigint)");
	my $draw = "INSERT INTO t SELECT uid_next(), uid_next('uid_generators.g'), segment_next('s') FROM generate_series(1, 3000)";
	my $above = 0;
	foreach my $round (1 .. 3)
	{
		my $from = 'round' . ($round - 1);
		$node->safe_psql($from, $draw);
		$node->safe_psql('postgres', "CREATE DATABASE round$round TEMPLATE $from");
		$node->safe_psql($from, $draw);
		$node->safe_psql('postgres', "DROP DATABASE $from");
		$above += $node->safe_psql("round$round",
			"SELECT 1 WHERE uid_next() > (SELECT max(id) FROM t) AND uid_next('uid_generators.g') > (SELECT max(other) FROM t) "
			  . "AND segment_next('s') > (SELECT max(n) FROM t)");
	}
	is($above, 3, 'databases are copied and dropped right after use, and each copy goes on above');
	is( $node->safe_psql('round3',
			'SELECT count(*), count(DISTINCT id), count(DISTINCT other), count(DISTINCT n) FROM t'),
		'9000|9000|9000|9000',
		'a line of copies repeats nothing');
}

# A database in another encoding: the install script and messages are ASCII.
foreach my $encoding ('LATIN1', 'EUC_JP')
{
	$node->safe_psql('postgres', "CREATE DATABASE encoded ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	$node->safe_psql('encoded', 'CREATE EXTENSION uidgen');
	is($node->safe_psql('encoded', 'SELECT uid_next() > 0'), 't', "CREATE EXTENSION in a database of encoding $encoding");
	like(failure("SELECT uid_generator_alter('uid_generators.uid_default', time_bits => 40)", 'encoded'), qr/HINT:  Create another generator above it/, 'with all of a message');
	$node->safe_psql('postgres', 'DROP DATABASE encoded');
}

# A sequence's slot is of no use after a DROP that commits, and after no other.
{
	$node->safe_psql('postgres', "CREATE SEQUENCE s; SELECT segment_create('named'), uid_generator_create('g')");
	my $slots = "SELECT count(*) FROM uid_internal.uid_slots() WHERE sequence::text ~ '^(s|uid_segments.named|uid_generators.g|[0-9]+)\$'";
	my $all = 'DROP SEQUENCE s, uid_segments.named, uid_generators.g';
	my $session = hold_open($node);
	my $draws = "SELECT segment_next('s'), segment_next('named'), uid_next('uid_generators.g') > 0";

	is($session->query_safe($draws), '1|1|t', 'three slots come into use');
	is($node->safe_psql('postgres', $slots), 3, 'uid_slots() shows them');
	$node->safe_psql('postgres', "BEGIN; $all; ROLLBACK");
	is($node->safe_psql('postgres', $slots), 2, "a DROP that is rolled back keeps those of segments; a generator's is made again, as after an alteration");
	is($session->query_safe($draws), '2|2|t', 'with the ranges in hand');
	$node->safe_psql('postgres', "BEGIN; SAVEPOINT a; $all; ROLLBACK TO a; COMMIT");
	is($session->query_safe($draws), '3|3|t', 'and so does one in a savepoint that is rolled back');
	like(failure("BEGIN; $all; SELECT 1 / 0"), qr/22012/, 'and one in a transaction that fails');
	is($session->query_safe($draws), '4|4|t', 'and draws go on');
	$node->safe_psql('postgres', $all);
	is($node->safe_psql('postgres', $slots), 0, 'after a DROP that commits none is shown');
	is($node->safe_psql('postgres', "SELECT count(*) FROM uid_generator WHERE NOT builtin"),
		0, 'and leaves no row');
	like(failure($session, $draws), qr/does not exist/, 'the session that used them gets an error');
	$node->safe_psql('postgres', "CREATE SEQUENCE s START 100; SELECT segment_create('named', 200), uid_generator_create('g')");
	is($session->query_safe($draws), '100|200|t', 'and draws from new ones of the same names');

	# Sequences that go with what they belong to.
	$node->safe_psql('postgres',
		"CREATE SCHEMA own; CREATE TABLE own.t (id bigserial); SELECT segment_next('own.t_id_seq')");
	is($node->safe_psql('postgres', "SELECT count(*) FROM uid_internal.uid_slots() WHERE sequence::text = 'own.t_id_seq'"),
		1, 'a serial column has a slot');
	$node->safe_psql('postgres', 'DROP SCHEMA own CASCADE');
	is($node->safe_psql('postgres', "SELECT count(*) FROM uid_internal.uid_slots() WHERE sequence::text ~ '^[0-9]+\$|own'"),
		0, 'which goes with its schema');
	$session->quit;
}

done_testing();
