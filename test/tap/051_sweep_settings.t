# The calls of 042_sweep.t, at random, under other settings. Servers: wal_level minimal with six connections, a renamed
# schema and two dozen databases; one with a prepared transaction. On both: a lock table that is nearly full, and
# single-user mode. Sessions: see @sessions.
#
# Expected: as in 042_sweep.t, and the same outcome under settings that concern no call.
use Sweep;
use UidgenTest;
use Installation;
use Trouble;

seed_random();

# PostgreSQL 19 has no other strings than those of the standard.
my $strings = `pg_config --version` =~ /PostgreSQL (\d+)/ && $1 < 19 ? 'SET standard_conforming_strings = off; SET escape_string_warning = off;' : '';

# What a session sets. same: each call has the outcome that it has without it, but for those that the pattern `but` names.
# role: for calls of this role only, because no other one may set it. is_slow: only some of the calls. asserts: also on a
# server with assertions, because PostgreSQL does other things then.
my @sessions = (
	# That function creates tables in the first schema of the search_path, if the caller names none.
	{ what => 'without a search_path', set => q{SET search_path = ''}, same => 1, but => qr/uid_(?:leaf_alloc|t_sequence)_create\(\)/ },
	{ what => 'in parallel workers', set => 'SET ' . parallel_setting(), same => 1, asserts => 1 },
	# Without array_nulls the text '{NULL}' is no array of bigint.
	{ what => 'with other texts for values', same => 1, but => qr/\{NULL\}/, set => $strings . <<'END' },
SET quote_all_identifiers = on; SET array_nulls = off; SET transform_null_equals = on; SET bytea_output = escape; SET DateStyle = German;
SET IntervalStyle = sql_standard; SET extra_float_digits = -15; SET TimeZone = 'Asia/Kathmandu'
END
	{ what => 'with more checks of PL/pgSQL', set => q{SET plpgsql.extra_errors = 'all'}, same => 1 },
	{ what => 'with the conflicts of PL/pgSQL resolved', set => 'SET plpgsql.variable_conflict = use_column', same => 1, role => 'superuser' },
	{ what => 'with plans for any parameters', set => 'SET plan_cache_mode = force_generic_plan', same => 1 },
	{ what => 'in serializable transactions', set => 'SET default_transaction_isolation = serializable', asserts => 1 },
	{ what => 'in read-only transactions', set => 'SET default_transaction_read_only = on' },
	{ what => 'as a process that applies changes', set => 'SET session_replication_role = replica', role => 'superuser' });
@sessions = grep { $_->{asserts} } @sessions if has_assertions();
push @sessions, { what => 'without caches', set => q{SET debug_discard_caches = 1; SET statement_timeout = '60s'}, same => 1, is_slow => 1, role => 'superuser' } if has_assertions();

my @servers = (
	{ name => 'minimal', conf => "wal_level = minimal\nmax_wal_senders = 0\nmax_connections = 6\n", renamed => 1, copies => 24 },
	{ name => 'prepared', prepared => 1 });

my $in_home = "SET search_path = $quoted_home";

sub sql_of ($node, $sql, $database = 'swept')
{
	return $node->safe_psql($database, $sql);
}

sub create_server ($server)
{
	my $node = new_sweep_server($server->{name}, $server->{conf} // '');
	sql_of($node, 'CREATE DATABASE swept', 'postgres');
	create_targets($node, 'swept', renamed => $server->{renamed});
	foreach my $copy (map { "copy$_" } 1 .. $server->{copies} // 0)
	{
		sql_of($node, "CREATE DATABASE $copy TEMPLATE swept STRATEGY file_copy", 'postgres');
		sql_of($node, "$in_home; SELECT uid_next()", $copy);
	}
	return $node;
}

# A transaction that is neither committed nor rolled back has created things.
sub create_prepared ($node)
{
	return sql_of($node, "BEGIN; $in_home; SELECT uid_generator_create('pending'), segment_create('pending'), uid_key_create('pending'); PREPARE TRANSACTION 'pending'");
}

# What waits for the prepared transaction fails soon, and so does what makes very many rows. What else takes so long gets
# another chance on a busy machine.
my $patience = "SET lock_timeout = '50ms'; SET statement_timeout = '2s';\n";
my $is_late = qr/^57014\b/;

sub sweep_soon ($node, $what, $calls, %opts)
{
	my $setup = $opts{setup} // '';
	my $allowed = $opts{allowed} // qr/^$/;
	my @states = sweep($node, $what, $calls, %opts, setup => $patience . $setup, allowed => qr/$allowed|$is_late/);
	my @late = map { $calls->[$_] } grep { $states[$_] =~ $is_late && is_bad($states[$_]) } 0 .. $#$calls;
	is(bad_calls($node, \@late, [ run_calls($node, \@late, %opts) ], %opts), '', '... none of which hangs') if @late;
	return @states;
}

sub sweep_in_sessions ($node, $calls, $role)
{
	my %opts = (dbname => 'swept', $role eq 'superuser' ? () : (user => $role));
	my @usual = sweep_soon($node, "$role, as usual", $calls, %opts);
	my @short = grep { $usual[$_] ne '57014' } 0 .. $#usual;
	($calls, @usual) = ([ @$calls[@short] ], @usual[@short]);
	foreach my $session (grep { ($_->{role} // $role) eq $role } @sessions)
	{
		my @some = $session->{is_slow} ? map { int(($_ + rand) * @$calls / 12) } 0 .. 11 : 0 .. $#$calls;
		my @calls = @$calls[@some];
		my $setup = "$session->{set};\n";
		my @states = sweep_soon($node, "$role, $session->{what}", \@calls, %opts, setup => $setup);
		next unless $session->{same};
		my $but = $session->{but} // qr/^$/;
		my @differ = grep { !/$but/ } differences($node, \@calls, [ @usual[@some] ], \@states, $patience, $patience . $setup, %opts);
		is(join("\n", @differ), '', '... have the same outcome');
	}
}

# Another session has all locks but a few.
sub sweep_with_few_locks ($node, $calls)
{
	my $holder = hold_open($node, dbname => 'swept');
	$holder->query(sql_to_use_up_locks('PERFORM pg_advisory_unlock(i) FROM generate_series(1, 12) AS i'));
	my @states = sweep_soon($node, 'a superuser, with few locks left', $calls, dbname => 'swept', allowed => qr/^53200$/);
	cmp_ok(scalar(grep { $_ eq '53200' } @states), '>', 0, 'some have found no lock');
	$holder->quit;
}

sub sweep_in_single_user_mode ($node, $calls)
{
	$node->stop;
	my @errors = run_in_single_user_mode($node, 'swept', $patience, @$calls);
	is(join("\n", grep { is_bad(substr $_, 0, 5) && !/$is_late/ } @errors), '', 'in single-user mode');
	cmp_ok(scalar(@errors), '<', scalar(@$calls), 'some calls return there');
	start_node($node);
}

# A column that is adopted, drawn for and released: what each statement returns, but for times and ids.
my $story = "$in_home, public;\n" . <<'END';
CREATE TABLE public.story_table (id bigint GENERATED ALWAYS AS IDENTITY (START 7 CACHE 2), item text);
COMMENT ON SEQUENCE public.story_table_id_seq IS E'two\nlines, a \\ and a \'';
INSERT INTO public.story_table (item) SELECT 'before' FROM generate_series(1, 3);
SELECT regexp_replace(line, '[0-9]{12,}', 'N', 'g') FROM uid_adopt('public.story_table', 'id') line;
SELECT count(*) FROM uid_adopt('public.story_table', 'id', dry_run => false);
INSERT INTO public.story_table (item) VALUES ('adopted');
SELECT regexp_replace(line, '[0-9]{12,}', 'N', 'g') FROM uid_release('public.story_table', 'id') line;
SELECT count(*) FROM uid_release('public.story_table', 'id', dry_run => false);
INSERT INTO public.story_table (item) VALUES ('after');
SELECT CASE WHEN id < 1000 THEN id END, item FROM public.story_table ORDER BY story_table.id;
SELECT a.attidentity, obj_description('public.story_table_id_seq'::regclass, 'pg_class')
  FROM pg_attribute a WHERE a.attrelid = 'public.story_table'::regclass AND a.attname = 'id';
DROP TABLE public.story_table;
END

sub tell_story ($node)
{
	my $usual = sql_of($node, $story);
	# With quote_all_identifiers, the statements have more quotes. One name has an oid.
	my $plain = sub { $_[0] =~ s/"|(?<=uid_adopt_)\d+//gr };
	like($usual, qr/^11\|after\n.*^a\|two$/ms, 'a column is adopted and released: it goes on after its own ids, and is an identity again');
	foreach my $session (grep { $_->{same} } @sessions)
	{
		my ($out, $error);
		$node->psql('swept', "$session->{set};\n$story", stdout => \$out, stderr => \$error);
		is($plain->($out), $plain->($usual), "... and $session->{what}") || diag($error);
	}
}

foreach my $server (@servers)
{
	note($server->{name});
	my $node = create_server($server);
	my $dropped = sql_of($node, 'CREATE SEQUENCE dropped') . sql_of($node, q{SELECT 'dropped'::regclass::oid});
	sql_of($node, 'DROP SEQUENCE dropped');
	my $catalog = catalog($node, 'swept', $dropped);
	my @calls = map { my $f = $_; map { at_random($f, $catalog) } 1 .. ($ENV{UIDGEN_LONG} ? 40 : 2) } @{ $catalog->{functions} };
	create_prepared($node) if $server->{prepared};
	tell_story($node);
	sweep_in_sessions($node, \@calls, $_) foreach 'superuser', 'visitor';
	sql_of($node, q{COMMIT PREPARED 'pending'}) if $server->{prepared};
	sweep_with_few_locks($node, \@calls);
	sweep_in_single_user_mode($node, \@calls);
	check_end_of_sweep($node, 'swept');
}

done_testing();
