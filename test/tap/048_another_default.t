# The clock was far ahead and is back: the statement in the hint of the error makes another generator the default, which
# draws at once. Its ids are above all earlier ones, whatever the nodes, and have the clock's time: while sessions draw,
# across kill -9, where the clock goes back twice, and in layouts without a datacenter or worker id. And a default above
# which no other one of its layout can start is refused.
#
# All clocks stand still at instants that the test chooses. uidgen.max_wait is 0, so no call waits for the clock.
use UidgenTest 'preloaded';
use Clients;
use Clock;
use Installation;

skip_with_assertions();

my $hour = 3600;
my $month = 30 * 24 * $hour;

my $node = new_server('another', conf => "autovacuum = off\nuidgen.max_wait = 0\n", clock => 0);

# All ids of uid_next(), by database, in the order of their transactions.
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

sub rise ($what, $database = 'postgres')
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @ids = @{ $ids{$database} };
	return is(scalar(grep { $ids[$_] <= $ids[ $_ - 1 ] } 1 .. $#ids), 0, $what);
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

# Ids with a clock that is right, ids from a month ahead, and the clock is back. Returns the error.
sub month_ahead ($at, $database = 'postgres')
{
	freeze_clock($node, $at);
	draws('the clock is right: ids', $database);
	freeze_clock($node, $at + $month);
	draws('a month ahead: ids', $database);
	freeze_clock($node, $at + $hour);
	my ($count, $error) = draw(1, $database);
	is($count, 0, 'the clock is back: no id');
	return $error;
}

# The builtin generator.

my $error = month_ahead(0);
my ($far) = $ids{postgres}[-1];
like($error, qr/ERROR:  55000: generator "uid_default" is ahead of the clock/, 'the error says why');
my ($statement) = $error =~ /HINT:  If the clock is wrong, correct it\. If the clock is right now, 2026-11-21 13:00:00\+00, run (.*)\n/;
like($statement, qr/^SELECT (\w+)\.uid_default_set\(\g1\.uid_generator_create\('uid_default_next', template => 'uid_generators.uid_default', epoch => '2025-12-\d\d [^']*'\)\);$/,
	'the hint has one statement');
like(said("SELECT uid_generator_create('uid_default_next'); SELECT uid_default_set('uid_generators.uid_default_next')"),
	qr/ERROR:  55000: generator "uid_default_next" cannot start above \d+ yet.*HINT:  Use a layout with more bits, an earlier epoch or shorter ticks/s,
	'a generator with the same epoch cannot become the default');
$node->safe_psql('postgres', q{SELECT uid_generator_drop('uid_generators.uid_default_next')});

$node->safe_psql('postgres', "SET search_path = pg_catalog; BEGIN; $statement ROLLBACK"); # pasted into any session
like((draw(1))[1], qr/generator "uid_default" is ahead/, 'a change that is rolled back changes nothing');
is(sqlstate($node, "BEGIN; $statement SELECT uid_next()"), '55000', 'the transaction that changes the default cannot draw from it');

my $loop = background_loop($node, clients => 3, on_error_stop => 0, pace => 0.02);
is(said($statement), '', 'while sessions try to draw: it becomes the default, without a warning');
goes_on('... the sessions draw', $loop);
my @drawn = map { split /\n/, slurp_file($_) } stop_loop($loop);
is(repeated(@drawn, @{ $ids{postgres} }), '', '... no id comes twice');
cmp_ok((sort { $a <=> $b } @drawn)[0], '>', $far, '... and all are above');
draws('... a new session draws');
my $parts = sub ($what, $id, $generator = 'NULL') { $node->safe_psql('postgres', "SELECT $what FROM uid_decode($id, $generator)") };
cmp_ok(abs($parts->(q{extract(epoch FROM generated_at - '2026-11-21 13:00+00')}, $ids{postgres}[-1])), '<', 4, 'ids have the time of the clock');
is($parts->('generated_at::date', $far, "'uid_generators.uid_default'"), '2026-12-21', 'the old ids decode by the old generator');
$node->safe_psql('postgres', 'CREATE ROLE clerk');
is($node->safe_psql('postgres', 'SET ROLE clerk; SELECT uid_next() > 0'), 't', 'every role draws from the new default, as from the old one');
restart(2 * $hour);
draws('after a crash the default is the new one');
restart($month);
draws('... a month later, too');
rise('all ids rise');

# Nothing is given up where nothing must be.
$node->safe_psql('postgres', "SELECT uid_generator_create('orders', template => 'uid_generators.uid_default_next')");
is(said(q{SELECT uid_default_set('uid_generators.orders')}), '', 'a default that is not ahead: one of its layout takes over at once');
draws('... and draws');
rise('... above');

# Other generators, each as the default of a database, a month ahead. Their layouts have no worker id, or a given one, or
# are cached, or refuse to wait; a second step of the clock comes before the new one has drawn, or after it.

my $long = 'é' x 31 . 'x';
my $at = 2 * $month;
foreach my $case (
	[ 'nodeless', 'first', 'datacenter_bits => 0, worker_bits => 0' ],
	[ 'refuses', 'first', "'twitter'" ],
	[ 'seconds', 'first', "'baidu'" ],
	[ 'fixed', 'first', "worker_policy => 'static', worker_number => 7, datacenter_id => 3, lease_ms => 500" ],
	[ 'cached', 'first', "'baidu_cached'" ],
	[ 'long', $long, "'sonyflake'" ])
{
	my ($database, $name, $arguments) = @$case;
	note($database);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	freeze_clock($node, $at);
	$node->safe_psql($database, "CREATE EXTENSION uidgen; SELECT uid_generator_create('$name', $arguments); SELECT uid_default_set('uid_generators.$name')");
	my $fields = "SELECT to_jsonb(g) - '{generator,epoch,created}'::text[] FROM uid_generator g WHERE is_default";
	my $before = $node->safe_psql($database, $fields);
	foreach my $step (0, 1)
	{
		my $from = $at + $step * 2 * $hour;
		($statement) = month_ahead($from, $database) =~ /If the clock is right now, [^,]*, run (.*)\n/;
		is(said($statement, $database), '', 'the statement of the hint says nothing more');
		freeze_clock($node, $from + $hour + 4); # a policy that refuses may need the seconds by which the epoch is early
		draws('... makes a generator that draws', $database);
		rise('... above', $database);
		is($node->safe_psql($database, $fields), $before, '... like the former one, with its policies');
	}
}
draws('the clock goes back', 'fixed');
is($node->safe_psql('fixed', q{SELECT datacenter_id, worker_id FROM uid_decode(uid_next())}), '3|7', 'a generator with given ids keeps them');

# A generator that is not the default.
$node->safe_psql('nodeless', "SELECT uid_generator_create('orders')");
freeze_clock($node, $at);
$node->safe_psql('nodeless', "SELECT uid_next('uid_generators.orders')");
freeze_clock($node, $at + $month);
my $last = $node->safe_psql('nodeless', "SELECT uid_next('uid_generators.orders')");
freeze_clock($node, $at + $hour);
my ($create, $next) = said("SELECT uid_next('uid_generators.orders')", 'nodeless') =~ /, run (SELECT \w+\.uid_generator_create\(.*\);) and draw with ([a-z]+\.uid_next\('uid_generators.orders_next'\))\.\n/;
is($node->safe_psql('nodeless', "$create SELECT $next > $last"), "uid_generators.orders_next\nt", 'another generator: the hint has a statement, too');

done_testing();
