# Clients that draw in the background, and what they have received.
#
#   my $loop = background_loop($node, clients => 4, sql => 'SELECT uid_next()');
#   ... crash, promote, wait ...
#   goes_on('...', $loop);                     # an assertion: every client receives values again; a last argument: seconds
#   my @logs = stop_loop($loop);               # one file per client: what it received
#   assert_unique(@logs);                      # one assertion; lists values seen twice
#   is(repeated(@values), '', ...);            # the same of values in a list
package Clients;

use v5.36;

use Exporter 'import';
use POSIX ();
use PostgreSQL::Test::Utils;
use Session;
use Test::More;
use Time::HiRes;
use UidgenTest;

our @EXPORT = qw(background_loop goes_on stop_loop assert_unique repeated);

# Each client sends one script after the other until it is stopped, its server is down, or a statement fails. With
# on_error_stop => 0 it goes on after errors, with reconnect => 1 in a new session after whatever went wrong. It pauses
# for pace seconds after each script, so that a few clients do not take all of the processors. The client, a process of its
# own, writes what it has received after each script, so the logs survive whatever the server does.
sub background_loop ($node, %opts)
{
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my %loop = (stop => "$directory/stop", logs => [ map { "$directory/client$_" } 1 .. $opts{clients} // 1 ]);
	my $statements = Session::statements($opts{sql} // 'SELECT uid_next()') or die "needs psql: $opts{sql}";
	foreach my $log (@{ $loop{logs} })
	{
		append_to_file($_, '') foreach $log, "$log.err";
		my $test = $$;
		my $pid = fork // die "could not fork: $!";
		if ($pid == 0)
		{
			POSIX::close($_) foreach 3 .. 255;
			# Ends with this program, however that ends.
			eval { run_client($node, $statements, $log, sub { -e $loop{stop} || getppid() != $test }, %opts) };
			POSIX::_exit(0);
		}
		push @{ $loop{pids} }, $pid;
	}
	return \%loop;
}

sub run_client ($node, $statements, $log, $is_over, %opts)
{
	my $session;
	until ($is_over->())
	{
		$session //= $node->start_session($opts{dbname} // 'postgres', verbose => $opts{verbosity});
		my $status = $session ? $session->run($statements, on_error_stop => $opts{on_error_stop}) : 2;
		if ($session)
		{
			append_to_file($log, $session->{stdout}) if $session->{stdout} ne '';
			append_to_file("$log.err", $session->{stderr}) if $session->{stderr} ne '';
			$session->take;
		}
		return if $status && !$opts{reconnect};
		undef $session if $status;
		Time::HiRes::sleep($status ? 0.1 : $opts{pace} // 0.002);
	}
}

sub goes_on ($what, @loops)
{
	my $seconds = ref $loops[-1] ? undef : pop @loops;
	my @logs = map { @{ $_->{logs} } } @loops;
	my %before = map { $_ => -s $_ } @logs;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(poll_until($what, sub { !grep { -s $_ <= $before{$_} } @logs }, $seconds), $what);
}

sub stop_loop
{
	my @loops = @_;
	append_to_file($_->{stop}, '') foreach @loops;
	waitpid $_, 0 foreach map { @{ $_->{pids} } } @loops;
	return map { @{ $_->{logs} } } @loops;
}

# One assertion over all values in all files, one value per line. Returns the number of values. No value at all is a
# failure, because it proves nothing.
sub assert_unique
{
	my @values = map { split /\n/, slurp_file($_) } @_;
	my $twice = repeated(@values);
	my $several = @_ > 1 ? scalar(@_) . ' clients' : 'one client';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(@values && $twice eq '', "no value came twice ($several)") or diag(scalar(@values) . " values, more than once $twice");
	note(scalar(@values) . ' values');
	return scalar @values;
}

# The first few of the values that come more than once.
sub repeated
{
	my %count;
	$count{$_}++ foreach @_;
	my @twice = sort grep { $count{$_} > 1 } keys %count;
	return join ' ', splice @twice, 0, 5;
}

1;
