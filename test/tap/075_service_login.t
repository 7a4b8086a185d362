# A member whose password is in a service file of mode 0640, the strictest of a Secret in a pod with an fsGroup:
# docs/kubernetes/member.yaml has the file, the line and the variable that names the file's directory, and
# registry.yaml the lines of pg_hba.conf and the roles. A passfile of this mode does not count. With the words of
# docs/fleet.md for a network that nobody trusts, the member checks who answers.
use UidgenTest 'preloaded';
use Fleet;
use Pages;

my $manifest = slurp_file('docs/kubernetes/member.yaml');
my ($name, $file) = $manifest =~ /^  (\S+): \|\n((?:    .*\n)+)/m or die 'no service file';
my ($variable) = $manifest =~ m{^    - name: (.*)\n      value: /projected$}m or die 'no variable';
my ($line) = $manifest =~ /^ +uidgen\.registry: "(.*)"$/m or die 'no line';
my $registry_manifest = slurp_file('docs/kubernetes/registry.yaml');
my ($hba) = $registry_manifest =~ /^    pg_hba:\n((?:      .*\n)+)/m or die 'no lines of pg_hba.conf';
my ($roles) = $registry_manifest =~ /^    roles:\n((?:      .*\n)+)/m or die 'no roles';
my ($verified) = slurp_file('docs/fleet.md') =~ /`(sslmode=verify-full sslrootcert=)\S+`/ or die 'no words for TLS';

my $directory = PostgreSQL::Test::Utils::tempdir();
sub certificate ($file)
{
	system_log(qw(openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost),
		'-keyout', "$directory/$file.key", '-out', "$directory/$file.crt") == 0 or die "no certificate $file";
}
certificate($_) foreach 'registry', 'another';

my $registry = new_node('registry', conf => "listen_addresses = 'localhost'\nssl = on\n"
	  . "ssl_cert_file = '$directory/registry.crt'\nssl_key_file = '$directory/registry.key'\n");
my $hba_file = $registry->data_dir . '/pg_hba.conf';
my $lines = slurp_file($hba_file);
# After the lines of the manifest comes the operator's own, which lets every role in.
write_file($hba_file, $hba =~ s/^ +(?:- )?//mgr . "host all all all scram-sha-256\n$lines");
$registry->start;
$registry->safe_psql('postgres', 'CREATE DATABASE ids');
# The operator creates the roles in the order of the manifest, before the script runs.
foreach my $role (split /^(?=      - name: )/m, $roles =~ s/^ +#.*\n//mgr)
{
	my ($login) = $role =~ /name: (\S+)/;
	my $options = ($role =~ /login: true/ ? "LOGIN PASSWORD 'CHANGE-ME'" : '') . ($role =~ /inRoles: \[(.*)\]/ ? " IN ROLE $1" : '')
	  . ($role =~ /connectionLimit: (.*)/ ? " CONNECTION LIMIT $1" : '');
	$registry->safe_psql('ids', "CREATE ROLE $login $options");
}
make_registry($registry, dbname => 'ids');

my $service = "$directory/$name";
write_file($service, $file =~ s/^    //mgr);
write_file("$directory/passfile", "*:*:*:*:CHANGE-ME\n");
chmod 0640, $service, "$directory/passfile";

my $here = $line =~ s/host=\S+/host=localhost port=@{[$registry->port]}/r;
my $member = new_node('member', conf => "uidgen.max_wait = '60s'\nuidgen.registry = '$here'\n");
$member->{uidgen_env} = { $variable => $directory };
start_uidgen($member);
cmp_ok(sql($member, 'SELECT uid_next()'), '>', 0, 'the member draws');
is(sql($member, q{SELECT protection FROM uid_generator_status WHERE node IS NOT NULL}), 'registry', '... with a node of the registry');

my ($status, $said) = run_shell($registry, 'psql -X -w -c SELECT -d '
	  . "'host=localhost dbname=ids user=fleet_shop sslmode=require passfile=$directory/passfile'");
isnt($status, 0, 'a passfile of this mode does not count');
like($said, qr/has group or world access/, '... as libpq says');
foreach my $way ('dbname=ids sslmode=disable', 'dbname=postgres sslmode=require')
{
	(undef, $said) = run_shell($registry, "psql -X -c SELECT -d 'host=localhost user=fleet_shop password=CHANGE-ME $way'");
	like($said, qr/pg_hba\.conf rejects connection/, "the login does not connect with $way");
}

# A generator that is new asks for a node, so it shows whether the member believes the server that answers.
sub trust ($certificate)
{
	set_conf($member, "uidgen.registry = '" . $here =~ s{sslmode=require}{$verified$directory/$certificate.crt}r . "'");
}
sql($member, "SELECT uid_generator_create('new')");
trust('another');
failure($member, "SET uidgen.max_wait = '0'; SELECT uid_next('uid_generators.new')");
ok($member->poll_query_until('postgres', "SELECT bool_or(error ~ 'certificate verify failed') FROM uid_registry_status"),
	'a server whose certificate another authority has signed is no registry');
trust('registry');
cmp_ok(sql($member, "SELECT uid_next('uid_generators.new')"), '>', 0, '... and the registry is one');

$_->stop foreach $member, $registry;
done_testing();
