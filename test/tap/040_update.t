# ALTER EXTENSION UPDATE to a version that this test makes up: what a database has is updated while sessions draw. Values
# stay unique and in order, the rows, privileges and views of users stay, and what the update makes is what CREATE EXTENSION
# makes. When there is a version after 1.0.0, its scripts take the place of the made-up ones.
use UidgenTest 'preloaded';
use Clients;
use Installation;

my $update = <<'SQL';
CREATE FUNCTION uid_added(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN id OPERATOR(pg_catalog.+) 1;
COMMENT ON FUNCTION uid_added(bigint) IS 'added';
CREATE FUNCTION uid_added_in_c(count bigint) RETURNS bigint[]
LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_next_array';
REVOKE EXECUTE ON FUNCTION uid_added_in_c(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_added_in_c(bigint) TO pg_monitor;
ALTER TABLE uid_secrets.uid_key ADD COLUMN added text NOT NULL DEFAULT 'new';
COMMENT ON FUNCTION uid_next() IS 'changed';
SQL

# A PostgreSQL that has version 1.0.0 and, as the newest one, the next.
sub installation_with_next
{
	my $directory = copy_installation();
	my $extension = "$directory->{SHAREDIR}/extension";
	my ($control, $install) = map { slurp_file("$extension/$_") } 'uidgen.control', 'uidgen--1.0.0.sql';
	$control =~ s/^default_version = .*/default_version = 'next'/m or die 'no version';
	my %files = ('uidgen.control' => $control, 'uidgen--next.sql' => $install . $update, 'uidgen--1.0.0--next.sql' => $update);
	foreach my $name (keys %files)
	{
		unlink "$extension/$name";
		append_to_file("$extension/$name", $files{$name});
	}
	return $directory->{install_path};
}

# All that the extension has, a line for each thing.
my $catalog = <<'SQL';
WITH extension AS (SELECT * FROM pg_extension WHERE extname = 'uidgen'),
member AS (SELECT d.classid, d.objid FROM pg_depend d, extension e
            WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'),
relation AS (SELECT c.* FROM pg_class c JOIN member m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid),
routine AS (SELECT p.* FROM pg_proc p JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid),
line AS (
SELECT format('object: %s', pg_describe_object(m.classid, m.objid, 0)) AS text FROM member m
UNION ALL
SELECT format('function %s of %s, for %s, cost %s, rows %s: %s', p.oid::regprocedure, p.proowner::regrole,
              ARRAY(SELECT a::text FROM unnest(p.proacl) a ORDER BY 1), p.procost, p.prorows, pg_get_functiondef(p.oid))
  FROM routine p
UNION ALL
SELECT format('relation %s %s of %s, for %s, options %s, row type of %s', c.relkind, c.oid::regclass, c.relowner::regrole,
              ARRAY(SELECT a::text FROM unnest(c.relacl) a ORDER BY 1), c.reloptions, c.reloftype::regtype)
  FROM relation c
UNION ALL
SELECT format('column %s of %s: %s %s, not null %s, default %s, identity %s, generated %s, collation %s, for %s', a.attnum,
              r.relation, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
              (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum),
              a.attidentity, a.attgenerated, a.attcollation::regcollation, a.attacl)
  FROM pg_attribute a
  JOIN (SELECT c.oid, c.oid::regclass::text FROM relation c
         UNION SELECT t.typrelid, t.oid::regtype::text FROM pg_type t
               JOIN member m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid) r(oid, relation)
    ON r.oid = a.attrelid
 WHERE a.attnum > 0
UNION ALL
SELECT format('view %s: %s', c.oid::regclass, pg_get_viewdef(c.oid)) FROM relation c WHERE c.relkind = 'v'
UNION ALL
SELECT format('constraint %s of %s: %s', k.conname, c.oid::regclass, pg_get_constraintdef(k.oid))
  FROM pg_constraint k JOIN relation c ON c.oid = k.conrelid
UNION ALL
SELECT format('index: %s', pg_get_indexdef(i.indexrelid)) FROM pg_index i JOIN relation c ON c.oid = i.indrelid
UNION ALL
SELECT format('trigger, enabled %s: %s', t.tgenabled, pg_get_triggerdef(t.oid))
  FROM pg_trigger t JOIN relation c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
UNION ALL
SELECT format('rule %s', pg_get_ruledef(r.oid)) FROM pg_rewrite r JOIN relation c ON c.oid = r.ev_class
 WHERE c.relkind <> 'v'
UNION ALL
SELECT format('event trigger %s of %s on %s, enabled %s, calls %s', t.evtname, t.evtowner::regrole, t.evtevent,
              t.evtenabled, t.evtfoid::regprocedure)
  FROM pg_event_trigger t JOIN member m ON m.classid = 'pg_event_trigger'::regclass AND m.objid = t.oid
UNION ALL
SELECT format('sequence %s', to_jsonb(s) - 'seqrelid' || jsonb_build_object('name', c.oid::regclass))
  FROM pg_sequence s JOIN relation c ON c.oid = s.seqrelid
UNION ALL
SELECT format('schema %s of %s, for %s', n.nspname, n.nspowner::regrole,
              ARRAY(SELECT a::text FROM unnest(n.nspacl) a ORDER BY 1))
  FROM pg_namespace n JOIN member m ON m.classid = 'pg_namespace'::regclass AND m.objid = n.oid
UNION ALL
SELECT format('comment on %s: %s', pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description)
  FROM pg_description d JOIN member m ON m.classid = d.classoid AND m.objid = d.objoid
UNION ALL
SELECT format('initial privileges on %s: %s', pg_describe_object(p.classoid, p.objoid, p.objsubid),
              ARRAY(SELECT a::text FROM unnest(p.initprivs) a ORDER BY 1))
  FROM pg_init_privs p JOIN member m ON m.classid = p.classoid AND m.objid = p.objoid
UNION ALL
SELECT format('%s depends on %s (%s)', pg_describe_object(d.classid, d.objid, d.objsubid),
              pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype)
  FROM pg_depend d JOIN relation c ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
 WHERE c.relkind IN ('r', 'S', 'v') AND d.deptype <> 'i'
   AND (d.classid, d.objid) IN (SELECT m.classid, m.objid FROM member m)
UNION ALL
SELECT format('dumped rows of %s: %s', r.relation::regclass, r.condition)
  FROM extension e, unnest(e.extconfig, e.extcondition) r(relation, condition)
UNION ALL
SELECT format('extension of %s in %s, version %s', e.extowner::regrole, e.extnamespace::regnamespace, e.extversion)
  FROM extension e)
SELECT replace(text, E'\n', E'\n    ') FROM line ORDER BY text COLLATE "C"
SQL

my $node = new_node('main', install_path => installation_with_next());
start_node($node);
my $directory = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', 'CREATE ROLE app');

# Sessions of the database see the extension's schema.
sub create_database ($dbname, $schema, $version)
{
	$node->safe_psql('postgres', "CREATE DATABASE $dbname");
	$node->safe_psql($dbname, "CREATE SCHEMA IF NOT EXISTS $schema; GRANT USAGE ON SCHEMA $schema TO PUBLIC;"
		  . "ALTER DATABASE $dbname SET search_path = public, $schema");
	$node->safe_psql($dbname, "CREATE EXTENSION uidgen SCHEMA $schema VERSION '$version'");
}

# What one database has and the other one has not.
sub differences ($dbname, $fresh)
{
	my ($there, $expected) = map { my $name = $_; +{ map { $_ => 1 } split /\n(?! {4})/, $node->safe_psql($name, $catalog) } } $dbname, $fresh;
	die 'the catalogs have too little' if keys %$expected < 500;
	my @found = map { "missing: $_" } grep { !$there->{$_} } sort keys %$expected;
	push @found, map { "too much: $_" } grep { !$expected->{$_} } sort keys %$there;
	return @found;
}

my $rows = <<'SQL';
SELECT 'generator', generator::text, preset, epoch::text, is_default::text FROM uid_generator
UNION ALL SELECT 'segment', name, sequence::text, step::text, max_step::text FROM uid_segment
UNION ALL SELECT 'node', id::text, generator, worker_id::text, created::text FROM worker_node
ORDER BY 1, 2
SQL

my $counters = "SELECT string_agg(last_value::text, ' ' ORDER BY ordinal) FROM (SELECT 1, last_value FROM "
  . 'uid_generators.uid_default UNION ALL SELECT 2, last_value FROM uid_generators.own UNION ALL SELECT 3, last_value FROM '
  . 'uid_segments.numbers UNION ALL SELECT 4, last_value FROM worker_node_id_seq) c(ordinal, last_value)';

my $may = "SELECT has_table_privilege('app', 'uid_registry_status', 'SELECT'), has_sequence_privilege('app', 'uid_generators.own', 'USAGE'), "
  . "has_function_privilege('app', 'uid_fleet_move()', 'EXECUTE'), has_function_privilege('pg_monitor', 'uid_next()', 'EXECUTE')";

sub rises ($before, $after)
{
	my @after = split / /, $after;
	return !grep { $_ > shift @after } split / /, $before;
}

sub ascends ($log)
{
	my $last = 0;
	foreach my $value (split /\n/, slurp_file($log))
	{
		return 0 if $value <= $last;
		$last = $value;
	}
	return $last > 0;
}

sub update_under_load ($dbname)
{
	my %sql = (
		default => ['SELECT uid_next()', 'INSERT INTO orders DEFAULT VALUES RETURNING id', 'SELECT unnest(uid_next_array(50))'],
		own => ["SELECT uid_next('uid_generators.own')"],
		numbers => ["SELECT segment_next('numbers')", "SELECT unnest(segment_next_array('numbers', 20))"],
		tickets => ["SELECT segment_next('ticket_seq'::regclass)"]);
	my %loops;
	foreach my $source (keys %sql)
	{
		$loops{$source} = [ map { background_loop($node, dbname => $dbname, sql => $_, clients => 2, pace => 0.01, on_error_stop => 0) } @{ $sql{$source} } ];
	}
	my @loops = map { @$_ } values %loops;
	my $session = hold_open($node, dbname => $dbname);

	goes_on('sessions draw before the update', @loops);
	my $first = $session->query_safe("BEGIN; SELECT uid_next('uid_generators.own')");
	my $number = $session->query_safe("SELECT segment_next('ticket_seq'::regclass)");
	my $before = $node->safe_psql($dbname, $counters);
	$node->safe_psql($dbname, 'ALTER EXTENSION uidgen UPDATE');
	is($node->safe_psql($dbname, "SELECT extversion FROM pg_extension WHERE extname = 'uidgen'"), 'next', '1.0.0 becomes the next');
	ok(rises($before, $node->safe_psql($dbname, $counters)), 'no counter went back');
	cmp_ok($session->query_safe("SELECT uid_next('uid_generators.own')"), '>', $first, 'a transaction that began before goes on');
	cmp_ok($session->query_safe("SELECT segment_next('ticket_seq'::regclass)"), '>', $number, 'with its segment, too');
	$session->query_safe('COMMIT');
	$session->quit;
	goes_on('sessions draw after the update', @loops);
	my @logs = stop_loop(@loops);

	my @errors = grep { !/^\s*$/ } map { split /\n/, slurp_file("$_.err") } @logs;
	is(join("\n", @errors), '', 'no session saw an error');
	assert_unique(map { @{ $_->{logs} } } @{ $loops{$_} }) foreach sort keys %loops;
	is(scalar(grep { !ascends($_) } @logs), 0, 'the values of each session ascend');
}

sub walk ($schema)
{
	my $dbname = "of_$schema";
	create_database($dbname, $schema, '1.0.0');
	create_database("fresh_$schema", $schema, 'next');
	cmp_ok(scalar(differences($dbname, "fresh_$schema")), '>', 5, "schema $schema: before the update it lacks what the next adds");
	$node->safe_psql($dbname, <<'SQL');
SELECT uid_generator_create('own', tolerance_ms => 100), segment_create('numbers', 5, 10);
CREATE SEQUENCE ticket_seq;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next());
SELECT uid_next(), uid_next('uid_generators.own'), segment_next('numbers');
SQL
	wait_for_node_rows($node, '%', 2, dbname => $dbname);

	# What users have made of it.
	$node->safe_psql($dbname, <<'SQL');
CREATE VIEW seen AS SELECT s.range_left, g.leased_until, n.name FROM segment_status s, uid_generator_status g, uid_segment n;
GRANT SELECT ON uid_registry_status TO app;
GRANT USAGE ON SEQUENCE uid_generators.own TO app;
GRANT EXECUTE ON FUNCTION uid_fleet_move TO app;
REVOKE EXECUTE ON FUNCTION uid_next() FROM PUBLIC;
SQL
	my $mine = $node->safe_psql($dbname, $rows);
	update_under_load($dbname);
	is($node->safe_psql($dbname, $rows), $mine, 'the rows stay');
	is($node->safe_psql($dbname, 'SELECT count(*) >= 0 FROM seen'), 't', 'views of users stay');
	is($node->safe_psql($dbname, $may), 't|t|t|f', 'privileges stay');

	my $dump = "$directory/$dbname.dump";
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr($dbname) ], 'dump after the update');
	$node->safe_psql('postgres', "CREATE DATABASE again_$dbname");
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr("again_$dbname"), $dump ], 'restore');
	my $again = "SET search_path = public, $schema; ";
	is($node->safe_psql("again_$dbname", $again . $rows), $mine, 'the rows are restored');
	is($node->safe_psql("again_$dbname", $again . $may), 't|t|t|f', 'so are privileges');
	is($node->safe_psql("again_$dbname", $again . 'SELECT uid_next() > max(id) FROM orders'), 't', 'and draws go on above the rows');

	# The privileges and objects of users are none of the comparison's.
	$node->safe_psql($dbname, 'REVOKE SELECT ON uid_registry_status FROM app; REVOKE EXECUTE ON FUNCTION uid_fleet_move FROM app; DROP VIEW seen;'
		  . "UPDATE pg_proc SET proacl = NULL WHERE oid = 'uid_next()'::regprocedure");
	is(join("\n", differences($dbname, "fresh_$schema")), '', "schema $schema: the update makes what CREATE EXTENSION makes");
	$node->safe_psql('postgres', "DROP DATABASE $_") foreach ($dbname, "again_$dbname", "fresh_$schema");
}

walk('public');
walk('uidgen');

done_testing();
