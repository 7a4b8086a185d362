# Calls of a registry's functions at one time: newcomers wait for nobody, and of two first callers, two copies or a call and a
# statement the second one sees what the first one has done.
use UidgenTest;
use Fleet;
use Trouble;

my $node = new_node('registry', conf => "shared_preload_libraries = ''\n");
start_node($node);
make_registry($node);
$node->safe_psql('postgres', <<'END');
CREATE FUNCTION request(new_token bigint, prefer bigint, highest bigint DEFAULT 63) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('layout', 'L' || highest, 'widths', highest, 'own_pool', false, 'lowest', 0, 'highest', highest, 'new_token', new_token,
                            'prefer', prefer, 'earliest', uid_registry.clock(), 'length', 600000000, 'holder', 'h') $$;
-- The holder of that token renews its grant, or one that is not here if that is the token of nobody.
CREATE FUNCTION renewal(token bigint, new_token bigint, node bigint DEFAULT NULL) RETURNS jsonb LANGUAGE sql AS $$
  SELECT request(new_token, NULL) || jsonb_build_object('node', coalesce(renewal.node, n.node), 'since', 0, 'until', coalesce(n.until, uid_registry.clock() + 300000000),
                                                        'token', renewal.token)
    FROM (SELECT) AS one LEFT JOIN uid_registry.node AS n ON n.token = renewal.token $$;
CREATE FUNCTION granted(VARIADIC requests jsonb[]) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(coalesce(nullif(why, ''), 'granted'), ' ' ORDER BY request) FROM uid_registry.grant(0, 0, array_to_json(requests)::jsonb) $$;
-- As if another server had granted last.
CREATE FUNCTION elsewhere() RETURNS void LANGUAGE sql AS $$
  SELECT set_config('uid_registry.by_function', 'yes', true); UPDATE uid_registry.registry SET timeline = '0000000F' $$;
CREATE FUNCTION fence_is_over() RETURNS void LANGUAGE sql AS $$
  SELECT set_config('uid_registry.by_function', 'yes', true); UPDATE uid_registry.registry SET lost_from = 0 $$;
ALTER FUNCTION uid_registry.hold() SET lock_timeout = '10ms';
END

sub row { return $node->safe_psql('postgres', 'SELECT fence, reason FROM uid_registry.registry') }

# The second session's call waits for what the first one's has done, which then commits.
sub after_waiting ($first, $call, $second, $waits)
{
	$first->query_safe("BEGIN; $call");
	send_query($second, $waits);
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") or die 'nobody waits';
	$first->query_safe('COMMIT');
	my ($answer, $messages) = finish_query($second);
	return $answer . ($messages =~ /ERROR:  (.*)/ ? $1 : '');
}

# Of 1,000 that come at once none is refused, in a pool that is a quarter full then, and in one that is full.
foreach my $highest (4095, 1023)
{
	my @said = psql_at_once($node, map {
		my $from = $_ * 100;
		"SELECT count(*) FROM uid_registry.grant(0, 0, (SELECT jsonb_agg(request($highest * 10000 + n, NULL, $highest)) FROM generate_series($from, $from + 99) AS n)) WHERE why = ''"
	} 1 .. 10);
	is(join(' ', map { @$_ } @said), join(' ', ("100\n", '') x 10), "1,000 newcomers at once, $highest + 1 nodes");
}
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT (layout, node)), count(DISTINCT token) FROM uid_registry.node'), '2000|2000|2000', '... have a node each');

my ($one, $two) = map { hold_open($node) } 1, 2;

# A transaction that stays open has given node 0, renewed that of token 2, and names the nodes of others.
is($node->safe_psql('postgres', "SELECT granted(request(1, 1), request(2, 2), request(3, 3))"), 'granted granted granted', 'members have nodes');
is($one->query_safe("BEGIN; SELECT granted(request(10, 0), renewal(2, 11), renewal(99, 12, 1), renewal(98, 13, 3))"), 'granted granted taken taken', 'a call that does not commit');
is($node->safe_psql('postgres', "SET lock_timeout = '1ms'; SELECT granted(renewal(1, 20), renewal(3, 21))"), 'granted granted', '... holds up no renewal of another node');
is($node->safe_psql('postgres', 'SELECT granted(request(22, 0))'), 'granted', '... and no newcomer');
$one->query_safe('ROLLBACK');

# Two copies of a member.
is(after_waiting($one, 'SELECT granted(renewal(2, 30))', $two, 'SELECT granted(renewal(2, 31))'), 'another call has changed node 2', 'of two that show one token the second does not renew');

# Two first callers after a takeover raise one fence.
$node->safe_psql('postgres', 'SELECT elsewhere()');
is(after_waiting($one, 'SELECT granted(request(40, NULL))', $two, 'SELECT granted(request(41, NULL))'), 'fenced', 'two first callers');
is(row(), '1|takeover', '... raise one fence');
my $free = $node->safe_psql('postgres', q{SELECT min(n) FROM generate_series(0, 63) AS n WHERE NOT EXISTS (SELECT FROM uid_registry.node WHERE layout = 'L63' AND node = n)});
$node->safe_psql('postgres', 'SELECT fence_is_over(); SELECT elsewhere()');
is(after_waiting($one, 'SELECT granted(request(42, NULL))', $two, "SELECT granted(renewal(97, 43, $free))"), 'granted', 'the second one shows a grant that is not here');
is(row(), '2|proof', '... which says what the fence is for');

# A statement while a call waits for a row.
$node->safe_psql('postgres', 'SELECT fence_is_over()');
$one->query_safe('BEGIN; SELECT granted(request(50, 51))');
my $new_layout = q{|| '{"layout": "new", "widths": "new"}'};
$one->query_safe("SELECT granted(request(52, NULL) $new_layout)");
send_query($two, "SELECT granted(request(53, NULL) $new_layout)");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") or die 'nobody waits';
$node->safe_psql('postgres', 'SELECT uid_registry.fence()');
$one->query_safe('ROLLBACK');
like(join('', finish_query($two)), qr/ERROR:  a fence was raised meanwhile/, 'a call that has waited while a fence was raised gets nothing');

# The row of the registry is held by a first caller that does not commit.
$node->safe_psql('postgres', 'SELECT elsewhere()');
my $pid = $one->query_safe('SELECT pg_backend_pid()');
$one->query_safe('BEGIN; SELECT granted(request(60, NULL))');
like(failure($node, "SELECT uid_registry.$_"), qr/ERROR:  55P03: other sessions hold the row of the registry: pid $pid \(\w+\)$/m, "$_ does not wait without end, and says for whom")
  foreach 'fence()', 'nothing_was_lost()', "promise('restarts')";
$one->query_safe('ROLLBACK');
done_testing();
