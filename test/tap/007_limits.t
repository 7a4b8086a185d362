# Parallel workers that draw first, sessions that are ended in the middle, a search_path that leads to another role's code,
# and a server that has not loaded the library.
use UidgenTest 'preloaded';

my $node = new_node('limits');
start_uidgen($node);

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';

# In parallel mode a sequence of which the server knows nothing yet is drawn from by workers.
{
	$node->safe_psql('postgres',
		'CREATE TABLE rows (i integer) WITH (parallel_workers = 2); INSERT INTO rows SELECT generate_series(1, 100)');
	foreach my $call ("segment_next('uid_segments.fresh'::regclass)", "uid_next('uid_generators.fresh')")
	{
		$node->safe_psql('postgres', "SELECT segment_create('fresh'), uid_generator_create('fresh', mode => 'cached', spread => false)");
		like($node->safe_psql('postgres', "$parallel; EXPLAIN SELECT count(*) FROM rows WHERE $call > 0"), qr/Gather/, 'a plan that draws in parallel workers');
		is($node->safe_psql('postgres', "$parallel; SET parallel_leader_participation = off; SELECT count(*) FROM rows WHERE $call > 0"), 100, "... $call");
		$node->safe_psql('postgres', 'DROP SEQUENCE uid_segments.fresh, uid_generators.fresh');
	}
	$node->safe_psql('postgres', 'DROP TABLE rows');
}

# Only a role that may create segments has the server's login look for one at the registry.
{
	my $set_registry = sub {
		$node->append_conf('postgresql.conf', "uidgen.registry = '$_[0]'\n");
		$node->reload;
		$node->poll_query_until('postgres', 'SHOW uidgen.registry', $_[0]) or die 'no reload';
	};
	my $look_up = sub { (sqlstate($node, "SET uidgen.max_wait = '100ms'; SELECT uid_internal.uid_look_up_segment('$_[0]', 'a', 'b')"))[1] };
	$set_registry->('host=/nowhere');
	$node->safe_psql('postgres', 'CREATE SEQUENCE uid_segments.sought; CREATE SEQUENCE elsewhere');
	like($look_up->('uid_segments.sought'), qr/segment "a" has no values from the registry/, 'a look-up without an answer is an error');
	like($look_up->('elsewhere'), qr/sequence "elsewhere" is not in schema "uid_segments"/, '... and only for who may create segments');
	$node->safe_psql('postgres', 'DROP SEQUENCE uid_segments.sought, elsewhere');
	$set_registry->('');
}

# A session that is ended in mid-batch takes nothing along.
{
	my $before = $node->safe_psql('postgres', 'SELECT uid_next()');
	foreach my $how ('cancel', 'terminate')
	{
		my $run = background_loop($node,
			sql => "SET application_name = 'batch'; SELECT count(*) FROM unnest(uid_next_array(130000000))");
		$node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'batch' AND state = 'active' AND query LIKE '%uid_next_array%'")
		  or die 'the batch did not begin';
		my $others = $node->safe_psql('postgres', 'SELECT uid_next()');
		cmp_ok($others, '>', $before, "others draw while a batch of 130,000,000 is under way");
		is( $node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE application_name = 'batch'"),
			't', "pg_${how}_backend");
		ok( $node->poll_query_until('postgres',
				"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'batch'"),
			'ends it');
		my ($log) = stop_loop($run);
		is(slurp_file($log), '', 'no id of it was handed out');
		like(slurp_file("$log.err"), $how eq 'cancel' ? qr/canceling statement/ : qr/terminating connection/, 'it says why');
		my $after = $node->safe_psql('postgres', 'SELECT uid_next()');
		cmp_ok($after, '>', $others, 'ids go on above');
		$before = $after;
	}
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), min(id) > ' . $before . ' FROM unnest(uid_next_array(50000)) AS id'),
		'50000|50000|t', 'and a batch works');
}

# Somebody's own schema, first in the search_path, with functions, operators and tables named like those of
# pg_catalog and of uidgen: nobody calls them.
{
	my @calls = (
		"SELECT uid_generator_create('in_trap')", "SELECT segment_create('in_trap', 1, 5)",
		"SELECT segment_create(repeat('in trap ', 20))", "SELECT segment_next('in_trap')",
		"SELECT segment_next(repeat('in trap ', 20))", "SELECT uid_next()", "SELECT uid_next('uid_generators.in_trap')",
		"SELECT count(*) FROM unnest(uid_next_array(10))", "SELECT public.uid_decode(uid_next())", "SELECT uid_timestamp(1)",
		"SELECT uid_encode('2026-02-01', 0, 0, 0)", "SELECT * FROM public.uid_preset", "SELECT * FROM public.uid_generator_limits",
		"SELECT * FROM public.uid_generator_columns", "SELECT uid_lower_bound(pg_catalog.now())", "SELECT uid_generator_create('in_trap_too', epoch => '2020-01-01', tolerance_ms => 5)",
		"SELECT uid_generator_alter('uid_generators.in_trap_too', spread => true)", "SELECT uid_generator_alter('uid_generators.in_trap_too', tolerance_ms => -1)",
		"SELECT uid_generator_raise('uid_generators.in_trap_too', 5)", "SELECT uid_default_set('uid_generators.in_trap_too')",
		"SELECT uid_generator_create('in_trap_3', epoch => '2015-01-01')", "SELECT uid_default_set('uid_generators.in_trap_3')",
		"SELECT uid_generator_drop('uid_generators.in_trap_too')",
		"SELECT segment_alter('in_trap', 5, 50)", "SELECT uid_internal.uid_change_segment('uid_segments.in_trap', 6)",
		"SELECT * FROM public.t_sequence", "SELECT * FROM public.segment_status", "SELECT * FROM public.uid_generator_status",
		"SELECT * FROM public.uid_generator_config", "SELECT uid_generator_alter('uid_generators.uid_default', lease_ms => 900)", "SELECT segment_drop('in_trap')", "DROP SEQUENCE uid_generators.in_trap",
		"SELECT segment_drop(repeat('in trap ', 20))",
		"SELECT * FROM public.uid_stat", "SELECT * FROM public.uid_stat_server", "SELECT node_id FROM uid_origin(uid_next())",
		"SELECT uid_adopt('public.adopted', 'id', dry_run => false)", "SELECT uid_release('public.adopted', 'id', dry_run => false)",
		"INSERT INTO public.t_sequence VALUES ('in_trap_row', 0, 10)", "UPDATE public.t_sequence SET current_val = 0",
		"SELECT uid_leaf_alloc_create('public')", "INSERT INTO public.leaf_alloc (biz_tag, step) VALUES ('in_trap_row', 10)",
		"UPDATE public.leaf_alloc SET max_id = 0");
	$node->safe_psql('postgres', <<'SQL');
CREATE ROLE attacker LOGIN;
CREATE TABLE adopted (id bigserial PRIMARY KEY);
CREATE SCHEMA trap AUTHORIZATION attacker;
GRANT SELECT ON worker_node TO attacker;
SET ROLE attacker;
CREATE TABLE trap.caught (who text DEFAULT current_user, what text);
GRANT USAGE ON SCHEMA trap TO PUBLIC;
GRANT INSERT ON trap.caught TO PUBLIC;
CREATE FUNCTION trap.catch(what text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS
  'BEGIN INSERT INTO trap.caught (who, what) VALUES (session_user, what); END';
DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT * FROM (VALUES
      ('format(text, VARIADIC text[])', 'text'), ('format(text)', 'text'), ('setval(regclass, bigint)', 'bigint'),
      ('setval(regclass, bigint, boolean)', 'bigint'), ('octet_length(text)', 'integer'), ('quote_literal(text)', 'text'),
      ('md5(text)', 'text'), ('pg_has_role(oid, text)', 'boolean'), ('current_setting(text, boolean)', 'text'),
      ('has_sequence_privilege(oid, text)', 'boolean'), ('has_sequence_privilege(regclass, text)', 'boolean'),
      ('pg_sequence_last_value(regclass)', 'bigint'), ('cardinality(oid[])', 'integer'), ('to_jsonb(anyelement)', 'jsonb'),
      ('jsonb_build_object(VARIADIC text[])', 'jsonb'), ('jsonb_populate_record(anyelement, jsonb)', 'anyelement'),
      ('pg_get_expr(pg_node_tree, oid)', 'text'), ('uid_decode(bigint, regclass)', 'text'), ('now()', 'timestamptz'),
      ('clock_timestamp()', 'timestamptz'), ('uid_slots()', 'text'), ('pg_event_trigger_dropped_objects()', 'oid'),
      ('same(oid, oid)', 'boolean'), ('same(text, text)', 'boolean'), ('same(regclass, regclass)', 'boolean'),
      ('same(bigint, bigint)', 'boolean'), ('same(bigint, integer)', 'boolean'), ('join(text, text)', 'text')) v(signature, result)
  LOOP
    EXECUTE format('CREATE FUNCTION trap.%s RETURNS %s LANGUAGE plpgsql AS %L', f.signature, f.result,
                   format('BEGIN PERFORM trap.catch(%L); RETURN NULL; END', f.signature));
  END LOOP;
END
$$;
CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.same);
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same);
CREATE OPERATOR trap.= (LEFTARG = regclass, RIGHTARG = regclass, FUNCTION = trap.same);
CREATE OPERATOR trap.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.same);
CREATE OPERATOR trap.= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.same);
CREATE OPERATOR trap.< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.same);
CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.same);
CREATE OPERATOR trap.<= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.same);
CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.join);
CREATE TABLE trap.worker_node (LIKE public.worker_node);
CREATE TABLE trap.uid_generator (LIKE public.uid_generator);
CREATE TABLE trap.uid_segment (name text, sequence pg_catalog.regclass, step bigint);
CREATE TABLE trap.uid_preset (LIKE public.uid_preset);
CREATE TABLE trap.pg_class (oid oid, relname name);
CREATE TABLE trap.pg_sequence (seqrelid oid);
CREATE SEQUENCE trap.uid_default;
CREATE SEQUENCE trap.worker_node_id_seq;
INSERT INTO trap.uid_segment VALUES ('in_trap', 'trap.uid_default', 1);
CREATE DOMAIN trap.regclass AS text;
CREATE DOMAIN trap.record AS text;
CREATE DOMAIN trap.bigint AS text;
GRANT ALL ON ALL TABLES IN SCHEMA trap TO PUBLIC;
SQL
	cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM pg_proc WHERE pronamespace = 'trap'::regnamespace"),
		'>', 20, 'the trap is set');
	is($node->safe_psql('postgres', "SET search_path = trap, public, pg_catalog; SELECT now() IS NULL; SELECT (1::oid = 2::oid) IS NULL"),
		"t\nt", 'and works');
	$node->safe_psql('postgres', 'TRUNCATE trap.caught');

	foreach my $call (@calls)
	{
		my ($status, undef, $stderr) = $node->psql('postgres',
			"SET search_path = trap, public, pg_catalog; $call");
		is($stderr, '', "under a hostile search_path: $call");
	}
	is($node->safe_psql('postgres', "SELECT string_agg(DISTINCT what || ' as ' || who, ', ') FROM trap.caught"),
		'', "nothing of the attacker's was executed");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM trap.worker_node'), 0, "nothing was written to the attacker's tables");
	is($node->safe_psql('postgres', "SELECT last_value, is_called FROM trap.uid_default"), '1|f', 'no sequence of the attacker moved');
	is(wait_for_node_rows($node, 'uid_generators.in_trap', 1), 1, 'the row of worker_node is in the right table');

	# A temporary table or type goes before everything else, also before pg_catalog.
	is( $node->safe_psql('postgres',
			"CREATE TEMP TABLE uid_segment (name text, sequence regclass, step bigint);"
			  . "CREATE TEMP TABLE uid_generator (generator regclass); CREATE TEMP TABLE worker_node (id bigint); CREATE TEMP TABLE pg_class (oid oid);"
			  . "CREATE DOMAIN pg_temp.regclass AS text; SELECT segment_create('temp'), uid_generator_create('temp');"
			  . "SELECT segment_next('temp'), uid_next('uid_generators.temp') > 0; SELECT segment_drop('temp')"),
		"uid_segments.temp|uid_generators.temp\n1|t\n", 'temporary tables of the same names change nothing');
}
$node->stop;

# A server that has not loaded the library.
foreach my $loaded ('', 'auto_explain', 'auto_explain, pg_prewarm')
{
	my $name = 'without' . ($loaded =~ tr/,//) . ($loaded eq '' ? 'out' : '');
	my $bare = UidgenNode->new($name);
	$bare->init;
	$bare->append_conf('postgresql.conf', "shared_preload_libraries = '$loaded'\n") if $loaded ne '';
	$bare->start;
	my $line = quotemeta("shared_preload_libraries = '" . ($loaded eq '' ? '' : "$loaded, ") . "uidgen'");
	is(scalar($bare->psql('postgres', 'CREATE EXTENSION uidgen')), 0, 'the extension can be created where the library is not preloaded');
	unlike(slurp_file($bare->logfile), qr/uidgen \S+ is loaded/, '... and the log does not say that it is loaded');
	foreach my $call ('uid_next()', "uid_next('uid_generators.uid_default')", "segment_next('s')", "segment_next('s'::regclass)",
		'count(*) FROM unnest(uid_next_array(3))')
	{
		$bare->safe_psql('postgres', 'CREATE SEQUENCE IF NOT EXISTS s');
		my $error = failure($bare, "SELECT $call");
		like($error, qr/ERROR:  55000/, "not preloaded: $call is an error");
		like($error, qr/HINT:.*$line/, 'with the line to set');
	}
	like(failure($bare, "LOAD 'uidgen'; SELECT uid_next()"), qr/ERROR:  55000/, 'loading it into the session does not help');
	like(failure($bare, "SELECT uid_last()"), qr/ERROR:  55000/, 'nothing was drawn');
	is($bare->safe_psql('postgres', "CREATE SEQUENCE plain; DROP SEQUENCE plain; SELECT count(*) FROM pg_settings WHERE name LIKE 'uidgen.%'"),
		0, 'a DROP of a plain sequence does not load the library');
	is( $bare->safe_psql('postgres',
			"SELECT uid_encode('2026-01-01 00:00:00.002+00', 1, 2, 3), datacenter_id, worker_id, sequence, generated_at = uid_timestamp(8527875) "
			  . "FROM uid_decode(8527875)"),
		((2 << 22) + (1 << 17) + (2 << 12) + 3) . '|1|2|3|t', 'arithmetic on ids works');
	is($bare->safe_psql('postgres', "SELECT segment_create('tickets', 10, 7), uid_generator_create('g')"),
		'uid_segments.tickets|uid_generators.g', 'generators and segments can be made');
	is(sqlstate($bare, 'UPDATE t_sequence SET current_val = current_val + increment_val'), '55000', 'but no blocks be taken');
	is($bare->safe_psql('postgres', 'SELECT count(*) FROM segment_status'), 0, 'segment_status is empty');
	is($bare->safe_psql('postgres', 'SELECT count(*) FROM uid_internal.uid_slots()'), 0, 'and uid_slots()');
	is( $bare->safe_psql('postgres',
			'SELECT generator, worker_id, last_time, leased_until FROM uid_generator_status ORDER BY generator::text'),
		"uid_generators.g|||\nuid_generators.uid_default|||", 'uid_generator_status has NULLs');
	$bare->safe_psql('postgres', "SELECT segment_drop('tickets'); DROP SEQUENCE uid_generators.g");
	is($bare->safe_psql('postgres', 'SELECT count(*) FROM uid_segment') . $bare->safe_psql('postgres', 'SELECT count(*) FROM uid_generator WHERE NOT builtin'),
		'00', 'DROP takes rows along');
	if ($loaded eq 'auto_explain')
	{
		# The hint is good.
		$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'auto_explain, uidgen'\n");
		$bare->restart;
		is($bare->safe_psql('postgres', "SELECT uid_next() > 0, segment_next('s')"), 't|1', 'after the hint was followed it works');
		unlike(($bare->psql('postgres', 'DROP EXTENSION uidgen; CREATE EXTENSION uidgen'))[2], qr/WARNING/, '... without a warning');

		# The log says what was loaded, and never the connection string.
		my $version = $bare->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'uidgen'});
		foreach (
			[ '', 'not set, and uidgen\.datacenter_id is -1' ],
			[ 'uidgen.datacenter_id = 3', 'not set, and uidgen\.datacenter_id is 3' ],
			[ q{uidgen.registry = 'host=/nowhere user=u password=secret'}, 'set, and uidgen\.datacenter_id is 3' ])
		{
			my ($setting, $said) = @$_;
			$bare->append_conf('postgresql.conf', "$setting\n");
			my $start = -s $bare->logfile;
			$bare->restart;
			my $log = substr(slurp_file($bare->logfile), $start);
			is(() = $log =~ /LOG:  uidgen \Q$version\E is loaded\n.*DETAIL:  uidgen\.registry is $said\.$/mg, 1, "at its start the server says that uidgen.registry is $said");
			unlike($log, qr/secret/, '... and no password');
		}
		$bare->append_conf('postgresql.conf', "uidgen.registry = ''\n");
		$bare->reload;
	}
	$bare->safe_psql('postgres', 'DROP EXTENSION uidgen');
	$bare->stop;
}

done_testing();
