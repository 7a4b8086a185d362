// What becomes of ids in JavaScript, whose numbers are doubles: 53 bits of an integer.
// Started by test/tap/017_javascript.t; prints a line "ok - text" or "not ok - text" an assertion.
//
//   node ids.js WEB DEFAULT      files with the JSON of 1,000 ids, and of the same ids as text
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

const [web, usual] = process.argv.slice(2);
compareFiles('js53, JSON', web, true);
compareFiles('snowflake, JSON', usual, false);
check(JSON.parse('9007199254740991') === Number.MAX_SAFE_INTEGER, 'the largest id of js53 is the largest safe integer');
console.log('end of ids.js');
