# A server whose disk fails when a test tells it to (disk.cpp).
#
#   use_shaky_disk($node);                                     # before start_node; after use_fake_clock
#   set_disk($node, 'ENOSPC', 'write', '/pg_wal/');            # writes below that part of the data directory fail
#   set_disk($node, 'EIO', 'write sync', '/');                 # so does each fsync
#   set_disk($node, 'ENOSPC', 'short', '/pg_stat');            # writes are cut short
#   set_disk($node);                                           # nothing fails
#   my ($calls, $of_uidgen) = failed_calls($node);             # so many have failed since use_shaky_disk
package Disk;

use v5.36;

use Errno ();
use Exporter 'import';

our @EXPORT = qw(use_shaky_disk set_disk failed_calls);

my %calls = ('write' => 1, 'sync' => 2, 'write sync' => 3, 'short' => 4);
my $order_bytes = 512;

sub use_shaky_disk ($node)
{
	my $file = $node->{torture_disk} = $node->basedir . '/disk';
	open my $fh, '>', $file or die "could not write $file: $!";
	syswrite $fh, "\0" x ($order_bytes + 16);
	close $fh;
	set_disk($node);
	my $preload = $node->{uidgen_env}{LD_PRELOAD};
	$node->{uidgen_env}{LD_PRELOAD} = join ' ', grep { defined } $preload, $ENV{TORTURE_DISK};
	$node->{uidgen_env}{UIDGEN_DISK} = $file;
}

# In place, because servers have mapped the file. The error is written last.
sub set_disk ($node, $error = undef, $calls = undef, $where = undef)
{
	my $number = defined $error ? Errno->can($error)->() : 0;
	my $order = pack 'l l a504', 0, defined $calls ? $calls{$calls} : 0, defined $where ? $node->data_dir . $where : '';
	open my $fh, '+<', $node->{torture_disk} or die "could not write $node->{torture_disk}: $!";
	syswrite $fh, $order;
	sysseek $fh, 0, 0;
	syswrite $fh, pack 'l', $number;
	close $fh;
}

# All, and those in files of uidgen's.
sub failed_calls ($node)
{
	open my $fh, '<', $node->{torture_disk} or die "could not read $node->{torture_disk}: $!";
	sysseek $fh, $order_bytes, 0;
	sysread $fh, my $counts, 16;
	close $fh;
	return unpack 'q q', $counts;
}

1;
