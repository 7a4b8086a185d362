# A member's login calls what it may call on the registry, with extreme values in each argument, one at a time and in
# combinations.
#
# Expected: after each call an honest member keeps its node, a newcomer gets one, and the segment gives a block. There is
# no fence, no call adds more than a row to a table, and none takes more of the segment than the largest blocks.
use UidgenTest 'preloaded';

my $registry = make_registry(new_server('registry', conf => "autovacuum = off\nlog_min_messages = log\n"));

sub sql { return $registry->safe_psql('postgres', $_[0]); }

sql("SELECT segment_create('orders')");
sql('GRANT USAGE ON SEQUENCE uid_segments.orders TO uid_fleet');

# What a call shows.
learn_messages($registry);
my @of_request = split /\n/, sql(q{SELECT attname FROM pg_attribute WHERE attrelid = 'fleet_request'::regclass AND attnum > 0 ORDER BY attnum});
my @of_block = qw(protocol fleet term term_nonce serial seal segment count shown increment host port database version);
my @of_generator = grep { my $name = $_; !grep { $name eq $_ } qw(segment count shown increment) } @of_request;

my $clock_us = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
my $tick = '(extract(epoch FROM clock_timestamp() - timestamptz \'2026-01-01 00:00:00+00\') * 1000)::bigint';
# What calls say, as an object of SQL: a newcomer; one that shows its latest answer, of psql's variables with a prefix; and
# who asks for values of the segment.
my $newcomer = q{of_newcomer() || jsonb_build_object('incarnation', (random() * 9e17)::bigint + 1, 'worker_bits', 22, 'sequence_bits', 0)};
sub answer ($prefix, $column) { return "(:'${prefix}answer'::fleet_answer).$column"; }
sub holder ($prefix) { return "$newcomer || jsonb_build_object('incarnation', :${prefix}incarnation) || of_holder(:'${prefix}answer')"; }
my $block = "of_server() || jsonb_build_object('fleet', " . answer('h_', 'fleet') . q{, 'segment', 'orders', 'count', 1, 'shown', 0, 'increment', 1)};

# With other fields.
sub request ($says, %args)
{
	return "request_of($says || jsonb_build_object(" . join(', ', map { "'$_', $args{$_}" } sort keys %args) . '))';
}
sub call { return 'CALL call_with(' . request(@_) . ')'; }

# The same beside the request of an honest newcomer, after it and before it: that one is answered as ever.
sql(<<'SQL');
CREATE PROCEDURE beside(asked fleet_request, honest fleet_request) LANGUAGE plpgsql AS $$
DECLARE
  message bytea;
  answers fleet_answer[];
BEGIN
  LOOP
    message := message_of(honest, asked, honest);
    CALL uid_internal.uid_fleet_call(message, message);
    answers := ARRAY(SELECT a FROM answers_in(message) a);
    EXIT WHEN cardinality(answers) = 3; -- on a slow machine the lock's time was over before
  END LOOP;
  IF answers[1].refusal = 'claimed' THEN
    RETURN; -- the request invents a later term, which counts for the whole call
  END IF;
  IF answers[1].node IS NULL OR answers[3].node IS DISTINCT FROM answers[1].node THEN
    RAISE 'spoiled: %', answers;
  END IF;
END
$$;
SQL
sub call_beside { return 'CALL beside(' . request(@_) . ', ' . request($newcomer) . ')'; }

# Keeps the answer in a variable.
sub keep ($prefix, @args) { return call(@args) . " \\gset $prefix\n"; }

my @numbers = (
	'NULL', 0, 1, -1, 2, 63, 64, 2147483647, 1099511627776, 9007199254740991, 9007199254740992, '9223372036854775806', '9223372036854775807',
	"'-9223372036854775808'::bigint");
my %values = (
	(map { ($_ => [ 'NULL', "''", "repeat('x', 1024)", "repeat('x', 2000)", q{E'a\nb%s'}, "'baidu'", "'static'", "'sticky'" ]) }
		  qw(preset policy host port database generator version)),
	segment => [ 'NULL', "''", "'nowhere'", "repeat('x', 2000)" ],
	former => [ 'NULL', map { "lives_of($_)" } '1, 2, 3', ':h_incarnation', '-1', join(',', 1 .. 64), join(',', 1 .. 65) ],
	(map { ($_ => [ 'NULL', 'true', 'false' ]) } qw(sequence_first backup_worker)),
	(map { ($_ => [ 'NULL', 0, 1, -1, 10, 22, 31, 40, 62, 2147483647 ]) }
		  qw(protocol time_bits datacenter_bits worker_bits sequence_bits worker_number datacenter_id)),
	clock_us => [ @numbers, "$clock_us + 3600000000", "$clock_us * 2" ],
	lowest => [ @numbers, "$tick + 3600000", "$tick + 86400000000" ],
	former_until => [ @numbers, "$tick + 700000", 2199023255552 ],
	held_until => [ @numbers, answer('l_', 'granted_until + 1'), answer('l_', 'granted_until + 600000') ],
	held_node => [ @numbers, answer('h_', 'node') ],
	held_membership => [ @numbers, answer('l_', 'membership + 1') ],
	(map { ($_ => [ @numbers, answer('l_', 'term + 1'), answer('l_', 'term - 1') ]) } qw(term held_term other_term)),
	(map { ($_ => [ @numbers, answer('l_', 'term_nonce') ]) } qw(term_nonce held_term_nonce other_term_nonce)),
	other_granted_us => [ @numbers, $clock_us ],
	(map { ($_ => [ @numbers, answer('l_', 'serial + 1'), answer('l_', 'serial + 1000000') ]) } qw(serial held_serial)));

sub values_of { return @{ $values{ $_[0] } // \@numbers }; }

# One at a time, from a newcomer's call and from a holder's; then three arguments at once.
srand 20261123;
my @hostile;
my $lies_of = sub ($names, $says, %args) {
	foreach my $name (@$names)
	{
		push @hostile, call_beside($says, %args, $name => $_) foreach values_of($name);
	}
	foreach (1 .. 150)
	{
		my %changed = map { my @of = values_of($_); ($_ => $of[ rand @of ]) } map { $names->[ rand @$names ] } 1 .. 3;
		push @hostile, call_beside($says, %args, %changed);
	}
};
$lies_of->(\@of_generator, $newcomer, former_node => answer('h_', 'node'), former_until => $tick);
$lies_of->(\@of_request, holder('l_'));
$lies_of->(\@of_block, $block);
push @hostile, map { call($newcomer, host => "'invented$_'", clock_us => "$clock_us + 1892160000000000", lowest => "$tick + 1892160000000") } 1 .. 5;
# Bytes that are no message, parts of one, and one that is damaged; and as much as possible at once.
my $message = 'message_of(' . request($newcomer) . ')';
push @hostile, map { "CALL uid_internal.uid_fleet_call($_)" } 'NULL', "''", "decode(repeat('5e', 30000000), 'hex')", "decode(repeat('00', 1000), 'hex')",
  "decode('0000002e' || repeat('ff', 400), 'hex')", "decode('ffffffff' || repeat('00', 400), 'hex')", "decode('7fffffff' || repeat('00000014ffffffff', 100), 'hex')",
  "decode(repeat(encode($message, 'hex'), 101), 'hex')", "convert_to(repeat('x', 100000), 'UTF8')",
  map({ my $at = int rand 700; "substr($message, 1, $at)" } 1 .. 40),
  map({ my ($at, $value) = (int rand 700, int rand 256); "set_byte($message, $at, $value)" } 1 .. 120);
push @hostile, map { "SELECT segment_reserve('orders', $_)" } grep { $_ ne 'NULL' } @numbers;

my $script = "\\set ON_ERROR_STOP off\n\\set h_incarnation 4711\n\\set l_incarnation 4712\n";
$script .= keep($_, $newcomer, incarnation => ":${_}incarnation") foreach 'h_', 'l_';
$script .= 'SELECT ' . answer('h_', 'node') . " AS first_node \\gset\n" . keep('b_', $block);
my $last = 'coalesce(' . answer('b_', 'first') . ' + ' . answer('b_', 'count') . ' - 1, 0)';
my $number = 0;
foreach my $call (@hostile)
{
	$script .= "\\o /dev/null\n$call;\n\\o\n";
	$script .= keep('h_', holder('h_')) . keep('n_', $newcomer);
	$script .= keep('b_', $block, shown => $last);
	$script .= "SELECT $number, concat_ws(' ', 'holder: ' || (h).refusal, 'newcomer: ' || (n).refusal, 'block: ' || (b).refusal, "
	  . "CASE WHEN (h).node <> :first_node THEN 'another node' END, CASE WHEN (n).granted_until > $tick + 700000 THEN 'a long grant' END)"
	  . " FROM (SELECT :'h_answer'::fleet_answer h, :'n_answer'::fleet_answer n, :'b_answer'::fleet_answer b) answers;\n";
	$number++;
}

# A later term that a login invents keeps newcomers away, as the end of this file shows. Here it counts for one call only.
my $term = sql('SELECT term FROM uid_fleet_state');
sql('CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$');
sql('CREATE TRIGGER forget BEFORE INSERT ON uid_fleet_claim FOR EACH ROW EXECUTE FUNCTION forget()');
my ($output, $error);
$registry->psql('postgres', $script, on_error_stop => 0, stdout => \$output, stderr => \$error, extra_params => [ '-U', 'uid_fleet' ], timeout => 600);
my @results = split /\n/, $output;
is(scalar(@results), scalar(@hostile), 'after each call the honest ones are answered');
my @broken = grep { !/^\d+\|$/ } @results;
is(join("\n", map { my ($n, $what) = split /\|/; "$hostile[$n]: $what" } @broken[ 0 .. ($#broken < 4 ? $#broken : 4) ]), '',
	'... the member keeps its node, a newcomer gets one, and the segment gives a block');
is(sql('SELECT term, shown_term, fence_base FROM uid_fleet_state'), "$term||", 'no fence, and no term but the registry\'s own');
is(sql("SELECT count(*) FROM uid_fleet JOIN uid_fleet_pool USING (pool) WHERE tick_us <= 1000000 AND granted_until > now() + interval '12 min'"),
	0, 'no node is taken for longer than a grant');
my $calls = @hostile + 10;
is(sql("SELECT count(*) FROM uid_fleet_node HAVING count(*) > 3 * $calls + 2"), '', 'no more nodes than requests');
is(sql("SELECT count(*) FROM uid_fleet_pool HAVING count(*) > 1000"), '', 'a bounded number of layouts');
is(sql("SELECT last_value FROM uid_segments.orders WHERE last_value > 17 * 1000000::bigint * $calls"), '', 'the segment lasts');
unlike($error, qr/spoiled|server closed the connection|PANIC|XX000|syntax error|subquery|procedure .* does not exist/, 'each call is understood, and none ends the session');
my $log = slurp_file($registry->logfile);
like($log, qr/LOG:  .*$_/, "what is refused is logged: $_")
  foreach ('login "uid_fleet" presented a proof that this registry did not issue', 'lies too far beyond all that');
note(scalar(@hostile) . ' calls');

# The call is committed before it answers. So what a statement has shown that fails afterwards proves no lost commit.
my @as_member = (on_error_stop => 0, stderr => \$error, extra_params => [ '-U', 'uid_fleet' ]);
sub after_call ($then, %args)
{
	my $asked = request($newcomer, %args);
	return <<"SQL";
DO \$\$
DECLARE
  a fleet_answer;
  node bigint;
BEGIN
  CALL call_with($asked, a);
  RAISE INFO 'answer: %', a;
  $then;
END
\$\$;
SQL
}
my $incarnation = 8888;
foreach my $then ('PERFORM 1 / 0', 'ROLLBACK', 'PERFORM pg_terminate_backend(pg_backend_pid())')
{
	$incarnation++;
	$registry->psql('postgres', after_call($then, incarnation => $incarnation), @as_member);
	my ($answer) = $error =~ /answer: (.*)/ or die "no answer: $error";
	my $shown = "\\set a_incarnation $incarnation\n\\set a_answer '$answer'\nSELECT " . answer('a_', 'node') . ";\n" . keep('a_', holder('a_'));
	$registry->psql('postgres', "${shown}SELECT " . answer('a_', 'node'), @as_member, stdout => \$output);
	my ($before, $after) = split /\n/, $output;
	is($after, $before, "an answer that was shown counts, whatever the statement does then: $then");
}
is(sql('SELECT term, fence_base FROM uid_fleet_state'), "$term|", '... and showing it raises no fence');

# Nor does the statement keep the registry's locks while it goes on, nor while the commit runs the query of a cursor of the
# caller's to its end. With a new layout they would be locks against all members.
my $sleep = 'PERFORM pg_sleep(100000)';
my $in_cursor = after_call('NULL', worker_bits => 8) =~ s/BEGIN\n/BEGIN FOR node IN SELECT CASE WHEN n = 60 THEN pg_sleep(100000) IS NULL END::int FROM generate_series(1, 60) n LOOP\n/r
  =~ s/  NULL;\nEND/END LOOP; END/r;
foreach my $case ([ 'a statement goes on after its call', after_call($sleep, worker_bits => 9), 10 ], [ 'the query of a cursor goes on', $in_cursor, 11 ])
{
	my ($what, $call, $bits) = @$case;
	my $sleeper = hold_open($registry, extra_params => [ '-U', 'uid_fleet' ]);
	send_query($sleeper, "SET statement_timeout = 0; SET lock_timeout = 0;\n$call");
	$registry->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'") or die 'no sleep';
	$registry->psql('postgres', call($newcomer, worker_bits => $bits), @as_member, stdout => \$output);
	like($output, qr/^\(\d+,$term,\d+,\d+,\d+,,/, "while $what, others are answered") or diag($error);
	is(sql("SELECT count(*) FROM pg_locks WHERE relation = 'uid_fleet_state'::regclass"), 0, '... and the registry has no locks');
	sql("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	eval { $sleeper->quit };
}

# A session plans its statements before it waits for the lock, and holds no other lock meanwhile. This one never gets it.
my $first = hold_open($registry);
my $planner = hold_open($registry);
$planner->query_safe(call('of_server()'));
$first->query_safe('BEGIN; LOCK TABLE uid_fleet_state IN EXCLUSIVE MODE');
send_query($planner, call($newcomer));
ok($registry->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks w WHERE relation = 'uid_fleet_state'::regclass AND NOT granted
	AND NOT EXISTS (SELECT FROM pg_locks h WHERE h.pid = w.pid AND h.relation = 'uid_fleet_node'::regclass)}), 'the registry\'s lock is the first one');
like((finish_query($planner))[1], qr/lock timeout/, '... which a call waits for');
is($planner->query_safe(q{SELECT count(*) > 0 FROM pg_backend_memory_contexts WHERE name = 'CachedPlan' AND ident ~ '^INSERT INTO .*uid_fleet_node'}),
	't', '... and has planned its statements before');
$first->quit;

# It plans again once, after an ANALYZE, although it does not run all these statements again.
my $transactions = q{SELECT split_part(virtualtransaction, '/', 2) FROM pg_locks WHERE pid = pg_backend_pid() LIMIT 1};
sub transactions_of_hello
{
	my $before = $planner->query_safe($transactions);
	$planner->query_safe(call('of_server()'));
	return $planner->query_safe($transactions) - $before;
}
$planner->query_safe(call($newcomer, worker_bits => 12));
my $planned = transactions_of_hello();
sql('ANALYZE uid_fleet_node, uid_fleet_state, uid_fleet_pool');
is(transactions_of_hello(), $planned + 1, 'a call plans again after an ANALYZE');
is(transactions_of_hello(), $planned, '... and the next one does not');
$planner->quit;

# A client that does not read would keep them, too, so it is sent nothing before the commit.
$registry->psql('postgres', "SET client_min_messages = log;\n" . call($newcomer, term => 1, serial => 1), @as_member);
unlike($error, qr/LOG:  a member presented/, 'what the registry logs of a call is not sent to the caller');

# A later term that a login invents keeps newcomers and ended grants from nodes, until the login is expelled. The log and a
# table say which it is. A term beyond a day is none.
sql('DROP TRIGGER forget ON uid_fleet_claim');
sql("CREATE ROLE other LOGIN; SELECT uid_fleet_admit('other')");
my @as_other = (extra_params => [ '-U', 'other' ], stdout => \$output, stderr => \$error);
my $fleet = sql('SELECT fleet FROM uid_fleet_state');
my $from = -s $registry->logfile;
$registry->psql('postgres', call($newcomer, fleet => $fleet, term => $term + 2 * 86400 * 1000000, serial => 1, seal => 1), @as_member);
like(slurp_file($registry->logfile, $from), qr/LOG:  ignoring a term that login "uid_fleet" shows/, 'a term that is far ahead is ignored');
$registry->psql('postgres', call($newcomer), @as_other);
like($output, qr/^\(\d+,$term,\d+,\d+,\d+,,/, '... and newcomers get nodes');
$registry->psql('postgres', call($newcomer, fleet => $fleet, term => $term + 1000000, serial => 1, seal => 1), @as_member);
like(slurp_file($registry->logfile, $from), qr/LOG:  registry accepts no newcomers: login "uid_fleet" shows a later term without a proof/, 'a login invents a later term');
is(sql('SELECT login, term FROM uid_fleet_claim'), 'uid_fleet|' . ($term + 1000000), '... which a table shows');
$registry->psql('postgres', call($newcomer), @as_other);
like($output, qr/,claimed,/, '... and newcomers of another login are refused');
unlike($output, qr/uid_fleet"/, '... without its name');

# The caller's costs make no index dearer than reading a whole table under the registry's lock.
my $costs = join '', map { "SET $_ = 1e300;\n" } qw(random_page_cost cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost);
my $scans = q{SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'uid_fleet_node';};
my $flush = "DO \$\$ BEGIN PERFORM pg_stat_force_next_flush(); END \$\$;\n";
$registry->psql('postgres', join("\n", $costs, $flush, $scans, call($newcomer) . ';', $flush, $scans), @as_other);
like($output, qr/^(\d+)\n.*\n\g{1}$/, 'a call reads uid_fleet_node by its indexes, whatever costs its role has set');

# A role that has granted what it has on a segment to others can be expelled.
sql("GRANT USAGE ON SEQUENCE uid_segments.orders TO uid_fleet WITH GRANT OPTION; SET ROLE uid_fleet;"
	  . " GRANT USAGE ON SEQUENCE uid_segments.orders TO other; RESET ROLE");

# A role that is expelled while its transaction is open. Its call has passed PostgreSQL's check by then, which reads what the
# session has cached.
my $gate = hold_open($registry);
$gate->query_safe('BEGIN; SELECT pg_advisory_lock(17)');
my $expelled = hold_open($registry);
$expelled->query_safe('SET SESSION AUTHORIZATION uid_fleet');
my $request = request($newcomer);
send_query($expelled, "DO \$\$ DECLARE a fleet_answer; BEGIN CALL call_with($request, a);"
	  . " PERFORM pg_advisory_xact_lock(17); CALL call_with($request, a); END \$\$");
$registry->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die 'no wait';
my $nodes_of_role = "SELECT count(*) FROM uid_fleet_node WHERE login = 'uid_fleet'";
my $nodes_before = sql($nodes_of_role);
sql("SELECT uid_fleet_expel('uid_fleet')");
$gate->quit;
like((finish_query($expelled))[1], qr/permission denied for procedure uid_fleet_call/, 'an open transaction of a role that was expelled ends with its next call');
is(sql($nodes_of_role), $nodes_before, '... which gives it nothing');
$registry->psql('postgres', call($newcomer), @as_other);
like($output, qr/^\(\d+,$term,\d+,\d+,\d+,,/, 'newcomers of the other login are accepted');
eval { $expelled->quit };

done_testing();
