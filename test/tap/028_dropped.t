# Secrets of keys are deleted with their sequence, in the transaction that drops it. What is left behind by a session
# without the library does no harm.
use IPC::Run;
use UidgenTest 'preloaded';

my $node = new_server('dropped', conf => "max_connections = 80\n");
my $directory = PostgreSQL::Test::Utils::tempdir();

# Statements in single-user mode, one a line; returns what the server says.
sub single_user ($statements, @options)
{
	my $output = '';
	$node->stop if defined $node->{_pid};
	IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, @options, 'postgres' ], '<', \$statements, '>', \$output, '2>&1');
	start_node($node);
	return $output;
}

my $names = "SELECT string_agg(generator::text, ' ' ORDER BY generator::text) FROM uid_generator WHERE NOT builtin; SELECT string_agg(name, ' ' ORDER BY name) FROM uid_segment";

sql("SELECT uid_generator_create(n), segment_create(n) FROM unnest(ARRAY['c', 'kept']) AS n");

# A transaction on an old snapshot drops what it can see. (sql/transaction.sql and sql/prepared.sql have other transactions.)
is(sqlstate($node, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM uid_generator; DROP SEQUENCE uid_generators.c, uid_segments.c; COMMIT"), '00000', 'in REPEATABLE READ');
is(sql($names), "uid_generators.kept\nkept", '... rows go, too');
# A superuser who has created the extension, and is none any more.
sql('CREATE ROLE former SUPERUSER; CREATE DATABASE formers');
sql('SET SESSION AUTHORIZATION former; CREATE EXTENSION uidgen', 'formers');
sql("ALTER ROLE former NOSUPERUSER; SELECT segment_create('s'); CREATE TABLE serials (id serial)", 'formers');
sql('DROP TABLE serials; DROP SEQUENCE uid_segments.s', 'formers');
is(sql('SELECT count(*) FROM uid_segment', 'formers'), 0, 'rows go, too, if the owner of the tables is no superuser any more');

sql('BEGIN; DROP EXTENSION uidgen CASCADE; ROLLBACK');
is(sql($names), "uid_generators.kept\nkept", 'the extension is there after a rollback of its DROP');
# Each call waits in a session of its own, while another session drops something. Then it says what is missing.
sub while_dropped ($drop, %expected)
{
	my @calls = sort keys %expected;
	my %sessions = map { $_ => hold_open($node, dbname => 'going') } @calls;
	my $dropping = hold_open($node, dbname => 'going');
	$dropping->query_safe("SET client_min_messages = error; BEGIN; $drop");
	send_query($sessions{$_}, "\\set VERBOSITY verbose\n$_") foreach @calls;
	is(sqlstate($node, "SELECT $_", 'going'), '00000', "$_ waits for nobody")
	  foreach 'uid_decode(1)', 'uid_timestamp(1)', 'uid_lower_bound(now())', 'uid_encode(now(), 1, 1, 1)';
	my $waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'going' AND wait_event_type = 'Lock'";
	$node->poll_query_until('postgres', $waiting, scalar @calls) or die 'a call does not wait';
	$dropping->query_safe('COMMIT');
	foreach my $call (@calls)
	{
		my ($output, $error) = finish_query($sessions{$call});
		my ($state) = $error =~ /(?:ERROR|FATAL):  (\w{5}):/;
		is($state // '00000', $expected{$call}, "$drop: $call") or diag($error);
		$sessions{$call}->quit;
	}
	$dropping->quit;
}

sub create_what_goes
{
	sql("SELECT uid_generator_create('g'), segment_create('s'), uid_key_create('k')", 'going');
}

# No table, no sequence, no object. Of a body in SQL, as of each such function, PostgreSQL says only that what it was bound to
# is gone.
my ($table, $sequence, $object, $bound) = ('42P01', '42P01', '42704', 'XX000');
sql($_) foreach 'CREATE DATABASE going', 'ALTER DATABASE going SET uidgen.datacenter_id = 1';
sql('CREATE EXTENSION uidgen; CREATE SEQUENCE plain; CREATE TABLE serials (id serial)', 'going');
create_what_goes();
while_dropped(
	'DROP EXTENSION uidgen CASCADE',
	(map { $_ => $table } 'SELECT uid_next()', "SELECT uid_next('uid_generators.g')", 'SELECT uid_next_uuid()',
		'SELECT unnest(uid_next_array(5))', "SELECT segment_next('s')", "SELECT segment_next('uid_segments.s'::regclass)",
		"SELECT segment_reserve('s', 5)", "SELECT uid_conceal(1, 'k')",
		"SELECT uid_generator_alter('uid_generators.g', lease_ms => 500)", "SELECT uid_default_set('uid_generators.g')",
		"SELECT uid_generator_raise('uid_generators.g', 5)",
		'TABLE uid_generator',
		'TABLE uid_generator_status', 'TABLE uid_generator_limits', 'TABLE segment_status',
		'TABLE uid_stat', 'TABLE worker_node'),
	'SELECT uid_origin(1)' => $bound);

# The extension is there again, when the calls go on, but not the sequence that they waited for.
sql('CREATE EXTENSION uidgen', 'going');
create_what_goes();
while_dropped(
	'DROP EXTENSION uidgen CASCADE; CREATE EXTENSION uidgen',
	'SELECT uid_next()' => $sequence,
	"SELECT uid_next('uid_generators.g')" => $sequence);

create_what_goes();
while_dropped(
	'DROP SEQUENCE uid_generators.g, uid_segments.s, uid_keys.k',
	(map { $_ => $sequence } "SELECT uid_next('uid_generators.g')", "SELECT uid_generator_alter('uid_generators.g', lease_ms => 500)",
		"SELECT uid_generator_raise('uid_generators.g', 5)",
		"SELECT uid_default_set('uid_generators.g')", "SELECT segment_next('s')", "SELECT segment_set('s', 1000)",
		"SELECT segment_alter('s', step => 5)", "SELECT uid_key_rotate('k')"));
sql(q{SELECT uid_key_create('k')}, 'going');
while_dropped('LOCK TABLE uid_secrets.uid_key; DROP SEQUENCE uid_keys.k', map { $_ => $object } "SELECT uid_conceal(1, 'k')", "SELECT uid_reveal(1, 'k')");
sql("SELECT uid_generator_create('former'), uid_generator_create('next'); SELECT uid_default_set('uid_generators.former')", 'going');
while_dropped('DROP SEQUENCE uid_generators.former', "SELECT uid_default_set('uid_generators.next')" => '00000');

# In a session without the library the secret of a key stays, and a dump has it.
sql("SELECT uid_generator_create('left'), segment_create('left'), uid_key_create('left')");
single_user("DROP SEQUENCE uid_generators.left, uid_segments.left, uid_keys.left\n", "-c", "shared_preload_libraries=");
is(sql("SELECT count(*) FROM uid_generator WHERE generator::text ~ '^[0-9]+\$'") . sql("SELECT count(*) FROM uid_segment WHERE name = 'left'"),
	'00', 'a generator and a segment go with their labels');
my $without_key = 'SELECT count(*) FROM uid_secrets.uid_key WHERE id NOT IN (SELECT id FROM uid_internal.keys)';
is(sql($without_key), 1, '... but a secret can be left behind');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/left.dump", '-d', $node->connstr('postgres') ], 'such a database is dumped');
sql('CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), "$directory/left.dump" ], 'and its dump restored');
is(sql("SELECT uid_next('uid_generators.kept') > 0, uid_next() > 0, segment_next('kept') > 0", 'restored'), 't|t|t', 'it draws');
is(sql($without_key, 'restored'), 1, '... with the secret, as docs/operations.md says');
foreach my $view ('uid_generator', 'uid_generator_status', 'uid_generator_limits', 'uid_generator_columns', 'segment_status', 'uid_key_config')
{
	is(sqlstate($node, "TABLE $view"), '00000', "$view can be read");
}
is(sqlstate($node, "SELECT segment_next('left')"), '42P01', 'the name means no sequence');
is(sql("SELECT segment_create('left'), segment_next('left')"), 'uid_segments."left"|1', 'it can be given again');

done_testing();
