-- Moving a column, second part: uid_adopt() and uid_release(), which owners of tables call.
--
-- A plan is a list of lines: statements, and comments that begin with --. uid_adopt() and uid_release() return a plan.
-- Unless it is a dry run, they first lock the table, then make the plan, then run its statements one by one. So what
-- the plan says of rows still holds when it runs. These functions are VOLATILE, because a query of a STABLE function
-- would not see rows that were committed while the lock was waited for.

CREATE FUNCTION uid_internal.uid_adopt_plan(table_name regclass, column_name name, generator regclass)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  kept record;
  draw record;
  draws_from regclass;
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO kept FROM uid_internal.uid_kept_sequence(table_name, c.attnum, c.drawn_by, c.source);
  SELECT * INTO draw FROM uid_internal.uid_draw_expression(generator);
  draws_from := coalesce(draw.generator, draw.sequence);
  IF c.drawn_by = draw.drawn_by AND c.source = draws_from THEN
    RETURN NEXT format('-- column "%s" of table %s has DEFAULT %s already', column_name, c.relation, c.expression);
    RETURN;
  END IF;
  IF draw.generator IS NOT NULL THEN
    PERFORM uid_internal.uid_check_width(table_name, c.attnum, column_name);
  ELSE
    PERFORM uid_internal.uid_check_sequence(table_name, column_name, draw.sequence);
  END IF;

  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);
  RETURN NEXT format('-- former default: %s',
                     coalesce(c.expression, 'GENERATED ' || c.identity || ' AS IDENTITY', 'none'));
  IF draw.generator IS NOT NULL THEN
    RETURN NEXT uid_internal.uid_above_plan(table_name, column_name, draw.generator);
  ELSIF draw.sequence IS DISTINCT FROM kept.sequence THEN
    RETURN NEXT '-- nextval makes sessions discard a range that they have reserved below the largest id.';
    RETURN NEXT format('SELECT nextval(%L::regclass);', draw.sequence::text);
  END IF;
  IF c.identity = 'ALWAYS' THEN
    RETURN NEXT '-- GENERATED ALWAYS ends: INSERT may then name ids of its own.';
  END IF;
  IF c.identity IS NOT NULL THEN
    RETURN QUERY SELECT * FROM uid_internal.uid_keep_sequence_plan(kept.sequence, c.relation, column_name);
  END IF;
  -- While the column draws from a generator, its sequence counts nothing.
  IF kept.sequence IS NOT NULL AND (c.drawn_by LIKE 'uid_next%') IS NOT TRUE THEN
    RETURN NEXT '-- uid_release() reads in the comment how to go back.';
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', kept.sequence,
                       concat_ws(E'\n', kept.comment, 'kept by uid_adopt(); next value ' || kept.unused
                                 || coalesce(', ' || coalesce(c.identity, kept.noted_identity) || ' identity', '')));
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s;', c.relation, column_name, draw.expression);
  RETURN QUERY SELECT * FROM uid_internal.uid_grant_plan(table_name, draws_from);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_adopt_plan(regclass, name, regclass) IS
  'Returns the lines of uid_adopt(): statements, and comments that begin with --.';

CREATE FUNCTION uid_internal.uid_first_free(table_name regclass, column_name name, start bigint,
    OUT first numeric, OUT comments text[])
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  kept record;
  floor bigint;     -- ids of the generator are at or above it
  largest bigint;   -- largest id below floor
  collision bigint; -- the smallest id that the sequence would meet
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO kept FROM uid_internal.uid_kept_sequence(table_name, c.attnum, c.drawn_by, c.source);
  -- An hour for a clock that was ahead at the creation.
  IF c.drawn_by LIKE 'uid_next%' THEN
    EXECUTE format('SELECT %1$s.uid_lower_bound(g.created - interval ''1 hour'', g.generator)
                      FROM uid_internal.generators g WHERE g.generator = $1', uid_internal.uid_home())
      INTO floor USING c.source;
  END IF;
  EXECUTE format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I < coalesce($1, 9223372036854775807)', column_name,
                 c.relation) INTO largest USING floor;
  -- A counter above the floor was set there, as setval(max(id)) does. The sequence keeps to its stride.
  first := CASE WHEN kept.next >= floor THEN kept.noted_next ELSE kept.unused END;
  first := coalesce(start, CASE WHEN kept.increment > 0 THEN
                      first + greatest(ceil((largest + 1 - first) / kept.increment), 0) * kept.increment END);
  IF first IS NULL THEN
    RAISE EXCEPTION 'could not determine which numbers column "%" of table % had', column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The next value of its sequence is %s. The largest id below those of the generator is %s.',
                            coalesce(kept.next::text, 'not known'), coalesce(largest::text, 'none')),
            HINT = 'Pass as start a value beyond all numbers that a sequence has given to the column.';
  END IF;
  EXECUTE format('SELECT min(%1$I)::bigint FROM %2$s WHERE %1$I >= $1', column_name, c.relation)
    INTO collision USING first;
  IF collision - first < 4294967296 THEN
    RAISE EXCEPTION 'a sequence from % would soon meet id % of column "%" of table %', first, collision,
                    column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest id below those of the generator is %s.', coalesce(largest::text, 'none')),
            HINT = 'Pass as start a value that is followed by at least 2^32 unused ones.';
  END IF;
  comments := array_remove(ARRAY[
    format(CASE WHEN floor IS NULL THEN '-- largest id: %s'
                ELSE '-- largest id below those of the generator: %s; smallest id above: %s' END,
           coalesce(largest::text, 'none'), coalesce(collision::text, 'none')),
    '-- the sequence can count ' || (collision - first) || ' values before it meets that one',
    '-- note: setval(max(id)) would set the counter above ' || collision || '. After an import use max(id) FILTER '
      '(WHERE id < ' || collision || ').'], NULL);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_first_free(regclass, name, bigint) IS
  'Returns the first value of the sequence that a column goes back to, and comments on it. It fails if that value is '
  'not known, or if the sequence would soon meet ids of the column.';

CREATE FUNCTION uid_internal.uid_release_plan(table_name regclass, column_name name, start bigint)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  kept record;
  identity text;
  first numeric; -- the first value of the sequence; NULL: it continues
  comments text[] := '{"-- nextval continues on the same counter"}';
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO kept FROM uid_internal.uid_kept_sequence(table_name, c.attnum, c.drawn_by, c.source);
  IF c.drawn_by IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not draw its default from uidgen', column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Run SELECT * FROM uid_generator_columns to list the columns that draw from generators.';
  END IF;
  identity := CASE WHEN kept.sequence IS NULL THEN 'BY DEFAULT' ELSE kept.noted_identity END;
  IF (c.drawn_by = 'segment_next(regclass)' AND c.source = kept.sequence AND start IS NULL AND identity IS NULL)
     IS NOT TRUE THEN
    SELECT f.first, f.comments INTO first, comments FROM uid_internal.uid_first_free(table_name, column_name, start) f;
  END IF;
  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);
  RETURN QUERY SELECT unnest(comments);
  IF identity IS NULL THEN
    IF first IS NOT NULL THEN
      RETURN NEXT format('SELECT setval(%L::regclass, %s, false);', kept.sequence::text, first);
    END IF;
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass);', c.relation, column_name,
                       kept.sequence::text);
    RETURN QUERY SELECT * FROM uid_internal.uid_grant_plan(table_name, kept.sequence);
  ELSE
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', c.relation, column_name);
    IF kept.sequence IS NOT NULL THEN
      RETURN NEXT format('DROP SEQUENCE %s;', kept.sequence);
    END IF;
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', c.relation, column_name);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY%s;', c.relation, column_name,
                       identity, format(' (SEQUENCE NAME %s ', kept.sequence) || kept.options || ')');
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I RESTART WITH %s;', c.relation, column_name, first);
  END IF;
  IF kept.noted_next IS NOT NULL AND (kept.comment IS NOT NULL OR identity IS NULL) THEN
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', kept.sequence, kept.comment);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_release_plan(regclass, name, bigint) IS
  'Returns the lines of uid_release(): statements, and comments that begin with --.';

-- Estimates of the recursive queries of the catalog are so high that PostgreSQL would compile them.
CREATE FUNCTION uid_internal.uid_run_plan(table_name regclass, plan_query text, dry_run boolean, patience_ms integer)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET jit = off
SET lock_timeout = '100ms'
AS $$
DECLARE
  relation text := (SELECT format('%I.%I', n.nspname, t.relname) FROM pg_class t
                      JOIN pg_namespace n ON n.oid = t.relnamespace
                     WHERE t.oid = table_name AND t.relkind IN ('r', 'p') AND pg_has_role(t.relowner, 'USAGE'));
  began timestamptz := clock_timestamp();
  attempt_ms integer := 0;
  plan text[];
  line text;
BEGIN
  IF NOT dry_run AND relation IS NOT NULL -- else making the plan fails
     AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RAISE EXCEPTION 'a column can be moved only in a transaction of isolation level READ COMMITTED'
      USING ERRCODE = 'invalid_transaction_state',
            DETAIL = 'The snapshot of this transaction may be older than the largest id.';
  END IF;
  -- Sessions that need the table queue behind an attempt. So an attempt is short, and they go on between two attempts.
  -- It is shorter than deadlock_timeout, so that it ends before a session in a deadlock with it fails.
  LOOP
    attempt_ms := least(attempt_ms + 100, 500, nullif(patience_ms, 0));
    BEGIN
      PERFORM set_config('lock_timeout', attempt_ms::text, true);
      IF NOT dry_run AND relation IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
        -- Others may draw from the sequence of a column, too. LOCK takes no sequence, and this changes nothing.
        FOR line IN SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', d.objid::regclass, relation, a.attname)
                      FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
                      JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                       AND d.refobjid = table_name AND d.deptype = 'a' ORDER BY s.oid LOOP
          EXECUTE line;
        END LOOP;
      END IF;
      EXECUTE format('SELECT array_agg(p.line ORDER BY p.place) FROM uid_internal.%s WITH ORDINALITY p(line, place)',
                     plan_query) INTO plan;
      FOREACH line IN ARRAY plan LOOP
        IF NOT dry_run AND line NOT LIKE '--%' THEN
          EXECUTE line;
        END IF;
      END LOOP;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF extract(epoch FROM clock_timestamp() - began) * 1000 >= nullif(patience_ms, 0) THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(2 * attempt_ms / 1000.0);
  END LOOP;
  FOREACH line IN ARRAY plan LOOP
    -- So that a name cannot end a comment.
    RETURN NEXT CASE WHEN line LIKE '--%' THEN translate(line, E'\n\r', '  ') ELSE line END;
  END LOOP;
  IF dry_run THEN
    RETURN NEXT '-- This was a dry run. To run the statements in one transaction, add dry_run => false.';
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_run_plan(regclass, text, boolean, integer) IS
  'Returns the lines of a plan of uid_adopt() or uid_release(), and runs its statements unless it is a dry run. It '
  'retries as long as it does not get a lock, for patience_ms (0: without limit). Row-level security would hide ids, '
  'so it is an error where it applies.';

CREATE FUNCTION uid_adopt(table_name regclass, column_name name, generator regclass DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_home();
  SELECT uid_internal.uid_run_plan(table_name,
    pg_catalog.format('uid_adopt_plan(%L::regclass, %L::name, %L::regclass)', table_name::oid, column_name, generator::oid),
    coalesce(dry_run, true), (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'));
END;
COMMENT ON FUNCTION uid_adopt(regclass, name, regclass, boolean) IS
  'Gives a column of a table a default of uidgen instead of a sequence: uid_next(), uid_next() of the given '
  'generator, or segment_next() if the argument is any other sequence. It returns the statements and comments, and '
  'runs the statements only with dry_run => false, in one transaction that locks the table for a short time. While '
  'other sessions have the table locked, it retries for as long as lock_timeout says (0: without limit). It fails '
  'unless all new ids are above those in the column and fit its type, and unless each role that inserts may draw, or '
  'can be given USAGE. The sequence of the column is kept. Only the owner of the table may call it. uid_release() '
  'goes back.';

CREATE FUNCTION uid_release(table_name regclass, column_name name, start bigint DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_home();
  SELECT uid_internal.uid_run_plan(table_name,
    pg_catalog.format('uid_release_plan(%L::regclass, %L::name, %L::bigint)', table_name::oid, column_name, start),
    coalesce(dry_run, true), (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'));
END;
COMMENT ON FUNCTION uid_release(regclass, name, bigint, boolean) IS
  'Gives a column that draws from uidgen what it had before uid_adopt(): nextval() of its sequence, or its identity. A '
  'column without a sequence becomes GENERATED BY DEFAULT AS IDENTITY. The sequence continues above all values that it '
  'has given and above the largest id that is smaller than the ids of the generator, or with start. start is needed '
  'where those values are not known: the column owns no sequence, or its default was set by hand and the counter too. '
  'It returns the statements and comments, and runs the statements only with dry_run => false, as uid_adopt() does. '
  'Only the owner of the table may call it.';
