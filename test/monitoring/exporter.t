# The queries and the dashboard of docs/monitoring, with Debian's prometheus-postgres-exporter: every metric of the query
# file arrives, for a role that has pg_monitor and nothing else, with its type, its labels and a number. What the
# dashboard and the alerts ask for are such metrics.
use HTTP::Tiny;
use IPC::Run;
use JSON::PP;
use UidgenTest 'preloaded';
use Fleet;
use Pages;
use Runbook;

my ($exporter) = grep { -x } map { "$_/prometheus-postgres-exporter" } "$ENV{UIDGEN_WORK}/monitoring/usr/bin", split /:/, $ENV{PATH};
plan skip_all => 'prometheus-postgres-exporter is not there' unless defined $exporter;

# The second one is for a registry.
my @queries = ('docs/monitoring/queries.yaml', 'docs/monitoring/registry.yaml');

# The metrics of the query files, each with its usage and the labels of its query.
sub metrics_of_file
{
	my (%metrics, %labels, $query, $column);
	foreach my $line (map { split /\n/, slurp_file($_) } @queries)
	{
		$query = $1 if $line =~ /^(\w+):$/;
		$column = $1 if $line =~ /^    - (\w+):$/;
		next unless $line =~ /^        usage: "(\w+)"$/;
		$labels{$query}{$column} = 1 if $1 eq 'LABEL';
		$metrics{"${query}_$column"} = { query => $query, usage => lc $1 } if $1 ne 'LABEL';
	}
	$_->{labels} = join ' ', sort keys %{ $labels{ $_->{query} } // {} } foreach values %metrics;
	return %metrics;
}

# What an exporter shows: each metric's type, and its samples by their labels.
sub metrics_of_page ($page)
{
	my %metrics;
	foreach my $line (split /\n/, $page)
	{
		$metrics{$1}{usage} = $2 if $line =~ /^# TYPE (\w+) (\w+)$/;
		my ($name, $labels, $value) = $line =~ /^(\w+)(?:\{(.*)\})? (\S+)$/ or next;
		my %labels = ($labels // '') =~ /(\w+)="((?:[^"\\]|\\.)*)"/g;
		delete $labels{server};
		push @{ $metrics{$name}{samples} }, { labels => \%labels, value => $value };
	}
	return %metrics;
}

sub sample ($metrics, $name, %labels)
{
	foreach my $sample (@{ $metrics->{$name}{samples} // [] })
	{
		return $sample->{value} unless grep { ($sample->{labels}{$_} // '') ne $labels{$_} } keys %labels;
	}
}

# A server with all that can be watched: the registry of a fleet that the server itself is a member of.

my $node = new_node('watched', conf => "uidgen.max_wait = 60s\nuidgen.registry_lease = 60s\nautovacuum = off\n");
join_fleet($node, $node);
start_node($node);
$node->safe_psql('postgres', block_of('README.md', qr/CREATE EXTENSION uidgen SCHEMA uidgen/));
$node->safe_psql('postgres', block_of('docs/monitoring.md', qr/CREATE ROLE prometheus/));
$node->safe_psql('postgres', 'ALTER ROLE CURRENT_USER SET search_path = public, uidgen');
make_registry($node);
$node->safe_psql('postgres', <<'END');
SELECT uid_generator_create('own "quoted"', mode => 'cached', spread => false), segment_create('orders');
SELECT count(uid_next()) FROM generate_series(1, 1234);
SELECT uid_next('uid_generators."own ""quoted"""');
SELECT count(segment_next('orders')) FROM generate_series(1, 77);
CREATE SEQUENCE nearly MAXVALUE 1000;
SELECT count(*) FROM unnest(segment_next_array('nearly'::regclass, 990));
CREATE SEQUENCE downward INCREMENT -1 MINVALUE -1000 MAXVALUE -1 START -1;
SELECT segment_next('downward'::regclass);
END

# An exporter takes one file.
my $queries = PostgreSQL::Test::Utils::tempdir() . '/queries.yaml';
append_to_file($queries, join '', map { slurp_file($_) } @queries);

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $log = '';
my ($listen, $page) = ("127.0.0.1:$port", '');
my $run;
{
	local $ENV{DATA_SOURCE_NAME} = 'user=prometheus dbname=postgres sslmode=disable host=' . $node->host . ' port=' . $node->port;
	$run = IPC::Run::start([ $exporter, "--web.listen-address=$listen", "--extend.query-path=$queries",
			'--disable-default-metrics', '--disable-settings-metrics' ], '<', '/dev/null', '>&', \$log);
}
sub scrape
{
	my $answer = HTTP::Tiny->new(timeout => 30)->get("http://$listen/metrics");
	IPC::Run::pump_nb($run);
	$page = $answer->{success} ? $answer->{content} : '';
	return metrics_of_page($page);
}
ok(poll_until('the exporter answers', sub { my %now = scrape(); exists $now{pg_up} }), 'the exporter answers');

my %wanted = metrics_of_file();
my %got = scrape();
cmp_ok(scalar(keys %wanted), '>', 30, 'metrics in the query file');
is(sample(\%got, 'pg_up'), 1, 'the exporter is connected');
is(join(' ', grep { !$got{$_}{samples} } sort keys %wanted), '', 'every metric of the query file arrives');
is(join(' ', grep { $got{$_}{usage} ne $wanted{$_}{usage} } grep { $got{$_}{usage} } sort keys %wanted), '', 'with the type that the file says');
is(join(' ', grep { ($_ =~ /_total$/) != ($wanted{$_}{usage} eq 'counter') } sort keys %wanted), '', 'counters, and only they, are called _total');
my (@labels, @values);
foreach my $name (sort keys %wanted)
{
	foreach my $sample (@{ $got{$name}{samples} // [] })
	{
		push @labels, $name if join(' ', sort keys %{ $sample->{labels} }) ne $wanted{$name}{labels};
		push @values, "$name $sample->{value}" unless $sample->{value} =~ /^-?\d+(\.\d+)?(e[+-]\d+)?$/;
	}
}
is("@labels", '', 'with the labels that the file says');
is(join(', ', @values), '', 'and a number');
is(join(' ', grep { /^uidgen_/ && !$wanted{$_} } sort keys %got), '', 'no other metric of uidgen arrives');
unlike($log, qr/level=(error|warn)/, 'the exporter has logged no error');

# Some values.

my $sums = $node->safe_psql('postgres', 'SELECT ids FROM uid_stat_server');
is(sample(\%got, 'uidgen_server_ids_total'), $sums, 'ids of the server');
is(sample(\%got, 'uidgen_sequence_ids_total', sequence => 'uid_generators.uid_default', datname => 'postgres', kind => 'generator'), 1234,
	'ids of a generator');
is(sample(\%got, 'uidgen_sequence_ids_total', sequence => 'uid_generators.\"own \"\"quoted\"\"\"'), 1, 'a name with quotes');
is(sample(\%got, 'uidgen_sequence_ids_total', sequence => 'uid_segments.orders', kind => 'segment'), 77, 'values of a segment');
is(sample(\%got, 'uidgen_segment_step', sequence => 'uid_segments.orders'), 1000, 'its step');
is(sample(\%got, 'uidgen_segment_range_left', sequence => 'uid_segments.orders'), 923, 'what is left of its range');
is(sample(\%got, 'uidgen_segment_next_ready', sequence => 'uid_segments.orders'), 0, 'and that the next one is not reserved yet');
cmp_ok(sample(\%got, 'uidgen_segment_used_up_ratio', sequence => 'nearly'), '>', 0.5, 'a sequence that is nearly used up');
cmp_ok(sample(\%got, 'uidgen_segment_used_up_ratio', sequence => 'downward'), '<', 0.1, 'and one that runs downward, which is not');
is(sample(\%got, 'uidgen_registry_unreachable'), 0, 'the registry is there');
is(sample(\%got, 'uidgen_fleet_fence_seconds'), 0, '... without a fence');
is(sample(\%got, 'uidgen_registry_lease_seconds'), 60, '... and gives grants as short as this server asks for');
quiet($node, 'UidgenGrantsEnd');
is(sample(\%got, 'uidgen_pool_nodes'), 1024, 'the nodes of its layout');

# What the dashboard and the alerts ask for.

my $dashboard = decode_json(slurp_file('docs/monitoring/dashboard.json'));
my @expressions = map { $_->{expr} } map { @{ $_->{targets} // [] } } @{ $dashboard->{panels} };
cmp_ok(scalar(@expressions), '>=', 12, 'queries of the dashboard');
sub unknown ($text)
{
	return join ' ', grep { !$wanted{$_} } $text =~ /\b(uidgen_[a-z]+_\w+)\b/g;
}
is(join(' ', grep { !/uidgen_/ } @expressions), '', 'each asks for a metric of uidgen');
is(unknown(join ' ', @expressions), '', 'all of them are in the query file');
my @of_sequences = grep { $_->{legendFormat} =~ /\{\{(sequence|generator)\}\}/ } map { @{ $_->{targets} // [] } } @{ $dashboard->{panels} };
is(join(' ', map { $_->{expr} } grep { $_->{legendFormat} !~ /^\{\{instance\}\} / || $_->{expr} !~ /=~`\$\{sequence:regex\}`/ } @of_sequences), '',
	'a curve of a generator or segment names its server, and can be chosen');
is(unknown(join ' ', map { $_->{query} } @{ $dashboard->{templating}{list} }), '', 'from values of a metric');
is(join(' ', grep { "@expressions" !~ /\b$_\b/ } grep { /^uidgen_segment_/ } sort keys %wanted), '', 'a panel shows each metric of segments');
my $asked_for = join ' ', @expressions, slurp_file('docs/monitoring/rules.yaml') =~ /^ +expr: (\N+)$/mg;
is(unknown($asked_for), '', 'and those of the alerts');
is(join(' ', grep { $asked_for !~ /\b$_\b/ } sort keys %wanted), '', 'an alert or the dashboard asks for each metric');
is(unknown(slurp_file('docs/monitoring.md') =~ s/_\*//gr), '', 'as monitoring.md does');

$run->kill_kill;
$node->stop;
done_testing();
