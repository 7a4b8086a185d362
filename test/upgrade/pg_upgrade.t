# pg_upgrade from an older major: every generator and every segment goes on just above what the old server had
# reserved, and the extension is whole.
#
# Both servers' clocks stand still at the same instant: were they to run, ids would rise even if the counters were
# lost. test/lib/majors.sh puts the older PostgreSQL, with the
# extension, into the work directory. The test counts as skipped if that major is not older, or if PostgreSQL cannot do the upgrade even without uidgen.
use UidgenTest 'preloaded';
use Clock;
use Installation;

# PostgreSQL 18 has checksums unless told otherwise, older ones only if told so, and pg_upgrade wants them alike.
# Cluster's settings for streaming are of the newer major, which the older one may not know.
my @initdb = (extra => ['--data-checksums'], allows_streaming => 0);
my $older = "$ENV{UIDGEN_WORK}/old";

sub upgrade ($from, $to, @options)
{
	return run_log([ pg_upgrade_command($from, $to, '--copy', '--old-bindir', "$older/bin", @options) ]);
}

# PostgreSQL 15.20 gives each column of a relation the option pg_attver, which minor releases of later majors may be too
# old to know: then pg_upgrade fails on any table. Without the option, columns are like those of a database that an earlier
# minor release has made.
sub forget_unknown_options ($from, $to)
{
	return if index(slurp_file($to->config_data('--bindir') . '/postgres'), 'pg_attver') >= 0;
	foreach my $dbname (split /\n/, $from->safe_psql('postgres', 'SELECT datname FROM pg_database WHERE datallowconn'))
	{
		$from->safe_psql($dbname,
			"SET allow_system_table_mods = on; UPDATE pg_attribute SET attoptions = nullif(ARRAY(SELECT o FROM unnest(attoptions) o WHERE o NOT LIKE 'pg_attver=%'), '{}') WHERE attoptions IS NOT NULL"
		);
	}
}

# A minor release can be too old to upgrade from another one: then nothing is uidgen's fault.
sub upgrades_without_uidgen
{
	my $from = UidgenNode->new('plain_old', install_path => $older);
	my $to = UidgenNode->new('plain_new');
	$_->init(@initdb) foreach ($from, $to);
	$from->start;
	$from->safe_psql('postgres', 'CREATE TABLE t (id bigserial)');
	forget_unknown_options($from, $to);
	$from->stop;
	return upgrade($from, $to);
}

my $old = new_node('old', install_path => $older, @initdb);
my $new = new_node('new', @initdb);
my $bare = new_node('bare', @initdb, conf => "shared_preload_libraries = ''\n");
cmp_ok($old->pg_version, '<', $new->pg_version, 'from PostgreSQL ' . $old->pg_version . ' to ' . $new->pg_version);
foreach my $node ($old, $new, $bare)
{
	use_fake_clock($node);
	freeze_clock($node);
}

# What is drawn from, how, its sequence, the bits below what its counter counts (ticks; or values: none), the increment.
my @streams = (
	[ 'the default generator', 'uid_next()', 'uid_generators.uid_default', 22, 1 ],
	[ 'a generator', "uid_next('uid_generators.orders')", 'uid_generators.orders', 22, 1 ],
	[ 'a named segment', "segment_next('Any name')", 'uid_segments."Any name"', 0, 1 ],
	[ "a bigserial's sequence", "segment_next('t_id_seq'::regclass)", 't_id_seq', 0, 1 ],
	[ 'offset and stride', "segment_next('strided'::regclass)", 'strided', 0, 3 ]);

# Everything of the extension and of what is counted that must be the same afterwards. (Whether tables' row types are
# members depends on the major.)
my $everything = <<'SQL';
SELECT 'generator', g::text, '' FROM uid_generator AS g
UNION ALL SELECT 'segment', s::text, '' FROM uid_segment AS s
UNION ALL SELECT 'node', n::text, '' FROM worker_node AS n
UNION ALL SELECT 'sequence', p::text, pg_sequence_last_value(p.seqrelid)::text FROM pg_sequence AS p
UNION ALL SELECT 'acl', oid::regclass::text, relacl::text FROM pg_class WHERE relkind = 'S'
UNION ALL SELECT 'schema acl', nspname, nspacl::text FROM pg_namespace WHERE nspname LIKE 'uid\_%'
UNION ALL SELECT 'extension', extversion, extconfig::regclass[]::text || extcondition::text FROM pg_extension WHERE extname = 'uidgen'
UNION ALL SELECT 'member', pg_describe_object(classid, objid, 0), '' FROM pg_depend
  WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
UNION ALL SELECT 'trigger', evtname, evtenabled::text FROM pg_event_trigger
UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
ORDER BY 1, 2, 3
SQL

start_uidgen($old);
$old->safe_psql('postgres', <<'SQL');
ALTER DATABASE postgres SET uidgen.datacenter_id = 3;
CREATE ROLE alice;
GRANT CREATE ON SCHEMA uid_generators, uid_segments TO alice;
REVOKE USAGE ON SEQUENCE uid_generators.uid_default FROM PUBLIC;
SET ROLE alice;
SELECT uid_generator_create('orders'), segment_create('Any name', 100, 700), segment_create('not drawn from', 500);
RESET ROLE;
CREATE TABLE t (id bigserial);
CREATE SEQUENCE strided START 2 INCREMENT 3;
SQL
# Another default, every kind of name, definitions elsewhere than they were made, and none of all that any more.
$old->safe_psql('postgres', "CREATE DATABASE $_") foreach 'chosen', 'without', 'dropped';
$old->safe_psql($_, <<'SQL') foreach 'chosen', 'dropped';
CREATE EXTENSION uidgen;
SELECT uid_generator_create('With "quotes", it''s odd', 'js53'), uid_generator_create('own', tick_us => 1234567, time_bits => 30, lease_ms => 7000, max_ahead_ms => 60000);
SELECT segment_create(repeat('long ', 30), 7, 10, 100), segment_create(E'two\nlines\\'), uid_key_create('k');
SELECT uid_default_set('uid_generators."With ""quotes"", it''s odd"');
ALTER SEQUENCE uid_generators.own SET SCHEMA public;
SELECT uid_t_sequence_create();
INSERT INTO t_sequence VALUES (E'two\nlines\\', 1, 20);
UPDATE t_sequence SET current_val = current_val + increment_val;
CREATE TABLE documents (id bigint DEFAULT uid_next() CHECK (uid_timestamp(id) > '2020-01-01'), own bigint DEFAULT uid_next('own'), n bigint DEFAULT segment_next(repeat('long ', 30)), code bigint);
INSERT INTO documents SELECT FROM generate_series(1, 1500);
UPDATE documents SET code = uid_conceal(id, 'k');
SQL
$old->safe_psql('dropped', 'SET client_min_messages = error; DROP EXTENSION uidgen CASCADE');
$old->safe_psql('without', "SET client_min_messages = error; CREATE EXTENSION uidgen; SELECT uid_generator_create('g'); SELECT uid_default_set('uid_generators.g'); DROP SEQUENCE uid_generators.g");
my %highest;
foreach my $stream (@streams)
{
	my ($name, $draw) = @$stream;
	$highest{$name} = $old->safe_psql('postgres', "SELECT max(v) FROM (SELECT $draw AS v FROM generate_series(1, 1500) OFFSET 0) AS d");
}

wait_for_node_rows($old, '%', 2);

# A rehearsal starts and stops the old server, as the upgrade does.
$old->stop('fast');
ok(upgrade($old, $new, '--check'), 'pg_upgrade --check');
start_node($old);
foreach my $stream (grep { $_->[3] == 0 } @streams)
{
	my ($name, $draw) = @$stream;
	my $value = $old->safe_psql('postgres', "SELECT $draw");
	cmp_ok($value, '>', $highest{$name}, "... and the old server goes on: $name");
	$highest{$name} = $value;
}

my $before = $old->safe_psql('postgres', $everything);
my $block = $old->safe_psql('chosen', 'SELECT current_val + 2 * increment_val FROM t_sequence');
my $chosen_before = $old->safe_psql('chosen', $everything);
my %counter = map { $_->[0] => $old->safe_psql('postgres', "SELECT last_value FROM $_->[2]") } @streams;
forget_unknown_options($old, $new);
$old->stop('fast');

my $upgraded = upgrade($old, $new);
if (!$upgraded && !upgrades_without_uidgen())
{
  SKIP:
	{
		skip $new->pg_version . ' does not upgrade ' . $old->pg_version . ', with uidgen or without', 1;
	}
	done_testing();
	exit;
}
ok($upgraded, 'pg_upgrade') or BAIL_OUT('nothing to look at');

# To a server with the preload, and to one without it.
ok(upgrade($old, $bare), 'pg_upgrade without the preload');
start_node($bare);
start_node($new);
is($new->safe_psql('postgres', $everything), $before, 'every row, counter, privilege, member and trigger is there');
foreach my $node ($new, $new->pg_version < 17 ? () : $bare)    # before 17 a server without the preload does not draw
{
	my $name = $node->name;
	is($node->safe_psql('chosen', $everything), $chosen_before, "$name: so it is with another default");
	is($node->safe_psql('chosen', 'INSERT INTO documents SELECT FROM generate_series(1, 1500); SELECT count(DISTINCT id), count(DISTINCT own), count(DISTINCT n), max(id) < 1::bigint << 53 FROM documents'),
		'3000|3000|3000|t', '... no id and no value comes twice');
	cmp_ok($node->safe_psql('chosen', 'UPDATE t_sequence SET current_val = current_val + increment_val RETURNING current_val - increment_val'),
		'>', $block, '... and no value of t_sequence');
	is($node->safe_psql('chosen', "SELECT bool_and(uid_reveal(code, 'k') = id) FROM documents WHERE code IS NOT NULL"), 't', '... and what was concealed is revealed');
	is($node->safe_psql('chosen', "SELECT count(*) FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_extension'::regclass AND deptype = 'n'"), 5, '... and each sequence depends on the extension');
	is(sqlstate($node, 'SELECT uid_next()', 'without'), '42704', '... a database without a default has none');
	is($node->safe_psql('dropped', 'SELECT count(*), count(code) FROM documents; SELECT count(*) FROM pg_seclabel'), "1500|1500\n0", '... and one without the extension has its rows');
}
$bare->stop;

foreach my $stream (@streams)
{
	my ($name, $draw, undef, $bits, $increment) = @$stream;
	my $value = $new->safe_psql('postgres', "SELECT $draw");
	cmp_ok($value >> $bits, '>', $highest{$name} >> $bits, "$name: above all that was drawn before");
	is($value >> $bits, $counter{$name} + $increment, '... by what was in hand, no more');
}
is($new->safe_psql('postgres', "SELECT segment_next('not drawn from')"), 500, 'a segment that nobody had drawn from starts where it should');
is($new->safe_psql('postgres', "SELECT nextval('strided') % 3, nextval('strided') > segment_next('t_id_seq'::regclass)"),
	'2|t', 'nextval keeps the offset');
is($new->safe_psql('postgres', 'SELECT (uid_decode(uid_next())).datacenter_id'), 3, "the database's datacenter id");
wait_for_node_rows($new, '%', 4);
is( $new->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), count(DISTINCT (generator, system_identifier)) FROM worker_node'),
	'4|4|4', 'the new server has rows of its own in worker_node, with other numbers');

$new->safe_psql('postgres', 'DROP SEQUENCE uid_generators.orders, uid_segments."Any name"');
is( $new->safe_psql('postgres', 'SELECT generator FROM uid_generator WHERE NOT builtin UNION ALL SELECT sequence FROM uid_segment ORDER BY 1'),
	'uid_segments."not drawn from"', 'rows go with their sequences');

done_testing();
