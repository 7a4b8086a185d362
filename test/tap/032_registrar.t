# The member's side of a fleet: the registrar, its file of grants, and what callers see when the registry is away or
# refuses. Registry and members are servers of their own.
use FindBin;
use IO::Socket::UNIX;
use POSIX ();
use lib $FindBin::RealBin;
use UidgenTest 'preloaded';

my $password = 'sesame-7311';
my $registry = new_server('registry', conf => "uidgen.registry_clock_bound = '30s'\n");
$registry->safe_psql('postgres', <<"END");
CREATE ROLE uid_fleet LOGIN PASSWORD '$password';
SELECT uid_fleet_admit('uid_fleet', 'new');
CREATE ROLE stranger LOGIN PASSWORD '$password';
CREATE DATABASE bare;
CREATE DATABASE liar;
END
my $hba = slurp_file($registry->data_dir . '/pg_hba.conf');
write_file($registry->data_dir . '/pg_hba.conf', "local all uid_fleet,stranger scram-sha-256\n$hba");
$registry->reload;

# The password is in a file of the operating system user, so neither the setting nor a statement that changes it has it.
my $files = PostgreSQL::Test::Utils::tempdir();
sub password_file ($name, $content)
{
	write_file("$files/$name", "*:*:*:uid_fleet:$content\n*:*:*:stranger:$content\n");
	chmod 0600, "$files/$name" or die "could not protect the password file: $!";
	return "passfile=$files/$name";
}
my $pass = password_file('pass', $password);
my $wrong = password_file('wrong', 'another');

my $server = 'host=' . $registry->host . ' port=' . $registry->port;
my $good = "$server dbname=postgres user=uid_fleet $pass";
# Of several hosts the first one that answers.
my $several = 'host=' . $registry->host . ',' . $registry->host . ' port=1,' . $registry->port
  . " dbname=postgres user=uid_fleet $pass";

my @shown;    # all that a member has shown

my $log_at_change = 0;
sub set_registry ($node, $conninfo)
{
	$log_at_change = -s $node->logfile;
	set_conf($node, "uidgen.registry = '$conninfo'");
}

sub new_member ($name, $conninfo, %opts)
{
	my $conf = delete $opts{conf} // '';
	return new_server($name, %opts, conf => "uidgen.registry = '$conninfo'\n$conf");
}

sub status ($node, $columns)
{
	return $node->safe_psql('postgres', "SELECT $columns FROM uid_registry_status WHERE generator LIKE '%uid%'");
}

# The node in an id.
my $node_of = q{(d.datacenter_id << 5) | d.worker_id FROM uid_decode(uid_next()) d};

sub drawn_node ($node)
{
	return $node->safe_psql('postgres', "SELECT $node_of");
}

sub wait_until ($what, $condition)
{
	poll_until($what, $condition) or die "timed out waiting for $what";
}

sub registrar_pid ($node)
{
	my @pids;
	wait_until('the registrar', sub { @pids = background_pids($node, 'registrar'); @pids == 1 });
	return $pids[0];
}

sub crc32c ($bytes)
{
	my $crc = 0xffffffff;
	foreach my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc >> 1 ^ ($crc & 1 ? 0x82f63b78 : 0) foreach 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

sub lines_of ($node, $pattern)
{
	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

# Waits for lines in the log of a server, which may be late.
sub wait_for_lines ($node, $pattern, $count)
{
	wait_until($pattern, sub { lines_of($node, $pattern) >= $count });
	return lines_of($node, $pattern);
}

# The first draw

my $member = new_member('member', $several);
$member->append_conf('postgresql.conf', "wal_log_hints = on\nwal_keep_size = 320MB\n");    # for pg_rewind
my $node = drawn_node($member);
like($node, qr/^\d+$/, 'the first draw waits for its node');
is(status($member, 'node'), $node, 'the status shows the node of the ids');
is(status($member, 'connected, superseded, error IS NULL'), 't|f|t', 'the registrar is connected');
is(status($member, "granted_until > now() + interval '5 min'"), 't', 'the grant lasts for minutes');
is(status($member, 'registry'),
	'host=' . $registry->host . ',' . $registry->host . ' port=1,' . $registry->port . ' dbname=postgres user=uid_fleet',
	'the connection string is shown, in part');
is($registry->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'uidgen registrar'"),
	'1', 'one connection to the registry');
$member->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher; CREATE ROLE other LOGIN');
is($member->safe_psql('postgres', 'SET ROLE watcher; SELECT registry IS NULL, node IS NOT NULL FROM uid_registry_status'),
	'f|t', 'pg_monitor contains pg_read_all_settings');
is(sqlstate($member, 'SET ROLE other; SELECT * FROM uid_registry_status'), '42501', 'others do not see the view');
is(sqlstate($member, 'SET ROLE other; SHOW uidgen.registry'), '42501', 'nor the setting');
is($member->safe_psql('postgres', "SET ROLE other; SELECT count(*) FROM pg_settings WHERE name = 'uidgen.registry' AND setting <> ''"),
	0, 'also not in pg_settings');
is(sqlstate($member, 'SET ROLE other; SELECT uid_fleet_move()'), '42501', 'and do not move the server');

# Restarts without the registry

$member->stop;
$registry->stop;
start_node($member);
is(reads_of_node_rows($member, 'uid_next()'), '0 0', 'a first draw in a grant of the file reads no row of worker_node');
is(drawn_node($member), $node, '... a restart goes on with its grant while the registry is down');
my $pid = registrar_pid($member);
$member->poll_query_until('postgres', 'SELECT away_since IS NOT NULL FROM uid_registry_status')
  or die 'the registry is not away';
is(wait_for_lines($member, 'LOG:  could not use the registry of this server', 1), 1, 'one line says that the registry is away');
kill 'KILL', $pid;
wait_until('the end of the registrar', sub { !kill 0, $pid });
wait_for_service($member);
is(drawn_node($member), $node, 'killing the registrar changes nothing');
crash($member);
is(drawn_node($member), $node, 'nor does a crash');

$registry->start;
$member->poll_query_until('postgres', 'SELECT connected FROM uid_registry_status') or die 'not connected';
is(wait_for_lines($member, 'connected to the registry of this server.s fleet again', 1), 1,
	'one line says that it is back');
$member->poll_query_until('postgres', 'SELECT bool_or(renewals > 0) FROM uid_registry_status') or die 'no renewal';
is(drawn_node($member), $node, 'the registry lets the member keep its node');
$registry->stop('immediate');
$registry->start;
is(drawn_node($member), $node, 'the registry may crash');
$member->poll_query_until('postgres', 'SELECT connected FROM uid_registry_status') or die 'not connected';

# Copies

sub copy_of ($name, $original)
{
	my $copy = UidgenNode->new($name);
	system_or_bail('cp', '-a', $original->data_dir, $copy->data_dir);
	$copy->append_conf('postgresql.conf',
		'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'\n");
	return $copy;
}

my $file = 'global/pgsql_tmp_uidgen.grants';
$member->stop;
my $copy = copy_of('copy', $member);
$member->start;
start_node($copy);
my $other = drawn_node($copy);
isnt($other, $node, 'a copy gets a node of its own');
is(lines_of($copy, 'in another data directory'), 1, 'because its file is not its own');
is(drawn_node($member), $node, 'the original keeps its node');

$copy->stop;
my $grants = slurp_file($copy->data_dir . "/$file");
unlink $copy->data_dir . "/$file" or die;
write_file($copy->data_dir . '/another', 'takes the inode');
write_file($copy->data_dir . "/$file", $grants);
start_node($copy);
is(lines_of($copy, 'It is a copy'), 2, 'a file that was put back does not count');
my $third = drawn_node($copy);
isnt($third, $other, 'and another node is drawn');

# The checksum at the beginning is of all that follows.
$copy->stop;
my $whole = slurp_file($copy->data_dir . "/$file");
is(unpack('L', $whole), crc32c(substr $whole, 4), 'the file has its checksum');

# Keeps the inode.
sub start_with ($content)
{
	open my $fh, '+<:raw', $copy->data_dir . "/$file" or die "could not open the file: $!";
	print $fh $content;
	truncate $fh, length $content or die "could not truncate the file: $!";
	close $fh;
	start_node($copy);
}

sub flipped ($content, $at)
{
	substr($content, $at, 1) ^= "\x01";
	return $content;
}

# What a crash leaves while the file is written.
write_file($copy->data_dir . "/$file.tmp", substr $whole, 0, -10);
start_with($whole);
is(drawn_node($copy), $third, 'a part of the next file changes nothing');
# A file that cannot be written at a start. Nothing is asked then, because the registry could see an incarnation that the
# file does not have.
$copy->stop;
mkdir $copy->data_dir . "/$file.tmp" or die;
start_node($copy);
is(drawn_node($copy), $third, 'a start that cannot write the file goes on in its grant');
wait_until('the error', sub { status($copy, 'error') eq 'could not write the file of grants' });
is(status($copy, 'renewals'), 0, '... and asks for nothing');
rmdir $copy->data_dir . "/$file.tmp" or die;
$copy->poll_query_until('postgres', 'SELECT bool_or(renewals > 0) FROM uid_registry_status') or die 'no renewal';
is(drawn_node($copy), $third, '... until it can write it');
$copy->stop;
my $damages = 0;
foreach my $damaged ('', substr($whole, 0, 3), substr($whole, 0, -1), flipped($whole, 10), flipped($whole, length($whole) - 10))
{
	start_with($damaged);
	$damages++;
	is(lines_of($copy, 'checksum is wrong'), $damages, 'a damaged file does not count');
	$copy->stop;
	write_file($copy->data_dir . "/$file", '');
}
start_with('');
my $fourth = drawn_node($copy);
isnt($fourth, $third, 'and another node is drawn');

# As if another host had written it: a letter of the host's name, and the checksum.
$copy->stop;
$grants = slurp_file($copy->data_dir . "/$file");
$grants = flipped($grants, index($grants, (POSIX::uname())[1]));
substr($grants, 0, 4) = pack 'L', crc32c(substr $grants, 4);
start_with($grants);
is(lines_of($copy, 'on another host'), 3, 'a file of another host does not count');
$copy->stop;

my $standby = standby_of($member, 'standby');
start_node($standby);
$member->wait_for_catchup($standby, 'replay');
ok(!-e $standby->data_dir . "/$file", 'a base backup leaves the grants out');
is(sqlstate($standby, 'SELECT uid_next()'), '25006', 'a standby draws nothing');
$standby->promote;
isnt(drawn_node($standby), $node, 'a promoted standby gets a node of its own');
is(drawn_node($member), $node, 'and its former primary keeps its own');

# The former primary becomes a standby of the new one by pg_rewind, and is promoted.
my %drawn = ($node => 1, drawn_node($standby) => 1);
$standby->stop;
$member->stop;
my $own_conf = slurp_file($member->data_dir . '/postgresql.conf');
$member->command_ok(
	[ 'pg_rewind', '--no-sync', '--target-pgdata', $member->data_dir, '--source-pgdata', $standby->data_dir ], 'pg_rewind');
write_file($member->data_dir . '/postgresql.conf', $own_conf);
start_node($standby);
$member->enable_streaming($standby);
start_node($member);
$standby->wait_for_catchup($member, 'replay');
$standby->stop;
$member->promote;
$node = drawn_node($member);
ok(!$drawn{$node}, 'after pg_rewind a server gets a node that neither of the two had');

# A server that was a primary, and becomes a standby in the same directory.
$member->stop;
$member->append_conf('postgresql.conf', "primary_conninfo = '" . $standby->connstr . "'\n");
$member->set_standby_mode;
start_node($member);
is(lines_of($member, 'standby or recovers from a backup'), 1, 'a standby gives up its grants');
$member->promote;
isnt(drawn_node($member), $node, 'they do not count after a promotion');
is(status($member, 'superseded'), 'f', 'the server is a newcomer');

# Moving

$node = status($member, 'node');
$member->safe_psql('postgres', statement_of('docs/fleet.md', qr/uid_fleet_move/));
isnt(drawn_node($member), $node, 'uid_fleet_move() begins anew');

$registry->stop;
$member->safe_psql('postgres', 'SELECT uid_fleet_move()');
crash($member);
is(sqlstate($member, 'SET uidgen.max_wait = 0; SELECT uid_next()'), '55000', 'a crash does not undo it');
$registry->start;
# All its members have begun anew, and their former grants last.
like((sqlstate($member, 'SELECT uid_next()'))[1], qr/the registry has started, and no member whose grant lasts has called yet\nHINT:  Wait for one, or until \d/,
	'a registry that starts waits for a member that it has answered before');
$registry->safe_psql('postgres', 'SELECT uid_fleet_fence(cancel => true)');

# A grant that cannot be stored is not drawn with, and the server has not seen its term.

my $unstored = new_member('unstored', $good);
mkdir $unstored->data_dir . "/$file.tmp" or die;
foreach my $draw ('a draw fails', '... and so does the next one')
{
	like((sqlstate($unstored, "SET uidgen.max_wait = '2s'; SELECT uid_next()"))[1], qr/could not write the file of grants/, $draw);
}
is(status($unstored, 'node IS NULL, renewals'), 't|0', '... because no grant is in the file');
is($unstored->safe_psql('postgres', 'SELECT is_called FROM uid_internal.uid_fleet_term'), 'f', '... and no database has its term');
rmdir $unstored->data_dir . "/$file.tmp" or die;
like(drawn_node($unstored), qr/^\d+$/, '... until it can be written');
$unstored->stop;

# A registrar that has ended is started by the next lease, long before the grant ends, so that it renews it.

my $left = new_member('left', $good, conf => "uidgen.registry_lease = '30s'\n");
$node = drawn_node($left);
my $renewals = status($left, 'renewals');
my $waits = $left->safe_psql('postgres', 'SELECT sum(registry_waits) FROM uid_stat');
$pid = registrar_pid($left);
kill 'TERM', $pid;
wait_until('the end of the registrar', sub { !kill 0, $pid });
ok(poll_until('a registrar', sub { drawn_node($left); background_pids($left, 'registrar') == 1 }, 5), 'a draw starts the registrar again');
$pid = registrar_pid($left);
ok(poll_until('a renewal', sub { drawn_node($left); status($left, 'renewals') > $renewals }, 25), '... which renews the grant');
is(join(' ', background_pids($left, 'registrar')), $pid, '... and stays');
is($left->safe_psql('postgres', 'SELECT sum(registry_waits) FROM uid_stat'), $waits, '... so that no draw has waited for a grant');
$left->stop;

# Refusals

my $beginner = new_member('beginner', "$server dbname=postgres user=uid_fleet $wrong");

# What a draw says in the end.
sub error_like ($expected, $name)
{
	my ($state, $error, $matched);
	foreach (1 .. 180)
	{
		($state, $error) = sqlstate($beginner, "SET uidgen.max_wait = '1s'; SELECT uid_next()");
		push @shown, $error, status($beginner, 'u FROM uid_registry_status u --');
		$matched = $error =~ $expected;
		last if $matched;
	}
	ok($matched && $state ne '00000', $name) or diag($error);
	return $error;
}

# The same in the view, and in one line of the log since the setting was changed.
sub bad_setting ($expected, $name = undef)
{
	my $error = error_like($expected, $name);
	like(status($beginner, 'error'), $expected, '... in the view');
	my $lines = sub { return grep { /LOG:  .*registry.*: .*$expected/ } split /\n/, slurp_file($beginner->logfile, $log_at_change) };
	wait_until('the log', sub { $lines->() > 0 });
	is(scalar(my @all = $lines->()), 1, '... and once in the log');
	return $error;
}

bad_setting(qr/password authentication failed for user "uid_fleet"/, 'a wrong password');
set_registry($beginner, 'host=' . $registry->host . " port=1 dbname=postgres $pass");
bad_setting(qr/connection to server .* failed: No such file/, 'a wrong port');
$beginner->safe_psql('postgres', 'CREATE ROLE plain; GRANT CREATE ON SCHEMA uid_segments TO plain');
foreach my $statement ('SELECT uid_next()', "SELECT segment_attach('s')", "SET ROLE pg_monitor; SELECT uid_next()")
{
	my (undef, $error) = sqlstate($beginner, "SET uidgen.max_wait = '1s'; SET ROLE plain; $statement");
	my $expected = $statement =~ /pg_monitor/ ? qr/connection to server .* failed/ : qr/the registry cannot be reached\nHINT:  The view uid_registry_status /;
	like($error, $expected, "only who may read the status learns where the registry is: $statement");
}
set_registry($beginner, "$server dbname=nowhere user=uid_fleet $pass");
bad_setting(qr/database "nowhere" does not exist/, 'a wrong database');
set_registry($beginner, "$server dbname=bare user=uid_fleet $pass");
like(bad_setting(qr/schema "uid_internal" does not exist/, 'no extension'),
	qr/HINT: .*CREATE EXTENSION uidgen/, 'with a hint');
set_registry($beginner, "$server dbname=postgres user=stranger $pass");
like(bad_setting(qr/permission denied for procedure uid_fleet_call/, 'a role without rights'),
	qr/HINT: .*uid_fleet_admit/, 'with a hint');
my $mirror = standby_of($registry, 'mirror');
start_node($mirror);
my $at_mirror = 'host=' . $mirror->host . ' port=' . $mirror->port;
set_registry($beginner, "$at_mirror dbname=postgres user=uid_fleet $pass");
bad_setting(qr/cannot execute uid_fleet_call\(\) during recovery/, 'a standby of the registry');

set_registry($beginner, 'host=a password mistyped');
unlike(bad_setting(qr/uidgen\.registry is not a connection string that libpq can parse/, 'a string that libpq cannot parse'),
	qr/mistyped/, 'which is not quoted');

# A registry whose grant lies outside the layout

$registry->safe_psql('liar', "CREATE EXTENSION uidgen; SELECT uid_fleet_admit('uid_fleet', 'new')");

# A procedure that gives that answer: the columns from the refusal on to the hint, and from the node on to the
# membership. As a rule the answer is complete.
sub lie ($refusal, $grant, $all = undef)
{
	$all //= "7, 1, 3, 7, 1, $refusal, 1767225600000000, 9, true, false, 600000000, NULL, NULL, $grant, 1, NULL, NULL, NULL, NULL";
	$registry->safe_psql('liar', <<"END");
DROP PROCEDURE IF EXISTS uid_internal.uid_fleet_call;
CREATE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS \$f\$
BEGIN answers := record_send(ROW($all)::public.fleet_answer); END \$f\$;
END
}
$registry->safe_psql('liar', 'ALTER EXTENSION uidgen DROP PROCEDURE uid_internal.uid_fleet_call');
learn_messages($registry, 'liar');
my $no_refusal = 'NULL, NULL, NULL';
lie($no_refusal, '1048576, 1, 1000000000000, 7');
set_registry($beginner, "$server dbname=liar user=uid_fleet $pass");
bad_setting(qr/the registry's answer is not valid/, 'a node that the layout cannot hold');

# A registry of another version

set_registry($beginner, "$server dbname=nowhere user=uid_fleet $pass");
error_like(qr/database "nowhere" does not exist/, 'a wrong database');
$registry->safe_psql('liar', 'DROP PROCEDURE uid_internal.uid_fleet_call');
set_registry($beginner, "$server dbname=liar user=uid_fleet $pass application_name=older");
like(bad_setting(qr/procedure \S*uid_fleet_call\(.*\) does not exist/, 'one that does not know the call'),
	qr/HINT: .*ALTER EXTENSION uidgen UPDATE/, 'with a hint');
$registry->safe_psql('liar', <<'END');
CREATE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'protocol version 1 is not supported' USING HINT = 'Upgrade.'; END $$;
END
set_registry($beginner, "$server dbname=liar user=uid_fleet $pass");
like(bad_setting(qr/protocol version 1 is not supported/, 'one that speaks another protocol'), qr/HINT:  Upgrade\./, '... with its own hint');
$registry->safe_psql('liar', <<'END');
DROP PROCEDURE uid_internal.uid_fleet_call;
CREATE PROCEDURE uid_internal.uid_fleet_call(requests bytea, INOUT answers bytea DEFAULT NULL) LANGUAGE plpgsql AS
  $$ BEGIN answers := record_send(ROW(7::bigint, 1::bigint)); END $$;
END
set_registry($beginner, "$server dbname=liar user=uid_fleet $pass application_name=incomplete");
like(bad_setting(qr/the registry's answer is not valid/, 'one that answers less'), qr/HINT: .*update uidgen on the registry/, '... with a hint');

# Answers that are of no use, to a server of its own

set_registry($beginner, "$server dbname=nowhere user=uid_fleet $pass");
error_like(qr/database "nowhere" does not exist/, 'a wrong database');
my $misled = new_member('misled', '');
sub misled_by ($name, $expected, @answer)
{
	lie(@answer);
	set_registry($misled, "$server dbname=liar user=uid_fleet $pass application_name=" . $name =~ s/\W/_/gr);
	my ($error, $matched);
	poll_until($name, sub { (undef, $error) = sqlstate($misled, "SET uidgen.max_wait = '1s'; SELECT uid_next()"); $matched = $error =~ $expected; }, 30);
	ok($matched, $name) or diag($error);
}
my $no_grant = 'NULL, NULL, NULL, NULL';
misled_by('a refusal without a reason', qr/DETAIL:  \N*: the registry gave no reason$/m, "'fenced', '', NULL", $no_grant);
misled_by('a refusal with an odd text', qr/DETAIL:  \N*: \(a,"b\\$/m, q{'fenced', '(a,"b\', NULL}, $no_grant);
misled_by('a grant that has ended', qr/the registry's answer is not valid/, $no_refusal, '5, 1, 2, 7');
misled_by('an answer of a fleet that is none', qr/the registry's answer is not valid/, undef, undef,
	'-7, 1, 3, 7, 1, NULL, NULL, NULL, 1, 9, true, false, 600000000, NULL, NULL, 5, 1, 2, 7, 1, NULL, NULL, NULL, NULL');
$misled->stop;

# Servers that are no registry at all

# Answers the statement of each connection with a message of the protocol.
sub impostor ($answer)
{
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my $listener = IO::Socket::UNIX->new(Local => "$dir/.s.PGSQL.1", Listen => 5) or die "no socket: $!";
	my $child = fork() // die "no process: $!";
	return ("host=$dir port=1 dbname=x user=x", $child) if $child;
	local $SIG{PIPE} = 'IGNORE';
	while (my $client = $listener->accept)
	{
		sysread $client, my $startup, 4096;
		syswrite $client, message('R', pack('N', 0)) . message('S', "server_encoding\0UTF8\0") . message('Z', 'I');
		sysread $client, my $statement, 8192;
		syswrite $client, message('1', '') . message('2', '') . $answer;
		sysread $client, my $end, 8192;
	}
	POSIX::_exit(0);
}

sub message ($type, $body)
{
	return $type . pack('N', 4 + length $body) . $body;
}

my $column = "x\0" . pack('NnNnNn', 0, 0, 25, 65535, 0xffffffff, 0);
my $long_row = message('T', pack('n', 2) . $column x 2) . message('D', pack('n', 2) . (pack('N', 1) . 'a') x 2) . message('C', "SELECT 1\0") . message('Z', 'I');
my $long = 'x' x 90e6;
my $lost = qr/lost synchronization with server|cannot allocate memory/;
foreach my $case (
	[ $long_row, 'a row that is too long', qr/the registry's answer is not valid/ ],
	[ message('G', pack('Cn', 0, 0)), 'a COPY', qr/the registry's answer is not valid/ ],
	[ message('E', "SERROR\0C22000\0M$long\0\0"), 'an error of 90 MB', $lost ],
	[ message('N', "SWARNING\0C01000\0M$long\0\0"), 'a warning of 90 MB', $lost ])
{
	my ($answer, $name, $complaint) = @$case;
	my ($line, $child) = impostor($answer);
	# An error that cannot be that of the case before.
	set_registry($beginner, "$server dbname=nowhere user=uid_fleet $pass");
	error_like(qr/database "nowhere" does not exist/, 'a wrong database');
	set_registry($beginner, $line);
	error_like($complaint, "$name is no answer");
	my ($pid) = background_pids($beginner, 'registrar');
	my ($kilobytes) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;
	cmp_ok($kilobytes, '<', 50_000, '... and takes no memory');
	kill 'KILL', $child;
	waitpid $child, 0;
}
my ($registrar) = background_pids($beginner, 'registrar');
ok($registrar && kill(0, $registrar), 'the registrar lives');

# Of two servers, the primary.
set_registry($beginner,
	'host=' . $mirror->host . ',' . $registry->host . ' port=' . $mirror->port . ',' . $registry->port
	  . " dbname=postgres user=uid_fleet $pass");
$beginner->poll_query_until('postgres', 'SELECT connected FROM uid_registry_status') or die 'not connected';
like(drawn_node($beginner), qr/^\d+$/, 'with the right setting it draws');

# A service file, and a setting by ALTER SYSTEM.

write_file("$files/service", "[fleet]\n" . join("\n", split / /, $good) . "\n");
$beginner->stop;
my $from = -s $beginner->logfile;
{
	local $ENV{PGSERVICEFILE} = "$files/service";
	start_node($beginner);
}
foreach my $line ("$server dbname=postgres user=uid_fleet $pass", 'service=fleet')
{
	$beginner->safe_psql('postgres', "ALTER SYSTEM SET uidgen.registry = '$line'");
	$beginner->reload;
	wait_until('the setting', sub { $beginner->safe_psql('postgres', 'SHOW uidgen.registry') eq $line });
	$beginner->safe_psql('postgres', 'SELECT uid_fleet_move()');
	like(drawn_node($beginner), qr/^\d+$/, "it draws with $line");
	is($beginner->safe_psql('postgres', 'SELECT connected FROM uid_registry_status LIMIT 1'), 't', '... from the registry');
	push @shown, $beginner->safe_psql('postgres', 'CREATE ROLE reader IN ROLE pg_read_all_settings; SET ROLE reader; SHOW uidgen.registry;'
		  . ' RESET ROLE; DROP ROLE reader');
	like($shown[-1], qr/\Q$line/, 'a member of pg_read_all_settings sees the setting');
}
is(status($beginner, 'registry'), 'service=fleet', 'the view shows the service');
push @shown, slurp_file($beginner->logfile, $from);
like($shown[-1], qr/statement: ALTER SYSTEM SET uidgen.registry = 'service=fleet'/, 'log_statement shows the statement');
$beginner->safe_psql('postgres', 'ALTER SYSTEM RESET uidgen.registry');
$beginner->reload;

# Servers that do not answer

my $mute_dir = PostgreSQL::Test::Utils::tempdir_short();
my $mute = IO::Socket::UNIX->new(Local => "$mute_dir/.s.PGSQL.1", Listen => 5) or die "no socket: $!";
set_registry($beginner,
	"host=$mute_dir," . $registry->host . ' port=1,' . $registry->port
	  . " dbname=postgres user=uid_fleet $pass");
$beginner->poll_query_until('postgres', 'SELECT connected FROM uid_registry_status') or die 'not connected';
pass('a host that does not answer is left for the next one');

my $session = $registry->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE application_name = 'uidgen registrar' AND backend_start = "
	  . "(SELECT max(backend_start) FROM pg_stat_activity WHERE application_name = 'uidgen registrar')");
$node = drawn_node($beginner);
freeze_process($session);
$beginner->safe_psql('postgres', 'SELECT uid_fleet_move()');
my $moved = $beginner->safe_psql('postgres', "SET uidgen.max_wait = '2min'; SELECT $node_of");
thaw($session);
isnt($moved, $node, 'so is a session of the registry that does not answer');

# Clocks

my $ahead = new_node('ahead');
use_fake_clock($ahead);
set_clock($ahead, '+5m');
start_uidgen($ahead);
$ahead->safe_psql('postgres', "CREATE ROLE uid_fleet LOGIN; SELECT uid_fleet_admit('uid_fleet', 'new')");
my $late = new_member('late', 'host=' . $ahead->host . ' port=' . $ahead->port . ' dbname=postgres user=uid_fleet');
like(drawn_node($late), qr/^\d+$/, 'a server draws whose clock is behind that of the registry');
is(status($late, 'clock_offset_ms BETWEEN -310000 AND -290000'), 't', 'the status shows the offset');
is(wait_for_lines($late, 'WARNING:  clock of this server differs', 1), 1, 'and the log warns of it, once');
set_registry($late, $good);
$late->poll_query_until('postgres', "SELECT last_error LIKE '%another fleet%' FROM uid_registry_status")
  or die 'the other fleet is not refused';
$node = drawn_node($late);
like($node, qr/^\d+$/, 'in the other fleet it goes on with its grant');
$late->safe_psql('postgres', 'SELECT uid_fleet_move()');
like(drawn_node($late), qr/^\d+$/, 'and moves when it is told to');
is( $late->safe_psql('postgres', 'SELECT fleet FROM uid_registry_status'),
	$registry->safe_psql('postgres', 'SELECT fleet FROM uid_fleet_state'),
	'it is a member of that fleet');
$_->stop foreach ($late, $ahead);

# Leaving

set_registry($beginner, '');
wait_until('the end of the registrar', sub { background_pids($beginner, 'registrar') == 0 });
pass('without the setting the registrar ends');
is($beginner->safe_psql('postgres', 'SELECT connected FROM uid_registry_status LIMIT 1'), 'f', 'and is not connected');

push @shown, slurp_file($_->logfile) =~ s/^.*(?:statement: |STATEMENT: ).*ALTER SYSTEM.*$//mgr
  foreach ($member, $beginner, $copy);
is(scalar(grep { /$password/ } @shown), 0, 'no password in logs, errors and views');

$_->stop foreach ($mirror, $beginner, $member, $registry);
done_testing();
