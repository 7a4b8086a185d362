# The rest of a segment's ranges at a clean stop is handed out after the next start, but never by two incarnations: only
# if nothing ran on the data directory and nothing is replayed in between.
#
# The danger each time: the counter on the sequence's page is the same as at the stop, so the page alone would let a
# second incarnation hand out the same values.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;

my $saved = 'pg_stat/uidgen.ranges';

sub draw
{
	my ($node, $count) = @_;
	return $node->safe_psql('postgres', "SELECT max(v) FROM segment_next_batch('s', $count) AS v");
}

sub cold_copy
{
	my ($node, $name) = @_;
	mkdir $node->backup_dir;
	PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $node->backup_dir . "/$name",
		filterfn => sub { $_[0] ne 'postmaster.pid' && $_[0] ne 'postmaster.opts' });
	return;
}

my $node = new_node('primary', has_archiving => 1);
start_uidgen($node);
$node->safe_psql('postgres', "SELECT segment_create('s', 1, 100, 100)");
$node->safe_psql('postgres', 'CREATE TABLE t (v bigint PRIMARY KEY)');

# ---------------------------------------------------------------------------
# No gap. Of the range in use and of the one reserved ahead the rest is used.
# ---------------------------------------------------------------------------
is(draw($node, 150), 150, 'the range in use ends at 200, the next one at 300');
$node->stop('fast');
ok(-e $node->data_dir . "/$saved", 'a clean stop writes what is left');
start_node($node);
ok(!-e $node->data_dir . "/$saved", 'the start removes it');
is(draw($node, 1), 151, 'no gap after a clean stop');
is(draw($node, 149), 300, '... in both ranges');

# What nobody used is kept over a second stop.
draw($node, 10);
$node->stop('fast');
start_node($node);
$node->stop('fast');
start_node($node);
is(draw($node, 1), 311, 'no gap after two stops, nothing drawn in between');

# ---------------------------------------------------------------------------
# A crash after the start: what was left may have been handed out, so it is a gap.
# ---------------------------------------------------------------------------
$node->stop('fast');
start_node($node);
my $seen = draw($node, 20);
$node->stop('immediate');
ok(!-e $node->data_dir . "/$saved", 'a crash writes nothing');
start_node($node);
my $next = draw($node, 1);
cmp_ok($next, '>', $seen, 'a crash after the start: above what was handed out');
cmp_ok($next, '<=', $seen + 200, '... by at most two ranges');

# ---------------------------------------------------------------------------
# The counter was moved, or the sequence changed, in between.
# ---------------------------------------------------------------------------
draw($node, 5);
$node->stop('fast');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
start_node($node);
my $plain = $node->safe_psql('postgres', "SELECT nextval('uid_segments.s')");
$node->stop('fast');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'");
start_node($node);
cmp_ok(draw($node, 1), '>', $plain, 'a server without the library ran in between: above what its nextval gave');

# ---------------------------------------------------------------------------
# A cold copy that replays the log: its rows may hold the very values that are left.
# Enough is used before that the next range is reserved already: so the rows cost no record, and the page of the
# copy says what it said at the stop.
# Expected: above every surviving row.
# ---------------------------------------------------------------------------
draw($node, 20);
$node->stop('fast');
cold_copy($node, 'cold');
ok(-e $node->backup_dir . "/cold/$saved", 'the cold copy has the file');
start_node($node);
my $last = $node->safe_psql('postgres',
	"INSERT INTO t SELECT segment_next('s') FROM generate_series(1, 30); SELECT max(v) FROM t");
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$node->poll_query_until('postgres', 'SELECT last_archived_wal IS NOT NULL AND failed_count = 0 FROM pg_stat_archiver');
$node->stop('fast');

my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($node, 'cold', has_restoring => 1, standby => 0);
start_node($copy);
$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is($copy->safe_psql('postgres', 'SELECT max(v) FROM t'), $last, 'the copy has replayed the rows');
cmp_ok(draw($copy, 1), '>', $last, 'a copy that replays: above every surviving row');
$copy->stop('fast');

# ---------------------------------------------------------------------------
# Switchover: the old primary stops, comes back as a standby of the new one, and is promoted later.
# ---------------------------------------------------------------------------
start_node($node);
draw($node, 5);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
ok(!-e $standby->data_dir . "/$saved", 'a backup of a running server has no file');
start_node($standby);
$node->wait_for_catchup($standby);
$node->stop('fast');
ok(-e $node->data_dir . "/$saved", 'the old primary leaves ranges');
$standby->promote;
my $new = draw($standby, 7);
$node->enable_streaming($standby);
$node->append_conf('postgresql.conf', "recovery_target_timeline = 'latest'");
start_node($node);
$standby->wait_for_catchup($node);
$standby->stop('immediate');
$node->promote;
cmp_ok(draw($node, 1), '>', $new, 'an old primary that followed the new one: above what that handed out');

# ---------------------------------------------------------------------------
# A segment that was dropped, and a damaged file.
# ---------------------------------------------------------------------------
$node->safe_psql('postgres', "SELECT segment_create('dropped', 1, 100, 100); SELECT segment_next('dropped')");
$node->stop('fast');
start_node($node);
$node->safe_psql('postgres', "SELECT segment_drop('dropped'); SELECT segment_create('dropped', 1, 100, 100)");
is($node->safe_psql('postgres', "SELECT segment_next('dropped')"), 1, 'a segment made anew starts at its start');
my $before = draw($node, 1);
$node->stop('fast');
my $file = $node->data_dir . "/$saved";
truncate $file, (-s $file) - 8 or die "could not truncate $file: $!";
start_node($node);
cmp_ok(draw($node, 1), '>', $before, 'a damaged file is not used');
$node->stop('fast');

done_testing();
