# A clock of a server that a test moves or stops, by libfaketime.
#
#   use_fake_clock($node);                     # before start_node or start_uidgen
#   set_clock($node, '-1h');                   # at any time: relative to the real clock
#   freeze_clock($node, 2.5);                  # stands still, 2.5 s after a fixed instant
#   new_server('primary', clock => 0);         # has been frozen before its start
package Clock;

use v5.36;

use Exporter 'import';
use POSIX ();
use Test::More;
use UidgenTest;

our @EXPORT = qw(use_fake_clock set_clock freeze_clock);

# The library reads the file at each call. It leaves the monotonic clock alone, so that waits last as long as they
# should, and the times of files, because the file of grants is known by the time of its birth.
sub use_fake_clock ($node)
{
	my ($library) = grep { -e } glob '/usr/lib{,64}/{,*/}faketime/libfaketime.so.1';
	plan skip_all => 'libfaketime is not installed' unless defined $library;

	$node->{uidgen_clock} = $node->basedir . '/clock';
	$node->{uidgen_env} = {
		LD_PRELOAD => $library,
		FAKETIME_TIMESTAMP_FILE => $node->{uidgen_clock},
		FAKETIME_NO_CACHE => 1,
		DONT_FAKE_MONOTONIC => 1,
		NO_FAKE_STAT => 1,
		TZ => 'UTC'
	};
	set_clock($node, '+0');
}

# Offsets are libfaketime's: '-1h', '+5m', '+2.5' (seconds), '-1y'.
sub set_clock ($node, $offset)
{
	write_file($node->{uidgen_clock}, "$offset\n");
}

# Stops the clock, some seconds after a fixed instant: 2026-11-21 12:00:00 UTC. So no result of a test depends on time
# that passes. libfaketime's fractions are floating point: use exact ones, such as 0.5 or 0.125.
sub freeze_clock ($node, $seconds = 0)
{
	my $micros = sprintf('%.0f', $seconds * 1e6);
	my $whole = 1795262400 + POSIX::floor($micros / 1e6);
	return set_clock($node,
		POSIX::strftime('%Y-%m-%d %H:%M:%S', gmtime $whole)
		  . sprintf('.%06d', $micros % 1e6));
}

1;
