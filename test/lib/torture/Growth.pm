# What the processes of servers hold that live for long: memory of their own, and open files. In a calm round nothing ends
# a session, so what each call leaves behind adds up.
package Growth;

use strict;
use warnings;

use PostgreSQL::Test::Utils ();
use UidgenTest;

# Caches of catalogs grow until everything was called, and again after each DDL of another session. In an hour 8 bytes of
# each call would be more than this.
my $most_kb = 4096;
my $most_files = 50;

sub new
{
	my ($class) = @_;
	return bless { processes => {} }, $class;
}

# A process as it is now; undef: it is gone. Shared memory does not count.
sub look_at
{
	my ($pid) = @_;
	my ($stat, $status) = map { eval { PostgreSQL::Test::Utils::slurp_file("/proc/$pid/$_") } // '' } 'stat', 'status';
	my ($title, $rest) = $stat =~ /\((.*)\) (.*)/ or return;
	my ($kilobytes) = $status =~ /^RssAnon:\s+(\d+)/m or return;
	return { began => (split / /, $rest)[19], kb => $kilobytes, files => scalar(() = glob "/proc/$pid/fd/*") };
}

# Keeps the first look, and the last one.
sub look
{
	my ($self, @nodes) = @_;
	foreach my $pid (map { ($_->{_pid} // (), background_pids($_)) } @nodes)
	{
		my $now = look_at($pid) // next;
		my $of = "$pid since $now->{began}";
		$self->{processes}{$of} //= { title => Nemesis::title($pid), first => $now };
		$self->{processes}{$of}{last} = $now;
		$self->{processes}{$of}{looks}++;
	}
	$self->{looks}++;
	return;
}

# Those that were there at each look.
sub survivors
{
	my ($self) = @_;
	return grep { $_->{looks} == $self->{looks} } values %{ $self->{processes} };
}

sub describe
{
	my ($self) = @_;
	my @survivors = $self->survivors;
	my ($most) = sort { $b->{last}{kb} - $b->{first}{kb} <=> $a->{last}{kb} - $a->{first}{kb} } @survivors;
	return 'no process has lived all the time' unless $most;
	return sprintf 'of %d processes %d have lived all the time; the one that has grown most, by %d kB and %d files, is %s',
	  scalar(keys %{ $self->{processes} }), scalar(@survivors), $most->{last}{kb} - $most->{first}{kb},
	  $most->{last}{files} - $most->{first}{files}, $most->{title};
}

# A line for each process that has grown too much.
sub leaks
{
	my ($self) = @_;
	my @leaks;
	foreach my $process ($self->survivors)
	{
		my ($kb, $files) = map { $process->{last}{$_} - $process->{first}{$_} } 'kb', 'files';
		push @leaks, "a process has grown by $kb kB and $files files: $process->{title}" if $kb > $most_kb || $files > $most_files;
	}
	return sort @leaks;
}

1;
