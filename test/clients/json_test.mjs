// JSON that a query builds: JSON.parse rounds the numbers in it, whatever parser bigint has; texts are exact.
import assert from 'node:assert/strict';
import { relations, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely';
import { jsonArrayFrom } from 'kysely/helpers/postgres';
import pg from 'pg';
import postgres from 'postgres';

const pool = new pg.Pool();
const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
await kysely.schema.createTable('orders')
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(kyselySql`uidgen.uid_next()`))
    .addColumn('item', 'text')
    .execute();
await pool.query(`CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), order_id bigint REFERENCES orders,
                                      item text)`);
const { rows: [order] } = await pool.query("INSERT INTO orders (item) VALUES ('tea') RETURNING id");
// A double holds none of these ids.
const { rows } = await pool.query(`INSERT INTO lines SELECT 117443343637549057 + 16 * n, $1, 'line' FROM generate_series(1, 16) AS n
                                   RETURNING id`, [order.id]);
const right = rows.map(({ id }) => id);

function check(lines, exact) {
    assert.equal(lines.length, right.length);
    assert.equal(lines.filter(({ id }) => right.includes(String(id))).length, exact ? right.length : 0);
    assert.ok(!exact || lines.every(({ order_id, orderId = order_id }) => String(orderId) === order.id));
}

// node-postgres
check((await pool.query('SELECT json_agg(lines) AS lines FROM lines')).rows[0].lines, false);
const { rows: [nested] } = await pool.query(`
    SELECT o.id, o.item, json_agg(json_build_object('id', l.id::text, 'order_id', l.order_id::text, 'item', l.item)) AS lines
      FROM orders AS o JOIN lines AS l ON l.order_id = o.id GROUP BY o.id`);
check(nested.lines, true);

// Drizzle
const orders = pgTable('orders', { id: bigint({ mode: 'bigint' }).primaryKey(), item: text() });
const lines = pgTable('lines', {
    id: bigint({ mode: 'bigint' }).primaryKey(), orderId: bigint('order_id', { mode: 'bigint' }), item: text(),
});
const schema = {
    orders,
    lines,
    ordersRelations: relations(orders, ({ many }) => ({ lines: many(lines) })),
    linesRelations: relations(lines, ({ one }) => ({ order: one(orders, { fields: [lines.orderId], references: [orders.id] }) })),
};
const db = drizzle(pool, { schema });
check((await db.query.orders.findFirst({ with: { lines: true } })).lines, false);
const found = await db.query.orders.findFirst({
    with: {
        lines: {
            columns: { id: false, orderId: false },
            extras: (line) => ({
                id: sql`${line.id}::text`.as('id'),
                orderId: sql`${line.orderId}::text`.as('order_id'),
            }),
        },
    },
});
assert.equal(found.id, BigInt(order.id));
check(found.lines, true);
check((await db.select().from(orders).innerJoin(lines, sql`${lines.orderId} = ${orders.id}`)).map((row) => row.lines), true);

// Kysely
const linesOf = (columns) => kysely.selectFrom('orders').select((eb) => [
    'id',
    jsonArrayFrom(
        eb.selectFrom('lines').select(columns).whereRef('lines.order_id', '=', 'orders.id'),
    ).as('lines'),
]).executeTakeFirst();
check((await linesOf(['id', 'order_id', 'item'])).lines, false);
const columns = [kyselySql`id::text`.as('id'), kyselySql`order_id::text`.as('order_id'), 'item'];
check((await linesOf(columns)).lines, true);
const inserted = await kysely.insertInto('orders').values([{ item: 'a' }, { item: 'b' }]).returning('id').execute();
assert.ok(BigInt(inserted[1].id) > BigInt(inserted[0].id));

// postgres.js
const client = postgres({ host: process.env.PGHOST, port: process.env.PGPORT, types: { bigint: postgres.BigInt } });
const [row] = await client`INSERT INTO orders (item) VALUES ('milk') RETURNING id`;
assert.equal(typeof row.id, 'bigint');
assert.equal((await client`SELECT FROM orders WHERE id = ${row.id}`).length, 1);
check((await client`SELECT json_agg(lines) AS lines FROM lines`)[0].lines, false);
check((await client`SELECT id::text, order_id::text, item FROM lines`), true);
const [{ lines: texts }] = await client`
    SELECT json_agg(l) AS lines FROM (SELECT id::text, order_id::text, item FROM lines) AS l`;
check(texts, true);
await client.end();
await pool.end();
