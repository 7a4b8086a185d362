# More sequences than slots. Each change of slots discards what the slot had reserved: two ranges at most. Expected
# throughout: no value twice, ascending values of each segment, gaps within that bound, and no slot taken from an open
# transaction.
use UidgenTest;

my $step = 10;
my $two_ranges = 2 * $step;
my $conf = "autovacuum = off\nuidgen.segment_step = $step\nuidgen.segment_max_step = $step\n";
my $node = new_node('slots', conf => $conf . "uidgen.max_slots = 20\n");
start_uidgen($node);

# Sequences s1, s2, ...
my $make_sequences = 'DO $$ BEGIN FOR i IN 1 .. %d LOOP EXECUTE format($f$CREATE SEQUENCE s%%s$f$, i); END LOOP; END $$';

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub draw
{
	my ($on, $number) = @_;
	my $sql = "SELECT segment_next('s$number')";
	return $on == $node ? sql($sql) : $on->query_safe($sql);
}

# Has every slot change hands, unless an open transaction keeps it.
sub change_all_slots
{
	sql(join ';', map { "SELECT segment_next('s$_')" } 41 .. 70);
	return;
}

sql(sprintf $make_sequences, 100);

# ---------------------------------------------------------------------------
# 100 segments, 20 slots, 4 sessions, each with a list of its own of 500 draws of one value and of batches.
# ---------------------------------------------------------------------------
{
	srand 1;
	my @lists = map {
		[ map {
				my $number = 1 + int rand 100;
				rand() < 0.9
				  ? "SELECT $number, segment_next('s$number')"
				  : "SELECT $number, v FROM unnest(segment_next_array('s$number', 3)) AS v";
			} 1 .. 500 ]
	} 1 .. 4;
	my @logs = map { [ split /\n/, $_->[0] ] } psql_at_once($node, map { join '', map { "$_;\n" } @$_ } @lists);
	my (%seen, $disorder);
	foreach my $log (@logs)
	{
		my %last;
		foreach my $line (@$log)
		{
			my ($number, $value) = split /\|/, $line;
			$disorder //= "s$number: $value after $last{$number}" if $value <= ($last{$number} // 0);
			$last{$number} = $value;
			push @{ $seen{$number} }, $value;
		}
	}
	cmp_ok(scalar(map { @$_ } @logs), '>=', 2000, 'four sessions draw from a hundred segments over twenty slots');
	is($disorder // '', '', '... in each session the values of each segment rise');
	my ($twice, $gap) = ('', 0);
	foreach my $number (keys %seen)
	{
		my $before = 0;
		foreach my $value (sort { $a <=> $b } @{ $seen{$number} })
		{
			$twice = "s$number: $value" if $value == $before;
			$gap = $value - $before - 1 if $value - $before - 1 > $gap;
			$before = $value;
		}
	}
	is($twice, '', '... no value comes twice');
	# Between two draws of a segment its slot is made anew once, as only a draw makes it.
	cmp_ok($gap, '<', $two_ranges, "... and no gap is longer than two ranges (the longest: $gap)");
	is(sql('SELECT count(*) FROM uid_internal.uid_slots()'), 18, '... all slots that segments may have are in use, seven eighths');
}

# The slot that goes is the one unused for the longest time: a segment in steady use keeps its own, whatever else is drawn.
{
	my @values = map { split /\n/, sql("SELECT segment_next('s1'); SELECT segment_next('s$_') IS NULL") } 2 .. 60;
	@values = grep { /^\d+$/ } @values;
	is($values[-1] - $values[0], 58, 'a segment in steady use keeps its slot: not a value is lost');
}

# ---------------------------------------------------------------------------
# A slot of an open transaction is not taken: the next value is the very next one. So is one of a transaction whose
# savepoint was rolled back, and of a prepared one. Later the slot may go, and values go on above.
# ---------------------------------------------------------------------------
{
	my @sessions = map { hold_open($node) } 1 .. 3;
	$sessions[0]->query_safe('BEGIN');
	$sessions[1]->query_safe('BEGIN READ ONLY; SAVEPOINT s');
	$sessions[2]->query_safe('BEGIN');
	my @first = map { draw($sessions[ $_ - 1 ], $_) } 1 .. 3;
	$sessions[1]->query_safe('ROLLBACK TO s');
	$sessions[2]->query_safe("PREPARE TRANSACTION 'slots'");
	change_all_slots();
	is(draw($sessions[0], 1), $first[0] + 1, 'the slot of an open transaction is not taken');
	is(draw($sessions[1], 2), $first[1] + 1, '... nor of one whose draw was rolled back to a savepoint');
	is(draw($node, 3), $first[2] + 1, '... nor of a prepared one');
	is(draw($node, 1), $first[0] + 2, '... and other sessions draw from it');
	$sessions[0]->query_safe('COMMIT');
	$sessions[1]->query_safe('ROLLBACK');
	change_all_slots();
	foreach my $number (1, 2)
	{
		my $value = draw($sessions[ $number - 1 ], $number);
		cmp_ok($value, '>', $first[ $number - 1 ] + 1, 'after the transaction, and a change of slots, the session goes on above');
		cmp_ok($value, '<=', $first[ $number - 1 ] + 2 + $two_ranges, '... within two ranges');
	}
	is(draw($node, 3), $first[2] + 2, 'the slot of the prepared transaction is still there');
	sql("COMMIT PREPARED 'slots'");
	change_all_slots();
	cmp_ok(draw($node, 3), '>', $first[2] + 2, '... until it ends');

	# A session that only had the slot in an earlier transaction does not keep it, nor is it misled by its memory.
	my $value = draw($sessions[0], 1);
	change_all_slots();
	my $other = draw($node, 1);
	cmp_ok($other, '>', $value, 'a slot that was only used before is taken');
	is(draw($sessions[0], 1), $other + 1, '... and the session that remembers it finds the new one');
	is($sessions[0]->query_safe("SELECT segment_last('s1')"), $other + 1, '... with segment_last');
	$_->quit foreach @sessions;
}

# ---------------------------------------------------------------------------
# A transaction that needs more slots than there are.
# ---------------------------------------------------------------------------
{
	my $session = hold_open($node);
	$session->query_safe('BEGIN');
	my @values = map { draw($session, $_) } 1 .. 15;
	$session->query_safe('SAVEPOINT s');
	is(sqlstate($session, 'SELECT segment_next(format($$s%s$$, i)) FROM generate_series(16, 30) AS i'),
		'53400', 'a transaction that uses more segments than there are slots gets an error');
	$session->query_safe('ROLLBACK TO s');
	is(draw($session, 15), $values[14] + 1, '... and what it has goes on');
	$session->query_safe('COMMIT');
	is($session->query_safe('SELECT count(segment_next(format($$s%s$$, i))) FROM generate_series(16, 30) AS i'),
		15, '... and the others, too, in its next transaction');
	$session->quit;
}

# ---------------------------------------------------------------------------
# Generators lose their slots as well, to other generators when no segment has one to give. Expected: ids unique and
# above, as after a restart; and every worker id that is in an id has its row in worker_node.
# ---------------------------------------------------------------------------
sub change_all_slots_by_generators
{
	sql("SELECT uid_next('uid_generators.g$_')") foreach 1 .. 24;
	return;
}

{
	sql('SELECT uid_next()');
	change_all_slots();
	is(sql("SELECT count(*) FROM uid_internal.uid_slots() WHERE kind = 'generator'"), 1, 'segments take slots from each other before they take one from a generator');
	sql("SELECT uid_generator_create('g' || i) FROM generate_series(1, 24) AS i");
	my $session = hold_open($node);
	my @ids;
	foreach my $round (1 .. 5)
	{
		my $from = $round % 2 ? $session : undef;
		my $batch = 'SELECT string_agg(id::text, $$,$$) FROM unnest(uid_next_array(5000)) AS id';
		push @ids, split /,/, $from ? $session->query_safe($batch) : sql($batch);
		# A row that is not written yet would go with the slot.
		$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM worker_node AS n, uid_decode($ids[-1]) AS d "
			  . "WHERE n.worker_id = d.worker_id AND n.generator = 'uid_generators.uid_default')") or die 'no row in worker_node';
		change_all_slots_by_generators();
	}
	is(sql("SELECT count(*) FROM uid_internal.uid_slots() WHERE sequence = 'uid_generators.uid_default'::regclass"), 0, 'the generator has lost its slot');
	my @disorder = grep { $ids[$_] <= $ids[ $_ - 1 ] } 1 .. $#ids;
	is(scalar(@ids) . ' ' . scalar(@disorder), '25000 0', '... five times, and yet all ids rise');
	my $without_row = sql('SELECT count(*) FROM (VALUES ' . join(',', map { "($ids[$_ * 5000])" } 0 .. 4)
		  . ') AS v(id), uid_decode(v.id) AS d WHERE NOT EXISTS (SELECT FROM worker_node AS n WHERE n.worker_id = d.worker_id)');
	is($without_row, 0, '... each worker id has its row');

	# In an open transaction it keeps its slot.
	$session->query_safe('BEGIN');
	my $before = $session->query_safe('SELECT uid_next()');
	change_all_slots_by_generators();
	is($session->query_safe("SELECT a.worker_id = b.worker_id FROM uid_decode($before) AS a, uid_decode(uid_next()) AS b"),
		't', 'the slot of a generator in an open transaction is not taken');
	$session->quit;
}

# ---------------------------------------------------------------------------
# Slots of another database.
# ---------------------------------------------------------------------------
{
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE EXTENSION uidgen; ' . sprintf $make_sequences, 30);
	my $held = hold_open($node, dbname => 'other');
	my $not_held = hold_open($node, dbname => 'other');
	$held->query_safe('BEGIN');
	my @first = (draw($held, 1), draw($not_held, 2));
	my $id = $not_held->query_safe('SELECT uid_next()');
	change_all_slots();
	is($node->safe_psql('other', 'SELECT string_agg(sequence::text, $$,$$) FROM uid_internal.uid_slots() WHERE kind = $$segment$$'), 's1', "another database's slots are taken, but for one of an open transaction");
	is(draw($held, 1), $first[0] + 1, '... which goes on');
	cmp_ok(draw($not_held, 2), '>', $first[1], '... and so do the others, above');
	cmp_ok($not_held->query_safe('SELECT uid_next()'), '>', $id, '... and ids');
	$held->quit;
	$not_held->quit;
	# Both ways: its draws take slots of ours.
	my $ours = draw($node, 1);
	$node->safe_psql('other', join ';', map { "SELECT segment_next('s$_')" } 1 .. 30);
	is(sql('SELECT count(*) FROM uid_internal.uid_slots() WHERE kind = $$segment$$'), 0, 'it takes ours');
	cmp_ok(draw($node, 1), '>', $ours, '... which go on above');
	$node->safe_psql('postgres', 'DROP DATABASE other');
	my $session = hold_open($node);
	$session->query_safe('BEGIN');
	is($session->query_safe('SELECT count(segment_next(format($$s%s$$, i))) FROM generate_series(1, 18) AS i'),
		18, "when it is dropped its slots are free, and its own one, too");
	$session->quit;
}

# ---------------------------------------------------------------------------
# Over a crash: what is given up with a slot is given up for good.
# ---------------------------------------------------------------------------
{
	my %last = map { split /\|/ } split /\n/, sql(join ';', map { "SELECT $_, segment_next('s$_')" } 1 .. 100);
	$node->stop('immediate');
	start_node($node);
	my %next = map { split /\|/ } split /\n/, sql(join ';', map { "SELECT $_, segment_next('s$_')" } 1 .. 100);
	is(join(' ', grep { $next{$_} <= $last{$_} || $next{$_} > $last{$_} + $two_ranges } keys %next),
		'', 'after a crash every segment goes on above, within two ranges');
}

$node->stop;
done_testing();
