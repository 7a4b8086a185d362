# The matrix on one server: crashes, stops, copies and kills (003_standbys.t has the loss of a primary).
use UidgenTest;
use Clients;
use Clock;
use Matrix;
use Trouble;

my $matrix = Matrix->new('alone');
my $node = $matrix->node;
my @resting = grep { !/made|moved|taken/ } @{ $matrix->{situations} };
# The default generator's max_ahead is so small that two lives use it up at one instant. A lease is not resumed, also then.
foreach my $case ([ 'crash', '00000' ], [ 'crash', '55000' ], [ 'clean stop', '55000' ])
{
	my ($fault, $state) = @$case;
	# Before all others, because the node writer may commit after the first draw, and its commit flushes what they have written.
	sqlstate($node, 'SELECT uid_next()');
	$matrix->draw_all(situations => \@resting);
	my $reserved = $matrix->reserved;
	if ($fault eq 'crash') { crash($node) }
	else
	{
		$matrix->end_sessions;
		$node->stop('fast');
		start_node($node);
	}
	$matrix->judge($fault, reserved => $reserved);
	is(sqlstate($node, 'SELECT uid_next()'), $state, "... the default generator, after one more life at one instant: $state");
}

# Nothing stays connected: a copy right after use goes through, and so does a copy of the copy. A dump has what is reserved, too.
sub judge_copy ($what, $database, $from, $copy)
{
	my $reserved = $matrix->reserved($from);
	$copy->();
	$matrix->judge($what, database => $database, reserved => $reserved);
}

{
	local $matrix->{last} = { %{ $matrix->{last} } }; # copies are another history
	judge_copy('a copy of the database', 'copied', 'postgres', sub { sql('CREATE DATABASE copied TEMPLATE postgres', 'template1') });
	judge_copy('a copy of the copy', 'again', 'copied', sub { sql('CREATE DATABASE again TEMPLATE copied'); sql('DROP DATABASE copied') });
	my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
	judge_copy('a restored dump', 'restored', 'again', sub {
			$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('again') ], 'pg_dump');
			sql('CREATE DATABASE restored');
			$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'a restore');
		});
	sql("DROP DATABASE $_") foreach 'again', 'restored';
}

# What one flushes makes others durable, too, and a commit that nobody waits for wakes the process that flushes it. So each of
# these has a crash of its own, at once.
foreach my $case ((map { my $way = $_; map { [ $way, $_ ] } 'made', 'made_by_worker', 'moved' } 'id', 'value', 'plain', 'serial'),
	[ 'shown', 'taken' ], map { [ $_, 'first' ] } 'block', 'leaf', 'raised', 'tabled')
{
	my ($way, $situation) = @$case;
	next unless Matrix::ways_in($situation, $way);
	$matrix->draw_all(ways => [$way], situations => [$situation]);
	crash($node);
	$matrix->judge("$way, $situation: a crash at once", ways => [$way]);
}
freeze_clock($node, 60);
is(sqlstate($node, 'SELECT uid_next()'), '00000', 'the default generator draws again when the clock goes on');
$node->stop;

# ---------------------------------------------------------------------------------------------------------------
# Processes are killed while clients draw in all ways. Service resumes by itself.
# ---------------------------------------------------------------------------------------------------------------

set_clock($node, '+0');
start_node($node);
# After a crash it makes slots one after another.
sql($node, "SELECT count(segment_create('s' || i)) FROM generate_series(1, 300) AS i");
my $slots = q{SELECT 'value s' || i || ' ' || segment_next('s' || i) FROM (SELECT 1 + (random() * 299)::int AS i FROM generate_series(1, 30) OFFSET 0) AS n};
my (%received, @wrong);

sub pid_of ($type)
{
	my @found;
	poll_until($type, sub {
			@found = $type eq 'refiller' ? background_pids($node, $type) : split /\n/,
			  sql($node, 'SELECT pid FROM pg_stat_activity WHERE ' . ($type eq 'maker of slots' ? q{query LIKE '%random()%'} : "backend_type = '$type'") . ' AND pid <> pg_backend_pid() ORDER BY pid');
			return @found > 0 }) or die "no $type";
	return $found[0];
}

sub kill_one ($signal, $process)
{
	my %loops = map { $_ => background_loop($node, clients => 1, sql => Matrix::fill('DRAW; BEGIN; DRAW; COMMIT; BEGIN READ ONLY; DRAW; ROLLBACK', $_, "${_}_again") =~ s/\b\d000\b/20/gr) } qw(id ids ring value values plain down);
	$loops{slots} = background_loop($node, sql => $slots);
	my @logs = map { @{ $_->{logs} } } values %loops;
	poll_until('every client has received something', sub { !grep { !-s } @logs }) or BAIL_OUT('no load');
	my ($offset, $pid) = (-s $node->logfile, pid_of($process));
	my %before = map { $_ => sql($node, Matrix::fill('DRAW', $_, "${_}_again") . ' LIMIT 1') } qw(id ring value plain);
	kill $signal, $pid or die "could not send SIG$signal to $pid: $!";
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset) if $signal eq 'KILL';
	poll_until("process $pid is gone", sub { !kill 0, $pid });
	wait_for_service($node);
	foreach my $way (sort keys %before)
	{
		my $now = sql($node, Matrix::fill('DRAW', $way, "${way}_again") . ' LIMIT 1');
		push @wrong, "$way: $now after $before{$way}" if $now <= $before{$way};
	}
	stop_loop(values %loops);
	foreach my $way (keys %loops)
	{
		my @values = map { split /\n/, slurp_file($_) } @{ $loops{$way}{logs} };
		push @wrong, map { "$way: $_ comes again" } splice @{ [ grep { $received{"$way $_"}++ } @values ] }, 0, 3;
	}
	is(join("\n", splice @wrong), '', "SIG$signal to a $process, under load");
}

kill_one(@$_) foreach [ 'KILL', 'client backend' ], [ 'TERM', 'client backend' ], [ 'KILL', 'walwriter' ], [ 'KILL', 'checkpointer' ],
  [ 'TERM', 'walwriter' ], [ 'KILL', 'refiller' ], map { [ 'KILL', 'maker of slots' ] } 1 .. 3;
# There is a slot for what was drawn from since the last crash, and no other.
is(sql($node, "SELECT count(segment_next('s' || i)) FROM generate_series(1, 300) AS i; SELECT generators, segments FROM uid_stat_server"), "300\n2|302", 'no slot is lost');
ok(poll_until('a refiller', sub { sql($node, Matrix::fill('DRAW', 'ring', 'ring_again')); background_pids($node, 'refiller') == 1 }), 'there is one refiller again');
$node->stop;

done_testing();
