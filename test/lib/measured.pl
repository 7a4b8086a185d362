# Runs a command, and adds a line to a file: seconds, seconds of processor time, label. Ends as the command does.
#
#   perl measured.pl FILE LABEL COMMAND ARGUMENT...
#
# Servers leave the process that has started them. Here they count nevertheless, if they end before the command does.
use strict;
use warnings;

use POSIX ':sys_wait_h';
use Time::HiRes 'time';

my ($file, $label, @command) = @ARGV;
# PR_SET_CHILD_SUBREAPER is 36. Where the system call has no known number, servers do not count.
eval { require 'syscall.ph'; syscall(SYS_prctl(), 36, 1, 0, 0, 0) };

my $began = time;
my $pid = fork // die "could not fork: $!";
if ($pid == 0)
{
	exec { $command[0] } @command or die "could not run $command[0]: $!";
}
local $SIG{TERM} = sub { kill 'TERM', $pid };
my $status;
until (defined $status)
{
	my $ended = waitpid(-1, 0);
	$status = $? if $ended == $pid;
}
# A server that was stopped has still to end.
for (1 .. 20)
{
	my $ended = waitpid(-1, WNOHANG);
	last if $ended < 0;
	Time::HiRes::sleep(0.01) if $ended == 0;
}
my (undef, undef, $user, $system) = times;
open my $out, '>>', $file or die "could not open $file: $!";
syswrite $out, sprintf("%.1f %.1f %s\n", time - $began, $user + $system, $label);
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
