# Restores: wherever a schema may call functions of uidgen, an ordinary pg_restore brings everything back, serial and
# parallel, into a new database and over the old one. Where it could not, the statement is refused, or a warning says so.
use IPC::Run;
use UidgenTest;

my $node = new_node('node');
start_node($node);
my $directory = PostgreSQL::Test::Utils::tempdir();

# All places that PostgreSQL has for an expression, in tables that a dump has before and after the extension's.
sql('CREATE ROLE app; CREATE DATABASE places');
sql(<<'SQL', 'places');
CREATE EXTENSION uidgen;
SELECT uid_generator_create('g', 'twitter', worker_policy => 'static', worker_number => 3), uid_generator_create('chosen', 'baidu'), uid_key_create('k', 63, 3);
SELECT uid_default_set('uid_generators.chosen');
CREATE DOMAIN recent AS bigint CHECK (uid_timestamp(VALUE, '2010-11-04 01:42:54.657+00', 1000, 22) > '2020-01-01');
SQL
foreach my $table ('a_table', 'z_table')
{
	sql(<<"SQL", 'places');
CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT uid_next(), other recent DEFAULT uid_next('uid_generators.g'), code bigint, made timestamptz
  GENERATED ALWAYS AS (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22)) STORED,
  CONSTRAINT by_numbers CHECK (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22) > '2020-01-01'));
ALTER TABLE $table ADD CONSTRAINT by_default CHECK (uid_timestamp(id) > '2020-01-01') NOT VALID;
ALTER TABLE $table ADD CONSTRAINT by_generator CHECK (uid_timestamp(other, 'uid_generators.g') > '2020-01-01') NOT VALID;
ALTER TABLE $table ADD CONSTRAINT by_key CHECK (uid_reveal(code, 'k') = id) NOT VALID;
CREATE FUNCTION of_$table() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN NEW.code := public.uid_conceal(NEW.id, 'k'); RETURN NEW; END \$\$;
CREATE TRIGGER fill BEFORE INSERT ON $table FOR EACH ROW WHEN (uid_timestamp(NEW.id) > '2020-01-01') EXECUTE FUNCTION of_$table();
CREATE RULE nothing AS ON DELETE TO $table WHERE uid_timestamp(OLD.id) > '2020-01-01' DO INSTEAD NOTHING;
CREATE POLICY today ON $table TO app USING (id >= uid_lower_bound(current_date)) WITH CHECK (uid_reveal(code, 'k') = id);
ALTER TABLE $table ENABLE ROW LEVEL SECURITY;
CREATE INDEX ON $table (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22));
CREATE INDEX ON $table (code) WHERE uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22) > '2020-01-01';
CREATE STATISTICS times_of_$table ON (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22)), code FROM $table;
CREATE VIEW of_$table AS SELECT uid_conceal(id, 'k') AS code, uid_timestamp(other, 'uid_generators.g') AS made FROM $table;
CREATE MATERIALIZED VIEW kept_$table AS SELECT uid_conceal(id, 'k') AS code, uid_timestamp(other, 'uid_generators.g') AS made FROM $table;
CREATE UNIQUE INDEX ON kept_$table (code);
CREATE TABLE parts_of_$table (id bigint DEFAULT uid_next()) PARTITION BY RANGE (id);
CREATE TABLE old_$table PARTITION OF parts_of_$table FOR VALUES FROM (MINVALUE) TO (uid_lower_bound('2026-01-01'));
CREATE TABLE new_$table PARTITION OF parts_of_$table FOR VALUES FROM (uid_lower_bound('2026-01-01')) TO (MAXVALUE);
ALTER TABLE old_$table ADD CHECK (uid_timestamp(id) < '2026-01-02') NOT VALID;
CREATE TABLE hashed_$table (id bigint DEFAULT uid_next()) PARTITION BY HASH (uid_to_base62(id));
CREATE TABLE hash0_$table PARTITION OF hashed_$table FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hash1_$table PARTITION OF hashed_$table FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO $table SELECT FROM generate_series(1, 100);
INSERT INTO parts_of_$table SELECT FROM generate_series(1, 100);
INSERT INTO hashed_$table SELECT FROM generate_series(1, 100);
REFRESH MATERIALIZED VIEW kept_$table;
SQL
}

# Every function of the extension that PostgreSQL takes in an index.
my %argument = (
	'id bigint' => 'id',
	'value bigint' => 'id',
	'key_name text' => "'k'",
	'version integer' => '1',
	'ts timestamp with time zone' => 'at',
	'epoch timestamp with time zone' => "'2026-01-01 00:00+00'",
	'tick_us bigint' => '1000',
	'shift integer' => '22');
sql("CREATE TABLE m_table AS SELECT id, '2026-01-01 00:00+00'::timestamptz + id * interval '1 s' AS at FROM generate_series(1, 1000) AS id", 'places');
foreach (split /\n/, sql(<<'SQL', 'places'))
SELECT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
 WHERE p.provolatile = 'i' AND p.prokind = 'f' AND NOT p.proretset AND p.prorettype NOT IN ('void'::regtype, 'trigger'::regtype) ORDER BY 1, 2
SQL
{
	my ($function, $arguments) = split /\|/;
	my @values = map { ($_ eq 'value text' ? $function =~ s/(.*)_from_(.*)/$1_to_$2(id)/r : $argument{$_}) // die "$function: what is a value for $_?" } split /, /, $arguments;
	sql("CREATE INDEX ON m_table ((NOT $function(" . join(', ', @values) . ") IS NULL), $function(" . join(', ', @values) . '))', 'places');
}
wait_for_node_rows($node, '%', 2, dbname => 'places');

# What must be the same after a restore, sorted, because a table has no order. \restrict has a random word.
my $views = join ' UNION ALL ', map { "SELECT count(*), count(DISTINCT code), max(made) FROM kept_$_" } ('a_table', 'z_table');
sub contents_of
{
	my ($dbname) = @_;
	my ($dump) = run_command([ 'pg_dump', '-d', $node->connstr($dbname) ]);
	return join "\n", sort split(/\n/, $dump =~ s/^\\(un)?restrict .*//mgr), sql($views, $dbname);
}
my $contents = contents_of('places');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/places.dump", '-d', $node->connstr('places') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-f', "$directory/places.sql", '-d', $node->connstr('places') ], 'pg_dump as SQL');

my @restore = ('pg_restore', '--exit-on-error');
sub restored
{
	my ($dbname, $what, @commands) = @_;
	sql("CREATE DATABASE $dbname TEMPLATE template0") unless $dbname eq 'places';
	$node->command_ok([ @$_, '-d', $node->connstr($dbname), $_->[0] eq 'psql' ? () : "$directory/places.dump" ], "$what: @$_[1 .. $#$_]") foreach @commands;
	is(contents_of($dbname), $contents, "all is as it was: $what");
}
restored('plain', 'SQL', [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/places.sql" ]);
restored('serial', 'serial', [@restore]);
restored('parallel', 'parallel', [ @restore, '-j2' ]);
restored('sections', 'in sections', map { [ @restore, "--section=$_" ] } ('pre-data', 'data', 'post-data'));
restored('places', 'over what is there', [ @restore, '--clean', '--if-exists' ]);
restored('places', 'over what is there, parallel', [ @restore, '--clean', '--if-exists', '-j2' ]);

# In parallel no order is promised. So the rows of configuration come last here: all is restored that need not wait for them.
sql('CREATE DATABASE last TEMPLATE template0');
$node->command_ok([ @restore, '--section=pre-data', '-d', $node->connstr('last'), "$directory/places.dump" ], 'definitions');
my $lock = hold_open($node, dbname => 'last');
$lock->query_safe('BEGIN; LOCK TABLE uid_generator, uid_secrets.uid_key IN EXCLUSIVE MODE');
my $errors = '';
my $run = IPC::Run::start([ @restore, '-j4', '--section=data', '--section=post-data', '-d', $node->connstr('last'), "$directory/places.dump" ], '2>', \$errors);
my $made = q{SELECT (SELECT count(*) FROM pg_index) + (SELECT count(*) FROM pg_constraint) + (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_policy)};
my $wanted = sql($made, 'places');
ok(poll_until('all but the rows of configuration', sub { $run->pump_nb; return !$run->pumpable || sql($made, 'last') >= $wanted }, 60), 'what need not wait does not');
$lock->query_safe('COMMIT');
$lock->quit;
ok($run->finish, 'parallel, with the configuration last') or diag($errors);
is(contents_of('last'), $contents, 'all is as it was');

sub complaint
{
	my ($sql) = @_;
	my (undef, undef, $stderr) = $node->psql('places', "SET client_min_messages = warning; $sql", extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	return $stderr;
}
# A CHECK may call any function. One that could not be restored comes with a warning, once.
sub warned
{
	my ($expected, $sql) = @_;
	my $stderr = complaint($sql);
	my @warnings = $stderr =~ /WARNING:  01000: a restore may fail at constraint (.*)/g;
	is("@warnings", $expected, $expected eq '' ? "no warning: $sql" : "warned: $sql");
	return $stderr;
}
like(warned('default_time on public.checked', "CREATE TABLE checked (id bigint, other bigint, CONSTRAINT default_time CHECK (uid_timestamp(id) > '2020-01-01'))"),
	qr/DETAIL:  It calls (public\.)?uid_timestamp\(bigint,regclass\)\. .*HINT:  .* with NOT VALID/s, '... with the function and the way out');
warned('', 'ALTER TABLE checked ADD COLUMN more bigint');
warned('', "ALTER TABLE checked ADD CONSTRAINT later CHECK (uid_timestamp(other, 'uid_generators.g') > '2020-01-01' AND uid_reveal(more, 'k') = id) NOT VALID");
like(warned('later on public.checked', 'ALTER TABLE checked VALIDATE CONSTRAINT later'), qr/It calls (public\.)?uid_reveal\(bigint,text\), \S*uid_timestamp\(bigint,regclass\)\./,
	'... with each function');
warned('', "ALTER TABLE checked ADD CHECK (uid_timestamp(id, '2026-01-01', 1000, 22) > '2020-01-01')");
warned('', "CREATE TEMP TABLE brief (id bigint CHECK (uid_timestamp(id) > '2020-01-01'))");
warned('', 'CREATE TABLE parts (id bigint) PARTITION BY RANGE (id)');
warned('', 'CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (MAXVALUE)');
warned('of_all on public.parts', "ALTER TABLE parts ADD CONSTRAINT of_all CHECK (uid_timestamp(id) > '2020-01-01') NOT VALID");
warned('', "ALTER TABLE part ADD CONSTRAINT of_one CHECK (uid_timestamp(id) > '2021-01-01') NOT VALID");
warned('of_domain on public.young', "CREATE DOMAIN young AS bigint CONSTRAINT of_domain CHECK (uid_timestamp(VALUE) > '2020-01-01')");
warned('too on public.young', "ALTER DOMAIN young ADD CONSTRAINT too CHECK (uid_conceal(VALUE, 'k') > 0) NOT VALID");
warned('c on of_schema.t', "CREATE SCHEMA of_schema CREATE TABLE t (id bigint CONSTRAINT c CHECK (uid_timestamp(id) > '2020-01-01'))");

# As docs/operations.md says, definitions and data apart, with the configuration first. That restores such a table, too.
sql("INSERT INTO checked (id, other, more) SELECT id, uid_next('uid_generators.g'), uid_conceal(id, 'k') FROM a_table", 'places');
$node->poll_query_until('places', 'SELECT max(id) = (SELECT last_value FROM worker_node_id_seq) FROM worker_node') or die 'no row of worker_node';
sql("SELECT uid_leaf_alloc_create(); INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1000); UPDATE leaf_alloc SET max_id = max_id + step", 'places');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/shop.dump", '-d', $node->connstr('places') ], 'pg_dump of a table with such a CHECK, and of one for Leaf');
sql('CREATE DATABASE failed TEMPLATE template0; CREATE DATABASE shop TEMPLATE template0');
$node->command_fails_like([ @restore, '-d', $node->connstr('failed'), "$directory/shop.dump" ], qr/COPY failed for table "checked": ERROR:  "g" is not a generator|has no secret/, 'an ordinary restore fails');
shell_ok($node, block_of('docs/operations.md', qr/pg_restore --schema-only/), 'definitions, configuration and data apart', directory => $directory);
sql('REFRESH MATERIALIZED VIEW kept_a_table; REFRESH MATERIALIZED VIEW kept_z_table', 'shop');
is(contents_of('shop'), contents_of('places'), 'all is as it was');
my $advance = 'UPDATE leaf_alloc SET max_id = max_id + step RETURNING max_id - step > 1002';
is(sql($advance, 'shop'), 't', '... and a node of Leaf takes its next block');

# A dump has no sequence of another extension, so it has no row of it.
sql('CREATE DATABASE members; CREATE DATABASE members_again');
sql("CREATE EXTENSION uidgen; SELECT segment_create('taken'), segment_create('kept'); ALTER EXTENSION plpgsql ADD SEQUENCE uid_segments.taken", 'members');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/members.dump", '-d', $node->connstr('members') ], 'pg_dump of a segment of another extension');
$node->command_ok([ @restore, '-d', $node->connstr('members_again'), "$directory/members.dump" ], 'pg_restore');
is(sql("SELECT segment_next('kept'), string_agg(name, ' ') FROM uid_segment", 'members_again'), '1|kept', 'other segments are as they were');

done_testing();
