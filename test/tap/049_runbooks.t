# The runbooks for the night (docs/runbooks): each is run verbatim, block by block, in the situation that it is for. Its
# symptom is what the server says, and afterwards it is over. A step at the wrong moment fails and changes nothing.
#
# Runbook.pm says what marks in a page mean.
use UidgenTest 'preloaded';
use Clients;
use Clock;
use Fleet;
use Installation;
use Pages;
use Runbook;

skip_with_assertions();

my $directory = PostgreSQL::Test::Utils::tempdir();
my $path = 'SET search_path = public, uidgen;';

sub error_of ($node, $sql)
{
	my $error;
	$node->psql('shop', "\\set VERBOSITY verbose\n$path\n$sql", on_error_stop => 1, stderr => \$error);
	return $error;
}

# Statements of the test's own, each in a transaction of its own.
sub shop ($node, @sql)
{
	return sql_with_path($node, 'shop', @sql);
}

sub make_shop ($node)
{
	$node->safe_psql('postgres', $_) for 'CREATE DATABASE shop', 'CREATE ROLE app';
	$node->safe_psql('shop', $_)
	  for 'CREATE SCHEMA uidgen',
	  'CREATE EXTENSION uidgen SCHEMA uidgen',
	  'GRANT USAGE ON SCHEMA uidgen TO PUBLIC';
	shop($node, 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)',
		'INSERT INTO orders SELECT FROM generate_series(1, 10)');
}

# The clock was far ahead.

# While sessions insert, without a registry and with one. The clocks run: thirty days ahead, and back.
sub clock_ahead ($in_fleet)
{
	my $clock = new_node("clock$in_fleet", conf => "autovacuum = off\n");
	my @nodes = ($clock);
	if ($in_fleet)
	{
		unshift @nodes, new_node('registry', conf => "autovacuum = off\n");
		$clock->append_conf('postgresql.conf', "uidgen.registry = '" . registry_line($nodes[0]) . "'\n");
	}
	foreach my $node (@nodes)
	{
		use_fake_clock($node);
		start_uidgen($node);
		make_registry($node) if $node != $clock;
	}
	my $set = sub { set_clock($_, $_[0]) foreach @nodes };
	make_shop($clock);
	my $statement = 'INSERT INTO orders DEFAULT VALUES RETURNING id';
	my $loop = background_loop($clock, dbname => 'shop', clients => 3, on_error_stop => 0, pace => 0.02, sql => $statement);
	goes_on('clock: sessions insert', $loop);
	unlike(shop($clock, block_of('docs/runbooks/clock.md', qr/leased_until/)), qr/uid_default/, '... no generator is ahead of a clock that runs');
	$set->('+2592000');
	goes_on('... thirty days ahead, too', $loop);
	$set->('+0');
	my $error = error_of($clock, $statement);
	like($error, qr/ERROR:  55000: @{[symptom('clock')]}/, '... the symptom');
	like($error, qr/HINT:  If the clock is right now, .*, (?:run |run on each member of the fleet, with the earliest of their epochs, )SELECT uidgen\.uid_default_set\(uidgen\.uid_generator_create\('uid_default_next', template /, '... with the way out');
	if ($in_fleet) { shop($clock, $error =~ /HINT:  .*, (SELECT uidgen\.uid_default_set\(.*, own_pool => true\)\);)\n/) }
	else { run_page('clock', $clock) }
	goes_on('... sessions insert again', $loop);
	$set->('+2592001');
	goes_on('... where there are ids already', $loop);
	assert_unique(stop_loop($loop));
	$_->stop foreach reverse @nodes;
}

clock_ahead(0);
clock_ahead(1);

# A generator is near its end of time.

my $night = new_node('night', allows_streaming => 1, conf => "autovacuum = off\n");
start_node($night);
make_shop($night);
shop($night, statement_of('docs/runbooks/clock.md', qr/busy/), "SELECT uid_next('uid_generators.busy')");
is(shop($night, 'SELECT count(DISTINCT node) FROM uid_generator_status'), '2', 'clock: the second generator of a busy table has another node');
shop($night, "SELECT segment_create('orders', start => 2, max_value => 2)", "SELECT segment_next('orders')");
like(error_of($night, "SELECT segment_next('orders')"), qr/reached maximum value of sequence/, 'a segment is at its end: the symptom');
is(shop($night, statement_of('docs/runbooks/README.md', qr/NO MAXVALUE/), "SELECT segment_next('orders')"), '3', '... and it continues');

# A snapshot of the disk is put back (docs/operations.md).
sub draws ($what)
{
	return shop($night, "SELECT $what FROM generate_series(1, 100)");
}
$night->stop;
system_or_bail('cp', '-a', $night->data_dir, $night->basedir . '/snapshot');
$night->start;
my ($ids, $values) = map { draws($_) } 'uid_next()', q{segment_next('orders')};
$night->stop('immediate');
system_or_bail('rm', '-rf', $night->data_dir);
system_or_bail('mv', $night->basedir . '/snapshot', $night->data_dir);
$night->start;
is(draws(q{segment_next('orders')}), $values, 'a snapshot: a segment repeats its values');
my %is_old = map { $_ => 1 } split /\n/, $ids;
is(join(' ', grep { $is_old{$_} } split /\n/, draws('uid_next()')), '', '... and a generator no id');

# 40 bits of milliseconds are 34.8 years. No field is that of the preset, so far as fields go together.
my $ending = q{epoch => now() - interval '34 years', time_bits => 40};
shop($night,
	"SELECT uid_generator_create('orders', 'hutool', $ending, datacenter_bits => 6, worker_bits => 5, sequence_bits => 11,"
	  . " sequence_first => true, backup_worker => true, lease_ms => 700, max_ahead_ms => 3000, when_full => 'borrow',"
	  . " when_back => 'backup', tolerance_ms => -1, spread => true, worker_policy => 'static', worker_number => 7,"
	  . " datacenter_id => 3);"
	  . ' GRANT USAGE ON SEQUENCE uid_generators.orders TO app; GRANT INSERT ON orders TO app;'
	  . " ALTER TABLE orders ALTER COLUMN id SET DEFAULT uid_next('uid_generators.orders')");
# Others that the second step is for: in cached mode, and with each preset that has a column left to NULL.
my %others = (
	cached => "'baidu_cached', time_bits => 27, schedule_ms => 5000, boost_power => 2, padding_factor => 40,"
	  . " when_ring_empty => 'wait', max_staleness_ms => 9000",
	leaf => "'leaf', time_bits => 40, tolerance_ms => -1",
	twitter => "'twitter', time_bits => 40",
	fixed => "'sonyflake', time_bits => 38, worker_policy => 'static', worker_number => 9, datacenter_id => 5",
	js53 => "'js53'");
my $step = block_of('docs/runbooks/end-of-time.md', qr/uid_generator_create/);
my $same = q{SELECT count(DISTINCT to_jsonb(g) - '{generator,time_bits,created}'::text[]), max(time_bits) - min(time_bits)
  FROM uid_generator g WHERE generator IN ('uid_generators.NAME'::regclass, 'uid_generators.NAME2'::regclass)};
foreach my $name (sort keys %others)
{
	shop($night, "SELECT uid_generator_create('$name', $others{$name})",
		"CREATE TABLE $name (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.$name'))",
		"INSERT INTO $name SELECT FROM generate_series(1, 10)",
		$step =~ s/\borders(2?)\b/$name$1/gr,
		"INSERT INTO $name SELECT FROM generate_series(1, 10)");
	is(shop($night, $same =~ s/NAME/$name/gr), '1|1', "end-of-time: another generator, like $name but for a time bit");
}
like(error_of($night, 'INSERT INTO orders DEFAULT VALUES'), qr/WARNING:  01000: @{[symptom('end-of-time')]}/, 'end-of-time: the symptom');
run_page('end-of-time', $night,
	after => sub { is(error_of($night, 'SET ROLE app; INSERT INTO orders DEFAULT VALUES') =~ s/^WARNING.*//sr, '', '... inserts go on') });
is(shop($night, 'SELECT count(*), min(id) FROM orders WHERE id <= 9007199254740991'), '2|1', '... below the old ids, of 53 bits and from a sequence');
is(shop($night, $same =~ s/NAME/orders/gr), '1|1', '... the new generator is like the old one');
is(shop($night, "SELECT datacenter_id, worker_id FROM uid_decode(uid_next('uid_generators.orders2'), 'uid_generators.orders2')"),
	'3|7', '... with its datacenter id and worker id');
like(error_of($night, "SELECT uid_generator_create('orders2')"), qr/ERROR:  42710: generator "orders2" already exists/,
	'... a second time is refused');
# The later runbooks are about the default generator.
shop($night, 'DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)');

# A wrong datacenter id.

$night->safe_psql('postgres', 'CREATE DATABASE shop2');
$night->safe_psql('shop2', 'CREATE TABLE orders (id bigint PRIMARY KEY, item text)');
$night->safe_psql('postgres', "ALTER DATABASE $_ SET uidgen.datacenter_id = 1") for 'shop', 'shop2';
$night->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
my $twice = $night->safe_psql('shop', 'SELECT min(id) FROM orders');
my $old = $night->safe_psql('shop', 'SELECT max(id) FROM orders');
$night->safe_psql('shop2', "INSERT INTO orders VALUES ($twice, 'another row'), ($old, NULL)");
like(error_of($night, "INSERT INTO orders VALUES ($twice)"), qr/ERROR:  23505: @{[symptom('datacenter')]}/, 'datacenter: the symptom');
run_page('datacenter', $night, directory => $directory);
my $copy = block_of('docs/runbooks/datacenter.md', qr/pstdin/);
is((run_shell($night, $copy, directory => $directory))[1], "CREATE TABLE\nCOPY 2\n$twice\n", '... it finds the id that both have for different rows');
like(error_of($night, 'ALTER DATABASE shop SET uidgen.datacenter_id = -2'), qr/ERROR:  22023:/, '... a number that is none is refused');
is(shop($night, 'SELECT datacenter_id FROM uid_decode(uid_next())'), '2', '... and changes nothing');

# Restoring one table.

# A column that PostgreSQL computes, as docs/ids-for-people.md recommends, and one whose values it insists on.
my $time = q{uid_timestamp(id, '2026-01-01 00:00+00', 1000, 22)};
shop($night, "ALTER TABLE orders ADD COLUMN made timestamptz NOT NULL GENERATED ALWAYS AS ($time) STORED",
	'ALTER TABLE orders ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY');
my $sums = "SELECT count(*), count(DISTINCT number), count(*) FILTER (WHERE made = $time) FROM orders";
my $numbers = 'SELECT md5(string_agg(o::text, $$,$$ ORDER BY id)) FROM orders o WHERE number <= 10';
my $before = shop($night, $numbers);
$night->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/shop.dump", '-d', $night->connstr('shop') ], 'restore-table: a dump');
$night->safe_psql('shop', 'DELETE FROM orders WHERE id % 2 = 0 OR id % 2 = 1; INSERT INTO orders SELECT FROM generate_series(1, 5)');
run_page('restore-table', $night, directory => $directory);
is(shop($night, $sums), '15|15|15', '... old rows and new ones');
is(shop($night, $numbers), $before, '... the old ones as they were');
# A partitioned table, whose rows a dump has under the names of its partitions. The default is what the clock's runbook made.
shop($night, block_of('docs/runbooks/clock.md', qr/uid_default_next/),
	'ALTER TABLE orders RENAME TO plain',
	'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text) PARTITION BY RANGE (id)',
	"CREATE TABLE orders_old PARTITION OF orders FOR VALUES FROM (0) TO (1000)",
	"CREATE TABLE orders_new PARTITION OF orders FOR VALUES FROM (1000) TO (MAXVALUE) PARTITION BY HASH (id)",
	(map { "CREATE TABLE orders_new_$_ PARTITION OF orders_new FOR VALUES WITH (MODULUS 2, REMAINDER $_)" } 0, 1),
	"INSERT INTO orders SELECT i, 'old' FROM generate_series(1, 9) i",
	"INSERT INTO orders (item) SELECT 'COPY public.orders_new_0 (id) FROM stdin;' FROM generate_series(1, 20)");
$before = shop($night, 'SELECT md5(string_agg(o::text, $$,$$ ORDER BY id)) FROM orders o');
$night->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/shop.dump", '-d', $night->connstr('shop') ], 'restore-table: a dump of a partitioned table');
shop($night, 'DELETE FROM orders WHERE id > 4');
run_page('restore-table', $night, directory => $directory);
is(shop($night, 'SELECT md5(string_agg(o::text, $$,$$ ORDER BY id)) FROM orders o'), $before, '... all rows are there again');
shop($night, 'DROP TABLE orders', 'ALTER TABLE plain RENAME TO orders');
my $raise = block_of('docs/runbooks/restore-table.md', qr/uid_generator_raise/);
$night->safe_psql('shop', 'GRANT SELECT ON orders TO app');
like(error_of($night, "SET ROLE app; $raise"), qr/ERROR:  42501:/, '... only the owner of the generator may raise it');
shop($night, q{INSERT INTO orders VALUES (uid_encode(now() + interval '1 year', 0, 1, 0))});
like(error_of($night, $raise), qr/ERROR:  55000: \N*cannot start above \d+ yet/, '... the step with an id ahead of the clock is refused');
shop($night, 'DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)', 'INSERT INTO orders DEFAULT VALUES');

# A standby is promoted.

my $standby = standby_of($night, 'standby');
start_node($standby);
$night->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
$night->wait_for_catchup($standby, 'replay', $night->lsn('flush'));
like(error_of($standby, 'SELECT uid_next()'), qr/ERROR:  25006: @{[symptom('promoted')]}/, 'promoted: the symptom');
isnt((run_shell($night, 'pg_ctl promote -D "$PGDATA"'))[0], 0, '... a primary cannot be promoted');
my %old = (OLD_HOST => $night->host, OLD_PORT => $night->port);
my ($status, $output) = run_shell($standby, block_of('docs/runbooks/promoted.md', qr/pg_isready/), %old);
isnt($status, 0, '... and the first step notices a primary that still runs');
like($output, qr/accepting connections/, '... and says so');
$night->stop('immediate');
run_page('promoted', $standby, %old);
$standby->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($standby->safe_psql('shop', 'SELECT count(*), count(DISTINCT id) FROM orders'), '36|36', '... inserts go on');
$standby->stop;

is_deeply([ used_pages() ], [ grep { !/registry|README|zh-CN/ } sort glob 'docs/runbooks/*.md' ], 'each page has been run, but those of 061_fleet_runbooks.t');
done_testing();
