# Plants the faults of SQL into the install script of a test build: plant.pl sql_faults.tsv <script >script. With a fault
# chosen by uidgen.fault another expression counts, or a statement runs at the end of the script.
use strict;
use warnings;

my ($list) = @ARGV;
my $script = do { local $/; <STDIN> };
open my $rows, '<', $list or die "$list: $!\n";
while (my $row = <$rows>)
{
	next if $row =~ /^#|^\s*$/;
	chomp $row;
	my ($fault, $right, $wrong) = split /\t/, $row;
	die "$list: a row needs three parts with tabs between them: $row\n" unless $fault =~ /^\w+$/ && defined $wrong;
	my $is_chosen = "pg_catalog.current_setting('uidgen.fault', true) IS NOT DISTINCT FROM '$fault'";
	if ($right eq '')
	{
		$script .= "DO \$\$ BEGIN IF $is_chosen THEN $wrong; END IF; END \$\$;\n";
		next;
	}
	my $places = () = $script =~ /\Q$right\E/g;
	die "$list: $fault: the script has this $places times, not once: $right\n" unless $places == 1;
	$script =~ s/\Q$right\E/(CASE WHEN $is_chosen THEN $wrong ELSE $right END)/;
}
print $script;
