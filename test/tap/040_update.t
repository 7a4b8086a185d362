# ALTER EXTENSION UPDATE: the SQL of each released version works with this library, and is updated while sessions draw.
# Values stay unique and in order, the rows, privileges and views of users stay, and what the update makes is what CREATE
# EXTENSION makes.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

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

my $node = new_node('main');
start_node($node);
my $directory = PostgreSQL::Test::Utils::tempdir();
my $newest = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'uidgen'");
my @released = split /\n/, $node->safe_psql('postgres',
	"SELECT version FROM pg_available_extension_versions WHERE name = 'uidgen' AND version <> '$newest' ORDER BY version");
ok(@released > 0, "released versions: @released; the newest one: $newest");
$node->safe_psql('postgres', 'CREATE ROLE app; CREATE ROLE uid_fleet LOGIN');

# Sessions of the database see the extension's schema.
sub create_database
{
	my ($dbname, $schema, $version) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $dbname");
	$node->safe_psql($dbname, "CREATE SCHEMA IF NOT EXISTS $schema; GRANT USAGE ON SCHEMA $schema TO PUBLIC;"
		  . "ALTER DATABASE $dbname SET search_path = public, $schema");
	$node->safe_psql($dbname, "CREATE EXTENSION uidgen SCHEMA $schema VERSION '$version'") if defined $version;
	return;
}

sub catalog_of
{
	my ($dbname) = @_;
	return split /\n(?! {4})/, $node->safe_psql($dbname, $catalog);
}

# One assertion. What differs is printed as it must be written into the update script.
sub is_as_created
{
	my ($dbname, $fresh, $what) = @_;
	my %there = map { $_ => 1 } catalog_of($dbname);
	my %expected = map { $_ => 1 } catalog_of($fresh);
	my @missing = grep { !$there{$_} } sort keys %expected;
	my @superfluous = grep { !$expected{$_} } sort keys %there;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(keys %expected > 500 && !@missing && !@superfluous, $what)
	  or diag(join "\n", "Is make update-script missing, or a statement in the update script's own part?",
		(map { "missing: $_" } @missing), (map { "too much: $_" } @superfluous));
	return;
}

# Every function that 0.1.0 has, in the order in which they work upon each other. Each line gives true.
my @calls = split /\n/, <<'SQL';
SELECT uid_next() < uid_next('uid_generators.own') OR uid_next() > 0
SELECT count(*) = 1000 AND min(b) > 0 FROM uid_next_batch(1000) b
SELECT count(*) = 1000 AND min(b) > 0 FROM uid_next_batch('uid_generators.own', 1000) b
SELECT cardinality(uid_next_array(70)) = 70 AND cardinality(uid_next_array('uid_generators.own', 80)) = 80
SELECT count(*) = 6 FROM (VALUES (1), (2), (3)) v(n), uid_next_batch(v.n)
SELECT uid_last() IS NULL FROM uid_next() WHERE false UNION ALL SELECT uid_last() = n FROM uid_next() n
SELECT generated_at > now() - interval '1 hour' AND NOT backup FROM uid_decode(uid_next())
SELECT d.sequence >= 0 FROM uid_decode(uid_next('uid_generators.own'), 'uid_generators.own') d
SELECT uid_timestamp(uid_encode('2027-01-01', 0, 1, 5)) = '2027-01-01' AND uid_encode('2027-01-01', 0, 1, 5, 'uid_generators.own') > 0
SELECT uid_timestamp(uid_next('uid_generators.own'), 'uid_generators.own') > '2026-01-01' AND uid_timestamp(1 << 22, '2026-01-01', 1000, 22) > '2026-01-01'
SELECT uid_lower_bound('2026-11-01') > 0 AND uid_lower_bound('2026-11-01', 'uid_generators.own') > 0 AND uid_lower_bound('2026-11-01', '2026-01-01', 1000, 22) > 0
SELECT uid_generator_create('other', 'js53') IS NOT NULL
SELECT uid_next('uid_generators.other') < 9007199254740992
SELECT uid_generator_alter('uid_generators.other', max_ahead_ms => 3000) IS NOT NULL
SELECT uid_generator_raise('uid_generators.other', uid_next('uid_generators.other')) IS NOT NULL
SELECT uid_generator_drop('uid_generators.other') IS NOT NULL
SELECT uid_generator_create('chosen', above => uid_next()) IS NOT NULL
SELECT uid_default_set('uid_generators.chosen') IS NOT NULL
SELECT uid_next() > 0
SELECT segment_create('first', 10, 5, 50, 'a test') IS NOT NULL
SELECT segment_next('first') = 10 AND segment_last('first') = 10
SELECT segment_next('uid_segments.first'::regclass) = 11 AND segment_last('uid_segments.first'::regclass) = 11
SELECT array_agg(b) = '{12,13,14}' FROM segment_next_batch('first', 3) b
SELECT array_agg(b) = '{15,16,17}' FROM segment_next_batch('uid_segments.first'::regclass, 3) b
SELECT segment_next_array('first', 2) = '{18,19}' AND segment_next_array('uid_segments.first'::regclass, 2) = '{20,21}'
SELECT segment_set('first', 100) = 100 AND segment_next('first') = 100 AND segment_set('uid_segments.first'::regclass, 200) = 200 AND segment_next('first') = 200
SELECT segment_alter('first', step => 7, description => 'other') IS NOT NULL
SELECT step = 7 AND description = 'other' FROM uid_segment WHERE name = 'first'
SELECT increment_val > 0 FROM t_sequence WHERE pk_seq_name = 'first'
SELECT range_length > 0 FROM segment_status WHERE name = 'first'
SELECT segment_drop('first') IS NOT NULL
SELECT count(*) = 0 FROM uid_segment WHERE name = 'first'
SELECT worker_id >= 0 AND records > 0 FROM uid_generator_status WHERE generator = 'uid_generators.own'::regclass
SELECT count(*) >= 3 FROM uid_generator_config JOIN uid_generator_limits USING (generator)
SELECT count(*) >= 9 FROM uid_preset
SELECT count(*) = 0 FROM uid_check_nodes()
SELECT count(*) = 1 FROM uid_registry_status
SELECT uid_fleet_move() IS NOT NULL
SELECT uid_fleet_admit('uid_fleet') IS NOT NULL
SELECT count(*) = 2 FROM uid_fleet_reserve(2, without_standby => true)
SELECT uid_fleet_takeover(pool, node) IS NOT NULL FROM uid_fleet_node ORDER BY node LIMIT 1
SELECT uid_fleet_fence() IS NOT NULL
SELECT count(*) = 1 FROM uid_fleet_pools
SELECT count(*) = 1 FROM uid_fleet WHERE state = 'reserved'
SQL

sub old_sql_works
{
	my ($dbname, $version) = @_;
	my @wrong;
	foreach my $call (@calls)
	{
		my ($status, $out, $error) = $node->psql($dbname, $call);
		push @wrong, "$call: $out $error" if $status != 0 || $out !~ /^t(\nt)*$/;
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join("\n", @wrong), '', "all that $version offers works with this library") or diag(join "\n", @wrong);
	foreach my $function ('uid_next_batch', 'uid_next_array')
	{
		my ($status, undef, $error) = $node->psql($dbname, "SELECT $function(n) FROM (VALUES (-1), (-2)) v(n)");
		like($error, qr/ must not be negative: -1/, "$function() of a negative count");
	}
	return;
}

my $rows = <<'SQL';
SELECT 'generator', generator::text, preset, epoch::text, is_default::text FROM uid_generator
UNION ALL SELECT 'segment', name, sequence::text, step::text, description FROM uid_segment
UNION ALL SELECT 'node', id::text, generator, worker_id::text, tags::text FROM worker_node WHERE tags <> '{}'
UNION ALL SELECT 'fleet', term::text, fleet::text, '', '' FROM uid_fleet_state
UNION ALL SELECT 'reserved', node::text, granted_from::text, granted_until::text, serial::text FROM uid_fleet_node
ORDER BY 1, 2
SQL

my $counters = "SELECT string_agg(last_value::text, ' ' ORDER BY ordinal) FROM (SELECT 1, last_value FROM "
  . 'uid_generators.uid_default UNION ALL SELECT 2, last_value FROM uid_generators.own UNION ALL SELECT 3, last_value FROM '
  . 'uid_segments.numbers UNION ALL SELECT 4, last_value FROM worker_node_id_seq) c(ordinal, last_value)';

# Privileges on functions whose parameters the update changes.
my $may_call = "SELECT has_function_privilege('app', 'uid_next_batch(bigint)', 'EXECUTE WITH GRANT OPTION'), "
  . "has_function_privilege('uid_fleet', 'uid_next_batch(bigint)', 'EXECUTE'), "
  . "has_function_privilege('pg_monitor', 'uid_next_batch(bigint)', 'EXECUTE'), "
  . "has_function_privilege('pg_monitor', 'uid_next_batch(regclass, bigint)', 'EXECUTE'), "
  . "has_function_privilege('app', 'segment_create(text, bigint, bigint, bigint, text, bigint, bigint, bigint, boolean)', 'EXECUTE')";
my $depending_roles = 'SELECT count(*) FROM pg_shdepend WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) '
  . "AND classid = 'pg_proc'::regclass AND objid = 'uid_next_batch(bigint)'::regprocedure AND refobjid IN ('app'::regrole, 'uid_fleet'::regrole)";

sub rises
{
	my ($before, $after) = @_;
	my @after = split / /, $after;
	return !grep { $_ > shift @after } split / /, $before;
}

sub ascends
{
	my ($log) = @_;
	my $last = 0;
	foreach my $value (split /\n/, slurp_file($log))
	{
		return 0 if $value <= $last;
		$last = $value;
	}
	return $last > 0;
}

sub update_under_load
{
	my ($dbname, $version) = @_;
	my %sql = (
		default => ['SELECT uid_next()', 'INSERT INTO orders DEFAULT VALUES RETURNING id', 'SELECT uid_next_batch(50)'],
		own => ["SELECT uid_next('uid_generators.own')"],
		numbers => ["SELECT segment_next('numbers')", "SELECT unnest(segment_next_array('numbers', 20))"],
		tickets => ["SELECT segment_next('ticket_seq'::regclass)"]);
	my %loops;
	foreach my $source (keys %sql)
	{
		$loops{$source} =
		  [ map { background_loop($node, dbname => $dbname, sql => $_, clients => 2, pace => 0.01, on_error_stop => 0) } @{ $sql{$source} } ];
	}
	my @loops = map { @$_ } values %loops;
	my $session = hold_open($node, dbname => $dbname);

	goes_on('sessions draw before the update', @loops);
	my $first = $session->query_safe("BEGIN; SELECT uid_next('uid_generators.own')");
	my $number = $session->query_safe("SELECT segment_next('numbers')");
	# One statement has found a function, and calls it after the update, which drops it. It hears of that when it opens a
	# table.
	my ($gate, $caller) = map { hold_open($node, dbname => $dbname) } 1 .. 2;
	$gate->query_safe('SELECT pg_advisory_lock(1)');
	send_query($caller, "SELECT pg_advisory_lock(1) IS NULL, pg_relation_size('orders') > 0, cardinality(segment_next_array('numbers', 3))");
	$node->poll_query_until($dbname, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) or die 'no wait';
	my $before = $node->safe_psql($dbname, $counters);
	$node->safe_psql($dbname, 'ALTER EXTENSION uidgen UPDATE');
	$gate->quit;
	is((finish_query($caller))[0], 'f|t|3', 'a statement can call a function that the update has dropped');
	$caller->quit;
	is($node->safe_psql($dbname, "SELECT extversion FROM pg_extension WHERE extname = 'uidgen'"), $newest,
		"$version becomes $newest");
	ok(rises($before, $node->safe_psql($dbname, $counters)), 'no counter went back');
	cmp_ok($session->query_safe("SELECT uid_next('uid_generators.own')"), '>', $first,
		'a transaction that began before goes on');
	cmp_ok($session->query_safe("SELECT segment_next('numbers')"), '>', $number, 'with its segment, too');
	$session->query_safe('COMMIT');
	$session->quit;
	goes_on('sessions draw after the update', @loops);
	my @logs = stop_loop(@loops);

	# A statement may name a function that the update drops before the statement calls it.
	my @errors = grep { !/^\s*$|cache lookup failed for function/ } map { split /\n/, slurp_file("$_.err") } @logs;
	is(join("\n", @errors), '', 'no session saw an error');
	assert_unique(map { @{ $_->{logs} } } @{ $loops{$_} }) foreach sort keys %loops;
	is(scalar(grep { !ascends($_) } @logs), 0, 'the values of each session ascend');
	return;
}

sub walk
{
	my ($version, $schema) = @_;
	my $dbname = "of_$schema";
	create_database($dbname, $schema, $version);
	$node->safe_psql($dbname, <<'SQL');
SELECT uid_generator_create('own', tolerance_ms => 100), segment_create('numbers', 5, 10);
CREATE SEQUENCE ticket_seq;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next());
GRANT USAGE ON SEQUENCE uid_generators.own TO app;
SQL
	old_sql_works($dbname, $version);
	wait_for_node_rows($node, '%', 2, dbname => $dbname);

	# What users have made of it.
	$node->safe_psql($dbname, <<'SQL');
UPDATE worker_node SET tags = '{"rack": 7}';
INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) VALUES ('h', '1', 1, now(), now(), now());
CREATE VIEW seen AS SELECT s.range_left, g.records, t.current_val FROM segment_status s, uid_generator_status g, t_sequence t;
GRANT SELECT ON uid_fleet, uid_generator_status, uid_registry_status TO app;
GRANT EXECUTE ON FUNCTION uid_fleet_admit TO app;
REVOKE EXECUTE ON FUNCTION uid_next_batch(integer), segment_create FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uid_next_batch(integer) TO app WITH GRANT OPTION;
SET ROLE app;
GRANT EXECUTE ON FUNCTION uid_next_batch(integer) TO uid_fleet;
SQL
	my $mine = $node->safe_psql($dbname, $rows);
	update_under_load($dbname, $version);
	is($node->safe_psql($dbname, $rows), $mine, 'the rows stay');
	is($node->safe_psql($dbname, 'SELECT count(*) >= 0 FROM seen'), 't', 'views of users stay');
	is( $node->safe_psql($dbname,
			"SELECT has_table_privilege('app', 'uid_fleet', 'SELECT'), has_sequence_privilege('app', 'uid_generators.own', 'USAGE')"),
		't|t', 'privileges stay');
	is($node->safe_psql($dbname, $may_call), 't|t|f|t|f', 'also those on functions that have other parameters now');
	is($node->safe_psql($dbname, $depending_roles), 2, 'and keep their roles from being dropped');
	is($node->safe_psql($dbname, 'INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) '
			  . "VALUES ('h', '1', 1, now(), now(), now()) RETURNING id > 0"), 't', 'worker_node numbers its rows');

	my $dump = "$directory/$dbname.dump";
	$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr($dbname) ], 'dump after the update');
	$node->safe_psql('postgres', "CREATE DATABASE again_$dbname");
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr("again_$dbname"), $dump ], 'restore');
	my $again = "SET search_path = public, $schema; ";
	is($node->safe_psql("again_$dbname", $again . $rows), $mine, 'the rows are restored');
	is( $node->safe_psql("again_$dbname",
			$again
			  . 'SELECT uid_next() > max(id) FROM orders; '
			  . "SELECT has_table_privilege('app', 'uid_fleet', 'SELECT'), has_table_privilege('app', 'uid_registry_status', 'SELECT'), "
			  . "has_function_privilege('app', 'uid_fleet_admit(regrole)', 'EXECUTE')"),
		"t\nt|t|t", 'so are the privileges that users granted, and draws go on');
	is($node->safe_psql("again_$dbname", $again . $may_call), 't|t|f|t|f', 'also those on functions with other parameters');

	# The privileges and objects of users are none of the comparison's.
	$node->safe_psql($dbname, 'REVOKE SELECT ON uid_fleet, uid_generator_status, uid_registry_status FROM app;'
		  . 'REVOKE EXECUTE ON FUNCTION uid_fleet_admit FROM app; DROP VIEW seen;'
		  . 'REVOKE EXECUTE ON FUNCTION uid_fleet_call FROM uid_fleet;'
		  . "REVOKE USAGE ON SCHEMA $schema FROM uid_fleet");
	$node->safe_psql($dbname, 'REVOKE EXECUTE ON FUNCTION uid_next_batch(bigint) FROM app CASCADE;'
		  . "UPDATE pg_proc SET proacl = NULL WHERE proname IN ('uid_next_batch', 'segment_create')");
	create_database("fresh_$schema", $schema, $newest);
	is_as_created($dbname, "fresh_$schema", "the extension in schema $schema is what CREATE EXTENSION makes");
	$node->safe_psql('postgres', "DROP DATABASE $_") foreach ($dbname, "again_$dbname", "fresh_$schema");
	return;
}

foreach my $version (@released)
{
	walk($version, 'public');
	walk($version, 'uidgen');
}

done_testing();
