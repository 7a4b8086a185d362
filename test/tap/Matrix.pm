# Ways to draw × what became of the transaction × what then happens to the server. What was given before is never given
# again, and where P2 promises an order, the next value is above it. 001_matrix.t and 003_standbys.t have what happens.
#
# A line of a table is a way or a situation. Each way has an object of its own in each situation, so that no other one's record
# hides that its own is missing. The clock stands still, so the clock cannot be what keeps ids apart, and whatever flushes on
# its own is postponed.
#
#   my $matrix = Matrix->new('name', conf => '...', level => 'off', situations => [...]);   # and what new_server() takes
#   $matrix->draw_all(ways => [...], situations => [...]);                                  # without them all draw
#   $matrix->judge('a crash', node => $standby, ...);                                       # an assertion: all draw again
package Matrix;

use v5.36;

use Installation;
use IO::Select;
use Test::More;
use UidgenTest;
use Ways;

# Of each way: which values come next (1: above, -1: below), what makes its object, the statement that draws, and its
# situations, if they are not all. OBJ is the object's name. A parallel worker may read the real clock before it finds the
# one that stands still, so generators draw in none.
my $make_generator = q{SELECT uid_generator_create('OBJ', max_ahead_ms => 600000)};
my $make_ring = q{SELECT uid_generator_create('OBJ', mode => 'cached', spread => false, boost_power => 0, max_ahead_ms => 600000)};
my $make_ranges = q{SELECT segment_create('OBJ', 1, 100, 800)};
my ($generator, $name, $sequence) = (q{'uid_generators.OBJ'}, q{'OBJ'}, q{'OBJ'::regclass});
my $no_worker = qr/^(?!made_by_worker)/;
my $in_a_table = qr/^(?:first|again|committed|rolled_back|savepoint|kept)$/;
my %ways = (
	id => [ 1, $make_generator, Ways::draw('id', $generator), $no_worker ],
	ids => [ 1, $make_generator, Ways::draw('id_array', $generator, 5000), $no_worker ],
	ring => [ 1, $make_ring, Ways::draw('id_array', $generator, 5000), $no_worker ], # more than it holds
	raised => [ 1, $make_generator, Ways::draw('raised', $generator, 1500), $no_worker ],
	value => [ 1, q{SELECT segment_create('OBJ')}, Ways::draw('value', $name) ],
	values => [ 1, $make_ranges, Ways::draw('values', $name, 250) ], # to a range reserved ahead
	block => [ 1, q{SELECT segment_create('OBJ')}, Ways::draw('block', $name, 7) ],
	plain => [ 1, 'CREATE SEQUENCE OBJ', Ways::draw('value', $sequence) ],
	down => [ -1, 'CREATE SEQUENCE OBJ INCREMENT -3', Ways::draw('value_array', $sequence, 20) ],
	serial => [ 1, 'CREATE TABLE of_OBJ (v bigserial); ALTER SEQUENCE of_OBJ_v_seq RENAME TO OBJ', Ways::draw('value', $sequence) ],
	# nextval moves the page without a record for up to 32 values. Values of its own are safe in rows that are committed only.
	mixed => [ 1, 'CREATE SEQUENCE OBJ', q{SELECT nextval('OBJ') UNION ALL SELECT segment_next('OBJ'::regclass) UNION ALL SELECT nextval('OBJ')}, qr/^(?:committed|prepared)$/ ],
	# It has logged 0x108 and stands at 0xff; the range up to 0x1ff changes one byte.
	byte => [ 1, q{SELECT segment_create('OBJ', 1, 256, 256); SELECT count(nextval('uid_segments.OBJ')) FROM generate_series(1, 255)},
		Ways::draw('values', $name, 20), qr/first|committed/ ],
	tabled => [ 1, q{INSERT INTO t_sequence VALUES ('OBJ', 1, 10)}, Ways::draw('t_sequence', $name, 1), $in_a_table ],
	leaf => [ 1, q{INSERT INTO leaf_alloc (biz_tag, step) VALUES ('OBJ', 10)}, Ways::draw('leaf', $name, 2), $in_a_table ],
	# A node uses the block that the row has shown as soon as its COMMIT returns, so the row must not come back.
	shown => [ 1, q{INSERT INTO t_sequence VALUES ('OBJ', 1, 10)}, Ways::draw('shown', $name, 1), qr/^(?:committed|taken)$/ ],
	# Ranges in every state: of 100 values, then 200, 400 and 800.
	map { ("range$_" => [ 1, $make_ranges, Ways::draw('values', $name, $_), qr/^first$/ ]) } 1, 10, 11, 99, 100, 101, 777, 2500);

# A session for each way and situation, which stays open. After `--` it goes on when the standby, if there is one, no longer
# answers; then nothing is a value that comes only when the wait is canceled.
my %situations = (
	first => '-- BEGIN READ ONLY; DRAW',
	again => 'DRAW -- BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; DRAW',
	committed => 'INSERT',
	rolled_back => 'BEGIN; INSERT; ROLLBACK',
	prepared => q{BEGIN; INSERT; PREPARE TRANSACTION 'OBJ'},
	savepoint => 'BEGIN; DRAW; SAVEPOINT s; DRAW; ROLLBACK TO s; DRAW',
	kept => 'BEGIN; SAVEPOINT s; DRAW; ROLLBACK TO s',
	altered => 'DRAW; BEGIN; ALTER SEQUENCE RELATION RESTART; REFUSED',
	undone => 'BEGIN; DRAW; SAVEPOINT s; ALTER SEQUENCE RELATION CACHE 10; ROLLBACK TO s; DRAW; COMMIT; DRAW',
	rewritten => 'DRAW; ALTER SEQUENCE RELATION CACHE 10; DRAW',
	# A commit that nobody waits for: whoever has drawn afterwards has waited for it.
	made => 'BEGIN; MAKE; UNSEEN -- SET synchronous_commit = LESS; COMMIT; OTHER',
	made_by_worker => 'BEGIN; MAKE; SET LOCAL ' . parallel_setting() . '; UNSEEN -- SET synchronous_commit = LESS; COMMIT; OTHER',
	moved => 'DRAW; BEGIN; ALTER SEQUENCE RELATION CACHE 20; ALLOWED -- SET synchronous_commit = LESS; COMMIT; OTHER',
	moved_prepared => q{DRAW; BEGIN; ALTER SEQUENCE RELATION CACHE 20; ALLOWED; PREPARE TRANSACTION 'OBJ'}
	  . q{ -- SET synchronous_commit = LESS; COMMIT PREPARED 'OBJ'; OTHER},
	# A block whose commit returns, however little it asks for.
	taken => '-- SET synchronous_commit = LESS; DRAW');

sub new ($class, $name, %opts)
{
	my @situations = sort @{ delete $opts{situations} // [ keys %situations ] };
	my $self = bless {
		level => delete $opts{level} // 'off', # of commits that are not waited for
		situations => \@situations,
		last => {}, sessions => [], wrong => [], round => 0,
		is_alone => 0 }, $class;                # whether a synchronous standby does not answer
	# A page that is evicted would flush, too.
	my $conf = quiet_conf() . "shared_buffers = 64MB\nmax_connections = 250\nmax_prepared_transactions = 200\nuidgen.max_wait = 200ms\n" . (delete $opts{conf} // '');
	my $node = $self->{node} = UidgenTest::new_server($name, conf => $conf, clock => 0, %opts);
	my @made = map { my $situation = $_; map { fill('MAKE', $_, "${_}_$situation") } ways_in($situation) } grep { !/^made/ } @situations;
	$node->safe_psql('postgres', join '; ', 'CREATE TABLE rows (of text, v bigint)', 'SELECT uid_t_sequence_create(), uid_leaf_alloc_create()', @made);
	return $self;
}

sub node ($self)
{
	return $self->{node};
}

sub ways_in ($situation, @only)
{
	return grep { $situation =~ ($ways{$_}[3] // qr/./) } @only ? @only : sort keys %ways;
}

sub name_of ($self, $way, $situation)
{
	return $situation =~ /^made/ ? "${way}_${situation}_$self->{round}" : "${way}_$situation";
}

sub relation ($way, $name)
{
	return $ways{$way}[1] =~ /_generator_/ ? "uid_generators.$name" : $ways{$way}[1] =~ /segment_create/ ? "uid_segments.$name" : $name;
}

# A script of a situation, for one way.
sub fill ($script, $way, $name, $level = 'off')
{
	my (undef, $make, $draw) = @{ $ways{$way} };
	my ($with, $select) = $draw =~ /^(WITH .*\) )?(SELECT .*)$/;
	$with //= '';
	my $is_refused = $way =~ /^(?:id|ids|ring|raised|block)$/; # what a rollback would bring back
	my %words = (
		INSERT => "${with}INSERT INTO rows SELECT 'OBJ', v FROM ($select) d(v) RETURNING v",
		UNSEEN => "SELECT FROM ($draw) AS d",
		ALLOWED => $is_refused ? 'SELECT' : "SELECT FROM ($draw) AS d",
		DRAW => $draw,
		MAKE => $make =~ s/^SELECT (.*)/SELECT FROM $1/r,
		RELATION => relation($way, $name),
		REFUSED => $is_refused ? 'SAVEPOINT refused; \\refused' : 'SELECT',
		LESS => $level);
	$script =~ s/ READ ONLY// if $with ne '';
	$script =~ s/\b(INSERT|UNSEEN|ALLOWED|DRAW|MAKE|RELATION|REFUSED|LESS)\b/$words{$1}/g;
	return $script =~ s/OBJ/$name/gr;
}

# Each value is above all that came before it.
sub receive ($self, $name, @values)
{
	my ($way) = split /_/, $name;
	my $sign = $ways{$way}[0];
	my $last = $self->{last};
	my @bad;
	foreach my $value (@values)
	{
		if (!defined $last->{$name} || $sign * $value > $last->{$name}) { $last->{$name} = $sign * $value }
		else { push @bad, "$value after " . $sign * $last->{$name} }
	}
	push @{ $self->{wrong} }, "$name: $bad[0]" if @bad;
}

# Which values a session gets. If it waits for the standby, the wait is canceled.
sub run ($self, $session, $script, $name, $way)
{
	my $is_refused = $script =~ s/; \\refused$//;
	foreach my $statement (split /; /, $script)
	{
		send_query($session, $statement);
		$self->node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $session->{pid} AND wait_event = 'SyncRep'")
		  until !$self->{is_alone} || IO::Select->new($session->{socket})->can_read(0.02);
		my ($output, $error) = finish_query($session);
		push @{ $self->{wrong} }, "$name: $error" if $error =~ /ERROR/ && $error !~ /canceling statement/;
		$self->receive($name, grep { /^-?\d+$/ } split /\n/, $output);
	}
	push @{ $self->{wrong} }, "$name: draws from a sequence that it has altered"
	  if $is_refused && sqlstate($session, fill('DRAW', $way, $name)) ne '55000';
}

sub open_session ($self)
{
	my $session = hold_open($self->node);
	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

sub end_sessions ($self)
{
	$_->quit foreach splice @{ $self->{sessions} };
}

sub draw_all ($self, %opts)
{
	my @situations = @{ $opts{situations} // $self->{situations} };
	my @only = @{ $opts{ways} // [] };
	$self->{round}++;
	$self->end_sessions;
	my @later;
	foreach my $situation (@situations)
	{
		foreach my $way (ways_in($situation, @only))
		{
			my $name = $self->name_of($way, $situation);
			my ($now, $later) = map { fill($_, $way, $name, $self->{level}) } split /-- /, $situations{$situation};
			push @{ $self->{sessions} }, my $session = $self->open_session;
			$self->run($session, $now, $name, $way);
			push @later, [ $session, $later, $name, $way ] if defined $later;
		}
	}
	my $locks = $self->node->safe_psql('postgres', q{SELECT count(DISTINCT relation) FROM pg_locks WHERE mode = 'RowExclusiveLock' AND relation::regclass::text ~ '_kept$'});
	push @{ $self->{wrong} }, "$locks locks have survived ROLLBACK TO" if $locks != (grep { $_ eq 'kept' } @situations) * ways_in('kept', @only);
	$opts{then}->() if $opts{then};
	# Nothing that flushes comes after what must be durable without a commit, nor after a commit that does not wait.
	foreach ((grep { $_->[1] !~ /OTHER/ } @later), grep { $_->[1] =~ /OTHER/ } @later)
	{
		my ($session, $later, $name, $way) = @$_;
		my $has_other = $later =~ s/; OTHER$//;
		$self->run($session, $later, $name, $way);
		next unless $has_other;
		push @{ $self->{sessions} }, my $other = $self->open_session;
		$self->run($other, fill('BEGIN READ ONLY; DRAW', $way, $name), $name, $way);
	}
}

# The last value that each segment has reserved, which is not further than two ranges: of 800, or of a sequence's 1000 that
# may have doubled. Without those that an open transaction may have altered, and those that nextval moves.
sub reserved ($self, $database = 'postgres')
{
	my %end;
	foreach (split /\n/, $self->node->safe_psql($database, q{SELECT sequencename, increment_by, last_value FROM pg_sequences WHERE sequencename ~ '_(?:first|again|committed|rolled_back)$' AND schemaname <> 'uid_generators'}))
	{
		my ($name, $increment, $end) = split /\|/;
		my ($way) = split /_/, $name;
		my $last = $self->{last}{$name};
		next if $way eq 'mixed' || !defined $last;
		my $count = abs($increment);
		my $most = $way =~ /^(?:values|range)/ ? 1600 : 3000;
		$end{$name} = $ways{$way}[0] * $end + $count;
		push @{ $self->{wrong} }, "$name has reserved $end, and has drawn $last" if $ways{$way}[0] * $end > $last + $most * $count;
	}
	return \%end;
}

# Everything draws once more, on the server that there is now. If it has lost commits, only what is in its rows counts.
# `reserved`: no more is lost than was reserved before. `database`: a copy, which is another history.
sub judge ($self, $what, %opts)
{
	my $session = hold_open($opts{node} // $self->node, dbname => $opts{database} // 'postgres');
	my $lines = sub ($sql) { split /\n/, $session->query_safe($sql) };
	$session->query_safe($_) foreach $lines->(q{SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts WHERE database = current_database()});
	my %is_there = map { $_ => 1 } $lines->(q{SELECT relname FROM pg_class WHERE relkind = 'S'});
	my %is_judged = map { $_ => 1 } @{ $opts{ways} // [ keys %ways ] };
	my @names = grep { $is_judged{ s/_.*//r } } sort keys %{ $self->{last} };
	if ($opts{survivors})
	{
		$self->{last} = {};
		$self->receive(split /\|/) foreach $lines->('SELECT of, v FROM rows ORDER BY of, CASE WHEN of ~ $$down$$ THEN -v ELSE v END');
	}
	foreach my $name (@names)
	{
		my ($way) = split /_/, $name;
		if ($is_there{$name})
		{
			my @values = $lines->(fill('DRAW', $way, $name));
			$self->receive($name, @values);
			my $end = $opts{reserved} && $opts{reserved}{$name};
			push @{ $self->{wrong} }, "$name: $values[0] beyond what was reserved" if defined $end && $ways{$way}[0] * $values[0] > $end;
		}
		elsif (!$opts{survivors} && $self->{last}{$name}) { push @{ $self->{wrong} }, "$name is gone" }
	}
	$session->quit;
	is(join("\n", splice @{ $self->{wrong} }), '', $what);
}

1;
