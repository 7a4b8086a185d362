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
my %build = (one => build('one', 1), 'like one' => build('like', 1), two => build('two', 2));

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

sub refused ($on, $what, @sql)
{
	my @wrong;
	foreach my $sql (@sql)
	{
		my ($state, $error) = sqlstate($on, $sql);
		push @wrong, "$sql: $state $error"
		  unless $error =~ /ERROR:  55000: this session has loaded another build of uidgen.*\n.*\nHINT:  Restart the server\.\n/;
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', $what);
}

sub go_on ($on, $what)
{
	my @wrong = map { my ($state, $error) = sqlstate($on, $_); $state eq '00000' ? () : "$_: $error" } @draws, @views;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', $what);
}

# Sessions that stay, and one that comes anew for each draw.
my %every = (on_error_stop => 0, reconnect => 1);

sub start_load ($node)
{
	my @stay = (load($node), background_loop($node, sql => "SELECT 'segment ' || segment_next('s')", clients => 2, %every));
	my $come = background_loop($node, sql => 'SELECT uid_next(); SELECT pg_terminate_backend(pg_backend_pid())', %every);
	goes_on('all draw', @stay, $come);
	return ($come, @stay);
}

sub server ($name, $build, @conf)
{
	install($build);
	my $node = new_server($name, install_path => $copy->{install_path}, @conf);
	create_load($node);
	$node->safe_psql('postgres', q{SELECT segment_create('s')});
	return $node;
}

my $in_parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;'
  . ' SELECT count(*) FROM many WHERE uid_next() > 0';

# Two layouts, in both orders, under load.
foreach my $order ([ 'one', 'two' ], [ 'two', 'one' ])
{
	my ($first, $second) = @$order;
	my $node = server("from_$first", $first);
	$node->safe_psql('postgres', 'CREATE TABLE many AS SELECT generate_series(1, 20000) AS n; ANALYZE many');
	my ($come, @stay) = start_load($node);
	my $old = hold_open($node);
	go_on($old, "a session of build $first");
	install($second);
	my $new = hold_open($node);
	refused($new, "a session of build $second is refused", @draws, @views);
	is(library_of($new) . ' ' . library_of($old), 'now before', '... it is the one that has loaded the new library');
	is($new->query_safe('SELECT (uid_decode(117443343637549056)).worker_id'), 1, '... and may do what needs no shared memory');
	goes_on("sessions of build $first go on", @stay);
	go_on($old, '... and so do their views');
	refused($old, '... but the workers of a parallel query load the new library', $in_parallel);
	go_on($old, '... after which they go on');

	# Background processes load the new library, and end. Without a refiller calls fill rings themselves.
	kill 'TERM', background_pids($node, 'refiller');
	my $empty_rings = q{SELECT count(uid_next_array('uid_generators.cached', 50000))};
	my $ended = qr/background worker "uidgen refiller" \(PID \d+\) exited with exit code 1/;
	ok(poll_until('another refiller', sub { $old->query_safe($empty_rings) && slurp_file($node->logfile) =~ $ended }), 'another refiller cannot start');
	goes_on('... and rings are filled all the same', @stay);
	$old->query_safe(q{SELECT uid_generator_create('later')});
	$old->query_safe(q{SELECT uid_next('uid_generators.later')});
	refused($new, 'the session of the new library is still refused', @draws);
	my $log = slurp_file($node->logfile);
	unlike($log, qr/PANIC|terminated by signal/, 'no process has crashed');

	# Through a crash: the server restarts with new memory, of which the first session makes what it likes.
	kill 'KILL', $old->query_safe('SELECT pg_backend_pid()');
	poll_until('the crash', sub { !defined eval { $old->query_safe('SELECT 1') } });
	wait_for_service($node);
	goes_on('after a crash all sessions load the new library', $come, @stay);
	$node->stop('fast');
	$node->start;
	goes_on('after a restart, too', $come, @stay);
	my @logs = stop_loop($come, @stay);
	assert_unique(@logs);
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
	go_on($new, 'a session of the new library makes the memory');
	refused($old, '... and one that has loaded the old library before is refused', @draws, @views);
	go_on($new, '... while the new one goes on');
	$node->stop;
}

# The same layout: both draw from the same memory.
{
	my $node = server('alike', 'one');
	my ($come, @stay) = start_load($node);
	my $old = hold_open($node);
	go_on($old, 'a session of the old library');
	install('like one');
	my $new = hold_open($node);
	go_on($new, 'a session of the new library, of the same layout');
	is(library_of($new) . ' ' . library_of($old), 'now before', '... which it has loaded');
	my @values = map { $_->query_safe('SELECT segment_next($$t$$)') } ($old->query_safe('SELECT segment_create($$t$$)') ? ($old, $new) x 3 : ());
	is("@values", '1 2 3 4 5 6', '... and both draw from one range');
	goes_on('sessions of both go on', $come, @stay);
	my ($refiller) = background_pids($node, 'refiller');
	kill 'TERM', $refiller;
	ok(poll_until('another refiller', sub { grep { $_ != $refiller } background_pids($node, 'refiller') }), '... and the refiller, too');
	goes_on('... and go on', $come, @stay);
	assert_unique(stop_loop($come, @stay));
	$node->stop;
}

# With the preload: the old library until the restart, in every process, whatever the layout.
{
	my $node = server('preloaded', 'one', conf => "shared_preload_libraries = 'uidgen'\n");
	my ($come, @stay) = start_load($node);
	my $old = hold_open($node);
	install('two');
	my $new = hold_open($node);
	go_on($_, 'preloaded') foreach $old, $new;
	is(library_of($new) . ' ' . library_of($old), 'before before', '... all sessions have the old library');
	my ($refiller) = background_pids($node, 'refiller');
	kill 'TERM', $refiller;
	ok(poll_until('another refiller', sub { grep { $_ != $refiller } background_pids($node, 'refiller') }), '... and all processes');
	kill 'KILL', $old->query_safe('SELECT pg_backend_pid()');
	poll_until('the crash', sub { !defined eval { $old->query_safe('SELECT 1') } });
	wait_for_service($node);
	goes_on('also after a crash', $come, @stay);
	$new = hold_open($node);
	is(library_of($new), 'before', '... with the old library');
	$new->quit;
	$node->restart;
	$new = hold_open($node);
	go_on($new, 'after a restart');
	is(library_of($new), 'now', '... with the new library');
	goes_on('... all go on', $come, @stay);
	assert_unique(stop_loop($come, @stay));
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
