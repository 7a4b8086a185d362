#!/usr/bin/perl
# DBIx::Class: retrieve_on_insert returns the id, and a populate in void context draws one for each row.
use strict;
use warnings;

package Order;
use parent 'DBIx::Class::Core';
__PACKAGE__->table('orders');
__PACKAGE__->add_columns(
    id   => { data_type => 'bigint', retrieve_on_insert => 1, default_value => \'uidgen.uid_next()' },
    item => { data_type => 'text', is_nullable => 1 },
);
__PACKAGE__->set_primary_key('id');

package Shop;
use parent 'DBIx::Class::Schema';
__PACKAGE__->register_class(Order => 'Order');

package main;

my $schema = Shop->connect('dbi:Pg:', undef, undef, { PrintWarn => 0 });
$schema->storage->dbh->do('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
my $orders = $schema->resultset('Order');
my $order  = $orders->create({ item => 'tea' });
$order->id > 2**53 && $orders->find($order->id)->item eq 'tea' or die 'not the id of the row';
$orders->populate([map { { item => "item $_" } } 1 .. 1000]);
$orders->search({ id => { '>' => $order->id } })->count == 1000 or die 'a draw for each row';
