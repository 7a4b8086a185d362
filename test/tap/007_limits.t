# Sessions that are ended in the middle, who may have the server's login look for a segment at the registry, and a server
# that has not loaded the library.
use UidgenTest 'preloaded';
use Clients;

my $node = new_server('limits');

# Only a role that may create segments has the server's login look for one at the registry.
{
	my $set_registry = sub {
		set_conf($node, "uidgen.registry = '$_[0]'");
		$node->poll_query_until('postgres', 'SHOW uidgen.registry', $_[0]) or die 'no reload';
	};
	my $look_up = sub { (sqlstate($node, "SET uidgen.max_wait = '100ms'; SELECT uid_internal.uid_look_up_segment('$_[0]', 'a', 'b')"))[1] };
	$set_registry->('host=/nowhere');
	$node->safe_psql('postgres', 'CREATE SEQUENCE uid_segments.sought; CREATE SEQUENCE elsewhere');
	like($look_up->('uid_segments.sought'), qr/segment "a" has no values from the registry/, 'a look-up without an answer is an error');
	like($look_up->('elsewhere'), qr/sequence "elsewhere" is not in schema "uid_segments"/, '... and only for who may create segments');
	$node->safe_psql('postgres', 'DROP SEQUENCE uid_segments.sought, elsewhere');
	$set_registry->('');
}

# A session that is ended in mid-batch takes nothing along.
{
	my $before = $node->safe_psql('postgres', 'SELECT uid_next()');
	foreach my $how ('cancel', 'terminate')
	{
		my $run = background_loop($node,
			sql => "SET application_name = 'batch'; SELECT count(*) FROM unnest(uid_next_array(130000000))");
		$node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'batch' AND state = 'active' AND query LIKE '%uid_next_array%'")
		  or die 'the batch did not begin';
		my $others = $node->safe_psql('postgres', 'SELECT uid_next()');
		cmp_ok($others, '>', $before, "others draw while a batch of 130,000,000 is under way");
		is( $node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE application_name = 'batch'"),
			't', "pg_${how}_backend");
		ok( $node->poll_query_until('postgres',
				"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'batch'"),
			'ends it');
		my ($log) = stop_loop($run);
		is(slurp_file($log), '', 'no id of it was handed out');
		like(slurp_file("$log.err"), $how eq 'cancel' ? qr/canceling statement/ : qr/terminating connection/, 'it says why');
		my $after = $node->safe_psql('postgres', 'SELECT uid_next()');
		cmp_ok($after, '>', $others, 'ids go on above');
		$before = $after;
	}
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), min(id) > ' . $before . ' FROM unnest(uid_next_array(50000)) AS id'),
		'50000|50000|t', 'and a batch works');
}

$node->stop;

# A server that has not loaded the library.
my $bare = UidgenNode->new('without');
$bare->init;
$bare->start;
my $warning;
is(scalar($bare->psql('postgres', 'CREATE EXTENSION uidgen', stderr => \$warning)), 0, 'the extension can be created where the library is not preloaded');
like($warning, qr/WARNING:  no id can be drawn until the server has loaded uidgen\nHINT:  Set shared_preload_libraries = 'uidgen' in postgresql.conf and restart/,
	'... with a warning that says what is missing');
sql($bare, "CREATE SEQUENCE s; SELECT uid_generator_create('ring', 'baidu_cached')");
foreach my $loaded ('', 'auto_explain, pg_prewarm', 'auto_explain')
{
	$bare->append_conf('postgresql.conf', "shared_preload_libraries = '$loaded'\n");
	$bare->restart;
	my $line = quotemeta("shared_preload_libraries = '" . ($loaded eq '' ? '' : "$loaded, ") . "uidgen'");
	like(failure($bare, "SELECT $_"), qr/ERROR:  55000.*HINT:.*$line/s, "not preloaded: $_ is an error with the line to set, beside '$loaded'")
	  foreach 'uid_next()', "uid_next('uid_generators.ring')", "segment_next('s')", "segment_next('s'::regclass)", 'uid_next_array(3)';
}
like(failure($bare, "LOAD 'uidgen'; SELECT uid_next()"), qr/ERROR:  55000/, 'loading it into the session does not help');
like(failure($bare, "SELECT uid_last()"), qr/ERROR:  55000/, 'nothing was drawn');
is(sql($bare, "CREATE SEQUENCE plain; CREATE TABLE serials (n serial); DROP SEQUENCE plain; DROP TABLE serials; SELECT to_regclass('plain') IS NULL"),
	't', 'a DROP, which loads the library, needs no preload');
is( sql($bare, "SELECT uid_encode('2026-01-01 00:00:00.002+00', 1, 2, 3), datacenter_id, worker_id, sequence, generated_at = uid_timestamp(8527875) "
		  . "FROM uid_decode(8527875)"),
	((2 << 22) + (1 << 17) + (2 << 12) + 3) . '|1|2|3|t', 'arithmetic on ids works');
is(sql($bare, "SELECT segment_create('tickets', 10, 7), uid_generator_create('g')"),
	'uid_segments.tickets|uid_generators.g', 'generators and segments can be made');
is(sqlstate($bare, "SELECT uid_t_sequence_create(); INSERT INTO t_sequence VALUES ('tickets', 10, 5)"), '55000', 'but no blocks be taken');
is(sql($bare, "SELECT count(*) FROM $_"), 0, "$_ is empty") foreach 'segment_status', 'uid_stat', 'uid_stat_server', 'uid_internal.uid_live_generators()', 'uid_internal.uid_live_segments()';
is(sql($bare, 'SELECT DISTINCT worker_id, last_time, leased_until, ring_size FROM uid_generator_status'), '|||', 'uid_generator_status has NULLs');
sql($bare, "SELECT segment_drop('tickets'); DROP SEQUENCE uid_generators.g, uid_generators.ring");
is(sql($bare, 'SELECT (SELECT count(*) FROM uid_segment), (SELECT count(*) FROM uid_generator WHERE NOT builtin)'), '0|0', 'DROP takes rows along');
# The hint is good.
$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'auto_explain, uidgen'\n");
$bare->restart;
is(sql($bare, "SELECT uid_next() > 0, segment_next('s')"), 't|1', 'after the hint was followed it works');
unlike(($bare->psql('postgres', 'DROP EXTENSION uidgen; CREATE EXTENSION uidgen'))[2], qr/WARNING/, '... without a warning');
$bare->stop;

done_testing();
