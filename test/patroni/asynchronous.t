# The registry is a cluster of Patroni with asynchronous replication: a failover loses the last grants.
use v5.36;
use FindBin;
use lib $FindBin::RealBin;
use PatroniStory;

tell_story(synchronous => 0);
