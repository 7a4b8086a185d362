# Copies of a member: the file of grants counts only where it was written. A directory is copied, and its server starts
# where one thing is other than before: the directory's inode, its path, the name of the host, the network namespace, the
# boot of the machine. All else is the same, as on a clone of the volume, because test/lib/same_inodes.cpp hides the
# inodes from the servers, and each copy has a mount namespace in which it is at the path of the original.
#
# Expected: no copy draws in the original's grant. It asks the registry once, and gets another node; without the registry
# it draws nothing. The original goes on with its node.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Trouble;

my $tools = PostgreSQL::Test::Utils::tempdir();
my $library = "$tools/same_inodes.so";
plan skip_all => 'there is no compiler' if system("g++ -shared -fPIC -O1 -o $library test/lib/same_inodes.cpp -ldl 2>$tools/errors") != 0;
my @unshare = qw(unshare --user --map-current-user --keep-caps --mount);
plan skip_all => 'no namespaces for ordinary users' if system("@unshare --net --uts true 2>$tools/errors") != 0;

my $registry = new_node('registry', conf => "track_functions = all\nautovacuum = off\n");
start_node($registry);
make_registry($registry);
my $member = new_node('member', conf => "uidgen.max_wait = 1min\n");
join_fleet($member, $registry);
$member->{uidgen_env} = { LD_PRELOAD => $library };
start_uidgen($member);
my $draw = 'SELECT uid_next()';
my @drawn = map { $member->safe_psql('postgres', $draw) } 1 .. 3;
my $node = node_of($member);
my $directory = $member->data_dir;

# A copy of the directory, as it is now, with a port of its own. Unless it is said otherwise, it sees itself at the
# original's path.
sub copy_of_member ($name)
{
	my $copy = UidgenNode->new($name);
	system_or_bail('cp', '-a', $directory, $copy->data_dir);
	unlink $copy->data_dir . '/postmaster.pid';
	my $host = $copy->host;
	append_to_file($copy->data_dir . '/postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '$host'\nuidgen.max_wait = 100ms\nuidgen.registry = 'host=/nowhere'\n");
	return $copy;
}

# Starts it in namespaces. What it should see is made by commands of a shell, before.
sub start_copy ($copy, %opts)
{
	my ($own, $log) = ($copy->data_dir, $copy->logfile);
	my $path = $opts{path} // $directory;
	my $preload = $opts{plain} ? '' : "LD_PRELOAD=$library ";
	my $script = ($path eq $own ? '' : "mount --bind '$own' '$path'; ") . ($opts{commands} // '') . "${preload}exec pg_ctl -w -D '$path' -l '$log' start";
	system_or_bail(@unshare, @{ $opts{namespaces} // [] }, 'sh', '-ec', $script);
	$copy->_update_pid(1);
}

sub calls
{
	return $registry->safe_psql('postgres', q{SELECT pg_stat_force_next_flush() IS NULL; SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'grant'}) =~ s/^\w\n//r;
}

sub draws_elsewhere ($copy, $what)
{
	is(sqlstate($copy, $draw), '55000', "$what: without the registry a copy draws nothing");
	my $before = calls();
	set_conf($copy, "uidgen.registry = '" . registry_line($registry) . "'\nuidgen.max_wait = 1min");
	$copy->poll_query_until('postgres', q{SELECT current_setting('uidgen.registry') LIKE '%uid_fleet%'}) or die 'no reload';
	push @drawn, map { $copy->safe_psql('postgres', $draw) } 1 .. 100;
	isnt(node_of($copy), $node, '... and with it not in the grant of the original');
	is(calls() - $before, 1, '... for which it has called once');
	$copy->stop('immediate');
}

# The same server draws in its grant, even without the registry, although it has crashed.
$member->stop('immediate');
$registry->stop;
start_node($member);
push @drawn, map { $member->safe_psql('postgres', $draw) } 1 .. 3;
is(node_of($member), $node, 'a server that starts again has its node, without its registry');
start_node($registry);

# Nothing differs: this would draw in the grant, which shows that a difference below is what keeps the others from it.
$member->stop('immediate');
my $same = copy_of_member('same');
start_copy($same);
like($same->safe_psql('postgres', $draw), qr/^\d+$/, 'a copy that differs in nothing would draw in the grant');
is(node_of($same), $node, '... which is why each of these is looked at:');
$same->stop('immediate');

my %stories = (
	'another inode' => { plain => 1 },
	'another path' => { path => 'own' },
	'another host name' => { namespaces => ['--uts'], commands => 'hostname elsewhere; ' },
	'another pod, with the same host name' => { namespaces => [ '--uts', '--net' ] },
	'another boot of the machine' => { commands => "mount --bind $tools/boot_id /proc/sys/kernel/random/boot_id; " });
append_to_file("$tools/boot_id", "11111111-2222-3333-4444-555555555555\n");
my %copies = map { $_ => copy_of_member(s/\W+/_/gr) } sort keys %stories;
my $late = copy_of_member('late');
start_node($member);
my $loop = background_loop($member, clients => 2);
goes_on('the original draws', $loop);
foreach my $what (sort keys %copies)
{
	my %story = %{ $stories{$what} };
	$story{path} = $copies{$what}->data_dir if exists $story{path};
	start_copy($copies{$what}, %story);
	draws_elsewhere($copies{$what}, $what);
}

# The file comes after the start, so that the first draw finds it out.
my $grants = $late->data_dir . '/global/pgsql_tmp_uidgen.grants';
rename $grants, "$tools/grants" or die "no file of grants: $!";
start_copy($late, path => $late->data_dir);
system_or_bail('cp', '-a', "$tools/grants", $grants);
draws_elsewhere($late, 'a file that comes after the start');

# A clone of the volume while the member runs, in another pod: of its files as they are at an instant.
my @processes = map { freeze_process($_) } postmaster_pid($member), background_pids($member);
my $clone = copy_of_member('clone');
thaw($_) foreach @processes;
goes_on('the original goes on', $loop);
start_copy($clone, namespaces => [ '--uts', '--net' ]);
draws_elsewhere($clone, 'a clone of a volume in use');

# A standby of the member is promoted, where the original is.
my $standby = standby_of($member, 'standby');
append_to_file($standby->data_dir . '/postgresql.conf', "uidgen.registry = 'host=/nowhere'\nuidgen.max_wait = 100ms\n");
$standby->{uidgen_env} = { LD_PRELOAD => $library };
start_node($standby);
$standby->promote;
draws_elsewhere($standby, 'a promoted standby');

is(node_of($member), $node, 'the original has its node');
my @logs = stop_loop($loop);
append_to_file("$tools/drawn", join "\n", @drawn, '');
assert_unique(@logs, "$tools/drawn");
$_->stop foreach $member, $registry;
done_testing();
