# The registry's script on servers that crash, fail over, are restored and come back, at times that the test sets. Its members
# are made up: they keep the rules of a member (docs/design.md), and what they were granted is judged after each story. No two
# of them may hold one node at one time. sql/uid_registry.sql has the answers to all kinds of requests.
use UidgenTest;
use Clock;
use Pages;

my $epoch = 1795262400;    # freeze_clock(), second 0
my (%members, @grants, @servers, $token);

# A server of its own, at that second.
sub server ($name, $second = 0, %from)
{
	my $node;
	if (my $origin = $from{copy_of})
	{
		$node = UidgenNode->new($name);
		$node->init_from_backup($origin, 'made', standby => 0);
	}
	else
	{
		$node = new_node($name, conf => "shared_preload_libraries = ''\n");
	}
	use_fake_clock($node);
	freeze_clock($node, $second);
	start_node($node);
	push @servers, $node;
	return $node;
}

sub run_script ($node, $variables, $dbname = 'postgres')
{
	chomp(my $share = `pg_config --sharedir`);
	return run_shell($node, "psql -XqAt -d $dbname $variables -f '$share/extension/uidgen_registry.sql'");
}

# Asks the present one of these registries, as a member does: hello to all of them, then a call of the one with the largest
# term. It has one generator, which renews its grant or is a newcomer, and repeats a call with the same token until it has an
# answer that counts. Options: at, its clock; prefer, a node; cancelled, whether its commit's wait for a standby is cancelled.
sub ask ($name, $registries, %how)
{
	my $m = $members{$name} //= { seen => 0, fleet => 0 };
	my %best = (term => 0);
	foreach my $node (ref $registries eq 'ARRAY' ? @$registries : $registries)
	{
		my ($status, $hello) = call($node, "SELECT fleet, term, clock FROM uid_registry.hello($m->{fleet}, $m->{seen})");
		next if $status;
		my ($fleet, $term, $clock) = split /\|/, $hello;
		%best = (node => $node, fleet => $fleet, term => $term, clock => $clock) if $term > $best{term};
	}
	return 'unreachable' unless $best{node};
	return 'former' if $best{term} < $m->{seen};
	$m->{token} //= ++$token;
	my $earliest = defined $how{at} ? us($how{at}) : $best{clock};
	my $grant = $m->{grant};
	my $request = join ', ', '"layout": "L", "widths": "w", "own_pool": false, "lowest": 0, "highest": 63, "length": 600000000',
	  qq("holder": "$name", "new_token": $m->{token}, "earliest": $earliest),
	  $grant ? map { qq("$_": $grant->{$_}) } sort keys %$grant : ('"prefer": ' . ($how{prefer} // 0));
	my $sql = "SELECT why, node, since, until, taken, term FROM uid_registry.grant($m->{fleet}, $m->{seen}, '[{$request}]')";
	my ($status, $answer, $messages) = $how{cancelled} ? cancelled($best{node}, $sql) : call($best{node}, $sql);
	return "error $messages" if $status;
	return 'warned' if $messages =~ /WARNING/;
	my ($why, $node, $since, $until, $taken, $term) = split /\|/, $answer;
	return 'old answer' if $term < $m->{seen};
	@$m{qw(seen fleet)} = ($term, $best{fleet}) unless $why eq 'outdated';
	delete $m->{grant} if $taken eq 't';
	return $why . ($until ? ' until ' . second($until) : '') if $why ne '';
	$m->{grant} = { node => $node, since => $since, until => $until, token => delete $m->{token} };
	push @grants, [ $node, $since, $until, $name ];
	return "$node: " . second($since) . ' to ' . second($until);
}

sub call ($node, $sql)
{
	my $session = $node->start_session('postgres', user => 'fleet_app1') or return (2, '', '');
	my $status = $session->run([ [ $sql, 1 ] ]);
	$session->quit;
	return ($status, $session->take);
}

# Ends the wait of a commit for a standby by a cancellation.
sub cancelled ($node, $sql)
{
	my $session = hold_open($node);
	send_query($session, $sql);
	my $waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
	$node->poll_query_until('postgres', "SELECT count(*) = 1 $waits") or die 'no commit waits';
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waits");
	my ($answer, $messages) = finish_query($session);
	return (0, $answer, $messages);
}

sub us ($second) { return ($epoch + $second) * 1_000_000 }
sub second ($us) { return $us / 1_000_000 - $epoch }

# Pairs of grants of one node to two members that have a time in common.
sub held_twice
{
	my @sorted = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @grants;
	my @twice;
	foreach my $i (0 .. $#sorted)
	{
		my ($node, $since, $until, $name) = @{ $sorted[$i] };
		push @twice, map { "node $node of $name and $_->[3]" }
		  grep { $_->[0] == $node && $_->[3] ne $name && $_->[1] < $until } @sorted[ $i + 1 .. $#sorted ];
	}
	return @twice;
}

sub state_of ($node) { return $node->safe_psql('postgres', 'SELECT fence, reason FROM uid_registry.registry') }

sub says ($node, $call) { return $node->safe_psql('postgres', "SET client_min_messages = error; SELECT reason FROM uid_registry.$call") }

# A standby that has all up to now and gets nothing more.
sub left_behind ($primary, $name)
{
	my $standby = streaming($primary, $name);
	$primary->wait_for_catchup($name, 'replay', $primary->lsn('flush'));
	$standby->stop;
	return $standby;
}

sub streaming ($primary, $name)
{
	my $standby = standby_of($primary, $name);
	use_fake_clock($standby);
	freeze_clock($standby, 0);
	start_node($standby);
	push @servers, $standby;
	return $standby;
}

sub take_over ($standby, $second)
{
	freeze_clock($standby, $second);
	start_node($standby);
	$standby->promote;
	return $standby;
}

# The script says what it lacks.
my $origin = server('origin');
my ($status, $output) = run_script($origin, '');
ok($status != 0 && $output =~ /-v keeps=restarts .*ERROR:  keeps must be nothing, restarts or failovers/s, 'without a promise the script explains the choice');
($status, $output) = run_script($origin, '-v keeps=restarts -v fleet=5');
ok($status != 0 && $output =~ /HINT:  Pass -v longest=SECONDS/, 'for a fleet whose registry is lost it wants the length of the longest grant');
($status, $output) = run_script($origin, '-v keeps=restarts -v longest=0');
ok($status != 0 && $output =~ /registry_longest_check/, '... which is positive');
is($origin->safe_psql('postgres', "SELECT count(*) FROM pg_namespace WHERE nspname = 'uid_registry'"), 0, 'a script that fails leaves nothing');
($status, $output) = run_script($origin, '-v keeps=restarts');
like($output, qr/^\d+\|restarts\|600\|none$/, 'it makes a registry');
($status) = run_script($origin, '-1 -v keeps=restarts');
isnt($status, 0, '... once');
$origin->safe_psql('postgres', 'CREATE ROLE fleet_app1 LOGIN; GRANT uid_member TO fleet_app1');
$origin->backup('made');
@servers = ();

# Each story has a copy of that registry at second 0, with this promise.
my @stories = (
	[ 'a restart that loses nothing', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		freeze_clock($p, 1);
		crash($p);
		is(ask('b', $p, prefer => 1), '1: 1 to 601', 'after a crash a newcomer gets a node at once');
		is(ask('a', $p), '0: 0 to 601', '... and the member goes on');
	} ],
	[ 'a restart of a server that promises nothing', 'nothing', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		freeze_clock($p, 1);
		crash($p);
		is(ask('b', $p, prefer => 1), 'fenced until 621', 'after a crash newcomers wait');
		is(ask('a', $p), '0: 0 to 601', '... but the member goes on');
		freeze_clock($p, 621);
		is(ask('b', $p, prefer => 0), '0: 621 to 1221', 'they get nodes after the fence');
	} ],
	[ 'a crash in the middle of a call', 'restarts', sub ($p)
	{
		my $session = hold_open($p);
		my $request = '{"layout": "L", "widths": "w", "own_pool": false, "lowest": 0, "highest": 63, "prefer": 5, "length": 600000000, "holder": "x"';
		my $grant = sub ($token) { "SELECT node FROM uid_registry.grant(0, 0, '[$request, \"new_token\": $token, \"earliest\": " . us(0) . '}])' =~ s/\)$/')/r };
		is($session->query_safe('BEGIN; ' . $grant->(71)), 5, 'before the commit');
		crash($p);
		is($p->safe_psql('postgres', $grant->(72)), 5, '... nothing was given');
		$p->safe_psql('postgres', $grant->(73));
		crash($p);
		is($p->safe_psql('postgres', $grant->(72)), 5, 'after the commit a repeat gets what it missed');
		is($p->safe_psql('postgres', 'SELECT count(*) FROM uid_registry.node'), 2, '... and nothing more');
	} ],
	[ 'a failover that loses grants', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		my $s = left_behind($p, 'behind');
		freeze_clock($p, 100);
		is(ask('a', $p), '0: 0 to 700', 'what is lost: a renewal');
		is(ask('b', $p, prefer => 1), '1: 100 to 700', '... and nodes of newcomers, one that will renew');
		is(ask('c', $p, prefer => 2), '2: 100 to 700', '... and one that will not');
		$p->stop('immediate');
		take_over($s, 109);
		is(ask('d', [ $p, $s ], prefer => 2), 'fenced until 729', 'newcomers wait, without a word of an operator');
		is(ask('a', [ $p, $s ]), '0: 0 to 709', 'the member goes on');
		is(ask('b', [ $p, $s ]), '1: 100 to 709', '... as does the one that the new registry does not know');
		freeze_clock($s, 728);
		is(ask('d', [ $p, $s ], prefer => 2), 'fenced until 729', 'they wait until all that was lost has ended');
		freeze_clock($s, 729);
		is(ask('d', [ $p, $s ], prefer => 2), '2: 729 to 1329', '... and no longer');
		is(ask('c', [ $p, $s ]), 'taken', 'a holder whose grant has ended finds its node given away');
	} ],
	[ 'a synchronous failover', 'failovers', sub ($p)
	{
		my $s = streaming($p, 'synchronous');
		make_synchronous($p, 'synchronous');
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		$s->stop;
		is(ask('b', $p, prefer => 1, cancelled => 1), 'warned', 'a cancelled wait for the standby is an answer that does not count');
		$p->stop('immediate');
		take_over($s, 1);
		set_conf($s, "synchronous_standby_names = ''");
		is(ask('c', [ $p, $s ], prefer => 1), '1: 1 to 601', 'nobody waits');
		is(ask('a', [ $p, $s ]), '0: 0 to 601', '... or loses its node');
		is(ask('b', [ $p, $s ], prefer => 1) =~ s/^\d+//r, ': 1 to 601', 'a repeat gets another node');
		is(state_of($s), '0|none', 'without a fence');
	} ],
	[ 'a dump that is restored', 'failovers', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
		shell_ok($p, "pg_dump -Fc -f '$dump' postgres", 'a dump');
		is(ask('b', $p, prefer => 1), '1: 0 to 600', 'what is lost: a newcomer');
		my $r = server('restored', 1);
		shell_ok($r, "psql -Xqc 'CREATE ROLE uid_member; CREATE ROLE fleet_app1 LOGIN; GRANT uid_member TO fleet_app1' postgres; pg_restore -d postgres '$dump'", 'restored');
		$p->stop;
		is(ask('c', [ $p, $r ], prefer => 1), 'fenced until 621', 'newcomers wait, whatever is promised');
		is(ask('a', [ $p, $r ]), '0: 0 to 601', 'the members go on');
		is(ask('b', [ $p, $r ]), '1: 0 to 601', '... all of them');
		is(says($r, 'fence()'), 'statement', 'the statement is needed by a copy that members reach as well');
		start_node($p);
		$r->safe_psql('postgres', 'UPDATE uid_registry.registry SET fleet = DEFAULT');
		is(ask('d', $r, prefer => 2), 'fenced until 621', 'a copy of another fleet');
		$members{a}{seen} = 0;
		is(ask('a', $r), 'other_fleet', '... has nothing for members of the former one');
	} ],
	[ 'a snapshot of the disk that is put back', 'nothing', sub ($p)
	{
		put_back($p, sub { is(ask('b', $p, prefer => 1), '1: 0 to 600', 'what is lost: a newcomer') });
		is(ask('c', $p, prefer => 1), 'fenced until 621', 'newcomers wait');
		is(ask('b', $p), '1: 0 to 601', '... and the holder goes on');
	} ],
	[ 'a snapshot that is put back where restarts are promised', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		put_back($p, sub { is(ask('a', $p), '0: 0 to 600', 'what is lost: a renewal'); is(ask('b', $p, prefer => 1), '1: 0 to 600', '... and a newcomer') });
		is(says($p, 'fence()'), 'statement', 'an administrator says it');
		is(ask('c', $p, prefer => 1), 'fenced until 621', 'newcomers wait');
		is(ask('b', $p), '1: 0 to 601', '... and holders go on');
	} ],
	[ 'a promise that is not true', 'failovers', sub ($p)
	{
		my $s = left_behind($p, 'untrue');
		is(ask('a', $p), '0: 0 to 600', 'what is lost: a newcomer');
		$p->stop('immediate');
		take_over($s, 1);
		is(ask('b', $s), '0: 1 to 601', 'its node is given away again');
		is(join(', ', held_twice()), 'node 0 of a and b', '... which the judge sees');
		splice @grants;
		is(ask('c', $s, prefer => 1), '1: 1 to 601', '... and nobody knows');
		$members{x} = { seen => 0, fleet => 0, grant => { node => 2, since => us(0), until => us(600), token => 999 } };
		is(ask('x', $s), '2: 0 to 601', 'until a lost grant is shown');
		is(state_of($s), '1|proof', '... which proves the loss');
		is(ask('d', $s, prefer => 3), 'fenced until 621', '... so that newcomers wait');
		like(failure($s, 'SELECT uid_registry.nothing_was_lost()'), qr/55000: commits were lost/, '... whatever the operator thinks');
	} ],
	[ 'a registry that is made anew', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		$p->stop('immediate');
		my $anew = server('anew', 5);
		my ($status) = run_script($anew, "-v keeps=restarts -v longest=600 -v fleet=$members{a}{fleet}");
		is($status, 0, 'the script with the number of the fleet');
		$anew->safe_psql('postgres', 'CREATE ROLE fleet_app1 LOGIN; GRANT uid_member TO fleet_app1');
		is(ask('b', $anew), 'fenced until 625', 'newcomers wait from the first call on');
		is(ask('a', $anew), '0: 0 to 605', 'members go on');
	} ],
	[ 'a former primary that comes back', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		my $s = left_behind($p, 'successor');
		$p->stop('immediate');
		take_over($s, 1);
		is(ask('a', [ $p, $s ]), '0: 0 to 601', 'the new one extends it');
		is(says($s, 'nothing_was_lost()'), 'lifted', 'nothing was lost');
		start_node($p);
		is(ask('b', [ $p, $s ], prefer => 1), '1: 1 to 601', 'both are reachable: newcomers go to the new one');
		is(state_of($p), '0|none', 'the former one knows of nothing');
		is(ask('b', [ $p, $s ]), '1: 1 to 601', '... until a member says hello');
		is(state_of($p), '1|proof', '... which shows it the larger term');
		is(ask('c', $p, prefer => 1), 'fenced until 620', 'a newcomer that reaches the former one alone waits');
		is(ask('a', $p), 'former', 'a member of the new one does not go back');
		is(ask('b', $p), 'former', '... nor does another one');
		is(state_of($p), '1|proof', '... and one fence is enough');
		$s->stop('immediate');
		my $above = $members{a}{seen};
		is(says($p, "fence($above)"), 'statement', 'the new one is lost, and a statement makes the former one the registry again');
		is(ask('b', [ $p, $s ]), '1: 1 to 601', '... which extends what it does not know');
		is(ask('a', [ $p, $s ]), '0: 0 to 601', '... and what it does');
		is(ask('c', [ $p, $s ], prefer => 1), 'fenced until 620', 'newcomers wait');
	} ],
	[ 'a leader that comes back with its old timeline', 'restarts', sub ($p)
	{
		is(ask('a', $p), '0: 0 to 600', 'a member has a grant');
		my $s = left_behind($p, 'interim');
		$p->stop('immediate');
		take_over($s, 1);
		is(ask('a', $s), '0: 0 to 601', 'another server takes over');
		is(says($s, 'nothing_was_lost()'), 'lifted', '... and grants');
		is(ask($_->[0], $s, prefer => $_->[1]), "$_->[1]: 1 to 601", '... nodes') foreach [ 'b', 1 ], [ 'c', 2 ];
		$s->stop('immediate');
		freeze_clock($p, 30);
		start_node($p);
		is(ask('b', $p), 'former', 'the old leader is back: a member that has seen the other one does not go back');
		is(ask('d', $p, prefer => 1), 'fenced until 650', '... but shows its term, so newcomers wait');
		like(failure($p, 'SELECT uid_registry.nothing_was_lost()'), qr/55000: commits were lost/, '... whatever the operator thinks');
		like(call_grant($p, $members{b}{seen}), qr/^outdated\|A registry of term \d+ has granted\. .*SELECT uid_registry\.fence\($members{b}{seen}\)$/, 'a refusal has the way out');
		is(says($p, "fence($members{b}{seen})"), 'statement', 'a statement makes it the registry');
		is(ask('b', $p), '1: 1 to 630', 'members go on') && is(ask('a', $p), '0: 0 to 630', '... all of them');
		is(ask('d', $p, prefer => 2), 'fenced until 650', 'newcomers wait');
		freeze_clock($p, 650);
		is(ask('d', $p, prefer => 2), '2: 650 to 1250', '... for what it lacks to end');
	} ],
	[ 'clocks', 'restarts', sub ($p)
	{
		is(ask('a', $p, at => -500), '0: -500 to 100', 'a member whose clock is behind');
		is(ask('b', $p, at => 3000), 'ahead', '... and one whose clock is ahead');
		my $s = left_behind($p, 'slow');
		is(ask('c', $p, prefer => 1), '1: 0 to 600', 'what is lost: a newcomer');
		$p->stop('immediate');
		take_over($s, -9);
		is(ask('c', $s), '1: 0 to 600', 'a clock behind by less than the bound: the holder goes on');
		cmp_ok($members{c}{seen}, '>', us(0), '... in a term above the former one');
		is(ask('d', $s, prefer => 1), 'fenced until 611', '... and newcomers wait until the lost grant has ended');
		freeze_clock($s, 86400);
		is(says($s, 'fence()'), 'statement', 'a clock that is a day ahead');
		freeze_clock($s, 20);
		is(ask('d', $s, prefer => 1), 'fenced until 87020', '... fences until tomorrow');
		is(ask('c', $s), 'lost', '... and holders too, who draw to their ends');
		is(says($s, 'fence()'), 'statement', 'a statement when it is right');
		is(ask('d', $s, prefer => 1), 'fenced until 640', '... fences for the usual time');
		is(ask('c', $s), '1: 0 to 620', '... and the holders go on');
	} ],
);

# A copy of the data directory is taken and put back, with an unclean stop between.
sub put_back ($node, $lose)
{
	my ($data, $copy) = ($node->data_dir, $node->basedir . '/snapshot');
	$node->stop;
	system_or_bail('cp', '-a', $data, $copy);
	start_node($node);
	$lose->();
	$node->stop('immediate');
	system_or_bail('rm', '-rf', $data);
	system_or_bail('mv', $copy, $data);
	freeze_clock($node, 1);
	start_node($node);
}

sub call_grant ($node, $seen)
{
	my (undef, $answer) = call($node, "SELECT why, detail FROM uid_registry.grant(0, $seen, '[{}]')");
	return $answer;
}

my $n = 0;
foreach my $story (@stories)
{
	my ($name, $keeps, $tell) = @$story;
	note($name);
	(%members, @grants) = ();
	my $registry = server('registry' . ++$n, 0, copy_of => $origin);
	says($registry, "promise('$keeps')");
	says($registry, 'nothing_was_lost()') if $keeps eq 'nothing';
	$tell->($registry);
	is(join(', ', held_twice()), '', "$name: no node has two holders");
	$_->stop('immediate') foreach splice @servers;
}
done_testing();
