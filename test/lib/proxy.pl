# A proxy between Unix sockets, for tests that cut a server off from another one, or tamper with what they say.
#
#   perl test/lib/proxy.pl DIRECTORY PORT TARGET-DIRECTORY TARGET-PORT [MODE [SEED]]
#
# Listens where libpq looks for a server with host=DIRECTORY port=PORT, and passes every connection on to the server
# with host=TARGET-DIRECTORY port=TARGET-PORT. Killing the process group cuts all connections.
#
# MODE is a file with one line, which is read before each message:
#   pass             nothing happens to messages; also if the file is missing
#   cut              connections end, and no others are made
#   delay SECONDS    a request arrives up to so much later
#   far SECONDS      a request arrives so much later, and so does its answer
#   lose PERCENT     so many requests arrive, but their answer does not: the connection ends instead
#   repeat PERCENT   so many requests arrive twice, the second time in a connection of its own, within 50 ms
#   late PERCENT     the same, but up to 8 seconds later: after later requests, and after later lives of the client
# SEED decides what happens to the messages of each connection.
use v5.36;

use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(sleep);

my ($directory, $port, $target_directory, $target_port, $mode_file, $seed) = @ARGV;
my $connections = 0;
my $path = "$directory/.s.PGSQL.$port";
my $target = "$target_directory/.s.PGSQL.$target_port";

$SIG{CHLD} = 'IGNORE';
unlink $path;
my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 20)
  or die "could not listen on $path: $!";

while (1)
{
	my $client = $listener->accept or next;
	$connections++;
	my $pid = fork // die "could not fork: $!";
	next if $pid;
	close $listener;
	defined $seed ? srand($seed + $connections) : srand;
	my $server = mode() eq 'cut' ? undef : IO::Socket::UNIX->new(Peer => $target);
	pass($client, $server) if $server;
	exit 0;
}

# The mode and its number.
sub mode
{
	return ('pass', 0) unless defined $mode_file && open my $fh, '<', $mode_file;
	my ($mode, $number) = split ' ', <$fh> // '';
	return wantarray ? ($mode // 'pass', $number // 0) : $mode // 'pass';
}

# Passes bytes on in both directions until one side closes. With a mode, requests are passed on as a whole.
sub pass ($client, $server)
{
	my $select = IO::Select->new($client, $server);
	my $requests = { buffer => '' };

	while (1)
	{
		foreach my $from ($select->can_read(0.2))
		{
			my $count = sysread $from, my $bytes, 65536;
			return if !$count || $requests->{is_answer_lost};
			my @parts = $from == $client && defined $mode_file ? split_requests($requests, $bytes) : ($bytes);
			my ($mode, $number) = mode();
			sleep $number if $mode eq 'far' && ($requests->{from} // 0) != $from;
			$requests->{from} = $from;
			foreach my $part (@parts)
			{
				tamper($requests, $part) if $from == $client && defined $mode_file;
				write_all($from == $client ? $server : $client, $part) or return;
			}
		}
		return if mode() eq 'cut';
	}
}

sub write_all ($to, $bytes)
{
	while (length $bytes)
	{
		my $written = syswrite $to, $bytes;
		return 0 if !defined $written;
		substr($bytes, 0, $written) = '';
	}
	return 1;
}

# The whole requests that the bytes of a client have brought so far. A request ends with a Sync or is a simple query.
# The first one is the startup packet, which has no type.
sub split_requests ($requests, $bytes)
{
	my @whole;
	$requests->{buffer} .= $bytes;
	while (1)
	{
		my $is_startup = !defined $requests->{startup};
		my $length = length_of_message($requests->{buffer}, $is_startup) or return @whole;
		my $message = substr $requests->{buffer}, 0, $length, '';
		if ($is_startup)
		{
			$requests->{startup} = $message;
			push @whole, $message;
			next;
		}
		$requests->{request} .= $message;
		push @whole, delete $requests->{request} if $message =~ /^[SQXp]/;
	}
}

# 0: it is not whole.
sub length_of_message ($bytes, $is_startup)
{
	my $type = $is_startup ? 0 : 1;
	return 0 if length $bytes < $type + 4;
	my $length = $type + unpack 'N', substr $bytes, $type, 4;
	return length $bytes < $length ? 0 : $length;
}

sub tamper ($requests, $request)
{
	return if $request eq $requests->{startup} || $request =~ /^[Xp]/;
	my ($mode, $number) = mode();
	sleep(rand $number) if $mode eq 'delay';
	my $is_chosen = rand(100) < $number;
	$requests->{is_answer_lost} = 1 if $mode eq 'lose' && $is_chosen;
	send_again($requests->{startup}, $request, $mode eq 'late' ? 8 : 0.05)
	  if ($mode eq 'repeat' || $mode eq 'late') && $is_chosen;
}

# In a connection of its own, whose answers nobody reads.
sub send_again ($startup, $request, $seconds)
{
	my $pid = fork // die "could not fork: $!";
	return if $pid;
	sleep(rand $seconds);
	my $server = IO::Socket::UNIX->new(Peer => $target) // exit 1;
	write_all($server, $startup);
	read_until_ready($server);
	write_all($server, $request);
	read_until_ready($server);
	exit 0;
}

# ReadyForQuery is the last message of an answer.
sub read_until_ready ($server)
{
	my $select = IO::Select->new($server);
	my $answer = '';
	while ($answer !~ /Z\0\0\0\x05[ITE]\z/ && $select->can_read(5))
	{
		last unless sysread $server, $answer, 65536, length $answer;
	}
}
