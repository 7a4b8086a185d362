-- Moving a column, second part: uid_adopt() and uid_release(), which owners of tables call.
--
-- A plan is a list of lines: statements, and comments that begin with --. uid_adopt() and uid_release() return a plan.
-- Unless it is a dry run, they first lock the table, then make the plan, then run its statements one by one. So what
-- the plan says of rows still holds when it runs. These functions are VOLATILE, because a query of a STABLE function
-- would not see rows that were committed while the lock was waited for.

-- The statements of a plan belong into one transaction of the coordinator, but Citus must run some on all nodes.
CREATE FUNCTION uid_internal.uid_distributed_plan(table_name regclass, column_name name, generator regclass)
RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  is_distributed boolean := false;
  home text := uid_internal.uid_home();
  chosen text := coalesce(generator, (SELECT g.generator FROM uid_internal.generators g WHERE g.is_default))::text;
  furthest bigint;
BEGIN
  IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
    EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition d WHERE d.logicalrelid = $1)'
      INTO is_distributed USING table_name;
  END IF;
  IF NOT is_distributed THEN
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO furthest;
  RETURN ARRAY[
    '-- The table is distributed by Citus, so dry_run => false fails. Run these statements yourself.',
    '-- They need the generator on each node, and a column of type bigint without an identity.',
    format('SELECT run_command_on_all_nodes(%L);',
           format('SELECT %s.uid_generator_raise(%L, %s)', home, chosen, coalesce(furthest, 0))),
    format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.uid_next(%s);', table_name, column_name, home,
           quote_literal(generator::text) || '::text::regclass')];
END
$$;
COMMENT ON FUNCTION uid_internal.uid_distributed_plan(regclass, name, regclass) IS
  'Returns what a person can do in the place of uid_adopt() for a table that Citus distributes; NULL for any other.';

CREATE FUNCTION uid_internal.uid_adopt_plan(table_name regclass, column_name name, generator regclass)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  kept record;
  is_generator boolean := generator IS NULL
    OR EXISTS (SELECT FROM uid_internal.generators g WHERE g.generator = uid_adopt_plan.generator);
  grants text;
  chosen regclass := coalesce(generator, (SELECT g.generator FROM uid_internal.generators g WHERE g.is_default));
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO kept FROM uid_internal.uid_sequence_next(c.sequence);
  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);
  RETURN NEXT format('-- former default: %s',
                     coalesce(c.expression, 'GENERATED ' || c.identity || ' AS IDENTITY', 'none'));
  grants := uid_internal.uid_grant_plan(table_name, chosen, c.identity IS NOT NULL AND chosen = c.sequence);
  IF is_generator THEN
    PERFORM uid_internal.uid_check_width(table_name, c.attnum, column_name);
  END IF;
  RETURN NEXT uid_internal.uid_beyond_plan(table_name, column_name, chosen, is_generator);
  IF NOT is_generator AND generator IS DISTINCT FROM c.sequence THEN
    RETURN NEXT '-- nextval makes sessions discard a range that they have reserved below the largest id.';
    RETURN NEXT format('SELECT nextval(%L::regclass);', generator::text);
  END IF;
  IF c.identity IS NOT NULL THEN
    RETURN QUERY SELECT * FROM uid_internal.uid_keep_sequence_plan(c.sequence, c.relation, column_name);
  END IF;
  IF is_generator THEN
    RETURN QUERY SELECT unnest(ARRAY[
                          '-- Imports and ORMs send setval(max(id)).',
                          format('ALTER SEQUENCE %s AS bigint MAXVALUE 9223372036854775807;', q.seqrelid::regclass)])
      FROM pg_depend d JOIN pg_sequence q ON q.seqrelid = d.objid
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = table_name
       AND d.refobjsubid = c.attnum AND d.deptype IN ('a', 'i') AND q.seqmax < 9223372036854775807
     ORDER BY q.seqrelid::regclass::text COLLATE "C";
  END IF;
  -- While the column draws from a generator, its sequence counts nothing.
  IF c.sequence IS NOT NULL AND c.drawn_by IS DISTINCT FROM 'uid_next' THEN
    RETURN NEXT '-- uid_release() reads in the comment how to go back.';
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', c.sequence, concat_ws(E'\n', kept.comment, format(
      'kept by uid_adopt(); next value %s%s',
      greatest(kept.next, kept.noted_next, (uid_internal.uid_sequence_next(c.segment)).next),
      ', ' || coalesce(c.identity, kept.noted_identity) || ' identity')));
  END IF;
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.%s(%s);', c.relation, column_name,
                     uid_internal.uid_home(), CASE WHEN is_generator THEN 'uid_next' ELSE 'segment_next' END,
                     quote_literal(generator::text) || '::regclass');
  RETURN NEXT grants;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_adopt_plan(regclass, name, regclass) IS
  'Returns the lines of uid_adopt(): statements, and comments that begin with --.';

CREATE FUNCTION uid_internal.uid_first_free(table_name regclass, column_name name, start bigint,
    OUT first numeric, OUT line text)
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
  SELECT * INTO kept FROM uid_internal.uid_sequence_next(c.sequence);
  -- An hour for a clock that was ahead at the creation.
  EXECUTE format('SELECT %1$s.uid_lower_bound(g.created - interval ''1 hour'', g.generator)
                    FROM uid_internal.generators g WHERE g.generator = $1', uid_internal.uid_home())
    INTO floor USING c.generator;
  EXECUTE format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I < coalesce($1, 9223372036854775807)', column_name,
                 c.relation) INTO largest USING floor;
  -- A counter above the floor was set there, as setval(max(id)) does. The sequence keeps to its stride.
  first := CASE WHEN kept.next >= floor THEN kept.noted_next
                ELSE greatest(kept.next, kept.noted_next, (uid_internal.uid_sequence_next(c.segment)).next) END;
  first := coalesce(start, CASE WHEN kept.increment > 0 THEN
                      first + greatest(ceil((largest + 1 - first) / kept.increment), 0) * kept.increment END);
  EXECUTE format('SELECT min(%1$I)::bigint FROM %2$s WHERE %1$I >= $1', column_name, c.relation)
    INTO collision USING coalesce(first, floor);
  IF first IS NULL OR collision - first < 4294967296 THEN
    RAISE EXCEPTION 'a sequence of column "%" of table % cannot begin at %', column_name, c.relation,
                    coalesce(first::text, 'an unknown number')
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest small id is %s, and the smallest one that a sequence could meet is %s.',
                            coalesce(largest::text, 'none'), coalesce(collision::text, 'none')),
            HINT = 'Pass as start a value beyond all numbers that a sequence has given to the column, which is '
                   'followed by at least 2^32 unused ones.';
  END IF;
  line := format('-- largest small id: %s', coalesce(largest::text, 'none'))
          || CASE WHEN collision IS NULL THEN '' ELSE
               format('; the sequence can count %s values before it meets %s. After an import use setval(max(id) '
                      'FILTER (WHERE id < %2$s)).', collision - first, collision) END;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_first_free(regclass, name, bigint) IS
  'Returns the first value of the sequence that a column goes back to, and a comment on it. It fails if that value is '
  'not known, or if the sequence would soon meet ids of the column.';

CREATE FUNCTION uid_internal.uid_release_plan(table_name regclass, column_name name, start bigint)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  c record;
  kept record;
  free record;
  identity text;
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  SELECT * INTO kept FROM uid_internal.uid_sequence_next(c.sequence);
  IF c.drawn_by IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not draw its default from uidgen', column_name, c.relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Run SELECT * FROM uid_generator_columns to list the columns that draw from generators.';
  END IF;
  identity := CASE WHEN c.sequence IS NULL THEN 'BY DEFAULT' ELSE kept.noted_identity END;
  SELECT * INTO free FROM uid_internal.uid_first_free(table_name, column_name, start);
  RETURN NEXT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', c.relation);
  RETURN NEXT free.line;
  IF identity IS NULL THEN
    RETURN NEXT format('SELECT setval(%L::regclass, %s, false);', c.sequence::text, free.first);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass);', c.relation, column_name,
                       c.sequence::text);
    RETURN NEXT uid_internal.uid_grant_plan(table_name, c.sequence, false);
  ELSE
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT;', c.relation, column_name);
    RETURN NEXT 'DROP SEQUENCE ' || c.sequence || ';';
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', c.relation, column_name);
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY%s;', c.relation, column_name,
                       identity, format(' (SEQUENCE NAME %s ', c.sequence) || kept.options || ')');
    RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I RESTART WITH %s;', c.relation, column_name, free.first);
  END IF;
  IF kept.noted_next IS NOT NULL THEN
    RETURN NEXT format('COMMENT ON SEQUENCE %s IS %L;', c.sequence, kept.comment);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_release_plan(regclass, name, bigint) IS
  'Returns the lines of uid_release(): statements, and comments that begin with --.';

-- Estimates of the recursive queries of the catalog are so high that PostgreSQL would compile them.
CREATE FUNCTION uid_internal.uid_move(table_name regclass, column_name name, is_adoption boolean, generator regclass,
    start bigint, dry_run boolean, patience_ms integer) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET row_security = off
SET jit = off
SET lock_timeout = '100ms'
AS $$
DECLARE
  began timestamptz := clock_timestamp();
  attempt_ms integer := 0;
  c record;
  plan text[];
  line text;
BEGIN
  SELECT * INTO c FROM uid_internal.uid_movable_column(table_name, column_name);
  plan := uid_internal.uid_distributed_plan(table_name, column_name, generator);
  IF is_adoption AND dry_run IS NOT FALSE AND plan IS NOT NULL THEN
    RETURN QUERY SELECT p FROM unnest(plan) p WHERE p <> '';
    RETURN;
  ELSIF plan IS NOT NULL THEN
    RAISE EXCEPTION 'table % is distributed by Citus', c.relation
      USING ERRCODE = 'feature_not_supported',
            HINT = CASE WHEN is_adoption THEN 'Run the statements that a dry run shows.'
                   ELSE 'Set another default with ALTER TABLE.' END;
  END IF;
  IF NOT dry_run AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
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
      IF NOT dry_run THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', c.relation);
        -- Others may draw from the sequence of a column, too. LOCK takes no sequence, and this changes nothing.
        IF c.sequence IS NOT NULL AND c.identity IS NULL THEN
          EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', c.sequence, c.relation, column_name);
        END IF;
      END IF;
      IF is_adoption THEN
        plan := ARRAY(SELECT uid_internal.uid_adopt_plan(table_name, column_name, generator));
      ELSE
        plan := ARRAY(SELECT uid_internal.uid_release_plan(table_name, column_name, start));
      END IF;
      FOREACH line IN ARRAY plan LOOP
        CONTINUE WHEN dry_run IS NOT FALSE OR line IS NULL OR line LIKE '--%';
        EXECUTE line;
      END LOOP;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF extract(epoch FROM clock_timestamp() - began) * 1000 >= nullif(patience_ms, 0) THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep(2 * attempt_ms / 1000.0);
  END LOOP;
  -- So that a name cannot end a comment.
  RETURN QUERY SELECT CASE WHEN p LIKE '--%' THEN translate(p, E'\n\r', '  ') ELSE p END
    FROM unnest(plan || CASE WHEN dry_run IS NOT FALSE THEN
      '-- This was a dry run. To run the statements in one transaction, add dry_run => false.' END) p WHERE p <> '';
END
$$;
COMMENT ON FUNCTION uid_internal.uid_move(regclass, name, boolean, regclass, bigint, boolean, integer) IS
  'Returns the lines of a plan of uid_adopt() or uid_release(), and runs its statements unless it is a dry run. It '
  'retries as long as it does not get a lock, for patience_ms (0: without limit). Row-level security would hide ids, '
  'so it is an error where it applies.';

CREATE FUNCTION uid_adopt(table_name regclass, column_name name, generator regclass DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_home();
  SELECT uid_internal.uid_move(table_name, column_name, true, generator, NULL::bigint, dry_run,
    (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'));
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
  SELECT uid_internal.uid_move(table_name, column_name, false, NULL::regclass, start, dry_run,
    (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout'));
END;
COMMENT ON FUNCTION uid_release(regclass, name, bigint, boolean) IS
  'Gives a column that draws from uidgen what it had before uid_adopt(): nextval() of its sequence, or its identity. A '
  'column without a sequence becomes GENERATED BY DEFAULT AS IDENTITY. The sequence continues above all values that it '
  'has given and above the largest id that is smaller than the ids of the generator, or with start. start is needed '
  'where those values are not known: the column owns no sequence, or its default was set by hand and the counter too. '
  'It returns the statements and comments, and runs the statements only with dry_run => false, as uid_adopt() does. '
  'Only the owner of the table may call it.';
