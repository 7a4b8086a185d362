// Prisma: ids are BigInt, one by one, of many rows, and of nested rows.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';

// With a driver adapter the client has no engine. Generating it needs none either, but would download them.
execFileSync('node', ['node_modules/prisma/build/index.js', 'generate', '--schema=schema.prisma', '--no-hints'], {
    env: {
        ...process.env,
        CHECKPOINT_DISABLE: '1',
        PRISMA_QUERY_ENGINE_LIBRARY: '/bin/true',
        PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
    },
});
const { PrismaClient } = (await import('@prisma/client')).default;

const client = new pg.Client();
await client.connect();
await client.query('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text NOT NULL)');
await client.query('CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(),' +
    ' order_id bigint NOT NULL REFERENCES orders)');
await client.end();

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
