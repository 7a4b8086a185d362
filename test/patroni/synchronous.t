# The registry is a cluster of Patroni with synchronous_mode: a failover loses no grant.
use v5.36;
use FindBin;
use lib $FindBin::RealBin;
use PatroniStory;

tell_story(synchronous => 1);
