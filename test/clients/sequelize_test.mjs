// Sequelize: the default stands in the table and in each INSERT; create and bulkCreate return ids, which are strings.
import assert from 'node:assert/strict';
import { DataTypes, Sequelize } from 'sequelize';

const sequelize = new Sequelize({
    dialect: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT), username: process.env.PGUSER,
    database: process.env.PGDATABASE, logging: false,
});
const Order = sequelize.define('Order', {
    id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal('uidgen.uid_next()') },
    item: DataTypes.TEXT,
}, { tableName: 'orders', timestamps: false });
await sequelize.sync();

const order = await Order.create({ item: 'tea' });
assert.match(order.id, /^\d{16,19}$/);
assert.equal((await Order.findByPk(order.id)).item, 'tea');

const rows = await Order.bulkCreate(Array.from({ length: 1000 }, (_, n) => ({ item: `item ${n}` })));
const ids = rows.map((row) => BigInt(row.id));
assert.ok(ids.every((id, n) => id > (n === 0 ? BigInt(order.id) : ids[n - 1])));

await sequelize.sync({ alter: true });
const [[{ id }]] = await sequelize.query("INSERT INTO orders (item) VALUES ('by hand') RETURNING id");
assert.ok(BigInt(id) > ids[999]);
await sequelize.close();
