# Restores: how a database is dumped × how it is restored × as whom. Whatever the way, the copy has all that the original
# had, draws above all that was drawn there, and needs nothing else to be done.
#
# A line of a table is a way to dump, a way to restore or a role, and a line of @ways combines three of them. The clock stands
# still, so only what a dump brings along can keep the copy above the original.
use IPC::Run;
use UidgenTest;
use Clock;
use Pages;

my $directory = PostgreSQL::Test::Utils::tempdir();

# Of each: the options of the program, which is psql if the dump is plain.
my %dumps = (
	plain => '-Fp',
	inserts => '-Fp --inserts',
	custom => '-Fc',
	directory => '-Fd -j2',
	definitions => '-Fp -s', # Rails' structure.sql, CI, the first step of a move
	structure => '-Fp -s -x -O',
	secretless => '-Fc --exclude-table-data=*.uid_key');
# Of each: its steps, which are options, or what happens between them.
my %restores = (
	whole => [''],
	parallel => ['-j2'],
	transaction => ['-1'],
	owners => ['--use-set-session-authorization'],
	sections => [ '--section=pre-data', '--section=data', '--section=post-data' ],
	apart => [ '-s', \&restore_data ],
	without_triggers => [ '-s', sub ($way) { restore_data($way, '--disable-triggers') } ],
	secrets_late => [ '--section=pre-data', '--section=data', \&copy_secrets, '--section=post-data' ],
	live => [ '-s', \&draw_minutes_later, \&restore_data ],
	template => [ \&copy ], # without the dump
	over => [ \&copy, \&draw_minutes_later, '--clean --if-exists' ],
	over_parallel => [ \&copy, \&draw_minutes_later, '--clean --if-exists -j2' ],
	extension_there => [ \&restore_into_extension ]);
# Of each: the owner of the new database, and options of the dump and the restore.
my %roles = (
	superuser => [ 'postgres', '', '' ],
	owner => [ 'boss', '-U boss', '-U boss' ],
	stranger => [ 'alice', '', '-U alice --no-owner --no-privileges' ],
	member => [ 'app', '', '' ]);
# What is the same in the copy, if not all: see %parts.
my %same = (
	definitions => 'definitions',
	structure => 'definitions',
	apart => 'definitions',
	live => 'definitions',
	extension_there => 'unowned',
	stranger => 'unowned');
# The original is shop, of which several roles own something, or owned, whose owner owns everything and is no superuser. It is
# restored on the same server, if not elsewhere.
my @ways = (
	'shop plain whole superuser',
	'shop plain transaction superuser',
	'shop inserts whole superuser',
	'shop custom whole superuser',
	'shop custom parallel superuser',
	'shop custom transaction superuser',
	'shop custom sections superuser',
	'shop custom owners member',
	'shop custom parallel stranger',
	'shop custom template superuser',
	'shop custom apart superuser',
	'shop custom without_triggers superuser',
	'shop directory parallel superuser',
	'shop definitions whole superuser',
	'shop structure whole superuser',
	'owned plain whole owner',
	'owned custom whole owner',
	'owned custom extension_there owner',
	'owned custom parallel owner',
	'owned secretless secrets_late owner',
	'shop custom over superuser',
	'owned custom over_parallel owner',
	'shop custom live superuser elsewhere');

# ---------------------------------------------------------------------------------------------------------------
# The originals.
# ---------------------------------------------------------------------------------------------------------------

# The extension is in the schema HOME.
my $fill = <<'SQL';
SELECT uid_generator_create(name, preset, max_ahead_ms => 600000) FROM (VALUES ('web', 'js53'), ('With "quotes", it''s odd', 'snowflake'),
  (chr(21517) || chr(233), 'sonyflake'), (repeat('g', 63), 'twitter'), ('tuned', 'snowflake'), ('raised', 'snowflake'), ('renamed', 'snowflake'), ('elsewhere', 'snowflake')) v (name, preset);
SELECT uid_generator_create('chosen', 'twitter', epoch => '2020-01-01 00:00+00', worker_policy => 'static', worker_number => 9, max_ahead_ms => 600000, when_full => 'borrow'),
  uid_generator_create('cached', 'baidu_cached', schedule_ms => 60000, padding_factor => 20, max_ahead_ms => 600000),
  uid_generator_create('own', 'hutool', tick_us => 1234567, time_bits => 30, epoch => '2025-02-28 23:59:59.999999+00', datacenter_id => 3,
  worker_policy => 'static', worker_number => 9, tolerance_ms => -1, max_ahead_ms => 600000, when_full => 'borrow');
SELECT uid_default_set('uid_generators.chosen');
ALTER SEQUENCE uid_generators.renamed RENAME TO "Another name";
CREATE SCHEMA other;
CREATE TABLE other.owner (id bigint DEFAULT uid_next(), n bigint);
ALTER SEQUENCE uid_generators.elsewhere SET SCHEMA other;
ALTER SEQUENCE other.elsewhere RENAME TO generator;

SELECT segment_create('plain'), segment_create('With "quotes" and ''others''', 7, 10, 100), segment_create(repeat(chr(21517), 21), 100),
  segment_create(repeat(chr(21517), 40), 200), segment_create(repeat('long ', 200), -5, increment => -3), segment_create(E'two\nlines\\'),
  segment_create('renamed', 300), segment_create('elsewhere', 400);
ALTER SEQUENCE uid_segments.renamed RENAME TO "Another name";
ALTER SEQUENCE uid_segments.elsewhere SET SCHEMA other;
ALTER SEQUENCE other.elsewhere OWNED BY other.owner.n;
COMMENT ON SEQUENCE uid_segments.plain IS 'a comment';
CREATE SEQUENCE serials;
SELECT uid_t_sequence_create(), uid_leaf_alloc_create();
INSERT INTO t_sequence VALUES ('Another name', 300, 20), ('With "quotes" and ''others''', 7, 10), (repeat(chr(21517), 40), 200, 5);
INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('plain', 1, 1000), ('leaf alone', 1, 10);

SELECT uid_key_create('k', 63, 3), uid_key_create('orders', 53, 4);
CREATE TABLE codes AS SELECT id, uid_conceal(id, 'orders') AS code FROM generate_series(1, 500) AS id;
SELECT uid_key_rotate('orders');
UPDATE codes SET code = uid_conceal(id, 'orders') WHERE id > 250;

GRANT CREATE ON SCHEMA uid_generators, uid_segments, uid_keys TO app;
GRANT SELECT, INSERT ON worker_node TO app;
GRANT SELECT, DELETE ON codes TO app;
GRANT USAGE ON SEQUENCE uid_keys.orders TO app;
GRANT USAGE ON SEQUENCE uid_generators.tuned, uid_segments.plain TO PUBLIC;
GRANT USAGE ON SEQUENCE uid_generators.raised TO app WITH GRANT OPTION;

CREATE DOMAIN recent AS bigint CHECK (uid_timestamp(VALUE, 'uid_generators.web') > '2020-01-01');
-- What its owner calls immutable may be in an index.
CREATE FUNCTION made_at(id bigint) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN HOME.uid_timestamp(id); END $$;
-- Every function of the extension that PostgreSQL takes in an index.
CREATE TABLE indexed AS SELECT id, '2026-01-01 00:00+00'::timestamptz + id * interval '1 s' AS at FROM generate_series(1, 1000) AS id;
SQL

# All places that PostgreSQL has for an expression, in tables that a dump has before and after the extension's.
foreach my $table ('a_table', 'z_table')
{
	$fill .= <<'SQL' =~ s/TABLE_NAME/$table/gr =~ s/BY_NUMBERS/uid_timestamp(other, '2026-01-01 00:00+00', 1000000, 21)/gr;
CREATE TABLE TABLE_NAME (id bigint PRIMARY KEY DEFAULT uid_next(), other recent DEFAULT uid_next('uid_generators.web'), code bigint, n bigint DEFAULT segment_next('plain'),
  made timestamptz GENERATED ALWAYS AS (BY_NUMBERS) STORED, by_default timestamptz GENERATED ALWAYS AS (made_at(id)) STORED,
  CHECK (made_at(id) > '2020-01-01'), CONSTRAINT by_label CHECK (uid_timestamp(id) > '2020-01-01' AND uid_timestamp(other, 'uid_generators.web') > '2020-01-01'),
  CONSTRAINT by_numbers CHECK (BY_NUMBERS > '2020-01-01'));
ALTER TABLE TABLE_NAME ADD CONSTRAINT by_default CHECK (uid_timestamp(id) > '2020-01-01') NOT VALID;
ALTER TABLE TABLE_NAME ADD CONSTRAINT by_generator CHECK (uid_timestamp(other, 'uid_generators.web') > '2020-01-01') NOT VALID;
ALTER TABLE TABLE_NAME ADD CONSTRAINT by_key CHECK (uid_reveal(code, 'k') = id) NOT VALID;
CREATE FUNCTION of_TABLE_NAME() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := HOME.uid_conceal(NEW.id, 'k'); RETURN NEW; END $$;
CREATE TRIGGER fill BEFORE INSERT ON TABLE_NAME FOR EACH ROW WHEN (uid_timestamp(NEW.id) > '2020-01-01') EXECUTE FUNCTION of_TABLE_NAME();
CREATE RULE nothing AS ON DELETE TO TABLE_NAME WHERE uid_timestamp(OLD.id) > '2020-01-01' DO INSTEAD NOTHING;
CREATE POLICY today ON TABLE_NAME TO app USING (id >= uid_lower_bound(current_date)) WITH CHECK (uid_reveal(code, 'k') = id);
ALTER TABLE TABLE_NAME ENABLE ROW LEVEL SECURITY;
CREATE INDEX ON TABLE_NAME (made_at(id));
CREATE INDEX ON TABLE_NAME (BY_NUMBERS);
CREATE INDEX ON TABLE_NAME (code) WHERE BY_NUMBERS > '2020-01-01';
CREATE STATISTICS times_of_TABLE_NAME ON (BY_NUMBERS), code FROM TABLE_NAME;
CREATE VIEW of_TABLE_NAME AS SELECT uid_conceal(id, 'k') AS code, uid_timestamp(other, 'uid_generators.web') AS made FROM TABLE_NAME;
CREATE MATERIALIZED VIEW kept_TABLE_NAME AS SELECT uid_conceal(id, 'k') AS code, uid_timestamp(other, 'uid_generators.web') AS made FROM TABLE_NAME;
CREATE UNIQUE INDEX ON kept_TABLE_NAME (code);
CREATE TABLE parts_of_TABLE_NAME (id bigint DEFAULT uid_next()) PARTITION BY RANGE (id);
CREATE TABLE old_TABLE_NAME PARTITION OF parts_of_TABLE_NAME FOR VALUES FROM (MINVALUE) TO (uid_lower_bound('2026-01-01'));
CREATE TABLE new_TABLE_NAME PARTITION OF parts_of_TABLE_NAME FOR VALUES FROM (uid_lower_bound('2026-01-01')) TO (MAXVALUE);
ALTER TABLE old_TABLE_NAME ADD CHECK (uid_timestamp(id) < '2026-01-02') NOT VALID;
CREATE TABLE times_of_TABLE_NAME (id bigint DEFAULT uid_next()) PARTITION BY RANGE (made_at(id));
CREATE TABLE time_of_TABLE_NAME PARTITION OF times_of_TABLE_NAME FOR VALUES FROM ('2020-01-01') TO (MAXVALUE);
CREATE TABLE hashed_TABLE_NAME (id bigint DEFAULT uid_next()) PARTITION BY HASH (uid_to_base62(id));
CREATE TABLE hash0_TABLE_NAME PARTITION OF hashed_TABLE_NAME FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hash1_TABLE_NAME PARTITION OF hashed_TABLE_NAME FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO TABLE_NAME SELECT FROM generate_series(1, 50);
INSERT INTO parts_of_TABLE_NAME SELECT FROM generate_series(1, 50);
INSERT INTO times_of_TABLE_NAME SELECT FROM generate_series(1, 50);
INSERT INTO hashed_TABLE_NAME SELECT FROM generate_series(1, 50);
REFRESH MATERIALIZED VIEW kept_TABLE_NAME;
SQL
}

my %argument = (
	'id bigint' => 'id',
	'value bigint' => 'id',
	'key_name text' => "'k'",
	'version integer' => '1',
	'ts timestamp with time zone' => 'at',
	'epoch timestamp with time zone' => "'2026-01-01 00:00+00'",
	'tick_us bigint' => '1000',
	'shift integer' => '22');
my $indexable = <<'SQL';
SELECT p.proname, pg_get_function_identity_arguments(p.oid) FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
 WHERE p.provolatile = 'i' AND p.prokind = 'f' AND NOT p.proretset AND p.pronamespace <> 'uid_internal'::regnamespace AND p.prorettype NOT IN ('void'::regtype, 'trigger'::regtype) ORDER BY 1, 2
SQL

sub index_on ($function, $arguments)
{
	my @values = map { ($_ eq 'value text' ? $function =~ s/(.*)_from_(.*)/$1_to_$2(id)/r : $argument{$_}) // die "$function: what is a value for $_?" } split /, /, $arguments;
	my $call = "$function(" . join(', ', @values) . ')';
	return "CREATE INDEX ON indexed ((NOT $call IS NULL), $call)";
}

# What must be the same after a restore, in any order, because a table has none. \restrict has a random word. No dump shows the
# privileges on objects of the extension, nor what is in its views.
my $definitions = 'SELECT to_jsonb(g) FROM uid_generator AS g; SELECT to_jsonb(s) FROM uid_segment AS s; ';
my $counters = 'SELECT generator, pg_sequence_last_value(generator) FROM uid_generator; TABLE worker_node; SELECT last_value, is_called FROM worker_node_id_seq; '
  . join '', map { "SELECT count(*), count(DISTINCT code), max(made) FROM kept_$_; " } ('a_table', 'z_table');
my $privileges = q{SELECT oid::regclass, relowner::regrole, ARRAY(SELECT unnest(relacl)::text ORDER BY 1) FROM pg_class WHERE relkind = 'S' OR relname ~ '^(uid_|worker_node)'; }
  . q{SELECT nspname, ARRAY(SELECT unnest(nspacl)::text ORDER BY 1) FROM pg_namespace WHERE nspname LIKE 'uid_%'};
my %parts = (
	all => [ '', $definitions . $counters . $privileges ],
	unowned => [ '-O -x', $definitions . $counters ],
	definitions => [ '-s -O -x', $definitions ]);

# Lines of what a script returns, and of the error with which it ends, so that no error ends the test.
sub answers ($on, $sql, $dbname)
{
	my (undef, $output, $error) = $on->psql($dbname, $sql);
	return (split(/\n/, $output), grep { /ERROR/ } split /\n/, $error);
}

sub contents_of ($on, $dbname, $part)
{
	my ($options, $queries) = @{ $parts{$part} };
	my ($dump) = run_command([ 'pg_dump', (split ' ', $options), '-d', $on->connstr($dbname) ]);
	return [ split(/\n/, $dump =~ s/^\\(un)?restrict .*//mgr), answers($on, $queries, $dbname) ];
}

sub differences ($there, $expected)
{
	my %count;
	$count{$_}++ foreach @$there;
	$count{$_}-- foreach @$expected;
	my @lines = map { ($count{$_} < 0 ? '- ' : '+ ') . $_ } grep { $count{$_} } sort keys %count;
	return join "\n", splice @lines, 0, 20;
}

# Draws in every way: lines of what is drawn from, the direction, the first value and the last one that is taken.
my @generators = (
	q{SELECT generator, 1, min(id), max(id) FROM uid_generator, unnest(uid_next_array(generator, 3)) AS id GROUP BY 1},
	q{SELECT 'default', 1, min(id), max(id) FROM unnest(uid_next_array(3)) AS id});
my @draws = (
	@generators,
	# What nodes of other services take, and what the row shows as reserved.
	q{UPDATE t_sequence SET current_val = current_val + increment_val RETURNING to_jsonb(pk_seq_name), 1, current_val - increment_val, current_val + 2 * increment_val},
	q{UPDATE leaf_alloc SET max_id = max_id + step RETURNING to_jsonb(biz_tag), 1, max_id - step, max_id},
	q{SELECT to_jsonb(name), sign(seqincrement), v, v FROM uid_segment JOIN pg_sequence ON seqrelid = sequence, segment_next(sequence) AS v},
	q{SELECT 'serials', 1, v, v FROM segment_next('serials'::regclass) AS v},
	q{INSERT INTO a_table DEFAULT VALUES RETURNING 'default', 1, id, id},
	q{INSERT INTO worker_node (host_name, port, type, launch_date, modified, created) VALUES ('h', '1', 2, now(), now(), now()) RETURNING 'worker_node', 1, id, id});

# Draws, and adds to $last, by name, what is furthest. Returns what is not above $before.
sub draw ($on, $dbname, $draws, $last, $before = {})
{
	my @wrong;
	foreach my $line (answers($on, join('; ', @$draws), $dbname))
	{
		my ($name, $sign, $from, $to) = $line =~ /^(.*)\|(-?1)\|(-?\d+)\|(-?\d+)$/;
		push @wrong, $line and next unless defined $to;
		push @wrong, "$line after $before->{$name}" if exists $before->{$name} && $sign * $from <= $before->{$name};
		$last->{$name} = $sign * $to if !exists $last->{$name} || $sign * $to > $last->{$name};
	}
	push @wrong, map { "$_: no draw" } grep { !exists $last->{$_} } sort keys %$before;
	return @wrong;
}

# In its layout each generator draws ids of now, with its number.
my $not_of_now = q{SELECT generator, id, d FROM uid_generator, uid_next(generator) AS id, uid_decode(id, generator) AS d
  WHERE abs(extract(epoch FROM d.generated_at - clock_timestamp())) > 600 OR worker_policy = 'static' AND d.worker_id <> worker_number};
my $not_at_start = 'SELECT name, v FROM uid_segment JOIN pg_sequence ON seqrelid = sequence, segment_next(sequence) AS v WHERE v <> seqstart';
my $not_revealed = q{SELECT * FROM codes WHERE uid_reveal(code, 'orders') <> id};
# Of generators that may draw ahead, the marks are minutes ahead.
my $raise = q{SELECT uid_generator_raise(generator, uid_encode(clock_timestamp() + interval '5 min', 0, 0, 0, generator)) FROM uid_generator WHERE when_full = 'borrow' AND NOT builtin};
my $refresh = 'REFRESH MATERIALIZED VIEW kept_a_table; REFRESH MATERIALIZED VIEW kept_z_table';
my (%contents, %last);

sub judge ($on, $copy, $source, %opts)
{
	my ($part, $is_empty) = ($opts{part} // 'all', $opts{is_empty});
	is(differences(contents_of($on, $copy, $part), $contents{$source}{$part}), '', "$copy: everything is as it was" . ($part eq 'all' ? '' : ", $part"));
	my @wrong = answers($on, join('; ', $not_of_now, $is_empty ? $not_at_start : $not_revealed), $copy);
	if ($is_empty)
	{
		like(failure($on, q{SELECT uid_conceal(1, 'k')}, $copy), qr/ERROR:  55000: key "k" has no secret.*HINT: .*uid_key_create\('k'/s, '... a key has no secret, and says what to do');
		is(sql($on, q{SELECT uid_key_create('k', 63, 3); SELECT uid_reveal(uid_conceal(1, 'k'), 'k')}, $copy), "uid_keys.k\n1", '... until it is made again');
	}
	if ($opts{session})
	{
		cmp_ok($opts{session}->query_safe('SELECT uid_next()'), '>', $opts{above}{default}, '... a session that has drawn before goes on');
		$opts{session}->quit;
	}
	push @wrong, draw($on, $copy, \@draws, {}, $is_empty ? {} : $opts{above} // $last{$source});
	is(join("\n", @wrong), '', '... all draw, ' . ($is_empty ? 'from the start' : 'above all that was drawn'));
}

# ---------------------------------------------------------------------------------------------------------------
# The servers, and the originals.
# ---------------------------------------------------------------------------------------------------------------

my ($node, $target) = map { new_node($_, extra => [ '--encoding', 'UTF8', '--no-locale' ], conf => "uidgen.max_wait = 200ms\nsearch_path = 'public, \"its home\"'\n") } ('source', 'target');
my $now = 0;
sub go_on ($seconds)
{
	$now += $seconds;
	freeze_clock($_, $now) foreach $node, $target;
}

use_fake_clock($_) foreach $node, $target;
go_on(0);
start_node($_) foreach $node, $target;

# An alteration may come before the row of worker_node that a draw brings, which is lost then.
sub make_original ($dbname, $owner, $home, $extension, $more = '')
{
	my $begin = "SET SESSION AUTHORIZATION $owner; SET client_min_messages = error;";
	sql("CREATE DATABASE $dbname OWNER $owner");
	sql("$begin $extension; SELECT uid_next_array(50)", $dbname);
	wait_for_node_rows($node, '%', 1, dbname => $dbname);
	sql($begin . $fill =~ s/\bHOME\b/$home/gr, $dbname);
	sql($begin . join('; ', (map { index_on(split /\|/) } split /\n/, sql($indexable, $dbname)), 'SELECT uid_next(generator) FROM uid_generator'), $dbname);
	wait_for_node_rows($node, '%', 13, dbname => $dbname);
	sql($begin . <<'SQL' . $more, $dbname);
SELECT uid_generator_alter('uid_generators.tuned', lease_ms => 500, tolerance_ms => 50, boost_power => 2, padding_factor => 40, schedule_ms => 500,
  when_ring_empty => 'wait', max_staleness_ms => 900);
SQL
	sql($raise, $dbname);
	draw($node, $dbname, \@draws, $last{$dbname} = {}) == 0 or die "no draws from $dbname";
	wait_for_node_rows($node, '%', $more eq '' ? 21 : 22, dbname => $dbname);
	sql($refresh, $dbname);
	# A mark that no id has reached is a mark, too.
	$last{$dbname}{'uid_generators.raised'} = sql("SELECT id FROM uid_encode(clock_timestamp() + interval '6 min', 0, 0, 0, 'uid_generators.raised') AS id, uid_generator_raise('uid_generators.raised', id)", $dbname);
	$contents{$dbname} = { map { $_ => contents_of($node, $dbname, $_) } keys %parts };
}

sql('CREATE ROLE app LOGIN; CREATE ROLE boss LOGIN; CREATE ROLE alice LOGIN');
make_original('shop', 'postgres', 'public', 'CREATE EXTENSION uidgen', <<'SQL');
ALTER SEQUENCE uid_segments.plain OWNER TO app;
REVOKE USAGE ON SEQUENCE uid_generators.uid_default FROM PUBLIC;
GRANT USAGE ON SEQUENCE uid_generators.uid_default TO app;
SET ROLE app;
SELECT uid_generator_create('of_app', max_ahead_ms => 600000), segment_create('of_app');
GRANT USAGE ON SEQUENCE uid_generators.raised TO alice;
SQL
make_original('owned', 'boss', '"its home"', 'CREATE SCHEMA home; CREATE EXTENSION uidgen SCHEMA home; ALTER SCHEMA home RENAME TO "its home"');
unlike(join("\n", @{ $contents{shop}{all} }), qr/^SECURITY LABEL.*uid_generators\.uid_default/m, 'the label of the builtin generator is not in a dump');

# ---------------------------------------------------------------------------------------------------------------
# The ways.
# ---------------------------------------------------------------------------------------------------------------

# Generators that may not draw ahead can begin another lease.
go_on(1.5);

sub dump_to ($file, $dbname, @options)
{
	run_command([ 'rm', '-rf', "$directory/$file" ]);
	$node->command_ok([ 'pg_dump', @options, '-f', "$directory/$file", '-d', $node->connstr($dbname) ], "pg_dump @options $dbname");
}

sub restore ($on, $file, $dbname, @options)
{
	my $is_plain = -f "$directory/$file" && slurp_file("$directory/$file") !~ /^PGDMP/;
	my @program = $is_plain ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', @options, '-f') : ('pg_restore', '--exit-on-error', @options);
	$on->command_ok([ @program, "$directory/$file", '-d', $on->connstr($dbname) ], "$dbname: $program[0] @options");
}

# A block of a page, whose database shop is the original, and shop2, if it has one, the copy.
sub run_block ($way, $block, $what)
{
	my $original = $block =~ s/\bshop2\b/$way->{copy}/g ? $way->{source} : $way->{copy};
	$block =~ s/\bshop\b(?!\.)/$original/g;
	$block =~ s/\bshop\.dump\b/$way->{file}/g;
	shell_ok($way->{node}, $block, "$way->{copy}: $what", directory => $directory, PGUSER => $way->{user});
}

# The rows of t_sequence and leaf_alloc reserve blocks anew, unless they come without triggers.
sub restore_data ($way, $option = '')
{
	my (undef, @lines) = split /^/, block_of('docs/operations.md', qr/pg_restore --schema-only/) =~ s/--data-only/--data-only $option/gr;
	run_block($way, join('', @lines), "data, the secrets first $option");
	sql($way->{node}, join('; ', $refresh, $option eq '' ? () : map { "ALTER TABLE $_ ENABLE ALWAYS TRIGGER uid_reserve_block" } 't_sequence', 'leaf_alloc'), $way->{copy});
}

sub copy_secrets ($way)
{
	like(failure("SELECT uid_conceal(5, 'k')", $way->{copy}), qr/ERROR:  55000: key "k" has no secret\n.*HINT:  Copy the row of uid_key/s, 'a key without its row says so');
	run_block($way, block_of('docs/conceal.md', qr/vault\.key/) =~ s/\bvault\b/$_/gr, "the row of key $_ is copied") foreach 'k', 'orders';
}

sub restore_into_extension ($way)
{
	sql('CREATE SCHEMA "its home"; CREATE EXTENSION uidgen SCHEMA "its home"; GRANT USAGE ON SCHEMA "its home" TO PUBLIC', $way->{copy});
	run_block($way, block_of('docs/operations.md', qr/COMMENT - EXTENSION uidgen/) =~ s/ SCHEMA - uidgen / SCHEMA - its home /r, 'without its extension, which a superuser has made');
}

# A copy in place of the empty database.
sub copy ($way)
{
	sql("DROP DATABASE $way->{copy}; CREATE DATABASE $way->{copy} OWNER $way->{user} TEMPLATE $way->{source}");
}

# Beyond what the dump has leased, by a session that stays.
sub draw_minutes_later ($way)
{
	$way->{session} = hold_open($way->{node}, dbname => $way->{copy});
	$way->{session}->query_safe('SELECT uid_next()');
	go_on(310); # beyond the marks of all databases, because generators that were dropped in another one may count here
	sql($way->{node}, $raise, $way->{copy});
	draw($way->{node}, $way->{copy}, \@generators, $way->{above});
	go_on(1.5);
}

# All of a server. pg_dumpall says that what initdb makes is there already.
{
	$node->command_ok([ 'pg_dumpall', '-f', "$directory/all", '-d', $node->connstr('postgres') ], 'pg_dumpall');
	run_command([ 'psql', '-Xq', '-f', "$directory/all", '-d', $target->connstr('postgres') ]);
	judge($target, $_, $_) foreach 'shop', 'owned';
	wait_for_node_rows($target, 'uid_generators.uid_default', 3, dbname => 'shop');
	is(sql($target, "SELECT bool_and(id > $last{shop}{worker_node}) FROM worker_node WHERE system_identifier = (SELECT system_identifier FROM pg_control_system())", 'shop'),
		't', 'rows of two servers meet in worker_node, and new ones have higher ids');
}

# A database with its name, to another server, as docs/operations.md says it.
{
	my ($dump, $restore, $next_to_it) = split /^/, block_of('docs/operations.md', qr/pg_restore --create/);
	sql($target, 'ALTER DATABASE shop RENAME TO former_shop');
	shell_ok($node, $dump, 'a dump', directory => $directory);
	shell_ok($target, $restore, '... is restored with its database', directory => $directory);
	shell_ok($target, $next_to_it, '... and with another name', directory => $directory);
	judge($target, $_, 'shop') foreach 'shop', 'shop2';
}

my %is_dumped;
foreach (@ways)
{
	my ($source, $dump, $restore, $role, $elsewhere) = split ' ';
	my ($owner, $dump_options, $restore_options) = @{ $roles{$role} };
	my ($file, @options) = ("$source.$dump", split ' ', "$dumps{$dump} $dump_options");
	dump_to($file, $source, @options) unless $is_dumped{$file}++;
	my %way = (node => $elsewhere ? $target : $node, source => $source, copy => s/ /_/gr, file => $file, user => $owner, above => { %{ $last{$source} } });
	sql($way{node}, "CREATE DATABASE $way{copy} OWNER $owner TEMPLATE template0");
	ref $_ ? $_->(\%way) : restore($way{node}, $file, $way{copy}, split ' ', "$_ $restore_options") foreach @{ $restores{$restore} };
	my ($part) = grep { defined } @same{ $dump, $restore, $role }, 'all';
	my $is_empty = $dumps{$dump} =~ / -s\b/;
	judge($way{node}, $way{copy}, $source, part => $part, is_empty => $is_empty, above => $way{above}, session => $way{session});
}

# What a role may in a copy.
{
	my ($of_many, $of_boss) = ('shop_custom_whole_superuser', 'owned_custom_whole_owner');
	is(sqlstate($node, "SET ROLE alice; SELECT uid_next('uid_generators.raised')", $of_many), '00000', 'who may draw may');
	is(sqlstate($node, "SET ROLE alice; SELECT $_", $of_many), '42501', "who may not may not: $_") foreach 'uid_next()', "uid_next('uid_generators.of_app')";
	is(sqlstate($node, "SET ROLE app; SELECT uid_generator_create('of_app_too')", $of_many), '00000', 'who may create may');
	sql("SELECT uid_generator_create('of_super'); CREATE SEQUENCE plain", $of_boss);
	is(sqlstate($node, "SET SESSION AUTHORIZATION boss; $_", $of_boss), '42501', "the owner of the database needs no more for a restore, so he may not: $_")
	  foreach "SELECT uid_generator_alter('uid_generators.of_super', lease_ms => 5)", "SECURITY LABEL FOR uidgen ON SEQUENCE plain IS 'key id=1'";
}

# ---------------------------------------------------------------------------------------------------------------
# Stories that no table tells.
# ---------------------------------------------------------------------------------------------------------------

# In parallel no order is promised. So the secrets of keys come last here: all is restored that need not wait for them.
{
	sql('CREATE DATABASE late TEMPLATE template0');
	restore($node, 'shop.custom', 'late', '--section=pre-data');
	my $lock = hold_open($node, dbname => 'late');
	$lock->query_safe('BEGIN; LOCK TABLE uid_secrets.uid_key IN EXCLUSIVE MODE');
	my $errors = '';
	my $run = IPC::Run::start([ 'pg_restore', '--exit-on-error', '-j4', '--section=data', '--section=post-data', '-d', $node->connstr('late'), "$directory/shop.custom" ], '2>', \$errors);
	my $made = q{SELECT (SELECT count(*) FROM pg_index) + (SELECT count(*) FROM pg_constraint) + (SELECT count(*) FROM pg_trigger) + (SELECT count(*) FROM pg_policy)};
	my $wanted = sql($made, 'shop');
	ok(poll_until('all but the secrets of keys', sub { $run->pump_nb; return !$run->pumpable || sql($made, 'late') >= $wanted }, 60), 'what need not wait for the secrets does not');
	$lock->query_safe('COMMIT');
	$lock->quit;
	ok($run->finish, '... and the rest comes after them') or diag($errors);
	judge($node, 'late', 'shop');
}

# All keys, to a database that has none.
sql('CREATE DATABASE keys');
sql('CREATE EXTENSION uidgen', 'keys');
shell_ok($node, block_of('docs/conceal.md', qr/shop3/) =~ s/shop3/keys/gr, 'all keys are carried by one statement', directory => $directory);
is(sql("SELECT uid_reveal($_, 'orders')", 'keys'), 500, '... and reveal what they have concealed') foreach sql('SELECT code FROM codes WHERE id = 500', 'shop');

# Into a database that has all of it, in other figures: what is there stays.
sub is_unchanged ($dbname, $what, @restores)
{
	my $before = [ answers($node, $definitions, $dbname) ];
	foreach (@restores)
	{
		my ($file, @options) = split ' ';
		run_command([ $file =~ /custom/ ? ('pg_restore', @options) : ('psql', '-Xq', '-f'), "$directory/$file", '-d', $node->connstr($dbname) ]);
	}
	is(differences([ answers($node, $definitions, $dbname) ], $before), '', $what);
}
sql('CREATE DATABASE live TEMPLATE shop');
sql(<<'SQL', 'live');
SELECT uid_generator_alter('uid_generators.own', lease_ms => 700, worker_number => 8), segment_alter('plain', 9);
SELECT uid_default_set(uid_generator_create('later', 'twitter', epoch => '2019-01-01 00:00+00'));
SQL
is_unchanged('live', 'a restore into a database that has all of it changes no definition', 'shop.definitions', 'shop.structure', 'shop.custom', 'shop.custom -a');
# Nor does the label of the dump's default count where sessions draw from the builtin generator.
sql('CREATE DATABASE drawn TEMPLATE template0');
sql('CREATE EXTENSION uidgen; SELECT uid_next()', 'drawn');
run_command([ 'pg_restore', '-d', $node->connstr('drawn'), "$directory/shop.custom" ]);
is(sql('SELECT generator FROM uid_generator WHERE is_default', 'drawn'), 'uid_generators.uid_default', 'the default stays that of a database in use');
is(sqlstate($node, 'SELECT uid_next()', 'drawn'), '00000', '... which draws');
like(failure("SELECT uid_next('uid_generators.chosen')", 'drawn'), qr/"chosen" has lost its definition/, '... although a label was refused');
is_unchanged('drawn', '... and stays', 'shop.custom -a', 'shop.custom --no-security-labels');

# Without labels nothing says what the sequences are. The error has the statement that mends it. The builtin generator does
# not stand in for the default, although it has drawn in the original. What is created again starts above all ids.
{
	my %way = (node => $node, copy => 'unlabelled', source => 'shop', user => 'postgres', above => {});
	sql('CREATE DATABASE unlabelled');
	copy(\%way);
	draw_minutes_later(\%way);
	# It fails to copy rows whose CHECK calls a generator.
	run_command([ 'pg_restore', '--clean', '--if-exists', '--no-security-labels', '-d', $node->connstr('unlabelled'), "$directory/shop.custom" ]);
	like(failure("SELECT uid_next('uid_generators.raised')", 'unlabelled'), qr/ERROR:  55000: .*"raised" has lost its definition.*HINT: .*uid_generator_create\('raised'/s, 'a generator without its label does not draw');
	like(failure("SELECT segment_next('plain')", 'unlabelled'), qr/ERROR:  55000: .*"plain" has lost its definition.*HINT: .*segment_create\('plain'/s, '... nor does a segment');
	like(failure('SELECT uid_next()', 'unlabelled'), qr/ERROR:  55000: cannot draw from generator "uid_default" because sequence ".*" has lost its definition.*HINT: .*uid_default_set/s,
		'... nor the default, to which the builtin generator is not the heir');
	sql("SELECT uid_generator_create('raised', max_ahead_ms => 600000), segment_create('plain'); SELECT uid_default_set('uid_generators.raised')", 'unlabelled');
	cmp_ok(sql("SELECT uid_next('uid_generators.raised')", 'unlabelled'), '>', $way{above}{'uid_generators.raised'}, 'created again, a generator continues');
	cmp_ok(sql("SELECT segment_next('plain')", 'unlabelled'), '>', $last{shop}{'"plain"'}, '... and a segment');
	is(sqlstate($node, 'SELECT uid_next()', 'unlabelled'), '00000', '... and the default, chosen again');
	$way{session}->quit;
}

# A default that is dropped is missing, also after a restart. A dump does not say so.
sql('CREATE DATABASE without TEMPLATE shop');
like(($node->psql('without', 'DROP SEQUENCE uid_generators.chosen'))[2], qr/WARNING:  the database no longer has a default generator/, 'the default is dropped with a warning');
$node->restart;
like(failure('INSERT INTO a_table DEFAULT VALUES', 'without'), qr/ERROR:  42704.*no default generator/s, '... and draws fail after a restart');
sql('CREATE DATABASE again TEMPLATE template0');
sql('DROP TABLE a_table, z_table CASCADE', 'without');
dump_to('without', 'without', '-Fc');
restore($node, 'without', 'again');
is(sql('SELECT generator FROM uid_generator WHERE is_default', 'again'), 'uid_generators.uid_default', '... and where its dump is restored, the builtin generator is the default');

# LATIN1 to UTF8, where names become longer than an identifier may be.
sql("CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0");
sql("CREATE EXTENSION uidgen; SELECT uid_generator_create('caf' || chr(233), 'js53'), segment_create(repeat(chr(233), 40), 40), segment_create(repeat(chr(232), 70), 70);"
	  . " SELECT uid_default_set(generator) FROM uid_generator WHERE preset = 'js53'; SELECT segment_next(repeat(chr(233), 40))", 'latin');
foreach my $case ([ 'latin_definitions', '40|70', '-s' ], [ 'latin_data', '41|70' ])
{
	my ($dbname, $first, @options) = @$case;
	sql("CREATE DATABASE $dbname TEMPLATE template0");
	dump_to('latin', 'latin', @options);
	restore($node, 'latin', $dbname);
	is(sql('SELECT segment_next(repeat(chr(233), 40)), segment_next(repeat(chr(232), 70))', $dbname) =~ s/^4[1-9]|^[5-9]\d|^\d{3,}/41/r, $first, 'LATIN1 to UTF8: segments have their names');
	is(sql('SELECT octet_length(generator::text), uid_next() < 1::bigint << 53 FROM uid_generator WHERE is_default', $dbname), '22|t', '... and the default its');
}

# The extension dropped: what depended on it goes with it, but no column. Created again, it is new.
sql('CREATE DATABASE dropped TEMPLATE owned');
sql('SET client_min_messages = error; DROP EXTENSION uidgen CASCADE', 'dropped');
is(sql("SELECT count(*) FROM pg_seclabel; SELECT relname FROM pg_class WHERE relkind = 'S'; SELECT attname FROM pg_attribute WHERE attrelid = 'other.owner'::regclass AND attnum > 0 AND NOT attisdropped", 'dropped'),
	"0\nserials\nid\nn", 'DROP EXTENSION CASCADE takes the sequences and their labels, and no column');
sql('DROP FUNCTION made_at CASCADE', 'dropped');
dump_to('rest', 'dropped');
sql('CREATE DATABASE rest TEMPLATE template0');
restore($node, 'rest', 'rest');
sql('CREATE EXTENSION uidgen SCHEMA "its home"', 'dropped');
is(sql("SELECT preset, is_default FROM uid_generator; SELECT uid_next() > 0; SELECT segment_create('plain'), uid_generator_create('web')", 'dropped'), "snowflake|t\nt\nuid_segments.plain|uid_generators.web", 'created again, it is new');

# Of the statements of others, event triggers see security labels and drops of sequences alone. So CREATE TABLE costs what it costs
# without the extension.
is(sql("SELECT string_agg(evtevent || coalesce(' of ' || array_to_string(evttags, ', '), ''), '; ' ORDER BY evtevent) FROM pg_event_trigger", 'shop'), 'ddl_command_start of SECURITY LABEL, DROP SEQUENCE', 'no event trigger looks at CREATE, ALTER or DROP TABLE');

# A dump has no sequence of another extension, so it has no label of it.
sql('CREATE DATABASE members; CREATE DATABASE members_again');
sql("CREATE EXTENSION uidgen; SELECT segment_create('taken'), segment_create('kept'); ALTER EXTENSION plpgsql ADD SEQUENCE uid_segments.taken", 'members');
dump_to('members', 'members', '-Fc');
restore($node, 'members', 'members_again');
is(sql("SELECT segment_next('kept'), string_agg(name, ' ') FROM uid_segment", 'members_again'), '1|kept', 'other segments are as they were');

done_testing();
