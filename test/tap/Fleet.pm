# A registry, the members of its fleet, and what draws on them. The registry is an ordinary server (new_server).
#
#   my $registry = make_registry($node, keeps => 'failovers');       # on a running server
#   new_server('member', conf => registry_setting($registry, $its_standby));
#   join_fleet($node, $registry);              # a server that is there: before its start, or before a reload
#   node_of($node);                            # the default generator's node
#   my $session = hold_up_registry($registry); # until it ends, calls wait, each for 5 s
#   await_held_call($registry);                # until a registrar waits there
#   my $sql = attached_segment('x', 'a', $fleet);   # makes a segment x whose values come from the registry's segment a
#
#   create_load($node);                        # the generators and the table of load()
#   my @loops = load($node);                   # background loops that draw by all paths, through crashes and errors
#   my $loop = load_small($node, 'small');     # the same with create_small()
package Fleet;

use v5.36;

use Exporter 'import';
use IPC::Run;
use UidgenTest;
use Clients;

our @EXPORT = qw(make_registry registry_line registry_setting join_fleet node_of hold_up_registry await_held_call await_no_call attached_segment
  create_load create_small load load_small);

# Makes a registry in a database of that server (postgres), which the role uid_fleet may call. Other options are the script's
# variables: keeps (restarts), longest, bound, fleet.
sub make_registry ($node, %variables)
{
	my $dbname = delete $variables{dbname} // 'postgres';
	%variables = (keeps => 'restarts', %variables);
	my $script = $node->config_data('--sharedir') . '/extension/uidgen_registry.sql';
	my @variables = map { ('-v', "$_=$variables{$_}") } sort keys %variables;
	my $output;
	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr($dbname), @variables, '-f', $script ], '>', \$output, '2>&1')
	  or die "the script fails: $output";
	$node->safe_psql('postgres', 'CREATE ROLE uid_fleet LOGIN') unless $node->safe_psql('postgres', "SELECT to_regrole('uid_fleet')");
	$node->safe_psql('postgres', 'GRANT uid_member TO uid_fleet');
	return $node;
}

# The value of uidgen.registry: the servers that may be the registry, in the order given.
sub registry_line
{
	my @nodes = @_;
	return
		'host='
	  . join(',', map { $_->host } @nodes)
	  . ' port='
	  . join(',', map { $_->port } @nodes)
	  . ' dbname=postgres user=uid_fleet connect_timeout=3';
}

sub registry_setting
{
	return "uidgen.registry = '" . registry_line(@_) . "'\n";
}

sub join_fleet ($node, @registries)
{
	$node->append_conf('postgresql.conf', registry_setting(@registries));
}

sub node_of ($node, $generator = 'uid_generators.uid_default')
{
	return $node->safe_psql('postgres',
		"SELECT node FROM uid_generator_status WHERE generator = '$generator'::regclass");
}

sub hold_up_registry ($registry)
{
	my $session = hold_open($registry);
	$session->query_safe('BEGIN; LOCK TABLE uid_registry.node, uid_registry.segment IN EXCLUSIVE MODE');
	return $session;
}

sub await_held_call ($registry)
{
	$registry->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'uid_fleet' AND wait_event_type = 'Lock'")
	  or die 'no registrar asks';
}

# A registrar that is still connected would be answered though the postmaster stands still.
sub await_no_call ($registry)
{
	$registry->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'uid_fleet'")
	  or die 'a registrar stays connected';
}

# As segment_attach() leaves it, but without a look-up at the registry, as a restore does. So its first question is for a block.
sub attached_segment ($name, $registry_name, $fleet)
{
	return "CREATE SEQUENCE uid_segments.$name INCREMENT 9223372036854775806 MINVALUE -1 MAXVALUE 9223372036854775804 START -1;"
	  . " SELECT FROM setval('uid_segments.$name', -1);"
	  . " SECURITY LABEL FOR uidgen ON SEQUENCE uid_segments.$name IS"
	  . " 'segment name=\"$name\" step=100 max_step=100 registry_name=\"$registry_name\" fleet=$fleet increment=1'";
}

# Beside the default generator there are one in cached mode, which shares its nodes, one of the preset js53, and one of
# a layout with four nodes and so few sequence numbers that two generators on one node collide at once.
sub create_load ($node)
{
	$node->safe_psql('postgres', <<'END');
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next());
SELECT uid_generator_create('cached', mode => 'cached', spread => false);
SELECT uid_generator_create('js53', 'js53');
END
	create_small($node, 'small');
}

sub create_small ($node, $name)
{
	$node->safe_psql('postgres',
		"SELECT uid_generator_create('$name', datacenter_bits => 0, worker_bits => 2, sequence_bits => 3)");
}

# The name of the layout stands before each id but those of the default layout: only ids of one layout are unique. Lines in
# one row cost less than rows.
sub load ($node)
{
	my $twenty = q{SELECT string_agg(%s::text, E'\n') FROM generate_series(1, 20)};
	my @paths = (
		sprintf($twenty, 'uid_next()'),
		q{SELECT array_to_string(uid_next_array(20), E'\n'); INSERT INTO orders DEFAULT VALUES RETURNING id},
		sprintf($twenty, q{uid_next('uid_generators.cached')}),
		sprintf($twenty, q{('js53 ' || uid_next('uid_generators.js53'))}));
	return map { background_loop($node, sql => $_, pace => 0.2, on_error_stop => 0, reconnect => 1) } @paths;
}

sub load_small ($node, $name)
{
	my $sql = "SELECT 'small ' || array_to_string(uid_next_array('uid_generators.$name', 200), E'\nsmall ')";
	return background_loop($node, sql => $sql, pace => 0.1, on_error_stop => 0, reconnect => 1);
}

1;
