#!/usr/bin/perl
# Rose::DB::Object: the key's generator draws the id, with columns written by hand and with those that it finds itself.
use strict;
use warnings;

package Shop;
use parent 'Rose::DB';
__PACKAGE__->use_private_registry;
__PACKAGE__->register_db(
    driver => 'pg', database => $ENV{PGDATABASE}, host => $ENV{PGHOST}, port => $ENV{PGPORT}, username => $ENV{PGUSER});

package Order;
use parent 'Rose::DB::Object';
sub init_db { Shop->new }
__PACKAGE__->meta->setup(
    table                 => 'orders',
    columns               => [
        id   => { type => 'bigint', not_null => 1 },
        item => { type => 'text' },
    ],
    primary_key_columns   => ['id'],
    primary_key_generator => sub { $_[1]->dbh->selectrow_array('SELECT uidgen.uid_next()') },
);

package main;

my $dbh = Shop->new->retain_dbh;
$dbh->do('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
my $order = Order->new(item => 'tea');
$order->save;
$order->id > 2**53 && Order->new(id => $order->id)->load->item eq 'tea' or die 'not the id of the row';

# auto_initialize takes the default for a text, which it would send.
package Found;
use parent -norequire, 'Rose::DB::Object';
sub init_db { Shop->new }
__PACKAGE__->meta->table('orders');
__PACKAGE__->meta->auto_initialize;

package main;
eval { Found->new(item => 'milk')->save; die 'a text was an id' };
$@ =~ /invalid input syntax for type bigint: "uidgen.uid_next\(\)"/ or die $@;
Found->meta->column('id')->default(undef);
Found->meta->make_methods(replace_existing => 1);
Found->meta->primary_key_generator(Order->meta->primary_key_generator);
my $found = Found->new(item => 'milk');
$found->save;
$found->id > $order->id or die 'not an id';
