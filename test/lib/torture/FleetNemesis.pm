# What goes wrong in a fleet's round, beside what goes wrong on any of its servers (Nemesis.pm): with the registry, with
# what members and the registry say to each other, and with members that are copied, moved or replaced.
#
# Docs/fleet.md says what members see. A registry that cannot be reached, or that refuses newcomers, explains 55000 until
# grants that ended meanwhile can be replaced.
package FleetNemesis;

use strict;
use warnings;

use parent 'Nemesis';

use Clone;
use Liar qw(create_liar lies set_answer);
use PostgreSQL::Test::Utils ();
use Time::HiRes qw(sleep);
use UidgenTest;

my @of_any_server = qw(kill_backend kill_background kill_postmaster stop_immediate stop_fast freeze_session
  freeze_background freeze_server terminate cancel checkpoint fill_disk break_disk use_up_memory
  stop_smart);

my %faults = (
	registry_away => { weight => 5 },
	tamper => { weight => 12 },
	cut_off => { weight => 5 },
	copy_member => { weight => 6 },
	clone_member => { weight => 4, if => sub { !$_[0]->{setting}{clock} } },
	move_member => { weight => 3 },
	join_late => { weight => 4 },
	lie => { weight => 6 },
	attach_again => { weight => 4 },
	alter_generator => { weight => 3 },
	move_counter => { weight => 3 },
	replace_member => { weight => 4, if => sub { !$_[0]->{setting}{clock} } },
	step_clock => { weight => 15, if => sub { $_[0]->{setting}{clock} } },
	fail_over_registry => { weight => 7, if => sub { defined $_[0]->{standby} } },
	lose_grants => { weight => 10 },
	former_registry => { weight => 7, if => sub { defined $_[0]->{standby} && $_[0]->{setting}->loses_commits } });

sub catalog
{
	my ($self) = @_;
	my %of_any = Nemesis->catalog;
	return ((map { $_ => { %{ $of_any{$_} }, weight => $of_any{$_}{weight} / 3 } } @of_any_server), %faults);
}

# The registry as often as all members together.
sub choose_server
{
	my ($self, $dice) = @_;
	my @members = $self->{servers}->members;
	my $member = $dice->one_of(@members);
	$self->{node} = $dice->chance(50) ? $self->{servers}{primary} : $member->{node};
	return;
}

sub choose_member
{
	my ($self, $dice) = @_;
	return $dice->one_of($self->{servers}->members);
}

sub is_registry
{
	my ($self) = @_;
	return $self->{node} == $self->{servers}{primary};
}

# Those that leave the registry, the way to it, grants and whole servers alone; the second ones at members only, because
# a session at the registry may be that of a member's registrar.
my %is_harmless = map { $_ => 1 } qw(checkpoint alter_generator move_counter);
my %is_harmless_at_member = map { $_ => 1 } qw(cancel terminate freeze_session use_up_memory);

# Any other fault may keep members from the registry for a while.
sub in_force
{
	my ($self, $name, $details, %opts) = @_;
	my $is_harmless = $is_harmless{$name} || $is_harmless_at_member{$name} && !$self->is_registry;
	my @states = (@{ $opts{explains} // [] }, $is_harmless ? () : '55000');
	my $fault =
	  $self->SUPER::in_force($name, $self->{node}->name . ($details eq '' ? '' : ": $details"), %opts, explains => \@states);
	$fault->{is_harmless} = $is_harmless;
	return $fault;
}

# Until a grant that ended meanwhile is replaced, if need be after a fence.
sub finish
{
	my ($self, $fault, $after) = @_;
	$after = ($after // 1) + $self->{setting}->fence_s + 3 unless $fault->{is_harmless};
	return $self->SUPER::finish($fault, $after);
}

sub sql_at_registry
{
	my ($self, $sql) = @_;
	local $self->{node} = $self->{servers}{primary};
	return $self->administer($sql);
}

# What changes the registry runs at this level only.
sub administer
{
	my ($self, $sql) = @_;
	return $self->sql("SET default_transaction_isolation = 'read committed';\n$sql");
}

# ---------------------------------------------------------------------------------------------------------------
# The registry, and the way to it.
# ---------------------------------------------------------------------------------------------------------------

# For less than a grant, or for longer.
sub registry_away
{
	my ($self, $dice) = @_;
	my $seconds = $dice->one_of(0.5, 2, $self->{setting}{lease_s} + 2);
	my $mode = $dice->one_of('fast', 'immediate');
	$self->{node} = $self->{servers}{primary};
	my $fault = $self->in_force('registry_away', "$mode, for $seconds s", explains => [qw(08001 08006 57P01 57P02 57P03)],
		marks => 'stall crash');
	$self->{node}->stop($mode, fail_ok => 1) or $self->found("the registry does not stop ($mode)");
	sleep($seconds);
	$self->start;
	return $self->finish($fault);
}

# Messages are delayed, lost, repeated, or overtaken by later ones.
sub tamper
{
	my ($self, $dice) = @_;
	my $mode = $dice->one_of('delay 0.3', 'delay 3', 'lose 50', 'lose 100', 'repeat 70', 'late 70', 'late 100');
	my @members = $self->{servers}->members;
	@members = $dice->one_of(@members) if $dice->chance(40);
	my $seconds = $dice->one_of(1, 3, 8);
	return $self->with_mode('tamper', $mode, $seconds, @members);
}

sub cut_off
{
	my ($self, $dice) = @_;
	my $seconds = $dice->one_of(1, $self->{setting}{lease_s} + 1, $self->{setting}{lease_s} + 3);
	return $self->with_mode('cut_off', 'cut', $seconds, $self->choose_member($dice));
}

sub with_mode
{
	my ($self, $name, $mode, $seconds, @members) = @_;
	$self->{node} = $members[0]{node};
	my $fault = $self->in_force($name, "$mode for $seconds s, members " . join(' ', map { $_->{name} } @members), marks => 'stall');
	$self->{servers}->set_mode($mode, @members);
	sleep($seconds);
	$self->{servers}->set_mode('pass', @members);
	return $self->finish($fault);
}

# ---------------------------------------------------------------------------------------------------------------
# Another server is the registry.
# ---------------------------------------------------------------------------------------------------------------

my @registry_gone = qw(08001 08006 57P01 57P02 57P03);

sub fail_over_registry
{
	my ($self, $dice) = @_;
	$self->{node} = $self->{servers}{primary};
	my $fault = $self->in_force('fail_over_registry', '', explains => \@registry_gone, marks => 'stall crash');
	# What the standby has not got is lost, if nobody waits for it.
	my @walsenders = $self->processes(qr/^walsender/);
	freeze_process($_) foreach @walsenders;
	sleep($dice->one_of(0, 1, $self->{setting}{lease_s}));
	$self->{servers}->hold_registry;
	my $old = $self->fail_over;
	$self->{servers}->registry_is($self->{node});
	$self->come_back($dice, $old);
	return $self->finish($fault);
}

# A member gets new nodes, and then nothing more from the registry, which crashes. While that member draws, another one
# needs new nodes, from the registry that follows: the same server, or its standby, which has never heard of the grants if
# it is an asynchronous one. All others are cut off before, so that nobody shows the registry that it has lost something,
# and nobody else flushes its log. An asynchronous standby may know of a handover that has expired.
sub lose_grants
{
	my ($self, $dice) = @_;
	my $servers = $self->{servers};
	my $holder = $self->choose_member($dice);
	my @others = grep { $_ != $holder } $servers->members;
	my $newcomer = $dice->one_of(@others);
	$self->{node} = $servers->{primary};
	my $fault = $self->in_force('lose_grants', "of member $holder->{name}, while $newcomer->{name} needs new ones",
		explains => \@registry_gone, marks => 'stall crash');
	$self->use_all_nodes($newcomer);
	$servers->set_mode('cut', @others);
	$servers->hold_registry;
	$self->hand_over_in_vain if defined $self->{standby} && $self->{setting}->loses_commits && $dice->chance(50);
	my @senders = $self->{setting}->loses_commits ? $self->processes(qr/^walsender/) : ();
	freeze_process($_) foreach @senders, $self->processes(qr/^walwriter/);
	$self->get_new_nodes($holder);
	$servers->set_mode('cut', $holder);
	my $last_end = Nemesis::now() + $self->{setting}{lease_s} * 1e9;
	my $old = defined $self->{standby} ? $self->fail_over : $self->crash;
	$servers->set_mode('pass', @others);
	$self->get_new_nodes($newcomer);
	$self->check_that_registry_is_open;
	sleep(0.05) while Nemesis::now() < $last_end;
	$servers->set_mode('pass', $holder);
	$servers->registry_is($self->{node});
	$self->come_back($dice, $old) if defined $old;
	return $self->finish($fault);
}

# The standby learns of a handover that expires, and not that it is canceled then. (It would take five minutes.)
sub hand_over_in_vain
{
	my ($self) = @_;
	$self->administer("SELECT uid_fleet_handover(); UPDATE uid_fleet_state SET closed_until = clock_timestamp() - interval '1 min'");
	eval { $self->{node}->wait_for_catchup($self->{standby}) };
	freeze_process($_) foreach $self->processes(qr/^walsender/);
	defined $self->administer('SELECT uid_fleet_handover(cancel => true)')
	  or $self->found('a handover that has expired cannot be canceled');
	return;
}

# At the first call after a failover a handover is over, whether it was in force or not.
sub check_that_registry_is_open
{
	my ($self) = @_;
	my $is_open = 'SELECT closed_until IS NULL FROM uid_fleet_state';
	poll_until('the registry is open', sub { ($self->administer($is_open) // '') eq 't' }, 15)
	  or $self->found('a registry stays closed after a handover that has expired');
	return;
}

sub crash
{
	my ($self) = @_;
	$self->kill_server($self->{node});
	$self->start;
	return;
}

# In the layout with few nodes. A newcomer gets a node at random while there are unused ones, and then the one that is
# free for the longest time: then two registries that know the same choose the same.
sub use_all_nodes
{
	my ($self, $member) = @_;
	my $used = 'SELECT count(*) FROM uid_fleet_node WHERE pool = (SELECT pool FROM uid_fleet_pools WHERE nodes = 4)';
	foreach (1 .. 10)
	{
		return if ($self->sql_at_registry($used) // 0) == 4 || !defined $self->get_new_nodes($member);
	}
	return;
}

# As a newcomer. Waits until there is one in the layout with few nodes, or none is to be had.
sub get_new_nodes
{
	my ($self, $member, $max_wait) = @_;
	local $self->{node} = $member->{node};
	my $set = defined $max_wait ? "SET uidgen.max_wait = '$max_wait'; " : '';
	return $self->sql("${set}SELECT uid_fleet_move(); SELECT uid_next('uid_generators.small')");
}

# Where no newcomer may get a node.
sub check_that_none_is_granted
{
	my ($self, $member, $where) = @_;
	$self->found("member $member->{name} gets a node from $where") if defined $self->get_new_nodes($member, '1s');
	return;
}

# The registry waits for the sessions of members' registrars, which do not end.
sub stop_smart
{
	my ($self, $dice) = @_;
	my $member = $self->choose_member($dice);
	$self->{node} = $member->{node} if $self->is_registry;
	return $self->SUPER::stop_smart($dice);
}

sub waits_for_standby
{
	my ($self) = @_;
	return $self->SUPER::waits_for_standby && $self->is_registry;
}

# The settings wait for a synchronous standby whoever is the primary.
sub make_synchronous
{
}

# A former primary is started next to the promoted standby. One member reaches nothing else, and the others do not reach
# it. It knows how long grants may last, and of live holders: that is made to be so for longer than this takes. When all
# reach both, it closes itself, and becomes the standby.
sub former_registry
{
	my ($self, $dice) = @_;
	my $servers = $self->{servers};
	my $lonely = $self->choose_member($dice);
	my @others = grep { $_ != $lonely } $servers->members;
	$self->{node} = $servers->{primary};
	my $fault = $self->in_force('former_registry', "which only member $lonely->{name} reaches", explains => \@registry_gone,
		marks => 'stall crash');
	$self->use_all_nodes($lonely);
	$servers->set_mode('cut', $servers->members);
	$servers->hold_registry;
	my $old = $self->fail_over;
	my $new = $self->{node};
	$servers->registry_is($new);
	$servers->set_mode_to($new, 'pass', @others);
	{
		# A newcomer has nothing to show.
		local $self->{node} = $lonely->{node};
		$self->sql('SELECT uid_fleet_move()');
	}
	$self->{node} = $old;
	$self->start;
	defined $self->administer(<<'END') or $self->found('the tables of a former registry cannot be changed');
UPDATE uid_fleet_state SET longest_grant = '10 min';
UPDATE uid_fleet_node SET granted_until = granted_until + 600000
 WHERE membership <> 0 AND pool IN (SELECT pool FROM uid_fleet_pools WHERE nodes > 16)
END
	$servers->set_mode_to($old, 'pass', $lonely);
	foreach (1 .. 4)
	{
		$self->check_that_none_is_granted($lonely, 'a former registry');
		last if !@{ $self->{found} };
	}
	$servers->set_mode('pass', $servers->members);
	my $shown = 'SELECT shown_term IS NOT NULL FROM uid_fleet_state';
	poll_until('the former registry closes itself', sub { ($self->sql($shown) // '') eq 't' }, 60)
	  or $self->found('a former registry is not shown that there is another one');
	$old->stop('fast', fail_ok => 1) or $self->found('the former registry does not stop (fast)');
	$self->{node} = $new;
	$self->come_back($dice, $old);
	return $self->finish($fault);
}

# ---------------------------------------------------------------------------------------------------------------
# Members.
# ---------------------------------------------------------------------------------------------------------------

my @outage = qw(08001 08006 57P01 57P02 57P03 XX000 25006);

# A copy of a member becomes another one: of the running server, of the stopped one, or its standby, promoted.
my %makes_copy = (running => \&copy_running, stopped => \&copy_stopped, standby => \&copy_standby);

sub copy_running
{
	my ($self, $member, $copy, @options) = @_;
	my $original = $member->{node};
	mkdir $original->backup_dir;
	$self->back_up($original, $original->backup_dir . '/' . $copy->name) or return 0;
	$copy->init_from_backup($original, $copy->name, @options);
	return start_node($copy, fail_ok => 1);
}

sub copy_standby
{
	my ($self, $member, $copy) = @_;
	my $is_started = $self->copy_running($member, $copy, has_streaming => 1);
	$copy->promote if $is_started;
	return $is_started;
}

sub copy_stopped
{
	my ($self, $member, $copy) = @_;
	my $original = $member->{node};
	$self->stop_and_copy($original, $copy);
	$self->start;
	return start_node($copy, fail_ok => 1);
}

sub stop_and_copy
{
	my ($self, $original, $copy) = @_;
	$original->stop('fast', fail_ok => 1) or $self->found('a member does not stop (fast)');
	mkdir $copy->basedir;
	PostgreSQL::Test::Utils::system_or_bail('cp', '-a', $original->data_dir, $copy->data_dir);
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'\n");
	return;
}

# Half of the member's sessions draw from the copy for a while.
sub copy_member
{
	my ($self, $dice) = @_;
	my $member = $self->choose_member($dice);
	my $kind = $dice->one_of(sort keys %makes_copy);
	$self->{node} = $member->{node};
	my $fault = $self->in_force('copy_member', $kind, explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	$self->draw_from_copy($dice, $member, $copy, $dice->one_of(1, 4)) if $makes_copy{$kind}->($self, $member, $copy);
	return $self->finish($fault);
}

sub draw_from_copy
{
	my ($self, $dice, $member, $copy, $seconds) = @_;
	$self->{servers}->send_half_to($member, $copy);
	sleep($seconds);
	$self->{servers}->write_targets_of_member($member);
	return $copy->stop($dice->one_of('fast', 'immediate'), fail_ok => 1);
}

# As of the volume of a stopped member, without the file that docs/fleet.md says to remove. Both go on as the same line. It
# is the registry that tells them apart when they ask, so the copy starts after the last grant that it knows of has ended.
sub clone_member
{
	my ($self, $dice) = @_;
	my $member = $self->choose_member($dice);
	my $original = $self->{node} = $member->{node};
	my $fault = $self->in_force('clone_member', '', explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	$self->stop_and_copy($original, $copy);
	my $is_clone = make_clone($copy, $original);
	$self->start;
	sleep($self->{setting}{lease_s} + $self->{setting}{bound_s} + 0.5);
	$self->draw_from_copy($dice, $member, $copy, 4) if $is_clone && start_node($copy, fail_ok => 1);
	# One of the two was refused.
	$self->get_other_nodes;
	return $self->finish($fault);
}

# A member's machine is gone for good. Its nodes are taken over, and a server from a backup takes its place.
sub replace_member
{
	my ($self, $dice) = @_;
	my $member = $self->choose_member($dice);
	my $old = $self->{node} = $member->{node};
	my $fault = $self->in_force('replace_member', '', explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	return $self->finish($fault) unless $self->copy_running($member, $copy);
	$self->{servers}->member_is($member, $copy);
	$self->kill_server($old);
	$self->sql_at_registry(<<"END");
SELECT format('SELECT uid_fleet_takeover(%s, %s)', pool, node) FROM uid_fleet
 WHERE port = '@{[ $old->port ]}' AND state = 'live' \\gexec
END
	return $self->finish($fault);
}

# All its generators get new nodes. Its segments are attached again.
sub move_member
{
	my ($self, $dice) = @_;
	$self->{node} = $self->choose_member($dice)->{node};
	my $fault = $self->in_force('move_member', '');
	$self->get_other_nodes;
	return $self->finish($fault);
}

sub get_other_nodes
{
	my ($self) = @_;
	return $self->sql("SELECT uid_fleet_move();\n" . join '', map { FleetPaths::attach($_) } $self->{paths}->attached);
}

# A server has drawn ahead of its clock with a node of its own, and joins the fleet. Then a member needs a node, too. They
# draw in a layout of two nodes, which nobody has used before.
sub join_late
{
	my ($self, $dice) = @_;
	my $late = $self->{node} = $self->{servers}->late_server;
	my $newcomer = $self->choose_member($dice);
	my $fault = $self->in_force('join_late', "before member $newcomer->{name} needs a node");
	my $name = "late_$self->{number}";
	my $tick_us = 1000 + $self->{number};
	my $create =
	  "SELECT uid_generator_create('$name', tick_us => $tick_us, datacenter_bits => 0, worker_bits => 1, sequence_bits => 3)";
	$self->set_registry($late, '');
	foreach my $node ($late, $newcomer->{node})
	{
		local $self->{node} = $node;
		$self->sql($create);
	}
	$self->draw_late($late, $name, 12000);
	$self->set_registry($late, registry_line(@{ $self->{servers}{registries} }));
	$self->draw_late($newcomer->{node}, $name, 12000) if $self->draw_late($late, $name, 10);
	foreach my $node ($late, $newcomer->{node})
	{
		local $self->{node} = $node;
		$self->sql("SELECT uid_generator_drop('uid_generators.$name')");
	}
	return $self->finish($fault);
}

# Ids that are written down as those of a session. 0: there are none.
sub draw_late
{
	my ($self, $node, $name, $count) = @_;
	local $self->{node} = $node;
	my $begin = Nemesis::now();
	my $ids = $self->sql("SELECT unnest(uid_next_array('uid_generators.$name', $count))") // return 0;
	$self->{servers}->write_down('join_late', $begin, Nemesis::now(), late => [ split /\n/, $ids ]);
	return 1;
}

# '': it is in no fleet.
sub set_registry
{
	my ($self, $node, $line) = @_;
	local $self->{node} = $node;
	my $is_set = sub {
		$self->alter_system("uidgen.registry = '$line'");
		return ($self->sql('SHOW uidgen.registry') // 'no answer') eq $line;
	};
	poll_until('the registry of ' . $node->name, $is_set, 60) or $self->found('a reload does not change the registry');
	return;
}

# The former line is back after so long.
sub have_line
{
	my ($self, $member, $line, $seconds) = @_;
	$self->set_registry($member->{node}, $line);
	sleep($seconds);
	$self->set_registry($member->{node}, $member->{line});
	return;
}

# The line of a member names a database whose answers are not those of its registry.
sub lie
{
	my ($self, $dice) = @_;
	my $liar = $self->{servers}->other_registry;
	create_liar($liar) unless $self->{is_liar_there}++;
	my $lie = $dice->one_of(lies());
	my $member = $self->choose_member($dice);
	my $seconds = $dice->one_of(1, 2, $self->{setting}{lease_s} + 2);
	$self->{node} = $member->{node};
	my $fault = $self->in_force('lie', sprintf('%s: %s = %s', @$lie) . ", for $seconds s", marks => 'stall');
	set_answer($liar, @$lie);
	$self->have_line($member, registry_line($liar) =~ s/dbname=\w+/dbname=liar/r, $seconds);
	return $self->finish($fault);
}

# While others draw from it. Dropped, it is not there for a moment.
sub attach_again
{
	my ($self, $dice) = @_;
	my $segment = $dice->one_of($self->{paths}->attached);
	my $attach = FleetPaths::attach($segment);
	my $sql = $dice->one_of($attach, "BEGIN; $attach ROLLBACK", "BEGIN; SELECT segment_drop('$segment'); $attach COMMIT",
		"BEGIN; SELECT segment_drop('$segment'); $attach ROLLBACK");
	$self->{node} = $self->choose_member($dice)->{node};
	my $fault = $self->in_force('attach_again', $sql =~ s/\n/ /gr, explains => [ '42P01', '42704', 'XX000' ]);
	$self->sql($sql);
	return $self->finish($fault);
}

# The registry's own sequence, or a member's record of it, is moved on.
sub move_counter
{
	my ($self, $dice) = @_;
	my $segment = $dice->one_of($self->{paths}->attached);
	my $by = $dice->one_of(100, 100000) * ($segment eq 'falling' ? -1 : 1);
	$self->{node} = $self->choose_member($dice)->{node} if !$self->is_registry;
	return $self->command($dice, 'move_counter', "SELECT setval('uid_segments.$segment', last_value + $by) FROM uid_segments.$segment");
}

sub alter_generator
{
	my ($self, $dice) = @_;
	my $generator = 'uid_generators.' . $dice->one_of(qw(cached small baidu));
	$self->{node} = $self->choose_member($dice)->{node};
	return $self->command($dice, 'alter_generator',
		"SELECT uid_generator_alter('$generator', lease_ms => 2000)",
		"SELECT uid_generator_alter('$generator', lease_ms => 500)",
		"BEGIN; SELECT uid_generator_alter('$generator', lease_ms => 1500); ROLLBACK");
}

# Of one server, and back after a while. If commits may be lost, by less than the bound.
sub step_clock
{
	my ($self, $dice) = @_;
	my $bound = $self->{setting}{bound_s};
	my $step = $dice->one_of(map { $_ * $bound / 2 } -0.9, -0.5, 0.5, 0.9);
	$step = $dice->one_of(-3600, -60, -5, -1, 1, 5, 60, 3600) if $dice->chance(70) && !$self->{setting}->loses_commits;
	my $seconds = $dice->one_of(0.2, 1, 4);
	my $fault = $self->in_force('step_clock', "$step s for $seconds s");
	$self->set_offset($step);
	sleep($seconds);
	$self->set_offset(0);
	return $self->finish($fault, 2);
}

1;
