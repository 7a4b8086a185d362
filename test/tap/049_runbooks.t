# The runbooks for the night (docs/runbooks): each is run verbatim, block by block, in the situation that it is for. Its
# symptom is what the server says, and afterwards it is over. A step at the wrong moment fails and changes nothing.
#
# A block of SQL is run by one session of the database shop, one of sh with libpq's variables and $PGDATA of the server.
# Each must succeed. A comment before a block, which a reader does not see, says more: <!-- test: prints t -->.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

skip_with_assertions();

my $year = 365 * 24 * 3600;
my $directory = PostgreSQL::Test::Utils::tempdir();
my %used;
my $shells = 0;

sub page
{
	my ($name) = @_;
	$used{"docs/runbooks/$name.md"} = 1;
	return slurp_file("docs/runbooks/$name.md");
}

sub shell
{
	my ($node, $command, %environment) = @_;
	local %ENV = (%ENV, %environment, PGHOST => $node->host, PGPORT => $node->port, PGDATA => $node->data_dir);
	my $log = "$directory/shell" . ++$shells; # a server that was started writes to its file on
	my $bin = $node->config_data('--bindir');
	# A server that pg_ctl starts must not hold the output of the test.
	my $script = "cd $directory; PATH=$bin:\$PATH; set -e -o pipefail\n$command";
	my $status = system('bash', '-c', 'exec bash -c "$0" >"$1" 2>&1 </dev/null', $script, $log);
	return ($status, slurp_file($log));
}

# Runs all blocks of a page.
sub run_page
{
	my ($name, $node, %environment) = @_;
	my $text = page($name);
	my $blocks = 0;
	while ($text =~ /^(?:<!-- test: ([^\n]*) -->\n)?( *)```(sql|sh)\n(.*?)^\g{2}```$/msg)
	{
		my ($mark, $indent, $language, $block) = ($1, $2, $3, $4);
		$block =~ s/^$indent//mg;
		my ($first) = $block =~ /^(\N*)/;
		my ($status, $output, $error);
		if ($language eq 'sql')
		{
			$status = $node->psql('shop', $block, on_error_stop => 1, stdout => \$output, stderr => \$error);
		}
		else
		{
			($status, $output) = shell($node, $block, %environment);
			$node->_update_pid(-1) if $block =~ /pg_ctl/;
		}
		is($status, 0, "$name: $first") or diag(join "\n", grep { defined } $output, $error);
		is($output, 't', '... prints t') if defined $mark && $mark eq 'prints t';
		$blocks++;
	}
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
	$node->psql('shop', "\\set VERBOSITY verbose\n$sql", on_error_stop => 1, stderr => \$error);
	return $error;
}

sub make_shop
{
	my ($node) = @_;
	$node->safe_psql('postgres', $_) for 'CREATE DATABASE shop', 'CREATE ROLE app';
	$node->safe_psql('shop', $_)
	  for 'CREATE EXTENSION uidgen',
	  'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)',
	  'INSERT INTO orders SELECT FROM generate_series(1, 10)';
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
wait_for_node_rows($clock, '%', 1, dbname => 'shop');
freeze_clock($clock, $year);
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
freeze_clock($clock, 3600);
like(error_of($clock, 'INSERT INTO orders DEFAULT VALUES'), qr/ERROR:  55000: @{[symptom('clock')]}/, 'clock: the symptom');
run_page('clock', $clock);
my $count = 'SELECT count(*), count(DISTINCT id) FROM orders';
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($clock->safe_psql('shop', $count), '30|30', '... inserts go on');
like(error_of($clock, "SELECT uid_generator_restart('uid_generators.uid_default')"),
	qr/ERROR:  55000: generator "uid_default" is not too far ahead of the clock/, '... a second call is refused');
$clock->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($clock->safe_psql('shop', $count), '40|40', '... and changes nothing');
$clock->stop;

# ---------------------------------------------------------------------------
# All slots are in use.
# ---------------------------------------------------------------------------

my $night = new_node('night', allows_streaming => 1, conf => "autovacuum = off\nuidgen.max_slots = 8\n");
start_node($night);
make_shop($night);
$night->safe_psql('shop', "SELECT segment_create('s' || n) FROM generate_series(1, 8) n");
my $session = hold_open($night, dbname => 'shop');
$session->query_safe("BEGIN; SELECT segment_next('s' || n) FROM generate_series(1, 7) n");
like(error_of($night, "SELECT segment_next('s8')"), qr/ERROR:  53400: @{[symptom('slots')]}/, 'slots: the symptom');
run_page('slots', $night);
is($night->safe_psql('shop', "SELECT count(segment_next('s' || n)) FROM generate_series(1, 8) n"), '8', '... draws go on');
eval { $session->quit };

# ---------------------------------------------------------------------------
# A generator is near its end of time.
# ---------------------------------------------------------------------------

# 40 bits of milliseconds are 34.8 years.
$night->safe_psql('shop',
	"SELECT uid_generator_create('orders', epoch => now() - interval '34 years', time_bits => 40);"
	  . " ALTER TABLE orders ALTER COLUMN id SET DEFAULT uid_next('uid_generators.orders')");
like(error_of($night, 'INSERT INTO orders DEFAULT VALUES'), qr/WARNING:  01000: @{[symptom('end-of-time')]}/, 'end-of-time: the symptom');
run_page('end-of-time', $night);
$night->safe_psql('shop', 'INSERT INTO orders DEFAULT VALUES');
like(error_of($night, "SELECT uid_generator_create('orders2')"), qr/ERROR:  42710: generator "orders2" already exists/,
	'... a second time is refused');
# The later runbooks are about the default generator.
$night->safe_psql('shop', 'DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), item text)');

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
my ($copy) = page('datacenter') =~ /^   ```sh\n(.*?)^   ```$/ms;
is((shell($night, $copy))[1], "CREATE TABLE\nCOPY 1\n$twice\n", '... it finds the id that both have');
like(error_of($night, 'ALTER DATABASE shop SET uidgen.datacenter_id = -2'), qr/ERROR:  22023:/, '... a number that is none is refused');
is($night->safe_psql('shop', 'SELECT datacenter_id FROM uid_decode(uid_next())'), '2', '... and changes nothing');

# ---------------------------------------------------------------------------
# Restoring one table.
# ---------------------------------------------------------------------------

$night->command_ok([ 'pg_dump', '-Fc', '-f', "$directory/shop.dump", '-d', $night->connstr('shop') ], 'restore-table: a dump');
$night->safe_psql('shop', 'DELETE FROM orders WHERE id % 2 = 0 OR id % 2 = 1; INSERT INTO orders SELECT FROM generate_series(1, 5)');
run_page('restore-table', $night);
is($night->safe_psql('shop', $count), '15|15', '... old rows and new ones');
like(error_of($night, "SELECT uid_generator_raise('uid_generators.uid_default', 9223372036854775807)"), qr/ERROR:  55000:/,
	'... a step with a wrong id is refused');
$night->safe_psql('shop', 'INSERT INTO orders DEFAULT VALUES');

# ---------------------------------------------------------------------------
# A standby is promoted.
# ---------------------------------------------------------------------------

$night->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($night, 'copy', has_streaming => 1);
start_node($standby);
$night->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
$night->wait_for_catchup($standby);
like(error_of($standby, 'SELECT uid_next()'), qr/ERROR:  25006: @{[symptom('promoted')]}/, 'promoted: the symptom');
isnt((shell($night, 'pg_ctl promote -D "$PGDATA"'))[0], 0, '... a primary cannot be promoted');
my %old = (OLD_HOST => $night->host, OLD_PORT => $night->port);
my ($check) = page('promoted') =~ /^   ```sh\n(.*?)^   ```$/ms;
isnt((shell($standby, $check, %old))[0], 0, '... and the first step notices a primary that still runs');
$night->stop('immediate');
run_page('promoted', $standby, %old);
$standby->safe_psql('shop', 'INSERT INTO orders SELECT FROM generate_series(1, 10)');
is($standby->safe_psql('shop', $count), '36|36', '... inserts go on');
$standby->stop;

is_deeply([ sort keys %used ], [ sort glob 'docs/runbooks/*.md' ], 'each page has been run');
done_testing();
