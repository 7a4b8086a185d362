# No alert of docs/monitoring/rules.yaml fires for a healthy server, for longer than the `for` of each, with Debian's
# promtool. The series are what docs/monitoring/queries.yaml says of a server with a generator of each preset, others in
# cached mode, and segments, that has just crashed; and of its synchronous standby. The server's clock goes on in steps
# that are shorter than a jump. (The alerts of a fleet are not tried here.)
use JSON::PP;
use UidgenTest 'preloaded';
use Clock;
use Pages;

my ($promtool) = grep { -x } map { "$_/promtool" } "$ENV{UIDGEN_WORK}/monitoring/usr/bin", split /:/, $ENV{PATH};
plan skip_all => 'promtool is not there' unless defined $promtool;

my ($step, $steps) = (5, 80); # seconds; 400 s

# The SQL of each query of the file, and which of its columns are labels.
my (%sql, %labels);
{
	my ($query, $column, $in_sql);
	foreach my $line (split /\n/, slurp_file('docs/monitoring/queries.yaml'))
	{
		($query, $in_sql) = ($1, 0) if $line =~ /^(\w+):$/;
		$in_sql = 0 if $line =~ /^  \w/;
		$sql{$query} .= "$line\n" if $in_sql;
		$in_sql = 1 if $line =~ /^  query: \|$/;
		$column = $1 if $line =~ /^    - (\w+):$/;
		$labels{$query}{$column} = 1 if $line =~ /usage: "LABEL"/;
	}
}

# The longest `for`.
my ($longest) = sort { $b <=> $a } slurp_file('docs/monitoring/rules.yaml') =~ /^ +for: (\d+)m$/mg;
cmp_ok($step * $steps, '>', 60 * $longest, 'the server is watched for longer than any alert waits');

# The samples of a server, by their series: those of the steps before are missing where a series is new.
sub sample ($series, $server, $session, $number)
{
	foreach my $query (sort keys %sql)
	{
		foreach my $row (map { decode_json($_) } split /\n/, $session->query_safe("SELECT row_to_json(q) FROM ($sql{$query}) q"))
		{
			my $labels = join ',', qq(server="$server"), map { $_ . '=' . encode_json([ $row->{$_} ]) =~ s/^\[|\]$//gr } sort grep { $labels{$query}{$_} } keys %$row;
			foreach my $column (grep { !$labels{$query}{$_} && defined $row->{$_} } keys %$row)
			{
				my $values = $series->{"${query}_$column\{$labels\}"} //= [];
				push @$values, ('_') x ($number - @$values), $row->{$column};
			}
		}
	}
}

my $primary = new_node('primary', conf => "uidgen.max_wait = 60s\nautovacuum = off\n");
use_fake_clock($primary);
start_node($primary);
$primary->safe_psql('postgres', block_of('README.md', qr/CREATE EXTENSION uidgen SCHEMA uidgen/));
$primary->safe_psql('postgres', 'ALTER ROLE CURRENT_USER SET search_path = public, uidgen');
my @generators = split /\n/, $primary->safe_psql('postgres', <<'END');
SELECT uid_generator_create('of_' || preset, preset) FROM uid_preset;
SELECT uid_generator_create('quick', mode => 'cached', spread => false);
SELECT uid_generator_create('narrow', 'baidu_cached', boost_power => 0);
SELECT uid_generator_create('far', 'baidu_cached', lease_ms => 300000, max_ahead_ms => 600000);
SELECT uid_generator_create('waits', 'baidu_cached', when_ring_empty => 'wait');
SELECT uid_generator_create('scheduled', 'baidu_cached', schedule_ms => 1000);
SELECT 'uid_generators.uid_default';
END
$primary->safe_psql('postgres', "SELECT segment_create('orders'), segment_create('paced', 1, 10, 20); CREATE SEQUENCE plain");
my $draw = "SELECT count(uid_next(g::regclass)) FROM unnest('{" . join(',', @generators) . "}'::text[]) g, generate_series(1, 20);"
  . " SELECT segment_next('orders'), segment_next('paced'), segment_next('plain'::regclass)";
my $standby = standby_of($primary, 'standby');
use_fake_clock($standby);
start_node($standby);
make_synchronous($primary, 'standby');
my $seconds = 0;
sub go_on { $seconds += $step; set_clock($_, "+$seconds") foreach $primary, $standby }

# Until each generator has written its next lease, which ids start above after the crash.
# (Each draw is a session's first, because windows of cached mode end by the real time.)
foreach (1 .. 100 / $step)
{
	$primary->safe_psql('postgres', $draw);
	go_on();
}
crash($primary);

my %series;
my @sessions = map { hold_open($_) } $primary, $standby;
foreach my $number (0 .. $steps - 1)
{
	go_on();
	$primary->safe_psql('postgres', $draw);
	sample(\%series, 'primary', $sessions[0], $number);
	sample(\%series, 'standby', $sessions[1], $number);
}
$_->quit foreach @sessions;
is(scalar(grep { /^uidgen_generator_ahead_seconds\{/ } keys %series), scalar(@generators), 'a series for each generator');
cmp_ok(scalar(grep { $_ > 0 } map { @{ $series{$_} } } grep { /^uidgen_generator_ahead_seconds\{/ } keys %series), '>', 0, 'some ids are ahead of the clock after the crash');

my $directory = PostgreSQL::Test::Utils::tempdir();
append_to_file("$directory/rules.yaml", slurp_file('docs/monitoring/rules.yaml'));
append_to_file("$directory/test.yaml", join "\n", 'rule_files: [rules.yaml]', "evaluation_interval: ${step}s", 'tests:',
	"  - interval: ${step}s", '    input_series:',
	(map { my $name = s/'/''/gr; ("      - series: '$name'", "        values: '@{ $series{$_} }'") } sort keys %series),
	'    promql_expr_test:', q(      - expr: 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))'),
	'        eval_time: ' . $step * $steps . 's', '        exp_samples: []', '');
command_ok([ $promtool, 'test', 'rules', "$directory/test.yaml" ], 'no alert fires for a healthy server');

$standby->stop;
$primary->stop;
done_testing();
