# Copies: whichever way a database or its schema is copied, its generators, segments and default draw in the copy as in
# the original, with nothing else to do, and expressions of the schema may call functions of uidgen wherever PostgreSQL
# allows it.
use IPC::Run;
use UidgenTest;
use Pages;

my $node = new_node('node', extra => [ '--encoding', 'UTF8', '--no-locale' ]);
start_node($node);
my $directory = PostgreSQL::Test::Utils::tempdir();

# All places that PostgreSQL has for an expression, in tables that a dump has before and after the extension's.
sql('CREATE ROLE app; CREATE DATABASE places');
sql(<<'SQL', 'places');
CREATE EXTENSION uidgen;
SELECT uid_generator_create('g', 'twitter', worker_policy => 'static', worker_number => 3), uid_generator_create('chosen', 'baidu'), uid_key_create('k', 63, 3);
SELECT uid_default_set('uid_generators.chosen');
CREATE DOMAIN recent AS bigint CHECK (uid_timestamp(VALUE, 'uid_generators.g') > '2020-01-01');
-- What its owner calls immutable may be in an index.
CREATE FUNCTION made_at(id bigint) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN public.uid_timestamp(id); END $$;
SQL
foreach my $table ('a_table', 'z_table')
{
	sql(<<"SQL", 'places');
CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT uid_next(), other recent DEFAULT uid_next('uid_generators.g'), code bigint, made timestamptz
  GENERATED ALWAYS AS (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22)) STORED, by_default timestamptz GENERATED ALWAYS AS (made_at(id)) STORED,
  CHECK (made_at(id) > '2020-01-01'), CONSTRAINT by_label CHECK (uid_timestamp(id) > '2020-01-01' AND uid_timestamp(other, 'uid_generators.g') > '2020-01-01'),
  CONSTRAINT by_numbers CHECK (uid_timestamp(other, '2010-11-04 01:42:54.657+00', 1000, 22) > '2020-01-01'));
ALTER TABLE $table ADD CONSTRAINT by_default CHECK (uid_timestamp(id) > '2020-01-01') NOT VALID;
ALTER TABLE $table ADD CONSTRAINT by_generator CHECK (uid_timestamp(other, 'uid_generators.g') > '2020-01-01') NOT VALID;
ALTER TABLE $table ADD CONSTRAINT by_key CHECK (uid_reveal(code, 'k') = id) NOT VALID;
CREATE FUNCTION of_$table() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN NEW.code := public.uid_conceal(NEW.id, 'k'); RETURN NEW; END \$\$;
CREATE TRIGGER fill BEFORE INSERT ON $table FOR EACH ROW WHEN (uid_timestamp(NEW.id) > '2020-01-01') EXECUTE FUNCTION of_$table();
CREATE RULE nothing AS ON DELETE TO $table WHERE uid_timestamp(OLD.id) > '2020-01-01' DO INSTEAD NOTHING;
CREATE POLICY today ON $table TO app USING (id >= uid_lower_bound(current_date)) WITH CHECK (uid_reveal(code, 'k') = id);
ALTER TABLE $table ENABLE ROW LEVEL SECURITY;
CREATE INDEX ON $table (made_at(id));
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
CREATE TABLE times_of_$table (id bigint DEFAULT uid_next()) PARTITION BY RANGE (made_at(id));
CREATE TABLE time_of_$table PARTITION OF times_of_$table FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
CREATE TABLE hashed_$table (id bigint DEFAULT uid_next()) PARTITION BY HASH (uid_to_base62(id));
CREATE TABLE hash0_$table PARTITION OF hashed_$table FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hash1_$table PARTITION OF hashed_$table FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO $table SELECT FROM generate_series(1, 100);
INSERT INTO parts_of_$table SELECT FROM generate_series(1, 100);
INSERT INTO times_of_$table SELECT FROM generate_series(1, 100);
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
 WHERE p.provolatile = 'i' AND p.prokind = 'f' AND NOT p.proretset AND p.pronamespace <> 'uid_internal'::regnamespace AND p.prorettype NOT IN ('void'::regtype, 'trigger'::regtype) ORDER BY 1, 2
SQL
{
	my ($function, $arguments) = split /\|/;
	my @values = map { ($_ eq 'value text' ? $function =~ s/(.*)_from_(.*)/$1_to_$2(id)/r : $argument{$_}) // die "$function: what is a value for $_?" } split /, /, $arguments;
	sql("CREATE INDEX ON m_table ((NOT $function(" . join(', ', @values) . ") IS NULL), $function(" . join(', ', @values) . '))', 'places');
}
wait_for_node_rows($node, '%', 2, dbname => 'places');

# What must be the same after a restore, sorted, because a table has no order. \restrict has a random word.
my $views = join ' UNION ALL ', map { "SELECT count(*), count(DISTINCT code), max(made) FROM kept_$_" } ('a_table', 'z_table');
sub contents_of ($dbname)
{
	my ($dump) = run_command([ 'pg_dump', '-d', $node->connstr($dbname) ]);
	return join "\n", sort split(/\n/, $dump =~ s/^\\(un)?restrict .*//mgr), sql($views, $dbname);
}
my $contents = contents_of('places');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/places.dump", '-d', $node->connstr('places') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-f', "$directory/places.sql", '-d', $node->connstr('places') ], 'pg_dump as SQL');

my @restore = ('pg_restore', '--exit-on-error');
sub restored ($dbname, $what, @commands)
{
	sql("CREATE DATABASE $dbname TEMPLATE template0") unless $dbname eq 'places';
	$node->command_ok([ @$_, '-d', $node->connstr($dbname), $_->[0] eq 'psql' ? () : "$directory/places.dump" ], "$what: @$_[1 .. $#$_]") foreach @commands;
	is(contents_of($dbname), $contents, "all is as it was: $what");
}
restored('plain', 'SQL', [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/places.sql" ]);
restored('serial', 'serial', [@restore]);
restored('parallel', 'parallel', [ @restore, '-j2' ]);
restored('transaction', 'in one transaction', [ @restore, '-1' ]);
restored('as_owners', 'as the owner of each object', [ @restore, '--use-set-session-authorization' ]);
restored('sections', 'in sections', map { [ @restore, "--section=$_" ] } ('pre-data', 'data', 'post-data'));
restored('places', 'over what is there', [ @restore, '--clean', '--if-exists' ]);
restored('places', 'over what is there, parallel', [ @restore, '--clean', '--if-exists', '-j2' ]);

# In parallel no order is promised. So the secrets of keys come last here: all is restored that need not wait for them.
sql('CREATE DATABASE last TEMPLATE template0');
$node->command_ok([ @restore, '--section=pre-data', '-d', $node->connstr('last'), "$directory/places.dump" ], 'definitions');
my $lock = hold_open($node, dbname => 'last');
$lock->query_safe('BEGIN; LOCK TABLE uid_secrets.uid_key IN EXCLUSIVE MODE');
my $errors = '';
my $run = IPC::Run::start([ @restore, '-j4', '--section=data', '--section=post-data', '-d', $node->connstr('last'), "$directory/places.dump" ], '2>', \$errors);
my $made = q{SELECT (SELECT count(*) FROM pg_index) + (SELECT count(*) FROM pg_constraint) + (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_policy)};
my $wanted = sql($made, 'places');
ok(poll_until('all but the secrets of keys', sub { $run->pump_nb; return !$run->pumpable || sql($made, 'last') >= $wanted }, 60), 'what need not wait does not');
$lock->query_safe('COMMIT');
$lock->quit;
ok($run->finish, 'parallel, with the secrets last') or diag($errors);
is(contents_of('last'), $contents, 'all is as it was');

# Schema and data apart, with a table for Leaf.
sql("SELECT uid_leaf_alloc_create(); INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1000); UPDATE leaf_alloc SET max_id = max_id + step", 'places');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/places.dump", '-d', $node->connstr('places') ], 'pg_dump of a table for Leaf');
sql('CREATE DATABASE shop TEMPLATE template0');
rename "$directory/places.dump", "$directory/shop.dump" or die;
shell_ok($node, block_of('docs/operations.md', qr/pg_restore --schema-only/), 'definitions and data apart', directory => $directory);
sql('REFRESH MATERIALIZED VIEW kept_a_table; REFRESH MATERIALIZED VIEW kept_z_table', 'shop');
is(contents_of('shop'), contents_of('places'), 'all is as it was');
is(sql('UPDATE leaf_alloc SET max_id = max_id + step RETURNING max_id - step > 1002', 'shop'), 't', '... and a node of Leaf takes its next block');

# ---------------------------------------------------------------------------------------------------------
# What generators, segments and keys may be like.
# ---------------------------------------------------------------------------------------------------------

# Every field of each definition. A copy of the schema has no counters.
my $definitions = "SELECT to_jsonb(g) FROM uid_generator AS g ORDER BY generator::text COLLATE \"C\"; SELECT to_jsonb(s) FROM uid_segment AS s ORDER BY name COLLATE \"C\"";
my $odd = <<'SQL';
CREATE EXTENSION uidgen;
SELECT uid_generator_create('web', 'js53'), uid_generator_create('With "quotes", it''s odd'), uid_generator_create(chr(21517) || chr(233), 'sonyflake'),
  uid_generator_create(repeat('g', 63), 'twitter'), uid_generator_create('own', 'hutool', tick_us => 1234567, time_bits => 30,
  epoch => '2025-02-28 23:59:59.999999+00', datacenter_id => 3, worker_policy => 'static', worker_number => 9, tolerance_ms => -1),
  uid_generator_create('cached', 'baidu_cached', schedule_ms => 60000, padding_factor => 20), uid_generator_create('renamed'), uid_generator_create('elsewhere');
SELECT segment_create('plain'), segment_create('With "quotes" and ''others''', 7, 10, 100), segment_create(repeat(chr(21517), 21), 100),
  segment_create(repeat(chr(21517), 40), 200), segment_create(repeat('long ', 200), -5, increment => -3), segment_create(E'two\nlines\\'),
  segment_create('renamed', 300), segment_create('elsewhere', 400);
SELECT uid_key_create('k', 63, 3);
SELECT uid_default_set('uid_generators.web');
ALTER SEQUENCE uid_generators.renamed RENAME TO "Another name";
ALTER SEQUENCE uid_segments.renamed RENAME TO "Another name";
CREATE SCHEMA other;
CREATE TABLE other.owner (id bigint DEFAULT uid_next(), n bigint);
ALTER SEQUENCE uid_generators.elsewhere SET SCHEMA other;
ALTER SEQUENCE other.elsewhere RENAME TO generator;
ALTER SEQUENCE uid_segments.elsewhere SET SCHEMA other;
ALTER SEQUENCE other.elsewhere OWNED BY other.owner.n;
ALTER SEQUENCE uid_segments.plain OWNER TO app;
SELECT uid_t_sequence_create(), uid_leaf_alloc_create();
INSERT INTO t_sequence VALUES ('Another name', 300, 20), ('With "quotes" and ''others''', 7, 10), (repeat(chr(21517), 40), 200, 5);
INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('plain', 1, 1000), ('leaf alone', 1, 10);
UPDATE t_sequence SET current_val = current_val + increment_val;
UPDATE leaf_alloc SET max_id = max_id + step;
SQL
sql('CREATE DATABASE odd');
sql($odd, 'odd');
my $defined = sql($definitions, 'odd');

# Each generator draws ids of now, the default those that JavaScript can hold.
my $ids_are_of_now = 'SELECT count(*), bool_and(abs(extract(epoch FROM uid_timestamp(uid_next(generator), generator) - clock_timestamp())) < 60) FROM uid_generator';
my $default = 'SELECT id < 1::bigint << 53 AND abs(extract(epoch FROM uid_timestamp(id) - clock_timestamp())) < 60 FROM uid_next() AS id';
my $values = 'SELECT name, segment_next(sequence) FROM uid_segment ORDER BY name COLLATE "C"';
sub draws_as_the_original ($dbname, $what)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(sql($definitions, $dbname), $defined, "$what: each generator and segment is as it was");
	is(sql($ids_are_of_now, $dbname), '9|t', '... and draws in its layout');
	is(sql($default, $dbname), 't', '... the default too');
}

# The schema alone: Rails' structure.sql, CI, the first step of a move.
$node->command_ok([ 'pg_dump', '-s', '-f', "$directory/schema.sql", '-d', $node->connstr('odd') ], 'pg_dump -s');
$node->command_ok([ 'pg_dump', '-s', '-x', '-O', '-f', "$directory/structure.sql", '-d', $node->connstr('odd') ], 'pg_dump -s -x -O');
my $starts = sql('SELECT name, seqstart FROM uid_segment JOIN pg_sequence ON seqrelid = sequence ORDER BY name COLLATE "C"', 'odd');
foreach my $name ('schema', 'structure')
{
	sql("CREATE DATABASE $name TEMPLATE template0");
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/$name.sql", '-d', $node->connstr($name) ], "psql -f $name.sql");
	draws_as_the_original($name, "$name.sql");
	is(sql($values, $name), $starts, '... and segments begin at their start');
	like(failure("SELECT uid_conceal(1, 'k')", $name), qr/ERROR:  \w{5}: key "k" has no secret.*HINT: .*uid_key_create\('k'/s, 'a key has no secret, and the error says what to do');
	is(sql("SELECT uid_key_create('k', 63, 3); SELECT uid_reveal(uid_conceal(1, 'k'), 'k')", $name), "uid_keys.k\n1", '... until it is made again');
}

# What nodes of other services take from the rows in a copy is above all that was reserved in the original.
my $reserved = "SELECT pk_seq_name AS name, current_val + 2 * increment_val FROM t_sequence UNION ALL SELECT biz_tag, max_id FROM leaf_alloc";
my $taken = 'WITH t AS (UPDATE t_sequence SET current_val = current_val + increment_val RETURNING pk_seq_name AS name, current_val - increment_val AS first),'
  . ' l AS (UPDATE leaf_alloc SET max_id = max_id + step RETURNING biz_tag AS name, max_id - step AS first)'
  . ' SELECT name, first FROM t UNION ALL SELECT name, first FROM l';
sub pairs_of ($lines) { return map { /(.*)\|(.*)/s } split /\n/, $lines }
sub nodes_go_on ($dbname)
{
	my %reserved = pairs_of(sql($reserved, 'odd'));
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $case ([ 'nodes take', $taken ], [ 'sessions draw', "SELECT name, segment_next(name) FROM ($reserved) AS r" ])
	{
		my ($what, $statement) = @$case;
		my %given = pairs_of(sql($statement, $dbname));
		is(join(' ', sort keys %given), join(' ', sort keys %reserved), "$dbname: $what from each row of t_sequence and leaf_alloc");
		is(join(' ', grep { $given{$_} <= $reserved{$_} } sort keys %given), '', '... what is above all that was reserved');
	}
}

# Everything, whatever the way.
sql('SELECT uid_next(generator), n FROM uid_generator, generate_series(1, 3) AS n; SELECT segment_next(name) FROM uid_segment', 'odd');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/odd.dump", '-d', $node->connstr('odd') ], 'pg_dump');
my $concealed = sql("SELECT uid_conceal(77, 'k')", 'odd');
my $highest = 'SELECT sum(uid_next(generator)::numeric) FROM uid_generator';
my $before = sql($highest, 'odd');
my $next;
sql('CREATE ROLE alice LOGIN');
foreach my $case ([ 'serial', 'postgres' ], [ 'of_alice', 'alice', '--no-owner', '-j2', '-U', 'alice' ], [ 'template', 'postgres', '-1' ], [ 'of_app', 'app', '--use-set-session-authorization' ])
{
	my ($name, $owner, @options) = @$case;
	sql("CREATE DATABASE odd_$name OWNER $owner TEMPLATE template0");
	$node->command_ok([ @restore, @options, '-d', $node->connstr("odd_$name"), "$directory/odd.dump" ], "pg_restore @options to a database of $owner");
	if ($name eq 'template')
	{
		sql("CREATE DATABASE odd_copy TEMPLATE odd_template");
		$name = 'copy';
	}
	draws_as_the_original("odd_$name", "odd_$name");
	my $drawn = sql($values, "odd_$name");
	is($drawn, $next //= $drawn, '... and segments continue, as in each copy');
	cmp_ok(sql($highest, "odd_$name"), '>', $before, '... and ids rise');
	is(sql("SELECT uid_reveal($concealed, 'k')", "odd_$name"), 77, '... and what was concealed is revealed');
	nodes_go_on("odd_$name");
}
like($next, qr/^plain\|(?!1$)\d+$/m, 'segments are above what was drawn');

# Definitions and data apart, the data without triggers.
sql('DROP DATABASE shop; CREATE DATABASE shop TEMPLATE template0');
$node->command_ok([ @restore, @$_, '-d', $node->connstr('shop'), "$directory/odd.dump" ], "pg_restore @$_")
  foreach ['--schema-only'], [ '--data-only', '--disable-triggers' ];
draws_as_the_original('shop', 'data without triggers');
is(sql($values, 'shop'), $next, '... and segments continue');
nodes_go_on('shop');

# The data with triggers, which reserve blocks anew.
sql('DROP DATABASE shop; CREATE DATABASE shop TEMPLATE template0');
$node->command_ok([ @restore, '-s', '-d', $node->connstr('shop'), "$directory/odd.dump" ], 'definitions');
$node->command_ok([ @restore, '-a', '-j2', '-d', $node->connstr('shop'), "$directory/odd.dump" ], '... and data with triggers');
nodes_go_on('shop');

# Into a database that has all of it, in other figures: what is there stays.
sql('CREATE DATABASE live TEMPLATE odd_template');
sql(<<'SQL', 'live');
SELECT uid_generator_alter('uid_generators.own', lease_ms => 700, when_full => 'borrow'), segment_alter('plain', 9);
SELECT uid_next(generator) FROM uid_generator;
SELECT uid_default_set('uid_generators.own') FROM uid_generator_alter('uid_generators.own', worker_number => 8);
SQL
my $live = sql($definitions, 'live');
run_log([ 'psql', '-Xq', '-f', "$directory/$_.sql", '-d', $node->connstr('live') ]) foreach ('schema', 'structure');
run_log([ 'pg_restore', '-d', $node->connstr('live'), "$directory/odd.dump" ]);
is(sql($definitions, 'live'), $live, 'a restore into a database that has all of it changes no definition');
sql("CREATE DATABASE builtin TEMPLATE odd_template");
sql("SELECT uid_default_set('uid_generators.uid_default')", 'builtin');
$live = sql($definitions, 'builtin');
run_log([ 'pg_restore', @$_, '-d', $node->connstr('builtin'), "$directory/odd.dump" ]) foreach [], ['-a'], ['--no-security-labels'];
is(sql($definitions, 'builtin'), $live, '... nor does it take the default from the builtin generator');

# Nor from one that sessions draw from: the label of the dump's default is refused there.
sql('CREATE DATABASE drawn TEMPLATE template0');
sql('CREATE EXTENSION uidgen; SELECT uid_next()', 'drawn');
run_log([ 'pg_restore', '-d', $node->connstr('drawn'), "$directory/odd.dump" ]);
is(sql('SELECT generator FROM uid_generator WHERE is_default', 'drawn'), 'uid_generators.uid_default', 'the default stays that of a database in use');
is(sql('SELECT uid_next() > 0', 'drawn'), 't', '... which draws');
like(failure("SELECT uid_next('uid_generators.web')", 'drawn'), qr/"web" has lost its definition/, '... although a label was refused');

# Without labels nothing says what the sequences are. The error has the statement that mends it. The builtin generator does
# not stand in for the default, although it has drawn in the original.
sql('CREATE DATABASE unlabelled TEMPLATE template0');
$node->command_ok([ @restore, '--no-security-labels', '-d', $node->connstr('unlabelled'), "$directory/odd.dump" ], 'pg_restore --no-security-labels');
like(failure("SELECT uid_next('uid_generators.web')", 'unlabelled'), qr/ERROR:  55000: .*"web" has lost its definition.*HINT: .*uid_generator_create\('web'/s, 'a generator without its label does not draw');
is(sql("SELECT uid_generator_create('web', 'js53')", 'unlabelled'), 'uid_generators.web', '... until it is created again');
is(sql("SELECT uid_next('uid_generators.web') >= last_value << 21 FROM uid_generators.web", 'unlabelled'), 't', '... above its ids');
like(failure("SELECT segment_next('plain')", 'unlabelled'), qr/ERROR:  55000: .*"plain" has lost its definition.*HINT: .*segment_create\('plain'/s, 'nor does a segment');
is(sql("SELECT segment_create('plain')", 'unlabelled'), 'uid_segments.plain', '... until it is created again');
like($next, qr/^plain\|@{[ sql("SELECT segment_next('plain')", 'unlabelled') ]}$/m, '... and continues');
like(failure('SELECT uid_next()', 'unlabelled'), qr/ERROR:  55000: cannot draw from generator "uid_default" because sequence ".*" has lost its definition.*HINT: .*uid_default_set/s,
	'nor does the default, to which the builtin generator is not the heir');
sql("SELECT setval('uid_generators.uid_default', 1)", 'unlabelled'); # its ids, which are in no column, are above those of the default
is(sql("SELECT uid_default_set('uid_generators.web')", 'unlabelled') . sql($default, 'unlabelled'), 't', '... until it is chosen again');

# LATIN1 to UTF8, where names become longer than an identifier may be.
sql("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0");
sql("CREATE EXTENSION uidgen; SELECT uid_generator_create('caf' || chr(233), 'js53'), segment_create(repeat(chr(233), 40), 40), segment_create(repeat(chr(232), 70), 70);"
	  . " SELECT uid_default_set(generator) FROM uid_generator WHERE preset = 'js53'; SELECT segment_next(repeat(chr(233), 40))", 'latin');
foreach my $case ([ 'schema_of_latin', '40|70', '-s' ], [ 'latin_too', '41|70' ])
{
	my ($dbname, $expected, @options) = @$case;
	sql("CREATE DATABASE $dbname TEMPLATE template0");
	$node->command_ok([ 'pg_dump', @options, '-f', "$directory/latin.sql", '-d', $node->connstr('latin') ], "pg_dump @options of LATIN1");
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/latin.sql", '-d', $node->connstr($dbname) ], '... to UTF8');
	is(sql('SELECT segment_next(repeat(chr(233), 40)), segment_next(repeat(chr(232), 70))', $dbname) =~ s/^4[1-9]|^[5-9]\d|^\d{3,}/41/r, $expected, 'segments have their names');
	is(sql('SELECT octet_length(generator::text), uid_next() < 1::bigint << 53 FROM uid_generator WHERE is_default', $dbname), '22|t', '... and the default its');
}

# The extension in a schema of its own, which is renamed; dropped and made again. What depended on it goes with it, but no
# column.
sql('CREATE DATABASE homed');
sql($odd =~ s/^CREATE EXTENSION uidgen;/CREATE SCHEMA home; CREATE EXTENSION uidgen SCHEMA home; SET search_path = home, public;/r . 'ALTER SCHEMA home RENAME TO "its home"; ALTER DATABASE homed SET search_path = "its home", public', 'homed');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/homed.dump", '-d', $node->connstr('homed') ], 'pg_dump of an extension elsewhere');
sql('CREATE DATABASE homed_too TEMPLATE template0; ALTER DATABASE homed_too SET search_path = "its home", public');
$node->command_ok([ @restore, '-d', $node->connstr('homed_too'), "$directory/homed.dump" ], 'pg_restore');
is(sql($definitions, 'homed_too'), sql($definitions, 'homed'), 'an extension in another schema is as it was');
is(sql($default, 'homed_too'), 't', '... its default, too');
sql('SET client_min_messages = error; DROP EXTENSION uidgen CASCADE', 'homed_too');
is(sql("SELECT count(*) FROM pg_seclabel; SELECT relname FROM pg_class WHERE relkind = 'S'; SELECT attname FROM pg_attribute WHERE attrelid = 'other.owner'::regclass AND attnum > 0 AND NOT attisdropped", 'homed_too'),
	"0\nid\nn", 'DROP EXTENSION CASCADE takes the sequences and their labels, and no column');
$node->command_ok([ 'pg_dump', '-f', "$directory/rest.sql", '-d', $node->connstr('homed_too') ], 'pg_dump of what is left');
sql('CREATE DATABASE rest TEMPLATE template0');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/rest.sql", '-d', $node->connstr('rest') ], '... and its restore');
sql('CREATE EXTENSION uidgen SCHEMA "its home"', 'homed_too');
is(sql("SELECT preset, is_default FROM uid_generator; SELECT uid_next() > 0; SELECT segment_create('plain'), uid_generator_create('web')", 'homed_too'), "snowflake|t\nt\nuid_segments.plain|uid_generators.web", 'made again it is new');

# Of the statements of others, event triggers see security labels and drops of sequences alone. So CREATE TABLE costs what it costs
# without the extension.
is(sql("SELECT string_agg(evtevent || coalesce(' of ' || array_to_string(evttags, ', '), ''), '; ' ORDER BY evtevent) FROM pg_event_trigger", 'odd'), 'ddl_command_start of SECURITY LABEL, DROP SEQUENCE', 'no event trigger looks at CREATE, ALTER or DROP TABLE');

# A dump has no sequence of another extension, so it has no row of it.
sql('CREATE DATABASE members; CREATE DATABASE members_again');
sql("CREATE EXTENSION uidgen; SELECT segment_create('taken'), segment_create('kept'); ALTER EXTENSION plpgsql ADD SEQUENCE uid_segments.taken", 'members');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/members.dump", '-d', $node->connstr('members') ], 'pg_dump of a segment of another extension');
$node->command_ok([ @restore, '-d', $node->connstr('members_again'), "$directory/members.dump" ], 'pg_restore');
is(sql("SELECT segment_next('kept'), string_agg(name, ' ') FROM uid_segment", 'members_again'), '1|kept', 'other segments are as they were');

done_testing();
