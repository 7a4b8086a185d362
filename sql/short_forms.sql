-- Ids as short texts, and back. test/unit/short_form_test.cpp has the vectors of other implementations.
CREATE EXTENSION uidgen;
\pset null 'NULL'
\getenv source PG_ABS_SRCDIR
\set outcome :source '/test/outcome.sql'
\i :outcome

SELECT id, uid_to_base62(id), uid_to_base32(id)
  FROM (VALUES (0::bigint), (1), (61), (62), (117443343637549056), (8434178615911931332), (9223372036854775807)) v (id);
SELECT uid_from_base62('08ftHvL5CKm') AS base62, uid_from_base62('8ftHvL5CKm') AS without_zeros,
       uid_from_base32('0389-y355-c040-0') AS crockford, uid_from_base32('oLiO') AS look_alikes;

-- Round trips and order, also as an index sees them.
CREATE TABLE many AS
SELECT id, uid_to_base62(id) COLLATE "C" AS base62, uid_to_base32(id) COLLATE "C" AS base32
  FROM (SELECT hashint8extended(i, 0) & 9223372036854775807 >> (i % 60)::integer AS id FROM generate_series(1, 20000) i
        UNION SELECT unnest(uid_next_array(1000))) v;
SELECT bool_and(uid_from_base62(base62) = id) AS base62, bool_and(uid_from_base32(lower(base32)) = id) AS base32,
       bool_and(length(base62) = 11 AND length(base32) = 13) AS fixed_width, count(*) > 10000 AS many FROM many;
SELECT count(*) FILTER (WHERE base62 <= former62 OR base32 <= former32) AS out_of_order
  FROM (SELECT base62, base32, lag(base62) OVER w AS former62, lag(base32) OVER w AS former32
          FROM (SELECT DISTINCT id, base62, base32 FROM many) d WINDOW w AS (ORDER BY id)) v;
CREATE INDEX ON many (uid_to_base62(id));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM many WHERE uid_to_base62(id) = '08ftHvL5CKm';
RESET enable_seqscan;

-- NULL, and what is refused, with the position of the character.
SELECT uid_to_base62(NULL), uid_to_base32(NULL), uid_from_base62(NULL), uid_from_base32(NULL);
\pset format unaligned
\pset tuples_only on
\pset fieldsep '\n   '
\set ECHO none
SELECT statement, outcome('SELECT ' || statement) FROM (VALUES
  ('uid_to_base62(-1)'), ('uid_to_base32(-9223372036854775808)'),
  ('uid_from_base62('''')'), ('uid_from_base32('''')'), ('uid_from_base32(''--'')'),
  ('uid_from_base62(''ab-c'')'), ('uid_from_base62('' 1'')'), ('uid_from_base62(''äöü'')'), ('uid_from_base62(''12ü4'')'),
  ('uid_from_base62(''12€'')'), ('uid_from_base62(E''1\n'')'),
  ('uid_from_base62(''AzL8n0Y58m7'')'), ('uid_from_base62(''AzL8n0Y58m8'')'), ('uid_from_base62(repeat(''z'', 1000000))'),
  ('uid_from_base62(repeat(''0'', 1000000) || ''z'')'),
  ('uid_from_base32(''16u'')'), ('uid_from_base32(''16*'')'), ('uid_from_base32(''1 6'')'),
  ('uid_from_base32(''7ZZZ-ZZZZ-ZZZZ-Z'')'), ('uid_from_base32(''8000-0000-0000-0'')'), ('uid_from_base32(''7ZZZZZZZZZZZZ0'')')) AS v(statement);
\set ECHO all

DROP TABLE many;
DROP FUNCTION outcome;
DROP EXTENSION uidgen;
