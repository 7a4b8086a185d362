# The servers of a fleet's round: a registry, alone or with a standby, and its members. In some rounds PgBouncer is before
# each server of the registry.
package FleetServers;

use v5.36;

use parent 'Servers';

use Bouncer;
use Fleet;
use FleetNemesis;
use FleetPaths;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use UidgenTest;

sub create ($self)
{
	my $setting = $self->{setting};
	$self->{paths} = FleetPaths->new($setting);
	my $registry = $self->{primary} = $self->new_registry;
	$self->make_registry_on($registry);
	$self->create_standby($registry) if $setting->{registry} ne 'single';
	$self->{registries} = [ grep { defined } $registry, $self->{standby} ];
	foreach my $name (('a' .. 'c')[ 0 .. $setting->{members} - 1 ])
	{
		my $member = $self->{members}{$name} = { name => $name, node => $self->new_server("member_$name") };
		$member->{node}->append_conf('postgresql.conf', $self->line);
		start_node($member->{node});
		$self->{paths}->create_at_member($name, $member->{node});
		$self->write_target($member, $_, $member->{node}) foreach 0, 1;
	}
	write_file("$self->{directory}/streams", $self->{paths}->streams);
}

sub members ($self)
{
	return map { $self->{members}{$_} } sort keys %{ $self->{members} };
}

# ---------------------------------------------------------------------------------------------------------------
# The registry.
# ---------------------------------------------------------------------------------------------------------------

# A server without anything of uidgen.
sub new_registry ($self)
{
	my $conf = "max_connections = 100\nwal_log_hints = on\nwal_keep_size = 512MB\nlog_line_prefix = '%m [%p] %b %e '\n";
	my $node = $self->add_node(new_node("registry$self->{number}_" . ++$self->{registries_made}, conf => $conf));
	start_node($node);
	return $node;
}

sub make_registry_on ($self, $node, %variables)
{
	make_registry($node, keeps => $self->{setting}->keeps, longest => $self->{setting}{longest_s}, bound => $self->{setting}{bound_s}, %variables);
	$node->safe_psql('postgres', q{INSERT INTO uid_registry.segment (name, max_step) VALUES ('shared', 1000)});
}

# Whichever of the two is the primary waits for the other one.
sub create_standby ($self, $node)
{
	$self->SUPER::create_standby($node);
	set_conf($self->{standby}, "synchronous_standby_names = '*'") if $self->{setting}->is_synchronous;
}

# Servers that may be the registry, for all members.
sub name_registries ($self, @nodes)
{
	$self->{registries} = [@nodes];
	set_conf($_->{node}, $self->line) foreach $self->members;
}

sub line ($self)
{
	return registry_setting(map { $self->{setting}{pgbouncer} ? $self->bouncer_of($_) : $_ } @{ $self->{registries} });
}

# What a member connects to instead of that server.
sub bouncer_of ($self, $node)
{
	return $self->{bouncers}{ $node->name } //= Bouncer->start($node, $self->{setting}{pgbouncer});
}

# ---------------------------------------------------------------------------------------------------------------
# Sessions, and the end.
# ---------------------------------------------------------------------------------------------------------------

# Half of a member's sessions use the second target, which is a copy of the member for a while.
sub write_target ($self, $member, $half, $node)
{
	$self->{targets}++;
	write_file("$self->{directory}/target.$member->{name}.$half", $node->connstr('postgres') . "\n$self->{targets}\n");
}

# Shorter than half a grant, so that sessions come to a copy before its original knows of it.
sub life_ms
{
	return 1000;
}

# Its sessions connect nowhere until write_target() says where to go.
sub hold_member ($self, $member)
{
	write_file("$self->{directory}/target.$member->{name}.$_", "host=/nowhere\n$self->{targets}\n") foreach 0, 1;
}

sub assignment ($self, $number, $dice)
{
	my @names = sort keys %{ $self->{members} };
	my ($name, $half) = ($names[ $number % @names ], int($number / @names) % 2);
	my @statements = $number <= 2 * @names ? $self->{paths}->statements_of_few_nodes($name) : $self->statements($name, $number, $dice);
	return ("target.$name.$half", @statements);
}

sub nemesis ($self, %opts)
{
	return FleetNemesis->new(%opts, setting => $self->{setting}, paths => $self->{paths}, node => $self->{primary},
		standby => $self->{standby}, directory => $self->{directory}, servers => $self);
}

# The longest wait is for a fence.
sub check_end ($self, $nemesis)
{
	foreach my $member ($self->members)
	{
		$nemesis->{node} = $member->{node};
		foreach my $draw (map { "SELECT $_" } $self->{paths}->calls, "uid_next('uid_generators.small')")
		{
			next if poll_until($draw, sub { defined $nemesis->sql($draw) }, 60);
			return $nemesis->found("member $member->{name} cannot run $draw: " . $nemesis->error_of($draw));
		}
	}
	foreach my $member ($self->members)
	{
		$nemesis->{node} = $member->{node};
		foreach my $check (qw(check_leaks check_session check_stop))
		{
			return if @{ $nemesis->{found} };
			$self->$check($nemesis);
		}
	}
}

1;
