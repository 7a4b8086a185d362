# What goes wrong in a fleet's round, beside what goes wrong on any of its servers (Nemesis.pm): with the registry, and with
# members that are copied, put back or moved.
#
# A registry that is away, or that gives newcomers nothing after commits may have been lost, explains 55000.
package FleetNemesis;

use v5.36;

use parent 'Nemesis';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils ();
use Time::HiRes qw(sleep);
use Trouble qw(postmaster_pid background_pids freeze_process thaw);
use UidgenTest;

my @of_any_server = qw(kill_backend kill_background kill_postmaster stop_immediate stop_fast freeze_session
  freeze_background freeze_server terminate cancel checkpoint);

sub is_alone ($self)
{
	return $self->{setting}{registry} eq 'single';
}

my %faults = (
	registry_away => { weight => 5 },
	fail_over_registry => { weight => 10, if => sub { !$_[0]->is_alone } },
	former_registry => { weight => 6, if => sub { !$_[0]->is_alone } },
	restore_registry => { weight => 6, if => \&is_alone },
	registry_anew => { weight => 3, if => \&is_alone },
	clone_member => { weight => 8 },
	put_back_member => { weight => 5 },
	move_member => { weight => 4 });

sub catalog ($self)
{
	my %of_any = Nemesis->catalog;
	return ((map { $_ => { weight => $of_any{$_}{weight} / 3 } } @of_any_server), %faults);
}

# The registry as often as all members together.
sub choose_server ($self, $dice)
{
	my $member = $dice->one_of($self->{servers}->members);
	$self->{node} = $dice->chance(50) ? $self->{servers}{primary} : $member->{node};
}

# Until a grant that ended meanwhile is replaced, if need be after a fence.
sub in_force ($self, $name, $details, %opts)
{
	$self->SUPER::in_force($name, $self->{node}->name . ($details eq '' ? '' : ": $details"), %opts,
		explains => [ @{ $opts{explains} // [] }, '55000' ], after => ($opts{after} // 1) + $self->{setting}->fence_s + 5);
}

# ---------------------------------------------------------------------------------------------------------------
# The registry.
# ---------------------------------------------------------------------------------------------------------------

sub begin_at_registry ($self, $name, $details)
{
	$self->{node} = $self->{servers}{primary};
	$self->in_force($name, $details, marks => 'stall');
}

# Its segment gives blocks again, above all values that were given.
sub open_segment ($self)
{
	my $keeps = $self->{setting}->keeps;
	$self->{servers}{primary} = $self->{node};
	$self->sql("SELECT uid_registry.promise('$keeps'); UPDATE uid_registry.segment SET next_value = next_value + 1000000000, fence = DEFAULT"
		. ' WHERE fence <> uid_registry.fences()') // $self->found('the segment of the registry cannot be opened');
}

# For less than a grant, or for longer.
sub registry_away ($self, $dice)
{
	my ($mode, $seconds) = ($dice->one_of('fast', 'immediate'), $dice->one_of(0.5, 3, $self->{setting}{longest_s} + 2));
	$self->begin_at_registry('registry_away', "$mode, for $seconds s");
	$self->{node}->stop($mode, fail_ok => 1) or $self->found("the registry does not stop ($mode)");
	sleep($seconds);
	$self->start;
}

# What the standby has not got is lost, if nobody waits for it.
sub take_over ($self, $dice)
{
	my @walsenders = $dice->chance(70) ? $self->processes(qr/^walsender/) : ();
	eval { freeze_process($_) } foreach @walsenders;
	sleep($dice->one_of(0.5, 2, 5)) if @walsenders;
	return $self->fail_over;
}

sub fail_over_registry ($self, $dice)
{
	$self->begin_at_registry('fail_over_registry', '');
	my $old = $self->take_over($dice);
	$self->come_back($dice, $old);
	return $self->open_segment;
}

# It starts again as a primary beside the new one, for a while.
sub former_registry ($self, $dice)
{
	$self->begin_at_registry('former_registry', '');
	my $former = $self->take_over($dice);
	start_node($former, fail_ok => 1) or $self->found('the former registry does not start');
	sleep($dice->one_of(0.5, 3, 8));
	$former->stop('fast', fail_ok => 1) or $self->found('the former registry does not stop (fast)');
	$self->come_back($dice, $former);
	return $self->open_segment;
}

# Sessions of members go on meanwhile.
sub restore_registry ($self, $dice)
{
	$self->begin_at_registry('restore_registry', '');
	my $copy = $self->{node}->data_dir . '.backup';
	my $point = "point $self->{number}";
	$self->back_up($self->{node}, $copy) or return;
	sleep($dice->fraction);
	$self->sql("SELECT pg_create_restore_point('$point'), pg_current_xact_id()") // return;
	sleep(3 * $dice->fraction);
	$self->put_back($copy, $point);
	return $self->open_segment;
}

sub registry_anew ($self, $dice)
{
	my $servers = $self->{servers};
	$self->begin_at_registry('registry_anew', '');
	my $fleet = $self->sql('SELECT fleet FROM uid_registry.registry') // return;
	my $next = $self->sql(q{SELECT next_value + 1000000000 FROM uid_registry.segment}) // return;
	my $old = $self->{node};
	my $new = $servers->new_registry;
	$self->kill_server($old);
	$servers->make_registry_on($new, fleet => $fleet);
	$self->{node} = $new;
	$self->sql("UPDATE uid_registry.segment SET next_value = $next") // $self->found('the segment cannot be set');
	$servers->{primary} = $new;
	return $servers->name_registries($new);
}

sub make_synchronous
{
	# Both servers wait for a standby by their settings.
}

# ---------------------------------------------------------------------------------------------------------------
# Members.
# ---------------------------------------------------------------------------------------------------------------

# The directory of a member as it is at one moment, while it runs.
sub copy_running ($self, $node, $directory)
{
	my @frozen = freeze_process(postmaster_pid($node));
	push @frozen, grep { eval { freeze_process($_) } } background_pids($node);
	my $status = PostgreSQL::Test::Utils::system_log('cp', '-a', $node->data_dir, $directory);
	thaw($_) foreach @frozen;
	unlink "$directory/postmaster.pid";
	return $status == 0;
}

# A copy draws beside its original, with the registry in reach or not.
sub clone_member ($self, $dice)
{
	my ($servers, $member) = ($self->{servers}, $dice->one_of($self->{servers}->members));
	my $registry = $servers->{primary};
	my $is_away = $dice->chance(30);
	$self->{node} = $member->{node};
	$self->in_force('clone_member', $is_away ? 'while the registry is away' : '', explains => \@Nemesis::away, marks => 'stall', after => 3);
	my $clone = $servers->add_node(PostgreSQL::Test::Cluster->new("clone$servers->{number}_" . ++$self->{clones}));
	mkdir $clone->basedir;
	$self->copy_running($member->{node}, $clone->data_dir) or return $self->found('a member cannot be copied');
	$clone->append_conf('postgresql.conf', 'port = ' . $clone->port . "\nunix_socket_directories = '" . $clone->host . "'\n");
	$registry->stop('fast', fail_ok => 1) if $is_away;
	start_node($clone, fail_ok => 1) or $self->found('the copy of a member does not start');
	$servers->write_target($member, 1, $clone);
	sleep($dice->one_of(2, 5));
	start_node($registry, fail_ok => 1) || $self->found('the registry does not start') if $is_away;
	sleep($dice->one_of(2, 5));
	$servers->write_target($member, 1, $member->{node});
	$clone->stop('fast', fail_ok => 1) or $self->found('the copy of a member does not stop (fast)');
	return PostgreSQL::Test::Utils::system_log('rm', '-rf', $clone->data_dir);
}

# A member is as it was some seconds ago.
sub put_back_member ($self, $dice)
{
	my $member = $dice->one_of($self->{servers}->members);
	my $node = $self->{node} = $member->{node};
	my ($data, $copy) = ($node->data_dir, $node->data_dir . '.copy');
	$self->in_force('put_back_member', '', explains => \@Nemesis::away, marks => 'stall crash', after => 3);
	$self->copy_running($node, $copy) or return $self->found('a member cannot be copied');
	sleep($dice->one_of(0.5, 2, 5));
	$self->{servers}->hold_member($member);
	$self->kill_server($node);
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $data);
	rename $copy, $data or die "could not rename $copy: $!";
	$self->start;
	# Its marks are as they were. So its ids go on below those since, but with other nodes.
	$self->{servers}->write_target($member, $_, $node) foreach 0, 1;
}

# To other nodes.
sub move_member ($self, $dice)
{
	$self->{node} = $dice->one_of($self->{servers}->members)->{node};
	$self->in_force('move_member', '');
	$self->sql('SELECT uid_fleet_move()');
}

1;
