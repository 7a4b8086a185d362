# PostgreSQL::Test::Cluster, with less work for the machine. Scripts run in a Session in place of a psql, unless they need
# psql itself. One session of a node stays for the next script on its database, which finds all that the one before has
# set forgotten. A script that draws, or looks at sessions, has a new one, as has any with new_session => 1.
package UidgenNode;

use strict;
use warnings;

use parent 'PostgreSQL::Test::Cluster';
use Session;
use Time::HiRes;

my $concerns_sessions = qr{
	uid_next|uid_last|segment_next|nextval|lastval|currval|uid_conceal|uid_reveal|pg_backend_pid|pg_stat_|pg_locks|pg_terminate|pg_reload
	|\bPREPARE\b|\bDATABASE\b|\bROLE\b|\bUSER\b|\bSYSTEM\b|\bEXTENSION\b|\bAUTHORIZATION\b|\bDISCARD\b|\bLOAD\b|\bVACUUM\b}xi;
# What a database may not have sessions for, or sets for new ones only.
my $concerns_others = qr/\bDATABASE\b|\bALTER\s+(?:ROLE|USER|SYSTEM)\b|pg_reload_conf|pg_terminate/i;

sub start_session
{
	my ($self, $dbname, %opts) = @_;
	return Session->start(host => $self->host, port => $self->port, dbname => $dbname, %opts);
}

sub session_for
{
	my ($self, $dbname, $sql, %opts) = @_;
	$self->end_session if $sql =~ $concerns_others;
	return $self->start_session($dbname, %opts) if $opts{new_session} || defined $opts{timeout} || $sql =~ $concerns_sessions;
	my $kept = $self->{uidgen_session};
	my $key = join ' ', $dbname, $opts{user} // '';
	return $kept->again(%opts) if $kept && $kept->{key} eq $key && $kept->is_idle;
	$self->end_session;
	$kept = $self->start_session($dbname, %opts) or return;
	$kept->{key} = $key;
	return $self->{uidgen_session} = $kept;
}

# Whatever else connects finds the node without it.
sub end_session
{
	my ($self) = @_;
	my $kept = delete $self->{uidgen_session} or return;
	$kept->quit;
}

foreach my $method (qw(start stop kill9 restart reload promote backup installed_command command_ok command_fails_like background_psql))
{
	my $of_cluster = "SUPER::$method";
	no strict 'refs';
	*$method = sub {
		my $self = shift;
		$self->end_session;
		return $self->$of_cluster(@_);
	};
}

# As Cluster's.
sub psql
{
	my ($self, $dbname, $sql, %params) = @_;
	my $statements = defined $dbname && defined $sql ? Session::statements($sql) : undef;
	my $opts = session_options(%params);
	my $session = $statements && $opts ? $self->session_for($dbname, $sql, %$opts) : undef;
	if (!$session)
	{
		# psql says why there is no connection.
		$self->end_session;
		delete $params{new_session};
		return $self->SUPER::psql($dbname, $sql, %params);
	}

	${ $params{timed_out} } = 0 if ref $params{timed_out};
	my $status = eval { $session->run($statements, on_error_stop => $params{on_error_stop}) };
	if (!defined $status)
	{
		die $@ unless $@ eq "timed out\n" && ref $params{timed_out};
		${ $params{timed_out} } = 1;
	}
	my ($output, $error) = $session->take;
	$session->quit unless $session->{key};
	${ $params{stdout} } = $output if ref $params{stdout};
	${ $params{stderr} } = $error if ref $params{stderr};
	print STDERR "$error\n" if $error ne '' && !ref $params{stderr} && !wantarray;
	die "psql error ($status): stderr: '$error'\nwhile running '$sql' in $dbname" if $status && $params{on_error_die};
	return wantarray ? ($status, $output, $error) : $status;
}

# Nothing if there is one that only psql has.
sub session_options
{
	my (%params) = @_;
	my @extra = @{ delete $params{extra_params} // [] };
	my %opts = (timeout => $params{timeout}, new_session => $params{new_session});
	delete @params{qw(stdout stderr on_error_stop on_error_die timeout timed_out new_session)};
	while (my ($option, $value) = splice @extra, 0, 2)
	{
		if ("$option $value" eq '-v VERBOSITY=verbose') { $opts{verbose} = 1 }
		elsif ($option eq '-U') { $opts{user} = $value }
		else { return }
	}
	return %params ? undef : \%opts;
}

# As Cluster's, in one session as long as it has no error.
sub poll_query_until
{
	my ($self, $dbname, $query, $expected) = @_;
	my $statements = Session::statements($query // '');
	return $self->SUPER::poll_query_until($dbname, $query, $expected) unless $statements;
	$expected //= 't';
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
