# The calls of 042_sweep.t, at random, in settings in which the extension was not written: on a server with the least and
# with the most in its log, in a renamed schema, beside many databases, with hardly a connection more, with publications
# and subscriptions of all tables, beside a prepared transaction, with a lock table that is nearly full, in single-user
# mode; and in sessions whose settings change what transactions may do, how statements are planned, and what values look
# like.
#
# Expected: as there. Settings that should make no difference make none.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sweep;
use Test::More;
use UidgenTest;

my $seed = $ENV{UIDGEN_SWEEP_SEED} // 4711;
srand $seed;
note("seed $seed");

# What a session sets. same: each call has the outcome that it has without it, but for those that the pattern `but` names.
# role: that of a superuser only.
my @sessions = (
	# Where a schema is not given, it is the current one.
	{ what => 'without a search_path', set => q{SET search_path = ''}, same => 1, but => qr/uid_leaf_alloc_create\(\)/ },
	{ what => 'in parallel workers', set => 'SET ' . parallel_setting(), same => 1 },
	{ what => 'with other texts for values', same => 1, set => <<'END' },
SET standard_conforming_strings = off; SET escape_string_warning = off; SET quote_all_identifiers = on;
SET array_nulls = off; SET transform_null_equals = on; SET bytea_output = escape; SET DateStyle = German;
SET IntervalStyle = sql_standard; SET extra_float_digits = -15; SET TimeZone = 'Asia/Kathmandu'
END
	{ what => 'with all checks of PL/pgSQL', set => q{SET plpgsql.extra_errors = 'all'}, same => 1 },
	{ what => 'with the conflicts of PL/pgSQL resolved', set => 'SET plpgsql.variable_conflict = use_column', same => 1, role => 'superuser' },
	{ what => 'with plans for any parameters', set => 'SET plan_cache_mode = force_generic_plan', same => 1 },
	{ what => 'in serializable transactions', set => 'SET default_transaction_isolation = serializable' },
	{ what => 'in read-only transactions', set => 'SET default_transaction_read_only = on' },
	{ what => 'as a process that applies changes', set => 'SET session_replication_role = replica', role => 'superuser' });
push @sessions, { what => 'without caches', set => 'SET debug_discard_caches = 1', same => 1, is_slow => 1, role => 'superuser' } if has_assertions();

my @servers = (
	{ name => 'minimal', conf => "wal_level = minimal\nmax_wal_senders = 0\nmax_connections = 4\n", renamed => 1, copies => 24 },
	{ name => 'logical', conf => "wal_level = logical\n", replicated => 1, prepared => 1 });

my $in_home = 'SET search_path = "' . $home =~ s/"/""/gr . '"';

sub sql
{
	my ($node, $sql, $database) = @_;
	return $node->safe_psql($database // 'swept', $sql);
}

sub create_server
{
	my ($server) = @_;
	my $node = new_sweep_server($server->{name}, $server->{conf});
	sql($node, 'CREATE DATABASE swept', 'postgres');
	create_targets($node, 'swept', renamed => $server->{renamed});
	foreach my $copy (map { "copy$_" } 1 .. $server->{copies} // 0)
	{
		sql($node, "CREATE DATABASE $copy TEMPLATE swept STRATEGY file_copy", 'postgres');
		sql($node, "$in_home; SELECT uid_next()", $copy);
	}
	replicate($node) if $server->{replicated};
	return $node;
}

# Both databases publish all tables, among them the extension's. The one that is swept subscribes to those of the other.
sub replicate
{
	my ($node) = @_;
	sql($node, 'CREATE DATABASE other TEMPLATE swept', 'postgres');
	sql($node, 'CREATE PUBLICATION everything FOR ALL TABLES', $_) foreach 'swept', 'other';
	sql($node, q{SELECT pg_create_logical_replication_slot('everything', 'pgoutput')}, 'other');
	sql($node, "CREATE SUBSCRIPTION everything CONNECTION '" . $node->connstr . " dbname=other' PUBLICATION everything WITH (create_slot = false, copy_data = false)");
	return;
}

# What the other one's tables say arrives, and changes nothing.
sub check_replication
{
	my ($node) = @_;
	my $steps = "$in_home; SELECT name, step FROM uid_segment ORDER BY name";
	my $before = sql($node, $steps);
	sql($node, "$in_home; SELECT segment_alter('seg', step => 77), uid_generator_alter('uid_generators.own', lease_ms => 1500); CREATE TABLE later (id bigint DEFAULT uid_next())", 'other');
	$node->wait_for_catchup('everything');
	is(sql($node, $steps), $before, 'the subscription goes on, and the rows of the extension stay');
	sql($node, 'DROP SUBSCRIPTION everything');
	return;
}

# A transaction that is neither committed nor rolled back has created things.
sub prepare
{
	my ($node) = @_;
	return sql($node, "BEGIN; $in_home; SELECT uid_generator_create('pending'), segment_create('pending'), uid_key_create('pending'); PREPARE TRANSACTION 'pending'");
}

sub commit_prepared
{
	my ($node) = @_;
	sql($node, q{COMMIT PREPARED 'pending'});
	my $drawn = sql($node, "$in_home; SELECT uid_next('uid_generators.pending') > 0, segment_next('pending'), uid_reveal(uid_conceal(5, 'pending'), 'pending')");
	is($drawn, 't|1|5', 'what a prepared transaction created works after its commit');
	return;
}

# Calls with another outcome than the usual one, twice. What depends on the time may differ once.
sub differences
{
	my ($node, $calls, $usual, $states, %opts) = @_;
	my @differ = grep { $states->[$_] ne $usual->[$_] } 0 .. $#$calls;
	my @again = map { $calls->[$_] } @differ;
	my @plain = run_calls($node, \@again, %opts, setup => '');
	my @set = run_calls($node, \@again, %opts);
	return map { "$plain[$_], with the setting $set[$_]: $again[$_]" } grep { $plain[$_] ne $set[$_] } 0 .. $#again;
}

sub sweep_in_sessions
{
	my ($node, $calls, $role) = @_;
	# No call waits for a prepared transaction.
	my $patience = "SET lock_timeout = '50ms';\n";
	my %opts = (dbname => 'swept', $role eq 'superuser' ? () : (user => $role));
	my @usual = sweep($node, "$role, as usual", $calls, %opts, setup => $patience);
	foreach my $session (grep { ($_->{role} // $role) eq $role } @sessions)
	{
		my @calls = $session->{is_slow} ? @$calls[ 0 .. 59 ] : @$calls;
		my $setup = "$patience$session->{set};\n";
		my @states = sweep($node, "$role, $session->{what}", \@calls, %opts, setup => $setup);
		next unless $session->{same};
		my $but = $session->{but} // qr/^$/;
		my @differ = grep { !/$but/ } differences($node, \@calls, \@usual, \@states, %opts, setup => $setup);
		is(join("\n", @differ), '', '... have the same outcome');
	}
	return;
}

# Another session has all locks but a few.
sub sweep_with_few_locks
{
	my ($node, $calls) = @_;
	my $holder = hold_open($node, dbname => 'swept');
	$holder->query(<<'END');
DO $$
BEGIN
  FOR i IN 1 .. 1000000 LOOP
    PERFORM pg_advisory_lock(i);
  END LOOP;
EXCEPTION WHEN out_of_memory THEN
  PERFORM pg_advisory_unlock(i) FROM generate_series(1, 30) AS i;
END $$
END
	my @states = sweep($node, 'a superuser, with few locks left', $calls, dbname => 'swept', allowed => qr/^53200$/);
	cmp_ok(scalar(grep { $_ eq '53200' } @states), '>', 0, 'some have found no lock');
	$holder->quit;
	return;
}

# But for the call that runs what the caller passes.
sub sweep_alone
{
	my ($node, $calls) = @_;
	$node->stop;
	my @states = run_calls_alone($node, 'swept', grep { !/\.uid_run_plan\(/ } @$calls);
	is(join(' ', grep { is_bad($_) } @states), '', 'in single-user mode');
	cmp_ok(scalar(@states), '<', @$calls, 'some calls return there');
	start_node($node);
	return;
}

foreach my $server (@servers)
{
	note($server->{name});
	my $node = create_server($server);
	my $dropped = sql($node, 'CREATE SEQUENCE dropped') . sql($node, q{SELECT 'dropped'::regclass::oid});
	sql($node, 'DROP SEQUENCE dropped');
	my $catalog = catalog($node, 'swept', $dropped);
	my @calls = map { my $f = $_; map { at_random($f, $catalog) } 1 .. ($ENV{UIDGEN_LONG} ? 40 : 3) } @{ $catalog->{functions} };
	prepare($node) if $server->{prepared};
	sweep_in_sessions($node, \@calls, $_) foreach 'superuser', 'visitor';
	commit_prepared($node) if $server->{prepared};
	check_replication($node) if $server->{replicated};
	sweep_with_few_locks($node, \@calls);
	sweep_alone($node, \@calls);
	check_end_of_sweep($node, 'swept');
}

done_testing();
