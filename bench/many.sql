-- What a call costs when 1,000 segments are in use by the server, the session and its transaction, and when only one
-- is. All queries take the argument from a column, the no-op too.
\ir marginal.sql
SELECT count(*) AS rows FROM turns \gset
INSERT INTO subject (name, call, calls, source) VALUES
  ('no-op',       'bench_noop(s#)',   20 * :rows, 'turns'),
  ('one segment', 'segment_next(s#)', 20 * :rows, 'same');
CALL pg_temp.measure('one segment, no other in use', :rounds);

INSERT INTO subject (name, call, calls, source) VALUES ('1,000 in turn', 'segment_next(s#)', 20 * :rows, 'turns');
CALL pg_temp.measure('one and the same, 999 others in use', :rounds);

SELECT 'Many segments', CASE name WHEN 'one segment' THEN phase ELSE name END, col, value
  FROM medians, LATERAL (VALUES ('× no-op', pg_temp.shown(times)), ('ns above no-op', round(above::numeric))) AS c (col, value)
 WHERE name <> 'no-op' ORDER BY place, phase DESC, col DESC;
