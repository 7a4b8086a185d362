# A proxy between Unix sockets, for tests that cut a server off from another one.
#
#   perl test/lib/proxy.pl DIRECTORY PORT TARGET-DIRECTORY TARGET-PORT
#
# Listens where libpq looks for a server with host=DIRECTORY port=PORT, and passes every connection on to the server
# with host=TARGET-DIRECTORY port=TARGET-PORT. Killing the process group cuts all connections.
use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;

my ($directory, $port, $target_directory, $target_port) = @ARGV;
my $path = "$directory/.s.PGSQL.$port";
my $target = "$target_directory/.s.PGSQL.$target_port";

$SIG{CHLD} = 'IGNORE';
unlink $path;
my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 20)
  or die "could not listen on $path: $!";

while (1)
{
	my $client = $listener->accept or next;
	my $pid = fork // die "could not fork: $!";
	next if $pid;
	close $listener;
	pass($client, IO::Socket::UNIX->new(Peer => $target) // exit 1);
	exit 0;
}

# Copies bytes in both directions until one side closes.
sub pass
{
	my ($client, $server) = @_;
	my %other = (fileno($client) => $server, fileno($server) => $client);
	my $select = IO::Select->new($client, $server);

	while (1)
	{
		foreach my $from ($select->can_read)
		{
			my $count = sysread $from, my $bytes, 65536;
			return if !$count;
			my $to = $other{ fileno $from };
			while (length $bytes)
			{
				my $written = syswrite $to, $bytes;
				return if !defined $written;
				substr($bytes, 0, $written) = '';
			}
		}
	}
	return;
}
