# Oids that come a second time: a slot outlives its sequence until the sweep finds it. Whatever has the oid then, of
# whatever kind, meets neither what was leased, reserved or granted for the former, nor its block.
use UidgenTest 'preloaded';
use Clock;
use Fleet;

# The clock stands, so that a generator that is created again would repeat ids unless it starts above them.
# PostgreSQL 15 may fail to drop the statistics of a relation whose oid comes again while another session still counts for
# it. It reuses the name of a file after a checkpoint only, because background processes keep files open: one of them would
# write a page of the second file into the first, which is gone. This test reuses names at once. So nothing may write:
# every page has room in memory, and no checkpoint is due.
my $one_file_again = <<'END';
autovacuum = off
track_counts = off
shared_buffers = 128MB
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1d
END
my $node = new_server('again', conf => "${one_file_again}wal_level = minimal\nmax_wal_senders = 0\n", clock => 0);

# In the mode of pg_upgrade a server takes the oid and the file of a relation from the caller.
sub restart_for_upgrade
{
	$node->stop;
	local %ENV = (%ENV, %{ $node->{uidgen_env} // {} });
	system_or_bail('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-b', 'start');
	$node->_update_pid(1);
}

my $oid = 70000;
sub with_oid ($sql, $file = $oid)
{
	return "SELECT FROM binary_upgrade_set_next_heap_pg_class_oid($oid), binary_upgrade_set_next_heap_relfilenode($file); $sql";
}

restart_for_upgrade();

# All histories of three transactions. Each draws, drops or creates, as a generator, as one in cached mode or as a
# segment, and commits or not. Two sessions take turns, so that each remembers sequences that are gone.
my %create = (
	generator => q{SELECT FROM uid_generator_create('again', max_ahead_ms => 600000)},
	cached => q{SELECT FROM uid_generator_create('again', mode => 'cached', spread => false, boost_power => 0, max_ahead_ms => 600000)},
	segment => 'CREATE SEQUENCE uid_segments.again START');
my %draw = (
	generator => q{SELECT uid_next('uid_generators.again') FROM generate_series(1, 3)},
	cached => q{SELECT uid_next('uid_generators.again') FROM generate_series(1, 3)},
	segment => q{SELECT segment_next('uid_segments.again') FROM generate_series(1, 3)});
my %drop = (generator => 'DROP SEQUENCE uid_generators.again', cached => 'DROP SEQUENCE uid_generators.again', segment => 'DROP SEQUENCE uid_segments.again');

my @sessions = map { hold_open($node) } 1, 2;
$_->query_safe('SET client_min_messages = error') foreach @sessions;
my ($start, $last_id, $second, $transactions, %seen, @wrong) = (0, 0, 0, 0);

# What there is afterwards: its kind and its file, and below what none of its values may be; undef: nothing.
sub run_transaction ($there, $body, $end)
{
	my @statements = ('BEGIN');
	my $then = $there;
	if ($body =~ /drop/)
	{
		push @statements, $drop{ $then->{kind} };
		undef $then;
	}
	if (my ($kind) = $body =~ /(generator|cached|segment)/)
	{
		$start += 100000;
		# The file of a sequence that is dropped is there until the commit.
		my $file = $there && $there->{file} == $oid ? $oid + 1 : $oid;
		push @statements, with_oid($create{$kind} =~ s/START/START $start/r, $file);
		$then = { kind => $kind, file => $file, above => $kind eq 'segment' ? $start - 1 : $last_id };
	}
	push @statements, $draw{ $then->{kind} } if $then;
	my @values = split /\n/, $sessions[ $transactions++ % 2 ]->query_safe(join '; ', @statements, $end);
	foreach my $value (@values)
	{
		push @wrong, "$body, $end: $value above $then->{above}" if $value <= $then->{above} || $seen{$value}++;
		$last_id = $value if $then->{kind} ne 'segment' && $value > $last_id;
	}
	return $end eq 'COMMIT' ? $then : $there;
}

# Runs each history that begins as this one does: every next transaction, after the same ones before.
sub run_histories ($depth, @history)
{
	my $there;
	freeze_clock($node, $second += 0.25);
	$there = run_transaction($there, @$_) foreach @history;
	run_transaction($there, 'drop', 'COMMIT') if $there;
	return if @history == $depth;
	foreach my $body ($there ? ('draw', 'drop', map { "drop, $_" } sort keys %create) : sort keys %create)
	{
		run_histories($depth, @history, [ $body, $_ ]) foreach 'ROLLBACK', 'COMMIT';
	}
}

run_histories(3);
is(join("\n", @wrong), '', "$transactions transactions on one oid: each draws its own values only");
$_->quit foreach @sessions;
$node->stop;

# A member of a fleet: what the registry gave for a sequence does not pass to the next one with its oid.
my $registry = make_registry(new_server('registry'));
sql($registry, "INSERT INTO uid_registry.segment (name, next_value) VALUES ('a', 1), ('b', 1000000)");
$node = new_server('member', conf => registry_setting($registry) . "${one_file_again}uidgen.max_wait = 1min\n");

# A database with the oid of one that was dropped, from the same template.
sql($node, 'CREATE DATABASE mould');
sql($node, "CREATE EXTENSION uidgen; SELECT uid_generator_create('g'), uid_generator_create('c', mode => 'cached', spread => false), segment_attach('a', step => 100, max_step => 100)", 'mould');
my (%twice, @twins);
foreach my $round (1, 2, 3)
{
	sql($node, 'CREATE DATABASE twin TEMPLATE mould OID 50000');
	$twice{$_}++ foreach split /\n/, sql($node, q{SELECT segment_next('a') FROM generate_series(1, 150); SELECT uid_next('uid_generators.g'), uid_next('uid_generators.c') FROM generate_series(1, 10)}, 'twin') =~ s/\|/\n/gr;
	push @twins, sql($node, q{SELECT node FROM uid_generator_status WHERE generator = 'uid_generators.g'::regclass}, 'twin');
	poll_until('a block', sub { sql($node, q{SELECT next_ready FROM segment_status WHERE name = 'a'}, 'twin') eq 't' }) or die 'no block';
	sql($node, 'DROP DATABASE twin');
}
is(scalar(keys %twice), 510, 'databases with one oid: no id and no value comes twice');
is(join(' ', grep { $twins[$_] == $twins[ $_ - 1 ] } 1, 2), '', '... and each has a grant of its own');
restart_for_upgrade();

my $again = q{uid_generators.again};
my $node_of = "SELECT node FROM uid_generator_status WHERE generator = '$again'::regclass";
sub next_node ($sql)
{
	return (split /\n/, sql($node, "$sql; SELECT FROM uid_next('$again'); $node_of"))[-1];
}

# A fixed number is refused to whoever asks for it as a newcomer.
# A generator of the database that was dropped may have drawn that node.
$registry->safe_psql('postgres', 'ALTER TABLE uid_registry.node DISABLE TRIGGER ALL; DELETE FROM uid_registry.node WHERE node = 31; ALTER TABLE uid_registry.node ENABLE TRIGGER ALL');
my $granted = next_node(with_oid(q{SELECT FROM uid_generator_create('again', worker_policy => 'static', worker_number => 31)}));
is(next_node("BEGIN; DROP SEQUENCE $again; ROLLBACK"), $granted, 'a generator whose DROP is rolled back keeps its node');
isnt(next_node("DROP SEQUENCE $again; " . with_oid($create{generator})), $granted, 'another generator with its oid gets a node of its own');
sql($node, "DROP SEQUENCE $again");

my $values = q{SELECT min(v), max(v) FROM (SELECT segment_next('again') FROM generate_series(1, 250)) AS d(v)};
my $is_ready = q{SELECT next_ready FROM segment_status WHERE name = 'again'};
my $fleet = sql($node, 'SELECT fleet FROM uid_registry_status LIMIT 1');
my $plain = q{CREATE SEQUENCE uid_segments.again; SECURITY LABEL FOR uidgen ON SEQUENCE uid_segments.again IS 'segment name="again" step=null max_step=null registry_name=null fleet=null increment=null'};
my $above = 0;
foreach my $case ([ 'attached to the first', attached_segment('again', 'a', $fleet), sub ($first) { $first > $above && $first < 1000000 } ],
	[ 'to the second', attached_segment('again', 'b', $fleet), sub ($first) { $first >= 1000000 } ],
	[ 'to none', $plain, sub ($first) { $first == 1 } ],
	[ 'to the first again', attached_segment('again', 'a', $fleet), sub ($first) { $first > $above && $first < 1000000 } ])
{
	my ($what, $create, $is_right) = @$case;
	my ($first, $last) = split /\|/, (split /\n/, sql($node, with_oid($create) . "; $values"))[-1];
	ok($is_right->($first) && $last == $first + 249,
		"a segment that is $what does not draw from the block that is ready for the one before")
	  or diag("$first to $last");
	$above = $last if $what =~ /first/;
	poll_until('a block', sub { sql($node, $is_ready) eq 't' }) or die 'no block' if $what ne 'to none';
	sql($node, "DROP SEQUENCE uid_segments.again");
}

# A generator leaves a slot to a sequence that could hold leases, but holds none.
sql($node, with_oid($create{generator}) . "; SELECT uid_next('$again'); DROP SEQUENCE $again; "
	  . with_oid('CREATE SEQUENCE uid_segments.again INCREMENT 9223372036854775807 MINVALUE 1 NO MAXVALUE NO CYCLE'));
foreach my $call ('the first', 'the second')
{
	like((sqlstate($node, q{SELECT uid_next('uid_segments.again')}))[1], qr/ERROR:.*again/, "a sequence that has a generator's oid is no generator: $call call");
}
is(sql($node, 'SELECT last_value, is_called FROM uid_segments.again'), '1|f', '... and nothing moves it');

# So does the default. No id of uid_next() comes from another generator.
sql($node, 'DROP SEQUENCE uid_segments.again; ' . with_oid($create{generator}) . "; SELECT uid_default_set('$again')");
sql($node, 'SELECT uid_next()');
sql($node, "DROP SEQUENCE $again; " . with_oid($create{generator}));
like(failure($node, 'SELECT uid_next()'), qr/database has no default generator/, "a generator with the oid of the default is not the default");
$node->stop;
done_testing();
