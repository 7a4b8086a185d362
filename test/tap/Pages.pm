# What pages of the documentation say, and running it.
#
#   my $sql = block_of('docs/several-servers.md', qr/CREATE SUBSCRIPTION/);
#   my $sql = statement_of('docs/several-servers.md', qr/DROP SUBSCRIPTION/);   # in its text
#   for_servers($text, OLD => $node);          # the text, with the address of that server: host=OLD, -h OLD
#   sql_with_path($node, 'shop', @sql);        # in a database whose extension is in the schema uidgen
#   my ($status, $output) = run_shell($node, $command);
#   shell_ok($node, $command, 'a dump');       # an assertion
package Pages;

use v5.36;

use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(block_of statements_of statement_of for_servers sql_with_path run_shell shell_ok);

# The first block of statements, or of commands for a shell, in which the pattern is found.
sub block_of ($file, $pattern)
{
	my $text = slurp_file($file);
	while ($text =~ /^( *)```(?:sql|sh)\n(.*?)^\g{1}```$/msg)
	{
		my ($indent, $block) = ($1, $2);
		return $block =~ s/^$indent//mgr if $block =~ $pattern;
	}
	die "$file has no block with $pattern";
}

# All whole statements in the text of a document, between its blocks. Left out: text with "…", the bare name of a command,
# and a call whose arguments are names that stand for others.
sub statements_of ($file)
{
	my $text = slurp_file($file) =~ s/^( *)```.*?^\1```$//msgr;
	my $command = qr/SELECT|INSERT|UPDATE|DELETE|SET|SHOW|CREATE|ALTER|DROP|GRANT|REVOKE/;
	my $name_of_command = qr/^(?:\w+ (?:[A-Z]+|\w+ \w+ SET \w+)|(?:SET|UPDATE|DELETE) [\w.]+|ALTER TYPE \w+);?$/;
	my $form_of_call = qr/^SELECT \w+\([a-z]+(?:, [a-z]+)*\)$/;
	return grep { !/…|\.\.\./ && !/$name_of_command/ && !/$form_of_call/ } map { s/\s+/ /gr =~ s/;$//r } $text =~ /(?<!`)`($command\s[^`]+)`/g;
}

sub statement_of ($file, $pattern)
{
	my ($found) = grep { $_ =~ $pattern } statements_of($file);
	return $found // die "$file has no statement with $pattern";
}

# Pages name the servers of an example. Their sockets are in directories of their own.
sub for_servers ($text, %nodes)
{
	foreach my $name (keys %nodes)
	{
		my ($host, $port) = map { $nodes{$name}->$_ } 'host', 'port';
		$text =~ s/\bhost=$name\b/host=$host port=$port/g;
		$text =~ s/-h $name\b/-h '$host' -p $port/g;
	}
	return $text;
}

# Runs commands on the server's host, and stops at the first one that fails. Returns the exit status and the output. The
# directory is a new one, unless `directory` names it. What else is named is in the environment.
sub run_shell ($node, $command, %environment)
{
	my $directory = delete $environment{directory} // PostgreSQL::Test::Utils::tempdir();
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATA => $node->data_dir, %environment);
	# In a file of its own, because a server that was started writes to its output on.
	my $log = PostgreSQL::Test::Utils::tempdir() . '/output';
	my $bin = $node->config_data('--bindir');
	my $script = "set -e -o pipefail; cd '$directory'; PATH=$bin:\$PATH\n$command";
	my $status = system('bash', '-c', 'exec timeout 300 bash -c "$0" >"$1" 2>&1 </dev/null', $script, $log);
	return ($status, slurp_file($log));
}

sub shell_ok ($node, $command, $what, %environment)
{
	my ($status, $output) = run_shell($node, $command, %environment);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($status, 0, $what) or diag($output);
}

# Each in a session of its own. Returns the output of the last one.
sub sql_with_path ($node, $dbname, @sql)
{
	my $output;
	$output = $node->safe_psql($dbname, "SET search_path = public, uidgen;\n$_") foreach @sql;
	return $output;
}

1;
