# Calls of everything that the extension has, as the catalog lists it, with values of each type. 042_sweep.t and
# 053_names.t run them.
#
#   my $node = new_sweep_server($name, $conf);   # with roles that call
#   create_targets($node, $database);            # a database with the extension, and objects that values name
#   my $catalog = catalog($node, $database);     # functions, relations, and values of each type
#   my @calls = one_by_one($function, $catalog); # each parameter through all its values
#   my @states = run_calls($node, \@calls, user => 'visitor', ...);    # one SQLSTATE for each
#   sweep($node, 'what it is', \@calls, ...);     # the same as an assertion: none ends with an SQLSTATE that it must not
#   sweep_as_before($node, 'what it is', \@calls, \@states, setup => $sql, ...);   # ... and no outcome differs
#   check_end_of_sweep($node, @databases);       # drops the databases, and stops the server
#
# A call is SQL text. It names everything with its schema, so it means the same under every search_path.
package Sweep;

use v5.36;

use Exporter 'import';
use IPC::Run;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;
use Fleet;

our @EXPORT = qw($quoted_home create_targets catalog untyped_parameters one_by_one at_random with_huge_arguments changes
  triggers plant planted_calls new_sweep_server run_calls run_in_single_user_mode is_bad sweep sweep_as_before
  check_end_of_sweep);

# A name that goes wrong wherever it is not quoted.
my $home = q{O'Neill "uid".$1};
our $quoted_home = '"' . $home =~ s/"/""/gr . '"';

# Limits of identifiers, of quoting, of format strings and of memory. Names that mean something come last.
my @texts = (
	'', 'x', q{'}, q{"}, q{\\}, '%I %s %L %1$s', '-- ', "a\nb", '$$', q{a.b}, q{"a.b}, q{O'Neill."x""y"}, ' x ', "\xf0\x9f\x98\x80",
	'x' x 63, 'x' x 64, '0', '-1', '4294967295', 'NaN', 'infinity', 'null', '{}', '{1', 'seg', 'own', 'uid_default', 'things.down', 'things.plain',
	'pg_class', 'hidden', 'snowflake', 'baidu_cached', 'borrow', 'wait', 'backup', 'static', 'cached', 'always', 'BY DEFAULT',
	'1970-01-01 00:00:00+00');
my @times = (
	'infinity', '-infinity', '4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00', '1970-01-01 00:00:00+00',
	'1969-12-31 23:59:59.999999+00', '2026-01-01 00:00:00+00', '2026-11-21 12:00:00.0005+00');

my %values = (
	text => [ map({ literal($_, 'text') } @texts), q{pg_catalog.repeat('x'::pg_catalog.text, 1048576)}, literal('x' x 100, 'text') ],
	name => [ map { literal($_, 'name') } @texts[ 0 .. 15 ], qw(id i s ctid tableoid nothing ........pg.dropped.6........), q{we.ird "col'} ],
	varchar => [ map { literal($_, 'varchar') } @texts[ 0 .. 15 ] ],
	bool => [ 'true', 'false' ],
	int2 => [ numbers('int2', 16) ],
	int4 => [ numbers('int4', 32) ],
	int8 => [ numbers('int8', 64), map({ literal($_, 'int8') } 2147483648, 1099511627776, 1099511627777, 4294967296) ],
	_int8 => [ map { literal($_, '_int8') } '{}', '{NULL}', '{1}', '{{1,2},{3,4}}', '[5:6]={1,2}', '{-9223372036854775808,9223372036854775807}',
		'{' . join(',', 1 .. 5000) . '}' ],
	_int4 => [ map { literal($_, '_int4') } '{}', '{NULL}', '{-2147483648,2147483647}' ],
	timestamptz => [ map { literal($_, 'timestamptz') } @times ],
	date => [ map { literal($_, 'date') } 'infinity', '-infinity', '4714-11-24 BC', '5874897-12-31', '2026-11-21' ],
	interval => [ map { literal($_, 'interval') } '0', '-1 us', '1 ms', '-178000000 years', '178000000 years', '100 years', 'infinity' ],
	float8 => [ map { literal($_, 'float8') } 'NaN', 'infinity', '-infinity', '-0', '1e308', '1e-320' ],
	oid => [ map { literal($_, 'oid') } 0, 1, 4294967295 ],
	_oid => [ map { literal($_, '_oid') } '{}', '{NULL}', '{0}', '{1,4294967295}' ],
	uuid => [ map { literal($_, 'uuid') } '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
		'017f22e2-79b0-7cc3-98c4-dc0c0c07398f', '017f22e2-79b0-4cc3-98c4-dc0c0c07398f' ],
	bytea => [ map { literal($_, 'bytea') } '', '\\x00', '\\x' . '5e' x 32, '\\x' . 'ff' x 33 ],
	_bytea => [ map { literal($_, '_bytea') } '{}', '{NULL}', '{\\\\x}', '{{\\\\x00,\\\\x01}}', '{\\\\x' . '00' x 100 . '}' ],
	jsonb => [ map { literal($_, 'jsonb') } '{}', '[]', 'null', '1', '"x"', '{"a": [{"b": 1e400}]}', '{"generator": null}', '{"generator": 1}',
		'{"time_bits": "x"}', '{"tick_us": 1e30}', '{"epoch": "infinity"}', '{"builtin": true}', '{"is_default": true}', '{"when_full": 7}',
		'{"created": null}', '{"nothing": 1}' ],
	record => [ 'ROW()', 'ROW(1)', 'ROW(NULL::pg_catalog.text, 5)', '(SELECT g FROM uid_internal.generators g LIMIT 1)',
		q{(SELECT s FROM (SELECT 'made'::pg_catalog.text AS name, 5 AS step, 1::pg_catalog.int2 AS increment_val) s)}, q{(SELECT s FROM (SELECT 'x' AS name, pg_catalog.now() AS step) s)} ],
	regclass => [],
	regrole => []);

# No message repeats them.
my %huge = (
	(map { ($_ => "pg_catalog.repeat('x', 1048576)::pg_catalog.$_") } qw(text name varchar)),
	_int8 => 'pg_catalog.array_fill(1::pg_catalog.int8, ARRAY[100000])',
	bytea => q{pg_catalog.decode(pg_catalog.repeat('5e', 1048576), 'hex')},
	_bytea => q{ARRAY[pg_catalog.decode(pg_catalog.repeat('5e', 1048576), 'hex')]},
	jsonb => q{pg_catalog.jsonb_build_object(pg_catalog.repeat('x', 1048576), pg_catalog.repeat('x', 1048576))});

# By the name of a parameter. Any other one without a default has a value by its type.
my %typical = (
	id => 117681045448435301,
	count => 3,
	step => 5,
	shift => 22,
	preset => 'snowflake',
	epoch => '2026-01-01 00:00:00+00',
	schema => 'things',
	column_name => 'id',
	relation => 'things.plain',
	registry_name => 'seg',
	key_name => 'key',
	segment => 'seg',
	given => '{}',
	dry_run => 'false',
	above => 1);
my %typical_of_type = (
	text => 'new', name => 'id', int2 => 1, int4 => 1, int8 => 1, bool => 'true', timestamptz => '2026-11-21 12:00:00+00', jsonb => '{}',
	_int8 => '{}');

sub literal ($value, $type)
{
	my $text = $value =~ s/'/''/gr;
	# E'' means the same whatever standard_conforming_strings is.
	return ($text =~ /\\/ ? q{E'} . $text =~ s/\\/\\\\/gr : "'$text") . "'::pg_catalog.$type";
}

sub null_of ($type) { return "NULL::pg_catalog.$type"; }

sub numbers ($type, $bits)
{
	my $most = $bits == 64 ? '9223372036854775807' : 2**($bits - 1) - 1;
	my $least = $bits == 64 ? '-9223372036854775808' : -2**($bits - 1);
	my $below = $bits == 64 ? '9223372036854775806' : $most - 1;
	return map { literal($_, $type) } $least, -1, 0, 1, 2, 5, 22, 41, 63, 64, 1000, $below, $most;
}

# The role visitor may name what the extension has (create_targets()), the role nobody may not even do that.
sub new_sweep_server ($name, $conf = '')
{
	my $node = new_node($name, extra => [ '--encoding', 'UTF8', '--no-locale' ], conf => <<'END' . $conf);
fsync = off
autovacuum = off
jit = off
log_statement = none
log_error_verbosity = verbose
log_min_error_statement = panic
uidgen.max_wait = 50ms
END
	# For the server: a call that takes all memory fails before the machine does.
	system('prlimit', '--pid', $$, '--as=3000000000') == 0 or note('there is no limit of memory');
	start_node($node);
	$node->safe_psql('postgres', 'CREATE ROLE visitor LOGIN; CREATE ROLE nobody LOGIN;'
		  . q{ CREATE ROLE planter; CREATE ROLE "we.ird ""role' %s"});
	# Their errors are not for the log, where those of other processes are looked for.
	$node->safe_psql('postgres', "ALTER ROLE $_ SET log_min_messages = log") foreach 'visitor', 'nobody';
	return $node;
}

# Values that name objects. With renamed => 1 the extension's schema got its name after it.
sub create_targets ($node, $database, %opts)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	my $first_name = $opts{renamed} ? 'former' : $quoted_home;
	$node->safe_psql($database, "CREATE SCHEMA $first_name; CREATE EXTENSION uidgen SCHEMA $first_name");
	$node->safe_psql($database, "ALTER SCHEMA former RENAME TO $quoted_home") if $opts{renamed};
	$node->safe_psql($database, <<"SQL");
GRANT USAGE ON SCHEMA $quoted_home TO visitor, planter;
SET search_path = $quoted_home;

CREATE SCHEMA things;
CREATE TABLE things.plain (id bigserial PRIMARY KEY, i integer UNIQUE, s smallint, t text, "we.ird ""col'" bigint, dropped integer);
ALTER TABLE things.plain DROP COLUMN dropped;
INSERT INTO things.plain SELECT n, n, n, n, n FROM generate_series(1, 3) n;
CREATE INDEX an_index ON things.plain (t);
CREATE DOMAIN things.key AS integer CHECK (VALUE > 0);
CREATE TABLE things.kinds (id integer GENERATED ALWAYS AS IDENTITY REFERENCES things.plain (i), key things.key, big bigint GENERATED ALWAYS AS (key) STORED);
CREATE TABLE things.adopted (id bigint PRIMARY KEY DEFAULT uid_next());
INSERT INTO things.adopted SELECT FROM generate_series(1, 3);
CREATE TABLE things.parts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE things.part PARTITION OF things.parts FOR VALUES FROM (0) TO (10);
CREATE TABLE things.child () INHERITS (things.adopted);
CREATE TYPE things.composite AS (id bigint);
CREATE VIEW things.view AS SELECT 1::bigint AS id;
CREATE MATERIALIZED VIEW things.stored AS SELECT 1::bigint AS id;
CREATE TABLE things."we.ird ""rel' %s" (id bigserial);
CREATE UNLOGGED TABLE things.unlogged (id bigserial);
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE things.far (id bigint) SERVER nowhere;
CREATE SEQUENCE things.down INCREMENT -3;
CREATE SEQUENCE things.ended MAXVALUE 2;
SELECT setval('things.ended', 2);
CREATE SEQUENCE things.cycling AS smallint MAXVALUE 3 CYCLE CACHE 5;
CREATE SEQUENCE things.of_extension;
ALTER EXTENSION plpgsql ADD SEQUENCE things.of_extension;
CREATE SCHEMA hidden;
CREATE TABLE hidden.plain (id bigserial);
-- Columns that trigger functions read, of the types that they expect and of others.
CREATE TABLE things.fits (generator regclass, sequence regclass, builtin boolean, is_default boolean, id bigint, name text, value bigint, length bigint);
CREATE TABLE things.differs (generator integer[], sequence jsonb, builtin integer, is_default text, id text, name integer, value text, length smallint);
CREATE VIEW things.shown AS SELECT 'seg'::text AS name, 11::bigint AS value, 10::bigint AS length, NULL::regclass AS generator, 5 AS id;
INSERT INTO things.fits VALUES (0, 1, true, true, 1, 'seg', 1, 1);
INSERT INTO things.differs VALUES ('{}', '{}', 1, 'x', 'x', 1, 'x', 1);

SELECT uid_generator_create('own'), uid_generator_create('js53', 'js53'), uid_generator_create('we.ird "gen'' %s'),
       uid_generator_create('ring', 'baidu_cached', sequence_bits => 4, boost_power => 1);
SELECT uid_next('uid_generators.own'), uid_next();
SELECT segment_create('seg', 1, 10), segment_create('we.ird "seg'' %s'), segment_create(repeat('long ', 100)), segment_create('unused');
SELECT segment_next('seg');
SELECT uid_key_create('key', 63, 2), uid_key_create('we.ird "key'' %s', 53);
@{[ attached_segment('attached', 'seg', 1) ]};
SELECT uid_leaf_alloc_create('things'), uid_t_sequence_create('things');
INSERT INTO things.t_sequence VALUES ('seg', 11, 10);
SQL
}

# Sessions that have temporary objects.
my @others;

# Functions, relations and values as a hash.
sub catalog ($node, $database)
{
	my $dropped = $node->safe_psql($database, "CREATE SEQUENCE dropped; SELECT 'dropped'::regclass::oid; DROP SEQUENCE dropped");
	push @others, hold_open($node, dbname => $database);
	$others[-1]->query_safe('CREATE TEMP TABLE theirs (id bigserial)');
	my $found = JSON::PP::decode_json(
		$node->safe_psql($database, <<'SQL'));
WITH member AS (
  SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
   WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'uidgen')
SELECT json_build_object(
  'functions', (
    SELECT json_agg(json_build_object('name', format('%I.%I', n.nspname, p.proname), 'bare', p.proname, 'is_procedure', p.prokind = 'p', 'trigger', p.prorettype::regtype,
             'params', (SELECT coalesce(json_agg(json_build_object('name', quote_ident(names[a.i]), 'bare', names[a.i], 'type', t.typname,
                                                                   'optional', a.i > p.pronargs - p.pronargdefaults) ORDER BY a.i), '[]')
                          FROM unnest(p.proargtypes) WITH ORDINALITY a(type, i) JOIN pg_type t ON t.oid = a.type,
                               (SELECT array_agg(u.name ORDER BY u.i)
                                  FROM unnest(p.proargnames, p.proargmodes) WITH ORDINALITY u(name, mode, i)
                                 WHERE u.mode IS NULL OR u.mode IN ('i', 'b', 'v')) v(names))) ORDER BY p.oid::regprocedure::text)
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE p.oid IN (SELECT objid FROM member WHERE classid = 'pg_proc'::regclass)),
  'relations', (
    SELECT json_agg(json_build_object('name', format('%I.%I', n.nspname, c.relname), 'kind', c.relkind, 'has_rows', pg_relation_is_updatable(c.oid, true) <> 0,
             'columns', (SELECT json_agg(json_build_object('name', quote_ident(a.attname), 'type', t.typname) ORDER BY a.attnum)
                           FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')) ORDER BY c.relname)
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'v', 'S') AND c.oid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass)),
  'classes', (
    SELECT json_object_agg(format('%s.%s', n.nspname, c.relname), c.oid)
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname IN ('things', 'hidden', 'uid_generators', 'uid_segments', 'uid_keys') OR n.nspname LIKE 'pg_temp%'
        OR c.oid IN ('pg_class'::regclass, 'pg_authid'::regclass, 'pg_proc_oid_index'::regclass, 'information_schema.tables'::regclass)
        OR c.relname IN ('uid_generator', 'uid_segment', 'uid_key', 'worker_node', 'worker_node_id_seq')
        OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'things.plain'::regclass)),
  'roles', (SELECT json_object_agg(rolname, oid) FROM pg_authid))
SQL

	my $classes = $found->{classes};
	my $roles = $found->{roles};
	$found->{values} = {
		%values,
		regclass => [ map { literal($_, 'regclass') } 0, 1, 4294967295, $dropped, map({ $classes->{$_} } sort keys %$classes) ],
		regrole => [ map { literal($_, 'regrole') } 0, 1, 4294967295, map({ $roles->{$_} } qw(visitor postgres pg_monitor), q{we.ird "role' %s}) ]
	};
	my ($plain) = map { $classes->{$_} } 'things.plain';
	$found->{typical} = {
		generator => $classes->{'uid_generators.own'},
		sequence => $classes->{'uid_segments.seg'},
		key => $classes->{'uid_keys.key'},
		owned => $classes->{'things.kinds_id_seq'},
		table_name => $plain,
		nodes => $classes->{"$home.worker_node"},
		role => $roles->{visitor}
	};
	return $found;
}

# Parameters that the sweep has no values for.
sub untyped_parameters ($catalog)
{
	return map {
		my $owner = $_;
		map { "$owner->{name}: $_->{type}" } grep { !@{ $catalog->{values}{ $_->{type} } // [] } } @{ $owner->{params} // $owner->{columns} }
	} @{ $catalog->{functions} }, @{ $catalog->{relations} };
}

sub typical ($function, $parameter, $catalog)
{
	my ($name, $type) = @$parameter{qw(bare type)};
	return $catalog->{values}{record}[0] if $type eq 'record';
	return literal('seg', 'text') if $name eq 'name' && $function->{bare} =~ /^segment_/ && $function->{bare} !~ /create/;
	return literal('key', 'text') if $name eq 'name' && $function->{bare} =~ /key/ && $function->{bare} !~ /create/;
	return literal($catalog->{typical}{key}, 'regclass') if $name eq 'sequence' && $function->{bare} =~ /key/;
	return literal($catalog->{typical}{$name} // $typical{$name} // $typical_of_type{$type} // 0, $type);
}

sub call ($function, @arguments)
{
	return "CALL $function->{name}(" . join(', ', @arguments) . ')' if $function->{is_procedure};
	# What returns rows without end, as a batch of 2^63 values does, returns the first ones.
	return "SELECT $function->{name}(" . join(', ', @arguments) . ') LIMIT 3';
}

sub named { return "$_[0]{name} => $_[1]" }

# Each parameter through all its values: with typical values of the others, and, if they are few, with NULL for them.
# Of very many parameters each has some of its values.
sub one_by_one ($function, $catalog)
{
	my @params = @{ $function->{params} };
	my @typical = map { named($_, typical($function, $_, $catalog)) } @params;
	my @null = map { named($_, null_of($_->{type})) } @params;
	my @needed = grep { !$params[$_]{optional} } 0 .. $#params;
	my @calls = (call($function, @typical[@needed]), call($function, @typical), call($function, @null));
	foreach my $i (0 .. $#params)
	{
		my @values = values_of($params[$i], $catalog);
		@values = map { any_of(@values) } 1 .. 8 if @params > 8;
		foreach my $value (@values)
		{
			my $argument = named($params[$i], $value);
			push @calls, call($function, @typical[ grep { $_ != $i } @needed ], $argument);
			push @calls, call($function, @null[ grep { $_ != $i } 0 .. $#params ], $argument) if @params > 1 && @params < 6;
		}
	}
	return @calls;
}

sub values_of ($parameter, $catalog)
{
	my @values = @{ $catalog->{values}{ $parameter->{type} } };
	return (null_of($parameter->{type}), @values);
}

sub any_of { return $_[ rand @_ ] }

# Each parameter has a typical value, any value, or is left out if it may be.
sub at_random ($function, $catalog)
{
	my @arguments;
	foreach my $parameter (@{ $function->{params} })
	{
		my $dice = rand 3;
		next if $parameter->{optional} && $dice < 1.5;
		push @arguments, named($parameter, $dice < 2 ? typical($function, $parameter, $catalog) : any_of(values_of($parameter, $catalog)));
	}
	return call($function, @arguments);
}

# Each parameter that can be huge.
sub with_huge_arguments ($function, $catalog)
{
	my @params = @{ $function->{params} };
	my @calls;
	foreach my $i (grep { $huge{ $params[$_]{type} } } 0 .. $#params)
	{
		my @others = grep { $_ != $i && !$params[$_]{optional} } 0 .. $#params;
		push @calls, call($function, (map { named($_, typical($function, $_, $catalog)) } @params[@others]), named($params[$i], $huge{ $params[$i]{type} }));
	}
	return @calls;
}

# Statements on a table, view or sequence of the extension.
sub changes ($relation, $catalog)
{
	my $name = $relation->{name};
	my @columns = map { $_->{name} } @{ $relation->{columns} };
	my @statements = (
		"SELECT * FROM $name", "SELECT * FROM $name FOR UPDATE", "DELETE FROM $name", "TRUNCATE $name", "TRUNCATE $name RESTART IDENTITY CASCADE",
		"LOCK TABLE $name IN ACCESS EXCLUSIVE MODE", "COPY $name TO STDOUT", "COPY $name FROM '/dev/null'", "INSERT INTO $name DEFAULT VALUES",
		"INSERT INTO $name SELECT * FROM $name ON CONFLICT DO NOTHING", "INSERT INTO $name SELECT * FROM $name",
		"MERGE INTO $name USING (SELECT 1) s ON false WHEN NOT MATCHED THEN INSERT DEFAULT VALUES", "MERGE INTO $name USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
		"ALTER TABLE $name ADD COLUMN more integer", "ALTER TABLE $name DISABLE TRIGGER ALL", "ALTER TABLE $name RENAME TO other", "ALTER TABLE $name OWNER TO planter",
		"ALTER TABLE $name ALTER COLUMN $columns[0] TYPE pg_catalog.text USING NULL", "ALTER TABLE $name DROP COLUMN $columns[0] CASCADE",
		"ALTER TABLE $name RENAME COLUMN $columns[-1] TO other", "DROP TABLE $name CASCADE", "DROP VIEW $name CASCADE", "DROP SEQUENCE $name CASCADE",
		"ALTER SEQUENCE $name MAXVALUE 1000 START 5 RESTART", "ALTER SEQUENCE $name AS smallint", "SELECT pg_catalog.nextval(" . literal($name, 'regclass') . ")",
		"SELECT pg_catalog.setval(" . literal($name, 'regclass') . ", 9223372036854775807)", "REINDEX TABLE $name", "CLUSTER $name", "ANALYZE $name",
		"ALTER TABLE $name ENABLE ROW LEVEL SECURITY", "ALTER TABLE $name SET UNLOGGED", "CREATE RULE r AS ON UPDATE TO $name DO INSTEAD NOTHING");
	return @statements if !$relation->{has_rows};
	foreach my $i (0 .. $#columns)
	{
		foreach my $value ('NULL', @{ $catalog->{values}{ $relation->{columns}[$i]{type} } })
		{
			my @row = @columns;
			$row[$i] = $value;
			push @statements, "UPDATE $name SET $columns[$i] = $value";
			push @statements, "INSERT INTO $name (" . join(', ', @columns) . ') SELECT ' . join(', ', @row) . " FROM $name LIMIT 1";
		}
	}
	foreach (1 .. 20)
	{
		my @row = map { any_of('NULL', @{ $catalog->{values}{ $_->{type} } }) } @{ $relation->{columns} };
		push @statements, "INSERT INTO $name (" . join(', ', @columns) . ') VALUES (' . join(', ', @row) . ')';
		push @statements, "UPDATE $name SET (" . join(', ', @columns) . ') = ROW(' . join(', ', @row) . ')';
	}
	return @statements;
}

# Definitions of triggers of a caller's own that run the extension's trigger functions, and statements that fire them.
sub triggers ($catalog)
{
	my @arguments = ('', map { join ', ', map { "'$_'" } @$_ } [ 'generator', 'uid_generators' ], [ 'sequence', 'uid_segments' ], [ 'sequence', 'nothing' ], [''],
		[ 'name', 'value', 'length', '2' ], [ 'name', 'value', 'length', '-2147483648' ], [ 'name', 'value', 'length', 'x' ], [ 'nothing', '', '', '' ], ['fleet']);
	my @definitions;
	foreach my $function (grep { $_->{trigger} eq 'trigger' } @{ $catalog->{functions} })
	{
		foreach my $timing ('BEFORE', 'AFTER', 'INSTEAD OF')
		{
			my @relations = $timing eq 'INSTEAD OF' ? 'things.shown' : ('things.fits', 'things.differs', 'things.shown');
			foreach my $relation (@relations)
			{
				push @definitions, map { "CREATE TRIGGER t $timing INSERT OR UPDATE OR DELETE ON $relation FOR EACH ROW EXECUTE FUNCTION $function->{name}($_)" } @arguments
				  if $timing eq 'INSTEAD OF' || $relation ne 'things.shown';
				push @definitions, "CREATE TRIGGER t $timing INSERT OR UPDATE OR DELETE ON $relation EXECUTE FUNCTION $function->{name}()"
				  if $timing ne 'INSTEAD OF';
				push @definitions, "CREATE TRIGGER t $timing TRUNCATE ON $relation EXECUTE FUNCTION $function->{name}('fleet')" if $timing ne 'INSTEAD OF' && $relation ne 'things.shown';
			}
		}
	}
	my @firing = map { ("INSERT INTO $_ DEFAULT VALUES", "INSERT INTO $_ SELECT * FROM $_", "UPDATE $_ SET name = NULL", "UPDATE $_ SET name = name", "DELETE FROM $_") }
	  'things.fits', 'things.differs', 'things.shown';
	push @firing, 'UPDATE things.fits SET generator = 0', 'UPDATE things.shown SET value = 21', 'UPDATE things.shown SET value = 9223372036854775807',
	  'UPDATE things.shown SET value = NULL', 'UPDATE things.shown SET value = 0', 'TRUNCATE things.fits', 'TRUNCATE things.differs';
	foreach my $function (grep { $_->{trigger} eq 'event_trigger' } @{ $catalog->{functions} })
	{
		push @definitions, map { "CREATE EVENT TRIGGER t ON $_ EXECUTE FUNCTION $function->{name}()" } qw(ddl_command_start ddl_command_end sql_drop table_rewrite);
	}
	push @firing, 'CREATE SEQUENCE things.later', 'DROP TABLE things.fits CASCADE', 'DROP SEQUENCE things.down', 'ALTER TABLE things.plain ALTER COLUMN s TYPE bigint';
	return (\@definitions, \@firing);
}

# Runs calls in single-user mode, each rolled back, and returns a line for each that failed: its SQLSTATE and its message.
sub run_in_single_user_mode ($node, $database, @calls)
{
	my $input = join '', map { "$_;\n\n" } map { ('BEGIN', $_, 'ROLLBACK') } @calls;
	my ($output, $messages) = ('', '');
	my $is_done = IPC::Run::run([ 'postgres', '--single', '-j', '-D', $node->data_dir, $database ],
		'<', \"$input;\n\nSELECT 'reached' AS the_end;\n\n", '>', \$output, '2>', \$messages);
	die "single-user mode ended early\n$messages" unless $is_done && $output =~ /the_end = "reached"/;
	return $messages =~ /(?:ERROR|FATAL|PANIC):  (\w{5}: .*)/g;
}

# Messages that repeat a huge argument.
my $longest_message = 3000;
my @long_messages;

# What each session begins with. Its own temporary objects have other oids each time, so no value names them, but
# functions may meet them. What waits for a prepared transaction fails soon.
my $usual_setup = <<'END';
SET client_min_messages = error;
SET statement_timeout = '15s';
SET lock_timeout = '50ms';
CREATE TEMP TABLE mine (id bigserial);
END

# Runs calls in one session, and returns the SQLSTATE of each. A session that does not reach the end dies.
#   dbname     => 'other'         the database, if it is not "swept"
#   user       => 'visitor'       who connects, if not the superuser of the test
#   setup      => statements that the session runs first
#   committed  => 1               each call is a transaction of its own; otherwise each is rolled back
#   after      => [ statements ]  run in the transaction of a call that succeeded; their worst SQLSTATE is told
#   verbose    => \$text          takes the messages
sub run_calls ($node, $calls, %opts)
{
	my $script = PostgreSQL::Test::Utils::tempdir() . '/calls.sql';
	my $user = $opts{user} // 'superuser';
	my $verbosity = $opts{verbose} ? 'verbose' : 'default';
	my $text = "\\set VERBOSITY $verbosity\n\\set SHOW_CONTEXT never\n\\o /dev/null\n\\set ON_ERROR_STOP on\n$usual_setup" . ($opts{setup} // '') . "\\set ON_ERROR_STOP off\n";
	foreach my $i (0 .. $#$calls)
	{
		my $statement = "$calls->[$i];\n\\echo $i :SQLSTATE\n";
		if ($opts{after})
		{
			my $after = join '', map { "SAVEPOINT s;\n$_;\n\\echo $i :SQLSTATE\nROLLBACK TO s;\n" } @{ $opts{after} };
			$statement .= "\\if :ERROR\n\\else\n$after\\endif\n";
		}
		$text .= $opts{committed} ? $statement : "BEGIN;\n${statement}ROLLBACK;\n";
	}
	append_to_file($script, "$text\\echo end\n");

	my ($output, $messages) = ('', '');
	local $ENV{PGOPTIONS} = '-c log_min_messages=log' if $user eq 'superuser';
	IPC::Run::run(
		[ $node->installed_command('psql'), '-XAtq', ($user eq 'superuser' ? () : ('-U', $user)), '-d', $node->connstr($opts{dbname} // 'swept'), '-f', $script ],
		'<', '/dev/null', '>', \$output, '2>', \$messages);
	${ $opts{verbose} } = $messages if $opts{verbose};
	push @long_messages, map { substr($_, 0, 300) } grep { length > $longest_message } split /\n/, $messages;
	my @states;
	foreach my $line (split /\n/, $output)
	{
		my ($i, $state) = $line =~ /^(\d+) (\w{5})$/ or next;
		$states[$i] = $state if !defined $states[$i] || $states[$i] eq '00000' || is_bad($state);
	}
	die 'the session ended after call ' . $#states . ': ' . ($calls->[ @states ] // '') . "\n" . substr($messages, -500)
	  unless $output =~ /^end$/m && @states == @$calls;
	return @states;
}

# SQLSTATEs that no call may end with: internal errors, a call that hangs or takes all memory, errors without a code of
# their own, and statements that the extension has put together wrongly.
my $bad = qr/^(XX...|57...|53...|P0001|P0003|42601|42P02|58...)$/;

sub is_bad { return $_[0] =~ $bad }

# Calls that end badly, each with its message if another try has one. The option allowed is a pattern of SQLSTATEs.
sub bad_calls ($node, $calls, $states, %opts)
{
	my $allowed = $opts{allowed} // qr/^$/;
	my @bad = grep { is_bad($states->[$_]) && $states->[$_] !~ $allowed } 0 .. $#$calls;
	my @shown = map { $calls->[$_] } splice @{ [@bad] }, 0, 8;
	my $messages = '';
	run_calls($node, \@shown, %opts, verbose => \$messages) if @shown;
	return join("\n", (map { "$states->[$_]: $calls->[$_]" } @bad), $messages);
}

sub sweep ($node, $what, $calls, %opts)
{
	my @states = run_calls($node, $calls, %opts);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(bad_calls($node, $calls, \@states, %opts), '', "$what: " . @states . ' calls');
	my %count;
	$count{$_}++ foreach @states;
	note(join ', ', map { "$_: $count{$_}" } sort keys %count);
	return @states;
}

# No call has another outcome after the setup than without it, both before and after that: what depends on the time, or on
# what calls have left, may differ once. The option but is a pattern of calls that may differ.
sub sweep_as_before ($node, $what, $calls, $usual, %opts)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $but = $opts{but} // qr/^$/;
	my @states = sweep($node, $what, $calls, %opts);
	my @again = map { $calls->[$_] } grep { $states[$_] ne $usual->[$_] && $calls->[$_] !~ $but } 0 .. $#$calls;
	my ($before, $other, $after) = map { [ @again ? run_calls($node, \@again, %opts, setup => $_) : () ] } '', $opts{setup}, '';
	my @differ = grep { $other->[$_] ne $before->[$_] && $other->[$_] ne $after->[$_] } 0 .. $#again;
	is(join("\n", map { "usually $before->[$_], now $other->[$_]: $again[$_]" } @differ), '', '... have the same outcome');
}

# Plants every function, operator, relation and type of pg_catalog and of the extension that SQL can name. Each notes in the
# server's log that it was called. Operators also for pairs of types that pg_catalog has none for, which would be better
# matches. Returns the setup of a session that has all of it in front of everything along its search_path.
sub plant ($node, $database)
{
	$node->safe_psql($database, <<'SQL');
SET debug_print_parse = off;
CREATE SCHEMA planted AUTHORIZATION planter;
GRANT USAGE ON SCHEMA planted TO PUBLIC;
SET ROLE planter;
CREATE FUNCTION planted.touch(what text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 SET search_path = pg_catalog AS
  $$ BEGIN RAISE LOG 'planted: %', what; RETURN true; END $$;
CREATE FUNCTION planted.touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM planted.touch('a change'); RETURN NULL; END $$;
RESET ROLE;
DO $$
DECLARE
  p record;
  planted integer := 0;
BEGIN
  FOR p IN
    SELECT f.proname, format_type(f.prorettype, NULL) AS result, f.proretset,
           (SELECT string_agg(CASE WHEN f.provariadic <> 0 AND a.i = f.pronargs THEN 'VARIADIC ' ELSE '' END
                              || CASE a.type WHEN '"any"'::regtype THEN CASE WHEN f.provariadic <> 0 THEN 'anyarray' ELSE 'anyelement' END
                                      ELSE format_type(a.type, NULL) END, ', ' ORDER BY a.i)
              FROM unnest(f.proargtypes) WITH ORDINALITY a(type, i)) AS arguments
      FROM pg_proc f LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e'
     WHERE f.pronamespace = 'pg_catalog'::regnamespace OR d.objid IS NOT NULL
    UNION ALL
    -- Exact matches for functions that take any arguments.
    SELECT n, 'text', false, array_to_string(array_fill(t, ARRAY[i]), ', ')
      FROM unnest(ARRAY['format', 'concat', 'concat_ws', 'jsonb_build_object', 'num_nulls', 'count']::name[]) n,
           unnest(ARRAY['text', 'bigint']) t, generate_series(0, 6) i
  LOOP
    BEGIN
      EXECUTE format('CREATE FUNCTION planted.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', p.proname, p.arguments,
                     CASE WHEN p.result IN ('internal', 'cstring', '"any"', 'trigger', 'event_trigger') THEN 'text' ELSE p.result END,
                     format('BEGIN PERFORM planted.touch(%L); RETURN NULL; END', p.proname));
      planted := planted + 1;
    EXCEPTION WHEN OTHERS THEN -- types of arguments that no function in PL/pgSQL can have
      NULL;
    END;
  END LOOP;
  IF planted < 2000 THEN
    RAISE 'only % functions could be planted', planted;
  END IF;
  FOR p IN
    SELECT o.oprname, format_type(o.oprleft, NULL) AS l, format_type(o.oprright, NULL) AS r, format_type(o.oprresult, NULL) AS result
      FROM pg_operator o WHERE o.oprnamespace = 'pg_catalog'::regnamespace
    UNION
    SELECT o, l, r, CASE WHEN o ~ '[<>=]' THEN 'boolean' ELSE l END
      FROM unnest(ARRAY['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '||', '->>', '<<', '>>']) o,
           unnest(ARRAY['smallint', 'integer', 'bigint', 'text', 'name', 'oid', 'regclass', '"char"', 'double precision', 'interval']) l,
           unnest(ARRAY['smallint', 'integer', 'bigint', 'text', 'name', 'oid', 'regclass', '"char"', 'double precision', 'interval']) r
  LOOP
    BEGIN
      EXECUTE format('CREATE OR REPLACE FUNCTION planted.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator ' || p.result,
                     concat_ws(', ', nullif(p.l, '-'), nullif(p.r, '-')), p.result, 'BEGIN PERFORM planted.touch(''operator''); RETURN NULL; END');
      EXECUTE format('CREATE OPERATOR planted.%s (%s FUNCTION = planted.%I)', p.oprname,
                     CASE WHEN p.l <> '-' THEN format('LEFTARG = %s, ', p.l) END || format('RIGHTARG = %s, ', p.r), 'operator ' || p.result);
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
  END LOOP;
  FOR p IN
    SELECT c.oid::regclass AS relation, c.relname FROM pg_class c LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
     WHERE c.relkind IN ('r', 'v') AND (c.relnamespace = 'pg_catalog'::regnamespace OR d.objid IS NOT NULL)
  LOOP
    BEGIN
      EXECUTE format('CREATE VIEW planted.%I AS SELECT r.* FROM %s r WHERE planted.touch(%L)', p.relname, p.relation, p.relname);
      EXECUTE format('CREATE TRIGGER touched INSTEAD OF INSERT OR UPDATE OR DELETE ON planted.%I FOR EACH ROW EXECUTE FUNCTION planted.touched()', p.relname);
    EXCEPTION WHEN invalid_table_definition THEN -- columns of type anyarray, which no view can have
      EXECUTE format('CREATE TABLE planted.%I (planted integer)', p.relname);
    END;
  END LOOP;
  FOR p IN
    SELECT t.typname FROM pg_type t WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b' AND t.typname !~ '^(_|pg_)'
  LOOP
    EXECUTE format('CREATE DOMAIN planted.%1$I AS pg_catalog.%1$I CHECK (planted.touch(%1$L))', p.typname);
  END LOOP;
END
$$;
CREATE SEQUENCE planted.worker_node_id_seq;
SQL
	# Relations and types of pg_temp come before all others, unless a search_path says otherwise.
	return <<'SQL' . "SET search_path = planted, $quoted_home, pg_catalog;\n";
DO $$
DECLARE
  p record;
BEGIN
  FOR p IN SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relnamespace = 'planted'::regnamespace AND c.relkind = 'v' LOOP
    EXECUTE pg_catalog.format('CREATE TEMP VIEW %1$I AS SELECT * FROM planted.%1$I', p.relname);
  END LOOP;
END
$$;
SQL
}

# What was called of it, according to the log since a position.
sub planted_calls ($node, $from)
{
	my %found = map { $_ => 1 } slurp_file($node->logfile, $from) =~ /planted: (.*)/g;
	return join ', ', sort keys %found;
}

# Each row has its sequence, the extension can be dropped, and no process of the server had an internal error.
sub check_end_of_sweep ($node, @databases)
{
	$_->quit foreach splice @others;
	foreach my $database (@databases)
	{
		my $rows = sub { "SELECT count(*) FROM $_[0] WHERE $_[1] NOT IN (SELECT oid FROM pg_class WHERE relkind = 'S')" };
		my @without = map { $node->safe_psql($database, $rows->(@$_)) } [ "$quoted_home.uid_generator", 'generator' ], [ "$quoted_home.uid_segment", 'sequence' ];
		push @without, $node->safe_psql($database, 'SELECT count(*) FROM uid_secrets.uid_key WHERE id NOT IN (SELECT id FROM uid_internal.keys)');
		is("@without", '0 0 0', "$database: each row has its sequence");
		$node->safe_psql($database, 'DROP EXTENSION uidgen CASCADE');
		$node->safe_psql('postgres', "DROP DATABASE $database");
	}
	$node->stop;
	is(join("\n", splice @long_messages), '', 'no message repeats a huge argument');
	my $log = slurp_file($node->logfile);
	is(join("\n", $log =~ /^.*(?:(?:LOG|ERROR|FATAL|PANIC):  XX|was terminated by|PANIC: ).*$/mg), '', 'no process of the server had an internal error');
}

1;
