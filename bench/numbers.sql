-- What depends on how many generators and segments there are: a first draw, in processor time; the rows of worker_node;
-- the choice of a default. Of each kind 50 are drawn from for the first time.
\set QUIET on
SET client_min_messages = warning;

CREATE OR REPLACE PROCEDURE make(kind text, name text, count int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. count LOOP
    CASE kind
      WHEN 'generator' THEN PERFORM uid_generator_create(name || i);
      WHEN 'sticky' THEN PERFORM uid_generator_create(name || i, worker_policy => 'sticky');
      WHEN 'segment' THEN PERFORM segment_create(name || i);
    END CASE;
    COMMIT;
  END LOOP;
END
$$;

CREATE OR REPLACE PROCEDURE first_draws(kind text, name text, count int, label text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  sequence regclass;
  before bigint;
BEGIN
  FOR i IN 1 .. count LOOP
    sequence := format('%s.%I', CASE kind WHEN 'segment' THEN 'uid_segments' ELSE 'uid_generators' END, name || i);
    before := bench_cpu();
    IF kind = 'segment' THEN
      PERFORM segment_next(sequence);
    ELSE
      PERFORM uid_next(sequence);
    END IF;
    IF label IS NOT NULL THEN
      INSERT INTO spent VALUES (label, kind, bench_cpu() - before);
    END IF;
    COMMIT;
  END LOOP;
END
$$;

CREATE OR REPLACE PROCEDURE probe(label text, name text) LANGUAGE plpgsql AS $$
DECLARE
  kind text;
BEGIN
  FOREACH kind IN ARRAY ARRAY['generator', 'sticky', 'segment'] LOOP
    CALL make(kind, name || kind, 50);
    CALL first_draws(kind, name || kind, 50, label);
  END LOOP;
END
$$;
