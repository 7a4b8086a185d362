# Event triggers that misbehave while the extension, a generator, a segment or a default comes or goes. They raise an
# error, they drop, rename, move or replace what the statement has created, they draw from it, and they change, rename
# or drop the extension's own objects.
#
# Expected: the statement succeeds, or it fails with an SQLSTATE that is no internal error, and then nothing has changed.
# What was committed never leads to an internal error later: not in a draw, not in a view, not in DROP EXTENSION.
use IPC::Run;
use UidgenTest;

my $node = new_node('events', conf => <<'END');
fsync = off
autovacuum = off
log_error_verbosity = verbose
log_min_error_statement = panic
uidgen.max_wait = 50ms
test.event = ''
test.action = ''
END
start_node($node);

# For each object of the statement: %1$s is its type, %2$s its name.
my %with_objects = (
	drop => 'DROP %1$s IF EXISTS %2$s CASCADE',
	rename => 'ALTER %1$s %2$s RENAME TO renamed',
	move => 'ALTER %1$s %2$s SET SCHEMA elsewhere',
	own => 'ALTER %1$s %2$s OWNER TO pg_monitor',
	restart => 'ALTER SEQUENCE %2$s INCREMENT 1 MAXVALUE 10 RESTART 5',
	replace => 'ALTER %1$s %2$s RENAME TO renamed; CREATE TABLE %2$s (id bigint)',
	again => 'ALTER %1$s %2$s RENAME TO renamed; CREATE SEQUENCE %2$s',
	draw => q{SELECT public.uid_next('%2$s'::regclass)},
	count => q{SELECT public.segment_next('%2$s'::regclass)},
	unregister => q{DELETE FROM public.uid_generator WHERE generator = '%2$s'::regclass; DELETE FROM public.uid_segment WHERE sequence = '%2$s'::regclass},
	register => q{INSERT INTO public.uid_segment VALUES ('by trigger', '%2$s'::regclass)});
my %once = (
	raise => q{DO 'BEGIN RAISE SQLSTATE ''ZZ001''; END'},
	drop_extension => 'DROP EXTENSION uidgen CASCADE',
	drop_sequences => 'DROP SCHEMA uid_segments CASCADE; DROP SEQUENCE uid_generators.other CASCADE',
	drop_default => 'DROP SEQUENCE uid_generators.uid_default CASCADE',
	delete => 'DELETE FROM public.uid_generator; DELETE FROM public.uid_segment',
	draw_default => 'SELECT public.uid_next()',
	create => q{SELECT public.uid_generator_create('by_trigger'), public.segment_create('by trigger'), public.uid_next('uid_generators.by_trigger')},
	set_default => q{SELECT public.uid_default_set('uid_generators.other')},
	alter => q{SELECT public.uid_generator_alter('uid_generators.other', lease_ms => 500)},
	rename_schema => 'ALTER SCHEMA public RENAME TO moved',
	rename_table => 'ALTER EXTENSION uidgen DROP TABLE public.uid_generator; ALTER TABLE public.uid_generator RENAME TO moved',
	drop_column => 'ALTER TABLE public.uid_generator DROP COLUMN mode CASCADE; ALTER TABLE public.uid_segment DROP COLUMN step CASCADE',
	disable => 'ALTER EVENT TRIGGER uid_load DISABLE');
my %statements = (
	create_extension => 'CREATE EXTENSION uidgen',
	drop_extension => 'DROP EXTENSION uidgen CASCADE',
	generator_create => q{SELECT uid_generator_create('g', 'js53', above => 1000)},
	generator_drop => q{SELECT uid_generator_drop('uid_generators.other')},
	generator_alter => q{SELECT uid_generator_alter('uid_generators.other', time_bits => 40)},
	segment_create => q{SELECT segment_create('s')},
	segment_drop => q{SELECT segment_drop('other')},
	default_set => q{SELECT uid_default_set('uid_generators.other')},
	adopt => q{SELECT uid_adopt('adoptable', 'id', dry_run => false)},
	release => q{SELECT uid_release('adopted', 'id', dry_run => false)},
	insert => q{INSERT INTO elsewhere.t_sequence VALUES ('t', 0, 10)},
	leaf => q{SELECT uid_leaf_alloc_create('elsewhere')});
my %events = (
	ddl_command_start => [ \%once ],
	ddl_command_end => [ \%once, \%with_objects ],
	sql_drop => [ \%once ],
	table_rewrite => [ \%once ]);

my $act = <<'SQL';
CREATE FUNCTION elsewhere.act_at_EVENT() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
  o record;
  action text := current_setting('test.action');
BEGIN
  IF current_setting('test.event') <> 'EVENT' THEN
    RETURN;
  END IF;
  PERFORM set_config('test.event', '', true); -- what it does fires no trigger
  IF action !~ '%' THEN
    EXECUTE action;
  ELSE
    FOR o IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
      BEGIN
        EXECUTE format(action, o.object_type, o.object_identity);
      EXCEPTION WHEN OTHERS THEN -- not every action fits every object
        IF SQLSTATE ~ '^XX' THEN
          RAISE;
        END IF;
      END;
    END LOOP;
  END IF;
  PERFORM set_config('test.event', 'EVENT', true);
END
$$;
CREATE EVENT TRIGGER a_EVENT ON EVENT EXECUTE FUNCTION elsewhere.act_at_EVENT();
SQL

# Databases that cases begin in, with the extension and without.
foreach my $database ('whole', 'bare')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, <<'SQL');
CREATE SCHEMA elsewhere;
-- Of everything but statistics and counters.
CREATE FUNCTION elsewhere.fingerprint() RETURNS text LANGUAGE sql SET search_path = pg_catalog AS $$
  SELECT md5(string_agg(x, ' ' ORDER BY x)) FROM (
    SELECT (oid, relname, relnamespace, relowner, relfilenode, relpersistence)::text FROM pg_class WHERE relpersistence <> 't'
    UNION ALL SELECT (d.*)::text FROM pg_depend d
    UNION ALL SELECT (a.*)::text FROM pg_attrdef a
    UNION ALL SELECT (e.*)::text FROM pg_event_trigger e
    UNION ALL SELECT (n.*)::text FROM pg_namespace n WHERE nspname !~ '^pg_') v(x)
$$;
SQL
	$node->safe_psql($database, <<'SQL') if $database eq 'whole';
CREATE EXTENSION uidgen;
SELECT uid_generator_create('other'), segment_create('other');
CREATE TABLE adoptable (id serial PRIMARY KEY);
CREATE TABLE adopted (id bigserial PRIMARY KEY);
SELECT uid_adopt('adopted', 'id', dry_run => false);
SELECT uid_t_sequence_create('elsewhere');
SQL
	foreach my $event (sort keys %events)
	{
		$node->safe_psql($database, $act =~ s/EVENT\b/$event/gr =~ s/CREATE $event TRIGGER/CREATE EVENT TRIGGER/r);
	}
}

my @cases;
foreach my $event (sort keys %events)
{
	foreach my $actions (@{ $events{$event} })
	{
		foreach my $action (sort keys %$actions)
		{
			push @cases, map { { statement => $_, event => $event, action => $actions->{$action}, name => "$_, $action at $event" } } sort keys %statements;
		}
	}
}

# All cases take minutes.
@cases = @cases[ grep { $_ % 5 == 2 } 0 .. $#cases ] unless $ENV{UIDGEN_LONG};
# PostgreSQL collects the triggers of an event first. It fails if one of them then drops the function of another one.
@cases = grep { $_->{name} ne 'leaf, drop_extension at ddl_command_end' } @cases;

# One script. A case that has changed something is looked at, and the next one goes on in a new database.
my @looks = (
	q{SELECT public.uid_next()}, q{SELECT public.uid_next('uid_generators.g')}, q{SELECT public.uid_next('uid_generators.other')},
	q{SELECT public.segment_next('other')}, q{SELECT public.segment_next('s')}, q{SELECT public.segment_next('by trigger')},
	q{SELECT * FROM public.uid_generator_status}, q{SELECT * FROM public.uid_generator_limits}, q{SELECT * FROM public.segment_status},
	q{SELECT * FROM elsewhere.t_sequence}, q{SELECT * FROM public.uid_generator_columns}, q{INSERT INTO adopted DEFAULT VALUES},
	q{SELECT public.uid_generator_create('later'), public.segment_create('later')}, q{DROP EXTENSION IF EXISTS uidgen CASCADE});
my $script = "\\set VERBOSITY sqlstate\n\\o /dev/null\n\\set changed true\n";
my $former = '';
foreach my $i (0 .. $#cases)
{
	my $case = $cases[$i];
	my $template = $case->{statement} eq 'create_extension' ? 'bare' : 'whole';
	my $action = $case->{action} =~ s/'/''/gr;
	my $looks = join '', map { "$_;\n\\echo $i look :SQLSTATE\n" } @looks;
	$script .= "\\set changed true\n" if $template ne $former;
	$former = $template;
	$script .= <<"END";
\\if :changed
\\c postgres
DROP DATABASE IF EXISTS acting;
CREATE DATABASE acting TEMPLATE $template;
\\c acting
SET client_min_messages = error;
SET statement_timeout = '60s';
SELECT elsewhere.fingerprint() AS before \\gset
\\endif
BEGIN;
SET LOCAL test.action = '$action';
SET LOCAL test.event = '$case->{event}';
$statements{ $case->{statement} };
\\echo $i statement :SQLSTATE
COMMIT;
\\echo $i commit :SQLSTATE
SELECT elsewhere.fingerprint() <> :'before' AS changed \\gset
\\echo $i changed :changed
\\if :changed
$looks\\endif
END
}
my $file = PostgreSQL::Test::Utils::tempdir() . '/cases.sql';
append_to_file($file, "$script\\echo end\n");
my ($output, $messages) = ('', '');
IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-f', $file ], '<', '/dev/null', '>', \$output, '2>', \$messages);
like($output, qr/^end$/m, 'no session ended') or diag(substr($messages, -500));

foreach my $line (split /\n/, $output)
{
	push @{ $cases[$1]{results}{$2} }, $3 if $line =~ /^(\d+) (statement|commit|changed|look) (\w+)$/;
}
my (@internal, @left, %count);
foreach my $case (@cases)
{
	my %results = %{ $case->{results} // {} };
	my ($state, $commit) = ($results{statement}[0] // 'none', $results{commit}[0] // 'none');
	$count{$state}++;
	my @bad = grep { /^(none|XX...|57...|42601|P0001)$/ } $state, $commit, @{ $results{look} // [] };
	push @internal, "$case->{name}: @bad" if @bad;
	push @left, "$case->{name}: $state" if $state ne '00000' && ($results{changed}[0] // '') ne 'f';
}
note(join ', ', map { "$_: $count{$_}" } sort keys %count);
cmp_ok($count{ZZ001} // 0, '>', 0, 'event triggers fire in statements of the extension');
is(join("\n", @internal), '', 'no internal error: ' . @cases . ' cases');
is(join("\n", @left), '', 'a statement that failed has changed nothing');
my $log = slurp_file($node->logfile);
is(join("\n", $log =~ /^.*(?:(?:ERROR|FATAL|PANIC):  XX|was terminated by|PANIC: ).*$/mg), '', 'nor in any process of the server');

done_testing();
