# The runbooks for the night (docs/runbooks): each is run verbatim, block by block, in the situation that it is for. Its
# symptom is what the server says, and afterwards it is over. A step at the wrong moment fails and changes nothing.
#
# The blocks of SQL of a page are run by one psql in the database shop, those of sh with libpq's variables and $PGDATA of
# the server. Each must succeed. uidgen has a schema of its own, as README.md installs it, and no search_path leads there.
# So a page must set one, and a page with a new session must begin it with \c.
#
# A comment before a block, which a reader does not see, says more:
#
#   <!-- test: prints t -->           that is all that it prints
#   <!-- test: lists NAME NAME -->    each begins a row
#   <!-- test: says WORDS -->         which are in what it prints
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

skip_with_assertions();

my $year = 365 * 24 * 3600;
my $directory = PostgreSQL::Test::Utils::tempdir();
my $path = 'SET search_path = public, uidgen;';
my %used;

sub page
{
	my ($name) = @_;
	$used{"docs/runbooks/$name.md"} = 1;
	return slurp_file("docs/runbooks/$name.md");
}

sub check_output
{
	my ($mark, $output) = @_;
	my ($what, $rest) = $mark =~ /^(\w+) (.+)$/;
	if ($mark eq 'prints t') { is($output, 't', '... prints t') }
	elsif ($what eq 'lists') { like($output, qr/^\Q$_\E\|/m, "... lists $_") foreach split / /, $rest }
	elsif ($what eq 'says') { like($output, qr/\Q$rest\E/, "... says $rest") }
	else { fail("a mark that the test understands: $mark") }
	return;
}

# Runs all blocks of a page. `after` gets each block when it has run.
sub run_page
{
	my ($name, $node, %environment) = @_;
	my $after = delete $environment{after};
	my $text = page($name);
	my $blocks = 0;
	my $psql;
	while ($text =~ /^(?: *<!-- test: ([^\n]*) -->\n)?( *)```(sql|sh)\n(.*?)^\g{2}```$/msg)
	{
		my ($mark, $indent, $language, $block) = ($1, $2, $3, $4);
		$block =~ s/^$indent//mg;
		my ($first) = $block =~ /^(\N*)/;
		my ($status, $output, $error);
		if ($language eq 'sql')
		{
			$psql //= hold_open($node, dbname => 'shop');
			$output = eval { $psql->query($block) };
			$error = $@ . ($psql->{stderr} // '');
			$psql->{stderr} = '';
			$status = $error =~ m{ERROR:|FATAL:|error:|invalid command} || !defined $output ? 1 : 0;
		}
		else
		{
			($status, $output) = run_shell($node, $block, directory => $directory, %environment);
			$node->_update_pid(-1) if $block =~ /pg_ctl/;
		}
		is($status, 0, "$name: $first") or diag(join "\n", grep { defined } $output, $error);
		check_output($mark, $output) if defined $mark;
		$after->($block) if defined $after;
		$blocks++;
	}
	$psql->quit if defined $psql;
	my $marks = () = $text =~ /<!-- test:/g;
	my $used = () = $text =~ /^ *<!-- test: \N* -->\n *```(?:sql|sh)$/mg;
	is($used, $marks, "$name: every mark stands before a block");
	cmp_ok($blocks, '>=', 3, "$name: the page has blocks");
	return;
}

# The message that a page shows, with any names and numbers.
sub symptom
{
	my ($name) = @_;
	my ($line) = page($name) =~ /^```\n(?:ERROR|WARNING):  (\N+)$/m or die "$name has no symptom";
	return join '', map { /^[\d.: +-]+$/ ? '[\d.: +-]+' : quotemeta } split /(\b\d[\d.: +-]*\b)/, $line;
}

sub error_of
{
	my ($node, $sql) = @_;
	my $error;
	$node->psql('shop', "\\set VERBOSITY verbose\n$path\n$sql", on_error_stop => 1, stderr => \$error);
	return $error;
}

# Statements of the test's own, each in a transaction of its own.
sub shop
{
	my ($node, @sql) = @_;
	return sql_with_path($node, 'shop', @sql);
}

sub make_shop
{
	my ($node) = @_;
	$node->safe_psql('postgres', $_) for 'CREATE DATABASE shop', 'CREATE ROLE app';
	$node->safe_psql('shop', $_)
	  for 'CREATE SCHEMA uidgen',
	  'CREATE EXTENSION uidgen SCHEMA uidgen',
	  'GRANT USAGE ON SCHEMA uidgen TO PUBLIC';
	shop($node, 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)',
		'INSERT INTO orders SELECT FROM generate_series(1, 10)');
	return;
}

# ---------------------------------------------------------------------------
# The clock was far ahead.
# ---------------------------------------------------------------------------

my $clock = new_node('clock', conf => "autovacuum = off\nuidgen.max_wait = 0\n");
use_fake_clock($clock);
freeze_clock($clock, 0);
start_node($clock);
make_shop($clock);
wait_for_node_rows($clock, '%', 1, dbname => 'shop', table => 'uidgen.worker_node');
# Back by five minutes, which is less than any lease, but more than a generator may be ahead.
freeze_clock($clock, 600);
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
unlike(shop($clock, block_of('docs/runbooks/clock.md', qr/leased_until/)), qr/uid_default/, 'clock: no generator is ahead of a clock that runs');
freeze_clock($clock, 300);
like(error_of($clock, 'INSERT INTO orders DEFAULT VALUES'), qr/ERROR:  55000: @{[symptom('clock')]}/, 'clock: five minutes back');
run_page('clock', $clock);
freeze_clock($clock, $year);
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
freeze_clock($clock, 3600);
like(error_of($clock, 'INSERT INTO orders DEFAULT VALUES'), qr/ERROR:  55000: @{[symptom('clock')]}/, 'clock: the symptom');
run_page('clock', $clock);
my $count = 'SELECT count(*), count(DISTINCT id) FROM orders';
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($clock->safe_psql('shop', $count), '40|40', '... inserts go on');
like(error_of($clock, "SELECT uid_generator_restart('uid_generators.uid_default')"),
	qr/ERROR:  55000: generator "uid_default" is not too far ahead of the clock/, '... a second call is refused');
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($clock->safe_psql('shop', $count), '50|50', '... and changes nothing');
$clock->stop;

# ---------------------------------------------------------------------------
# All slots are in use.
# ---------------------------------------------------------------------------

my $night = new_node('night', allows_streaming => 1, conf => "autovacuum = off\nuidgen.max_slots = 8\n");
start_node($night);
make_shop($night);
shop($night, "SELECT segment_create('s' || n) FROM generate_series(1, 8) n");
# A session with sequences that are none of uidgen's holds no slot, and one that holds slots without need.
$night->safe_psql('shop', 'CREATE SEQUENCE plain' . $_) foreach 1 .. 9;
my $plain = hold_open($night, dbname => 'shop');
my $plain_pid = $plain->query_safe('BEGIN; SELECT pg_backend_pid()');
$plain->query_safe("SELECT nextval('plain' || n) FROM generate_series(1, 9) n");
my $session = hold_open($night, dbname => 'shop');
$session->query_safe($path);
my $session_pid = $session->query_safe('SELECT pg_backend_pid()');
# The wrong moment for the third step: no slot is short.
my $ends = block_of('docs/runbooks/slots.md', qr/pg_terminate_backend/);
$session->query_safe("BEGIN; SELECT segment_next('s' || n) FROM generate_series(1, 3) n");
is(shop($night, $ends), '', 'slots: while slots are free, the step ends no transaction');
is($session->query_safe("SELECT segment_next('s3')"), '2', '... and the session goes on');
$session->query_safe('ROLLBACK');
$session->query_safe("BEGIN; SELECT segment_next('s' || n) FROM generate_series(1, 7) n");
like(error_of($night, "SELECT segment_next('s8')"), qr/ERROR:  53400: @{[symptom('slots')]}/, 'slots: the symptom');
my $draw = "SELECT count(segment_next('s' || n)) FROM generate_series(1, 8) n";
run_page(
	'slots', $night,
	after => sub {
		my ($block) = @_;
		if ($block =~ /pg_terminate_backend/)
		{
			my $is_there = 'SELECT count(*) FROM pg_stat_activity WHERE pid = ';
			ok($night->poll_query_until('postgres', "SELECT 0 = ($is_there $session_pid)"), '... ends the holder');
			is($night->safe_psql('postgres', "$is_there $plain_pid"), '1', '... and no session with other sequences');
		}
		is(shop($night, $draw), '8', '... draws go on') if $block =~ /pg_ctl restart/;
	});
is($night->safe_psql('postgres', 'SHOW uidgen.max_slots'), '16', '... there are twice as many slots');
eval { $_->quit } foreach $session, $plain;

# ---------------------------------------------------------------------------
# A generator is near its end of time.
# ---------------------------------------------------------------------------

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
	  . " when_ring_full => 'discard', when_ring_empty => 'wait', chunk => 4, max_staleness_ms => 9000",
	leaf => "'leaf', time_bits => 40, tolerance_ms => -1",
	twitter => "'twitter', time_bits => 40",
	fixed => "'sonyflake', time_bits => 38, worker_policy => 'static', worker_number => 9, datacenter_id => 5",
	js53 => "'js53'");
my $step = block_of('docs/runbooks/end-of-time.md', qr/uid_generator_create/);
my $same = q{SELECT count(DISTINCT to_jsonb(g) - '{generator,time_bits,created}'::text[]), max(time_bits) - min(time_bits)
  FROM uid_generator_config g WHERE generator IN ('uid_generators.NAME'::regclass, 'uid_generators.NAME2'::regclass)};
foreach my $name (sort keys %others)
{
	shop($night, "SELECT uid_generator_create('$name', $others{$name})",
		"CREATE TABLE $name (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.$name'))",
		"INSERT INTO $name SELECT FROM generate_series(1, 10)",
		$step =~ s/\borders(2?)\b/$name$1/gr,
		"INSERT INTO $name SELECT FROM generate_series(1, 10)");
	is(shop($night, $same =~ s/NAME/$name/gr), '1|1', "end-of-time: another generator, like $name but for a time bit");
}
shop($night, "SELECT uid_generator_create('terms', time_bits => 40, when_back => 'new_worker', worker_policy => 'static', worker_number => 9)",
	'CREATE TABLE terms (id bigint PRIMARY KEY DEFAULT uid_next($$uid_generators.terms$$))', 'INSERT INTO terms DEFAULT VALUES');
my ($refused) = page('end-of-time') =~ /`new_worker` the call fails, \*([^*]+)\*/;
my $terms = $step =~ s/\borders(2?)\b/terms$1/gr;
like(error_of($night, $terms), qr/ERROR:  0A000: \N*$refused/, '... but with new_worker it is refused');
shop($night, $terms =~ s/when_back => when_back/when_back => 'hold'/r, 'INSERT INTO terms DEFAULT VALUES');
is(shop($night, 'SELECT count(*) FROM terms'), '2', '... and works with another policy');
like(error_of($night, 'INSERT INTO orders DEFAULT VALUES'), qr/WARNING:  01000: @{[symptom('end-of-time')]}/, 'end-of-time: the symptom');
run_page('end-of-time', $night,
	after => sub { is(error_of($night, 'SET ROLE app; INSERT INTO orders DEFAULT VALUES') =~ s/^WARNING.*//sr, '', '... inserts go on') });
is(shop($night, $same =~ s/NAME/orders/gr), '1|1', '... the new generator is like the old one');
is(shop($night, "SELECT datacenter_id, worker_id FROM uid_decode(uid_next('uid_generators.orders2'), 'uid_generators.orders2')"),
	'3|7', '... with its datacenter id and worker id');
like(error_of($night, "SELECT uid_generator_create('orders2')"), qr/ERROR:  42710: generator "orders2" already exists/,
	'... a second time is refused');
# The later runbooks are about the default generator.
shop($night, 'DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)');

# ---------------------------------------------------------------------------
# A wrong datacenter id.
# ---------------------------------------------------------------------------

$night->safe_psql('postgres', 'CREATE DATABASE shop2');
$night->safe_psql('shop2', 'CREATE TABLE orders (id bigint PRIMARY KEY)');
$night->safe_psql('postgres', "ALTER DATABASE $_ SET uidgen.datacenter_id = 1") for 'shop', 'shop2';
$night->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
my $twice = $night->safe_psql('shop', 'SELECT min(id) FROM orders');
$night->safe_psql('shop2', "INSERT INTO orders VALUES ($twice)");
like(error_of($night, "INSERT INTO orders VALUES ($twice)"), qr/ERROR:  23505: @{[symptom('datacenter')]}/, 'datacenter: the symptom');
run_page('datacenter', $night);
my $copy = block_of('docs/runbooks/datacenter.md', qr/pstdin/);
is((run_shell($night, $copy, directory => $directory))[1], "CREATE TABLE\nCOPY 1\n$twice\n", '... it finds the id that both have');
like(error_of($night, 'ALTER DATABASE shop SET uidgen.datacenter_id = -2'), qr/ERROR:  22023:/, '... a number that is none is refused');
is(shop($night, 'SELECT datacenter_id FROM uid_decode(uid_next())'), '2', '... and changes nothing');
is(shop($night, 'SELECT count(*) FROM uid_check_nodes()'), '0', '... of its own, one database lists no pair');
unlike(page('datacenter'), qr/uid_check_nodes\(\)/, '... and the page does not say that it does');

# ---------------------------------------------------------------------------
# Restoring one table.
# ---------------------------------------------------------------------------

# A column that PostgreSQL computes, as docs/conceal.md recommends, and one whose values it insists on.
shop($night, "SELECT uid_key_create('orders')",
	"ALTER TABLE orders ADD COLUMN code bigint NOT NULL GENERATED ALWAYS AS (uid_conceal(id, 'orders', 1)) STORED",
	'ALTER TABLE orders ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY');
my $sums = 'SELECT count(*), count(DISTINCT number), count(*) FILTER (WHERE code = uid_conceal(id, $$orders$$, 1)) FROM orders';
my $numbers = 'SELECT md5(string_agg(o::text, $$,$$ ORDER BY id)) FROM orders o WHERE number <= 10';
my $before = shop($night, $numbers);
$night->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/shop.dump", '-d', $night->connstr('shop') ], 'restore-table: a dump');
$night->safe_psql('shop', 'DELETE FROM orders WHERE id % 2 = 0 OR id % 2 = 1; INSERT INTO orders SELECT FROM generate_series(1, 5)');
run_page('restore-table', $night);
is(shop($night, $sums), '15|15|15', '... old rows and new ones');
is(shop($night, $numbers), $before, '... the old ones as they were');
my $raise = block_of('docs/runbooks/restore-table.md', qr/uid_generator_raise/);
$night->safe_psql('shop', 'GRANT SELECT ON orders TO app');
like(error_of($night, "SET ROLE app; $raise"), qr/ERROR:  42501:/, '... only the owner of the generator may raise it');
shop($night, q{INSERT INTO orders VALUES (uid_encode(now() + interval '1 year', 0, 1, 0))});
like(error_of($night, $raise), qr/ERROR:  55000: \N*cannot start above \d+ yet/, '... the step with an id ahead of the clock is refused');
shop($night, 'DELETE FROM orders WHERE id = (SELECT max(id) FROM orders)', 'INSERT INTO orders DEFAULT VALUES');

# ---------------------------------------------------------------------------
# A standby is promoted.
# ---------------------------------------------------------------------------

$night->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($night, 'copy', has_streaming => 1);
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
is($standby->safe_psql('shop', $count), '36|36', '... inserts go on');
$standby->stop;

is_deeply([ sort keys %used ], [ sort glob 'docs/runbooks/*.md' ], 'each page has been run');
done_testing();
