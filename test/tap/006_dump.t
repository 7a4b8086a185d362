# Dumps: whichever way a database is dumped and restored, its generators, segments and worker ids continue above
# everything in the restored rows.
use UidgenTest;
use Clients;
use Pages;

my $source = new_server('source');
my $target = new_node('target');
start_node($target);
my $directory = PostgreSQL::Test::Utils::tempdir();

sub both ($sql)
{
	$_->safe_psql('postgres', $sql) foreach ($source, $target);
}

sub dump_to ($dbname, $file, @options)
{
	return $source->command_ok([ 'pg_dump', @options, '-f', "$directory/$file", '-d', $source->connstr($dbname) ],
		"pg_dump @options $dbname");
}

sub restore ($node, $dbname, $file, @options)
{
	my @command =
	  $file =~ /\.sql$/
	  ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/$file", '-d', $node->connstr($dbname))
	  : ('pg_restore', '--exit-on-error', @options, '-d', $node->connstr($dbname), "$directory/$file");
	return $node->command_ok(\@command, "restore of $file @options");
}

# What must be the same after a restore: all that is data.
my $everything = <<'SQL';
SELECT 'generator', g.generator::text, g.preset, g.epoch::text, g.time_bits || '/' || g.datacenter_bits || '/' || g.worker_bits || '/' || g.sequence_bits, g.builtin::text, pg_sequence_last_value(g.generator)::text
  FROM uid_generator g
UNION ALL SELECT 'segment', n.name, n.sequence::text, n.step::text, s.seqincrement::text, s.seqmin::text, pg_sequence_last_value(n.sequence)::text
  FROM uid_segment n JOIN pg_sequence s ON s.seqrelid = n.sequence
UNION ALL SELECT 'node', id::text, generator, worker_id::text, system_identifier::text, created::text, host_name FROM worker_node
UNION ALL SELECT 'identity', last_value::text, is_called::text, '', '', '', '' FROM worker_node_id_seq
UNION ALL SELECT 'acl', oid::regclass::text, relowner::regrole::text, array_to_string(ARRAY(SELECT unnest(relacl)::text ORDER BY 1), ','), '', '', '' FROM pg_class
  WHERE relkind = 'S' AND relname <> 'worker_node_id_seq' OR relname IN ('uid_generator', 'uid_segment', 'worker_node', 'documents')
UNION ALL SELECT 'schema acl', nspname, array_to_string(ARRAY(SELECT unnest(nspacl)::text ORDER BY 1), ','), '', '', '', '' FROM pg_namespace WHERE nspname LIKE 'uid_%'
UNION ALL SELECT 'rows', count(*)::text, max(id)::text, max(other)::text, max(ticket)::text, max(named)::text, '' FROM documents
ORDER BY 1, 2, 3
SQL

# What the labels say.
my $definitions = 'SELECT to_jsonb(g) FROM uid_generator AS g ORDER BY generator::text; SELECT to_jsonb(s) FROM uid_segment AS s ORDER BY name';

# Draws in every way must be above every row.
my $above = <<'SQL';
SELECT uid_next() > max(id), uid_next('uid_generators.of_alice') > max(other), segment_next('Any "name", of.any kind') > max(named),
       segment_next('serials'::regclass) > max(ticket), uid_next('uid_generators.of_bob') > 0 FROM documents
SQL

both('CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE carol');
my $fill = <<'SQL';
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO alice, bob;
GRANT CREATE ON SCHEMA public TO alice;
SET ROLE alice;
SELECT uid_generator_create('of_alice');
SELECT segment_create('Any "name", of.any kind', 500, 7), segment_create(repeat('long name ', 30));
GRANT USAGE ON SEQUENCE uid_generators.of_alice TO bob WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE uid_segments."Any ""name"", of.any kind" TO PUBLIC;
SET ROLE bob;
SELECT uid_generator_create('of_bob'), segment_create('unused', -5);
GRANT ALL ON SEQUENCE uid_generators.of_alice TO carol;
SET ROLE alice;
CREATE SEQUENCE serials;
CREATE TABLE documents (
  id bigint PRIMARY KEY DEFAULT uid_next(),
  other bigint DEFAULT uid_next('uid_generators.of_alice'),
  ticket bigint DEFAULT segment_next('serials'::regclass),
  named bigint DEFAULT segment_next('Any "name", of.any kind'));
INSERT INTO documents SELECT FROM generate_series(1, 5000);
RESET ROLE;
SELECT uid_next('uid_generators.of_bob');
REVOKE USAGE ON SEQUENCE uid_generators.uid_default FROM PUBLIC;
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO alice;
SQL
$source->safe_psql('postgres', $fill);
wait_for_node_rows($source, '%', 3);
my $expected = $source->safe_psql('postgres', $everything);
like($expected, qr/^node\|.*uid_generators\.of_bob/m, 'there is something to lose');

# Whole dumps, into another server and into another database of the same.
foreach my $case ([ 'whole.sql', $target, 'plain', '-Fp' ], [ 'whole.dump', $target, 'custom', '-Fc' ],
	[ 'again.dump', $source, 'beside', '-Fc' ])
{
	my ($file, $node, $dbname, $format) = @$case;
	dump_to('postgres', $file, $format);
	unlike(slurp_file("$directory/$file"), qr/^SECURITY LABEL.*uid_generators\.uid_default/m, 'the label of the builtin generator is not in a dump') if $format eq '-Fp';
	$node->safe_psql('postgres', "CREATE DATABASE $dbname");
	restore($node, $dbname, $file);
	is($node->safe_psql($dbname, $everything), $expected, "everything is back ($file)");
	is($node->safe_psql($dbname, 'SELECT count(*) FROM worker_node AS w JOIN uid_generator AS g ON g.generator::text = w.generator'),
		3, 'with the rows of worker_node');
	is($node->safe_psql($dbname, $above), 't|t|t|t|t', 'draws go on above');
	$node->safe_psql($dbname, 'INSERT INTO documents SELECT FROM generate_series(1, 3000)');
	is($node->safe_psql($dbname, 'SELECT count(*), count(DISTINCT id), count(DISTINCT other), count(DISTINCT ticket), count(DISTINCT named) FROM documents'),
		'8000|8000|8000|8000|8000', 'and repeat nothing');
	wait_for_node_rows($node, '%', 6, dbname => $dbname);
	is( $node->safe_psql($dbname,
			'SELECT count(*), bool_and(n.id > o.last) FROM worker_node AS n, (SELECT max(id) AS last FROM worker_node WHERE '
			  . "created <= (SELECT max(created) FROM worker_node WHERE id <= 3)) AS o WHERE n.id > 3"),
		'3|t', 'new draws of worker ids are above the old ones');
	like(failure($node, "SET ROLE carol; SELECT uid_next('uid_generators.of_bob')", $dbname), qr/ERROR:  42501/, 'who may not draw may not');
	is($node->safe_psql($dbname, "SET ROLE carol; SELECT uid_next('uid_generators.of_alice') > 0"), 't', 'who may may');
	like(failure($node, 'SET ROLE carol; SELECT uid_next()', $dbname), qr/ERROR:  42501/, "what was revoked of the extension's own stays revoked");
	is($node->safe_psql($dbname, "SET ROLE bob; SELECT uid_generator_create('another'); SELECT uid_next('uid_generators.another') > 0; DROP SEQUENCE uid_generators.another"),
		"uid_generators.another\nt", 'and who may make');
	is($node->safe_psql($dbname, 'SELECT count(*) FROM uid_generator'), 3, 'rows go with their sequences');
}

# All of a server.
{
	$source->command_ok([ 'pg_dumpall', '-f', "$directory/all.sql", '-d', $source->connstr('postgres') ], 'pg_dumpall');
	my $third = new_node('third');
	start_node($third);
	# Says that the roles and databases of initdb are there already.
	PostgreSQL::Test::Utils::run_log([ 'psql', '-Xq', '-f', "$directory/all.sql", '-d', $third->connstr('postgres') ]);
	is($third->safe_psql('postgres', $everything), $expected, 'everything is back (pg_dumpall)');
	is($third->safe_psql('postgres', $above), 't|t|t|t|t', 'draws go on above');
	is($third->safe_psql('beside', 'SELECT uid_next() > max(id) FROM documents'), 't', 'in every database');
	$third->stop;
}

# Schema and data apart.
{
	dump_to('postgres', 'schema.dump', '-Fc', '--schema-only');
	dump_to('postgres', 'data.dump', '-Fc', '--data-only');
	$target->safe_psql('postgres', 'CREATE DATABASE apart');
	restore($target, 'apart', 'schema.dump');
	is($target->safe_psql('apart', $definitions), $source->safe_psql('postgres', $definitions), 'a schema has all generators and segments');
	is($target->safe_psql('apart', "SELECT uid_next() > 0, uid_next('uid_generators.of_alice') > 0, segment_next('Any \"name\", of.any kind'), segment_next('unused')"),
		't|t|500|-5', '... which draw, segments from their start');
	my $session = hold_open($target, dbname => 'apart');
	is($session->query_safe("SELECT segment_next('serials'::regclass)"), 1, '... as other sequences do');
	my $id = $session->query_safe('SELECT uid_next()');
	is(wait_for_node_rows($target, '%', 2, dbname => 'apart'), 2, 'and worker ids drawn');
	restore($target, 'apart', 'data.dump');
	is($target->safe_psql('apart', 'SELECT count(*), count(DISTINCT system_identifier) FROM worker_node'), '5|2', 'rows of two servers meet in worker_node');
	cmp_ok($session->query_safe("SELECT segment_next('serials'::regclass)"),
		'>', $target->safe_psql('apart', 'SELECT max(ticket) FROM documents'), 'data restored into a live server: the segment in use follows upward');
	cmp_ok($session->query_safe('SELECT uid_next()'), '>', $id, 'and ids go on above those drawn before');
	is($session->query_safe($above), 't|t|t|t|t', 'and above those restored');
	$session->quit;
	is($target->safe_psql('apart', 'SELECT count(*) FROM uid_segment'), 3, 'with all names');
}

# A dump and a restore by the owner of the database, who is no superuser, of a default that was chosen, an altered
# generator, a mark that no id has reached yet, generators and segments. A superuser has made the extension on both servers, in a schema of its own, so the
# owner leaves its comment and the schema out, as docs/operations.md says.
{
	my $with_schema = 'CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; GRANT USAGE ON SCHEMA uidgen TO PUBLIC;';
	both('CREATE ROLE boss LOGIN');
	$source->safe_psql('postgres', 'CREATE DATABASE owned OWNER boss');
	$source->safe_psql('owned', "$with_schema ALTER DATABASE owned SET search_path = public, uidgen; SET search_path = public, uidgen; SET SESSION AUTHORIZATION boss;"
		  . " SELECT uid_generator_create('tuned', epoch => '2015-05-05 00:00+00', tick_us => 10000, time_bits => 40), uid_generator_create('g'), segment_create('s');"
		  . " SELECT uid_next(), segment_next('s'); COMMENT ON SEQUENCE uid_segments.s IS 'a comment that is kept'");
	$source->safe_psql('owned', <<'SQL');
SET SESSION AUTHORIZATION boss;
CREATE SCHEMA mine;
CREATE TABLE mine.documents (id bigint PRIMARY KEY DEFAULT uid_next(), other bigint DEFAULT uid_next('uid_generators.tuned'), n bigint DEFAULT segment_next('s'));
INSERT INTO mine.documents SELECT FROM generate_series(1, 100);
SQL
	# What the owner grants is dumped without a switch of roles, which only a superuser could make.
	both('CREATE ROLE clerk');
	$source->safe_psql('owned', 'SET SESSION AUTHORIZATION boss; GRANT SELECT, INSERT ON uidgen.worker_node TO clerk; GRANT CREATE ON SCHEMA uid_generators, uid_segments, uid_keys TO clerk');
	wait_for_node_rows($source, '%', 2, dbname => 'owned'); # an alteration may come before its row, which is lost then
	$source->safe_psql('owned', <<'SQL');
SET SESSION AUTHORIZATION boss;
SELECT uid_generator_create('chosen', 'twitter', worker_policy => 'static', worker_number => 9);
SELECT uid_generator_alter('uid_generators.tuned', spread => false, lease_ms => 500, tolerance_ms => 50, boost_power => 2, padding_factor => 40,
  schedule_ms => 500, when_ring_empty => 'wait', max_staleness_ms => 900);
SELECT uid_default_set('uid_generators.chosen');
INSERT INTO mine.documents SELECT FROM generate_series(1, 100);
SELECT uid_generator_raise('uid_generators.g', uid_encode(clock_timestamp() + interval '1.5 s', 0, 0, 0, 'uid_generators.g'));
CREATE TABLE mine.mark AS SELECT uid_lower_bound(uid_timestamp(last_value << 22, 'uid_generators.g'), 'uid_generators.g') AS raised FROM uid_generators.g;
SQL
	my $rows = 'SELECT g FROM uid_generator AS g ORDER BY generator::text; SELECT s FROM uid_segment AS s ORDER BY name; SELECT last_value FROM uid_generators.tuned; '
	  . 'SELECT last_value FROM uid_generators.chosen; SELECT last_value FROM uid_generators.g; SELECT count(*), max(id) FROM mine.documents; SELECT * FROM worker_node ORDER BY id; SELECT last_value FROM worker_node_id_seq';
	wait_for_node_rows($source, '%', 4, dbname => 'owned'); # of the default, of the altered one twice, and of the chosen one
	my $kept = $source->safe_psql('owned', $rows);
	$source->command_ok([ 'pg_dump', '-Fc', '-U', 'boss', '-f', "$directory/owned.dump", '-d', $source->connstr('owned') ], 'dumped');
	$target->safe_psql('postgres', 'CREATE DATABASE owned_too OWNER boss');
	$target->safe_psql('owned_too', "$with_schema ALTER DATABASE owned_too SET search_path = public, uidgen");
	# The names of the document.
	rename "$directory/owned.dump", "$directory/shop.dump" or die;
	$target->safe_psql('postgres', 'ALTER DATABASE owned_too RENAME TO shop');
	shell_ok($target, block_of('docs/operations.md', qr/COMMENT - EXTENSION uidgen/), 'the owner of the database restores it', directory => $directory, PGUSER => 'boss');
	$target->safe_psql('postgres', 'ALTER DATABASE shop RENAME TO owned_too');
	is($target->safe_psql('owned_too', "SELECT obj_description('uid_segments.s'::regclass)"), 'a comment that is kept', '... with the comments of sequences');
	is($target->safe_psql('owned_too', $rows), $kept, 'all of it');
	$target->safe_psql('owned_too', "SET SESSION AUTHORIZATION boss; INSERT INTO mine.documents SELECT FROM generate_series(1, 100)");
	is($target->safe_psql('owned_too', 'SELECT count(*), count(DISTINCT id), count(DISTINCT other), count(DISTINCT n) FROM mine.documents'), '300|300|300|300', 'and nothing comes twice');
	is($target->safe_psql('owned_too', 'SELECT bool_and(id > before) FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before FROM mine.documents) AS d'), 't', 'in order');
	is($target->safe_psql('owned_too', 'SELECT worker_id FROM uid_decode(uid_next())'), 9, 'with the worker id of the chosen default');
	is($target->safe_psql('owned_too', "SELECT uid_next('uid_generators.g') > raised FROM mine.mark"), 't', 'a mark that was raised and not reached is a mark');
	is($target->safe_psql('owned_too', "SELECT has_table_privilege('clerk', 'uidgen.worker_node', 'SELECT') AND has_table_privilege('clerk', 'uidgen.worker_node', 'INSERT'), has_schema_privilege('clerk', nspname, 'CREATE') FROM pg_namespace WHERE nspname IN ('uid_generators', 'uid_segments', 'uid_keys')"),
		"t|t\nt|t\nt|t", 'with what the owner has granted');
	# What a restore needs he may; not more.
	$target->safe_psql('owned_too', "SELECT uid_generator_create('of_super'); CREATE SEQUENCE plain");
	like(failure($target, "SET SESSION AUTHORIZATION boss; SELECT uid_generator_alter('uid_generators.of_super', lease_ms => 5)", 'owned_too'), qr/ERROR:  42501/,
		'the owner of the database alters no generator of another role');
	like(failure($target, "SET SESSION AUTHORIZATION boss; SECURITY LABEL FOR uidgen ON SEQUENCE plain IS 'key id=1'", 'owned_too'), qr/ERROR:  42501/,
		'and labels no sequence of another role');
}

# A restore into the database that was dumped, over everything that is there.
{
	$source->safe_psql('postgres', 'CREATE DATABASE round_trip');
	$source->safe_psql('round_trip', <<'SQL');
CREATE EXTENSION uidgen;
CREATE TABLE documents (id bigint PRIMARY KEY DEFAULT uid_next(), n bigint UNIQUE DEFAULT segment_next('s'));
SELECT uid_generator_create('early', 'twitter'), segment_create('s', 1, 50);
INSERT INTO documents SELECT FROM generate_series(1, 100);
SELECT uid_default_set('uid_generators.early');
INSERT INTO documents SELECT FROM generate_series(1, 100);
SQL
	my $rows = 'SELECT g FROM uid_generator AS g ORDER BY generator::text; SELECT s FROM uid_segment AS s; SELECT count(*) FROM documents';
	my $kept = $source->safe_psql('round_trip', $rows);
	my $session = hold_open($source, dbname => 'round_trip');
	$session->query_safe('SELECT uid_next()');
	my @ids = split /\n/, $source->safe_psql('round_trip', 'SELECT id FROM documents');
	foreach my $round (1, 2)
	{
		dump_to('round_trip', 'round_trip.dump', '-Fc');
		push @ids, split /\n/, $source->safe_psql('round_trip', 'SELECT unnest(uid_next_array(500))');
		push @ids, $session->query_safe('SELECT uid_next()');
		restore($source, 'round_trip', 'round_trip.dump', '--clean', '--if-exists');
		is($source->safe_psql('round_trip', $rows), $kept, 'restored into the database that was dumped, all is as it was');
		push @ids, split /\n/, $source->safe_psql('round_trip', 'SELECT unnest(uid_next_array(500))');
		push @ids, $session->query_safe('SELECT uid_next()');
		push @ids, split /\n/, $source->safe_psql('round_trip', 'INSERT INTO documents SELECT FROM generate_series(1, 100) RETURNING id');
		$kept =~ s/(\d+)$/$1 + 100/e;
		is(repeated(@ids), '', 'no id comes twice: not of rows, not of those drawn since the dump');
		is(scalar(grep { !defined $_ || !/^\d+$/ } @ids), 0, 'and none is missing');
	}
	$session->quit;
	# In between the database is without a default, and nothing stands in for it.
	my ($status, $output, $stderr) = $source->psql('round_trip', 'DROP SEQUENCE uid_generators.early');
	like("$status $stderr", qr/^0 .*WARNING:  the database no longer has a default generator/s, 'the default is dropped with a warning');
	like(failure($source, 'INSERT INTO documents DEFAULT VALUES', 'round_trip'), qr/ERROR:  42704.*no default generator/s, 'uid_next() fails then');
	$source->restart;
	like(failure($source, 'SELECT uid_next()', 'round_trip'), qr/ERROR:  42704.*no default generator/s, 'after a restart, too');
	dump_to('round_trip', 'without.dump', '-Fc');
	$target->safe_psql('postgres', 'CREATE DATABASE without');
	restore($target, 'without', 'without.dump');
	is($target->safe_psql('without', 'SELECT uid_next() > 0'), 't', 'where its dump was restored, the builtin generator is the default');
}

# Rows of worker_node that an application wrote, with the columns of the original.
{
	$source->safe_psql('postgres', 'CREATE DATABASE outside');
	$source->safe_psql('outside', 'CREATE EXTENSION uidgen; SELECT uid_next()');
	wait_for_node_rows($source, '%', 1, dbname => 'outside');
	my $insert = "INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) VALUES ('10.0.0.1', '8080-1', 2, current_date, now(), now()) RETURNING id";
	my $id = $source->safe_psql('outside', $insert);
	is($source->safe_psql('outside', "SELECT $id > max(id) FROM worker_node WHERE id <> $id"), 't', 'an application draws its worker id by a row of its own');
	dump_to('outside', 'outside.dump', '-Fc');
	$target->safe_psql('postgres', 'CREATE DATABASE outside');
	restore($target, 'outside', 'outside.dump');
	is($target->safe_psql('outside', "SELECT id, generator IS NULL, system_identifier = (SELECT system_identifier FROM pg_control_system()) FROM worker_node WHERE host_name = '10.0.0.1'"),
		"$id|t|f", 'the row is restored, and tells of the server that drew its id');
	cmp_ok($target->safe_psql('outside', $insert), '>', $id, 'and the next one has a higher id');
}

done_testing();
