#!/usr/bin/perl
# DBI with DBD::Pg: RETURNING has the id, which is an integer; last_insert_id() finds no sequence; COPY takes ids along.
use strict;
use warnings;
use DBI;
use JSON::PP;

my $dbh = DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0, PrintWarn => 0 });
$dbh->do('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
my @items = map { "item $_" } 1 .. 1000;

my ($id) = $dbh->selectrow_array('INSERT INTO orders (item) VALUES (?) RETURNING id', undef, 'tea');
$id > 2**53 or die 'no id';

my $ids = $dbh->selectcol_arrayref('INSERT INTO orders (item) SELECT unnest(?::text[]) RETURNING id', undef, \@items);
@$ids == 1000 && $ids->[0] > $id or die 'the ids of many rows';

# It looks for a sequence in the column's default.
eval { $dbh->last_insert_id(undef, undef, 'orders', undef); die 'last_insert_id returned a value' };
$@ =~ /No suitable column found for last_insert_id of table "orders"/ or die $@;

my ($drawn) = $dbh->selectrow_array('SELECT uidgen.uid_next_array(?)', undef, scalar @items);
$dbh->do('COPY orders (id, item) FROM STDIN');
$dbh->pg_putcopydata("$drawn->[$_]\t$items[$_]\n") for 0 .. $#items;
$dbh->pg_putcopyend;
my ($count) = $dbh->selectrow_array('SELECT count(*) FROM orders WHERE id = ANY(?)', undef, $drawn);
$count == 1000 or die 'COPY takes the ids along';

# An integer has 64 bits, a number from a file of JSON too.
my $order = decode_json(encode_json({ id => $id }));
my ($item) = $dbh->selectrow_array('SELECT item FROM orders WHERE id = ?', undef, $order->{id});
$item eq 'tea' or die 'not the row';
