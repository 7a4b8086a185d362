# Which functions and operators PostgreSQL finds for the names in the extension's statements: in the scripts, views and
# constraints, and in what functions and background processes run. A role that may create in the extension's schema may
# add a function or an operator whose arguments match better. Expected: it is never chosen.
#
# The test reads PostgreSQL's own parse trees, from the catalogs and from the server's log (debug_print_parse).
use Sweep;
use UidgenTest 'preloaded';

my $node = new_sweep_server('names', <<'END');
debug_print_parse = on
debug_pretty_print = off
log_error_verbosity = default
log_min_error_statement = error
END
my $directory = PostgreSQL::Test::Utils::tempdir();

# A node is a hash of its fields, each a list of values, and its kind. A value is a node, a list or a word.
sub parsed ($text)
{
	my @tokens = $text =~ /[{}()]|(?:\\.|[^\s{}()\\])+/gs;
	my $value;
	$value = sub {
		my $token = shift @tokens;
		my @list;
		if ($token eq '(')
		{
			push @list, $value->() while $tokens[0] ne ')';
			shift @tokens;
			return \@list;
		}
		return $token if $token ne '{';
		my ($node, $field) = ({ kind_of_node => shift @tokens }, '');
		while ($tokens[0] ne '}')
		{
			if ($tokens[0] =~ /^:(\w+)$/) { $field = $1; shift @tokens; next; }
			push @{ $node->{$field} }, $value->();
		}
		shift @tokens;
		return $node;
	};
	my $tree = $value->();
	undef $value;
	return $tree;
}

sub nodes_of ($value)
{
	return map { nodes_of($_) } @$value if ref $value eq 'ARRAY';
	return () if ref $value ne 'HASH';
	return ($value, map { nodes_of($value->{$_}) } grep { $_ ne 'kind_of_node' } keys %$value);
}

sub first_of ($node, @fields) { my ($field) = grep { defined $node->{$_} } @fields; return defined $field ? $node->{$field}[0] : undef; }

# The type of an expression before PostgreSQL has coerced it for a call.
sub type_of ($node)
{
	return 0 if ref $node ne 'HASH';
	return type_of($node->{arg}[0]) if $node->{kind_of_node} eq 'NAMEDARGEXPR';
	my $format = first_of($node, qw(funcformat relabelformat coerceformat coercionformat convertformat)) // '';
	if ($format eq '2')
	{
		my $argument = first_of($node, qw(arg args));
		return type_of(ref $argument eq 'ARRAY' ? $argument->[0] : $argument);
	}
	return first_of($node, qw(vartype consttype paramtype funcresulttype opresulttype aggtype wintype resulttype casetype
		  coalescetype minmaxtype array_typeid refrestype row_typeid typeId type)) // do {
		my ($query) = $node->{kind_of_node} eq 'SUBLINK' && $node->{subLinkType}[0] == 4 ? $node->{subselect}[0] : ();
		$query ? type_of($query->{targetList}[0][0]{expr}[0]) : $node->{kind_of_node} eq 'SUBLINK' && $node->{subLinkType}[0] == 6 ? 0 : 16;
	};
}

# What a tree calls by name: the function's or operator's OID, its arguments' types, which arguments are literals, and
# the type of its result. Casts and syntax of SQL such as extract() look up no function's name.
sub calls_of ($tree)
{
	my @calls;
	foreach my $node (nodes_of($tree))
	{
		my ($kind, $oid) = ('function', undef);
		my @arguments = @{ first_of($node, 'args') // [] } if ref(first_of($node, 'args') // '') eq 'ARRAY';
		if ($node->{kind_of_node} eq 'FUNCEXPR') { $oid = $node->{funcid}[0] if $node->{funcformat}[0] == 0; }
		elsif ($node->{kind_of_node} eq 'AGGREF')
		{
			$oid = $node->{aggfnoid}[0];
			@arguments = map { $_->{expr}[0] } grep { !$_->{resjunk} || $_->{resjunk}[0] eq 'false' } @arguments;
		}
		elsif ($node->{kind_of_node} eq 'WINDOWFUNC') { $oid = $node->{winfnoid}[0]; }
		elsif ($node->{opno}) { ($kind, $oid) = ('operator', $node->{opno}[0]); }
		elsif ($node->{kind_of_node} eq 'ROWCOMPAREEXPR')
		{
			my ($operators, $left, $right) = map { $node->{$_}[0] } qw(opnos largs rargs);
			my @oids = grep { $_ ne 'o' } @$operators;
			push @calls, map { { kind => 'operator', oid => $oids[$_], types => [ map { type_of($_) } $left->[$_], $right->[$_] ], literals => [], result => 16 } } 0 .. $#oids;
		}
		next if !defined $oid;
		push @calls, { kind => $kind, oid => $oid, types => [ map { type_of($_) } @arguments ], array => $node->{kind_of_node} eq 'SCALARARRAYOPEXPR',
			literals => [ grep { ref $arguments[$_] && $arguments[$_]{node} eq 'CONST' } 0 .. $#arguments ], result => type_of($node) };
	}
	return @calls;
}

# The trees in the log since a position, with what PostgreSQL says of their context.
sub logged_trees ($from)
{
	my @trees;
	my $at;
	foreach my $line (split /\n/, slurp_file($node->logfile, $from))
	{
		if ($line =~ /^\t(.*)/) { $trees[-1]{$at} .= "\n$1" if $at; next; }
		my ($field, $text) = $line =~ /(LOG|DETAIL|CONTEXT|STATEMENT):  (.*)$/ or next;
		$at = undef if $field eq 'LOG';
		if ($field eq 'LOG' && $text =~ /parse tree:/) { push @trees, {}; $at = 'LOG'; next; }
		next if !@trees || !defined $at;
		$trees[-1]{$field} = $text;
		$at = $field;
	}
	return grep { $_->{DETAIL} } @trees;
}

my $stored = <<'SQL';
SELECT t FROM (SELECT ev_action::text FROM pg_rewrite WHERE oid >= 16384
  UNION ALL SELECT ev_qual::text FROM pg_rewrite WHERE oid >= 16384
  UNION ALL SELECT adbin::text FROM pg_attrdef WHERE oid >= 16384
  UNION ALL SELECT conbin::text FROM pg_constraint WHERE oid >= 16384
  UNION ALL SELECT indexprs::text FROM pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT indpred::text FROM pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT tgqual::text FROM pg_trigger WHERE oid >= 16384
  UNION ALL SELECT proargdefaults::text FROM pg_proc WHERE oid >= 16384
  UNION ALL SELECT prosqlbody::text FROM pg_proc WHERE oid >= 16384) s(t) WHERE t ~ '[{]'
SQL

sub unique { my %seen; return grep { !$seen{$_}++ } @_; }

# Calls of functions of the extension that an overload could take: an argument is of another type than the function's, or
# a literal without a type. A literal that stands for a boolean, an integer or a text is what it looks like.
sub inexact ($dbname, $where, @calls)
{
	my %types = map { split / /, $_, 2 } split /\n/,
	  sql("SELECT oid::bigint || ' ' || proargtypes::text FROM pg_proc WHERE oid >= 16384", $dbname);
	my @found;
	foreach my $call (grep { $_->{kind} eq 'function' && defined $types{ $_->{oid} } } @calls)
	{
		my @declared = split / /, $types{ $call->{oid} };
		my %literal = map { $_ => 1 } @{ $call->{literals} };
		my @wrong = grep { $call->{types}[$_] != $declared[$_] || $literal{$_} && !$call->{typed} && $declared[$_] !~ /^(?:16|23|25)$/ } 0 .. $#{ $call->{types} };
		push @found, "$where: $call->{oid} gets " . join(',', @{ $call->{types} }) if @wrong;
	}
	# By names.
	return map { s{: (\d+) gets (\S+)}{': ' . sql("SELECT $1::regprocedure", $dbname) . ' gets ' . sql("SELECT array_agg(format_type(t, NULL)) FROM unnest('{$2}'::oid[]) t", $dbname)}er } unique(@found);
}

# The script, as it is.
sql('CREATE DATABASE plain');
sql('CREATE SCHEMA home', 'plain');
my $start = -s $node->logfile;
sql('CREATE EXTENSION uidgen SCHEMA home', 'plain');
my @run = map { calls_of(parsed($_->{DETAIL})) } logged_trees($start);
my @stored = map { calls_of(parsed($_)) } split /\n/, sql($stored, 'plain');
cmp_ok(scalar(grep { $_->{oid} < 16384 } @run), '>', 50, 'the log has what the script calls');
cmp_ok(scalar(grep { $_->{oid} < 16384 } @stored), '>', 50, 'the catalogs have what views and constraints call');
is(join(' ', map { $_->{oid} } grep { $_->{oid} >= 16384 } @run), '', 'no statement of the script calls a function of the extension');
is(join("\n", inexact('plain', 'stored', @stored)), '', 'what views call of the extension gets arguments of exactly its types');

# The script again, with a function or an operator in its schema for each name and just the types that it is called with.
# A literal without a type may become one of several.
sql('CREATE DATABASE hostile');
sql('CREATE SCHEMA home; CREATE TABLE called (kind text, oid oid, types oid[], literals integer[], is_array boolean, result oid)', 'hostile');
{
	my @rows = unique(map { join "\t", $_->{kind}, $_->{oid}, map({ '{' . join(',', @$_) . '}' } $_->{types}, $_->{literals}), $_->{array} ? 't' : 'f', $_->{result} }
		grep { $_->{oid} < 16384 } @run, @stored);
	append_to_file("$directory/called", join("\n", @rows) . "\n");
	sql("COPY called FROM '$directory/called'", 'hostile');
}
sql(<<'SQL', 'hostile');
DO $$
DECLARE
  c record;
  arguments text[];
  result text;
BEGIN
  FOR c IN
    SELECT DISTINCT ON (v.types, name) k.kind, v.types, k.result, CASE k.kind WHEN 'function' THEN p.proname ELSE o.oprname END AS name
      FROM called k LEFT JOIN pg_proc p ON p.oid = k.oid LEFT JOIN pg_operator o ON o.oid = k.oid
     CROSS JOIN LATERAL (
             SELECT array_agg(CASE WHEN k.is_array AND i = 2 THEN (SELECT typelem FROM pg_type WHERE oid = t) ELSE t END ORDER BY i) AS types
               FROM unnest(k.types) WITH ORDINALITY u(t, i)) e
     CROSS JOIN LATERAL (
             SELECT e.types UNION
             SELECT array_agg(CASE WHEN i - 1 = ANY (k.literals) THEN 25 ELSE t END ORDER BY i) FROM unnest(e.types) WITH ORDINALITY u(t, i) UNION
             SELECT array_fill(e.types[1], ARRAY[2]) WHERE k.kind = 'operator' AND k.literals = '{1}' UNION
             SELECT array_fill(e.types[2], ARRAY[2]) WHERE k.kind = 'operator' AND k.literals = '{0}') v(types)
  LOOP
    arguments := coalesce((SELECT array_agg(format_type(t, NULL) ORDER BY i) FROM unnest(c.types) WITH ORDINALITY u(t, i)), '{}');
    result := (SELECT CASE WHEN typtype = 'p' THEN 'text' ELSE format_type(oid, NULL) END FROM pg_type WHERE oid = c.result);
    BEGIN
      EXECUTE format('CREATE FUNCTION home.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''',
                     CASE c.kind WHEN 'function' THEN c.name ELSE 'operator ' || c.name END, array_to_string(arguments, ', '), result);
      IF c.kind = 'operator' THEN
        EXECUTE format('CREATE OPERATOR home.%s (%s RIGHTARG = %s, FUNCTION = home.%I)', c.name,
                       CASE WHEN arguments[2] IS NOT NULL THEN format('LEFTARG = %s,', arguments[1]) END,
                       coalesce(arguments[2], arguments[1]), 'operator ' || c.name);
      END IF;
    EXCEPTION WHEN OTHERS THEN -- types that no function in PL/pgSQL can have
      RAISE LOG 'not planted: %(%): %', c.name, arguments, SQLERRM;
    END;
  END LOOP;
END
$$;
CREATE TABLE planted AS SELECT oid FROM pg_proc WHERE pronamespace = 'home'::regnamespace
  UNION ALL SELECT oid FROM pg_operator WHERE oprnamespace = 'home'::regnamespace;
SQL
cmp_ok(sql('SELECT count(*) FROM planted', 'hostile'), '>', 60, 'functions and operators are planted');
{
	$start = -s $node->logfile;
	my (undef, undef, $error) = $node->psql('hostile', 'CREATE EXTENSION uidgen SCHEMA home');
	unlike($error, qr/ERROR/, 'the extension is created beside them');
	my %planted = map { $_ => 1 } split /\n/, sql('SELECT oid FROM planted', 'hostile');
	my @chosen = unique(map { $_->{oid} } grep { $planted{ $_->{oid} } } map { calls_of(parsed($_->{DETAIL})) } logged_trees($start));
	is(join(' ', map { sql("SELECT coalesce((SELECT oid::regprocedure::text FROM pg_proc WHERE oid = $_), (SELECT oid::regoperator::text FROM pg_operator WHERE oid = $_))", 'hostile') } @chosen),
		'', 'no statement of the script calls one of them');
	is(sql('SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, 0) FROM pg_depend WHERE refobjid IN (SELECT oid FROM planted) AND objid NOT IN (SELECT oid FROM planted)', 'hostile'),
		'', 'no object of the extension depends on one');
}

# What functions run when they are called, and background processes. Functions pin their search_path, so names of
# pg_catalog need no care there. Those of the extension have the schema in front.
$start = -s $node->logfile;
create_targets($node, 'swept');
my $catalog = catalog($node, 'swept');
# The first calls of each function and relation, and some of the others.
my @calls = map { my $n = 0; grep { $n++ < 3 || $n % 8 == 0 } one_by_one($_, $catalog) } @{ $catalog->{functions} };
push @calls, map { my $n = 0; grep { $n++ < 40 || $n % 8 < 2 } changes($_, $catalog) } @{ $catalog->{relations} };
my @usual = run_calls($node, \@calls);
my %from;
foreach my $tree (grep { $_->{CONTEXT} } logged_trees($start))
{
	my ($where) = $tree->{CONTEXT} =~ /^(?:PL\/pgSQL|SQL) function (?:.*[.])?(\w+)\(/m;
	my ($statement) = $tree->{CONTEXT} =~ /^SQL (?:statement|expression) "(.*?)"$/ms;
	my $untyped = ($statement // "''") =~ s/"(?:[^"]|"")*"|(?:'(?:[^']|'')*'|\bNULL)::\w+//gr;
	push @{ $from{ $where // 'C' } }, map { { %$_, typed => $untyped !~ /'|\bNULL\b/ } } calls_of(parsed($tree->{DETAIL}));
}
cmp_ok(scalar keys %from, '>', 10, 'the log has statements of many functions');
is(join("\n", map { inexact('swept', $_, @{ $from{$_} }) } sort keys %from), '', 'what they call of the extension gets arguments of exactly its types');

# The same calls once more, where all names of pg_catalog and of the extension mean something else along the search_path.
{
	my $in_front = "SET debug_print_parse = off;\n" . plant($node, 'swept');
	$start = -s $node->logfile;
	run_calls($node, [ 'SELECT now()', 'SELECT 1::regclass = 1::oid', 'SELECT max(i) FROM things.plain', q{SELECT 'x'::text || 'y'::text}, 'SELECT * FROM worker_node',
		'DELETE FROM worker_node', 'SELECT 1::oid::pg_catalog.oid' ], setup => $in_front);
	is(planted_calls($node, $start), 'a change, max, now, oid, operator, regclass, text, worker_node', 'what is planted works');
	$start = -s $node->logfile;
	sweep_as_before($node, 'with planted objects', \@calls, \@usual, setup => $in_front);
	is(planted_calls($node, $start), '', 'nothing planted has run');
	is(sql('SELECT is_called FROM planted.worker_node_id_seq', 'swept'), 'f', '... and no sequence has moved');
}

$node->stop;
done_testing();
