#!/usr/bin/python3
# peewee: a key that the database draws is an AutoField whose type is BIGINT; create() and insert_many() return ids.
import os

import peewee

database = peewee.PostgresqlDatabase(os.environ['PGDATABASE'])


class UidField(peewee.AutoField):
    field_type = 'BIGINT'


class Order(peewee.Model):
    id = UidField(constraints=[peewee.SQL('DEFAULT uidgen.uid_next()')])
    item = peewee.TextField()

    class Meta:
        database = database
        table_name = 'orders'


database.create_tables([Order])
order = Order.create(item='tea')
assert type(order.id) is int and order.id > 2**53
assert Order.get_by_id(order.id).item == 'tea'
ids = [row[0] for row in Order.insert_many([(f'item {n}',) for n in range(1000)], fields=[Order.item]).execute()]
assert len(set(ids)) == 1000 and min(ids) > order.id
