# Everything that the extension has is called with everything that its types can hold, and its tables and views are
# changed: by a superuser, by a role that may only name things (visitor), and by one that may not even do that (nobody); in
# calls that are rolled back, and in calls that are committed; also under other settings of sessions and servers, with a
# prepared transaction, with few locks left, and in single-user mode.
#
# Expected: each call returns, or fails with an SQLSTATE that says what the caller did wrong. No call crashes the server,
# ends the session or hangs. A role without rights changes nothing. Settings that concern no call change no outcome.
use Sweep;
use UidgenTest;
use Installation;
use Trouble;

seed_random();

my @servers = (
	{ name => 'usual', is_whole => 1, prepared => 1 },
	{ name => 'minimal', conf => "wal_level = minimal\nmax_wal_senders = 0\nmax_connections = 6\n", renamed => 1, copies => 24 });

# PostgreSQL 19 has no other strings than those of the standard.
my $strings = `pg_config --version` =~ /PostgreSQL (\d+)/ && $1 < 19 ? 'SET standard_conforming_strings = off; SET escape_string_warning = off;' : '';

# What a session sets. same: each call has the outcome that it has without it, except calls that match the pattern `but`.
# superuser: no other role may set it.
my @sessions = (
	# That function creates tables in the first schema of the search_path, if the caller names none.
	{ what => 'without a search_path', set => q{SET search_path = ''}, same => 1, but => qr/uid_(?:leaf_alloc|t_sequence)_create\(\)/ },
	{ what => 'in parallel workers', set => 'SET ' . parallel_setting(), same => 1 },
	# Without array_nulls the text '{NULL}' is no array of bigint.
	{ what => 'with other texts for values', same => 1, but => qr/\{NULL\}/, set => $strings . <<'END' },
SET quote_all_identifiers = on; SET array_nulls = off; SET transform_null_equals = on; SET bytea_output = escape; SET DateStyle = German;
SET IntervalStyle = sql_standard; SET extra_float_digits = -15; SET TimeZone = 'Asia/Kathmandu'
END
	{ what => 'with more checks of PL/pgSQL', set => q{SET plpgsql.extra_errors = 'all'}, same => 1 },
	{ what => 'with the conflicts of PL/pgSQL resolved', set => 'SET plpgsql.variable_conflict = use_column', same => 1, superuser => 1 },
	{ what => 'with plans for any parameters', set => 'SET plan_cache_mode = force_generic_plan', same => 1 },
	{ what => 'in serializable transactions', set => 'SET default_transaction_isolation = serializable' },
	{ what => 'in read-only transactions', set => 'SET default_transaction_read_only = on' },
	{ what => 'as a process that applies changes', set => 'SET session_replication_role = replica', superuser => 1 });

my $in_home = "SET search_path = $quoted_home";

sub random_calls ($catalog, $count)
{
	return map { my $f = $_; map { at_random($f, $catalog) } 1 .. $count } @{ $catalog->{functions} };
}

sub sweep_whole ($node, $catalog)
{
	my @functions = @{ $catalog->{functions} };
	my @relations = @{ $catalog->{relations} };
	is(join("\n", untyped_parameters($catalog)), '', 'Sweep.pm has values for each type of a parameter or column');
	cmp_ok(scalar(@functions), '>', 70, 'the catalog lists the functions of the extension');
	my @typical = run_calls($node, [ map { (one_by_one($_, $catalog))[0] } @functions ]);
	cmp_ok(scalar(grep { $_ eq '00000' } @typical), '>', @functions / 2, 'most functions return with typical arguments');

	# Without UIDGEN_LONG the seed chooses a part of the most numerous calls.
	my $is_chosen = sub { $ENV{UIDGEN_LONG} || rand 6 < 1 };
	my %calls = (
		'one argument at a time' => [ grep { $is_chosen->() } map { one_by_one($_, $catalog) } @functions ],
		'arguments at random' => [ random_calls($catalog, 5) ],
		'huge arguments' => [ map { with_huge_arguments($_, $catalog) } @functions ],
		'changes of tables and views' => [ map { changes($_, $catalog) } @relations ]);
	my %states;
	foreach my $role ('nobody', 'visitor', 'superuser')
	{
		foreach my $what (sort keys %calls)
		{
			$states{$what} = [ sweep($node, "$role, $what", $calls{$what}, user => $role) ];
		}
	}
	my ($definitions, $firing) = triggers($catalog);
	sweep($node, "a superuser's own triggers run the extension's functions", $definitions, after => $firing);

	# What a superuser has done to a table is not guarded, but what reads it must cope.
	my ($changes, $outcomes) = map { $_->{'changes of tables and views'} } \%calls, \%states;
	my @done = map { $changes->[$_] } grep { $is_chosen->() && $outcomes->[$_] eq '00000' && $changes->[$_] =~ /^(UPDATE|INSERT|DELETE|ALTER|DROP)/ } 0 .. $#$changes;
	my @views = map { "SELECT * FROM $_->{name}" } grep { $_->{kind} eq 'v' } @relations;
	my @without_arguments = map { "SELECT $_->{name}()" } grep { !grep { !$_->{optional} } @{ $_->{params} } } @functions;
	sweep($node, 'views and functions after a change', \@done, after => [ @views, @without_arguments ]);
}

# In a database whose state drifts. What the roles without rights do comes first, and leaves nothing.
sub sweep_committed ($node)
{
	create_targets($node, 'kept');
	my $catalog = catalog($node, 'kept');
	my %opts = (dbname => 'kept', committed => 1);
	# Temporary tables of a session that has ended are dropped a little later.
	my $state = sub {
		return join "\n", map { sql($node, "SELECT $_", 'kept') } q{oid, xmin, relname FROM pg_class WHERE relpersistence <> 't' ORDER BY 1}, 'oid, xmin, proacl FROM pg_proc ORDER BY 1',
		  '* FROM pg_authid ORDER BY 1', '* FROM pg_db_role_setting ORDER BY 1, 2', '* FROM pg_seclabel ORDER BY 1, 2, 3', '* FROM uid_secrets.uid_key ORDER BY 1';
	};
	my $before = $state->();
	sweep($node, "$_, committed", [ random_calls($catalog, 5) ], %opts, user => $_) foreach 'visitor', 'nobody';
	is($state->(), $before, '... and nothing has changed');
	sweep($node, 'superuser, committed', [ random_calls($catalog, 25) ], %opts);
}

sub sweep_in_sessions ($node, $calls, $role)
{
	my @usual = sweep($node, "$role, as usual", $calls, user => $role);
	foreach my $session (grep { $role eq 'superuser' || !$_->{superuser} } @sessions)
	{
		my %opts = (user => $role, setup => "$session->{set};\n", but => $session->{but});
		my $what = "$role, $session->{what}";
		$session->{same} ? sweep_as_before($node, $what, $calls, \@usual, %opts) : sweep($node, $what, $calls, %opts);
	}
}

# Another session has all locks but a few.
sub sweep_with_few_locks ($node, $calls)
{
	my $holder = hold_open($node, dbname => 'swept');
	$holder->query(sql_to_use_up_locks('PERFORM pg_advisory_unlock(i) FROM generate_series(1, 12) AS i'));
	my @states = sweep($node, 'superuser, with few locks left', $calls, allowed => qr/^53200$/);
	cmp_ok(scalar(grep { $_ eq '53200' } @states), '>', 0, 'some have found no lock');
	$holder->quit;
}

sub sweep_in_single_user_mode ($node, $calls)
{
	$node->stop;
	my @errors = run_in_single_user_mode($node, 'swept', @$calls);
	is(join("\n", grep { is_bad(substr $_, 0, 5) } @errors), '', 'in single-user mode');
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
	my $usual = sql($node, $story, 'swept');
	# With quote_all_identifiers, the statements have more quotes. One name has an oid.
	my $plain = sub { $_[0] =~ s/"|(?<=uid_adopt_)\d+//gr };
	like($usual, qr/^11\|after\n.*^a\|two$/ms, 'a column is adopted and released: it goes on after its own ids, and is an identity again');
	foreach my $session (grep { $_->{same} } @sessions)
	{
		my (undef, $out, $error) = $node->psql('swept', "$session->{set};\n$story");
		is($plain->($out), $plain->($usual), "... and $session->{what}") || diag($error);
	}
}

foreach my $server (@servers)
{
	note($server->{name});
	my $node = new_sweep_server($server->{name}, $server->{conf} // '');
	create_targets($node, 'swept', renamed => $server->{renamed});
	foreach my $copy (map { "copy$_" } 1 .. $server->{copies} // 0)
	{
		sql($node, "CREATE DATABASE $copy TEMPLATE swept STRATEGY file_copy");
		sql($node, "$in_home; SELECT uid_next()", $copy);
	}
	my $catalog = catalog($node, 'swept');

	# A transaction that is neither committed nor rolled back has created things.
	sql($node, "BEGIN; $in_home; SELECT uid_generator_create('pending'), segment_create('pending'), uid_key_create('pending'); PREPARE TRANSACTION 'pending'", 'swept')
	  if $server->{prepared};
	tell_story($node);
	my @calls = random_calls($catalog, $ENV{UIDGEN_LONG} ? 40 : 2);
	sweep_in_sessions($node, \@calls, $_) foreach 'superuser', 'visitor';
	sql($node, q{COMMIT PREPARED 'pending'}, 'swept') if $server->{prepared};
	sweep_with_few_locks($node, \@calls);
	if ($server->{is_whole})
	{
		sweep_whole($node, $catalog);
		sweep_committed($node);
	}
	sweep_in_single_user_mode($node, \@calls);
	check_end_of_sweep($node, 'swept', $server->{is_whole} ? 'kept' : ());
}

done_testing();
