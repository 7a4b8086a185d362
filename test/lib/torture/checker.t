# Does the checker find what it should, and nothing else? checker.t PROGRAM, in the source copy. Each case is a log that
# is written by hand. Beside each finding stands the nearest log that is none.
use v5.36;

use File::Temp;
use Test::More;

my ($program) = @ARGV;

# Times are seconds since the round began. An instant of the real clock is a million seconds after that.
my $begin_ns = 5_000_000_000_000;
my $real_ns = 1_000_000_000_000_000;
my $epoch_us = ($begin_ns + $real_ns) / 1000;

sub ns ($seconds)
{
	return int($begin_ns + $seconds * 1e9 + 0.5);
}

# Of a generator with ticks of a millisecond, and so many bits below them.
my $shift = 22;

sub id_at ($seconds, $low = 1)
{
	return (int($seconds * 1000 + 0.5) << $shift) + $low;
}

# ---------------------------------------------------------------------------------------------------------------
# The streams of all cases: order, sign, least, scope, bits that order does not count, and more of ids.
# ---------------------------------------------------------------------------------------------------------------

my @streams = (
	[ 'rising', 2, 1, 1000, 'history', 0 ],
	[ 'falling', 2, -1, -1000, 'history', 0 ],
	[ 'of_session', 1, 1, 1, 'history', 0 ],
	[ 'any', 0, 1, 1, 'history', 0 ],
	[ 'of_connection', 0, 1, 1, 'connection', 0 ],
	[ 'another', 0, 1, 1, 'history', 0 ],
	[ 'ids', 2, 1, 1, 'history', 0, { clock => 'one' } ],
	[ 'ids_by_tick', 2, 1, 1, 'history', $shift, { clock => 'one' } ],
	[ 'cached', 0, 1, 1, 'history', 0, { clock => 'one', behind => 1, in_background => 1 } ],
	[ 'static', 0, 1, 1, 'history', 0, { clock => 'one', fields => '12:5:7,23' } ],
	[ 'moved', 0, 1, 1, 'history', 0, { clock => 'one', fields => '0:12:1 12:5:7+' } ],
	[ 'made_anew', 1, 1, 1, 'connection', 0, { clock => 'one' } ],
	[ 'of_other_server', 2, 1, 1, 'history', 0, { clock => 'two' } ]);
my %number = map { $streams[$_][0] => $_ } 0 .. $#streams;

sub line_of_stream ($name, $order, $sign, $least, $scope, $loose_bits, $ids = undef)
{
	my $greatest = $sign > 0 ? '9000000000000000000' : -1;
	my @ids = $ids ? ($epoch_us, 1000, $shift, 2_000_000, ($ids->{behind} // 0) * 1e6, $ids->{in_background} // 0,
		$ids->{clock}, $ids->{fields} // '-') : ((0) x 6, '-', '-');
	return join("\t", $name, $order, $sign, $least, $greatest, $scope, $loose_bits, @ids) . "\n";
}

# ---------------------------------------------------------------------------------------------------------------
# Cases.
# ---------------------------------------------------------------------------------------------------------------

my %flags = (unordered => 1, loose => 2, earlier => 4, block => 8, scarce => 16, inserted => 32);

# A record of log.hpp. What a session drew: stream => [values], at => when it was sent, for => how long it took.
sub drew ($stream, $values, %opts)
{
	my $flags = 0;
	$flags |= $flags{$_} foreach split / /, $opts{flags} // '';
	my $at = $opts{at} // 1;
	return pack('L7 a8 x4 q3 q*', 0x54524f54, $number{$stream}, 0, $opts{history} // 0, $opts{connection} // 1, $flags,
		scalar @$values, $opts{error} // '00000', ns($at), ns($at + ($opts{for} // 0.01)), $real_ns, @$values);
}

# In force from $from to $to; over, as far as it stalls, at $over.
sub fault ($from, $to, %opts)
{
	return join("\t", ns($from), ns($to), $opts{name} // 'fault', '', $opts{explains} // '-', $opts{marks} // '-', ns($opts{over} // $to)) . "\n";
}

# The clock of one server shows so many seconds more from then on.
sub step ($at, $offset, $clock)
{
	return join("\t", ns($at), ns($at + 0.1), $offset * 1e6, $clock) . "\n";
}

sub write_file ($path, @content)
{
	open my $fh, '>', $path or die "could not write $path: $!";
	binmode $fh;
	print $fh @content;
	close $fh or die "could not write $path: $!";
}

# What the checker says of the sessions' logs; calls may last 10 s. sessions => [ [drew, ...], ... ], faults, clock.
sub judge (%case)
{
	my $directory = File::Temp->newdir;
	mkdir "$directory/logs";
	write_file("$directory/streams", map { line_of_stream(@$_) } @streams);
	write_file("$directory/faults", @{ $case{faults} // [] });
	write_file("$directory/clock", "0\t0\t0\t*\n", @{ $case{clock} // [] });
	write_file("$directory/bound", join("\t", 10 * 1e9, $begin_ns) . "\n");
	my $session = 0;
	write_file("$directory/logs/" . ++$session . '.log', @$_) foreach @{ $case{sessions} };
	open my $checker, '-|', $program, $directory or die "could not run $program: $!";
	my @lines = <$checker>;
	close $checker;
	return ($? >> 8, @lines);
}

# 'wrong field', or '' if there is nothing. The status must agree.
sub findings
{
	my ($status, @lines) = judge(@_);
	my %kinds = map { /^FOUND ([^:]+): (?!\d+ in all)/ ? ($1 => 1) : () } @lines;
	return $status == (%kinds ? 1 : 0) ? join ', ', sort keys %kinds : "status $status: @lines";
}

# finds($kind, $name, [session], [session], ..., faults => ..., clock => ...)
sub finds ($kind, $name, @case)
{
	my @sessions;
	push @sessions, shift @case while ref $case[0];
	is(findings(sessions => \@sessions, @case), $kind, ($kind eq '' ? 'nothing' : $kind) . ": $name");
}

my $in_order = drew(rising => [ 1000 .. 1100 ]);

# ---------------------------------------------------------------------------------------------------------------

finds('nothing to check', 'no session', []);
finds('nothing to check', 'no value', [ drew(rising => []) ]);
finds('', 'values', [$in_order]);

# No value twice.
finds('given twice', 'in one statement', [ drew(any => [ 5, 6, 5 ]) ]);
finds('given twice', 'to one session', [ drew(any => [ 5 .. 9 ]), drew(any => [9], at => 2) ]);
finds('given twice', 'to two sessions', [ drew(any => [ 5 .. 9 ]) ], [ drew(any => [ 1 .. 5 ], at => 2) ]);
finds('given twice', 'inside of two runs', [ drew(any => [ 5000 .. 9000 ]) ], [ drew(any => [ 6000 .. 6010 ]) ]);
finds('', 'runs that follow each other', [ drew(any => [ 5 .. 9 ]) ], [ drew(any => [ 1 .. 4, 10 .. 12 ]) ]);
finds('given twice', 'the second time in a statement that failed',
	[ drew(any => [5]), drew(any => [5], at => 2, error => '57014') ], faults => [ fault(1, 3, explains => '57014') ]);
finds('', 'in two histories', [ drew(any => [5]), drew(any => [5], at => 2, history => 1) ]);
finds('', 'in two streams', [ drew(any => [5]), drew(another => [5], at => 2) ]);
finds('given twice', 'in one connection', [ drew(of_connection => [5]), drew(of_connection => [5], at => 2) ]);
finds('', 'in two connections', [ drew(of_connection => [5]), drew(of_connection => [5], at => 2, connection => 2) ]);

# What nextval gave may come again after a crash, if it is in no committed row.
my $crash = fault(1.5, 1.8, marks => 'crash');
foreach my $case ([ '', 'loose', '00000' ], [ 'given twice', '', '00000' ], [ '', 'inserted', '57P02' ],
	[ 'given twice', 'inserted', '00000' ], [ 'given twice', '', '57P02' ])
{
	my ($kind, $flags, $error) = @$case;
	my @sessions = [ drew(any => [5], flags => $flags, error => $error), drew(any => [5], at => 2) ];
	my $of = "after a crash, from '$flags' with $error";
	finds($kind, $of, @sessions, faults => [ $crash, fault(0, 9, explains => '57P02') ]);
}
my @loose = (drew(any => [5], flags => 'loose'), drew(any => [5], at => 2));
finds('given twice', 'from nextval, without a crash', \@loose, faults => [ fault(1.5, 1.8, marks => 'stall') ]);
finds('given twice', 'from nextval, after a crash before', \@loose, faults => [ fault(0.1, 0.9, marks => 'crash') ]);

# Ranges.
finds('out of range', 'below', [ drew(rising => [999]) ]);
finds('out of range', 'above', [ drew(any => ['9000000000000000001']) ]);
finds('out of range', 'of a falling sequence', [ drew(falling => [0]) ]);
finds('', 'the least', [ drew(rising => [1000]) ]);
finds('', 'the greatest', [ drew(any => ['9000000000000000000']) ]);

# Fields of a node.
sub with_worker { return id_at(1, ($_[0] << 12) + 1) }
finds('wrong field', 'another worker id', [ drew(static => [ with_worker(7), with_worker(8) ]) ]);
finds('wrong field', 'between two values', [ drew(static => [ with_worker(22) ]) ]);
finds('wrong field', 'another worker id after a step that moves none', [ drew(static => [ with_worker(8) ]) ],
	clock => [ step(0.5, -0.001, 'one') ]);
finds('', 'both worker ids', [ drew(static => [ with_worker(7), with_worker(23) ]) ]);
my @altered = (fault(0.1, 0.2, name => 'alter_worker'));
finds('wrong field', 'another worker id without an alteration', [ drew(moved => [ with_worker(8) ]) ]);
finds('', 'another worker id after an alteration', [ drew(moved => [ with_worker(8) ]) ], faults => \@altered);
finds('wrong field', 'another worker id after another fault', [ drew(moved => [ with_worker(8) ]) ], faults => [ fault(0.1, 0.2) ]);
finds('wrong field', 'more worker ids than alterations', [ drew(moved => [ with_worker(9) ]) ], faults => \@altered);
finds('wrong field', 'the first one of two', [ drew(moved => [ with_worker(7) + 1 ]) ]);

# Order in a statement.
finds('out of order in a statement', 'smaller', [ drew(rising => [ 1005, 1004 ]) ]);
finds('out of order in a statement', 'greater, of a falling sequence', [ drew(falling => [ -5, -4 ]) ]);
finds('out of order in a statement', 'of a sequence with an order in each session', [ drew(of_session => [ 5, 4 ]) ]);
finds('given twice, out of order in a statement', 'the same', [ drew(rising => [ 1005, 1005 ]) ]);
finds('', 'falling', [ drew(falling => [ -4, -5 ]) ]);
finds('', 'without an order', [ drew(any => [ 5, 4 ]) ]);
finds('', 'of parallel workers', [ drew(rising => [ 1005, 1004 ], flags => 'unordered') ]);
finds('', 'rows of a table', [ drew(rising => [ 1005, 1004 ], flags => 'earlier') ]);
finds('out of order in a statement', 'inside a tick', [ drew(ids => [ id_at(1, 9), id_at(1, 8) ]) ]);
finds('', 'inside a tick, if that does not count', [ drew(ids_by_tick => [ id_at(1, 9), id_at(1, 8) ]) ]);
finds('out of order in a statement', 'a tick before', [ drew(ids_by_tick => [ id_at(1.001), id_at(1) ]) ]);

# Order in a session.
my @smaller = ([2000], at => 2);
finds('out of order in a session', 'smaller', [ drew(rising => [2001]), drew(rising => @smaller) ]);
finds('out of order in a session', 'with an order in each session', [ drew(of_session => [2001]), drew(of_session => @smaller) ]);
finds('', 'in another connection', [ drew(of_session => [2001]), drew(of_session => @smaller, connection => 2) ]);
finds('', 'without an order', [ drew(any => [2001]), drew(any => @smaller) ]);
finds('', 'after a block', [ drew(rising => [2001], flags => 'block'), drew(rising => @smaller) ]);
finds('out of order in a session', 'a block', [ drew(rising => [2001]), drew(rising => @smaller, flags => 'block') ]);
finds('', 'rows of a table', [ drew(rising => [2001]), drew(rising => @smaller, flags => 'earlier') ]);

# The generator of the first id is dropped, another one is made, and the clock is put back by so many seconds, perhaps
# while that one draws. An id may be 2 s ahead.
sub drew_again ($stream, $seconds)
{
	return ([ drew($stream => [ id_at(20) ], at => 20), drew($stream => [ id_at(20.2 - $seconds) ], at => 20.2) ],
		clock => [ step(20.15, -$seconds, 'one') ]);
}
finds('', 'of a new generator, when the id before is 2.1 s ahead', drew_again(made_anew => 2.3));
finds('out of order in a session', 'of a new generator, when the id before is 1.9 s ahead', drew_again(made_anew => 2.1));
finds('out of order in a session', 'of the same generator, when the id before is 2.1 s ahead', drew_again(ids => 2.3));

# Order across sessions.
finds('out of order', 'smaller, and sent after the answer', [ drew(rising => [2001]) ], [ drew(rising => @smaller) ]);
finds('out of order', 'in another connection', [ drew(rising => [2001]), drew(rising => @smaller, connection => 2) ]);
finds('out of order', 'greater, of a falling sequence', [ drew(falling => [-20]) ], [ drew(falling => [-10], at => 2) ]);
finds('', 'sent before the answer', [ drew(rising => [2001], for => 1.01) ], [ drew(rising => @smaller) ]);
finds('', 'with an order in each session', [ drew(of_session => [2001]) ], [ drew(of_session => @smaller) ]);
finds('', 'in another history', [ drew(rising => [2001]) ], [ drew(rising => @smaller, history => 1) ]);
finds('', 'after a block', [ drew(rising => [2001], flags => 'block') ], [ drew(rising => @smaller) ]);
finds('', 'inside a tick, if that does not count', [ drew(ids_by_tick => [ id_at(2, 9) ]) ],
	[ drew(ids_by_tick => [ id_at(2, 8) ], at => 2) ]);

# Times. The call is sent at 20 s, and lasts 0.01 s. An id may be 2 s ahead.
sub drew_at ($stream, $time, %opts) { return [ drew($stream => [ id_at($time) ], at => 20, %opts) ] }
finds('too far ahead of the clock', 'by 2.02 s', drew_at(ids => 22.03));
finds('', '1.99 s ahead', drew_at(ids => 22));
finds('too far behind the clock', 'by 0.02 s', drew_at(ids => 19.98));
finds('', 'the same tick', drew_at(ids => 20));
finds('', 'a row of a table, from before', drew_at(ids => 5, flags => 'earlier'));
finds('too far ahead of the clock', 'a row of a table', drew_at(ids => 23, flags => 'earlier'));
finds('too far behind the clock', 'of cached mode', drew_at(cached => 18.9));
finds('', 'of cached mode, as old as ids may be', drew_at(cached => 19.1));

my @forward = (clock => [ step(15, 10, 'one') ]);
finds('', 'by a clock that is ahead', drew_at(ids => 30), @forward);
finds('too far behind the clock', 'by the real clock, after a step forward', drew_at(ids => 20), @forward);
finds('too far ahead of the clock', 'by a clock that is ahead, before the step', drew_at(ids => 24, at => 14), @forward);
finds('', 'of cached mode, by the real clock', drew_at(cached => 20), @forward);
finds('too far behind the clock', 'of cached mode, between both clocks but of none', drew_at(cached => 18), @forward);
finds('too far ahead of the clock', 'by the clock of another server', drew_at(of_other_server => 30), @forward);
finds('', 'by its own clock', drew_at(of_other_server => 20), @forward);
my @at_once = (clock => [ step(20.001, 10, 'one') ]);
finds('', 'by either clock, when it is set meanwhile', drew_at(ids => $_), @at_once) foreach 20, 30;
my @just_before = (clock => [ step(19.95, 10, 'one') ]);
finds('', 'by either clock, when it may not have been read again', drew_at(ids => $_), @just_before) foreach 20, 30;
my @back = (clock => [ step(15, -10, 'one') ]);
finds('too far ahead of the clock', 'by the real clock, after a step backwards', drew_at(ids => 20), @back);
finds('', 'by a clock that is behind', drew_at(ids => 10), @back);
finds('', 'by a clock that was put right', drew_at(ids => 20), clock => [ step(15, -10, 'one'), step(17, 0, 'one') ]);

# Errors.
sub failed (%opts) { return [ $in_order, drew(rising => [], at => 20, error => '55000', %opts) ] }
finds('unexplained error 55000', 'without a fault', failed());
finds('', 'explained', failed(), faults => [ fault(19, 20.005, explains => '57P01 55000') ]);
finds('', 'explained by one that begins meanwhile', failed(), faults => [ fault(20.005, 22, explains => '55000') ]);
finds('unexplained error 55000', 'by another SQLSTATE', failed(), faults => [ fault(19, 22, explains => '57P01') ]);
finds('unexplained error 55000', 'by a fault that has ended', failed(), faults => [ fault(18, 19.9, explains => '55000') ]);
finds('unexplained error 55000', 'by a fault that has not begun', failed(), faults => [ fault(20.1, 22, explains => '55000') ]);
finds('', 'scarce', failed(flags => 'scarce'));
finds('unexplained error 57P02', 'scarce, and something else', failed(flags => 'scarce', error => '57P02'));

# Calls that last too long.
sub lasted ($seconds) { return [ drew(rising => [1000], at => 20, for => $seconds) ] }
sub stall ($from, $to, %opts) { return fault($from, $to, marks => 'stall', %opts) }
finds('slow call', '10.1 s', lasted(10.1));
finds('', '9.9 s', lasted(9.9));
finds('', 'stalled', lasted(12), faults => [ stall(21, 24) ]);
finds('', 'stalled at the beginning and at the end', lasted(12), faults => [ stall(18, 21.5), stall(31, 40) ]);
finds('', 'stalled by two faults, the second of which is over first', lasted(12), faults => [ stall(21, 24), stall(21.5, 22) ]);
finds('', '9.9 s, with faults before and afterwards', lasted(9.9), faults => [ stall(1, 19), stall(33, 50) ]);
finds('', 'stalled all the time', lasted(60), faults => [ stall(19, 90) ]);
finds('slow call', 'stalled for too short a time', lasted(12), faults => [ stall(21, 22.5) ]);
finds('slow call', 'stalled by two faults at once', lasted(12), faults => [ stall(21, 22.5), stall(21.2, 22.4) ]);
finds('slow call', 'stalled by two faults that overlap', lasted(13), faults => [ stall(22, 23.5), stall(21, 22.5) ]);
finds('', 'stalled by two faults', lasted(12), faults => [ stall(26, 27.5), stall(21, 22.5) ]);
finds('slow call', 'stalled before and afterwards', lasted(12), faults => [ stall(1, 19), stall(33, 50) ]);
finds('slow call', 'a fault that does not stall', lasted(12), faults => [ fault(21, 24, marks => 'crash', explains => '57P01') ]);
finds('slow call', 'a stall that was over before its errors end', lasted(12), faults => [ stall(21, 24, over => 22) ]);
finds('slow call', 'an error', [ $in_order, drew(rising => [], at => 20, for => 12, error => '57P01') ],
	faults => [ fault(20, 40, explains => '57P01') ]);

done_testing();
