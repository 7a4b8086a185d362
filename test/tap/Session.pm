# A session of a server: what psql does with a script, in this process. A test has hundreds of short sessions, and a
# psql for each of them costs ten times what its statement does.
#
#   my $session = Session->start(host => '/tmp/x', port => 5432, dbname => 'postgres', user => 'alice');   # or undef
#   my $status = $session->run($statements);   # psql's exit status, with ON_ERROR_STOP
#   $session->{stdout}, $session->{stderr}     # what psql -XAtq -f - would have written since the last take()
#   my ($output, $error) = $session->take;
#   $session->query($sql), query_safe, quit    # as of PostgreSQL::Test::BackgroundPsql
#   $session->send_script($sql); $session->finish;   # what comes between them does not wait for the answer
#
# Session::statements() splits a script as psql does. Of one that needs psql itself it returns nothing.
package Session;

use v5.36;

use Errno;
use IO::Select;
use IO::Socket::UNIX;

# The server must trust whoever connects. Without an answer that says so there is no session.
sub start ($class, %opts)
{
	return unless $opts{host} =~ m{^/};
	my $socket = IO::Socket::UNIX->new(Peer => "$opts{host}/.s.PGSQL.$opts{port}") or return;
	my %said = (
		user => $opts{user} // $ENV{PGUSER} // scalar getpwuid($<),
		database => $opts{dbname},
		application_name => $ENV{PGAPPNAME} // 'psql',
		(defined $ENV{PGOPTIONS} ? (options => $ENV{PGOPTIONS}) : ()));
	my $self = bless { socket => $socket, in => '', stdout => '', stderr => '', verbose => $opts{verbose}, timeout => $opts{timeout} }, $class;
	$self->write_all(pack 'N N (Z*)* x', 10 + length(join ' ', %said), 196608, %said);
	while (my ($type, $body) = $self->message)
	{
		$self->{transaction} = $body;
		return $self if $type eq 'Z';
		return if $type eq 'E' || $type eq 'R' && unpack('N', $body) != 0;
		$self->{stderr} .= report($body, 0) if $type eq 'N';
	}
}

sub write_all ($self, $bytes)
{
	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes)
	{
		my $written = syswrite $self->{socket}, $bytes;
		next if !defined $written && $!{EINTR};
		return 0 unless defined $written;
		substr $bytes, 0, $written, '';
	}
	return 1;
}

# The type and body of the next one; nothing after the server's last.
sub message ($self)
{
	while (length $self->{in} < 5 || length $self->{in} <= unpack 'x N', $self->{in})
	{
		$self->read_more or return;
	}
	my ($type, $length) = unpack 'a N', $self->{in};
	my $body = substr $self->{in}, 5, $length - 4;
	substr $self->{in}, 0, $length + 1, '';
	return ($type, $body);
}

sub read_more ($self)
{
	!defined $self->{timeout} || IO::Select->new($self->{socket})->can_read($self->{timeout}) || $!{EINTR} or die "timed out\n";
	my $read = sysread $self->{socket}, $self->{in}, 65536, length $self->{in};
	return defined $read ? $read : $!{EINTR};
}

my $token = qr{
	[eE]'(?:[^'\\]|\\.|'')*+'            # strings
	| '(?:[^']|'')*+'
	| (\$(?:[A-Za-z_]\w*)?\$).*?\g{-1}
	| "(?:[^"]|"")*+"
	| --\N* | /\*.*?\*/
	| \w+ | \s+ | ::
	| \\set\ VERBOSITY\ verbose(?=\n|\z)
	| :['"\{]?[A-Za-z]                   # a variable of psql
	| .
}xs;

# Pairs of a statement, and the line in which it ends. From an undefined one on messages are verbose.
sub statements ($sql)
{
	return if $sql =~ /\bSTDIN\b|\bBEGIN\s+ATOMIC\b|\bLISTEN\b/i;
	my ($depth, $line, $began, @found) = (0, 1, undef);
	while ($sql =~ /\G$token/g)
	{
		my ($word, $from, $to) = ($&, $-[0], $+[0]);
		my $first = substr $word, 0, 1;
		my $is_verbose = $first eq '\\' && length $word > 1;
		# A command, or a variable.
		return if $first eq '\\' && !$is_verbose || $first eq ':' && $word ne '::' && $word ne ':';
		$depth += $word eq '(' ? 1 : $word eq ')' ? -1 : 0;
		my $is_end = $word eq ';' && $depth <= 0;
		$began //= $from unless $is_end || $is_verbose || $first =~ /\s/ || $word =~ m{^(?:--|/\*)};
		$line += $word =~ tr/\n//;
		push @found, [ undef, $line ] if $is_verbose;
		next unless $is_end;
		push @found, [ substr($sql, $began, $to - $began), $line ] if defined $began;
		($depth, $began) = (0, undef);
	}
	push @found, [ substr($sql, $began), $line ] if defined $began;
	return \@found;
}

# Runs statements one after the other, up to the first error unless on_error_stop => 0.
sub run ($self, $statements, %opts)
{
	foreach my $statement (@$statements)
	{
		$self->transmit($statement);
		my $status = $self->finish;
		return $status if $status == 2 || $status && ($opts{on_error_stop} // 1);
	}
	return 0;
}

sub transmit ($self, @statements)
{
	$self->{verbose} = 1 if grep { !defined $_->[0] } @statements;
	@statements = grep { defined $_->[0] } @statements;
	push @{ $self->{sent} }, @statements;
	$self->write_all(join '', map { pack 'a N Z*', 'Q', 5 + length $_->[0], $_->[0] } @statements);
}

# Waits for the answers to all that was sent. Returns psql's exit status.
sub finish ($self)
{
	my ($status, $rows) = (0, '');
	while (my $statement = $self->{sent}[0])
	{
		my ($type, $body) = $self->message or return $self->lost($statement);
		if ($type eq 'D') { $rows .= row($body) }
		elsif ($type eq 'd') { $rows .= $body }
		elsif ($type eq 'N') { $self->say_error($statement, report($body, $self->{verbose})) }
		elsif ($type eq 'E')
		{
			$self->say_error($statement, report($body, $self->{verbose}));
			$status = 3;
		}
		elsif ($type eq 'C')
		{
			$self->{stdout} .= $rows;
			$rows = '';
		}
		elsif ($type eq 'Z')
		{
			shift @{ $self->{sent} };
			($rows, $self->{transaction}) = ('', $body);
		}
	}
	return $status;
}

sub lost ($self, $statement)
{
	$self->say_error($statement, "server closed the connection unexpectedly\n"
		  . "\tThis probably means the server terminated abnormally\n\tbefore or while processing the request.\n");
	$self->say_error($statement, "error: connection to server was lost\n");
	$self->{sent} = [];
	return 2;
}

sub say_error ($self, $statement, $text)
{
	$self->{stderr} .= "psql:<stdin>:$statement->[1]: $text";
}

# As psql prints it without alignment.
sub row ($body)
{
	my ($count, @fields) = unpack 'n', $body;
	return '' if $count == 0;
	return substr($body, 6) . "\n" if $count == 1;
	for (my $at = 2; @fields < $count;)
	{
		my $length = unpack 'l>', substr $body, $at, 4;
		push @fields, $length < 0 ? '' : substr $body, $at + 4, $length;
		$at += 4 + ($length < 0 ? 0 : $length);
	}
	return join('|', @fields) . "\n";
}

# An error or a notice, as libpq shows it, without the line of the statement.
sub report ($body, $verbose)
{
	my %field = $body =~ /(\w)([^\0]*)\0/g;
	my $text = "$field{S}:  " . ($verbose ? "$field{C}: " : '') . "$field{M}\n";
	$text .= "DETAIL:  $field{D}\n" if defined $field{D};
	$text .= "HINT:  $field{H}\n" if defined $field{H};
	$text .= "QUERY:  $field{q}\n" if defined $field{q};
	$text .= "CONTEXT:  $field{W}\n" if defined $field{W} && $field{S} =~ /^(?:ERROR|FATAL|PANIC)$/;
	return $text unless $verbose;
	my %name = (s => 'SCHEMA NAME', t => 'TABLE NAME', c => 'COLUMN NAME', d => 'DATATYPE NAME', n => 'CONSTRAINT NAME');
	$text .= "$name{$_}:  $field{$_}\n" foreach grep { defined $field{$_} } qw(s t c d n);
	return $text . "LOCATION:  $field{R}, $field{F}:$field{L}\n";
}

sub take ($self)
{
	my @said = ($self->{stdout}, $self->{stderr});
	($self->{stdout}, $self->{stderr}) = ('', '');
	chomp @said;
	return @said;
}

# The methods of BackgroundPsql.
sub send_script ($self, $sql)
{
	my $statements = statements($sql) or die "needs psql: $sql";
	$self->transmit(@$statements);
}

sub query ($self, $sql)
{
	$self->send_script($sql);
	$self->finish;
	my $output = $self->{stdout};
	$self->{stdout} = '';
	chomp $output;
	return wantarray ? ($output, $self->{stderr} eq '' ? 0 : 1) : $output;
}

sub query_safe ($self, $sql)
{
	my $output = $self->query($sql);
	die "query failed: $self->{stderr}" if $self->{stderr} ne '';
	return $output;
}

# Ends when the server's process has ended.
sub quit ($self)
{
	$self->write_all(pack 'a N', 'X', 4);
	while (IO::Select->new($self->{socket})->can_read(2))
	{
		last unless sysread $self->{socket}, my $rest, 65536;
	}
	close $self->{socket};
	return 1;
}

1;
