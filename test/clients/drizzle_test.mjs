// Drizzle ORM: a bigint column of mode 'bigint' has the right ids; one of mode 'number' needs js53.
import assert from 'node:assert/strict';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';

const orders = pgTable('orders', {
    id: bigint({ mode: 'bigint' }).primaryKey().default(sql`uidgen.uid_next()`),
    item: text(),
});
const asNumbers = pgTable('orders', { id: bigint({ mode: 'number' }).primaryKey() });
const pages = pgTable('pages', {
    id: bigint({ mode: 'number' }).primaryKey().default(sql`uidgen.uid_next('uid_generators.web')`),
});

const client = new pg.Client();
await client.connect();
const db = drizzle(client);
await db.execute('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
await db.execute("CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT uidgen.uid_next('uid_generators.web'))");

const [order] = await db.insert(orders).values({ item: 'tea' }).returning();
assert.equal(typeof order.id, 'bigint');
assert.deepEqual(await db.select().from(orders).where(eq(orders.id, order.id)), [order]);

const rows = await db.insert(orders).values(Array(1000).fill({ item: 'item' })).returning({ id: orders.id });
assert.equal(rows.length, 1000);
assert.ok(rows.every(({ id }, n) => id > (n === 0 ? order.id : rows[n - 1].id)));

const right = new Set(rows.map(({ id }) => id));
const wrong = (await db.select().from(asNumbers)).filter(({ id }) => !right.has(BigInt(id)));
assert.ok(wrong.length > 0);
const [page] = await db.insert(pages).values({}).returning();
assert.ok(Number.isSafeInteger(page.id));
assert.equal((await db.select().from(pages).where(eq(pages.id, page.id))).length, 1);
await client.end();
