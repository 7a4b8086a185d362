# PostgreSQL 17 and later: the package is upgraded while the server runs. Without the preload, sessions that have loaded the
# old library go on with it, and new ones load the new one. If it lays out shared memory in another way, it refuses to draw
# until the server restarts, so that nothing is shared between two layouts. If not, both draw from the same memory. With the
# preload all sessions have the old one until the restart.
use UidgenTest;
use Clients;
use Fleet;
use Installation;
use Trouble;
use Cwd;

plan skip_all => 'PostgreSQL 15 and 16 need the preload' if `pg_config --version` =~ /\b1[56]\./;
my $objects = ($ENV{UIDGEN_WORK} // '/nowhere') . '/build-main';
plan skip_all => 'it needs other builds of the library, which test/one 058 can make' unless -d $objects;

# Another build of the library: only the file that has the constant, such as that of the layout, is compiled again.
sub build ($name, $meaning, $constant = 'UIDGEN_SHARED_MEANING', $source = 'src/pg/memory/server_state.o')
{
	my $directory = PostgreSQL::Test::Utils::tempdir() . "/$name";
	my $here = getcwd();
	system_or_bail('cp', '-a', $objects, $directory);
	unlink map { "$directory/$_" } $source, 'uidgen.so';
	system_or_bail('make', '-s', '-C', $directory, '-f', "$here/Makefile", 'uidgen.so', "PG_CONFIG=$ENV{PG_CONFIG}", 'PG_CXXFLAGS=-O1',
		"PG_CPPFLAGS=-D$constant=$meaning");
	return "$directory/uidgen.so";
}

my $copy = copy_installation();
my $installed = "$copy->{PKGLIBDIR}/uidgen.so";
my %build = (one => build('one', 1), alike => build('alike', 1), two => build('two', 2));

# As a package manager does it: sessions keep the file that they have loaded.
sub install ($name)
{
	system_or_bail('cp', $build{$name}, "$installed.new");
	rename "$installed.new", $installed or die $!;
	note("the library is now that of build $name");
}

# Whether a session has loaded the file that is installed now, or one before it.
sub library_of ($session)
{
	my $maps = slurp_file('/proc/' . $session->query_safe('SELECT pg_backend_pid()') . '/maps');
	return $maps !~ /uidgen\.so/ ? 'none' : $maps =~ /uidgen\.so(?:\.new)? \(deleted\)/ ? 'before' : 'now';
}

my @draws = (
	'SELECT uid_next()', q{SELECT uid_next('uid_generators.cached')}, 'SELECT uid_next_array(10)', q{SELECT segment_next('s')},
	q{SELECT * FROM segment_reserve('s', 10)}, 'INSERT INTO orders DEFAULT VALUES');
my @views = map { "SELECT * FROM $_" } 'uid_generator_status', 'segment_status', 'uid_stat', 'uid_stat_server';

# Each draw and view, or what is given in their place, draws (or shows), or is refused.
sub outcome ($on, $expected, $what, @sql)
{
	my @wrong;
	foreach my $sql (@sql ? @sql : (@draws, @views))
	{
		my ($state, $error) = sqlstate($on, $sql);
		my $refused = $error =~ /ERROR:  55000: this session has loaded another build of uidgen.*\n.*\nHINT:  Restart the server\.\n/;
		push @wrong, "$sql: $error" if $expected ne ($state eq '00000' ? 'draws' : $refused ? 'refused' : 'fails');
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', "$what: $expected");
}

sub server ($name, $build, $preload = '')
{
	install($build);
	my $node = new_server($name, install_path => $copy->{install_path}, conf => $preload && "shared_preload_libraries = 'uidgen'\n");
	create_load($node);
	$node->safe_psql('postgres', $_)
	  foreach q{SELECT segment_create('s'), segment_create('t')}, 'CREATE TABLE many AS SELECT generate_series(1, 20000) AS n; ANALYZE many';
	return $node;
}

my $in_parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;'
  . ' SELECT count(*) FROM many WHERE uid_next() > 0';
my $empty_rings = q{SELECT count(uid_next_array('uid_generators.cached', 50000))};
my $ended = qr/background worker "uidgen refiller" \(PID \d+\) exited with exit code 1/;

# Whether it is preloaded, the library before and after the upgrade, and what a process that starts then meets and loads.
foreach my $change (
	[ '', 'one', 'two', 'refused', 'now' ],
	[ '', 'two', 'one', 'refused', 'now' ],
	[ '', 'one', 'alike', 'draws', 'now' ],
	[ 'preloaded', 'one', 'two', 'draws', 'before' ])
{
	my ($preload, $first, $second, $outcome, $library) = @$change;
	note("$preload $first, then $second");
	my $node = server("$first-$second$preload", $first, $preload);

	# Sessions that stay, and one that comes anew for each draw.
	my %every = (on_error_stop => 0, reconnect => 1);
	my @stay = (load($node), background_loop($node, sql => "SELECT 'segment ' || segment_next('s')", clients => 2, %every));
	my $come = background_loop($node, sql => 'SELECT uid_next(); SELECT pg_terminate_backend(pg_backend_pid())', %every);
	my @go_on = $outcome eq 'draws' ? ($come, @stay) : @stay;
	goes_on('all draw', @stay, $come);
	my $old = hold_open($node);
	outcome($old, 'draws', 'a session of the first library');

	install($second);
	my $new = hold_open($node);
	outcome($new, $outcome, 'one that comes after the upgrade');
	is(library_of($new) . ' ' . library_of($old), "$library before", '... it has the library that it should');
	is($new->query_safe('SELECT (uid_decode(117443343637549056)).worker_id'), 1, '... and may do what needs no shared memory');
	goes_on('sessions of the first library go on', @go_on);
	outcome($old, 'draws', '... and so do their views');
	outcome($old, $outcome, '... while workers of their parallel queries do as new sessions', $in_parallel);
	outcome($old, 'draws', '... after which they go on');
	if ($outcome eq 'draws')
	{
		is(join(' ', map { $_->query_safe(q{SELECT segment_next('t')}) } ($old, $new) x 3), '1 2 3 4 5 6', 'both draw from one range');
	}

	# Background processes do as new sessions, too. Without a refiller calls fill rings themselves.
	my ($refiller) = background_pids($node, 'refiller');
	kill 'TERM', $refiller;
	my $has_met = $outcome eq 'draws' ? sub { grep { $_ != $refiller } background_pids($node, 'refiller') } : sub { slurp_file($node->logfile) =~ $ended };
	ok(poll_until('another refiller', sub { $old->query_safe($empty_rings) && $has_met->() }), "another refiller: $outcome");
	goes_on('... and rings are filled all the same', @go_on);
	$old->query_safe(q{SELECT uid_generator_create('later')});
	$old->query_safe(q{SELECT uid_next('uid_generators.later')});
	outcome($new, $outcome, 'the session from after the upgrade, still');
	unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'no process has crashed');

	# Through a crash: the server restarts with new memory, of which the first session makes what it likes.
	kill 'KILL', $old->query_safe('SELECT pg_backend_pid()');
	poll_until('the crash', sub { !defined eval { $old->query_safe('SELECT 1') } });
	wait_for_service($node);
	goes_on('after a crash all draw', $come, @stay);
	$new = hold_open($node);
	outcome($new, 'draws', 'a session after a crash');
	is(library_of($new), $library, '... with the library of all new processes');
	$node->restart;
	goes_on('after a restart all draw', $come, @stay);
	$new = hold_open($node);
	outcome($new, 'draws', 'a session after a restart');
	is(library_of($new), 'now', '... with the new library');
	assert_unique(stop_loop($come, @stay));
	$node->stop;
}

# A session that has loaded the old library and not drawn: the memory is of whoever comes first.
{
	my $node = server('idle', 'one');
	$node->restart;
	my $old = hold_open($node);
	$old->query_safe(q{LOAD 'uidgen'});
	install('two');
	my $new = hold_open($node);
	outcome($new, 'draws', 'a session of the new library makes the memory');
	outcome($old, 'refused', '... and one that has loaded the old library before');
	outcome($new, 'draws', '... while the new one goes on');
	$node->stop;
}

# A package that was built on a server of a later minor release.
{
	$build{later} = build('later', '995000', 'UIDGEN_MINOR_RELEASE', 'src/pg/module.o');
	my $node = server('later', 'later');
	$node->psql('postgres', 'SELECT uid_next()', stderr => \my $warning);
	like($warning, qr/WARNING:  uidgen was built for a later minor release than that of this server, \S+.*\nDETAIL:  Draws may not wait.*\nHINT:  Update the server/,
		'a server of an earlier minor release says so');
	$node->stop;
	install('one');
	$node->start;
	$node->psql('postgres', 'SELECT uid_next()', stderr => \$warning);
	is($warning, '', '... and one of the same release does not');
	$node->stop;
}

done_testing();
