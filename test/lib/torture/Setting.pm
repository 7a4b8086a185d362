# What a round is like: which servers, how they are configured, how many sessions draw. All of it follows from the seed.
package Setting;

use v5.36;

use Bouncer;
use List::Util qw(min);
use UidgenTest;
use Installation;

# Each choice is a list of values of which the dice take one; the first ones of a list that names a value more than once
# are likelier. '' leaves the setting as it is.
my %choices = (
	fsync => [ 'on', 'off' ],
	synchronous_commit => [ '', '', 'off', 'local' ],
	wal_level => [ 'replica', 'logical', 'minimal' ],
	wal_writer_delay => [ '', '10s' ],
	default_transaction_isolation => [ '', '', 'repeatable read', 'serializable' ],
	checkpoint_timeout => [ '1d', '30s' ],
	autovacuum => [ 'on', 'off' ],
	wal_consistency_checking => [ '', '', 'all' ],
	'uidgen.segment_step' => [ '', '', '1', '10', '256' ]);

sub new ($class, $dice, %opts)
{
	my %chosen = map { $_ => $dice->part($_)->one_of(@{ $choices{$_} }) } keys %choices;
	my $self = bless {
		topology => $dice->part('topology')->weighted(single => 6, asynchronous => 2, synchronous => 2),
		disk => $dice->part('disk')->chance(30),
		clock => $dice->part('clock')->chance(30),
		read_only => $dice->part('read_only')->chance(25),
		parallel => $dice->part('parallel')->chance(20),
		preloaded => $dice->part('preloaded')->chance(50),
		databases => $dice->part('databases')->one_of(1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3),
		sessions => $dice->part('sessions')->one_of(1, 2, 4, 4, 8, 8, 16, 32, 64),
		pace_us => $dice->part('pace')->one_of(0, 1000, 5000, 50000),
		max_wait => $dice->part('max_wait')->one_of('5s', '5s', '10s'),
		dense => $opts{dense},
		assertions => has_assertions(),
		discard_caches => has_assertions() && $dice->part('discard_caches')->chance(50),
		chosen => \%chosen }, $class;
	$self->make_fleet($dice->part('fleet')) if $opts{fleet};
	$self->make_dense($dice->part('dense')) if $self->{dense};
	# Some calls of the session that has no caches need seconds of a processor, for which only few others are to compete.
	$self->{sessions} = min($self->{sessions}, 4) if $self->{discard_caches};
	# Without it no call to flush is made that could fail.
	$chosen{fsync} = 'on' if $self->{disk};
	if ($self->{topology} ne 'single')
	{
		$self->{clock} = $self->{disk} = 0;
		$chosen{wal_level} = 'replica' if $chosen{wal_level} eq 'minimal';
	}
	# libfaketime does not reach background workers of PostgreSQL 15, so a parallel worker sees another clock.
	$self->{parallel} = 0 if $self->{clock};
	$chosen{synchronous_commit} = '' if $self->{topology} eq 'synchronous';
	return $self;
}

# Leaves the processors to the sessions that draw in bulk. A parallel worker for each statement would take them.
sub make_dense ($self, $dice)
{
	$self->{sessions} = $dice->one_of(2, 4, 8);
	$self->{pace_us} = $dice->one_of(5000, 20000, 50000);
	$self->{parallel} = 0;
}

# A registry and its members. Grants are so short that a round sees many of them.
sub make_fleet ($self, $dice)
{
	$self->{topology} = 'fleet';
	$self->{registry} = $dice->weighted(single => 4, asynchronous => 4, synchronous => 2);
	my $pgbouncer = $dice->one_of('', '', 'session', 'transaction');
	$self->{pgbouncer} = defined Bouncer::program() ? $pgbouncer : '';
	$self->{members} = $dice->between(2, 3);
	$self->{sessions} = 2 * $dice->between($self->{members} + 1, 6);
	$self->{longest_s} = $dice->one_of(6, 10);
	$self->{bound_s} = 1;
	$self->{max_wait} = '10s';
	$self->{preloaded} = 1;
	$self->{read_only} = $self->{parallel} = 0;
	$self->{databases} = 1;
	$self->{chosen}{$_} = '' foreach 'synchronous_commit', 'wal_consistency_checking';
}

# What the registry never loses.
sub keeps ($self)
{
	return $self->{registry} eq 'synchronous' ? 'failovers' : 'restarts';
}

# How long newcomers wait after it may have lost something.
sub fence_s ($self)
{
	return $self->{longest_s} + 2 * $self->{bound_s};
}

# Whether commits wait for a standby: in a fleet those of the registry.
sub is_synchronous ($self)
{
	return ($self->{registry} // $self->{topology}) eq 'synchronous';
}

sub is_minimal ($self)
{
	return $self->{chosen}{wal_level} eq 'minimal';
}

# Whether a commit waits for its record to be flushed.
sub commits_are_durable ($self)
{
	return $self->{chosen}{synchronous_commit} ne 'off';
}

# SQLSTATEs that need no fault to be explained.
sub expected_errors ($self)
{
	return $self->{chosen}{default_transaction_isolation} eq '' ? () : ('40001');
}

# What a server says while it replays its log.
sub errors_in_hot_standby ($self)
{
	return ('25006', $self->{chosen}{default_transaction_isolation} eq 'serializable' ? '0A000' : ());
}

# Lines of postgresql.conf.
sub conf ($self)
{
	my %chosen = %{ $self->{chosen} };
	my $conf = $self->{preloaded} ? "shared_preload_libraries = 'uidgen'\n" : '';
	$conf .= join '', map { "$_ = '$chosen{$_}'\n" } grep { $chosen{$_} ne '' } sort keys %chosen;
	$conf .= "max_wal_senders = 0\n" if $chosen{wal_level} eq 'minimal';
	$conf .= quiet_conf() if $self->{read_only};
	$conf .= parallel_setting() . "\n" if $self->{parallel};
	# A round has up to 64 sessions, beside the nemesis and standbys.
	$conf .= "max_connections = 100\n";
	$conf .= "max_prepared_transactions = 100\nmax_worker_processes = 20\nwal_log_hints = on\nwal_keep_size = 512MB\n";
	$conf .= "uidgen.max_wait = '$self->{max_wait}'\nlog_line_prefix = '%m [%p] %b %e '\nlog_statement = none\n";
	return $conf;
}

sub describe ($self)
{
	my %chosen = %{ $self->{chosen} };
	my $chosen = join ', ', map { "$_ $chosen{$_}" } grep { $chosen{$_} ne '' } sort keys %chosen;
	my @marks = grep { $self->{$_} } qw(preloaded clock disk read_only parallel assertions discard_caches);
	my $kind = $self->{topology};
	$kind .= ", $self->{members} members, registry $self->{registry}, grants of $self->{longest_s} s"
	  . ($self->{pgbouncer} && ", PgBouncer by $self->{pgbouncer}")
	  if $kind eq 'fleet';
	$kind .= ", $self->{dense} sessions in bulk" if $self->{dense};
	return "$kind, $self->{sessions} sessions in $self->{databases} databases, "
	  . "pause $self->{pace_us} us, max_wait $self->{max_wait}"
	  . join('', map { ", $_" } @marks) . "\n   $chosen";
}

1;
