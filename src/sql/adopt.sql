-- Moving a column from a sequence to uidgen and back: uid_adopt() and uid_release(), which owners of tables call.
--
-- A plan is a list of lines: statements, and comments that begin with --. uid_adopt() and uid_release() return a plan.
-- Unless it is a dry run, they first lock the table, then make the plan, then run its statements one by one. So what
-- the plan says of rows still holds when it runs. These functions are VOLATILE, because a query of a STABLE function
-- would not see rows that were committed while the lock was waited for.
--
-- What the column was is noted in the comment of its sequence, which a dump has, too: the next value, because imports
-- set the counter to the largest id of the generator, and the identity.
-- With this search_path a relation's name is printed with its schema.

CREATE FUNCTION uid_internal.uid_beyond_plan(table_name regclass, column_name name, c record,
    source regclass, is_generator boolean) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  next numeric;
  stride bigint := 1;
  end_of text := 'max';
  furthest bigint;
  above text; -- the first preset whose ids are larger now, and the words about it; NULL: none
  -- Ids of a generator do not matter to the sequence that the column has or had.
  remedy text := CASE WHEN source IS DISTINCT FROM c.sequence THEN 'pass a generator'
                      WHEN c.identity IS NOT NULL THEN 'keep its identity'
                      ELSE format('run ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.segment_next(%L::regclass)',
                                  table_name, column_name, uid_internal.uid_home(), source::text) END;
BEGIN
  IF is_generator THEN
    PERFORM uid_internal.uid_check_width(table_name, column_name);
    EXECUTE format('SELECT %s.uid_next(%s)', uid_internal.uid_home(), quote_literal(source::text) || '::regclass')
      INTO next;
  ELSE
    -- Of an attached segment, only the registry knows which values come next.
    SELECT q.seqincrement, CASE WHEN q.seqincrement > 0 THEN 'max' ELSE 'min' END INTO stride, end_of
      FROM pg_sequence q JOIN pg_class s ON s.oid = q.seqrelid AND s.relpersistence = 'p'
     WHERE q.seqrelid = source
       AND NOT EXISTS (SELECT FROM uid_internal.segments g WHERE g.sequence = source AND g.fleet > 0);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'column "%" of table % cannot draw from %', column_name, table_name, source
        USING ERRCODE = 'wrong_object_type',
              HINT = 'Pass a generator, or a permanent sequence that is not attached to a fleet''s registry.';
    END IF;
    next := uid_internal.uid_sequence_next(source);
  END IF;
  EXECUTE format('SELECT %s(%I)::bigint FROM %s', end_of, column_name, table_name) INTO furthest;
  IF (furthest - next) * stride >= 0 THEN
    EXECUTE format('SELECT quote_literal(preset) FROM (SELECT preset, row_number() OVER () AS place, '
                   '%1$s.uid_lower_bound(clock_timestamp(), epoch, tick_us, '
                   'datacenter_bits + worker_bits + sequence_bits) AS first FROM %1$s.uid_preset) p '
                   'WHERE first > $1 ORDER BY place LIMIT 1', uid_internal.uid_home()) INTO above USING furthest;
    above := ', or pass a generator with larger ids: uid_generator_create(''name'', ' || above
             || format(', above => %s)', furthest);
    RAISE EXCEPTION 'ids of % would not be beyond those in column "%" of table %', source, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The next id is %s, and the column has the id %s.', next, furthest),
            HINT = CASE WHEN is_generator THEN
                     format('Call again when the clock is past the time of that id%s.', above)
                   ELSE
                     format('If the column has ids of a generator, %s. Otherwise run SELECT setval(%L, %s(%I)) '
                            'FROM %s.',
                            remedy, source::text, end_of, column_name, table_name) END;
  END IF;
  RETURN format('-- furthest id: %s; new ids of %s are from %s on', coalesce(furthest::text, 'none'), source, next);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_beyond_plan(regclass, name, record, regclass, boolean) IS
  'Returns the comment that says which ids a column gets now, and fails unless they fit and are beyond those in it.';

CREATE FUNCTION uid_internal.uid_grant_plan(table_name regclass, sequence regclass, is_new boolean) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = sequence);
  roles text := (
    SELECT string_agg(quote_ident(r.name), ', ' ORDER BY r.name)
      FROM (SELECT DISTINCT CASE x.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(x.grantee) END
              FROM pg_class c
             CROSS JOIN LATERAL (SELECT coalesce(c.relacl, acldefault('r', c.relowner)) UNION ALL
                                 SELECT a.attacl FROM pg_attribute a WHERE a.attrelid = c.oid) g(acl)
             CROSS JOIN LATERAL aclexplode(g.acl) x
             WHERE c.oid = table_name AND x.privilege_type = 'INSERT' AND x.grantee <> owner) r(name)
     WHERE is_new OR NOT has_sequence_privilege(r.name, sequence, 'USAGE, UPDATE'));
  line text := format('GRANT USAGE ON SEQUENCE %s TO ', sequence) || roles || ';';
BEGIN
  IF line IS NOT NULL AND NOT pg_has_role(owner, 'USAGE')
     AND NOT has_sequence_privilege(sequence, 'USAGE WITH GRANT OPTION') THEN
    RAISE EXCEPTION 'roles that insert into table % may not draw from %', table_name, sequence
      USING ERRCODE = 'insufficient_privilege', HINT = format('The owner of %s can run: %s', sequence, line);
  END IF;
  RETURN line;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_grant_plan(regclass, regclass, boolean) IS
  'Returns the statement that lets each role that may insert into a table draw from a sequence; fails if the caller '
  'cannot run it.';

-- A plan is run in one transaction. Of a table that Citus distributes, some statements must run on all nodes.
CREATE FUNCTION uid_internal.uid_adopt_plan(table_name regclass, column_name name, c record, generator regclass,
    is_excluded boolean)
RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  chosen regclass := coalesce(generator, (SELECT g.generator FROM uid_internal.generators g WHERE g.is_default));
  is_generator boolean := generator IS NULL
    OR EXISTS (SELECT FROM uid_internal.generators g WHERE g.generator = uid_adopt_plan.generator);
  of_column text := format('ALTER TABLE %s ALTER COLUMN %I ', table_name, column_name);
  furthest bigint;
  beyond text;
  grants text;
BEGIN
  IF c.is_distributed THEN
    EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO furthest;
    RETURN ARRAY[
      '-- The table is distributed by Citus, so dry_run => false fails. Run these statements yourself.',
      '-- They need the generator on each node, and a column of type bigint without an identity.',
      format('SELECT run_command_on_all_nodes(%L);',
             format('SELECT %s.uid_generator_raise(%L, %s)', home, chosen, coalesce(furthest, 0))),
      of_column || format('SET DEFAULT %s.uid_next(%s);', home, quote_literal(generator::text) || '::text::regclass')];
  END IF;
  grants := uid_internal.uid_grant_plan(table_name, chosen, c.identity IS NOT NULL AND chosen = c.sequence);
  beyond := uid_internal.uid_beyond_plan(table_name, column_name, c, chosen, is_generator);
  RETURN ARRAY[
      format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', table_name),
      format('-- former default: %s', coalesce(c.expression, 'GENERATED ' || c.identity || ' AS IDENTITY', 'none')),
      beyond,
      (SELECT '-- Make partitions for the new ids first: the table is partitioned by ranges of this column.'
         FROM pg_partitioned_table p
        WHERE is_generator AND p.partrelid = table_name AND p.partstrat = 'r' AND c.attnum = ANY (p.partattrs::int2[]))]
    || CASE WHEN NOT is_generator AND (generator IS DISTINCT FROM c.sequence OR c.identity IS NULL) THEN ARRAY[
      '-- All sessions discard what they have reserved below the largest id, even in open transactions.',
      -- nextval() may answer from what this session has cached, without moving the counter.
      (SELECT 'DISCARD SEQUENCES;' FROM pg_sequence q WHERE q.seqrelid = generator AND q.seqcache > 1),
      format('SELECT nextval(%L::regclass);', generator::text),
      CASE WHEN NOT is_excluded THEN
        format('SELECT first FROM %s.segment_reserve(%L::regclass, 1::bigint);', home, generator::text) END] END
    || CASE WHEN c.identity IS NOT NULL THEN (
    SELECT ARRAY[
      '-- DROP IDENTITY drops the sequence, so another one with the same name and counter takes its place.',
      format('ALTER SEQUENCE %s RENAME TO %I;', c.sequence, x.aside),
      format('CREATE SEQUENCE %s AS %s %s;', c.sequence, format_type(q.seqtypid, NULL), c.options),
      format('SELECT setval(%L::regclass, last_value, is_called) FROM %s.%I;', c.sequence::text,
             s.relnamespace::regnamespace, x.aside),
      of_column || 'DROP IDENTITY;',
      format('ALTER SEQUENCE %s OWNER TO %s;', c.sequence, s.relowner::regrole),
      format('ALTER SEQUENCE %s OWNED BY %s.%I;', c.sequence, table_name, column_name)]
      FROM pg_class s JOIN pg_sequence q ON q.seqrelid = s.oid, format('uid_adopt_%s', s.oid) x(aside)
     WHERE s.oid = c.sequence) END
    || CASE WHEN is_generator THEN ARRAY(
    SELECT unnest(ARRAY[
      '-- Imports and ORMs send setval(max(id)).',
      format('ALTER SEQUENCE %s AS bigint MAXVALUE 9223372036854775807;', q.seqrelid::regclass)])
      FROM pg_depend d JOIN pg_sequence q ON q.seqrelid = d.objid
     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = table_name
       AND d.refobjsubid = c.attnum AND d.deptype IN ('a', 'i') AND q.seqmax < 9223372036854775807
     ORDER BY q.seqrelid::regclass::text COLLATE "C") END
    -- While the column draws from a generator, its sequence counts nothing.
    || CASE WHEN c.sequence IS NOT NULL AND c.drawn_by IS DISTINCT FROM 'uid_next' THEN ARRAY[
      '-- The comment tells uid_release() how to go back.',
      format('COMMENT ON SEQUENCE %s IS %L;', c.sequence, concat_ws(E'\n', c.comment,
             format('kept by uid_adopt(); next value %s%s', c.next,
                    ', ' || coalesce(c.identity, c.noted_identity) || ' identity')))] END
    || ARRAY[
      of_column || format('SET DEFAULT %s.%s(%s);', home,
                          CASE WHEN is_generator THEN 'uid_next' ELSE 'segment_next' END,
                          quote_literal(generator::text) || '::regclass'),
      grants];
END
$$;
COMMENT ON FUNCTION uid_internal.uid_adopt_plan(regclass, name, record, regclass, boolean) IS
  'Returns the lines of uid_adopt(): statements, and comments that begin with --. is_excluded: the caller''s '
  'transaction has altered the sequence.';

CREATE FUNCTION uid_internal.uid_release_plan(table_name regclass, column_name name, c record, start bigint)
RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  identity text := CASE WHEN c.sequence IS NULL THEN 'BY DEFAULT' ELSE c.noted_identity END;
  of_column text := format('ALTER TABLE %s ALTER COLUMN %I ', table_name, column_name);
  largest bigint;   -- largest id below those of the generator
  first numeric;    -- of the sequence
  collision bigint; -- the smallest id that the sequence would meet
BEGIN
  IF c.drawn_by IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not draw its default from uidgen', column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Run SELECT * FROM uid_generator_columns to list the columns that draw from generators.';
  END IF;
  EXECUTE format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I < coalesce($1, 9223372036854775807)', column_name,
                 table_name) INTO largest USING c.floor;
  -- The sequence keeps to its stride.
  first := coalesce(start, CASE WHEN c.increment > 0 THEN
                      c.next + greatest(ceil((largest + 1 - c.next) / c.increment), 0) * c.increment END);
  EXECUTE format('SELECT min(%1$I)::bigint FROM %2$s WHERE %1$I >= $1', column_name, table_name)
    INTO collision USING coalesce(first, c.floor);
  IF first IS NULL OR collision - first < 4294967296 THEN
    RAISE EXCEPTION 'a sequence of column "%" of table % cannot begin at %', column_name, table_name,
                    coalesce(first::text, 'an unknown number')
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format(CASE WHEN largest IS NULL
                   THEN 'The table has no small id, and the smallest id that a sequence could meet is %2$s.'
                   ELSE 'The largest small id is %1$s, and the smallest id that a sequence could meet is %2$s.' END,
                            largest, coalesce(collision::text, 'none')),
            HINT = 'Pass as start a value beyond all numbers that a sequence of the column has given (1 if none has), '
                   'which is followed by at least 2^32 unused ones.';
  END IF;
  RETURN ARRAY[
      format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', table_name),
      format('-- largest small id: %s', coalesce(largest::text, 'none'))
      || CASE WHEN collision IS NULL THEN '' ELSE
           format('; the sequence can count %s values before it meets %s. After an import use setval(max(id) '
                  'FILTER (WHERE id < %2$s)).', collision - first, collision) END]
    || CASE WHEN identity IS NULL THEN ARRAY[
      -- All sessions discard what nextval() has cached, because the sequence gets a new file.
      format('ALTER SEQUENCE %s RESTART WITH %s;', c.sequence, first),
      of_column || format('SET DEFAULT nextval(%L::regclass);', c.sequence::text),
      uid_internal.uid_grant_plan(table_name, c.sequence, false)]
    ELSE ARRAY[
      of_column || 'DROP DEFAULT;',
      'DROP SEQUENCE ' || c.sequence || ';',
      of_column || 'SET NOT NULL;',
      of_column || format('ADD GENERATED %s AS IDENTITY%s;', identity,
                          format(' (SEQUENCE NAME %s ', c.sequence) || c.options || ')'),
      of_column || format('RESTART WITH %s;', first)] END
    || CASE WHEN c.noted_next IS NOT NULL THEN format('COMMENT ON SEQUENCE %s IS %L;', c.sequence, c.comment) END;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_release_plan(regclass, name, record, bigint) IS
  'Returns the lines of uid_release(): statements, and comments that begin with --.';

-- Estimates of recursive queries of the catalog are so high that PostgreSQL would compile them.
CREATE FUNCTION uid_internal.uid_move(table_name regclass, column_name name, is_adoption boolean, generator regclass,
    start bigint, dry_run boolean, patience interval DEFAULT pg_catalog.current_setting('lock_timeout')::interval)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
SET lock_timeout = '100ms'
AS $$
DECLARE
  began timestamptz := clock_timestamp();
  patience_ms bigint := extract(epoch FROM patience) * 1000;
  attempt_ms integer;
  holds_first boolean;
  moved regclass[];
  -- The caller's transaction has altered it, so no other one that is open has drawn from it.
  is_excluded boolean := EXISTS (
    SELECT FROM pg_locks k WHERE k.pid = pg_backend_pid() AND k.locktype = 'relation' AND k.relation = generator
       AND k.granted AND k.mode IN ('ShareRowExclusiveLock', 'AccessExclusiveLock'));
  c record;
  plan text[];
  line text;
BEGIN
  IF NOT dry_run AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    RAISE EXCEPTION 'a column can be moved only in a transaction of isolation level READ COMMITTED'
      USING ERRCODE = 'invalid_transaction_state',
            DETAIL = 'The snapshot of this transaction may be older than the largest id.';
  END IF;
  -- Sessions that need the table queue behind an attempt. So an attempt is short, and they go on between two attempts.
  -- It is shorter than deadlock_timeout, so that it ends before a session in a deadlock with it fails. A deadlock that
  -- lasts is found by the first lock. So the table and its sequences take turns. A dry run waits as a query does.
  FOR attempt IN 1 .. 2147483647 LOOP
    holds_first := false;
    attempt_ms := CASE WHEN dry_run IS FALSE THEN least(attempt * 100::bigint, 500, nullif(patience_ms, 0))
                       ELSE patience_ms END;
    moved := table_name || ARRAY(
      SELECT s.oid::regclass FROM pg_attribute a
        JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
        JOIN pg_class s ON s.tableoid = d.classid AND s.oid = d.objid AND s.relkind = 'S'
       WHERE a.attrelid = table_name AND a.attname = column_name AND d.deptype IN ('a', 'i'));
    -- A draw waits for its lock, for the clock or for a grant. So each attempt draws before it locks the table.
    IF is_adoption AND dry_run IS FALSE AND (generator = ANY (moved)) IS NOT TRUE THEN
      PERFORM set_config('lock_timeout', patience_ms::text, true);
      EXECUTE format(CASE WHEN generator IS NULL
                            OR EXISTS (SELECT FROM uid_internal.generators g WHERE g.generator = uid_move.generator)
                          THEN 'SELECT %s.uid_next(%s)' ELSE 'SELECT %s.segment_next_array(%s, 0::bigint)' END,
                     uid_internal.uid_home(), quote_literal(generator::text) || '::regclass');
    END IF;
    BEGIN
      PERFORM set_config('lock_timeout', attempt_ms::text, true);
      IF NOT dry_run THEN
        PERFORM uid_internal.uid_lock_first(moved[1 + (attempt - 1) % cardinality(moved)]);
        holds_first := true;
      END IF;
      c := uid_internal.uid_movable_column(table_name, column_name);
      IF c.is_distributed AND NOT (is_adoption AND dry_run IS NOT FALSE) THEN
        RAISE EXCEPTION 'table % is distributed by Citus', table_name
          USING ERRCODE = 'feature_not_supported',
                HINT = CASE WHEN is_adoption THEN 'Run the statements that a dry run shows.'
                       ELSE 'Set another default with ALTER TABLE.' END;
      ELSIF NOT dry_run THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', table_name);
        c := uid_internal.uid_movable_column(table_name, column_name);
        PERFORM uid_internal.uid_lock_first(c.sequence); -- others may draw from it, too
        c := uid_internal.uid_movable_column(table_name, column_name);
      END IF;
      plan := CASE WHEN is_adoption THEN uid_internal.uid_adopt_plan(table_name, column_name, c, generator, is_excluded)
                   ELSE uid_internal.uid_release_plan(table_name, column_name, c, start) END;
      FOR line IN SELECT p FROM unnest(plan) p WHERE NOT dry_run AND p NOT LIKE '--%' LOOP
        EXECUTE line;
      END LOOP;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF clock_timestamp() - began >= nullif(patience, '0') OR (SQLSTATE = '40P01' AND NOT holds_first) THEN
        RAISE;
      END IF;
    END;
    PERFORM pg_sleep((1 + 2 * random()) * attempt_ms / 1000.0); -- two sessions do not miss each other each time
  END LOOP;
  -- So that a name cannot end a comment.
  RETURN QUERY SELECT CASE WHEN p LIKE '--%' THEN translate(p, E'\n\r', '  ') ELSE p END
    FROM unnest(plan || CASE WHEN dry_run IS NOT FALSE AND NOT c.is_distributed THEN
      '-- This was a dry run. To run the statements in one transaction, add dry_run => false.' END) p WHERE p <> '';
END
$$;
COMMENT ON FUNCTION uid_internal.uid_move(regclass, name, boolean, regclass, bigint, boolean, interval) IS
  'Returns the lines of a plan, and runs its statements unless it is a dry run. Retries to lock for patience (0: '
  'without limit).';

CREATE FUNCTION uid_adopt(table_name regclass, column_name name, generator regclass DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_home();
  SELECT uid_internal.uid_move(table_name, column_name, true, generator, NULL::bigint, dry_run);
END;
COMMENT ON FUNCTION uid_adopt(regclass, name, regclass, boolean) IS
  'Lets an integer column, with or without a sequence, draw from uidgen: uid_next() of a generator (NULL: the '
  'default one), or segment_next() of any other sequence. Returns the statements, and runs them only with dry_run => '
  'false; fails unless new ids are above those in the column. Only the owner of the table may call it.';

CREATE FUNCTION uid_release(table_name regclass, column_name name, start bigint DEFAULT NULL,
    dry_run boolean DEFAULT true) RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_home();
  SELECT uid_internal.uid_move(table_name, column_name, false, NULL::regclass, start, dry_run);
END;
COMMENT ON FUNCTION uid_release(regclass, name, bigint, boolean) IS
  'Gives a column that draws from uidgen what it had before uid_adopt(): nextval() of its sequence, or its identity. '
  'The sequence continues above its former values, or with start; an error asks for start if these are not known. '
  'Returns the statements, and runs them only with dry_run => false. Only the owner of the table may call it.';
