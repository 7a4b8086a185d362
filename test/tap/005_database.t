# Databases and sequences that are dropped and created again. Later ones must not meet the slots of former ones, draws
# must go on if the DROP does not happen, and a slot must never block a DROP. (001_matrix.t copies databases.)
use UidgenTest;
use Clients;

my $node = new_server('database');

# A DROP DATABASE that is refused changes nothing for those who draw.
{
	sql('CREATE DATABASE busy');
	sql('CREATE EXTENSION uidgen; CREATE SEQUENCE s', 'busy');
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
	sql('DROP DATABASE busy WITH (FORCE)');
	pass('DROP DATABASE WITH (FORCE) is not held up');
}

# A database made again with the same oid, sequence oid, file and page must not meet the old one's range.
{
	sql('CREATE DATABASE mould');
	sql('CREATE EXTENSION uidgen; CREATE SEQUENCE s', 'mould');
	my $identity = "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), 's'::regclass::oid, "
	  . "pg_relation_filenode('s'), last_value, is_called FROM s";

	sql('CREATE DATABASE twin TEMPLATE mould OID 50000');
	is(sql("SELECT segment_next('s'::regclass)", 'twin'), 1, 'the first twin draws');
	sql('SELECT count(uid_next()) FROM generate_series(1, 10)', 'twin');
	my $before = sql($identity, 'twin');
	sql('DROP DATABASE twin');

	# The page that the first twin left behind, in the mould.
	my $last = (split /\|/, $before)[3];
	sql("SELECT setval('s', $last, true)", 'mould');
	sql('CREATE DATABASE twin TEMPLATE mould OID 50000');
	is(sql($identity, 'twin'), $before, 'the second twin cannot be told from the first');
	is(sql('SELECT (SELECT count(*) FROM uid_internal.uid_live_generators()) + (SELECT count(*) FROM uid_internal.uid_live_segments())', 'twin'), 0, 'a new database has no slots');
	is(sql("SELECT segment_next('s'::regclass)", 'twin'),
		$last + 1, 'it goes on above its own page, not inside the range of a dropped database');
	is(sql('SELECT uid_next() > 0', 'twin'), 't', 'its generator works');
	is(wait_for_node_rows($node, '%', 1, dbname => 'twin'), 1, 'and drew a worker id of its own');
	sql('DROP DATABASE twin');
	sql('DROP DATABASE mould');
}

done_testing();
