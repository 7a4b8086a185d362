# What README.md and docs/operations.md say to put into postgresql.conf, and to run afterwards, works as written. So does every statement of
# README.md, docs/*.md and docs/originals/*.md, in blocks or in the text, but for docs/moving.md. What needs more than one
# server, or a shell, is run by another test, which reads it from the page. Chinese pages have the same statements, says
# test/documents.

use UidgenTest 'preloaded';
use Clock;
use Fleet;
use Pages;

my $library = UidgenNode->new('documents');
use_fake_clock($library);    # for its last start

# Snippets as [language, text]: of one section, or of the whole file.
sub snippets ($file, $section = undef)
{
	my $text = slurp_file($file);
	if (defined $section)
	{
		($text) = $text =~ /^## \Q$section\E\n(.*?)(?=^## |\z)/ms or die "$file has no section $section";
	}
	my @found;
	while ($text =~ /^( *)```(\w*)\n(.*?)^\1```$/msg)
	{
		my ($indent, $language, $block) = ($1, $2, $3);
		push @found, [ $language, $block =~ s/^$indent//mgr ];
	}
	return @found;
}

sub of_language ($language, @snippets)
{
	return map { $_->[1] } grep { $_->[0] eq $language } @snippets;
}

# Those of the clients are compared with programs by test/documents. '' is output, or a file that is not ours.
my %is_language = map { $_ => 1 } ('', qw(sql sh ini cfg yaml python ruby js java prisma xml php go rust perl elixir csharp));

my @documents = ('README.md', grep { !/zh-CN/ } glob 'docs/*.md docs/originals/*.md');
for my $file (@documents)
{
	my @unknown = grep { !$is_language{$_} } slurp_file($file) =~ /^ *```(\N*)\n.*?^ *```$/msg;
	is("@unknown", '', "$file: the language of each block");
	unlike(join('', of_language('', snippets($file))),
		qr/^\s*[\w.]+ = |^(?:sudo|make|psql|pg_\w+) /m, "$file: a setting stands in a snippet that says ini, a command in one that says sh");
}

my $node = UidgenNode->new('readme');
$node->init;
my @lines = map { of_language('ini', snippets($_)) } @documents;
@lines = grep { !/^extension_control_path/ } @lines if `pg_config --version` =~ /(\d+)/ && $1 < 18;    # 055_install.t has them
$node->append_conf('postgresql.conf', "$_\n") for @lines;
is($node->start(fail_ok => 1), 1, 'a server starts with the lines for postgresql.conf')
  or BAIL_OUT('the server says why in its log');
is($node->safe_psql('postgres', 'SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL'),
	'', 'and has taken every one of them');

# As README.md names the database, and another one.
my @install = of_language('sql', snippets('README.md', 'Install'));
for my $database ('shop', 'shop2')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	for my $sql (map { s/\bshop\b/$database/gr } @install)
	{
		is(($node->psql($database, $sql, on_error_stop => 1))[0], 0, "in $database: $sql");
	}
	$node->safe_psql('postgres', "ALTER DATABASE $database SET search_path = public, uidgen");    # the examples omit the schema
}
is(slurp_file('docs/Dockerfile') =~ s/.*?^RUN printf '%s\\n'((?: '[^']*;')+) .*/$1/msr =~ s/ '([^']*)'/$1\n/gr,
	join('', @install), 'the image runs the same statements');

my $elsewhere = 'More than one database';
my @numbers = grep { /datacenter_id = / } of_language('sql', snippets('docs/operations.md', $elsewhere));
is(scalar @numbers, 1, 'another database has a snippet');
for my $sql (@numbers)
{
	is(($node->psql('shop', $sql, on_error_stop => 1))[0], 0, $sql);
}

# The registry of the line is a database of this server; 050_commands.t runs its commands.
my ($registry) = grep { /^uidgen\.registry = / } map { split /\n/ } of_language('ini', snippets('docs/fleet.md'));
make_registry($node);
$registry =~ s/=.*/= '@{[ registry_line($node) ]}'/ or die "no line in $registry";
set_conf($node, $registry);
for my $database ('shop', 'shop2')
{
	ok($node->poll_query_until($database, 'SELECT uid_next() > 0'), "in $database the registry grants a node");
	is( $node->safe_psql($database, q{SELECT protection FROM uid_generator_status WHERE node IS NOT NULL}),
		'registry', '... and the status shows it');
}
is($node->safe_psql('shop2', 'SELECT (uid_decode(uid_next())).datacenter_id'), '2', 'ids of the other database have its own number');

$node->stop;

# Every statement of the documents, in their order: a block is run by one session of the database shop. A comment before
# it, which a reader of the page does not see, says what it needs:
#
#   <!-- test: in a new database -->        with the extension, as README.md installs it; each file begins with one
#   <!-- test: in an empty database -->     without
#   <!-- test: after STATEMENTS -->         which are run first
#   <!-- test: run by FILE -->              by that test of test/tap, which reads the block from the page
#   <!-- test: not run, because ... -->     commands for a shell only; counts as skipped, as do statements with extensions
#                                           that the server does not have
#
# Commands for a shell are not run here.
$library->init;
$library->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\nwal_level = logical\n");
$library->start;

# With the extension it is a copy of one that has been made so. That has a registry, too.
sub new_database ($with_extension = 0)
{
	$library->safe_psql('postgres', 'DROP DATABASE IF EXISTS shop WITH (FORCE)');
	$library->safe_psql('postgres', 'DROP DATABASE IF EXISTS shop2 WITH (FORCE)');
	my $roles = $library->safe_psql('postgres', q{SELECT string_agg(quote_ident(rolname), ', ') FROM pg_roles WHERE oid >= 16384 AND rolname <> 'uid_member'});
	$library->safe_psql('postgres', "DROP ROLE $roles") if $roles ne '';
	$library->safe_psql('postgres', 'CREATE DATABASE shop' . ($with_extension ? ' TEMPLATE installed' : ''));
	return unless $with_extension;
	$library->safe_psql('postgres', 'ALTER DATABASE shop SET search_path = public, uidgen');
}

$library->safe_psql('postgres', 'CREATE DATABASE installed');
$library->safe_psql('installed', $_) for @install;
make_registry($library, dbname => 'installed');

# A table that an application made needs nothing of the extension in its search_path, or in the schema public.
new_database(1);
is( $library->safe_psql('shop', <<'SQL'), "t\n0", 'with a schema of its own, public stays empty, and any role draws');
CREATE ROLE app;
CREATE SCHEMA app AUTHORIZATION app;
SET ROLE app;
SET search_path = app;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);
INSERT INTO orders VALUES (DEFAULT, 'a') RETURNING id > 0;
SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace;
SQL

# The first example shows what it prints: all but the numbers.
sub shape ($table)
{
	return join "\n", map { s/\.\d+\+/+/r =~ s/\d+/N/gr =~ s/-+/-/gr =~ s/ +/ /gr =~ s/ $//r } split /\n/, $table;
}
new_database(1);
my ($example, $shown) = slurp_file('README.md') =~ /^```sql\n(.*?)^```\n\n```\n(.*?)^```$/ms;
my @psql = ($library->installed_command('psql'), qw(-Xq -P footer=off -v ON_ERROR_STOP=1), '-d', $library->connstr('shop'));
IPC::Run::run([ @psql, '-c', "SET timezone = 'UTC'", map { ('-c', $_) } split /(?<=;)\n/, $example ], '>', \my $printed, '2>&1');
is(shape($printed), shape($shown), 'the first example prints what README.md shows');

# The errors that users meet first; 055_install.t meets the one without the preload.
my @errors = map { /`([^`]+)`/g } slurp_file('docs/install.md') =~ /^\| (`[^|]+) \| [^|]+ \| [^|]+ \|$/mg;
for my $case ([ shop => 'SELECT uid_next()' ], [ shop => 'SELECT uidgen.uid_next()::integer' ], [ template1 => 'SELECT uidgen.uid_next()' ])
{
	my ($database, $sql) = @$case;
	my $message = ($library->psql($database, "SET search_path = public; $sql"))[2];
	ok((grep { $message =~ /ERROR:  \Q$_\E$/m } @errors), "docs/install.md explains the error of $sql in $database") or diag $message;
}

# Statements of the text that need more than the blocks of the page leave behind: what to run before them, or the test
# that runs them.
my %needs = (
	'CREATE EXTENSION uidgen' => 'DROP EXTENSION uidgen CASCADE',
	"INSERT INTO t_sequence VALUES ('new', 0, 1000)" => 'SELECT uid_t_sequence_create()',
	'ALTER TABLE t_sequence ENABLE ALWAYS TRIGGER uid_reserve_block' => 'SELECT uid_t_sequence_create()',
	'GRANT SET ON PARAMETER uidgen.datacenter_id TO owner' => 'CREATE ROLE owner',
	"ALTER ROLE leaf SET uidgen.max_wait = '100ms'" => 'CREATE ROLE leaf',
	"SELECT segment_attach('orders')" => '039_fleet_answers.t',
	"INSERT INTO uid_registry.segment (name, next_value, increment) VALUES ('orders', 1000000000, 1)" => 'DELETE FROM uid_registry.segment',
	'REVOKE uid_member FROM fleet_app1' => 'CREATE ROLE fleet_app1 IN ROLE uid_member',
	'DROP SUBSCRIPTION from_blue' => '034_multi_master.t',
	'ALTER SUBSCRIPTION move REFRESH SEQUENCES' => '027_publication.t',
	'CREATE EXTENSION citus' => '036_citus.t',
	"SELECT citus_update_node(nodeid, 'coordinator2', 5432) FROM pg_dist_node WHERE groupid = 0" => '036_citus.t',
	'ALTER TABLE lines ALTER order_id TYPE bigint' => 'CREATE TABLE lines (order_id integer)',
	"SELECT uidgen.uid_adopt('invoices', 'id', dry_run => false)" => 'CREATE TABLE invoices (id bigserial)',
	'ALTER TABLE orders ALTER id DROP DEFAULT' => '010_migration.t',
	'SELECT pk_seq_name FROM t_sequence JOIN uid_segment ON name = pk_seq_name' => '010_migration.t',
	'ALTER TABLE t ALTER id DROP IDENTITY' => 'CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY)',
	"SELECT setval(pg_get_serial_sequence('t', 'id'), max(id)) FROM t" => 'CREATE TABLE t (id bigserial)',
);

my %is_needed;

# Whether that test asks for the text, by a pattern.
my %get = (block_of => \&block_of, statement_of => \&statement_of);
sub reads ($test, $function, $file, $text)
{
	my @patterns = slurp_file("test/tap/$test") =~ m{\b$function\('\Q$file\E', qr/(.*?)/\)}g;
	return ok((grep { $get{$function}->($file, qr/$_/) eq $text } @patterns), "$file: $test runs " . ($text =~ /^(\N*)/)[0]);
}

# 010_migration.t runs docs/moving.md, on the tables of the services that people come from.
for my $file (grep { $_ ne 'docs/moving.md' } @documents)
{
	my $text = slurp_file($file);
	new_database(1);
	my $blocks = 0;
	while ($text =~ /((?:^ *<!-- test: \N* -->\n)*)^( *)```(sql|sh)\n(.*?)^\2```$/msg)
	{
		my ($marks, $indent, $language, $sql) = ($1, $2, $3, $4);
		$sql =~ s/^$indent//mg;
		$blocks++;
		my ($before, $other_test, $why) = ('', undef, undef);
		for my $mark ($marks =~ /^ *<!-- test: (.*) -->$/mg)
		{
			if ($mark eq 'in a new database') { new_database(1) }
			elsif ($mark eq 'in an empty database') { new_database() }
			elsif ($mark =~ /^after (.*)$/) { $before .= "$1;\n" }
			elsif ($mark =~ /^run by (\w+\.t)$/) { $other_test = $1 }
			elsif ($mark =~ /^not run, (because .+)$/ && $language eq 'sh') { $why = $1 }
			else { fail("$file: a mark that the test understands: $mark") }
		}
		if (defined $other_test)
		{
			reads($other_test, 'block_of', $file, $sql);
			next;
		}
		for my $extension ($sql =~ /^CREATE EXTENSION (?:IF NOT EXISTS )?(\w+)/mg)
		{
			my $available = "SELECT count(*) FROM pg_available_extensions WHERE name = '$extension'";
			$why //= "because $extension is not installed" if $library->safe_psql('shop', $available) eq '0';
		}
		my ($first) = $sql =~ /^(.*)$/m;
	  SKIP:
		{
			skip "$file: $first: $why", 1 if defined $why;
			if ($language eq 'sh')
			{
				fail("$file: a test runs $first");
				next;
			}
			my ($status, $output, $error) = $library->psql('shop', "$before$sql", on_error_stop => 1);
			is($status, 0, "$file: $first") or diag $error;
		}
	}
	for my $sql (statements_of($file))
	{
		my $before = $needs{$sql} // '';
		$is_needed{$sql} = 1;
		if ($before =~ /\.t$/)
		{
			reads($before, 'statement_of', $file, $sql);
			next;
		}
		my $script = "BEGIN;\n$before;\n$sql;\nROLLBACK";
		my ($status, $output, $error) = $library->psql('shop', "SET search_path = public, uidgen;\n$script", on_error_stop => 1);
		is($status, 0, "$file: in its text: $sql") or diag $error;
	}
	# A mark that stands before something else would be without effect.
	my $marks = () = $text =~ /^ *<!-- test:/mg;
	my $used = 0;
	$used += () = $1 =~ /^ *<!-- test:/mg while $text =~ /((?:^ *<!-- test: \N* -->\n)+)^ *```(?:sql|sh)$/mg;
	is($used, $marks, "$file: every mark stands before statements or commands");
	is($blocks, scalar(() = $text =~ /^ *```(?:sql|sh)\b/mg), "$file: no block was passed over");
}
is(join('; ', grep { !$is_needed{$_} } sort keys %needs), '', 'each of them is in a page');

# docs/ids-for-people.md, "Numbers that begin again": the period is that of the transaction's start. Sessions that find no
# segment create one together.
{
	$library->stop;
	freeze_clock($library, 12 * 3600 - 10);    # 23:59:50 UTC
	start_node($library);
	new_database(1);
	my $page = 'docs/ids-for-people.md';
	my $ask = sub ($sql) { return $library->safe_psql('shop', $sql) };
	$ask->(block_of($page, qr/CREATE TABLE number_series/));
	my ($today, $tomorrow) = ('T-20261121', 'T-20261122');
	is($ask->(q{SELECT next_number('T'), next_number('T', digits => 1), next_number('INV'), next_number('C', 2)}),
		"$today-000001|$today-2|INV-2026-11-000001|C-2026-01", 'the first numbers of a day, a month and a year');
	is($ask->(q{SELECT number_period('INV', '2026-11-30 23:30+00')}), 'INV-2026-12', 'each series has a time zone');
	my ($late, $first, $second) = map { hold_open($library, dbname => 'shop') } 1 .. 3;
	is($late->query_safe(q{BEGIN; SELECT next_number('T')}), "$today-000003", 'a transaction begins before midnight');
	freeze_clock($library, 12 * 3600 + 10);
	is($late->query_safe(q{SELECT next_number('T')}), "$today-000004", '... and continues yesterday after it');
	is($first->query_safe(q{BEGIN; SELECT next_number('T')}), "$tomorrow-000001", 'the first transaction of a day creates the segment');
	send_query($second, q{SELECT next_number('T')});
	$library->poll_query_until('shop', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) or die 'no wait';
	$first->query_safe('COMMIT');
	is((finish_query($second))[0], "$tomorrow-000002", '... and one that came at the same time gets the next number');
	my $ahead = block_of($page, qr/run this each hour/);
	$ask->($ahead);
	is($ask->($ahead), qq{INV-2026-11-000003|$tomorrow-0004\nuid_segments."INV-2026-11"\nuid_segments."T-20261123"\nuid_segments."C-2026"},
		'segments are created ahead, once');
	is($ask->(q{CREATE ROLE clerk; SET ROLE clerk; SELECT next_number('T')}), "$tomorrow-000005", 'a role without privileges on segments draws');
	is(sqlstate($library, q{SELECT next_number('X')}, 'shop'), 'P0002', 'there is no such series');
	$_->quit foreach $late, $first, $second;
}
$library->stop;
done_testing();
