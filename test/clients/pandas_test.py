#!/usr/bin/python3
# pandas: a column of ids is int64, but one that has a NULL becomes float64, which changes the ids; text is exact.
import io
import warnings

import pandas
import psycopg2

warnings.filterwarnings('ignore', message='pandas only supports SQLAlchemy')
connection = psycopg2.connect('')
cursor = connection.cursor()
cursor.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)')
cursor.execute('CREATE TABLE lines (item text, order_id bigint)')
cursor.execute("INSERT INTO orders (item) SELECT 'item ' || n FROM generate_series(1, 1000) AS n")
cursor.execute("INSERT INTO lines SELECT 'line', id FROM orders UNION ALL SELECT 'without an order', NULL")

orders = pandas.read_sql('SELECT id, item FROM orders', connection)
ids = set(orders.id)
assert orders.id.dtype == 'int64' and len(ids) == 1000

# A NULL makes the column float64, and most ids others. A later dtype is too late.
lines = pandas.read_sql('SELECT item, order_id FROM lines', connection)
assert lines.order_id.dtype == 'float64' and len(ids & set(lines.order_id.dropna().astype('int64'))) < 200
lines = pandas.read_sql_query('SELECT item, order_id FROM lines', connection, dtype={'order_id': 'Int64'})
assert len(ids & set(lines.order_id.dropna())) < 200

# Text, or a number in the place of NULL.
lines = pandas.read_sql('SELECT item, order_id::text FROM lines', connection)
orders = pandas.read_sql('SELECT id::text, item FROM orders', connection)
assert len(lines.merge(orders, left_on='order_id', right_on='id')) == 1000
lines = pandas.read_sql('SELECT item, coalesce(order_id, 0) AS order_id FROM lines', connection)
assert lines.order_id.dtype == 'int64' and set(lines.order_id) == ids | {0}

# Files: read_csv and read_json guess types, and only str is safe.
odd = next(number for number in ids if number % 2)
csv = f'order_id,item\n{odd},tea\n,milk\n'
json = f'[{{"order_id": "{odd}"}}, {{"order_id": null}}]'
assert pandas.read_csv(io.StringIO(csv)).order_id.dtype == 'float64'
assert int(pandas.read_json(io.StringIO(json)).order_id[0]) != odd
assert pandas.read_csv(io.StringIO(csv), dtype={'order_id': str}).order_id[0] == str(odd)
assert pandas.read_json(io.StringIO(json), dtype={'order_id': str}).order_id[0] == str(odd)
