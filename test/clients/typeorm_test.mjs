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
const Page = new EntitySchema({
    name: 'Page',
    tableName: 'pages',
    columns: {
        id: { type: 'bigint', primary: true, default: () => "uidgen.uid_next('uid_generators.web')" },
    },
});
const source = new DataSource({
    type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE, entities: [Order, Page],
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
// A call with a generator must not have the cast that drizzle-kit and MikroORM want, but both leave a function alone.
const differences = async (entity) => {
    const other = await new DataSource({ ...source.options, entities: [entity] }).initialize();
    const { upQueries } = await other.driver.createSchemaBuilder().log();
    await other.destroy();
    return upQueries.map(({ query }) => query);
};
const withDefault = (expression) => new EntitySchema({
    name: 'Page',
    tableName: 'pages',
    columns: { id: { type: 'bigint', primary: true, default: () => expression } },
});
assert.deepEqual(await differences(withDefault("uidgen.uid_next('uid_generators.web'::regclass)")),
    [`ALTER TABLE "pages" ALTER COLUMN "id" SET DEFAULT uidgen.uid_next('uid_generators.web'::regclass)`]);
await source.query("CREATE FUNCTION next_page_id() RETURNS bigint RETURN uidgen.uid_next('uid_generators.web')");
await source.query('ALTER TABLE pages ALTER id SET DEFAULT next_page_id()');
assert.deepEqual(await differences(withDefault('next_page_id()')), []);
await source.destroy();
