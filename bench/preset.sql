-- What the preset baidu_cached can do in the long run: its layout's 8,192 ids a second, as in snowflake mode. Before, each
-- generator is driven as far ahead of the clock as it may be.
\set QUIET on
\t on
SET uidgen.max_wait = '1min';
SELECT uid_generator_create('baidu', 'baidu', lease_ms => lease_ms, max_ahead_ms => max_ahead_ms, when_full => when_full)
  FROM uid_preset WHERE preset = 'baidu_cached' \g /dev/null
CREATE TEMP TABLE rate (generator text, ids int, seconds float);
DO $$
DECLARE
  generator text;
  began float;
BEGIN
  FOREACH generator IN ARRAY '{uid_generators.baidu_cached,uid_generators.baidu}'::text[] LOOP
    PERFORM count(*) FROM unnest(uid_next_array(generator::regclass, 40 * 8192));
    began := extract(epoch FROM clock_timestamp());
    PERFORM count(*) FROM unnest(uid_next_array(generator::regclass, 10 * 8192));
    INSERT INTO rate VALUES (generator, 10 * 8192, extract(epoch FROM clock_timestamp()) - began);
  END LOOP;
END
$$;
SELECT 'Beyond the capacity of a preset', CASE generator WHEN 'uid_generators.baidu' THEN 'the same layout in snowflake mode' ELSE '`baidu_cached`' END,
       'ids a second', round(ids / seconds) FROM rate;
