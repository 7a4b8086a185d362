-- Ids as short texts, and back. test/unit/short_form_test.cpp has the vectors of other implementations.
\a \t
CREATE EXTENSION uidgen;
\pset null 'NULL'
\getenv source PG_ABS_SRCDIR
\i :source/test/outcome.sql

SELECT id, uid_to_base62(id)
  FROM (VALUES (0::bigint), (1), (61), (62), (117443343637549056), (8434178615911931332), (9223372036854775807)) v (id);
SELECT uid_from_base62('08ftHvL5CKm') AS base62, uid_from_base62('8ftHvL5CKm') AS without_zeros;

-- Round trips, also as an index sees them. (test/unit/short_form_test.cpp: texts sort as ids do.)
CREATE TABLE many AS
SELECT id, uid_to_base62(id) COLLATE "C" AS base62
  FROM (SELECT hashint8extended(i, 0) & 9223372036854775807 >> (i % 60)::integer AS id FROM generate_series(1, 20000) i
        UNION SELECT unnest(uid_next_array(1000))) v;
SELECT bool_and(uid_from_base62(base62) = id AND length(base62) = 11) AS round_trip, count(*) > 10000 AS many FROM many;
CREATE INDEX ON many (uid_to_base62(id));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM many WHERE uid_to_base62(id) = '08ftHvL5CKm';
RESET enable_seqscan;

-- NULL, and what is refused, with the position of the character.
SELECT uid_to_base62(NULL), uid_from_base62(NULL);
\set ECHO none
SELECT * FROM outcomes('SELECT uid_to_base62(%s)', '-1', '-9223372036854775808');
SELECT * FROM outcomes('SELECT uid_from_base62(%s)', $$''$$, $$'ab-c'$$, $$' 1'$$, $$'äöü'$$, $$'12ü4'$$, $$'12€'$$, $$E'1\n'$$,
  $$'AzL8n0Y58m7'$$, $$'AzL8n0Y58m8'$$, $$repeat('z', 1000000)$$, $$repeat('0', 1000000) || 'z'$$);
\set ECHO all

DROP TABLE many;
DROP FUNCTION outcome, outcomes;
DROP EXTENSION uidgen;
