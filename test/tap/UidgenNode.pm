# PostgreSQL::Test::Cluster, with less work for the machine: each script has a Session of its own in place of a psql, unless
# it needs psql itself. What is to outlive a script is a session that the test holds (hold_open of UidgenTest.pm).
package UidgenNode;

use v5.36;

use parent 'PostgreSQL::Test::Cluster';
use Session;
use Time::HiRes;

sub start_session ($self, $dbname, %opts)
{
	return Session->start(host => $self->host, port => $self->port, dbname => $dbname, %opts);
}

# As Cluster's.
sub psql ($self, $dbname, $sql, %params)
{
	my $statements = defined $dbname && defined $sql ? Session::statements($sql) : undef;
	my $opts = session_options(%params);
	my $session = $statements && $opts ? $self->start_session($dbname, %$opts) : undef;
	# psql says why there is no connection.
	return $self->SUPER::psql($dbname, $sql, %params) unless $session;

	${ $params{timed_out} } = 0 if ref $params{timed_out};
	my $status = eval { $session->run($statements, on_error_stop => $params{on_error_stop}) };
	if (!defined $status)
	{
		die $@ unless $@ eq "timed out\n" && ref $params{timed_out};
		${ $params{timed_out} } = 1;
	}
	my ($output, $error) = $session->take;
	$session->quit;
	${ $params{stdout} } = $output if ref $params{stdout};
	${ $params{stderr} } = $error if ref $params{stderr};
	print STDERR "$error\n" if $error ne '' && !ref $params{stderr} && !wantarray;
	die "psql error ($status): stderr: '$error'\nwhile running '$sql' in $dbname" if $status && $params{on_error_die};
	return wantarray ? ($status, $output, $error) : $status;
}

# Nothing if there is one that only psql has.
sub session_options (%params)
{
	my @extra = @{ delete $params{extra_params} // [] };
	my %opts = (timeout => $params{timeout});
	delete @params{qw(stdout stderr on_error_stop on_error_die timeout timed_out)};
	while (my ($option, $value) = splice @extra, 0, 2)
	{
		if ("$option $value" eq '-v VERBOSITY=verbose') { $opts{verbose} = 1 }
		elsif ($option eq '-U') { $opts{user} = $value }
		else { return }
	}
	return %params ? undef : \%opts;
}

# As Cluster's, in one session as long as it has no error.
sub poll_query_until ($self, $dbname, $query, $expected = 't')
{
	my $statements = Session::statements($query // '');
	return $self->SUPER::poll_query_until($dbname, $query, $expected) unless $statements;
	my $end = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;
	my ($session, $output, $error);
	do
	{
		$session //= $self->start_session($dbname);
		if ($session)
		{
			my $status = $session->run($statements, on_error_stop => 0);
			($output, $error) = $session->take;
			if ($error ne '' || $output eq $expected)
			{
				$session->quit;
				undef $session;
			}
			return 1 if "$status$error" eq '0' && $output eq $expected;
		}
		Time::HiRes::sleep(0.05);
	} while (Time::HiRes::time() < $end);
	$session->quit if $session;
	Test::More::diag("timed out: $query\nexpected: $expected\nthe last answer: " . ($output // '') . "\n" . ($error // 'no session'));
	return 0;
}

1;
