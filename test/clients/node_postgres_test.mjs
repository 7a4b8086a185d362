// node-postgres: an id is a string; a type parser makes it a BigInt, or a number, which js53 is for.
import assert from 'node:assert/strict';
import pg from 'pg';

const client = new pg.Client();
await client.connect();
await client.query('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
await client.query('CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(\'uid_generators.web\'))');
const insert = (values) => client.query('INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id', [values]);

const { rows: [order] } = await client.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', ['tea']);
assert.equal(typeof order.id, 'string');
assert.match(order.id, /^\d{16,19}$/);

pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);
const found = await client.query('SELECT id FROM orders WHERE id = $1', [BigInt(order.id)]);
assert.equal(found.rows[0].id, BigInt(order.id));
assert.throws(() => JSON.stringify(found.rows), TypeError);
const json = JSON.stringify(found.rows, (key, value) => typeof value === 'bigint' ? String(value) : value);
assert.equal(json, `[{"id":"${order.id}"}]`);

const ids = (await insert(Array(1000).fill('item'))).rows.map((row) => row.id);
assert.equal(new Set(ids).size, 1000);
assert.ok(ids.every((id, n) => n === 0 || id > ids[n - 1]));

// A count may be a BigInt.
const batch = await client.query('SELECT uidgen.uid_next_array($1) AS ids', [100n]);
assert.equal(new Set(batch.rows[0].ids).size, 100);
assert.ok(batch.rows[0].ids.every((id) => typeof id === 'string'));
await assert.rejects(client.query('SELECT uidgen.uid_next_array($1)', [-(2n ** 40n)]),
    { code: '22023', message: 'batch count must not be negative: -1099511627776' });
await assert.rejects(client.query('SELECT uidgen.uid_next_array($1)', [1.5]),
    { code: '22P02', message: 'invalid input syntax for type bigint: "1.5"' });

// A number beyond 2^53 is another id, and the server cannot tell.
const odd = ids.find((id) => id % 2n === 1n);
const sent = await client.query('SELECT $1::bigint AS id', [Number(odd)]);
assert.notEqual(sent.rows[0].id, odd);
// A foreign key refuses it, unless it is another row's.
await client.query('CREATE TABLE lines (order_id bigint REFERENCES orders)');
await client.query('DELETE FROM orders WHERE id = $1', [sent.rows[0].id]);
await assert.rejects(client.query('INSERT INTO lines VALUES ($1)', [Number(odd)]), { code: '23503' });
// What has a fraction or an exponent is refused.
for (const id of [0.5, 1e21])
    await assert.rejects(client.query('SELECT FROM orders WHERE id = $1', [id]),
        { code: '22P02', message: `invalid input syntax for type bigint: "${id}"` });

pg.types.setTypeParser(pg.types.builtins.INT8, Number);
const { rows: [page] } = await client.query('INSERT INTO pages DEFAULT VALUES RETURNING id, id::text AS text');
assert.ok(Number.isSafeInteger(page.id));
assert.equal(String(page.id), page.text);
assert.equal((await client.query('SELECT FROM pages WHERE id = $1', [page.id])).rows.length, 1);
await client.end();
