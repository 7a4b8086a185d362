-- What a call costs when 1,000 segments are in use by the server, the session and its transaction, and when only one
-- is. All queries take the argument from a column, the no-op too.
\ir marginal.sql
SELECT count(*) AS rows FROM turns \gset
INSERT INTO subject (name, call, calls, source) VALUES
  ('no-op',       'bench_noop(s#)',   20 * :rows, 'turns'),
  ('one segment', 'segment_next(s#)', 20 * :rows, 'same');
CALL pg_temp.measure('1 in use', :rounds);

INSERT INTO subject (name, call, calls, source) VALUES ('1,000 in turn', 'segment_next(s#)', 20 * :rows, 'turns');
CALL pg_temp.measure('1,000 in use', :rounds);

SELECT count(*) AS "segments with a slot" FROM segment_status;
SELECT phase AS segments, name, "ns, median", "x no-op, median" FROM medians ORDER BY phase COLLATE "C", place;
