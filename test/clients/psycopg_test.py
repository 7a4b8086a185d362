#!/usr/bin/python3
# psycopg 3: an id is an int; executemany returns the ids; COPY draws them, or takes them along.
import psycopg

connection = psycopg.connect('', autocommit=True)
cursor = connection.cursor()
cursor.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)')
items = [f'item {n}' for n in range(1000)]


def refused(error_class, message, sql, *parameters):
    try:
        cursor.execute(sql, parameters)
    except error_class as error:
        assert str(error).startswith(message), str(error)
    else:
        raise AssertionError(f'not refused: {sql} {parameters}')


cursor.execute('INSERT INTO orders (item) VALUES (%s) RETURNING id', ['tea'])
(order_id,) = cursor.fetchone()
assert type(order_id) is int and order_id > 2**53

cursor.executemany('INSERT INTO orders (item) VALUES (%s) RETURNING id', [[item] for item in items], returning=True)
ids = [cursor.fetchone()[0]]
while cursor.nextset():
    ids.append(cursor.fetchone()[0])
assert len(ids) == 1000 and ids == sorted(set(ids)) and ids[0] > order_id, 'the ids of the rows, in their order'

with cursor.copy('COPY orders (item) FROM STDIN') as copy:
    for item in items:
        copy.write_row([item])
drawn = cursor.execute('SELECT id FROM orders WHERE id > %s', [ids[-1]]).fetchall()
assert len(drawn) == 1000, 'COPY draws an id for each row'

# COPY returns nothing. A program that needs the ids draws them first.
(ids,) = cursor.execute('SELECT uidgen.uid_next_array(%s)', [len(items)]).fetchone()
with cursor.copy('COPY orders (id, item) FROM STDIN') as copy:
    for row in zip(ids, items):
        copy.write_row(row)
stored = cursor.execute('SELECT id, item FROM orders WHERE id = ANY(%s) ORDER BY id', [ids]).fetchall()
assert stored == list(zip(ids, items))

# A count may be beyond 2^31.
refused(psycopg.errors.InvalidParameterValue, 'batch count must not be negative: -1099511627776',
        'SELECT uidgen.uid_next_array(%s)', -2**40)

# A float has 53 bits. PostgreSQL takes it for a bigint column, and stores another id.
order_id = next(n for n in ids if n % 2 == 1)
rounded = int(float(order_id))
cursor.execute('CREATE TABLE notes (order_id bigint)')
(stored,) = cursor.execute('INSERT INTO notes VALUES (%s) RETURNING order_id', [float(order_id)]).fetchone()
assert stored == rounded != order_id
# A foreign key refuses it, unless it is another row's.
cursor.execute('DELETE FROM orders WHERE id = %s', [rounded])
cursor.execute('CREATE TABLE lines (order_id bigint REFERENCES orders)')
refused(psycopg.errors.ForeignKeyViolation, 'insert or update on table "lines" violates foreign key constraint',
        'INSERT INTO lines VALUES (%s)', float(order_id))
# So do the functions of uidgen.
for function in 'uid_decode', 'uid_timestamp', 'uid_to_base62', 'uid_next_array':
    refused(psycopg.errors.UndefinedFunction, f'function uidgen.{function}(double precision) does not exist',
            f'SELECT uidgen.{function}(%s)', float(order_id))

# A column that is too small refuses the id.
cursor.execute('CREATE TABLE small (order_id integer)')
refused(psycopg.errors.NumericValueOutOfRange, 'integer out of range', 'INSERT INTO small SELECT id FROM orders')
