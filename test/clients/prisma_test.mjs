// Prisma: ids are BigInt, one by one, of many rows, and of nested rows. Migrate creates the tables, a reset leaves the
// extension, and push and pull keep the default.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';

// With a driver adapter the client has no engine, and Migrate one of WebAssembly. Neither needs the engines that it would
// download.
function run(...command) {
    return execFileSync('node', ['node_modules/prisma/build/index.js', ...command, '--config=prisma.config.mjs'], {
        encoding: 'utf8',
        env: {
            ...process.env,
            DATABASE_URL: 'postgresql://localhost',
            CHECKPOINT_DISABLE: '1',
            PRISMA_QUERY_ENGINE_LIBRARY: '/bin/true',
            PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
        },
    });
}
run('generate', '--no-hints');
const { PrismaClient } = (await import('@prisma/client')).default;

// The first migration creates the extension where it is missing, as in a test database. The adapter splits a script at each
// semicolon, so it would not take the page's statement.
mkdirSync('prisma-migrations/0_init', { recursive: true });
writeFileSync('prisma-migrations/migration_lock.toml', 'provider = "postgresql"\n');
writeFileSync('prisma-migrations/0_init/migration.sql', `
CREATE SCHEMA IF NOT EXISTS uidgen;
CREATE EXTENSION IF NOT EXISTS uidgen SCHEMA uidgen;
GRANT USAGE ON SCHEMA uidgen TO PUBLIC;
` + run('migrate', 'diff', '--from-empty', '--to-schema-datamodel=schema.prisma', '--script'));
run('migrate', 'deploy');

const prisma = new PrismaClient({ adapter: new PrismaPg({}) });

const order = await prisma.order.create({ data: { item: 'tea' } });
assert.equal(typeof order.id, 'bigint');
assert.ok(order.id > 2n ** 53n);
assert.deepEqual(await prisma.order.findUnique({ where: { id: order.id } }), order);

const data = Array(1000).fill({ item: 'item' });
const ids = (await prisma.order.createManyAndReturn({ data })).map(({ id }) => id);
assert.equal(ids.length, 1000);
assert.ok(ids.every((id, n) => id > (n === 0 ? order.id : ids[n - 1])));

const nested = { item: 'nested', lines: { create: [{}, {}] } };
const parent = await prisma.order.create({ data: nested, include: { lines: true } });
assert.equal(parent.lines.length, 2);
assert.ok(parent.lines.every(({ orderId }) => orderId === parent.id));

assert.throws(() => JSON.stringify(order), TypeError);

// An id that no number can hold.
const odd = ids.find((id) => id % 2n === 1n);
assert.equal(await prisma.order.findUnique({ where: { id: odd } }).then(({ id }) => id), odd);
await prisma.$disconnect();

const client = new pg.Client();
await client.connect();
run('migrate', 'reset', '--force', '--skip-generate');
const { rows: [row] } = await client.query("INSERT INTO orders (item) VALUES ('new') RETURNING id");
assert.ok(BigInt(row.id) > parent.id);

// Nothing to change, if a call that names a generator has the cast with which PostgreSQL shows it.
const inSync = (schema) => run('db', 'push', '--skip-generate', `--schema=${schema}`).includes('already in sync');
assert.ok(inSync('schema.prisma'));
await client.query("ALTER TABLE orders ALTER id SET DEFAULT uidgen.uid_next('uid_generators.web')");
const drawn = `id    BigInt @id @default(dbgenerated("uidgen.uid_next('uid_generators.web'::regclass)"))`;
assert.ok(run('db', 'pull', '--print').includes(drawn));
const schema = readFileSync('schema.prisma', 'utf8').replace(/id    BigInt .*/, drawn);
writeFileSync('web.prisma', schema);
assert.ok(inSync('web.prisma'));
writeFileSync('web.prisma', schema.replace('::regclass', ''));
assert.ok(!inSync('web.prisma'));
await client.end();
