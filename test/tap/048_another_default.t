# uid_default_set(generator, above => false): the clock was far ahead and is back, and another generator becomes the
# default. No id of uid_next() comes twice: while sessions draw, across kill -9, and where there are ids already. What is
# known to be equal is refused, and what is not known is said: few worker ids, static ones, a datacenter id that is the
# whole node, rows of another database, a fleet that was joined later. Each new default is compared with all earlier ones.
#
# All clocks stand still at instants that the test chooses. uidgen.max_wait is 0, so no call waits for the clock.
use UidgenTest 'preloaded';

skip_with_assertions();

my $hour = 3600;
my $month = 30 * 24 * $hour;

my $node = new_server('another', conf => "autovacuum = off\nuidgen.max_wait = 0\n", clock => 0);

# All ids of uid_next(), by database.
my %ids;

# Returns how many ids came, and the error.
sub draw ($count, $database = 'postgres')
{
	my ($output, $error);
	$node->psql($database, "\\set VERBOSITY verbose\nSELECT uid_next() FROM generate_series(1, $count)",
		on_error_stop => 0, stdout => \$output, stderr => \$error);
	my @drawn = split /\n/, $output;
	push @{ $ids{$database} }, @drawn;
	return (scalar @drawn, $error);
}

sub draws ($what, $database = 'postgres')
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($count, $error) = draw(20, $database);
	return is($count, 20, $what) || diag($error);
}

sub unique ($what, $database = 'postgres')
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(repeated(@{ $ids{$database} }), '', $what);
}

# The message of a statement with its detail and hint; '' if it says nothing.
sub said ($sql, $database = 'postgres')
{
	my $error;
	$node->psql($database, "\\set VERBOSITY verbose\n$sql", on_error_stop => 0, stderr => \$error);
	return $error =~ s/^LOCATION:.*\n?//mgr =~ s/^psql:<stdin>:\d+: //mgr;
}

sub restart ($at)
{
	$node->stop('immediate');
	freeze_clock($node, $at);
	start_node($node);
}

# Ids with a clock that is right, ids from a month ahead, and the clock is back where it was.
sub month_ahead ($at, $database = 'postgres')
{
	freeze_clock($node, $at);
	draws('the clock is right: ids', $database);
	wait_for_node_rows($node, '%', 1, dbname => $database);
	freeze_clock($node, $at + $month);
	draws('a month ahead: ids', $database);
	freeze_clock($node, $at + $hour);
	my ($count, $error) = draw(1, $database);
	is($count, 0, 'the clock is back: no id');
	return $error;
}

# The builtin generator, by the statements of the hint.

my $error = month_ahead(0);
my ($far) = $ids{postgres}[-1];
like($error, qr/ERROR:  55000: generator "uid_default" is ahead of the clock/, 'the error says why');
my ($statements) = $error =~ /HINT:  If the clock is wrong, correct it\. If the clock is right now, 2026-11-21 13:00:00\+00, use another generator: (.*)\n/;
like($statements, qr/^SELECT uid_generator_create\('uid_default_next', preset, .*; GRANT .*; SELECT uid_default_set\('uid_generators.uid_default_next', above => false\);$/,
	'the hint has the statements');
like(said("SELECT uid_generator_create('uid_default_next'); SELECT uid_default_set('uid_generators.uid_default_next')"),
	qr/ERROR:  55000: generator "uid_default_next" cannot start above \d+ yet.*HINT:  A default must start above every id that the former one can have issued, unless you pass above => false\./s,
	'above the old ids it cannot start');
$node->safe_psql('postgres', q{SELECT uid_generator_drop('uid_generators.uid_default_next')});

$node->safe_psql('postgres', "BEGIN; $statements ROLLBACK");
like((draw(1))[1], qr/generator "uid_default" is ahead/, 'a change that is rolled back changes nothing');
is(sqlstate($node, "BEGIN; $statements SELECT uid_next()"), '55000', 'the transaction that changes the default cannot draw from it');

my $loop = background_loop($node, clients => 3, on_error_stop => 0, pace => 0.02);
my $warning = said($statements);
like($warning, qr/^WARNING:  01000: generator "uid_default_next" starts at the clock, below ids of generator "uid_default"$/m,
	'while sessions try to draw: it becomes the default');
like($warning, qr/DETAIL:  From 2026-11-21 13:00:00\+00 to 2026-12-21 12:00:01(\.\d+)?\+00, new ids do not sort after those\. They are unique, because the next \d+ worker ids to be drawn differ from theirs, unless those had another uidgen\.datacenter_id, the server was moved, or worker_node_id_seq was set back since\./,
	'... and says between which times there is no order');
goes_on('... the sessions draw', $loop);
push @{ $ids{postgres} }, map { split /\n/, slurp_file($_) } stop_loop($loop);
draws('... and so does a new one');
my $parts = sub { $node->safe_psql('postgres', "SELECT ($_[0])::text FROM uid_decode($_[1]) d") };
is($parts->('generated_at', $ids{postgres}[-1]), '2026-11-21 13:00:00+00', 'ids have the time of the clock');
isnt($parts->('(datacenter_id, worker_id)', $ids{postgres}[-1]), $parts->('(datacenter_id, worker_id)', $far), '... and another node');
is($parts->('generated_at::date', $far), '2026-12-21', 'the old ids decode as before');
restart(2 * $hour);
draws('after a crash the default is the new one');
restart($month);
draws('... where there are ids already');
unique('no id came twice');

# Nothing is given up where nothing must be.
$node->safe_psql('postgres', "SELECT uid_generator_create('orders')");
is(said(q{SELECT uid_default_set('uid_generators.orders', above => false)}), '', 'a default that is not ahead: the next one starts above it');
draws('... and draws');
ok($ids{postgres}[-1] > $ids{postgres}[-21], '... above');

# What is equal, or not known.

# Makes a database whose default is such a generator, a month ahead.
my $at = 2 * $month;
sub make ($database, $arguments)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	freeze_clock($node, $at);
	$node->safe_psql($database, "CREATE EXTENSION uidgen; SELECT uid_generator_create('first', $arguments); SELECT uid_default_set('uid_generators.first')");
	note($database);
	return month_ahead($at, $database);
}

# The default becomes such a generator.
sub replaced ($database, $name, $arguments)
{
	return said("SELECT uid_generator_create('$name', $arguments) \\g /dev/null\nSELECT uid_default_set('uid_generators.$name', above => false)", $database);
}

my $refused = qr/^ERROR:  55000: generator "\w+" cannot start below ids of generator "first"$/m;
my $unknown = qr/DETAIL:  .*They are unique if the worker ids differ, which is not known\..*HINT:  Choose a worker id N that no id from \d+ on has, and run SELECT uid_generator_alter\('uid_generators\.\w+', worker_policy => 'static', worker_number => N\)/s;

$error = make('layouts', "'sonyflake', sequence_bits => 9, worker_bits => 15, epoch => '2026-01-01'");
my ($copy) = $error =~ /use another generator: (.*)\n/;
my $other = said("SELECT uid_generator_create('other', 'sonyflake', epoch => '2026-06-01'); SELECT uid_default_set('uid_generators.other', above => false)", 'layouts');
like($other, $refused, 'another layout is refused');
like($other, qr/DETAIL:  Its layout is another one.*HINT:  Use a generator of the same layout: SELECT uid_generator_create\('first_next', preset, .* FROM uid_generator WHERE generator = 'uid_generators.first'::regclass;/s,
	'... with a statement that makes one with the same');
like(said($copy, 'layouts'), qr/WARNING:.*They are unique, because the next \d+ worker ids to be drawn differ from theirs/s, 'the statements of the hint make it');
draws('... it draws', 'layouts');

make('statics', "worker_policy => 'static', worker_number => 7");
like(replaced('statics', 'same', "worker_policy => 'static', worker_number => 7"), $refused, 'the same static worker id is refused');
like(replaced('statics', 'drawn', "worker_policy => 'disposable'"), $unknown, 'whether a drawn one differs from a static one is not known');
draws('... it draws', 'statics');
make('given', "worker_policy => 'static', worker_number => 7");
like(replaced('given', 'given', "worker_policy => 'static', worker_number => 8"),
	$unknown, 'another static worker id is a person\'s responsibility');
draws('... it draws', 'given');

# Leaf's layout has no field for a datacenter id, so the id is the node.
$node->safe_psql('postgres', 'CREATE DATABASE whole; ALTER DATABASE whole SET uidgen.datacenter_id = 5');
freeze_clock($node, $at);
$node->safe_psql('whole', "CREATE EXTENSION uidgen; SELECT uid_generator_create('first', 'leaf'); SELECT uid_default_set('uid_generators.first')");
month_ahead($at, 'whole');
like(replaced('whole', 'same', "'leaf'"), $refused, 'a datacenter id that is the whole node: the same node is refused');
like(said(q{SELECT uid_generator_alter('uid_generators.same', worker_policy => 'static', worker_number => 6);
			SELECT uid_default_set('uid_generators.same', above => false)}, 'whole'),
	qr/which is not known/, '... and the statement of the hint helps');
draws('... it draws', 'whole');

# Eight nodes, of which each start takes another one.
make('few', "datacenter_bits => 0, worker_bits => 3, sequence_bits => 5, spread => false");
like(replaced('few', 'second', "datacenter_bits => 0, worker_bits => 3, sequence_bits => 5, spread => false"),
	qr/because the next 7 worker ids to be drawn differ from theirs,/, 'few worker ids: the warning says how many are left');
foreach my $start (1 .. 7)
{
	restart($at + 2 * $hour + $start * 60);
	draws("... start $start", 'few');
}
freeze_clock($node, $at + $month);
draws('... where there are ids already', 'few');
unique('... no id came twice', 'few');
freeze_clock($node, $at + 3 * $month);
draws('... another month ahead', 'few');
freeze_clock($node, $at + $month + $hour);
# That of the last start, which would come after the DELETE otherwise. Others may be lost with their servers.
$node->poll_query_until('few', 'SELECT max(id) = (SELECT last_value FROM worker_node_id_seq) FROM worker_node') or die 'the last row did not come';
$node->safe_psql('few', 'DELETE FROM worker_node');
like(said(q{SELECT uid_generator_create('third', datacenter_bits => 0, worker_bits => 3, sequence_bits => 5, spread => false) \g /dev/null
			SELECT uid_default_set('uid_generators.third', above => false)}, 'few'),
	qr/which is not known/, 'more starts than worker ids, and rows are missing: not known');

# Two nodes. The new default has drawn before, with a node that the old one had two starts ago.
my $two = 'datacenter_bits => 0, worker_bits => 1, sequence_bits => 7, spread => false';
$node->safe_psql('postgres', 'CREATE DATABASE two');
freeze_clock($node, $at);
$node->safe_psql('two', "CREATE EXTENSION uidgen; SELECT uid_generator_create('first', $two); SELECT uid_default_set('uid_generators.first')");
draws('two nodes: one of them', 'two');
wait_for_node_rows($node, '%', 1, dbname => 'two');
restart($at + 60);
draws('... the other', 'two');
$node->safe_psql('two', "SELECT uid_generator_create('second', $two); SELECT uid_next('uid_generators.second')");
wait_for_node_rows($node, '%', 3, dbname => 'two');
month_ahead($at + 60, 'two');
like(said(q{SELECT uid_default_set('uid_generators.second', above => false)}, 'two'), $unknown,
	'... a new default that draws already draws another number, which may be that of the old one');

# A sticky generator comes back to its node, which the old default was given since.
$node->safe_psql('postgres', 'CREATE DATABASE sticky');
freeze_clock($node, $at);
$node->safe_psql('sticky', q{CREATE EXTENSION uidgen; SELECT uid_generator_create('first'), uid_generator_create('second', worker_policy => 'sticky');
	SELECT uid_default_set('uid_generators.first')});
draws('an old default', 'sticky');
my ($worker) = $node->safe_psql('sticky', q{SELECT worker_id FROM uid_decode(uid_next('uid_generators.second'), 'uid_generators.second')});
wait_for_node_rows($node, '%', 2, dbname => 'sticky');
restart($at + 60);
$node->safe_psql('sticky', "SELECT uid_generator_alter('uid_generators.first', worker_policy => 'static', worker_number => $worker)");
month_ahead($at + 60, 'sticky');
wait_for_node_rows($node, '%', 3, dbname => 'sticky');
$node->safe_psql('sticky', q{SELECT uid_generator_alter('uid_generators.first', worker_policy => 'disposable')});
like(said(q{SELECT uid_default_set('uid_generators.second', above => false)}, 'sticky'), $unknown, '... a sticky one that had its node: not known');

freeze_clock($node, $at);
make('restored', 'spread => false');
$node->safe_psql('restored', 'UPDATE worker_node SET database = 1');
like(replaced('restored', 'second', 'spread => false'), $unknown, 'rows of another database: not known');

# An altered generator draws by its new row at once.
draws('a generator that draws', 'given');
freeze_clock($node, $at + 2 * $hour);
$node->safe_psql('given', q{SELECT uid_generator_alter('uid_generators.given', worker_number => 9)});
is($node->safe_psql('given', 'SELECT worker_id FROM uid_decode(uid_next())'), 9, '... has its new worker id at once when it is altered');

# Earlier defaults, a clock that goes back twice, and long names.

my $static = "spread => false, worker_policy => 'static', worker_number";
$error = make('third', "$static => 7");
replaced('third', 'second', "$static => 8");
draws('the second default draws', 'third');
my $create = q{SELECT uid_generator_create('%s', %s) \g /dev/null
SELECT uid_default_set('uid_generators.%s')};
like(said(sprintf($create, 'third', "$static => 7", 'third'), 'third'), $refused, 'a third one with the worker id of the first one is refused');
like(said(sprintf($create, 'wide', 'datacenter_bits => 10, worker_bits => 0', 'wide'), 'third'),
	qr/^WARNING:  01000: generator "wide" starts at the clock, below ids of generator "first"\n.*If that generator was the default, new ids can be equal/ms,
	'... and for one of another layout there is a warning');
draws('... which draws', 'third');
freeze_clock($node, $at + $month);
draws('... where there are ids already', 'third');

# The second default has not drawn when it is chosen. A worker id that the first one had before counts, too.
$node->safe_psql('postgres', 'CREATE DATABASE again');
freeze_clock($node, $at);
$node->safe_psql('again', "CREATE EXTENSION uidgen; SELECT uid_generator_create('first', $static => 7); SELECT uid_default_set('uid_generators.first')");
draws('worker id 7', 'again');
wait_for_node_rows($node, '%', 1, dbname => 'again');
freeze_clock($node, $at + $hour / 2);
$node->safe_psql('again', q{SELECT uid_generator_alter('uid_generators.first', worker_number => 6)});
month_ahead($at + $hour / 2, 'again');
like(replaced('again', 'seven', "$static => 7"), $refused, 'a worker id of earlier ids is refused');
like(replaced('again', 'second', "$static => 8"), $unknown, '... another one is not');
freeze_clock($node, $at);
my ($count, $back) = draw(20, 'again');
is($count, 0, '... it does not begin below the time at which it was chosen');
like($back, qr/generator "second" is ahead of the clock.*SELECT uid_generator_create\('second_next', /s, '... and the hint has the way out');
like(replaced('again', 'fourth', "$static => 6"), $refused, '... which is compared with both');
like(replaced('again', 'third', "$static => 9"), qr/below ids of generator "first".*below ids of generator "second"/s, '... and says so');
draws('... it draws', 'again');
freeze_clock($node, $at + $hour / 2);
draws('... where there are ids already', 'again');
unique('... no id came twice', 'again');

my $long = 'é' x 31 . 'x';
$node->safe_psql('postgres', 'CREATE DATABASE long');
freeze_clock($node, $at);
$node->safe_psql('long', "CREATE EXTENSION uidgen; SELECT uid_generator_create('$long'); SELECT uid_default_set('uid_generators.$long')");
($statements) = month_ahead($at, 'long') =~ /use another generator: (.*)\n/;
like(said($statements, 'long'), qr/WARNING:.*They are unique, because the next/s, 'a name of 63 bytes: the statements of the hint make another generator');
draws('... it draws', 'long');

# A generator that was dropped while it was ahead of the clock.
$node->safe_psql('postgres', 'CREATE DATABASE lost');
freeze_clock($node, $at);
$node->safe_psql('lost', "CREATE EXTENSION uidgen; SELECT uid_generator_create('x'); SELECT uid_next('uid_generators.x')");
freeze_clock($node, $at + $month);
$node->safe_psql('lost', "SELECT uid_next('uid_generators.x')");
($statements) = month_ahead($at, 'lost') =~ /use another generator: (.*)\n/;
$node->safe_psql('lost', "SELECT uid_generator_drop('uid_generators.x'); SELECT uid_generator_create('y')");
like(said($statements, 'lost'), qr/^WARNING:  01000: generator "\w+" starts below ids that this database has drawn\n.*HINT:  Use another worker id/ms,
	'a generator was dropped: the statements of the hint say that its worker ids must differ');
draws('... and make a generator that draws', 'lost');
freeze_clock($node, $at + $month);
draws('... where there are ids already', 'lost');
unique('... no id came twice', 'lost');
freeze_clock($node, $at + $hour);
like(said(q{SELECT uid_next('uid_generators.y')}, 'lost'), qr/WARNING:  01000: generator "y" starts below ids that this database has drawn/,
	'... and a generator that is not the default says so when it first draws');

# Without node bits no generator of the same layout can take over. One with an earlier epoch starts above the ids.
foreach my $policy ("when_back => 'hold'", "when_back => 'error'")
{
	my $nodeless = "datacenter_bits => 0, worker_bits => 0, $policy";
	my $database = $policy =~ /hold/ ? 'nodeless' : 'nodeless2';
	($statements) = make($database, $nodeless) =~ /use another generator: (.*)\n/;
	my ($first) = $ids{$database}[-1];
	my $earlier = qr/HINT:  Use a generator with an earlier epoch: SELECT uid_generator_create\('first_next', preset, epoch => epoch - interval '\d+ s', /;
	like(replaced($database, 'same', $nodeless), qr/$refused.*The layout has no datacenter and worker bits, .*$earlier/ms, 'no node bits: the same layout is refused');
	like(replaced($database, 'other', 'datacenter_bits => 0, worker_bits => 10, sequence_bits => 2'), qr/$refused.*$earlier/ms, '... and so is another one');
	is(said($statements, $database), '', '... the statements of the hint make a generator that starts above');
	draws('... it draws', $database);
	cmp_ok($ids{$database}[-20], '>', $first, '... above');
}

# The other generator is open to the roles that may draw from the first one.
$error = make('granted', 'spread => false');
unlike($error, qr/GRANT/, 'a generator of its owner alone: the hint has no GRANT');
$node->safe_psql('granted', 'CREATE ROLE "a clerk"; GRANT USAGE ON SEQUENCE uid_generators.first TO "a clerk"');
($statements) = (draw(1, 'granted'))[1] =~ /use another generator: (.*)\n/;
like($statements, qr/; GRANT USAGE ON SEQUENCE uid_generators\.first_next TO "a clerk"; SELECT/, 'a generator that is granted to a role: the hint grants to that role alone');
like(said($statements, 'granted'), qr/^WARNING:  01000: generator "first_next" starts at the clock/, '... and the statements run');

# A layout whose node is a datacenter id.
make('wide', "datacenter_bits => 10, worker_bits => 0, datacenter_id => 5");
like(replaced('wide', 'same', "datacenter_bits => 10, worker_bits => 0, datacenter_id => 5"),
	qr/$refused.*HINT:  Choose a datacenter id N that no id from \d+ on has, and run SELECT uid_generator_alter\('uid_generators.same', datacenter_id => N\)/ms,
	'no worker bits: the hint asks for a datacenter id');
like(said(q{SELECT uid_generator_alter('uid_generators.same', datacenter_id => 6);
			SELECT uid_default_set('uid_generators.same', above => false)}, 'wide'),
	qr/which is not known/, '... and the statement helps');
draws('... it draws', 'wide');

# The server was moved: the same numbers lead to other nodes.
make('moved', "worker_bits => 4");
$node->stop;
my $elsewhere = $node->data_dir . '.elsewhere';
rename $node->data_dir, $elsewhere or die "could not move the data directory: $!";
symlink $elsewhere, $node->data_dir or die "could not make a link: $!";
start_node($node);
like(replaced('moved', 'second', "worker_bits => 4"), $unknown, 'a server in another directory: nothing is known of the nodes');

# A generator that is dropped while its ids are compared, in a statement that waits meanwhile.
{
	my $layout = "epoch => '2026-01-01 00:00:00+00', tick_us => 1000, time_bits => 41, datacenter_bits => 0, worker_bits => 0, sequence_bits => 2";
	sql("SELECT uid_generator_create('far', 'snowflake', $layout, lease_ms => 1000, max_ahead_ms => 600000), uid_generator_create('near', 'snowflake', $layout)");
	sql('SELECT uid_next_array($$uid_generators.far$$, 400000)');
	my ($holder, $chooser) = map { hold_open($node) } 1, 2;
	$holder->query_safe('BEGIN; LOCK TABLE worker_node');
	send_query($chooser, q{SELECT uid_default_set('uid_generators.near')});
	$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'worker_node'::regclass}) or die 'does not wait';
	sql(q{SELECT uid_generator_drop('uid_generators.far')});
	$holder->query_safe('COMMIT');
	like((finish_query($chooser))[1], qr/ERROR:  generator "near" cannot start below ids of generator/, 'a generator that is dropped meanwhile: an error');
	is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%uid_generators.near%' AND pid <> pg_backend_pid()}), 1, '... and the session goes on');
	$_->quit foreach $holder, $chooser;
}

# Ids that were drawn before the server joined a fleet: the registry does not know all of their nodes.

make('joins', 'spread => false');
my $registry = make_registry(new_server('registry', conf => "autovacuum = off\n", clock => $at + $hour));
$registry->safe_psql('postgres', 'UPDATE uid_fleet_state SET term = 1'); # the registrar has the machine's clock
$node->append_conf('postgresql.conf', "uidgen.max_wait = '1min'\nuidgen.registry = '" . registry_line($registry) . "'\n");
$node->restart;
like(replaced('joins', 'second', 'spread => false'),
	qr/They are unique if this server was in its fleet when those were drawn, .*HINT:  Choose a worker id N that no id from/s,
	'a fleet that was joined later: only a person knows');
draws('... the registry grants the new default a node', 'joins');
is($node->safe_psql('joins', q{SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.second'::regclass}), 'registry', '... of its own');

done_testing();
