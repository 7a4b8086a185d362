# The servers of a fleet's round: a registry, alone or with a standby, and its members. Each member reaches each server
# of the registry through a proxy of its own, which can tamper with what they say.
package Fleet;

use v5.36;

use parent 'Servers';

use Disk;
use FleetNemesis;
use FleetPaths;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use UidgenTest;

sub create ($self)
{
	$self->{paths} = FleetPaths->new($self->{setting});
	$self->{paths}->add_streams_of_fleet;
	$self->create_registry;
	foreach my $name (('a' .. 'd')[ 0 .. $self->{setting}{members} - 1 ])
	{
		$self->{members}{$name} = { name => $name, history => 0, mode => "$self->{directory}/proxy.$name" };
		$self->create_member($self->{members}{$name});
	}
	write_file("$self->{directory}/streams", $self->{paths}->streams);
}

sub new_server ($self, $name)
{
	my $setting = $self->{setting};
	my $conf = $setting->conf . "uidgen.registry_lease = '$setting->{lease_s}s'\n"
	  . 'uidgen.registry_clock_bound = ' . 1000 * $setting->{bound_s} . "\n";
	my $node = $self->add_node(new_node("$name$self->{number}", conf => $conf));
	use_fake_clock($node) if $setting->{clock};
	use_shaky_disk($node) if $setting->{disk};
	return $node;
}

# ---------------------------------------------------------------------------------------------------------------
# The registry.
# ---------------------------------------------------------------------------------------------------------------

sub create_registry ($self)
{
	my $node = $self->{primary} = $self->new_registry('registry');
	$self->{registries} = [$node];
	$self->{registry_history} = 0;
	$self->create_standby($node) if $self->{setting}{registry} =~ /chronous/;
	$self->write_target_of_registry;
}

sub new_registry ($self, $name)
{
	my $node = $self->new_server($name);
	start_uidgen($node);
	make_registry($node);
	$node->safe_psql('postgres', "UPDATE uid_fleet_state SET longest_grant = '$self->{setting}{lease_s} s'");
	$self->{paths}->create_at_registry($node);
	return $node;
}

# The registry of another fleet, with segments of the same names.
sub other_registry ($self)
{
	return $self->{other_registry} //= $self->new_registry('other');
}

# With the same settings: a server that takes over waits for a standby, too.
sub create_standby ($self, $node)
{
	$self->SUPER::create_standby($node);
	push @{ $self->{registries} }, my $standby = $self->{standby};
	set_conf($standby, "synchronous_standby_names = '*'") if $self->{setting}->is_synchronous;
}

sub write_target_of_registry ($self)
{
	return $self->write_target('registry', $self->{primary}, $self->{registry_history});
}

# Another server is the registry. If commits were lost, what its own sessions draw there is another history.
sub registry_is ($self, $node)
{
	$self->{primary} = $node;
	$self->{registry_history}++ if $self->{setting}->loses_commits;
	return $self->write_target_of_registry;
}

sub hold_registry ($self)
{
	return write_file("$self->{directory}/target.registry", "host=/nowhere\n$self->{registry_history}\n");
}

# ---------------------------------------------------------------------------------------------------------------
# Members.
# ---------------------------------------------------------------------------------------------------------------

sub create_member ($self, $member)
{
	my $node = $member->{node} = $self->new_server("member_$member->{name}");
	$member->{proxies} = PostgreSQL::Test::Utils::tempdir_short();
	$self->add_proxy($member, $_) foreach @{ $self->{registries} };
	$member->{line} = $self->line_to($member, @{ $self->{registries} });
	$node->append_conf('postgresql.conf', "uidgen.registry = '$member->{line}'\n");
	start_uidgen($node);
	$self->{paths}->create_at_member($member->{name}, $node);
	$self->write_targets_of_member($member);
}

# A line that leads to these servers by the member's proxies.
sub line_to ($self, $member, @registries)
{
	return registry_line(@registries) =~ s/host=\S+/'host=' . join ',', ($member->{proxies}) x @registries/er;
}

# Another server that can be the registry. No member reaches it yet.
sub add_registry ($self, $node)
{
	push @{ $self->{registries} }, $node;
	$self->set_mode_to($node, 'cut', $self->members);
	$self->add_proxy($_, $node) foreach $self->members;
}

sub add_proxy ($self, $member, $registry)
{
	# Far from each other, because a proxy adds the number of the connection.
	my $seed = $self->{setting}{proxy_seed} + 1_000_003 * @{ $self->{proxies} // [] };
	push @{ $self->{proxies} }, start_proxy($registry, $member->{proxies}, mode_of($member, $registry), $seed);
}

sub mode_of ($member, $registry)
{
	return "$member->{mode}." . $registry->port;
}

# What members' proxies do: see proxy.pl.
sub set_mode_to ($self, $registry, $mode, @members)
{
	write_file(mode_of($_, $registry), "$mode\n") foreach @members;
}

sub set_mode ($self, $mode, @members)
{
	$self->set_mode_to($_, $mode, @members) foreach @{ $self->{registries} };
}

sub members ($self)
{
	return map { $self->{members}{$_} } sort keys %{ $self->{members} };
}

sub write_target ($self, $name, $node, $history)
{
	return write_file("$self->{directory}/target.$name", $node->connstr('postgres') . "\n$history\n");
}

# Half of a member's sessions use the second target, which may be a copy of the member for a while.
sub write_targets_of_member ($self, $member)
{
	$self->write_target("$member->{name}.$_", $member->{node}, $member->{history}) foreach 0, 1;
}

# A copy of a member that draws. What it draws is a history of its own.
sub send_half_to ($self, $member, $copy)
{
	return $self->write_target("$member->{name}.1", $copy, ++$self->{copies});
}

# Another server takes the member's place.
sub member_is ($self, $member, $node)
{
	$member->{node} = $node;
	$member->{history} = ++$self->{copies};
	return $self->write_targets_of_member($member);
}

# A server that draws in no fleet before it joins this one. No session draws there.
sub late_server ($self)
{
	return $self->{late_server} if defined $self->{late_server};
	start_uidgen($self->{late_server} = $self->new_server('late'));
	return $self->{late_server};
}

# A server that is made from a copy of a member.
sub new_copy ($self, $member)
{
	my $copy = $self->add_node(PostgreSQL::Test::Cluster->new("copy$self->{number}_" . ++$self->{nodes_made}));
	Servers::share_environment($copy, $member->{node});
	return $copy;
}

sub servers ($self)
{
	return ($self->{primary}, map { $_->{node} } $self->members);
}

# ---------------------------------------------------------------------------------------------------------------
# Sessions, and the end.
# ---------------------------------------------------------------------------------------------------------------

sub nemesis ($self, %opts)
{
	return FleetNemesis->new(%opts, setting => $self->{setting}, paths => $self->{paths}, node => $self->{primary},
		standby => $self->{standby}, directory => $self->{directory}, servers => $self);
}

# One of seven sessions draws at the registry; none of those that come last.
sub assignment ($self, $number, $dice)
{
	my $is_first = $number <= $self->{setting}{sessions};
	return ('target.registry', $self->{paths}->statements('registry', $dice)) if $is_first && $number % 7 == 3;
	my @names = sort keys %{ $self->{members} };
	my $name = $names[ $number % @names ];
	my $half = int($number / @names) % 2;
	return ("target.$name.$half", $self->{paths}->statements_of_few_nodes($name))
	  if !$is_first && $number <= $self->{setting}->few_sessions;
	return ("target.$name.$half", $self->statements($name, $number, $dice));
}

sub check_end ($self, $nemesis)
{
	$self->check_that_members_draw($nemesis);
	foreach my $node (reverse $self->servers)
	{
		last if @{ $nemesis->{found} };
		$nemesis->{node} = $node;
		$self->check_leaks($nemesis);
		$self->check_session($nemesis) if $node != $self->{primary};
		$self->check_stop($nemesis);
	}
	$self->check_that_nothing_was_lost($nemesis) unless $self->{setting}->loses_commits;
	stop_proxy(@{ $self->{proxies} });
}

# No member may show what the registry has not answered, as one would that has taken an answer of another one.
sub check_that_nothing_was_lost ($self, $nemesis)
{
	foreach my $node (@{ $self->{registries} })
	{
		my ($line) = slurp_file($node->logfile) =~ /(a member has shown an answer that this registry has lost)/;
		$nemesis->found('the registry loses no commit, and ' . $node->name . " says: $line") if defined $line;
	}
}

# The longest wait is for a fence, and for the grants of copies to end: without faults nothing else is in the way.
sub check_that_members_draw ($self, $nemesis)
{
	my @draws = map { "SELECT $_" } "uid_next('uid_generators.small')", 'uid_next()', map { "segment_next('$_')" } $self->{paths}->attached;
	foreach my $member ($self->members)
	{
		$nemesis->{node} = $member->{node};
		foreach my $draw (@draws)
		{
			next if poll_until($draw, sub { defined $nemesis->sql($draw) }, 60);
			return $nemesis->found("member $member->{name} cannot run $draw: " . $nemesis->error_of($draw));
		}
	}
}

1;
