# The registry of a fleet is restarted, killed, replaced by standbys, restored and made again, while three members draw by
# all paths. Each story is a line of a table: what happens to the registry, and whether newcomers must wait for a fence. A
# newcomer is a generator that is new on a member, in a layout of four nodes, three of which the members have. So where
# the last grant was lost, it is at once given what another one holds, if a rule fails.
#
# Expected, judged after each story: all members go on. Those whose grants reach beyond the fence keep their nodes. There
# is one more fence where commits may be lost, and none elsewhere. A newcomer's first id is from after the fence. At the
# end no id has come twice, on whatever server.
use UidgenTest 'preloaded';
use Clients;
use Fleet;
use Pages;
use Trouble;

my $longest = 6;    # seconds
my $bound = 0.5;
my $us = 1_000_000;

# The servers that are the registry one after the other. The line names all of them.
my @servers = map { UidgenNode->new("registry$_") } 0 .. 4;
my $registry = $servers[0];
sub init_server ($server)
{
	$server->init(allows_streaming => 1);
	$server->append_conf('postgresql.conf', "autovacuum = off\nwal_sender_timeout = 0\nwal_receiver_timeout = 0\nrestart_after_crash = on\n");
	start_node($server);
}
init_server($registry);
make_registry($registry, longest => $longest, bound => $bound);

my (%members, @loops);
foreach my $name ('a', 'b', 'c')
{
	my $member = $members{$name} = new_server($name, conf => registry_setting(@servers) . "uidgen.max_wait = '1s'\nautovacuum = off\n");
	create_load($member);
	push @loops, load($member), load_small($member, 'small');
}

# The registry's row; undef while it is down.
sub row ($columns, $server = $registry)
{
	my $row = try_sql($server, "SELECT $columns FROM uid_registry.registry");
	return $row eq '' ? undef : $row;
}

my $statements = 0;    # of newcomers

# A new generator of member c, which lives until the next story.
my ($newcomer, $newcomer_loop);
sub begin_newcomer
{
	end_newcomer();
	$newcomer = 'newcomer' . ++$statements;
	create_small($members{c}, $newcomer);
}

sub end_newcomer
{
	return unless defined $newcomer;
	stop_loop($newcomer_loop);
	$members{c}->safe_psql('postgres', "DROP SEQUENCE uid_generators.$newcomer");
	undef $newcomer;
}

sub state_of ($generator)
{
	return $members{c}->safe_psql('postgres', "SELECT state FROM uid_registry_status WHERE generator = 'uid_generators.$generator'");
}

# Its first id is drawn alone, and the others by a loop.
sub first_id
{
	my $id;
	poll_until("an id of $newcomer", sub { $id = try_sql($members{c}, "SELECT uid_next('uid_generators.$newcomer')"); $id =~ /^\d+$/ }) or die "no id of $newcomer";
	$newcomer_loop = load_small($members{c}, $newcomer);
	push @loops, $newcomer_loop;
	return $id;
}

my $lost_loop;
sub end_lost
{
	return unless defined $lost_loop;
	stop_loop($lost_loop);
	$lost_loop->{ended} = 1;
	undef $lost_loop;
	$members{a}->safe_psql('postgres', 'DROP SEQUENCE uid_generators.lost');
}

# What members hold: member and generator, with node and end of the grant, and how many calls have waited for one.
sub grants
{
	my %grants;
	foreach my $name (sort keys %members)
	{
		my $sql = "SELECT generator, node, extract(epoch FROM granted_until), (SELECT registry_waits FROM uid_stat WHERE sequence::text = generator::text) FROM uid_registry_status WHERE node IS NOT NULL AND generator !~ 'newcomer|lost'";
		foreach my $row (map { [ split /\|/ ] } split /\n/, $members{$name}->safe_psql('postgres', $sql))
		{
			$grants{"$name $row->[0]"} = { node => $row->[1], until => $row->[2], waits => $row->[3] };
		}
	}
	return %grants;
}

# A generator whose calls have waited has not renewed in time, as on a machine that stood still for seconds.
sub keep_nodes ($what, %before)
{
	my $lost_from = row('lost_from') / $us;
	my %now = grants();
	my @moved = map { "$_ had $before{$_}{node}, and has $now{$_}{node}" }
	  grep { $before{$_}{until} > $lost_from && $now{$_}{waits} <= $before{$_}{waits} && $now{$_}{node} != $before{$_}{node} } sort keys %before;
	is(join("\n", @moved), '', "$what: members that renew in time keep their nodes");
}

my $fences;    # before a story
my $still;     # a registrar that stands still until the newcomer is judged
sub story ($what, $must_wait, $happens)
{
	begin_newcomer();
	$fences = row('fence');
	my %before = grants();
	$happens->();
	my @living = grep { !$_->{ended} } @loops;
	my $state;
	poll_until("$what: the newcomer is judged", sub { try_sql($members{c}, "SELECT uid_next('uid_generators.$newcomer')"); ($state = state_of($newcomer)) =~ /fenced|granted/ });
	is($state, $must_wait ? 'fenced' : 'granted', "$what: a newcomer " . ($must_wait ? 'waits' : 'waits for nothing'));
	thaw($still) if defined $still;
	undef $still;
	my $expected = $must_wait ? $fences + 1 : $fences;
	is(row('fence'), $expected, '... and the registry has ' . ($must_wait ? 'raised one fence' : 'raised none'));
	goes_on("$what: all members go on", grep { !$_->{ended} } @loops);
	keep_nodes($what, %before);
	end_lost();
	my $made = $members{c}->safe_psql('postgres', q{SELECT extract(epoch FROM uid_timestamp(} . first_id() . ", 'uid_generators.$newcomer'))");
	cmp_ok($made * $us, '>=', row('lost_from + longest') - 1000, '... and the newcomer draws after the fence') if $must_wait;
	goes_on("$what: the newcomer goes on", $newcomer_loop);
	$newcomer_loop->{ended} = 1;
}

# Servers.

sub stand_by ($server)
{
	$registry->backup($server->name);
	$server->init_from_backup($registry, $server->name, has_streaming => 1);
	start_node($server);
	$registry->wait_for_catchup($server);
}

sub put_back ($backup)
{
	$registry->stop('immediate');
	system_or_bail('rm', '-rf', $registry->data_dir);
	system_or_bail('cp', '-a', $backup, $registry->data_dir);
}

# A grant that nobody but its holder knows after the failover, and that it does not show at first. The fourth node is its
# own, until it is dropped.
sub lose_a_grant ($standby)
{
	my $walsender = freeze_walsender($registry, $standby->name);
	create_small($members{a}, 'lost');
	poll_until('a grant that is lost', sub { try_sql($members{a}, "SELECT uid_next('uid_generators.lost')") =~ /^\d+$/ }) or die 'no grant';
	push @loops, $lost_loop = load_small($members{a}, 'lost');
	($still) = background_pids($members{a}, 'registrar');
	freeze_process($still);
	kill_hard($registry);
	kill 'KILL', $walsender;
	poll_until('the end of the walsender', sub { !kill 0, $walsender }) or die 'the walsender lives';
}

goes_on('three members draw by all paths', @loops);

story('a restart', 0, sub { $registry->restart });

story('kill -9', 0, sub { kill_hard($registry); start_node($registry) });

# A failover that loses the last grants, without a word of an operator.
stand_by($servers[1]);
story('a failover that loses a grant', 1, sub {
	lose_a_grant($servers[1]);
	$registry = $servers[1];
	$registry->promote;
});

# The former primary comes back. It knows nothing of what was granted since.
my $former = $servers[0];
my $nodes = q{SELECT md5(string_agg(n::text, ',' ORDER BY layout, node)) FROM uid_registry.node n};
my $knew;
story('a former primary comes back', 0, sub { start_node($former); $knew = $former->safe_psql('postgres', $nodes) });
is($former->safe_psql('postgres', $nodes), $knew, '... and has granted nothing');
$registry->stop;
$members{c}->safe_psql('postgres', "SELECT uid_generator_create('astray')");
poll_until('it is asked', sub { try_sql($members{c}, "SELECT uid_next('uid_generators.astray')"); (row('reason', $former) // '') eq 'proof' || row('fence', $former) > 0 });
my $away = q{SELECT count(*) > 0 FROM uid_registry_status WHERE away_since IS NOT NULL};
ok(poll_until('each member has asked it', sub { !grep { $_->safe_psql('postgres', $away) ne 't' } values %members }), 'members know of no registry');
is($former->safe_psql('postgres', $nodes), $knew, 'nor when it is alone: members do not go back');
isnt(state_of('astray'), 'granted', '... and newcomers of members wait');
$former->stop('immediate');
start_node($registry);
$members{c}->safe_psql('postgres', 'DROP SEQUENCE uid_generators.astray');

# Whatever is answered is on the standby.
stand_by($servers[2]);
make_synchronous($registry, $servers[2]->name);
sql($registry, "SELECT uid_registry.promise('failovers')");
story('a failover to a synchronous standby', 0, sub {
	kill_hard($registry);
	$registry = $servers[2];
	$registry->append_conf('postgresql.auto.conf', "synchronous_standby_names = ''\n");
	$registry->promote;
});
sql($registry, "SELECT uid_registry.promise('restarts')");

# A dump is restored elsewhere.
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
shell_ok($registry, "pg_dump -d postgres >$dump", 'a dump of the registry');
story('a restored dump', 1, sub {
	$registry->stop('immediate');
	$registry = $servers[3];
	init_server($registry);
	sql($registry, 'CREATE ROLE uid_member; CREATE ROLE uid_fleet LOGIN IN ROLE uid_member');
	shell_ok($registry, "psql -q -v ON_ERROR_STOP=1 -d postgres -f $dump", 'the dump is restored');
});

$registry->backup('yesterday');
end_newcomer();
story('a base backup and recovery', 1, sub {
	put_back($registry->backup_dir . '/yesterday');
	$registry->append_conf('postgresql.conf', "restore_command = 'false'\n");
	$registry->set_recovery_mode;
	start_node($registry);
	$registry->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
});

# A snapshot has the same timeline.
sub snapshot
{
	$registry->stop;
	system_or_bail('cp', '-a', $registry->data_dir, $registry->basedir . '/snapshot');
	start_node($registry);
}
snapshot();
goes_on('after the snapshot', grep { !$_->{ended} } @loops);
story('a snapshot, and a statement before it listens', 1, sub {
	put_back($registry->basedir . '/snapshot');
	my $conf = $registry->data_dir . '/postgresql.conf';
	my $lines = slurp_file($conf);
	my $hidden = PostgreSQL::Test::Utils::tempdir_short();
	append_to_file($conf, "unix_socket_directories = '$hidden'\n");
	start_node($registry, fail_ok => 1);
	my $port = $registry->port;
	system_or_bail('psql', '-XAtqc', 'SELECT fence > 0 FROM uid_registry.fence()', '-d', "host=$hidden port=$port dbname=postgres");
	write_file($conf, $lines);
	$registry->restart;
});

# All copies are lost. What is left is the number of the fleet, which members show.
my $fleet = row('fleet');
story('a registry made again', 1, sub {
	$registry->stop('immediate');
	$registry = $servers[4];
	init_server($registry);
	make_registry($registry, fleet => $fleet, longest => $longest, bound => $bound);
	$fences = 0;
});

assert_unique(stop_loop(@loops));
$_->stop foreach values %members, $registry;
done_testing();
