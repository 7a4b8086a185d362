# Which roles may draw and which may create generators and segments; and that worker_node is written whichever role
# draws.
use UidgenTest 'preloaded';
use Pages;

my $node = new_node('roles');
start_node($node);

sql('CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE carol LOGIN; CREATE ROLE boss LOGIN');

# The default generator is open to everybody, from the transaction on that makes it.
is(sql('BEGIN; CREATE EXTENSION uidgen; SET ROLE bob; SELECT uid_next() > 0; SELECT count(*) FROM unnest(uid_next_array(10)); RESET ROLE; COMMIT'),
	"t\n10", 'the default generator is open to every role, also in the transaction that creates the extension');
is(sql('SET SESSION AUTHORIZATION bob; SELECT uid_next() > 0'), 't', 'and afterwards');
is(sql("SET SESSION AUTHORIZATION bob; SELECT (uid_decode(uid_next())).generated_at IS NOT NULL, uid_last() > 0, count(*) FROM uid_generator_status"),
	't|t|1', 'with its status');

# Who may make.
{
	foreach my $call ("uid_generator_create('x')", "segment_create('x')")
	{
		like(failure("SET SESSION AUTHORIZATION alice; SELECT $call"), qr/ERROR:  42501: permission denied for schema uid_/, "$call needs CREATE on the schema");
	}
	is(sql('SELECT count(*) FROM uid_generator WHERE NOT builtin') . sql('SELECT count(*) FROM uid_segment'), '00', 'nothing was left');
	sql('GRANT CREATE ON SCHEMA uid_generators, uid_segments TO alice');
	is(sql("SET SESSION AUTHORIZATION alice; SELECT uid_generator_create('a'), segment_create('a'), segment_create('b')"),
		'uid_generators.a|uid_segments.a|uid_segments.b', 'with it, it works');
	is(sql("SELECT DISTINCT relowner::regrole FROM pg_class WHERE relnamespace IN ('uid_generators'::regnamespace, 'uid_segments'::regnamespace) AND relname <> 'uid_default'"),
		'alice', 'what it makes belongs to the caller');
	is(sql("SET SESSION AUTHORIZATION alice; BEGIN; SELECT uid_generator_create('b'); SELECT uid_next('uid_generators.b') > 0; ROLLBACK"),
		"uid_generators.b\nt", 'and is used at once');
	sql('CREATE DATABASE own OWNER boss');
	$node->safe_psql('own', 'CREATE EXTENSION uidgen');
	is($node->safe_psql('own', "SET SESSION AUTHORIZATION boss; SELECT uid_generator_create('x'), segment_create('x'); SELECT uid_next('uid_generators.x') > 0, segment_next('x')"),
		"uid_generators.x|uid_segments.x\nt|1", 'the owner of the database may');
	wait_for_node_rows($node, '%', 1, dbname => 'own');
	is($node->safe_psql('own', 'SET SESSION AUTHORIZATION boss; SELECT count(*) FROM worker_node'), 1, 'and reads worker_node');
	like(failure('SET SESSION AUTHORIZATION bob; SELECT segment_drop(\'x\')', 'own'), qr/ERROR:  42501/, 'only its owner drops a segment');
	is($node->safe_psql('own', "SET SESSION AUTHORIZATION boss; SELECT segment_drop('x'); SELECT count(*) FROM uid_segment"), "\n0", 'which needs nothing more');

	# Each GRANT of the documents, with the objects that it names, and each change of default privileges.
	$node->safe_psql('own', "CREATE ROLE $_") foreach qw(app service leaf ids fleet_app1 fleet_app2);
	$node->safe_psql('own', "SET SESSION AUTHORIZATION boss; CREATE SCHEMA uidgen; CREATE SCHEMA api; CREATE SCHEMA things; SET search_path = things, public;"
		  . " SELECT uid_generator_create(name) FROM unnest('{web,events,orders2,orders53,uid_default_next,earlier,next,other}'::text[]) name;"
		  . " SELECT segment_create(name) FROM unnest('{order,orders}'::text[]) name; SELECT uid_key_create('orders'); SELECT uid_leaf_alloc_create(), uid_t_sequence_create()");
	my %granted;
	foreach my $page (glob 'README.md docs/*.md docs/originals/*.md docs/runbooks/*.md')
	{
		my $text = slurp_file($page);
		$granted{ $1 =~ s/\s+/ /gr } = $page while $text =~ /^\s*((?:GRANT|ALTER DEFAULT PRIVILEGES) \N+?);/mg;
		$granted{$_} = $page foreach grep { /^GRANT/ } statements_of($page);
	}
	delete @granted{ 'GRANT SET ON PARAMETER uidgen.datacenter_id TO owner', 'GRANT USAGE ON SEQUENCE uid_generators.uid_default TO app',
		'GRANT SELECT ON ALL SEQUENCES IN SCHEMA uid_generators, uid_segments, uid_keys TO pg_database_owner' }; # by a superuser
	delete $granted{'GRANT SELECT ON ALL TABLES IN SCHEMA public TO debezium'}; # of other tables: 018_readme.t
	cmp_ok(scalar(keys %granted), '>=', 12, 'the documents have grants');
	foreach my $grant (sort keys %granted)
	{
		my $error;
		$node->psql('own', "SET SESSION AUTHORIZATION boss; SET search_path = things, public; $grant", stderr => \$error);
		is($error, '', "the owner of the database may run $grant ($granted{$grant})");
	}
	$node->safe_psql('own', 'SET SESSION AUTHORIZATION boss; GRANT USAGE ON SCHEMA things TO service');
	is($node->safe_psql('own', "SET SESSION AUTHORIZATION service; INSERT INTO worker_node (host_name, port, type, launch_date, modified, created)"
			  . " VALUES ('x', '1', 2, current_date, now(), now()); INSERT INTO things.t_sequence VALUES ('grown', 1, 10); SELECT count(*) FROM things.t_sequence WHERE pk_seq_name = 'grown'"),
		1, '... and then the service uses the tables');
	$node->safe_psql('own', "DROP SCHEMA uidgen; DROP SCHEMA things CASCADE; DROP SEQUENCE uid_segments.grown, uid_segments.\"order\", uid_segments.orders, uid_keys.orders");

	# The datacenter id of a database, as its owner sets it: docs/operations.md.
	my $set = 'ALTER DATABASE own SET uidgen.datacenter_id = 7';
	my $number = 'SELECT (uid_decode(uid_next())).datacenter_id';
	like(failure("SET SESSION AUTHORIZATION boss; $set", 'own'), qr/ERROR:  42501/, 'the owner may not set the datacenter id');
	$node->safe_psql('own', 'GRANT SET ON PARAMETER uidgen.datacenter_id TO boss');
	my $open = hold_open($node, dbname => 'own');
	my $before = $open->query_safe($number);
	$node->safe_psql('own', "SET SESSION AUTHORIZATION boss; $set");
	is($node->safe_psql('own', $number), 7, '... but after GRANT SET ON PARAMETER');
	is($open->query_safe($number), $before, 'a session that was open keeps the old value');
	$open->quit;
}

# Who may draw.
{
	my @calls = ("uid_next('uid_generators.a')", "count(*) FROM unnest(uid_next_array('uid_generators.a', 3))",
		"segment_next('a')", "segment_next('uid_segments.a'::regclass)");
	my $state = "SELECT (SELECT last_value FROM uid_generators.a), (SELECT last_value || is_called::text FROM uid_segments.a), (SELECT count(*) FROM uid_internal.uid_counters() WHERE sequence::text ~ 'a\$')";
	my $before = sql($state);
	foreach my $call (@calls)
	{
		like(failure("SET SESSION AUTHORIZATION bob; SELECT $call"), qr/ERROR:  42501.*permission denied for sequence a\b/s, "$call of somebody else's is refused");
	}
	like(failure("SET SESSION AUTHORIZATION bob; SELECT nextval('uid_generators.a')"), qr/ERROR:  42501/, 'nextval too');
	is(sql($state), $before, 'nothing was burned');

	sql('SET SESSION AUTHORIZATION alice; GRANT USAGE ON SEQUENCE uid_generators.a, uid_segments.a TO bob');
	is(sql("SET SESSION AUTHORIZATION bob; SELECT uid_next('uid_generators.a') > 0, segment_next('a'), segment_next('uid_segments.a'::regclass)"),
		't|1|2', 'USAGE lets a role draw');
	$before = sql('SELECT last_value, is_called FROM uid_generators.a');
	like(failure("SET SESSION AUTHORIZATION bob; SELECT nextval('uid_generators.a')"), qr/ERROR:  2200H/, 'but not call nextval on a lease sequence');
	is(sql('SELECT last_value, is_called FROM uid_generators.a'), $before, 'whose high-water mark stays');
	like(failure("SET SESSION AUTHORIZATION bob; SELECT setval('uid_generators.a', 5)"), qr/ERROR:  42501/, 'nor setval');
	sql('SET SESSION AUTHORIZATION alice; REVOKE USAGE ON SEQUENCE uid_generators.a FROM bob; GRANT SELECT ON SEQUENCE uid_generators.a TO bob');
	like(failure("SET SESSION AUTHORIZATION bob; SELECT uid_next('uid_generators.a')"), qr/ERROR:  42501/, 'SELECT is not enough');
	sql('SET SESSION AUTHORIZATION alice; GRANT UPDATE ON SEQUENCE uid_generators.a TO bob');
	is(sql("SET SESSION AUTHORIZATION bob; SELECT uid_next('uid_generators.a') > 0"), 't', 'UPDATE is, as for nextval');
	sql('SET SESSION AUTHORIZATION alice; REVOKE ALL ON SEQUENCE uid_generators.a, uid_segments.a FROM bob');
}

# A privilege is each caller's own, also within one transaction.
{
	sql("SET SESSION AUTHORIZATION alice; SELECT uid_generator_create('ring', 'baidu_cached')");
	sql(<<'SQL');
CREATE FUNCTION lend() RETURNS text LANGUAGE sql SECURITY DEFINER VOLATILE AS
  $$ SELECT concat(uid_next('uid_generators.a') > 0, uid_next('uid_generators.ring') > 0, segment_next('a') > 0, segment_next('uid_segments.a'::regclass) > 0) $$;
ALTER FUNCTION lend() OWNER TO alice;
SQL
	my $session = hold_open($node);
	$session->query_safe('SET SESSION AUTHORIZATION bob');
	foreach my $call ("uid_next('uid_generators.a')", "uid_next('uid_generators.ring')", "segment_next('a')", "segment_next('uid_segments.a'::regclass)",
		"count(*) FROM unnest(uid_next_array('uid_generators.a', 3))")
	{
		$session->query_safe('BEGIN; SAVEPOINT a');
		is($session->query_safe('SELECT lend()'), 'tttt', 'a SECURITY DEFINER function draws');
		like(failure($session, "SELECT $call"), qr/ERROR:  42501/, "its caller may not, in the same transaction: $call");
		$session->query_safe('ROLLBACK TO a');
		is($session->query_safe('SELECT lend()'), 'tttt', 'and it goes on');
		$session->query_safe('ROLLBACK');
	}
	# Revoked in mid transaction, though a window on the ring is open.
	sql('GRANT USAGE ON SEQUENCE uid_generators.ring TO bob');
	is($session->query_safe("BEGIN; SELECT uid_next('uid_generators.ring') > 0"), 't', 'with USAGE a role draws');
	sql('REVOKE USAGE ON SEQUENCE uid_generators.ring FROM bob');
	$session->query_safe('SELECT count(*) FROM uid_generator');
	like(failure($session, "SELECT uid_next('uid_generators.ring')"), qr/ERROR:  42501/, '... and no more when it is revoked');
	$session->quit;

	# One prepared statement, two roles.
	$session = hold_open($node);
	$session->query_safe("PREPARE id AS SELECT uid_next('uid_generators.a') > 0; PREPARE ring AS SELECT uid_next('uid_generators.ring') > 0;"
		  . " PREPARE n AS SELECT segment_next('a') > 0; PREPARE r AS SELECT segment_next('uid_segments.a'::regclass) > 0");
	foreach my $statement ('id', 'ring', 'n', 'r')
	{
		$session->query_safe('BEGIN; SET LOCAL ROLE alice');
		is($session->query_safe("EXECUTE $statement"), 't', "a prepared statement draws for its owner: $statement");
		$session->query_safe('SET LOCAL ROLE bob');
		like(failure($session, "EXECUTE $statement"), qr/ERROR:  42501/, 'and not for another role');
		$session->query_safe('ROLLBACK');
	}
	# One expression, evaluated under two roles.
	like(failure($session, <<'SQL'), qr/ERROR:  42501/, 'an expression evaluated again under another role is checked again');
DO $$
BEGIN
  FOR i IN 1 .. 2 LOOP
    PERFORM uid_next('uid_generators.a'), segment_next('a');
    SET LOCAL ROLE bob;
  END LOOP;
END
$$;
SQL
	$session->quit;
}

# Labels: their sequence's owner sets them. The tables: nobody changes or removes rows.
{
	my $label = sub ($sequence, $default = 'false') {
		return sql("SELECT format('SECURITY LABEL FOR uidgen ON SEQUENCE %s IS %L', '$sequence', regexp_replace(label, 'is_default=.*', 'is_default=$default'))"
			  . " FROM pg_seclabel WHERE objoid = 'uid_generators.uid_default'::regclass");
	};
	sql('CREATE SEQUENCE public.of_super; CREATE SEQUENCE uid_generators.of_super; CREATE SEQUENCE uid_segments.of_super');
	foreach my $sequence ('uid_generators.of_super', 'uid_segments.of_super', 'public.of_super', 'uid_generators.uid_default')
	{
		like(failure('SET SESSION AUTHORIZATION alice; ' . $label->($sequence)), qr/ERROR:  42501/, "alice does not label $sequence");
		like(failure("SET SESSION AUTHORIZATION alice; SELECT uid_internal.uid_define_segment('$sequence', 'mine', NULL, NULL)"),
			qr/ERROR:  42501/, "... nor by the function");
	}
	like(failure('SET SESSION AUTHORIZATION bob; ' . $label->('uid_generators.a')), qr/ERROR:  42501/, "nor bob alice's generator");
	sql('SET SESSION AUTHORIZATION alice; CREATE SEQUENCE uid_generators.by_hand INCREMENT 9223372036854775807 MINVALUE 1 START 1 NO CYCLE');
	like(failure('SET SESSION AUTHORIZATION alice; ' . $label->('uid_generators.by_hand', 'true')), qr/ERROR:  55000/, 'a label takes the default from a builtin generator that has not drawn');
	sql('SET SESSION AUTHORIZATION alice; ' . $label->('uid_generators.by_hand'));
	is(sql("SET SESSION AUTHORIZATION alice; SELECT uid_next('uid_generators.by_hand') > 0"), 't', 'a label for a sequence of her own works');
	like(failure('SET SESSION AUTHORIZATION alice; ' . $label->('uid_generators.by_hand') =~ s/lease_ms=1000/lease_ms=500/r), qr/ERROR:  42710/, 'once');
	foreach my $role ('alice', 'bob')
	{
		foreach my $change ('UPDATE pg_seclabel SET label = label', 'DELETE FROM pg_seclabel',
			'DELETE FROM uid_secrets.uid_key',
			'UPDATE worker_node SET worker_id = 0', 'DELETE FROM worker_node', 'TRUNCATE worker_node', 'SELECT * FROM worker_node',
			"INSERT INTO worker_node SELECT 1, '', '', 1, now(), now(), now(), '', 0, 0, 0, 0",
			"SELECT nextval('worker_node_id_seq')", "SELECT setval('worker_node_id_seq', 1)", "SELECT segment_next('worker_node_id_seq')",
			"SELECT setval('uid_generators.uid_default', 1)", 'ALTER SEQUENCE uid_generators.uid_default RESTART', 'DROP SEQUENCE uid_generators.uid_default',
			'DROP EVENT TRIGGER uid_load')
		{
			like(failure("SET SESSION AUTHORIZATION $role; $change"), qr/ERROR:  42501/, "$role may not: $change");
		}
	}
	like(failure($label->('uid_generators.of_super') . "; SELECT uid_next('uid_generators.of_super')"),
		qr/ERROR:  55000/, 'a sequence that nextval could move is no lease sequence');
	# What changes rows, marks and the choice of a default, by who may not.
	{
		my $rows = 'SELECT g FROM uid_generator AS g ORDER BY generator::text';
		my $before = sql($rows) . sql('SELECT last_value FROM uid_generators.a');
		sql('GRANT ALL ON SEQUENCE uid_generators.a TO bob');
		foreach my $change ("uid_generator_alter('uid_generators.a', lease_ms => 500)", "uid_generator_alter('uid_generators.uid_default', spread => false)",
			"uid_generator_raise('uid_generators.a', 5)",
			"uid_generator_raise('uid_generators.uid_default', 5)", "uid_generator_drop('uid_generators.a')", "uid_default_set('uid_generators.a')", "uid_default_set('uid_generators.uid_default')",
			"segment_alter('a', 5)", "uid_internal.uid_change_segment('uid_segments.a', 5)")
		{
			like(failure("SET SESSION AUTHORIZATION bob; SELECT $change"), qr/ERROR:  42501/, "bob may not: $change");
		}
		like(failure("SET SESSION AUTHORIZATION alice; SELECT uid_default_set('uid_generators.a')"), qr/ERROR:  42501.*DETAIL:  Only the owner of the database/s,
			'the owner of a generator does not make it the default');
		is(sql($rows) . sql('SELECT last_value FROM uid_generators.a'), $before, 'nothing changed');
		is(sql("SET SESSION AUTHORIZATION alice; SELECT uid_generator_alter('uid_generators.a', lease_ms => 500); SELECT uid_generator_raise('uid_generators.a', 5); "
				. "SELECT segment_alter('a', 5); SELECT lease_ms, step FROM uid_generator, uid_segment WHERE generator = 'uid_generators.a'::regclass AND name = 'a'"),
			"\n\n\n500|5", 'the owner of the sequence changes its definition');
		sql('REVOKE ALL ON SEQUENCE uid_generators.a FROM bob');
		# The owner of the database chooses its default, though neither generator is his.
		$node->safe_psql('own', "SELECT uid_generator_create('later', epoch => '2020-01-01')");
		is($node->safe_psql('own', "SET SESSION AUTHORIZATION boss; SELECT uid_default_set('uid_generators.later')"), '', "the owner of the database chooses the default");
		is($node->safe_psql('own', "SELECT generator FROM uid_generator WHERE is_default"), 'uid_generators.later', 'which it is then');
		like(failure('SET SESSION AUTHORIZATION bob; SELECT uid_next()', 'own'), qr/ERROR:  42501.*later/s, 'USAGE on it is not part of the choice');
		$node->safe_psql('own', 'GRANT USAGE ON SEQUENCE uid_generators.later TO PUBLIC');
		is($node->safe_psql('own', 'SET SESSION AUTHORIZATION bob; SELECT uid_next() > 0'), 't', 'it is granted');
	}
	# Dropping one's own takes the row along, though one may not delete it.
	sql('SET SESSION AUTHORIZATION alice; DROP SEQUENCE uid_generators.by_hand, uid_segments.b');
	is(sql("SELECT count(*) FROM uid_generator WHERE generator::text ~ 'by_hand|^[0-9]'") . sql("SELECT count(*) FROM uid_segment WHERE name = 'b'"),
		'00', "a role's DROP SEQUENCE takes its row along");
}

# worker_node is written whoever draws (026_node_rows.t: in nobody's way).
{
	sql("SELECT uid_generator_create('w1'); GRANT USAGE ON SEQUENCE uid_generators.w1 TO PUBLIC");
	is(sql("SET SESSION AUTHORIZATION bob; SELECT uid_next('uid_generators.w1') > 0"), 't', 'a role without rights on worker_node draws');
	is(wait_for_node_rows($node, 'uid_generators.w1', 1), 1, 'and its row is written');
	is(sql("SELECT worker_id = (SELECT worker_id FROM worker_node WHERE generator = 'uid_generators.w1') FROM uid_decode(uid_next('uid_generators.w1'), 'uid_generators.w1')"),
		't', 'with the worker id that is in the ids');
	sql('GRANT SELECT, UPDATE (host_name) ON worker_node TO carol');
	is(sql("SET SESSION AUTHORIZATION carol; UPDATE worker_node SET host_name = 'h' WHERE generator = 'uid_generators.w1' RETURNING host_name"),
		'h', 'a role that may update a column does');
	like(failure('SET SESSION AUTHORIZATION carol; UPDATE worker_node SET worker_id = 5'), qr/ERROR:  42501/, 'and nothing else');
	# The owner of the database restores rows.
	is($node->safe_psql('own', "SET SESSION AUTHORIZATION boss; INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) "
			. "VALUES ('h', '1', 2, now(), now(), now()) RETURNING id > 0, system_identifier <> 0; SELECT setval('worker_node_id_seq', 100)"),
		"t|t\n100", 'the owner of the database adds rows, and moves their counter');
}

# Each object has the privileges that the script means, whatever ALTER DEFAULT PRIVILEGES gives or takes.
{
	sql('CREATE ROLE "Guest ""x""" LOGIN');
	my $defaults = sub ($verb, $whom, @classes) {
		return map { "ALTER DEFAULT PRIVILEGES $verb ALL ON $_ $whom;\n" } @classes;
	};
	my @all = ('TABLES', 'SEQUENCES', 'FUNCTIONS', 'TYPES', 'SCHEMAS');
	my $of_schema = join '', map { s/PRIVILEGES/PRIVILEGES IN SCHEMA public/r } map { $defaults->('GRANT', "TO $_", @all[ 0 .. 3 ]) } 'carol', 'PUBLIC';
	my %defaults = (
		none => '',
		generous => join('', map { $defaults->('GRANT', "TO $_", @all) } 'PUBLIC', 'bob WITH GRANT OPTION', '"Guest ""x""" WITH GRANT OPTION') . $of_schema,
		mean => join('', $defaults->('REVOKE', 'FROM PUBLIC', @all)));
	my (%acls, %kept);
	foreach my $kind (sort keys %defaults)
	{
		sql("CREATE DATABASE $kind");
		$node->safe_psql($kind, "$defaults{$kind}CREATE EXTENSION uidgen; SELECT uid_key_create('k')");
		# Those that are in force, and those that pg_dump compares with.
		my $acls = sub ($initial) {
			my $acl = $initial ? 'i.initprivs' : 'o.acl';
			return $node->safe_psql($kind, <<"SQL");
SELECT pg_describe_object(o.class, o.oid, 0), x.grantee::regrole, x.privilege_type, x.is_grantable, x.grantor::regrole
  FROM (SELECT tableoid, oid, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner, relacl FROM pg_class
         UNION ALL SELECT tableoid, oid, 'f', proowner, proacl FROM pg_proc
         UNION ALL SELECT tableoid, oid, 'T', typowner, typacl FROM pg_type
         UNION ALL SELECT tableoid, oid, 'n', nspowner, nspacl FROM pg_namespace) o(class, oid, kind, owner, acl)
  JOIN pg_depend d ON d.classid = o.class AND d.objid = o.oid AND d.deptype = 'e'
  JOIN pg_extension e ON d.refclassid = e.tableoid AND d.refobjid = e.oid AND e.extname = 'uidgen'
  LEFT JOIN pg_init_privs i ON i.classoid = o.class AND i.objoid = o.oid AND i.objsubid = 0
 CROSS JOIN LATERAL aclexplode(coalesce($acl, acldefault(o.kind, o.owner))) x ORDER BY 1, 2, 3
SQL
		};
		($acls{$kind}, $kept{$kind}) = ($acls->(0), $acls->(1));
	}
	cmp_ok(scalar(split /\n/, $acls{none}), '>', 250, 'there are privileges');
	is($acls{$_}, $acls{none}, "$_ default privileges change none of the extension's") foreach ('generous', 'mean');
	is($kept{$_}, $acls{$_}, "those that pg_dump compares with are the same: $_") foreach sort keys %defaults;
	my %calls = (
		'SELECT secrets FROM uid_secrets.uid_key' => 'schema uid_secrets',
		'DELETE FROM worker_node' => 'table worker_node');
	like(failure("SET SESSION AUTHORIZATION bob; $_", 'generous'), qr/ERROR:  42501: permission denied for \Q$calls{$_}\E/, "bob may not: $_") foreach sort keys %calls;
	# A habit that reaches all that is in the schema of the applications.
	$node->safe_psql('none', 'GRANT SELECT ON ALL TABLES IN SCHEMA public TO bob');
	like(failure('SET SESSION AUTHORIZATION bob; SELECT secrets FROM uid_secrets.uid_key', 'none'), qr/ERROR:  42501: permission denied for schema uid_secrets/,
		'SELECT on all tables does not open the secrets');
}

done_testing();
