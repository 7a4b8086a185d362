// Objection: ids are strings, in graphs too, which take several statements or one with joins, and no JSON.
import assert from 'node:assert/strict';
import knexOf from 'knex';
import { Model } from 'objection';

const knex = knexOf({ client: 'pg', connection: {} });
Model.knex(knex);
await knex.schema.createTable('orders', (table) => {
    table.bigint('id').primary().defaultTo(knex.raw('uidgen.uid_next()'));
    table.text('item');
});
await knex.schema.createTable('lines', (table) => {
    table.bigint('id').primary().defaultTo(knex.raw('uidgen.uid_next()'));
    table.bigint('order_id').references('orders.id');
});

class Line extends Model {
    static tableName = 'lines';
}

class Order extends Model {
    static tableName = 'orders';
    static relationMappings = {
        lines: { relation: Model.HasManyRelation, modelClass: Line, join: { from: 'orders.id', to: 'lines.order_id' } },
    };
}

const order = await Order.query().insertGraph({ item: 'tea', lines: Array.from({ length: 16 }, () => ({})) });
const ids = order.lines.map(({ id }) => id).sort();
assert.equal(new Set(ids).size, 16);
for (const graph of ['withGraphFetched', 'withGraphJoined']) {
    const found = await Order.query()[graph]('lines').findById(order.id);
    assert.equal(found.id, order.id);
    assert.deepEqual(found.lines.map(({ id }) => id).sort(), ids);
    assert.ok(found.lines.every((line) => line.order_id === order.id));
}
await knex.destroy();
