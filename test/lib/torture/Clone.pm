# A copy of a server that its file system does not show (clone.cpp).
#
#   make_clone($copy, $original);      # of a stopped server that is a member, before either starts; 0: it has no grants
package Clone;

use v5.36;

use Cwd qw(abs_path);
use Exporter 'import';

our @EXPORT = qw(make_clone);

sub make_clone ($copy, $original)
{
	my ($own, $directory) = map { abs_path($_->data_dir) } $copy, $original;
	my $file = "$directory/global/pgsql_tmp_uidgen.grants";
	return 0 unless -e $file;
	my $inodes = (stat $directory)[1] . ' ' . `stat -c '%i %.9W' '$file'`;
	chomp $inodes;
	$copy->{uidgen_env} = {
		LD_PRELOAD => $ENV{TORTURE_CLONE},
		UIDGEN_CLONE => $own,
		UIDGEN_CLONE_OF => $directory,
		UIDGEN_CLONE_INODES => $inodes
	};
	return 1;
}

1;
