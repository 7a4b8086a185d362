# docs/install.md: uidgen is uninstalled, in the right order and in the wrong one, each to its end. "The end" is a server that
# starts without uidgen's files, and rows that have kept their ids. (The page's other statements run in 018_readme.t.)
use UidgenTest;
use Installation;
use Pages;

my $release_and_drop = block_of('docs/install.md', qr/DROP EXTENSION/);
my $list_settings = block_of('docs/install.md', qr/pg_db_role_setting/);
my $list_databases = block_of('docs/install.md', qr/datallowconn/);
my $needs_preload = `pg_config --version` =~ /\b1[56]\./;

my ($version) = slurp_file('uidgen.control') =~ /default_version = '(.*)'/;

my $copy = copy_installation();
my $library = "$copy->{PKGLIBDIR}/uidgen.so";
my $kept = PostgreSQL::Test::Utils::tempdir() . '/kept';
system_or_bail('mkdir', $kept);

sub remove_package
{
	system_or_bail('mv', $library, glob("$copy->{SHAREDIR}/extension/uidgen*"), $kept);
}

sub install_package
{
	system_or_bail('mv', "$kept/uidgen.so", $library);
	system_or_bail('mv', glob("$kept/uidgen*"), "$copy->{SHAREDIR}/extension");
}

# A server with the extension in two databases, tables with ids of its own and one that was moved in. $how: 'preloaded' by
# postgresql.conf or 'altered system', or 'not preloaded'.
sub installed ($name, $how)
{
	my $node = UidgenNode->new($name, install_path => $copy->{install_path});
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\n") if $how eq 'preloaded';
	$node->start;
	if ($how eq 'altered system')
	{
		$node->safe_psql('postgres', q{ALTER SYSTEM SET shared_preload_libraries = 'uidgen'});
		$node->restart;
	}
	foreach my $database ('shop', 'ids')
	{
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql($database, $_) foreach 'CREATE EXTENSION uidgen', <<'END';
CREATE TABLE orders (id bigserial PRIMARY KEY, item text);
INSERT INTO orders (item) VALUES ('before');
SELECT uid_adopt('orders', 'id', dry_run => false);
INSERT INTO orders (item) VALUES ('with uidgen');
SELECT segment_create('s'), uid_generator_create('g');
SELECT uid_next('uid_generators.g'), segment_next('s');
CREATE TABLE items (id bigint DEFAULT uid_next());
INSERT INTO items DEFAULT VALUES;
SELECT segment_create('lines');
CREATE TABLE lines (id bigint DEFAULT segment_next('lines'));
INSERT INTO lines DEFAULT VALUES;
END
	}
	return $node;
}

sub ids ($node)
{
	return join ' ', map { $node->safe_psql($_, q{SELECT string_agg(id::text, ' ') FROM (TABLE items UNION ALL TABLE lines UNION ALL SELECT id FROM orders) ids}) } 'shop', 'ids';
}

my ($cannot_start) = map { qr/\Q$_\E/ } slurp_file('docs/install.md') =~ /`(FATAL:  could not access file [^`]+)`/ or die 'the page has no error';
my $cannot_call = qr/could not access file "(?:\$libdir\/)?uidgen"/; # PostgreSQL 18 leaves the directory out

sub take_out_line ($node, $file)
{
	my $path = $node->data_dir . "/$file";
	my $rest = join '', grep { !/shared_preload_libraries/ } map { "$_\n" } split /\n/, slurp_file($path);
	unlink $path;
	append_to_file($path, $rest);
}

sub drop_extension ($node)
{
	foreach my $database ('shop', 'ids')
	{
		is(($node->psql($database, $release_and_drop))[0], 0, "$database: the columns and the extension, as the page says");
	}
}

# Without files: a start, all ids, and inserts by the sequence that the column had.
sub ends_without ($node, $ids)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->start(fail_ok => 1), 1, 'the server starts without the files');
	is(ids($node), $ids, '... the rows have their ids');
	is($node->safe_psql('shop', 'SELECT count(*) FROM pg_extension WHERE extname = $$uidgen$$'), 0, '... and the extension is gone');
	unlike($node->safe_psql('shop', '\dn'), qr/uid/, '... with its schemas');
}

# Statements of others need nothing of uidgen, but for the two before which an event trigger loads the library.
sub ddl_without ($node)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @statements = (
		'CREATE TEMPORARY TABLE passing (id serial); DROP TABLE passing',
		'CREATE TABLE numbered (id serial, n int GENERATED ALWAYS AS IDENTITY); ALTER TABLE numbered DROP COLUMN n; TRUNCATE numbered RESTART IDENTITY; DROP TABLE numbered',
		'CREATE SCHEMA passing CREATE SEQUENCE plain CREATE VIEW one AS SELECT 1 AS n; DROP VIEW passing.one; DROP SCHEMA passing CASCADE',
		'CREATE ROLE leaving; GRANT SELECT ON items TO leaving; DROP OWNED BY leaving; DROP ROLE leaving',
		'CREATE FUNCTION one() RETURNS int LANGUAGE sql RETURN 1; DROP FUNCTION one()', 'CREATE INDEX passing ON items (id); DROP INDEX passing',
		'CREATE SEQUENCE plain', 'ALTER SEQUENCE plain RESTART', 'VACUUM items', 'DISCARD ALL');
	is(join('; ', grep { ($node->psql('shop', $_))[0] != 0 } @statements), '', 'all DDL of others works without the files');
	like(($node->psql('shop', $_))[2], $cannot_call, "... but not $_") foreach 'DROP SEQUENCE plain', q{SECURITY LABEL FOR uidgen ON SEQUENCE plain IS 'x'};
}

# In the right order.
foreach my $how ('preloaded', 'altered system', 'not preloaded')
{
	next if $needs_preload && $how eq 'not preloaded';
	my $node = installed("right_$how" =~ tr/ /_/r, $how);
	$node->safe_psql('postgres', 'ALTER DATABASE shop SET uidgen.datacenter_id = 2') if $how ne 'not preloaded';
	my $ids = ids($node);
	my ($status, $output) = run_shell($node, $list_databases);
	is($output, "shop\nids\n", "$how: which databases have it");
	like(($node->psql('shop', 'DROP EXTENSION uidgen'))[2], qr/default value for column id of table items depends on.*segment|sequence uid_segments\.s depends/s,
		'without CASCADE DROP EXTENSION lists what depends on it');
	drop_extension($node);
	is((run_shell($node, $list_databases))[1], '', 'no database has it any more');
	if ($how ne 'not preloaded')
	{
		is($node->safe_psql('postgres', $list_settings), 'shop||{uidgen.datacenter_id=2}', 'a setting of a database');
		$node->safe_psql('postgres', 'ALTER DATABASE shop RESET uidgen.datacenter_id');
		is($node->safe_psql('postgres', $list_settings), '', '... is reset');
	}
	take_out_line($node, 'postgresql.conf') if $how eq 'preloaded';
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET shared_preload_libraries') if $how eq 'altered system';
	$node->restart;
	remove_package();
	$node->stop;
	ends_without($node, $ids);
	is($node->safe_psql('shop', "INSERT INTO $_ DEFAULT VALUES RETURNING id IS NOT NULL"), 't', "... and the column of $_ has a sequence") foreach 'orders', 'items', 'lines';
	install_package();
	$node->stop;
}

# The package first, while the server preloads it.
foreach my $how ('preloaded', 'altered system')
{
	my $node = installed("wrong_$how" =~ tr/ /_/r, $how);
	my $ids = ids($node);
	my $session = hold_open($node, dbname => 'shop');
	$session->query_safe('SELECT uid_next()');
	remove_package();
	like((sqlstate($node, 'SELECT 1'))[0], qr/^00000$/, "$how: the server runs on without the files");
	like(($node->psql('shop', 'SELECT uid_next()'))[2], $cannot_call, '... calls of new sessions fail');
	$session->quit;
	$node->stop;
	is($node->start(fail_ok => 1), 0, '... and it does not start again');
	like(slurp_file($node->logfile), $cannot_start, '... as its log says');
	if ($how eq 'preloaded')
	{
		install_package();
		is($node->start(fail_ok => 1), 1, 'with the package it starts');
		ok($node->safe_psql('shop', 'SELECT uid_next()') > 0, '... and draws');
		$node->stop;
		remove_package();
	}
	take_out_line($node, $how eq 'preloaded' ? 'postgresql.conf' : 'postgresql.auto.conf');
	is($node->start(fail_ok => 1), 1, 'without the line it starts');
	like(($node->psql('shop', 'INSERT INTO items DEFAULT VALUES'))[2], $cannot_call, '... but inserts that draw fail');
	ddl_without($node);
	is(($node->psql($_, 'DROP EXTENSION uidgen CASCADE'))[0], 0, "$_: DROP EXTENSION needs no file") foreach 'shop', 'ids';
	is($node->safe_psql('shop', 'INSERT INTO items DEFAULT VALUES RETURNING id IS NULL'), 't', '... and the default is gone');
	$node->safe_psql('shop', 'DELETE FROM items WHERE id IS NULL');
	$node->stop;
	ends_without($node, $ids);
	install_package();
	$node->stop;
}

# The package first, on a server that does not preload it.
if (!$needs_preload)
{
	my $node = installed('unloaded', 'not preloaded');
	my $ids = ids($node);
	remove_package();
	like(($node->psql('shop', $_))[2], $cannot_call, "not preloaded: $_ fails") foreach 'SELECT uid_next()', 'INSERT INTO items DEFAULT VALUES';
	$node->restart;
	is($node->safe_psql('shop', 'SELECT 1'), 1, '... but the server starts');
	ddl_without($node);
	is(($node->psql($_, 'DROP EXTENSION uidgen CASCADE'))[0], 0, "$_: DROP EXTENSION needs no file") foreach 'shop', 'ids';
	$node->stop;
	ends_without($node, $ids);
	install_package();
	$node->stop;
}

# PostgreSQL 18 and later find the files elsewhere, without and with the preload, in the server and in its workers.
my ($paths) = slurp_file('docs/install.md') =~ /^```ini\n(extension_control_path = .*?)^```$/ms or die 'the page has no paths';
if (`pg_config --version` =~ /(\d+)/ && $1 >= 18)
{
	my $elsewhere = PostgreSQL::Test::Utils::tempdir() . '/extensions';
	my ($share, $lib) = ("$elsewhere/uidgen/share/extension", "$elsewhere/uidgen/lib");
	remove_package();
	system_or_bail('mkdir', '-p', $share, $lib);
	system_or_bail('cp', "$kept/uidgen.so", $lib);
	system_or_bail('cp', grep({ !/\.so$/ } glob "$kept/uidgen*"), $share);
	my $node = UidgenNode->new('elsewhere', install_path => $copy->{install_path});
	$node->init;
	$node->start;
	like(($node->psql('postgres', 'CREATE EXTENSION uidgen'))[2], qr/extension "uidgen" is not available/, 'the files are elsewhere');
	set_conf($node, $paths =~ s{/extensions}{$elsewhere}gr);
	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'uidgen'}),
		'with the paths of docs/install.md a reload is enough');
	$node->safe_psql('postgres', 'CREATE EXTENSION uidgen');
	for my $how ('without the preload', 'with the preload')
	{
		is($node->safe_psql('postgres', "SELECT uid_next() > 0, segment_create('s') IS NOT NULL, segment_next('s'), segment_drop('s')"), 't|t|1|',
			"$how: draws");
		is($node->safe_psql('postgres', q{SELECT uid_next() > 0; SELECT module_name, version FROM pg_get_loaded_modules() WHERE module_name = 'uidgen'}),
			"t\nuidgen|" . $version, '... and PostgreSQL shows the version of the library');
		wait_for_node_rows($node, 'uid_generators.uid_default', $how =~ /without/ ? 1 : 2);
		pass('... and a background worker loads the library');
		is($node->safe_psql('postgres', 'SET ' . parallel_setting() . "; SELECT uid_next() > 0"), 't', '... and a parallel worker');
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\n");
		$node->restart;
	}
	$node->stop;
	install_package();
}

# A load that fails is repeated by the session's next call.
{
	my $node = installed('twice', 'preloaded');
	system_or_bail('cp', $library, "$copy->{PKGLIBDIR}/uidgen_again.so");
	my $session = hold_open($node);
	is(sqlstate($session, q{LOAD 'uidgen_again'}), 'XX000', 'a second copy of the library cannot define its settings') foreach 1, 2, 3;
	is(sqlstate($session, 'CREATE TABLE after_it ()'), '00000', '... and the session goes on');
	$session->quit;
	unlink "$copy->{PKGLIBDIR}/uidgen_again.so";
	$node->stop;
}

# The line first.
{
	my $node = installed('line', 'preloaded');
	my $ids = ids($node);
	take_out_line($node, 'postgresql.conf');
	$node->restart;
	my ($status, undef, $error) = $node->psql('shop', 'SELECT uid_next()');
	if ($needs_preload)
	{
		like($error, qr/HINT:  Set shared_preload_libraries = 'uidgen' in postgresql\.conf and restart the server\./, 'without the line draws fail');
	}
	else { is($status, 0, 'without the line draws go on') }
	if (!$needs_preload) { drop_extension($node) }
	else { $node->safe_psql($_, 'DROP EXTENSION uidgen CASCADE') foreach 'shop', 'ids' }
	$node->stop;
	remove_package();
	ends_without($node, $ids);
	$node->stop;
}
done_testing();
