// TypeORM: the column's default draws; save and insert return ids, which are strings; no difference of the schema is left.
import assert from 'node:assert/strict';
import { DataSource, EntitySchema } from 'typeorm';

const Order = new EntitySchema({
    name: 'Order',
    tableName: 'orders',
    columns: {
        id: { type: 'bigint', primary: true, default: () => 'uidgen.uid_next()' },
        item: { type: 'text' },
    },
});
const source = new DataSource({
    type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE, entities: [Order],
});
await source.initialize();
await source.synchronize();
const orders = source.getRepository(Order);

const order = await orders.save({ item: 'tea' });
assert.match(order.id, /^\d{16,19}$/);
assert.deepEqual(await orders.findOneBy({ id: order.id }), { id: order.id, item: 'tea' });

const rows = await orders.save(Array.from({ length: 1000 }, (_, n) => ({ item: `item ${n}` })), { chunk: 100 });
const ids = rows.map((row) => BigInt(row.id));
assert.ok(ids.every((id, n) => id > (n === 0 ? BigInt(order.id) : ids[n - 1])));
const { identifiers } = await orders.insert({ item: 'milk' });
assert.ok(BigInt(identifiers[0].id) > ids[999]);

assert.deepEqual((await source.driver.createSchemaBuilder().log()).upQueries, []);
await source.destroy();
