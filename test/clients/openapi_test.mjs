// OpenAPI: a client that is made from openapi.yaml gets an id as a string and sends it back; nothing is lost on the way.
// As a JSON number the same id arrives as another one.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { OpenAPIClientAxios } from 'openapi-client-axios';
import pg from 'pg';
import { parse } from 'yaml';

const db = new pg.Client();
await db.connect();
await db.query('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');
const { rows: [{ id }] } = await db.query("INSERT INTO orders (item) VALUES ('tea') RETURNING id");

const server = createServer(async (request, response) => {
    const { rows } = await db.query('SELECT id, item FROM orders WHERE id = $1', [request.url.split('/').pop()]);
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(rows[0]));
}).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const url = `http://127.0.0.1:${server.address().port}`;

const definition = parse(await readFile(new URL('openapi.yaml', import.meta.url), 'utf8'));
const api = new OpenAPIClientAxios({ definition, axiosConfigDefaults: { baseURL: url } });
const client = await api.init();
const { data } = await client.getOrder(id);
assert.deepEqual(data, { id, item: 'tea' });
assert.match(id, new RegExp(api.document.components.schemas.Id.pattern));
assert.equal((await client.getOrder({ id: data.id })).data.item, 'tea');
assert.notEqual(String(JSON.parse('117681045448435301')), '117681045448435301');

server.close();
await db.end();
