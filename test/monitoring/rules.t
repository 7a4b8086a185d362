# docs/monitoring/rules.yaml, with Debian's promtool: Prometheus takes it; each alert says what happens, what to do and
# which page explains it; each alert fires on the series that it is for, alone, and none on quiet ones.
use UidgenTest;

my ($promtool) = grep { -x } map { "$_/promtool" } "$ENV{UIDGEN_WORK}/monitoring/usr/bin", split /:/, $ENV{PATH};
plan skip_all => 'promtool is not there' unless defined $promtool;

my $file = 'docs/monitoring/rules.yaml';
my $rules = slurp_file($file);
my %alerts;
while ($rules =~ /- alert: (\w+)\n +expr: (\N+)\n(?: +for: (\w+)\n)? +labels: {severity: \w+}\n +annotations:\n +summary: "\N+"\n +action: "\N+"\n +runbook: (\S+)\n/g)
{
	$alerts{$1} = { expression => $2, page => $4 };
}
cmp_ok(scalar(keys %alerts), '>', 20, 'there are alerts');
is(scalar(() = $rules =~ /^ +- alert:/mg), scalar(keys %alerts), 'each has a severity, a summary, an action and a page');

foreach my $name (sort keys %alerts)
{
	my ($path, $part) = $alerts{$name}{page} =~ /^([^#]+)#?(.*)$/;
	my $heading = $part =~ tr/-/ /r;
	ok(-e $path && ($part eq '' || slurp_file($path) =~ /^#+ \Q$heading\E$/mi), "$name: the page exists");
}

# The value of each metric of an expression with which it is true, and one with which it is not.
sub values_of ($expression)
{
	my ($left, $sign, $bound) = $expression =~ /^(.+) ([<>]) ([\d.]+)$/ or die "an expression of another form: $expression";
	my ($metric, $whole) = $left =~ /(uidgen_\w+)/g;
	return { $metric => [ '0+1000x90', '0x90' ] } if $metric =~ /_total$/;
	my ($above, $below) = (defined $whole ? 10 : $bound + 1, $sign eq '>' ? 0 : $bound - 1);
	$below = 0 if defined $whole;
	$above = -$above if $left =~ /^abs/;
	my @values = map { "${_}x90" } $sign eq '>' ? ($above, $below) : ($below, $above);
	return { $metric => \@values, defined $whole ? ($whole => [ '10x90', '10x90' ]) : () };
}

sub test_of ($fires, %series)
{
	return join "\n", '  - interval: 1m', '    input_series:',
	  (map { "      - series: '$_'\n        values: '$series{$_}'" } sort keys %series),
	  '    promql_expr_test:', q(      - expr: 'count by (alertname) (ALERTS{alertstate="firing"})'), '        eval_time: 89m',
	  '        exp_samples:', map { qq(          - labels: '{alertname="$_"}'\n            value: 1) } @$fires;
}

my (%quiet, @tests);
foreach my $name (sort keys %alerts)
{
	my $values = values_of($alerts{$name}{expression});
	push @tests, test_of([$name], map { $_ => $values->{$_}[0] } keys %$values);
	$quiet{$_} = $values->{$_}[1] foreach keys %$values;
}
push @tests, test_of([], %quiet);
my $directory = PostgreSQL::Test::Utils::tempdir();
append_to_file("$directory/rules.yaml", $rules);
append_to_file("$directory/test.yaml", join "\n", 'rule_files: [rules.yaml]', 'evaluation_interval: 1m', 'tests:', @tests, '');
command_ok([ $promtool, 'check', 'rules', $file ], 'Prometheus takes the file');
command_ok([ $promtool, 'test', 'rules', "$directory/test.yaml" ], 'each alert fires on its series alone, and none on quiet ones');
done_testing();
