# A line between Unix sockets on which every byte takes so long, in both directions:
#
#   perl bench/lib/delay_line.pl DIRECTORY PORT TARGET-DIRECTORY TARGET-PORT SECONDS
#
# Listens where libpq looks for a server with host=DIRECTORY port=PORT. Unlike the delays of test/lib/proxy.pl, which pass
# one message after the other, it never holds a byte up because another one is under way.
use v5.36;

use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

my ($directory, $port, $target_directory, $target_port, $seconds) = @ARGV;
my $listener = IO::Socket::UNIX->new(Local => "$directory/.s.PGSQL.$port", Listen => 5) or die "could not listen: $!";
$SIG{CHLD} = 'IGNORE';
while (1)
{
	my $client = $listener->accept or next;
	next if fork // die "could not fork: $!";
	my $server = IO::Socket::UNIX->new(Peer => "$target_directory/.s.PGSQL.$target_port") or die "could not connect: $!";
	pass($client, $server);
	exit 0;
}

sub pass ($client, $server)
{
	my %other = ($client => $server, $server => $client);
	my $select = IO::Select->new($client, $server);
	my @under_way; # [ when it arrives, where, bytes ]
	while (1)
	{
		foreach my $from ($select->can_read(@under_way ? ($under_way[0][0] - time) x ($under_way[0][0] > time) : 1))
		{
			sysread($from, my $bytes, 65536) or return;
			push @under_way, [ time + $seconds, $other{$from}, $bytes ];
		}
		while (@under_way && $under_way[0][0] <= time)
		{
			my (undef, $to, $bytes) = @{ shift @under_way };
			substr($bytes, 0, syswrite($to, $bytes) // return, '') while length $bytes;
		}
	}
}
