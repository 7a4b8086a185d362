#!/usr/bin/python3
# Pony: a key with auto has its id after a flush. create_tables would make it a sequence, so SQL makes the table.
import os

from pony.orm import Database, PrimaryKey, Required, db_session, flush

database = Database()


class Order(database.Entity):
    _table_ = 'orders'
    id = PrimaryKey(int, size=64, auto=True)
    item = Required(str)


database.bind(provider='postgres', host=os.environ['PGHOST'], port=os.environ['PGPORT'], user=os.environ['PGUSER'],
              database=os.environ['PGDATABASE'])
with db_session:
    database.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)')
database.generate_mapping()
with db_session:
    order = Order(item='tea')
    flush()
    assert order.id > 2**53
    orders = [Order(item=f'item {n}') for n in range(100)]
    flush()
    assert len({order.id for order in orders}) == 100
with db_session:
    assert Order[order.id].item == 'tea'
