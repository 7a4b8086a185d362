# A single reading of the clock that is a year ahead does not move a generator: before a lease far above the last one,
# the clock must show that time again. A build with UIDGEN_FAULTS has the setting uidgen.bad_samples: every hundredth
# reading on the slow path is a year ahead. Other builds have nothing to test here.
use UidgenTest;

my ($libraries) = run_command([ 'pg_config', '--pkglibdir' ]);
plan skip_all => 'not built with UIDGEN_FAULTS' unless slurp_file("$libraries/uidgen.so") =~ /uidgen\.bad_samples/;

my $node = new_node('bad_samples', conf => "uidgen.max_wait = 0\n");
start_uidgen($node);

# The default generator too.
my %generators = (
	uid_default => undef,
	waits => "preset => 'twitter', when_back => 'wait'");
$node->safe_psql('postgres',
	join('', map { "SELECT uid_generator_create('$_', $generators{$_});\n" } grep { defined $generators{$_} } sort keys %generators));

# Each draw leaves the tick of the one before, and so reads the clock off the common path; each
# is a transaction of its own. A table keeps what was drawn, and where the clock stood.
my $draws = 400;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE drawn (generator text, id bigint, ahead interval);
CREATE PROCEDURE draw(generator regclass, times integer) LANGUAGE plpgsql AS $$
DECLARE
  drawn_id bigint;
BEGIN
  FOR i IN 1 .. times LOOP
    PERFORM pg_sleep(0.001);
    drawn_id := uid_next(generator);
    INSERT INTO drawn VALUES (generator, drawn_id, uid_timestamp(drawn_id, generator) - clock_timestamp());
    COMMIT;
  END LOOP;
END
$$;
SQL

sub check
{
	my ($generator, $when) = @_;
	my $name = "uid_generators.$generator";
	my $error;
	$node->safe_psql('postgres', 'TRUNCATE drawn');
	$node->psql('postgres', "SET client_min_messages = error;\nSET synchronous_commit = off;\nSET uidgen.bad_samples = on;\nCALL draw('$name', $draws);",
		stderr => \$error);
	is($error, '', "$generator, $when: every call has an id");
	is($node->safe_psql('postgres', 'SELECT count(DISTINCT id) FROM drawn'), $draws, '... of its own');
	is($node->safe_psql('postgres', "SELECT count(*) FROM drawn WHERE ahead > '3 s'"),
		0, '... that is not far ahead of the clock');
	is($node->safe_psql('postgres',
			"SELECT last_time < clock_timestamp() + interval '3 s', leased_until < clock_timestamp() + interval '4 s'"
			  . " FROM uid_generator_status WHERE generator = '$name'::regclass"),
		't|t', '... and no lease is');
	return;
}

check($_, 'running') foreach sort keys %generators;

# A generator whose time bits end in 90 days: a bad reading is beyond that.
$node->safe_psql('postgres', "SELECT uid_generator_create('ends', tick_us => 1000, time_bits => 40,"
	  . " epoch => clock_timestamp() + interval '90 days' - interval '1 ms' * 2 ^ 40)");
check('ends', 'running');

$node->restart;
check('uid_default', 'started again');

$node->stop;
done_testing();
