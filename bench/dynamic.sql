-- Draws from the segment whose step follows the demand, as fast as one session can, until the step grows no more. To
-- draw as many values as the step means to meet the point in a range where the next one is sized.
DO $$
DECLARE
  status text := 'SELECT step FROM segment_status WHERE name = ''dynamic''';
  before bigint;
  step bigint := 1000;
BEGIN
  LOOP
    before := step;
    PERFORM count(segment_next('uid_segments.dynamic'::regclass)) FROM generate_series(1, before);
    EXECUTE status INTO STRICT step;
    EXIT WHEN step = before;
  END LOOP;
END
$$;
SELECT 'The step of a segment', :'place', col, value
  FROM segment_status JOIN uid_stat USING (sequence), LATERAL (VALUES ('reached', step), ('after ranges', records)) AS c (col, value)
 WHERE name = 'dynamic';
