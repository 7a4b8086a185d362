// MikroORM: a new entity has its id; the schema generator finds no difference, and leaves the extension's tables alone.
import assert from 'node:assert/strict';
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql';

const Order = new EntitySchema({
    name: 'Order',
    tableName: 'orders',
    properties: {
        id: { type: 'bigint', primary: true, autoincrement: false, defaultRaw: 'uidgen.uid_next()' },
        item: { type: 'text' },
    },
});
const Page = new EntitySchema({
    name: 'Page',
    tableName: 'pages',
    properties: {
        id: { type: 'bigint', primary: true, autoincrement: false, defaultRaw: "uidgen.uid_next('uid_generators.web'::regclass)" },
    },
});
const options = {
    entities: [Order, Page],
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    dbName: process.env.PGDATABASE,
};
const orm = await MikroORM.init({
    ...options,
    schemaGenerator: {
        ignoreSchema: ['uidgen', 'uid_internal', 'uid_secrets', 'uid_generators', 'uid_segments', 'uid_keys'],
    },
});
await orm.schema.updateSchema();
assert.equal(await orm.schema.getUpdateSchemaSQL({ wrap: false }), '');

const em = orm.em.fork();
const order = em.create(Order, { item: 'tea' });
await em.flush();
assert.equal(typeof order.id, 'bigint');
assert.ok(order.id > 2n ** 53n);
assert.equal((await orm.em.fork().findOneOrFail(Order, { id: order.id })).item, 'tea');

const orders = Array.from({ length: 1000 }, (_, n) => em.create(Order, { item: `item ${n}` }));
await em.flush();
assert.ok(orders.every(({ id }, n) => id > (n === 0 ? order.id : orders[n - 1].id)));
const [{ default: drawn }] = await orm.em.execute(
    "SELECT column_default AS default FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'id'");
assert.equal(drawn, 'uidgen.uid_next()');
await orm.close();

// Without ignoreSchema it would drop them, and without autoincrement: false the column gets a sequence.
const eager = await MikroORM.init(options);
assert.match(await eager.schema.getUpdateSchemaSQL(), /drop table if exists "uidgen"."worker_node" cascade/);
await eager.close();
const Serial = new EntitySchema({
    name: 'Serial',
    tableName: 'serials',
    properties: { id: { type: 'bigint', primary: true, defaultRaw: 'uidgen.uid_next()' } },
});
const serial = await MikroORM.init({ ...options, entities: [Serial] });
assert.match(await serial.schema.getCreateSchemaSQL(), /"id" bigserial primary key/);
await serial.close();
