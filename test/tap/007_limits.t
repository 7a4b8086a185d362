# Sessions that are ended in the middle, and who may have the server's login look for a segment at the registry.
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
done_testing();
