# The matrix with a primary that is lost. A synchronous standby has all that a session was given. An asynchronous one is behind:
# nothing comes again that is in a row that survives. It may lack the library, until it is promoted. And what a transaction
# makes with wal_level = minimal, where it is not logged.
use UidgenTest;
use Clock;
use Installation;
use Matrix;
use Trouble;

sub promoted ($matrix, $name, %opts)
{
	my $primary = $matrix->node;
	my $copy = $opts{bare} ? copy_installation() : undef;
	my $standby = UidgenNode->new($name, install_path => $copy ? $copy->{install_path} : undef);
	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n" . ($copy ? "shared_preload_libraries = ''\n" : ''));
	use_fake_clock($standby);
	freeze_clock($standby);
	if ($copy) { unlink "$copy->{PKGLIBDIR}/uidgen.so" or die "no library: $!" }
	start_node($standby);
	make_synchronous($primary, $name) if $opts{synchronous};
	sql($primary, q{INSERT INTO t_sequence VALUES ('tabled', 1, 10)});
	my $walsender;
	$matrix->draw_all(then => sub {
			$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
			my @shown = ('SELECT count(*), max(v) FROM rows', $copy ? () : ('SELECT current_val, increment_val FROM t_sequence', q{SELECT uid_timestamp(max(v)) FROM rows WHERE of = 'id_committed'}));
			is(sql($standby, $_), sql($primary, $_), "$name shows the same: $_") foreach @shown;
			$walsender = freeze_walsender($primary, $name);
			$matrix->{is_alone} = $opts{synchronous};
		});
	# Who asks for less does not wait, but the next session does, for the very same range.
	foreach my $way ($opts{synchronous} ? ('id', 'value') : ())
	{
		my $of = "${way}_first";
		my ($draw, $last) = (Matrix::fill('DRAW', $way, $of), $matrix->{last}{$of});
		like(sql($primary, "SET synchronous_commit = local; $draw"), qr/^\d+$/, "$way: with synchronous_commit = local a session does not wait");
		my $session = $matrix->open_session;
		$matrix->run($session, $draw, $of, $way);
		is($matrix->{last}{$of}, $last, '... and the next one gets nothing without the standby');
		$session->quit;
	}
	$matrix->{is_alone} = 0;
	sql($primary, q{INSERT INTO rows SELECT 'id_committed', uid_next('uid_generators.id_committed') FROM generate_series(1, 3000)}) unless $opts{synchronous};
	is(sqlstate($standby, $_), $copy ? '58P01' : '25006', "$name does not draw") foreach 'SELECT uid_next()', q{SELECT segment_next('value_committed')}, q{SELECT segment_reserve('value_committed', 5)};
	is(sqlstate($standby, 'UPDATE t_sequence SET current_val = current_val + 1'), '25006', '... nor does its t_sequence');
	like(failure($standby, 'SELECT uid_next()'), qr/HINT:  Draw on the primary/, '... and says where to draw') unless $copy;
	$primary->kill9;
	kill 'KILL', $walsender;
	thaw($walsender);
	$standby->promote;
	if ($copy)
	{
		system_or_bail('cp', `pg_config --pkglibdir` =~ s/\n//r . '/uidgen.so', $copy->{PKGLIBDIR});
		$standby->stop;
		$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\n");
		start_node($standby);
	}
	$matrix->judge("$name, promoted", node => $standby, survivors => !$opts{synchronous});
	$standby->stop;
}

my $conf = "wal_consistency_checking = 'all'\n";
promoted(Matrix->new('primary', conf => $conf, level => 'local', situations => [qw(first again committed made made_by_worker moved moved_prepared)]), 'synchronous', synchronous => 1);
promoted(Matrix->new('primary2', conf => $conf, situations => ['committed']), 'asynchronous');
promoted(Matrix->new('primary3', conf => $conf, situations => ['committed']), 'bare', bare => 1);

# What a transaction makes is not logged, but written out at its commit: as a file that is synced, or as pages.
foreach my $threshold ('0', '2MB')
{
	my $matrix = Matrix->new("minimal$threshold", conf => "wal_level = minimal\nmax_wal_senders = 0\narchive_mode = off\nwal_skip_threshold = $threshold\n", allows_streaming => 0, situations => ['made']);
	$matrix->draw_all;
	crash($matrix->node);
	$matrix->judge("wal_level = minimal, wal_skip_threshold = $threshold, a crash");
	# A parallel worker sees that the file is not logged, and does not take that for an ALTER SEQUENCE.
	set_clock($matrix->node, '+0');
	is(sql($matrix->node, 'BEGIN; ' . Matrix::fill('MAKE', 'id', 'id_by_worker') . '; SET LOCAL ' . parallel_setting() . q{; SELECT uid_next('uid_generators.id_by_worker') > 0; COMMIT}), 't', '... a parallel worker draws in the transaction that makes its generator');
	$matrix->node->stop;
}

done_testing();
