#!/usr/bin/python3
# PgBouncer in transaction mode: INSERT ... RETURNING is right; uid_last() after the transaction is another client's.
import os
import subprocess
import tempfile
import time

import psycopg

directory = tempfile.mkdtemp()
database = os.environ['PGDATABASE']
with open(f'{directory}/users', 'w') as users:
    users.write(f'"{os.environ["PGUSER"]}" ""\n')
with open(f'{directory}/pgbouncer.ini', 'w') as configuration:
    configuration.write(f'''
[databases]
{database} = host={os.environ['PGHOST']} port={os.environ['PGPORT']}

[pgbouncer]
pool_mode = transaction
default_pool_size = 1
listen_port = 6432
unix_socket_dir = {directory}
auth_type = trust
auth_file = {directory}/users
''')
bouncer = subprocess.Popen(['pgbouncer', '-q', f'{directory}/pgbouncer.ini'], stderr=subprocess.DEVNULL)


def connect():
    connection = psycopg.connect(host=directory, port=6432, autocommit=True, prepare_threshold=None)
    return connection


def value(connection, sql):
    return connection.execute(sql).fetchone()[0]


try:
    while not os.path.exists(f'{directory}/.s.PGSQL.6432'):
        assert bouncer.poll() is None, 'pgbouncer has ended'
        time.sleep(0.1)
    one, two = connect(), connect()
    one.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)')
    insert = "INSERT INTO orders (item) VALUES ('tea') RETURNING id"
    assert value(one, 'SELECT pg_backend_pid()') == value(two, 'SELECT pg_backend_pid()'), 'they share a session'

    first, second = value(one, insert), value(two, insert)
    assert first < second
    assert value(one, 'SELECT uidgen.uid_last()') == second, 'uid_last() is the id of the other client'
    with one.transaction():
        first = value(one, insert)
        assert value(one, 'SELECT uidgen.uid_last()') == first, 'within a transaction it is right'

    one.execute("SET uidgen.max_wait = '1s'")
    assert value(two, 'SHOW uidgen.max_wait') == '1s', 'SET changes the session of the other client'

    # More executions than psycopg prepares a statement after.
    ids = [value(client, insert) for n in range(20) for client in (one, two)]
    assert ids == sorted(set(ids))
    assert value(one, 'SELECT count(*) FROM orders') == 43
finally:
    bouncer.kill()
    bouncer.wait()
