# What is dropped and created again in a database of its own, and what two sessions draw from it meanwhile.
package Recreation;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(kinds_of_things ways_to_recreate create_thing drop_thing draw_from recreate_thing);

my $from_torn = q{FROM generate_series(1, 20)};
my %things = (
	extension => {
		create => 'CREATE EXTENSION uidgen',
		drop => 'DROP EXTENSION uidgen CASCADE',
		draw => "SELECT uid_next() $from_torn" },
	generator => {
		create => q{SELECT uid_generator_create('torn')},
		drop => q{SELECT uid_generator_drop('uid_generators.torn')},
		draw => "SELECT uid_next('uid_generators.torn') $from_torn" },
	ring => {
		create => q{SELECT uid_generator_create('torn', mode => 'cached', spread => false)},
		drop => 'DROP SEQUENCE uid_generators.torn',
		draw => "SELECT uid_next('uid_generators.torn') $from_torn" },
	# Each life begins above the former one.
	segment => {
		create => q{SELECT segment_create('torn', {first}, 100)},
		drop => q{SELECT segment_drop('torn')},
		draw => "SELECT segment_next('torn') $from_torn" },
	table => {
		create => q{CREATE SEQUENCE torn_id START {first}; CREATE TABLE torn (id bigint DEFAULT segment_next('torn_id'::regclass));}
		  . ' ALTER SEQUENCE torn_id OWNED BY torn.id',
		drop => 'DROP TABLE torn',
		draw => "INSERT INTO torn SELECT $from_torn RETURNING id" },
	# It reveals the ids that it has concealed.
	key => {
		create => q{SELECT uid_key_create('torn')},
		drop => q{SELECT uid_key_drop('torn')},
		draw => q{SELECT uid_reveal(uid_conceal(id, 'torn'), 'torn') FROM (SELECT uid_next() AS id } . "$from_torn) AS ids" });

my %ways = (
	apart => '{drop}; SELECT pg_sleep(0.02); {create}',
	'at once' => 'BEGIN; {drop}; {create}; COMMIT',
	'in vain' => 'BEGIN; {drop}; {create}; SELECT pg_sleep(0.02); ROLLBACK');

sub kinds_of_things { return sort keys %things }
sub ways_to_recreate { return sort keys %ways }

# $life is higher each time.
sub create_thing
{
	my ($kind, $life) = @_;
	return $things{$kind}{create} =~ s/\{first\}/$life . '000000000'/er;
}

sub drop_thing
{
	my ($kind) = @_;
	return $things{$kind}{drop};
}

sub draw_from
{
	my ($kind) = @_;
	return $things{$kind}{draw};
}

sub recreate_thing
{
	my ($kind, $way, $life) = @_;
	return $ways{$way} =~ s/\{drop\}/$things{$kind}{drop}/r =~ s/\{create\}/create_thing($kind, $life)/er;
}

1;
