-- 1,000 segments, and tables of as many rows as :rows says, of 21 columns for the calls of a row: in turns a segment
-- follows the other, from column to column and on into the next row, and comes back after 1,000; in same it is always
-- the first one.
SELECT count(segment_create('many ' || i, 1, 10000000)) FROM generate_series(1, 1000) AS i;
SELECT format('CREATE TABLE %s AS SELECT %s FROM generate_series(0, %s) AS place,
                 (SELECT array_agg(sequence ORDER BY sequence) FROM uid_segment WHERE name LIKE ''many %%'') AS m (o)',
              t.name, string_agg(format('o[' || t.place || '] AS s%s', c, c), ', ' ORDER BY c), :rows - 1)
  FROM generate_series(1, 21) AS c,
       (VALUES ('turns', '(21 * place + %s - 1) %% 1000 + 1'), ('same', '1 + 0 * %s')) AS t (name, place)
 GROUP BY t.name, t.place \gexec
VACUUM ANALYZE turns, same;
