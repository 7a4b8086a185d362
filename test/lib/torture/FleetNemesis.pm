# What goes wrong in a fleet's round, beside what goes wrong on any of its servers (Nemesis.pm): with the registry, with
# what members and the registry say to each other, and with members that are copied, moved or replaced.
#
# Docs/fleet.md says what members see. A registry that cannot be reached, or that refuses newcomers, explains 55000 until
# grants that ended meanwhile can be replaced.
package FleetNemesis;

use v5.36;

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
	equal_pools => { weight => 3 },
	copy_schema => { weight => 3 },
	many_generators => { weight => 3 },
	attach_again => { weight => 4 },
	alter_generator => { weight => 3 },
	move_counter => { weight => 3 },
	replace_member => { weight => 4, if => sub { !$_[0]->{setting}{clock} } },
	step_clock => { weight => 15, if => sub { $_[0]->{setting}{clock} } },
	fail_over_registry => { weight => 7, if => sub { defined $_[0]->{standby} } },
	lose_grants => { weight => 10 },
	former_registry => { weight => 10, if => sub { $_[0]->{setting}->may_lose_registry } });

sub catalog ($self)
{
	my %of_any = Nemesis->catalog;
	return ((map { $_ => { %{ $of_any{$_} }, weight => $of_any{$_}{weight} / 3 } } @of_any_server), %faults);
}

# The registry as often as all members together.
sub choose_server ($self, $dice)
{
	my @members = $self->{servers}->members;
	my $member = $dice->one_of(@members);
	$self->{node} = $dice->chance(50) ? $self->{servers}{primary} : $member->{node};
}

sub choose_member ($self, $dice)
{
	return $dice->one_of($self->{servers}->members);
}

sub is_registry ($self)
{
	return $self->{node} == $self->{servers}{primary};
}

# Those that leave the registry, the way to it, grants and whole servers alone; the second ones at members only, because
# a session at the registry may be that of a member's registrar.
my %is_harmless = map { $_ => 1 } qw(checkpoint alter_generator move_counter);
my %is_harmless_at_member = map { $_ => 1 } qw(cancel terminate freeze_session use_up_memory);

# Any other fault may keep members from the registry for a while.
sub in_force ($self, $name, $details, %opts)
{
	my $is_harmless = $is_harmless{$name} || $is_harmless_at_member{$name} && !$self->is_registry;
	# Until a grant that ended meanwhile is replaced, if need be after a fence.
	$opts{after} = ($opts{after} // 1) + ($is_harmless ? 0 : $self->{setting}->fence_s + 3);
	$opts{explains} = [ @{ $opts{explains} // [] }, $is_harmless ? () : '55000' ];
	$self->SUPER::in_force($name, $self->{node}->name . ($details eq '' ? '' : ": $details"), %opts);
}

sub sql_at ($self, $node, $sql)
{
	local $self->{node} = $node;
	return $self->sql($sql);
}

sub sql_at_registry ($self, $sql)
{
	local $self->{node} = $self->{servers}{primary};
	return $self->administer($sql);
}

# What changes the registry runs at this level only.
sub administer ($self, $sql)
{
	return $self->sql("SET default_transaction_isolation = 'read committed';\n$sql");
}

# ---------------------------------------------------------------------------------------------------------------
# The registry, and the way to it.
# ---------------------------------------------------------------------------------------------------------------

# For less than a grant, or for longer.
sub registry_away ($self, $dice)
{
	my $seconds = $dice->one_of(0.5, 2, $self->{setting}{lease_s} + 2);
	my $mode = $dice->one_of('fast', 'immediate');
	$self->{node} = $self->{servers}{primary};
	$self->in_force('registry_away', "$mode, for $seconds s", explains => [qw(08001 08006 57P01 57P02 57P03)],
		marks => 'stall crash');
	$self->{node}->stop($mode, fail_ok => 1) or $self->found("the registry does not stop ($mode)");
	sleep($seconds);
	$self->start;
}

# Messages are delayed, lost, repeated, or overtaken by later ones.
sub tamper ($self, $dice)
{
	my $mode = $dice->one_of('delay 0.3', 'delay 3', 'lose 50', 'lose 100', 'repeat 70', 'late 70', 'late 100');
	my @members = $self->{servers}->members;
	@members = $dice->one_of(@members) if $dice->chance(40);
	my $seconds = $dice->one_of(1, 3, 8);
	return $self->with_mode('tamper', $mode, $seconds, @members);
}

sub cut_off ($self, $dice)
{
	my $seconds = $dice->one_of(1, $self->{setting}{lease_s} + 1, $self->{setting}{lease_s} + 3);
	return $self->with_mode('cut_off', 'cut', $seconds, $self->choose_member($dice));
}

sub with_mode ($self, $name, $mode, $seconds, @members)
{
	$self->{node} = $members[0]{node};
	$self->in_force($name, "$mode for $seconds s, members " . join(' ', map { $_->{name} } @members), marks => 'stall');
	$self->{servers}->set_mode($mode, @members);
	sleep($seconds);
	$self->{servers}->set_mode('pass', @members);
}

# ---------------------------------------------------------------------------------------------------------------
# Another server is the registry.
# ---------------------------------------------------------------------------------------------------------------

my @registry_gone = qw(08001 08006 57P01 57P02 57P03);

sub fail_over_registry ($self, $dice)
{
	$self->{node} = $self->{servers}{primary};
	$self->in_force('fail_over_registry', '', explains => \@registry_gone, marks => 'stall crash');
	# What the standby has not got is lost, if nobody waits for it.
	my @walsenders = $self->processes(qr/^walsender/);
	freeze_process($_) foreach @walsenders;
	sleep($dice->one_of(0, 1, $self->{setting}{lease_s}));
	$self->{servers}->hold_registry;
	my $old = $self->fail_over;
	$self->{servers}->registry_is($self->{node});
	$self->come_back($dice, $old);
}

# A member gets new nodes, and then nothing more from the registry, which crashes. While that member draws, another one
# needs new nodes, from the registry that follows: the same server, or its standby, which has never heard of the grants if
# it is an asynchronous one. All others are cut off before, so that nobody shows the registry that it has lost something,
# and nobody else flushes its log. An asynchronous standby may know of a handover that has expired.
sub lose_grants ($self, $dice)
{
	my $servers = $self->{servers};
	my $holder = $self->choose_member($dice);
	my @others = grep { $_ != $holder } $servers->members;
	my $newcomer = $dice->one_of(@others);
	$self->{node} = $servers->{primary};
	$self->in_force('lose_grants', "of member $holder->{name}, while $newcomer->{name} needs new ones",
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
}

# The standby learns of a handover that expires, and not that it is canceled then. (It would take five minutes.)
sub hand_over_in_vain ($self)
{
	$self->administer("SELECT uid_fleet_handover(); UPDATE uid_fleet_state SET closed_until = clock_timestamp() - interval '1 min'");
	eval { $self->{node}->wait_for_catchup($self->{standby}) };
	freeze_process($_) foreach $self->processes(qr/^walsender/);
	defined $self->administer('SELECT uid_fleet_handover(cancel => true)')
	  or $self->found('a handover that has expired cannot be canceled');
}

# At the first call after a failover a handover is over, whether it was in force or not.
sub check_that_registry_is_open ($self)
{
	my $is_open = 'SELECT closed_until IS NULL FROM uid_fleet_state';
	poll_until('the registry is open', sub { ($self->administer($is_open) // '') eq 't' }, 15)
	  or $self->found('a registry stays closed after a handover that has expired');
}

sub crash ($self)
{
	$self->kill_server($self->{node});
	$self->start;
}

# In the layout with few nodes. A newcomer gets a node at random while there are unused ones, and then the one that is
# free for the longest time: then two registries that know the same choose the same.
sub use_all_nodes ($self, $member)
{
	my $used = 'SELECT count(*) FROM uid_fleet_node WHERE pool = (SELECT pool FROM uid_fleet_pools WHERE nodes = 4)';
	foreach (1 .. 10)
	{
		return if ($self->sql_at_registry($used) // 0) == 4 || !defined $self->get_new_nodes($member);
	}
}

# As a newcomer. Waits until there is one in the layout with few nodes, or none is to be had.
sub get_new_nodes ($self, $member, $max_wait = undef)
{
	my $set = defined $max_wait ? "SET uidgen.max_wait = '$max_wait'; " : '';
	return $self->sql_at($member->{node}, "${set}SELECT uid_fleet_move(); SELECT uid_next('uid_generators.small')");
}

# Where no newcomer may get a node, nor the holder of a grant that has ended: it draws until it is refused.
sub check_that_none_is_granted ($self, $member, $where, $is_holder)
{
	local $self->{node} = $member->{node};
	my $move = $is_holder ? '' : 'SELECT uid_fleet_move();';
	my $state = "SELECT state FROM uid_registry_status WHERE generator = 'uid_generators.small'";
	my $is_drawn;
	poll_until("an answer of $where", sub {
		$is_drawn = defined $self->sql("SET uidgen.max_wait = '1s'; $move SELECT uid_next('uid_generators.small')");
		return $is_drawn || ($self->sql($state) // '') =~ /^(?:starting|stale_registry)$/; }, 60);
	$self->found("member $member->{name} gets a node from $where" . ($is_holder ? ', whose grant has ended' : '')) if $is_drawn;
}

# The registry waits for the sessions of members' registrars, which do not end.
sub stop_smart ($self, $dice)
{
	my $member = $self->choose_member($dice);
	$self->{node} = $member->{node} if $self->is_registry;
	return $self->SUPER::stop_smart($dice);
}

sub waits_for_standby ($self)
{
	return $self->SUPER::waits_for_standby && $self->is_registry;
}

# The settings wait for a synchronous standby whoever is the primary.
sub make_synchronous
{
}

# ---------------------------------------------------------------------------------------------------------------
# A former registry is back.
# ---------------------------------------------------------------------------------------------------------------

# How another server takes over from the registry, which is gone then. Each is called while all members reach the
# registry, and returns the server that comes back later. The new one is $self->{node}, and no member reaches it yet.
my %successions = (
	'its standby' => { do => \&promote_standby, with_standby => 1 },
	'a second standby of the same state' => { do => \&promote_second, with_standby => 1 },
	'a backup older than a failover' => { do => \&restore_older, with_standby => 1 },
	'a new one with the key' => { do => sub { $_[0]->make_anew($_[0]->sql_at_registry('SELECT quote_literal(uid_fleet_key())')) } },
	'a new one without the key' => { do => sub { $_[0]->make_anew('NULL') }, has_no_key => 1 });

# Stories in which the former one is there again, each for a while in which one member reaches nothing else: beside the
# new one, or while that is down, even for so long that the former one goes on as if it were alone.
my @stays = ('runs', 'is down', 'is down for longer');

sub former_registry ($self, $dice)
{
	my $servers = $self->{servers};
	my @names = grep { defined $self->{standby} || !$successions{$_}{with_standby} } sort keys %successions;
	my ($name, $new_one) = ($dice->one_of(@names), $dice->one_of(@stays));
	my $succession = $successions{$name};
	my $lonely = $self->choose_member($dice);
	my $ahead = $self->{setting}{clock} && $dice->chance(50);
	my @others = grep { $_ != $lonely } $servers->members;
	$self->{node} = $servers->{primary};
	$self->in_force('former_registry', "$name takes over, and $new_one when the former one is back, which only member "
		  . "$lonely->{name} reaches" . ($ahead ? ', after a term of an hour ahead' : ''),
		explains => \@registry_gone, marks => 'stall crash', after => 1 + $self->{setting}->wait_s);
	$self->use_all_nodes($lonely);
	$self->draw_term_ahead if $ahead;
	my $former = $succession->{do}->($self, \@others, $ahead);
	my $new = $self->{node};
	$servers->registry_is($new);
	$self->go_to($new, $ahead, @others);
	$self->use_up_nodes(@others);
	$new->stop('immediate', fail_ok => 1) unless $new_one eq 'runs';
	$self->be_back($former, $lonely, $new_one, $succession->{has_no_key});
	$servers->set_mode('pass', $servers->members);
	# While the new one is down, those that have seen it show its term.
	$self->wait_until_closed($former) unless $succession->{has_no_key};
	$self->{node} = $new;
	$self->start unless $new_one eq 'runs';
	$former->stop('fast', fail_ok => 1) or $self->found('the former registry does not stop (fast)');
	$self->have_standby($dice, $former, $name eq 'its standby');
}

# Until then some members reach the registry, and it none of its own sessions.
sub leave_registry ($self)
{
	$self->{servers}->set_mode('cut', $self->{servers}->members);
	$self->{servers}->hold_registry;
}

sub promote_standby ($self, @)
{
	$self->leave_registry;
	return $self->fail_over;
}

# The first one to be promoted is the former one of the second.
sub promote_second ($self, $others, $ahead)
{
	my $second = $self->copy_of_registry(has_streaming => 1);
	start_node($second);
	$self->leave_registry;
	eval { $self->{node}->wait_for_catchup($_) } foreach $self->{standby}, $second;
	$self->fail_over;
	my $first = $self->reign_for_a_while($ahead, @$others);
	$second->promote;
	$self->{node} = $second;
	$self->wait_for_server;
	return $first;
}

sub restore_older ($self, $others, $ahead)
{
	my $backup = $self->copy_of_registry;
	$self->promote_standby;
	my $first = $self->reign_for_a_while($ahead, @$others);
	$self->{node} = $backup;
	$self->start;
	$self->administer("SELECT uid_fleet_admit('uid_fleet', 'successor')") // $self->found('a backup of the registry does not become its successor');
	$self->{paths}->raise_attached($backup, ++$self->{restored});
	return $first;
}

# By docs/runbooks/registry-lost.md. The server is there before, because grants are short.
sub make_anew ($self, $key)
{
	my ($servers, $old) = ($self->{servers}, $self->{node});
	my $new = $servers->new_server('anew' . ++$self->{anew} . '_');
	start_uidgen($new);
	$new->safe_psql('postgres', 'CREATE ROLE uid_fleet LOGIN');
	$servers->add_registry($new);
	my ($seen) = sort { $b->[1] <=> $a->[1] } map { $self->seen_by($_) } $servers->members;
	$self->leave_registry;
	$self->kill_server($_) foreach $old, delete $self->{standby} // ();
	$self->{node} = $new;
	$self->administer(<<"END") // $self->found('a registry that was lost cannot be made anew');
BEGIN;
SELECT uid_fleet_admit('uid_fleet', 'successor', fleet => $seen->[0], term => $seen->[1], key => $key);
UPDATE uid_fleet_state SET longest_grant = '$self->{setting}{lease_s} s';
COMMIT;
END
	$self->{paths}->create_at_registry($new);
	$self->{paths}->raise_attached($new, ++$self->{restored});
	$self->name_registries($new, $key eq 'NULL' ? () : $old);
	return $old;
}

# The fleet, and the largest term in it.
sub seen_by ($self, $member)
{
	my $seen = $self->sql_at($member->{node}, 'SELECT fleet, max(term) FROM uid_registry_status WHERE term IS NOT NULL GROUP BY fleet') // '';
	return $seen =~ /^(-?\d+)\|(\d+)$/ ? [ $1, $2 ] : [ 0, 0 ];
}

# A server that is made of the present one, and that members may find.
sub copy_of_registry ($self, @options)
{
	my ($servers, $node) = ($self->{servers}, $self->{node});
	my $copy = $servers->new_copy({ node => $node });
	mkdir $node->backup_dir;
	$self->back_up($node, $node->backup_dir . '/' . $copy->name) or die 'no backup of the registry';
	$copy->init_from_backup($node, $copy->name, @options);
	$servers->add_registry($copy);
	$self->name_registries(@{ $servers->{registries} });
	return $copy;
}

# The promoted standby is the registry of some members, and gone.
sub reign_for_a_while ($self, $ahead, @others)
{
	my $first = $self->{node};
	$self->go_to($first, $ahead, @others);
	$self->leave_registry;
	$self->kill_server($first);
	return $first;
}

# In the line of all members.
sub name_registries ($self, @registries)
{
	foreach my $member ($self->{servers}->members)
	{
		$member->{line} = $self->{servers}->line_to($member, @registries);
		$self->set_registry($member->{node}, $member->{line});
	}
}

# Members reach the new registry, and get nodes there once its fence is over. If it does not know the largest term, an
# administrator has it draw another one (docs/runbooks/registry-two.md).
sub go_to ($self, $registry, $ahead, @members)
{
	local $self->{node} = $registry;
	$self->{servers}->set_mode_to($registry, 'pass', @members);
	foreach my $member (@members)
	{
		my $is_granted = sub {
			return 1 if defined $self->get_new_nodes($member, '2s');
			$self->administer('SELECT uid_fleet_fence() FROM uid_fleet_state WHERE shown_term IS NOT NULL') if $ahead;
			return 0;
		};
		poll_until('a new registry grants', $is_granted, 90)
		  or $self->found("member $member->{name} gets no node from a new registry");
	}
}

# The members hold all nodes of the layout with few, or have held them.
sub use_up_nodes ($self, @members)
{
	foreach my $member (@members, @members)
	{
		$self->get_new_nodes($member, '1s') // return;
	}
}

# The former registry starts. It does not know of the new one, and what it has granted has ended. Unless the new one
# stays away for longer, it would wait for an hour, so that this test may be slow.
sub be_back ($self, $former, $lonely, $new_one, $has_no_key)
{
	local $self->{node} = $former;
	$self->start;
	return if $has_no_key; # no line leads there
	my $is_long = $new_one eq 'is down for longer';
	defined $self->administer("UPDATE uid_fleet_state SET longest_grant = '" . ($is_long ? "$self->{setting}{lease_s} s'" : "1 hour'"))
	  or $self->found('the tables of a former registry cannot be changed');
	$self->{servers}->set_mode_to($former, 'pass', $lonely);
	return $self->wait_for_grant_of($former, $lonely) if $is_long;
	$self->check_that_none_is_granted($lonely, 'a former registry', 1);
	$self->check_that_none_is_granted($lonely, 'a former registry', 0) unless @{ $self->{found} };
}

# The grants of the other one have ended by then.
sub wait_for_grant_of ($self, $former, $lonely)
{
	poll_until('a grant', sub { defined $self->get_new_nodes($lonely, '1s') }, 60)
	  or $self->found("member $lonely->{name} gets no node from a former registry that has waited");
	sleep(1);
}

sub wait_until_closed ($self, $former)
{
	local $self->{node} = $former;
	my $shown = 'SELECT shown_term IS NOT NULL FROM uid_fleet_state';
	poll_until('the former registry closes itself', sub { ($self->sql($shown) // '') eq 't' }, 60)
	  or $self->found('a former registry is not shown that there is another one');
}

# The former registry becomes the standby of the new one, if there was one.
sub have_standby ($self, $dice, $former, $can_be_rewound)
{
	my $new = $self->{node};
	my $has_standby = $self->{setting}->loses_commits;
	$self->come_back($dice, $former, never_rewinds => !$can_be_rewound) if $has_standby;
	$self->name_registries($new, $has_standby ? $former : ()) unless $can_be_rewound;
}

# By a clock that is an hour ahead, while no member can get a grant by it. Then members see the term.
sub draw_term_ahead ($self)
{
	$self->sql("ALTER ROLE uid_fleet NOLOGIN; SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'uid_fleet'");
	poll_until('members are gone', sub { ($self->sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'uid_fleet'") // '') eq '0' }, 30);
	$self->set_offset(3600);
	$self->administer('SELECT uid_fleet_fence(cancel => true)') // $self->found('a registry draws no term');
	$self->set_offset(0);
	$self->sql('ALTER ROLE uid_fleet LOGIN');
	my $term = $self->sql('SELECT term FROM uid_fleet_state') // 0;
	poll_until('members see the term', sub { grep { $self->seen_by($_)->[1] == $term } $self->{servers}->members }, 60);
}

# ---------------------------------------------------------------------------------------------------------------
# Members.
# ---------------------------------------------------------------------------------------------------------------

my @outage = qw(08001 08006 57P01 57P02 57P03 XX000 25006);

# A copy of a member becomes another one: of the running server, of the stopped one, or its standby, promoted.
my %makes_copy = (running => \&copy_running, stopped => \&copy_stopped, standby => \&copy_standby);

sub copy_running ($self, $member, $copy, @options)
{
	my $original = $member->{node};
	mkdir $original->backup_dir;
	$self->back_up($original, $original->backup_dir . '/' . $copy->name) or return 0;
	$copy->init_from_backup($original, $copy->name, @options);
	return start_node($copy, fail_ok => 1);
}

sub copy_standby ($self, $member, $copy)
{
	my $is_started = $self->copy_running($member, $copy, has_streaming => 1);
	$copy->promote if $is_started;
	return $is_started;
}

sub copy_stopped ($self, $member, $copy)
{
	my $original = $member->{node};
	$self->stop_and_copy($original, $copy);
	$self->start;
	return start_node($copy, fail_ok => 1);
}

sub stop_and_copy ($self, $original, $copy)
{
	$original->stop('fast', fail_ok => 1) or $self->found('a member does not stop (fast)');
	mkdir $copy->basedir;
	PostgreSQL::Test::Utils::system_or_bail('cp', '-a', $original->data_dir, $copy->data_dir);
	$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'\n");
}

# Half of the member's sessions draw from the copy for a while.
sub copy_member ($self, $dice)
{
	my $member = $self->choose_member($dice);
	my $kind = $dice->one_of(sort keys %makes_copy);
	$self->{node} = $member->{node};
	$self->in_force('copy_member', $kind, explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	$self->draw_from_copy($dice, $member, $copy, $dice->one_of(1, 4)) if $makes_copy{$kind}->($self, $member, $copy);
}

sub draw_from_copy ($self, $dice, $member, $copy, $seconds)
{
	$self->{servers}->send_half_to($member, $copy);
	sleep($seconds);
	$self->{servers}->write_targets_of_member($member);
	return $copy->stop($dice->one_of('fast', 'immediate'), fail_ok => 1);
}

# As of the volume of a stopped member, without the file that docs/fleet.md says to remove. Both go on as the same line. It
# is the registry that tells them apart when they ask, so the copy starts after the last grant that it knows of has ended.
sub clone_member ($self, $dice)
{
	my $member = $self->choose_member($dice);
	my $original = $self->{node} = $member->{node};
	$self->in_force('clone_member', '', explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	$self->stop_and_copy($original, $copy);
	my $is_clone = make_clone($copy, $original);
	$self->start;
	sleep($self->{setting}{lease_s} + $self->{setting}{bound_s} + 0.5);
	$self->draw_from_copy($dice, $member, $copy, 4) if $is_clone && start_node($copy, fail_ok => 1);
	# One of the two was refused.
	$self->get_other_nodes;
}

# A member's machine is gone for good. Its nodes are taken over, and a server from a backup takes its place.
sub replace_member ($self, $dice)
{
	my $member = $self->choose_member($dice);
	my $old = $self->{node} = $member->{node};
	$self->in_force('replace_member', '', explains => \@outage, marks => 'stall crash');
	my $copy = $self->{servers}->new_copy($member);
	return unless $self->copy_running($member, $copy);
	$self->{servers}->member_is($member, $copy);
	$self->kill_server($old);
	$self->sql_at_registry(<<"END");
SELECT format('SELECT uid_fleet_takeover(%s, %s)', pool, node) FROM uid_fleet
 WHERE port = '@{[ $old->port ]}' AND state = 'live' \\gexec
END
}

# All its generators get new nodes. Its segments are attached again.
sub move_member ($self, $dice)
{
	$self->{node} = $self->choose_member($dice)->{node};
	$self->in_force('move_member', '');
	$self->get_other_nodes;
}

sub get_other_nodes ($self)
{
	return $self->sql("SELECT uid_fleet_move();\n" . join '', map { FleetPaths::attach($_) } $self->{paths}->attached);
}

# A server has drawn ahead of its clock with a node of its own, and joins the fleet. Then a member needs a node, too. They
# draw in a layout of two nodes, which nobody has used before.
sub join_late ($self, $dice)
{
	my $late = $self->{node} = $self->{servers}->late_server;
	my $newcomer = $self->choose_member($dice);
	$self->in_force('join_late', "before member $newcomer->{name} needs a node");
	my $name = "late_$self->{number}";
	my $tick_us = 1000 + $self->{number};
	my $create =
	  "SELECT uid_generator_create('$name', tick_us => $tick_us, datacenter_bits => 0, worker_bits => 1, sequence_bits => 3)";
	$self->set_registry($late, '');
	$self->sql_at($_, $create) foreach $late, $newcomer->{node};
	$self->draw_late($late, $name, 12000);
	$self->set_registry($late, registry_line(@{ $self->{servers}{registries} }));
	$self->draw_late($newcomer->{node}, $name, 12000) if $self->draw_late($late, $name, 10);
	$self->sql_at($_, "SELECT uid_generator_drop('uid_generators.$name')") foreach $late, $newcomer->{node};
}

# Ids that are written down as those of a session. 0: there are none.
sub draw_late ($self, $node, $name, $count, $set = '')
{
	local $self->{node} = $node;
	return $self->draw_beside('postgres', 'postgres', late => "${set}SELECT unnest(uid_next_array('uid_generators.$name', $count))");
}

# Values of a stream that is $of's (FleetPaths.pm), in any database. 0: there are none.
sub draw_beside ($self, $database, $of, $stream, $sql)
{
	my $begin = Nemesis::now();
	my $values = $self->sql($sql, database => $database) // return 0;
	$self->{servers}->write_down("beside_$of", $of, $begin, Nemesis::now(), $stream => [ split /\n/, $values ]);
	return 1;
}

# Two members have generators whose ids could be equal, although their layouts differ: in the epoch, or in how the node is
# split. The second one is refused. It draws where the first one did, if it is not.
my %makes_equal = (
	epoch => [ "epoch => '2026-01-01', worker_bits => 1", "epoch => '2026-01-01 00:00:02', worker_bits => 1" ],
	split => [ 'worker_bits => 2', 'datacenter_bits => 1, worker_bits => 1' ]);

sub equal_pools ($self, $dice)
{
	my $way = $dice->one_of(sort keys %makes_equal);
	my ($first) = my @members = map { $_->{node} } ($self->{servers}->members)[ 0, 1 ];
	$self->{node} = $first;
	$self->in_force('equal_pools', "of another $way");
	my $name = "equal_$self->{number}";
	my $layout = 'datacenter_bits => 0, sequence_bits => 3, tick_us => ' . (5000 + $self->{number});
	foreach my $i (0, 1)
	{
		my %fields = "$layout, $makes_equal{$way}[$i]" =~ /(\w+) => ('.*?'|\d+)/g;
		$self->sql_at($members[$i], "SELECT uid_generator_create('$name', " . join(', ', map { "$_ => $fields{$_}" } sort keys %fields) . ')');
	}
	$self->check_that_one_is_refused($way, $name, @members) if $self->draw_late($first, $name, 3000);
	$self->sql_at($_, "SELECT uid_generator_drop('uid_generators.$name')") foreach @members;
}

sub check_that_one_is_refused ($self, $way, $name, $first, $second)
{
	local $self->{node} = $second;
	my $state = "SELECT state FROM uid_registry_status WHERE generator = 'uid_generators.$name'";
	my $is_drawn = 0;
	poll_until('a refusal', sub {
		$is_drawn = $self->draw_late($second, $name, 3000, "SET uidgen.max_wait = '1s'; ");
		return $is_drawn || ($self->sql($state) // '') eq "${way}_differs"; }, 60)
	  or $self->found("a generator of another $way is neither refused nor draws");
	$self->found("two generators draw whose ids can be equal: the $way differs") if $is_drawn;
}

# The schema of a member's database is copied into another one, which draws beside it. It has nodes and blocks of its own.
sub copy_schema ($self, $dice)
{
	my $member = $self->choose_member($dice);
	my $node = $self->{node} = $member->{node};
	$self->in_force('copy_schema', $member->{name});
	my ($copy, $file) = ("copy_$self->{number}", "$self->{directory}/schema");
	$self->sql("CREATE DATABASE $copy TEMPLATE template0");
	my $is_copied = PostgreSQL::Test::Utils::system_log('pg_dump', '-s', '-f', $file, '-d', $node->connstr('postgres')) == 0
	  && PostgreSQL::Test::Utils::system_log('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr($copy)) == 0;
	$self->{say}->('   the schema could not be copied') unless $is_copied;
	my %draws = (churn => 'uid_next_array(500)', copied => "uid_next_array('uid_generators.small', 500)",
		$self->{setting}->loses_commits ? () : (of_copy => "segment_next_array('shared', 30)"));
	foreach my $times (1 .. $is_copied ? 4 : 0)
	{
		$self->draw_beside($copy, $member->{name}, $_, "SELECT unnest($draws{$_})") foreach sort keys %draws;
	}
	$self->sql("DROP DATABASE $copy WITH (FORCE)");
}

# Many generators of a member need nodes at once, and renew them in the same calls.
sub many_generators ($self, $dice)
{
	my $member = $self->choose_member($dice);
	my ($count, $mode) = ($dice->one_of(100, 200), $dice->one_of('pass', 'delay 0.3', 'lose 30', 'repeat 70'));
	$self->{node} = $member->{node};
	$self->in_force('many_generators', "$count at member $member->{name}, $mode", marks => 'stall');
	my $all = "(SELECT 'many_$self->{number}_' || n FROM generate_series(1, $count) AS n) AS names(name)";
	$self->sql("SELECT count(uid_generator_create(name)) FROM $all");
	$self->{servers}->set_mode($mode, $member);
	$self->draw_from_many($member, $count);
	sleep($self->{setting}{lease_s} / 2);
	$self->draw_from_many($member, $count);
	$self->sql('SELECT uid_fleet_move()');
	$self->draw_from_many($member, $count);
	$self->{servers}->set_mode('pass', $member);
	$self->sql("SELECT count(uid_generator_drop(('uid_generators.' || name)::regclass)) FROM $all");
}

# By sessions at the same time.
sub draw_from_many ($self, $member, $count)
{
	my @scripts;
	$scripts[ $_ % 10 ] .= "SELECT unnest(uid_next_array('uid_generators.many_$self->{number}_$_', 50));\n" foreach 1 .. $count;
	my $begin = Nemesis::now();
	my @values = map { split /\n/, $_->[0] } psql_at_once($self->{node}, map { "SET uidgen.max_wait = '10s';\n$_" } @scripts);
	$self->{servers}->write_down("many_$member->{name}", $member->{name}, $begin, Nemesis::now(), churn => \@values);
}

# '': it is in no fleet.
sub set_registry ($self, $node, $line)
{
	local $self->{node} = $node;
	my $is_set = sub {
		$self->alter_system("uidgen.registry = '$line'");
		return ($self->sql('SHOW uidgen.registry') // 'no answer') eq $line;
	};
	poll_until('the registry of ' . $node->name, $is_set, 60) or $self->found('a reload does not change the registry');
}

# The former line is back after so long.
sub have_line ($self, $member, $line, $seconds)
{
	$self->set_registry($member->{node}, $line);
	sleep($seconds);
	$self->set_registry($member->{node}, $member->{line});
}

# The line of a member names a database whose answers are not those of its registry.
sub lie ($self, $dice)
{
	my $liar = $self->{servers}->other_registry;
	create_liar($liar) unless $self->{is_liar_there}++;
	my $lie = $dice->one_of(lies());
	my $member = $self->choose_member($dice);
	my $seconds = $dice->one_of(1, 2, $self->{setting}{lease_s} + 2);
	$self->{node} = $member->{node};
	$self->in_force('lie', sprintf('%s: %s = %s', @$lie) . ", for $seconds s", marks => 'stall');
	set_answer($liar, @$lie);
	$self->have_line($member, registry_line($liar) =~ s/dbname=\w+/dbname=liar/r, $seconds);
}

# While others draw from it. Dropped, it is not there for a moment.
sub attach_again ($self, $dice)
{
	my $segment = $dice->one_of($self->{paths}->attached);
	my $attach = FleetPaths::attach($segment);
	my $sql = $dice->one_of($attach, "BEGIN; $attach ROLLBACK", "BEGIN; SELECT segment_drop('$segment'); $attach COMMIT",
		"BEGIN; SELECT segment_drop('$segment'); $attach ROLLBACK");
	$self->{node} = $self->choose_member($dice)->{node};
	$self->in_force('attach_again', $sql =~ s/\n/ /gr, explains => [ '42P01', '42704', 'XX000' ]);
	$self->sql($sql);
}

# The registry's own sequence, or a member's record of it, is moved on.
sub move_counter ($self, $dice)
{
	my $segment = $dice->one_of($self->{paths}->attached);
	# A member that shows more than 16 blocks beyond the registry's counter is refused until that has been raised.
	my $by = ($self->is_registry ? $dice->one_of(100, 100000) : 100) * ($segment eq 'falling' ? -1 : 1);
	$self->{node} = $self->choose_member($dice)->{node} if !$self->is_registry;
	return $self->command($dice, 'move_counter', "SELECT setval('uid_segments.$segment', last_value + $by) FROM uid_segments.$segment");
}

sub alter_generator ($self, $dice)
{
	my $generator = 'uid_generators.' . $dice->one_of(qw(cached small baidu));
	$self->{node} = $self->choose_member($dice)->{node};
	return $self->command($dice, 'alter_generator',
		"SELECT uid_generator_alter('$generator', lease_ms => 2000)",
		"SELECT uid_generator_alter('$generator', lease_ms => 500)",
		"BEGIN; SELECT uid_generator_alter('$generator', lease_ms => 1500); ROLLBACK");
}

# Of one server, and back after a while. If commits may be lost, by less than the bound.
sub step_clock ($self, $dice)
{
	my $bound = $self->{setting}{bound_s};
	my $step = $dice->one_of(map { $_ * $bound / 2 } -0.9, -0.5, 0.5, 0.9);
	$step = $dice->one_of(-3600, -60, -5, -1, 1, 5, 60, 3600) if $dice->chance(70) && !$self->{setting}->loses_commits;
	my $seconds = $dice->one_of(0.2, 1, 4);
	$self->in_force('step_clock', "$step s for $seconds s", after => 2);
	$self->set_offset($step);
	sleep($seconds);
	$self->set_offset(0);
}

1;
