# A role that is no superuser creates the extension in a database of its own (trusted = true in uidgen.control). It can
# use, dump, restore and drop it. It cannot get the rights of the superuser to whom the extension's objects belong,
# neither by what it puts into the schema before, nor by what it changes there while code runs with these rights.
use UidgenTest 'preloaded';

my $node = new_node('main', conf => "deadlock_timeout = '10min'\n");
start_node($node);
my $directory = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', <<'SQL');
CREATE ROLE app LOGIN CREATEDB;
CREATE ROLE mallory LOGIN;
CREATE ROLE creator LOGIN;
CREATE ROLE nobody LOGIN;
CREATE DATABASE hostile OWNER mallory;
CREATE DATABASE shared;
GRANT CREATE ON DATABASE shared TO creator;
SQL

# As another role.
sub sql_as ($role, $dbname, $sql)
{
	return $node->safe_psql($dbname, "SET SESSION AUTHORIZATION $role; $sql");
}

sub error_of ($role, $dbname, $sql)
{
	my (undef, undef, $error) = $node->psql($dbname, "\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION $role; $sql");
	return $error =~ /^.*ERROR:  (\w{5}:.*)$/m ? $1 : 'no error';
}

sub is_harmless ($what)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), 'f', $what);
	$node->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER');
}

# What a framework does for its tests.
{
	$node->command_ok([ 'psql', '-Xq', '-U', 'app', '-d', $node->connstr('postgres'), '-c', 'CREATE DATABASE test_app' ],
		'a role with CREATEDB creates a database');
	sql_as('app', 'test_app', 'CREATE EXTENSION uidgen; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), number bigint)');
	is(sql_as('app', 'test_app', "SELECT uid_generator_create('own'), segment_create('numbers', 7); SELECT uid_default_set('uid_generators.own')"),
		"uid_generators.own|uid_segments.numbers\n", 'its owner creates the extension, a generator, a segment');
	is(sql_as('app', 'test_app', "INSERT INTO orders (number) SELECT segment_next('numbers') FROM generate_series(1, 5000); SELECT count(DISTINCT id), max(number) FROM orders"),
		'5000|5006', 'and draws');
	is(sql_as('nobody', 'test_app', 'SELECT count(*) FROM uid_generator_status'), 2, 'other roles see the status');
	wait_for_node_rows($node, 'uid_generators.own', 1, dbname => 'test_app');
	like(error_of('app', 'test_app', 'DELETE FROM uid_secrets.uid_key'), qr/^42501/, 'the tables belong to a superuser');
	is(sql_as('app', 'test_app', 'BEGIN; DELETE FROM worker_node; ROLLBACK; SELECT count(*) FROM worker_node'), 1, '... and worker_node to the owner of the database');
	is($node->safe_psql('test_app', "SELECT extowner::regrole FROM pg_extension WHERE extname = 'uidgen'"), 'app', 'the extension to the role');

	my $dump = "$directory/app.dump";
	$node->command_ok([ 'pg_dump', '-Fc', '-U', 'app', '-f', $dump, '-d', $node->connstr('test_app') ], 'it dumps the database');
	sql_as('app', 'postgres', 'CREATE DATABASE again');
	$node->command_ok([ 'pg_restore', '--exit-on-error', '-U', 'app', '-d', $node->connstr('again'), $dump ], 'and restores it');
	is(sql_as('app', 'again', "SELECT uid_next() > max(id), segment_next('numbers') > max(number) FROM orders"), 't|t', 'draws go on above the rows');
	is(sql_as('app', 'again', 'ALTER EXTENSION uidgen UPDATE; SELECT count(*) > 0 FROM worker_node'), 't', 'an update is allowed');
	like(error_of('app', 'again', 'DROP EXTENSION uidgen'), qr/^2BP01/, 'DROP EXTENSION does not drop a generator in use');
	is(sql_as('app', 'again', "DROP EXTENSION uidgen CASCADE; SELECT count(*) FROM pg_class WHERE relname LIKE 'uid\\_%'"), 0, '... but with CASCADE');
	is(sql_as('app', 'again', 'CREATE EXTENSION uidgen; SELECT uid_next() > 0'), 't', 'and the role creates it again');
	sql_as('app', 'postgres', "DROP DATABASE $_") foreach ('again', 'test_app');
}

# Who may.
like(error_of('nobody', 'shared', 'CREATE EXTENSION uidgen'), qr/^42501: permission denied to create extension "uidgen"/, 'a role without CREATE on the database may not');
is(sql_as('creator', 'shared', 'CREATE SCHEMA mine; CREATE EXTENSION uidgen SCHEMA mine; SELECT mine.uid_next() > 0; DROP EXTENSION uidgen'), 't', 'one that has it may');

# The owner of the schema renames it while the script runs, and a prepared schema takes its name. The session's own event
# trigger does it here: between any two commands, and past every lock.
$node->safe_psql('postgres', 'CREATE DATABASE renaming OWNER mallory');
$node->safe_psql('renaming', <<'SQL');
SET SESSION AUTHORIZATION mallory;
CREATE SCHEMA home;
CREATE SCHEMA prepared;
CREATE FUNCTION prepared.uid_load() RETURNS event_trigger LANGUAGE plpgsql AS
  $$ BEGIN ALTER ROLE mallory SUPERUSER; END $$;
RESET SESSION AUTHORIZATION;
CREATE FUNCTION exchange() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  ALTER SCHEMA home RENAME TO aside;
  ALTER SCHEMA prepared RENAME TO home;
  ALTER SCHEMA aside RENAME TO prepared;
END $$;
CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
  state text := current_setting('test.exchange', true);
BEGIN
  IF TG_EVENT = 'ddl_command_start' AND state = 'exchanged'
       AND (TG_TAG <> 'CREATE VIEW' OR to_regclass('home.uid_stat_server') IS NOT NULL)
       AND (TG_TAG <> 'ALTER TABLE' OR to_regclass('home.uid_stat_server') IS NULL)
     OR TG_EVENT = 'ddl_command_end' AND EXISTS (
       SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity ~ state) THEN
    PERFORM set_config('test.exchange', CASE state WHEN 'exchanged' THEN '^$' ELSE 'exchanged' END, true);
    PERFORM public.exchange();
  END IF;
END $$;
CREATE EVENT TRIGGER watch_start ON ddl_command_start WHEN TAG IN ('CREATE FUNCTION', 'CREATE VIEW', 'CREATE TRIGGER', 'ALTER TABLE') EXECUTE FUNCTION watch();
CREATE EVENT TRIGGER watch_end ON ddl_command_end WHEN TAG IN ('CREATE FUNCTION') EXECUTE FUNCTION watch();
SQL

sub create_and_rename ($function)
{
	return error_of('mallory', 'renaming', "SET test.exchange = '[.]$function\\('; CREATE EXTENSION uidgen SCHEMA home; SHOW test.exchange");
}

# From the event trigger's function to the ALTER TABLE at the end.
is(create_and_rename('uid_load'), 'no error', 'the schema is another one while the event trigger is made');
$node->safe_psql('renaming', 'CREATE SEQUENCE something; SECURITY LABEL FOR uidgen ON SEQUENCE something IS NULL; DROP SEQUENCE something');
is_harmless('a superuser labels something');
is($node->safe_psql('renaming', "SELECT evtfoid::regproc FROM pg_event_trigger WHERE evtname = 'uid_load'"), 'uid_internal.uid_load',
	'the event trigger has its own function');
$node->safe_psql('renaming', "DROP EXTENSION uidgen; DO \$\$ BEGIN IF to_regproc('prepared.uid_load') IS NULL THEN PERFORM public.exchange(); END IF; END \$\$");
# Two views, and what they call. The later GRANT finds other views.
sql_as('mallory', 'renaming', 'CREATE VIEW home.uid_stat AS SELECT 1 AS one; CREATE VIEW home.uid_stat_server AS SELECT 1 AS one');
like(create_and_rename('uid_server_counters'), qr/^55000: extension uidgen would depend on an object that is not its own\b/, 'an object in another schema is found at the end');
$node->safe_psql('renaming', 'DROP EVENT TRIGGER watch_start; DROP EVENT TRIGGER watch_end');
sql_as('mallory', 'renaming', 'DROP VIEW home.uid_stat, home.uid_stat_server');

# What a hostile owner has ready, in a schema that keeps its name: whoever calls one of these as a superuser makes mallory a
# superuser. (053_names.t plants better matches for all that the script, the views and the functions call.)
sql_as('mallory', 'hostile', <<'SQL');
CREATE SCHEMA home;
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC; -- the node writer runs triggers as pg_database_owner
CREATE FUNCTION trap.springs() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
    EXECUTE 'ALTER ROLE mallory SUPERUSER';
  END IF;
  RETURN true;
END $$;
CREATE FUNCTION trap.spring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.springs(); RETURN NEW; END $$;
SQL
# What has a name that the script needs is not taken over: the creation fails.
foreach my $planted ('SCHEMA uid_generators', 'SCHEMA uid_segments', 'SCHEMA uid_keys', 'SCHEMA uid_internal', 'SCHEMA uid_secrets',
	'TABLE home.uid_generator (generator oid)', 'SEQUENCE home.worker_node_id_seq', 'VIEW home.uid_stat AS SELECT 1 AS a FROM trap.springs()', 'TYPE home.worker_node AS (a int)',
	'FUNCTION home.uid_next() RETURNS bigint LANGUAGE sql AS $$SELECT 1 FROM trap.springs()$$')
{
	my ($kind, $name) = $planted =~ /^(\w+) ([\w.]+(?:\(\))?)/;
	sql_as('mallory', 'hostile', "CREATE $planted");
	like(error_of('mallory', 'hostile', 'CREATE EXTENSION uidgen SCHEMA home'), qr/^(?:42P06|42P07|42710|42723|55000): /, "with a planted $kind $name there is no extension");
	sql_as('mallory', 'hostile', "DROP $kind $name");
}
is_harmless('such a failure');
$node->safe_psql('hostile', 'SET SESSION AUTHORIZATION mallory; SET client_min_messages = notice; CREATE EXTENSION uidgen SCHEMA home');
is_harmless('the script calls nothing of the owner of the schema');
$node->safe_psql('hostile', "CREATE SCHEMA leaf; SELECT home.uid_leaf_alloc_create('leaf'::text)");

# What a hostile owner of the schema, of the extension and of the database may not do with what is the superuser's.
foreach my $sql (
	'CREATE RULE r AS ON INSERT TO home.uid_generator DO ALSO SELECT trap.springs()',
	'ALTER TABLE uid_secrets.uid_key ALTER COLUMN width SET DEFAULT 20',
	'ALTER TABLE home.uid_generator ALTER COLUMN preset TYPE bigint USING 0',
	'ALTER TABLE uid_secrets.uid_key DISABLE TRIGGER ALL',
	'ALTER TABLE uid_secrets.uid_key ENABLE ROW LEVEL SECURITY',
	'ALTER TABLE home.uid_segment RENAME TO other',
	'ALTER TABLE home.uid_segment SET SCHEMA public',
	'CREATE POLICY p ON uid_secrets.uid_key USING (trap.springs())',
	'CREATE TABLE child () INHERITS (uid_secrets.uid_key)',
	'CREATE TABLE referring (id bigint REFERENCES uid_secrets.uid_key)',
	'UPDATE pg_seclabel SET label = label',
	'UPDATE uid_secrets.uid_key SET width = 1',
	'CREATE OR REPLACE VIEW home.uid_preset AS SELECT 1',
	'CREATE OR REPLACE FUNCTION home.uid_next() RETURNS bigint LANGUAGE sql AS \'SELECT 1::bigint\'',
	'ALTER FUNCTION uid_internal.uid_home() SET search_path = home',
	'ALTER FUNCTION home.uid_fleet_move() RENAME TO other',
	'GRANT EXECUTE ON FUNCTION home.uid_fleet_move TO nobody',
	'ALTER EXTENSION uidgen DROP VIEW home.uid_preset',
	'ALTER EXTENSION uidgen SET SCHEMA public',
	'DROP TABLE home.worker_node',
	'DROP EVENT TRIGGER uid_load',
	'ALTER EVENT TRIGGER uid_load DISABLE',
	'CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION trap.spring()',
	'ALTER SCHEMA uid_internal RENAME TO other',
	'DROP SCHEMA uid_segments CASCADE',
	'CREATE FUNCTION home.c() RETURNS bigint LANGUAGE c AS \'$libdir/uidgen\', \'uid_next_default\'',
	'SELECT home.uid_fleet_move()')
{
	unlike(error_of('mallory', 'hostile', $sql), qr/^no error|^XX/, "refused: $sql");
}
is_harmless('no statement made it a superuser');

# worker_node is its own, so it may have its code run there: as the owner of the database, by the node writer.
sql_as('mallory', 'hostile', 'CREATE TRIGGER t BEFORE INSERT OR UPDATE ON home.worker_node FOR EACH ROW EXECUTE FUNCTION trap.spring();'
	  . ' ALTER TABLE home.worker_node ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON home.worker_node USING (trap.springs())');
$node->safe_psql('hostile', q{SELECT home.uid_generator_create('traced', worker_policy => 'sticky')});
my $traced = $node->safe_psql('hostile', q{SELECT home.uid_next('uid_generators.traced')});
wait_for_node_rows($node, '%traced', 1, dbname => 'hostile', table => 'home.worker_node');
is($node->safe_psql('hostile', "SELECT generator_name FROM home.uid_origin($traced, 'uid_generators.traced')"), 'uid_generators.traced', 'a superuser draws, and traces the id');
is_harmless('... and runs no code of the owner of worker_node');
sql_as('mallory', 'hostile', 'DROP TRIGGER t ON home.worker_node; DROP POLICY p ON home.worker_node; ALTER TABLE home.worker_node DISABLE ROW LEVEL SECURITY');

# A statement waits for a lock of the owner of the schema, of the extension and of the database. When it goes on, names mean
# something else, or (held => 1) the statement keeps them until it has ended.
#   lock, unlock   what the owner's transaction does, and its end
#   during         what is looked at when the statement waits; meanwhile: what another session of the owner does then
#   error          a pattern, if the statement fails
#   then           what is looked at afterwards; undo puts the names back
sub race ($dbname, $caller_is, $call, %story)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($owner, $thief, $caller) = map { hold_open($node, dbname => $dbname) } 1 .. 3;
	$_->query_safe(q{SET client_min_messages = error; SET search_path = pg_catalog; SET lock_timeout = '2min'}) foreach $owner, $thief, $caller;
	$_->query_safe('SET SESSION AUTHORIZATION mallory') foreach $owner, $thief, $caller_is eq 'owner' ? $caller : ();
	my $waits = sub ($query) {
		return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE starts_with(query, \$x\$$query\$x\$) AND wait_event_type = 'Lock'");
	};
	$owner->query_safe("BEGIN; $story{lock}");
	send_query($caller, $call);
	$waits->($call) or die "$call does not wait";
	$story{during}->() if $story{during};
	my $meanwhile = $story{meanwhile} // '';
	send_query($thief, $meanwhile);
	if ($story{held}) { ok($waits->($meanwhile =~ s/;.*//sr), "the names are held during: $call") }
	elsif ($meanwhile) { is((finish_query($thief))[1], '', "the names change during: $call") }
	$owner->query_safe($story{unlock});
	my (undef, $error) = finish_query($caller);
	like($error, $story{error} // qr/^(?!.*ERROR)/s, $story{error} ? "$call notices what has changed" : "$call succeeds");
	finish_query($thief);
	is_harmless('... and runs no code of the owner of the extension');
	$story{then}->($error) if $story{then};
	sql_as('mallory', $dbname, $story{undo}) if $story{undo};
	$_->quit foreach $owner, $thief, $caller;
}

my $exchange = 'ALTER SCHEMA home RENAME TO stolen; ALTER SCHEMA prepared RENAME TO home';
my $put_back = 'ALTER SCHEMA home RENAME TO prepared; ALTER SCHEMA stolen RENAME TO home';

# The script waits for another session, which creates a function that the script will create. A server that locks the schema
# for CREATE EXTENSION, as 15.20 does, holds off a rename, too, so look whether the script has locked the row.
race('renaming', 'owner', 'CREATE EXTENSION uidgen SCHEMA home',
	lock => q{CREATE FUNCTION home.uid_last() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'},
	unlock => 'ROLLBACK',
	meanwhile => $exchange,
	held => 1,
	during => sub {
		is($node->safe_psql('renaming', "SELECT backend_xid = n.xmax FROM pg_stat_activity, pg_namespace n WHERE query ~ '^CREATE EXTENSION' AND nspname = 'home'"),
			't', 'the script holds the name of its schema');
	},
	then => sub {
		is($node->safe_psql('renaming', "SELECT extnamespace::regnamespace, 'stolen.uid_next()'::regprocedure FROM pg_extension WHERE extname = 'uidgen'"),
			'stolen|stolen.uid_next()', 'the schema is renamed then');
	},
	undo => "DROP EXTENSION uidgen; $put_back");
# A rename that comes before. A server that locks the schema first finds the name again: the extension is in the schema that
# has it.
race('renaming', 'owner', 'CREATE EXTENSION uidgen SCHEMA home',
	lock => $exchange,
	unlock => 'COMMIT',
	error => qr/^(?!.*ERROR)|ERROR:  schema of extension uidgen was renamed by another session/s,
	then => sub ($error) {
		is($node->safe_psql('renaming', "SELECT extnamespace::regnamespace, to_regprocedure('home.uid_next()') IS NOT NULL FROM pg_extension WHERE extname = 'uidgen'"),
			$error =~ /ERROR/ ? '' : 'home|t', 'after a rename before the script the extension is whole or not there');
	});

# A function whose names were bound when it was created.
$node->safe_psql('hostile', 'CREATE FUNCTION leaf.origin() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT home.uid_origin(1::bigint); END');
sql_as('mallory', 'hostile', <<'SQL');
CREATE SCHEMA prepared;
CREATE VIEW prepared.uid_generator AS SELECT g.generator, true AS is_default, 1 AS tick_us, 'cached' AS mode, 1 AS max_staleness_ms FROM home.uid_generator g WHERE trap.springs();
CREATE FUNCTION prepared.uid_decode(bigint, regclass) RETURNS TABLE (datacenter_id int, worker_id int, generated_at timestamptz, backup boolean) LANGUAGE sql AS 'SELECT 1, 1, now(), trap.springs()';
SQL
race('hostile', 'superuser', 'SELECT leaf.origin()', lock => 'LOCK TABLE home.worker_node', unlock => 'COMMIT', meanwhile => "BEGIN; $exchange; COMMIT", undo => "$put_back; DROP SCHEMA prepared CASCADE");

# Names in PL/pgSQL and in C are looked up while a function runs. The owner of the extension drops it, and puts other objects
# in the place of those that these functions name.
my $replace = <<'SQL';
DROP EXTENSION uidgen CASCADE;
CREATE SCHEMA uid_internal; CREATE SCHEMA uid_segments; CREATE SCHEMA uid_generators; CREATE SCHEMA uid_secrets;
CREATE FUNCTION uid_internal.uid_home() RETURNS text LANGUAGE sql AS 'SELECT trap.springs(); SELECT $$home$$';
CREATE FUNCTION uid_internal.uid_move(regclass, name, boolean, regclass, bigint, boolean, interval) RETURNS SETOF text LANGUAGE sql AS 'SELECT trap.springs()::text';
CREATE FUNCTION uid_internal.uid_adopt_plan(regclass, name, record, regclass) RETURNS text[] LANGUAGE plpgsql AS 'BEGIN RETURN ARRAY[trap.springs()::text]; END';
CREATE FUNCTION uid_internal.uid_release_plan(regclass, name, record, bigint) RETURNS text[] LANGUAGE plpgsql AS 'BEGIN RETURN ARRAY[trap.springs()::text]; END';
CREATE FUNCTION uid_internal.uid_sequence_next(regclass) RETURNS numeric LANGUAGE plpgsql AS 'BEGIN RAISE lock_not_available; END';
CREATE VIEW uid_internal.generators AS SELECT 0::regclass AS generator, trap.springs() AS is_default, false AS builtin;
CREATE FUNCTION uid_internal.uid_define_segment(regclass, text, bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT trap.springs()';
CREATE FUNCTION uid_internal.uid_make_sequence(text, name, start bigint = 1, increment bigint = 1, bigint = 1, bigint = 1, boolean = false) RETURNS boolean LANGUAGE sql AS 'SELECT trap.springs()';
CREATE VIEW uid_internal.segments AS SELECT 'dropped'::text AS name, 0::regclass AS sequence, 1::bigint AS step, 1::bigint AS max_step WHERE trap.springs();
CREATE TRIGGER spring INSTEAD OF INSERT ON uid_internal.segments FOR EACH ROW EXECUTE FUNCTION trap.spring();
CREATE TABLE uid_secrets.uid_key (id text UNIQUE, width int DEFAULT 63, version_bits int DEFAULT 0, versions int DEFAULT 1, secrets bigint);
INSERT INTO uid_secrets.uid_key (id, secrets) SELECT 1, 4096
SQL
sql_as('mallory', 'hostile', "CREATE TABLE trap.moving (id bigint DEFAULT home.uid_next('uid_generators.uid_default'))");
my $is_dropped = qr/extension uidgen was dropped by another session/;
foreach my $case (
	[ "uid_adopt('trap.moving'::regclass, 'id'::name)", $is_dropped ],
	[ "uid_adopt('trap.moving'::regclass, 'id'::name, dry_run => false)", $is_dropped ],
	[ "uid_release('trap.moving'::regclass, 'id'::name)", $is_dropped ],
	[ "uid_generator_create('planted'::text)", $is_dropped ],
	[ "uid_generator_drop('uid_generators.chosen'::regclass)", $is_dropped ],
	[ "segment_create('planted'::text)", $is_dropped ],
	[ "segment_drop('dropped'::text)", $is_dropped ],
	[ "segment_attach('planted'::text)", $is_dropped ],
	[ "uid_conceal(1::bigint, 'k'::text)", qr/table "uid_key" of extension uidgen does not exist/ ])
{
	my ($call, $error) = @$case;
	sql_as('mallory', 'hostile', q{SELECT home.uid_generator_create('chosen'::text), home.segment_create('dropped'::text), home.uid_key_create('k'::text)});
	race('hostile', 'superuser', "SELECT home.$call", lock => $replace, unlock => 'COMMIT', error => $error,
		undo => 'DROP SCHEMA uid_internal, uid_segments, uid_generators, uid_secrets CASCADE; CREATE EXTENSION uidgen SCHEMA home');
}

# A column of a type that mallory has made, whose casts are mallory's.
sql_as('mallory', 'hostile', <<'SQL');
CREATE TYPE trap.evil AS (v bigint);
CREATE FUNCTION trap.cast_it(e trap.evil) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.springs(); RETURN (e).v; END $$;
CREATE CAST (trap.evil AS bigint) WITH FUNCTION trap.cast_it(trap.evil) AS IMPLICIT;
CREATE FUNCTION trap.make_it(bigint) RETURNS trap.evil LANGUAGE sql AS 'SELECT row($1)::trap.evil';
CREATE TABLE trap.cast_rows (id trap.evil DEFAULT trap.make_it(home.uid_next()));
INSERT INTO trap.cast_rows VALUES (row(7));
SQL
foreach my $function ('uid_adopt', 'uid_release')
{
	my (undef, undef, $error) = $node->psql('hostile', "SELECT home.$function('trap.cast_rows'::regclass, 'id'::name)");
	like($error, qr/column "id" of table trap.cast_rows cannot draw ids/, "$function moves no column of a type that is not an integer");
	is_harmless('... and runs no cast of its owner');
}

done_testing();
