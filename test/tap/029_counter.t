# The time-stamp counter between two readings of the clock (src/pg/base/counter.hpp): with uidgen.use_counter off a step of
# the clock is noticed by the next call, with it by a call some milliseconds later, and the ids are the same either way.
use strict;
use warnings;

use lib 'test/tap';
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use UidgenTest;

my $node = new_node('counter');
use_fake_clock($node);
freeze_clock($node, 7200);
start_uidgen($node);

# Ticks of an hour, so that nothing but the clock's step ends a window.
$node->safe_psql('postgres',
	"SELECT uid_generator_create('hours', 'twitter', tick_us => 3600000000, time_bits => 28, sequence_bits => 25)");
my $draw = "SELECT uid_next('uid_generators.hours')";

# Draws twice in one transaction, with the clock an hour back in between.
sub draw_over_a_step
{
	my ($use_counter) = @_;
	freeze_clock($node, 7200);
	my $session = hold_open($node);
	$session->query_safe("SET uidgen.use_counter = $use_counter");
	$session->query_safe('BEGIN');
	my @ids = map { $session->query_safe($draw) } 1 .. 3;
	freeze_clock($node, 3600);
	my $calls = 0;
	my $state = '00000';
	while ($state eq '00000' && $calls < 3000)
	{
		$session->query_safe('SAVEPOINT s');
		$state = sqlstate($session, $draw);
		$calls++;
		sleep(0.01) if $state eq '00000';
	}
	$session->quit;
	return (\@ids, $state, $calls);
}

# The rate of the counter is known a tenth of a second after the server's start.
sleep(0.2);
my ($ids, $state, $calls) = draw_over_a_step('on');
is($state, '55000', 'a step of the clock is noticed');
is_deeply([ sort { $a <=> $b } @$ids ], $ids, '... the ids before it are in order');
my ($more, $state_off, $calls_off) = draw_over_a_step('off');
is($state_off, '55000', 'without the counter too');
is($calls_off, 1, '... by the first call');
cmp_ok($more->[0], '>', $ids->[-1], '... and its ids are above');

is(sqlstate($node, "SET ROLE pg_monitor; SET uidgen.use_counter = off"), '42501', 'the setting is for superusers');

$node->stop;
done_testing();
