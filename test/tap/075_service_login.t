# A member whose password is in a service file of mode 0640, as Kubernetes mounts a Secret: docs/kubernetes/member.yaml
# has the file, the line and the variable that names the file's directory. A passfile of this mode does not count.
use UidgenTest 'preloaded';
use Fleet;
use Pages;

my $manifest = slurp_file('docs/kubernetes/member.yaml');
my ($name, $file) = $manifest =~ /^  (\S+): \|\n((?:    .*\n)+)/m or die 'no service file';
my ($variable) = $manifest =~ m{^    - name: (.*)\n      value: /projected$}m or die 'no variable';
my ($line) = $manifest =~ /^ +uidgen\.registry: "(.*)"$/m or die 'no line';
my ($hba) = slurp_file('docs/kubernetes/registry.yaml') =~ /^ +- (hostssl ids .*)$/m or die 'no line of pg_hba.conf';
$hba =~ s/^hostssl (.*) all (.*)/local $1 $2/ or die "no address in $hba";

my $registry = new_node('registry');
my $hba_file = $registry->data_dir . '/pg_hba.conf';
my $lines = slurp_file($hba_file);
$registry->start;
$registry->safe_psql('postgres', 'CREATE DATABASE ids');
make_registry($registry, dbname => 'ids');
$registry->safe_psql('ids', q{CREATE ROLE fleet_shop LOGIN PASSWORD 'CHANGE-ME' IN ROLE uid_member});
write_file($hba_file, "$hba\nlocal ids all reject\n$lines");
$registry->reload;

my $directory = PostgreSQL::Test::Utils::tempdir();
my $service = "$directory/$name";
write_file($service, $file =~ s/^    //mgr);
write_file("$directory/passfile", "*:*:*:*:CHANGE-ME\n");
chmod 0640, $service, "$directory/passfile";

my ($host, $port) = ($registry->host, $registry->port);
my $here = $line =~ s/host=\S+/host=$host port=$port/r =~ s/sslmode=require //r;
my $member = new_node('member', conf => "uidgen.max_wait = '60s'\n");
$member->{uidgen_env} = { $variable => $directory };
$member->append_conf('postgresql.conf', "uidgen.registry = '$here'");
start_uidgen($member);
cmp_ok(sql($member, 'SELECT uid_next()'), '>', 0, 'the member draws');
is(sql($member, q{SELECT protection FROM uid_generator_status WHERE node IS NOT NULL}), 'registry', '... with a node of the registry');

my ($status, $said) = run_shell($registry, "psql -X -w -c SELECT -d 'dbname=ids user=fleet_shop passfile=$directory/passfile'");
isnt($status, 0, 'a passfile of this mode does not count');
like($said, qr/has group or world access/, '... as libpq says');

$_->stop foreach $member, $registry;
done_testing();
