import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';

// The adapter does not know the types that catalogs have: name and "char", and their arrays.
const types = { 18: 25, 19: 25, 1002: 1009, 1003: 1009 };
class Pool extends pg.Pool {
    async query(...query) {
        const result = await super.query(...query);
        result.fields?.forEach((field) => { field.dataTypeID = types[field.dataTypeID] ?? field.dataTypeID; });
        return result;
    }
}
export default {
    schema: 'schema.prisma',
    migrations: { path: 'prisma-migrations' },
    experimental: { adapter: true },
    engine: 'js',
    adapter: async () => new PrismaPg(new Pool({ allowExitOnIdle: true })),
};
