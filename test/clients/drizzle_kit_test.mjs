// drizzle-kit: pull writes mode "number", which changes ids; push finds no difference if a generator is a regclass.
// Migrations create the extension, and move a table.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { generateDrizzleJson, generateMigration, pushSchema } from 'drizzle-kit/api';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { bigint, bigserial, integer, pgTable, serial, text } from 'drizzle-orm/pg-core';
import pg from 'pg';

const orders = pgTable('orders', {
    id: bigint({ mode: 'bigint' }).primaryKey().default(sql`uidgen.uid_next()`),
    item: text(),
});
const pages = pgTable('pages', {
    id: bigint({ mode: 'number' }).primaryKey().default(sql`uidgen.uid_next('uid_generators.web'::regclass)`),
});
const withoutCast = pgTable('pages', {
    id: bigint({ mode: 'number' }).primaryKey().default(sql`uidgen.uid_next('uid_generators.web')`),
});

const client = new pg.Client();
await client.connect();
const db = drizzle(client);

async function push(tables) {
    const { statementsToExecute, apply } = await pushSchema(tables, db);
    await apply();
    return statementsToExecute;
}
assert.equal((await push({ orders, pages })).length, 2);
assert.deepEqual(await push({ orders, pages }), []);
assert.deepEqual(await push({ orders, withoutCast }),
    [`ALTER TABLE "pages" ALTER COLUMN "id" SET DEFAULT uidgen.uid_next('uid_generators.web');`]);

// TypeORM leaves this form alone, too.
await db.execute("CREATE FUNCTION next_page_id() RETURNS bigint RETURN uidgen.uid_next('uid_generators.web')");
const withFunction = pgTable('pages', { id: bigint({ mode: 'number' }).primaryKey().default(sql`next_page_id()`) });
assert.equal((await push({ orders, withFunction })).length, 1);
assert.deepEqual(await push({ orders, withFunction }), []);

const { PGUSER, PGPASSWORD, PGPORT, PGDATABASE } = process.env;
const url = `postgresql://${PGUSER}:${PGPASSWORD}@127.0.0.1:${PGPORT}/${PGDATABASE}`;
execFileSync('node_modules/.bin/drizzle-kit', ['pull', '--dialect', 'postgresql', '--url', url, '--out', 'drizzle']);
const pulled = readFileSync('drizzle/schema.ts', 'utf8');
assert.match(pulled, /id: bigint\(\{ mode: "number" \}\)\.default\(sql`uidgen\.uid_next\(\)`\)/);
assert.doesNotMatch(pulled, /worker_node/);

const rows = await db.insert(orders).values(Array(1000).fill({ item: 'item' })).returning({ id: orders.id });
const changed = rows.filter(({ id }) => BigInt(Number(id)) !== id).length;
assert.ok(changed > 900, `${changed} of 1000 ids change as numbers`);

// A database without the extension, and what drizzle-kit generate --custom, generate, and generate again write: of the
// last, only changes of a type stay, before the calls of uid_adopt, because the statements are in the order of the tables.
await client.query('CREATE DATABASE drizzle_migrated');
await client.end();
const serialCustomers = pgTable('customers', { id: serial().primaryKey() });
const before = generateDrizzleJson({
    orders,
    serialCustomers,
    invoices: pgTable('invoices', {
        id: bigserial({ mode: 'bigint' }).primaryKey(),
        customerId: integer('customer_id').references(() => serialCustomers.id),
    }),
});
const customers = pgTable('customers', { id: bigint({ mode: 'bigint' }).primaryKey().default(sql`uidgen.uid_next()`) });
const invoices = pgTable('invoices', {
    id: bigint({ mode: 'bigint' }).primaryKey().default(sql`uidgen.uid_next()`),
    customerId: bigint('customer_id', { mode: 'bigint' }).references(() => customers.id),
});
const after = generateDrizzleJson({ orders, customers, invoices });
const tables = await generateMigration(generateDrizzleJson({}), before);
const changes = await generateMigration(before, after);
assert.ok(changes.every((statement) => /^ALTER TABLE "\w+" ALTER COLUMN "(id|customer_id)" SET D/.test(statement)));
const types = changes.filter((statement) => statement.endsWith('SET DATA TYPE bigint;'));
assert.match(types.at(-1), /customer_id/);
const together = (statements) => statements.join('\n--> statement-breakpoint\n');
const migrations = [
    readFileSync('extension.sql', 'utf8'),
    together(tables),
    together(['INSERT INTO customers DEFAULT VALUES;', 'INSERT INTO invoices (customer_id) SELECT id FROM customers;']),
    together([
        ...types,
        "SELECT uidgen.uid_adopt('customers', 'id', dry_run => false);",
        "SELECT uidgen.uid_adopt('invoices', 'id', dry_run => false);",
    ]),
];
mkdirSync('drizzle/meta', { recursive: true });
migrations.forEach((text, n) => writeFileSync(`drizzle/${n}.sql`, text));
writeFileSync('drizzle/meta/_journal.json', JSON.stringify({
    entries: migrations.map((text, n) => ({ idx: n, version: '7', when: n + 1, tag: String(n), breakpoints: true })),
}));
const migrated = new pg.Client({ database: 'drizzle_migrated' });
await migrated.connect();
const other = drizzle(migrated);
await migrate(other, { migrationsFolder: 'drizzle' });
const [customer] = await other.insert(customers).values({}).returning();
const [invoice] = await other.insert(invoices).values({ customerId: customer.id }).returning();
assert.ok(customer.id > 2n ** 53n && invoice.id > 2n ** 53n);
assert.equal((await other.select().from(invoices)).length, 2);
assert.deepEqual((await pushSchema({ orders, customers, invoices }, other)).statementsToExecute, []);
await migrated.end();
