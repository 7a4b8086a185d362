# Memory of their own and open descriptors of the servers' processes. In a calm round nothing ends a session, so what each
# call leaves behind adds up.
package Growth;

use strict;
use warnings;

use PostgreSQL::Test::Utils ();
use UidgenTest;

# Caches of catalogs grow until every statement has run, and again after DDL. In an hour a session sends 54,000 statements
# after the first reading, so 80 bytes that each leaves behind are more than this.
my $most_kb = 4096;
my $most_descriptors = 20;

# Below the data directory. PostgreSQL keeps files of relations and of its log open for later use, up to
# max_files_per_process.
my $kept_open = qr{^(?:base|global|pg_tblspc|pg_wal|pg_xact|pg_multixact|pg_subtrans|pg_commit_ts|pg_serial|pg_notify
  |pg_logical|pg_replslot)/}x;

sub new
{
	my ($class) = @_;
	return bless { processes => {}, readings => 0 }, $class;
}

# A process as it is now; nothing if it has ended. Shared memory does not count.
sub read_process
{
	my ($pid) = @_;
	my ($stat, $status) = map { eval { PostgreSQL::Test::Utils::slurp_file("/proc/$pid/$_") } // '' } 'stat', 'status';
	# The 22nd field of all is the time when it began. With the pid it names one process, because pids are used again.
	my ($rest) = $stat =~ /.*\) (.*)/ or return;
	my ($kilobytes) = $status =~ /^RssAnon:\s+(\d+)/m or return;
	my $data = readlink("/proc/$pid/cwd") // return;
	my @descriptors = grep { !(/^\Q$data\E\/(.*)/ && $1 =~ $kept_open) } map { readlink($_) // () } glob "/proc/$pid/fd/*";
	return { began => (split / /, $rest)[19], kb => $kilobytes, descriptors => scalar @descriptors };
}

# Keeps the first reading, and the last one.
sub read_all
{
	my ($self, @nodes) = @_;
	foreach my $pid (map { ($_->{_pid} // (), background_pids($_)) } @nodes)
	{
		my $now = read_process($pid) // next;
		my $of = "$pid since $now->{began}";
		$self->{processes}{$of} //= { title => Nemesis::title($pid), first => $now };
		$self->{processes}{$of}{last} = $now;
		$self->{processes}{$of}{readings}++;
	}
	$self->{readings}++;
	return;
}

# Those that were there at each reading.
sub survivors
{
	my ($self) = @_;
	return grep { $_->{readings} == $self->{readings} } values %{ $self->{processes} };
}

sub describe
{
	my ($self) = @_;
	my @survivors = $self->survivors;
	my ($most) = sort { $b->{last}{kb} - $b->{first}{kb} <=> $a->{last}{kb} - $a->{first}{kb} } @survivors;
	return 'no process has lived all the time' unless $most;
	return sprintf 'of %d processes %d have lived all the time; the one that has grown most, by %d kB and %d descriptors, is %s',
	  scalar(keys %{ $self->{processes} }), scalar(@survivors), $most->{last}{kb} - $most->{first}{kb},
	  $most->{last}{descriptors} - $most->{first}{descriptors}, $most->{title};
}

# A line for each process that has grown too much, and one if fewer sessions than that have lived all the time. Those of
# members' registrars at a registry do not count.
sub findings
{
	my ($self, $sessions) = @_;
	return ("what processes hold was read $self->{readings} times only") if $self->{readings} < 2;
	my $lived = grep { $_->{title} =~ /\[local\]/ && $_->{title} !~ /^(?:walsender|uid_fleet) / } $self->survivors;
	my @findings = $lived < $sessions ? ("only $lived sessions have lived all the time") : ();
	foreach my $process ($self->survivors)
	{
		my ($kb, $descriptors) = map { $process->{last}{$_} - $process->{first}{$_} } 'kb', 'descriptors';
		push @findings, "a process has grown by $kb kB and $descriptors descriptors: $process->{title}"
		  if $kb > $most_kb || $descriptors > $most_descriptors;
	}
	return sort @findings;
}

1;
