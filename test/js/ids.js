// What becomes of ids in JavaScript, whose numbers are doubles: 53 bits of an integer.
// Started by test/tap/017_javascript.t; prints a line "ok - text" or "not ok - text" an assertion.
//
//   node ids.js json WEB DEFAULT      files with the JSON of 1,000 ids, and of the same ids as text
//   node ids.js pg WEB DEFAULT        connection strings of two databases
'use strict';
const fs = require('fs');

function check(holds, text) {
    console.log(`${holds ? 'ok' : 'not ok'} - ${text}`);
}

// ids: what came over as numbers; texts: the same as the server wrote them.
function compare(kind, ids, texts, survives) {
    const same = ids.filter((id, i) => String(id) === texts[i]).length;
    check(ids.length === 1000 && texts.length === 1000 && new Set(texts).size === 1000, `${kind}: 1000 ids`);
    if (survives) {
        check(same === 1000, `${kind}: each is the number that the server wrote`);
        check(ids.every(Number.isSafeInteger), `${kind}: each is a safe integer`);
        check(ids.every((id, i) => i === 0 || id > ids[i - 1]), `${kind}: they rise`);
        check(JSON.stringify(ids) === `[${texts.join(',')}]`, `${kind}: written as JSON they are the same again`);
    } else {
        check(same < 500, `${kind}: most are other numbers`);
        check(!ids.some(Number.isSafeInteger), `${kind}: none is a safe integer`);
        check(new Set(ids).size < 1000, `${kind}: several ids become one`);
    }
}

function compareFiles(kind, file, survives) {
    const [ids, texts] = JSON.parse(fs.readFileSync(file, 'utf8'));
    compare(kind, ids, texts, survives);
}

async function compareDatabase(kind, connectionString, survives) {
    const { Client, types } = require('pg');
    types.setTypeParser(20, Number); // bigint, as a web team has it that wants numbers
    const client = new Client({ connectionString });
    await client.connect();
    await client.query('CREATE TABLE item (id bigint PRIMARY KEY DEFAULT uid_next(), n integer)');
    const inserted = await client.query('INSERT INTO item (n) SELECT generate_series(1, 1000) RETURNING id, id::text AS text');
    compare(`${kind}, RETURNING`, inserted.rows.map((row) => row.id), inserted.rows.map((row) => row.text), survives);
    const found = await client.query('SELECT json_agg(id ORDER BY id) AS ids, json_agg(id::text ORDER BY id) AS texts FROM item');
    compare(`${kind}, json_agg`, found.rows[0].ids, found.rows[0].texts, survives);
    // A row is found again by the id that was read, as a parameter.
    let again = 0;
    for (const { id, text } of inserted.rows.slice(0, 100)) {
        const result = await client.query('SELECT id::text AS text FROM item WHERE id = $1', [id]);
        again += result.rows.length === 1 && result.rows[0].text === text ? 1 : 0;
    }
    if (survives)
        check(again === 100, `${kind}: a row is found by the id that was read`);
    else
        check(again < 50, `${kind}: most rows are not found by the id that was read`);
    const decoded = await client.query('SELECT max(id) AS id, bool_and(generated_at > now() - interval \'1 min\') AS recent FROM item, uid_decode(id)');
    check(decoded.rows[0].recent, `${kind}: the time is in the id`);
    await client.end();
}

async function main([what, web, usual]) {
    if (what === 'json') {
        compareFiles('js53, JSON', web, true);
        compareFiles('snowflake, JSON', usual, false);
        check(JSON.parse('9007199254740991') === Number.MAX_SAFE_INTEGER, 'the largest id of js53 is the largest safe integer');
    } else {
        await compareDatabase('js53', web, true);
        await compareDatabase('snowflake', usual, false);
    }
    console.log('end of ids.js');
}

main(process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
