# Everything that the extension has is called with everything that its types can hold, by a superuser, by a role that may
# only name things, and by one that may not even do that; as calls that are rolled back and as calls that are committed,
# also with objects planted in front of everything along the search_path.
#
# Expected: each call returns, or fails with an SQLSTATE that says what the caller did wrong. No call crashes the server,
# ends the session or hangs. A role without rights changes nothing. Nothing planted runs, and it changes no outcome.
use Sweep;
use UidgenTest;

seed_random();

my $node = new_sweep_server('sweep');

my (%catalog, @others);
foreach my $database ('rolled_back', 'kept')
{
	sql("CREATE DATABASE $database");
	create_targets($node, $database);
	# Of another session, and of none any more.
	push @others, hold_open($node, dbname => $database, timeout => 24 * 3600);
	$others[-1]->query_safe('CREATE TEMP TABLE theirs (id bigserial)');
	my $dropped = sql('CREATE SEQUENCE dropped', $database) . sql("SELECT 'dropped'::regclass::oid", $database);
	sql('DROP SEQUENCE dropped', $database);
	$catalog{$database} = catalog($node, $database, $dropped);
}

is(join("\n", map { untyped_parameters($_) } values %catalog), '', 'Sweep.pm has values for each type of a parameter or column');

# A session's own temporary objects have other oids each time, so no value names them, but functions may meet them.
my $setup = 'CREATE TEMP TABLE mine (id bigserial);';

sub sweep_database ($what, $calls, %opts)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return sweep($node, $what, $calls, dbname => 'rolled_back', setup => $setup, %opts);
}

sub of ($catalog, $make)
{
	return map { $make->($_, $catalog) } @{ $catalog->{functions} };
}

# Functions that refuse to run in a transaction block are called outside, in the database whose state may drift.
my @alone;
{
	my @functions = @{ $catalog{rolled_back}{functions} };
	my @first = map { (one_by_one($_, $catalog{rolled_back}))[0] } @functions;
	my @states = run_calls($node, \@first, dbname => 'rolled_back');
	@alone = map { $functions[$_]{name} } grep { $states[$_] eq '25001' } 0 .. $#functions;
	note("not in a transaction block: @alone");
	cmp_ok(scalar(@functions), '>', 70, 'the catalog lists the functions of the extension');
	my $good = grep { $_ eq '00000' } @states;
	cmp_ok($good, '>', @functions / 2, 'most functions return with typical arguments');
	note(join ', ', map { "$functions[$_]{bare}: $states[$_]" } grep { $states[$_] !~ /^(00000|25001|0A000)$/ } 0 .. $#functions);
}

# The whole sweep takes many minutes. Without UIDGEN_LONG it is the first call of each function or relation, and a part of
# the others, which the seed chooses.
sub some ($first, @others) { return ($first, $ENV{UIDGEN_LONG} ? @others : grep { rand 10 < 1 } @others); }

my @one_by_one = map { some(one_by_one($_, $catalog{rolled_back})) } @{ $catalog{rolled_back}{functions} };
my @random = map { of($catalog{rolled_back}, \&at_random) } 1 .. 5;
my @tables = map { some(changes($_, $catalog{rolled_back})) } @{ $catalog{rolled_back}{relations} };

my @plain_states = sweep_database('a superuser, one argument at a time', \@one_by_one);
sweep_database('a superuser, arguments at random', \@random);
sweep_database('a superuser, huge arguments', [ of($catalog{rolled_back}, \&with_huge_arguments) ]);
my @table_states = sweep_database('a superuser changes tables and views', \@tables);
{
	my ($definitions, $firing) = triggers($catalog{rolled_back});
	sweep_database("a superuser's own triggers run the extension's functions", $definitions, after => $firing);
}
sweep_database('visitor, one argument at a time', \@one_by_one, user => 'visitor');
foreach my $role ('visitor', 'nobody')
{
	sweep_database("$role, arguments at random", \@random, user => $role);
	sweep_database("$role changes tables and views", \@tables, user => $role);
}

# What a superuser has done to a table is not guarded, but what reads it must cope. Each view, and each function that
# needs no argument.
{
	my @after = (
		(map { "SELECT * FROM $_->{name}" } grep { $_->{kind} eq 'v' } @{ $catalog{rolled_back}{relations} }),
		(map { call_without_arguments($_) } grep { !grep { !$_->{optional} } @{ $_->{params} } } @{ $catalog{rolled_back}{functions} }));
	my @done = map { $tables[$_] } grep { $table_states[$_] eq '00000' && $tables[$_] =~ /^(UPDATE|INSERT|DELETE|ALTER|DROP)/ } 0 .. $#tables;
	my @some = map { $done[ rand @done ] } 1 .. 60;
	sweep_database('views and functions after a change', \@some, after => \@after);
}

sub call_without_arguments { return "SELECT $_[0]{name}()"; }

# Committed, in a database whose state drifts. What the role without rights does comes first, and leaves nothing.
{
	my @calls = of($catalog{kept}, sub { map { at_random(@_) } 1 .. 5 });
	my @relations = grep { $_ ne 'worker_node' } split /\n/,
	  sql("SELECT c.relname FROM pg_depend d JOIN pg_class c ON c.oid = d.objid WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND c.relkind = 'r' AND c.relnamespace IN (SELECT extnamespace FROM pg_extension) ORDER BY 1", 'kept');
	my $state = sub {
		return join "\n", map { sql($_, 'kept') } (map { qq{SELECT * FROM $quoted_home."$_" ORDER BY 1, 2} } @relations),
		  'SELECT oid, xmin, relname FROM pg_class ORDER BY 1', 'SELECT oid, xmin, proacl FROM pg_proc ORDER BY 1', 'SELECT * FROM pg_authid ORDER BY 1',
		  'SELECT * FROM pg_db_role_setting ORDER BY 1, 2';
	};
	my $before = $state->();
	my @bare = grep { my $call = $_; grep { index($call, "SELECT $_(") == 0 } @alone } of($catalog{kept}, \&one_by_one);
	foreach my $role ('visitor', 'nobody')
	{
		sweep_database("$role, committed", [ @calls, @bare ], user => $role, dbname => 'kept', committed => 1);
	}
	is($state->(), $before, '... and nothing has changed');
	sweep_database('a superuser, committed', \@bare, dbname => 'kept', committed => 1);
	sweep_database('a superuser, at random, committed', [ map { of($catalog{kept}, \&at_random) } 1 .. 25 ], dbname => 'kept', committed => 1);
}

# With objects planted in front of everything along the search_path.
{
	my $in_front = plant($node, 'rolled_back', $setup);
	my $start = -s $node->logfile;
	run_calls($node, [ 'SELECT now()', 'SELECT 1::regclass = 1::oid', 'SELECT max(i) FROM things.plain', q{SELECT 'x'::text || 'y'::text}, 'SELECT * FROM pg_class', "SELECT 1::oid::pg_catalog.oid" ],
		dbname => 'rolled_back', setup => $in_front);
	is(planted_calls($node, $start), 'max, now, oid, operator, pg_class, regclass, text', 'what is planted works');

	$start = -s $node->logfile;
	my %outcomes = ('one argument at a time' => [ \@one_by_one, \@plain_states ], 'changes of tables and views' => [ \@tables, \@table_states ]);
	foreach my $what (sort keys %outcomes)
	{
		my ($calls, $usual) = @{ $outcomes{$what} };
		my @states = sweep_database("with planted objects, $what", $calls, setup => $in_front);
		is(join("\n", differences($node, $calls, $usual, \@states, $setup, $in_front, dbname => 'rolled_back')), '', '... have the same outcome');
	}
	is(planted_calls($node, $start), '', 'nothing planted has run');
}

$_->quit foreach @others;
check_end_of_sweep($node, 'rolled_back', 'kept');

done_testing();
