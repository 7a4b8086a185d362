# Ids of 53 bits in practice: the preset js53 as the default of a web team's database, read by Node.js as JSON.
# Ids of the default layout show that the test would notice a loss.
use File::Basename;
use UidgenTest;

my $script = dirname(__FILE__) . '/../js/ids.js';
plan skip_all => 'Node.js is not installed' if system('command -v node >/dev/null 2>&1') != 0;

my $node = new_node('javascript');
start_uidgen($node);
$node->safe_psql('postgres', 'CREATE DATABASE web');
is($node->safe_psql('web', "CREATE EXTENSION uidgen; SELECT uid_generator_create('web', 'js53'); SELECT uid_default_set('uid_generators.web'); SELECT uid_next() < 1::bigint << 53"),
	"uid_generators.web\n\nt", 'js53 is the default of a database');
is($node->safe_psql('postgres', 'SELECT uid_next() > 1::bigint << 53'), 't', 'beside another one with the usual default');

# JSON as a server writes it and a browser reads it.
my $directory = PostgreSQL::Test::Utils::tempdir();
foreach my $dbname ('web', 'postgres')
{
	my $json = $node->safe_psql($dbname, 'SELECT json_build_array(json_agg(id), json_agg(id::text)) FROM unnest(uid_next_array(1000)) AS id');
	append_to_file("$directory/$dbname.json", $json);
}
my ($stdout, $stderr) = run_command([ 'node', $script, "$directory/web.json", "$directory/postgres.json" ]);
foreach my $line (split /\n/, $stdout)
{
	ok($1 eq 'ok', $2) if $line =~ /^((?:not )?ok) - (.*)/;
}
like($stdout, qr/^end of ids\.js$/m, 'the script comes to its end') or diag($stderr);
is($node->safe_psql('web', "SELECT uid_encode('2162-02-07 06:28:15+00', 0, 31, 65535)"), '9007199254740991', 'which is the largest id of js53');

done_testing();
