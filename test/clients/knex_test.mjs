// Knex: a migration's default by knex.raw; insert and batchInsert return ids, which are strings.
import assert from 'node:assert/strict';
import knexOf from 'knex';

const knex = knexOf({ client: 'pg', connection: {} });
const migration = {
    up: (knex) => knex.schema.createTable('orders', (table) => {
        table.bigint('id').primary().defaultTo(knex.raw('uidgen.uid_next()'));
        table.text('item');
    }),
    down: (knex) => knex.schema.dropTable('orders'),
};
const migrationSource = {
    getMigrations: async () => ['orders'],
    getMigrationName: (name) => name,
    getMigration: async () => migration,
};
await knex.migrate.latest({ migrationSource });

const [order] = await knex('orders').insert({ item: 'tea' }).returning('id');
assert.match(order.id, /^\d{16,19}$/);
assert.deepEqual(await knex('orders').where({ id: order.id }).select('item'), [{ item: 'tea' }]);

const rows = await knex.batchInsert('orders', Array(1000).fill({ item: 'item' }), 100).returning('id');
const ids = rows.map((row) => BigInt(row.id));
assert.equal(ids.length, 1000);
assert.ok(ids.every((id, n) => id > (n === 0 ? BigInt(order.id) : ids[n - 1])));

await knex.migrate.rollback({ migrationSource });
assert.equal(await knex.schema.hasTable('orders'), false);
await knex.destroy();
