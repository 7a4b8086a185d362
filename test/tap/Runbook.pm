# Runs the pages of docs/runbooks, block by block, in the situation that each is for.
#
# The blocks of SQL of a page are run by one psql in the database shop, those of sh with libpq's variables and $PGDATA of
# the server. Each must succeed. uidgen has a schema of its own, as README.md installs it, and no search_path leads there.
# So a page must set one, and a page with a new session must begin it with \c.
#
# A comment before a block, which a reader does not see, says more:
#
#   <!-- test: prints t -->           that is all that it prints, but not if the relations that it reads are empty
#   <!-- test: lists NAME NAME -->    each begins a row
#   <!-- test: says WORDS -->         which are in what it prints
#   <!-- test: becomes t -->          the same as prints t, once it is repeated often enough
#   <!-- test: on NAME; prints t -->  on another server than the page begins with
package Runbook;

use v5.36;

use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;
use UidgenTest;
use Pages;

our @EXPORT = qw(run_page symptom used_pages checks_fail fires quiet);

my %used;

sub page ($name)
{
	$used{"docs/runbooks/$name.md"} = 1;
	return slurp_file("docs/runbooks/$name.md");
}

sub check_output ($mark, $output)
{
	my ($what, $rest) = $mark =~ /^(\w+) (.+)$/;
	if ($mark =~ /^(?:prints|becomes) t$/) { is($output, 't', "... $mark") }
	elsif ($what eq 'lists') { like($output, qr/^\Q$_\E\|/m, "... lists $_") foreach split / /, $rest }
	elsif ($what eq 'says') { like($output, qr/\Q$rest\E/, "... says $rest") }
	else { fail("a mark that the test understands: $mark") }
}

# A check must fail if there is nothing to look at.
sub check_without_rows ($psql, $block)
{
	my %relations = map { $_ => 1 } $block =~ /\b(?:FROM|JOIN) ([a-z_]+)\b(?![(.])/g;
	my $empty = join '', map { "CREATE TEMP TABLE $_ AS TABLE $_ WITH NO DATA;\n" } sort keys %relations;
	return if $empty eq '';
	my $output = $psql->query("BEGIN;\nSET LOCAL client_min_messages = error;\n$empty$block\n;ROLLBACK;");
	$psql->{stderr} = '';
	isnt($output, 't', '... but not without rows');
}

# Runs all blocks of a page on $node, in the database `dbname` (shop), or on those of `nodes` that its marks name. `before`
# and `after` get each block.
sub run_page ($name, $node, %environment)
{
	my ($before, $after, $nodes, $dbname) = delete @environment{qw(before after nodes dbname)};
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my $text = page($name);
	my $blocks = 0;
	my %psql;
	while ($text =~ /^(?: *<!-- test: ([^\n]*) -->\n)?( *)```(sql|sh)\n(.*?)^\g{2}```$/msg)
	{
		my ($mark, $indent, $language, $block) = ($1, $2, $3, $4);
		$block =~ s/^$indent//mg;
		my ($first) = $block =~ /^(\N*)/;
		my $on = $node;
		$on = $nodes->{$1} // die "no node $1" if defined $mark && $mark =~ s/^on (\w+)(?:; |$)//;
		undef $mark if defined $mark && $mark eq '';
		$before->($block) if defined $before;
		my ($status, $output, $error);
		if ($language eq 'sql')
		{
			my $psql = $psql{ $on->name } //= $on->background_psql($dbname // 'shop', on_error_stop => 0);
			my $run = sub { $output = eval { $psql->query($block) } };
			poll_until($first, sub { $run->(); defined $output && $output eq 't' }) if defined $mark && $mark eq 'becomes t';
			$run->() unless defined $mark && $mark eq 'becomes t';
			$error = $@ . ($psql->{stderr} // '');
			$psql->{stderr} = '';
			$status = $error =~ m{ERROR:|FATAL:|error:|invalid command} || !defined $output ? 1 : 0;
		}
		else
		{
			($status, $output) = run_shell($on, $block, directory => $directory, %environment);
			$on->_update_pid(-1) if $block =~ /pg_ctl/;
		}
		is($status, 0, "$name: $first") or diag(join "\n", grep { defined } $output, $error);
		check_output($mark, join "\n", grep { defined } $output, $mark =~ /^says/ ? $error : ()) if defined $mark;
		check_without_rows($psql{ $on->name }, $block) if ($mark // '') =~ /^(?:prints|becomes) t$/ && $language eq 'sql';
		$after->($block) if defined $after;
		$blocks++;
	}
	$_->quit foreach values %psql;
	my $marks = () = $text =~ /<!-- test:/g;
	my $used = () = $text =~ /^ *<!-- test: \N* -->\n *```(?:sql|sh)$/mg;
	is($used, $marks, "$name: every mark stands before a block");
	cmp_ok($blocks, '>=', 3, "$name: the page has blocks");
}

# The message that a page shows, with any names and numbers.
sub symptom ($name)
{
	my ($line) = page($name) =~ /^```\n(?:ERROR|WARNING|LOG):  (\N+)$/m or die "$name has no symptom";
	return join '', map { /^[\d.: +-]+$/ ? '[\d.: +-]+' : quotemeta } split /(\b\d[\d.: +-]*\b)/, $line;
}

sub used_pages { return sort keys %used }

# In the situation that a page is for, none of its checks says that it is over.
sub checks_fail ($name, $node, %opts)
{
	my $text = page($name);
	while ($text =~ /^<!-- test: (?:on (\w+); )?(?:prints|becomes) t -->\n```sql\n(.*?)^```$/msg)
	{
		my ($on, $block, $output) = (defined $1 ? $opts{nodes}{$1} : $node, $2);
		$on->psql($opts{dbname} // 'postgres', "SET search_path = public, uidgen; SET uidgen.max_wait = '200ms';\n$block",
			stdout => \$output, stderr => \my $error);
		isnt($output // '', 't', "$name: before the steps a check fails: " . ($block =~ /^((?!SET )\N+)/m)[0]);
	}
}

# Whether the expression of an alert of docs/monitoring holds on a server, by the queries there. `bound` is another bound
# than the expression has, which would take longer to reach.
sub holds ($node, $alert, %opts)
{
	my ($condition) = slurp_file('docs/monitoring/rules.yaml') =~ /- alert: $alert\n +expr: (\N+)/ or die "no alert $alert";
	$condition =~ s/\S+$/$opts{bound}/ if defined $opts{bound};
	my %queries = join('', map { slurp_file("docs/monitoring/$_.yaml") } 'queries', 'registry') =~ /^(\w+):\n  query: \|\n((?:    \N*\n)+)/mg;
	my ($query) = grep { $condition =~ /\b${_}_/ } keys %queries or die "no query for $condition";
	$condition =~ s/\b${query}_//g;
	my $sql = "SET search_path = public, uidgen; SELECT coalesce(bool_or($condition), false) FROM ($queries{$query}) q" =~ s/ uidgen\./ /gr;
	return $node->safe_psql($opts{dbname} // 'postgres', $sql) eq 't';
}
sub fires { my @alert = @_; return ok(poll_until($alert[1], sub { holds(@alert) }), "... $alert[1] fires") }
sub quiet { my @alert = @_; return ok(!holds(@alert), "... $alert[1] does not fire") }

1;
