#!/usr/bin/python3
# psycopg2: an id is an int; execute_values returns the ids of all rows; COPY draws them.
import io

import psycopg2
from psycopg2.extras import execute_values

connection = psycopg2.connect('')
cursor = connection.cursor()
cursor.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)')
items = [[f'item {n}'] for n in range(1000)]

cursor.execute('INSERT INTO orders (item) VALUES (%s) RETURNING id', ['tea'])
(order_id,) = cursor.fetchone()
assert type(order_id) is int and order_id > 2**53

rows = execute_values(cursor, 'INSERT INTO orders (item) VALUES %s RETURNING id', items, fetch=True)
assert len(rows) == 1000 and rows == sorted(set(rows)) and rows[0] > (order_id,), 'ids of all pages of 100 rows'

# executemany keeps no result.
cursor.executemany('INSERT INTO orders (item) VALUES (%s) RETURNING id', items)
try:
    assert cursor.fetchone() != rows[0] and cursor.fetchone() is None
except psycopg2.ProgrammingError as error:
    assert str(error) == 'no results to fetch'

cursor.copy_expert('COPY orders (item) FROM STDIN', io.StringIO('coffee\nmilk\n'))
cursor.execute("SELECT count(DISTINCT id) FROM orders WHERE item IN ('coffee', 'milk')")
assert cursor.fetchone() == (2,)
connection.commit()
