-- Moving a column from a sequence to uidgen and back, first part: what the plans of adopt.sql need to know of the
-- column, of what it draws from, and of who draws. Only those plans call these functions.
--
-- What the column was is noted in the comment of its sequence, which a dump has, too: the next value, because imports
-- set the counter to the largest id of the generator, and the identity.

CREATE FUNCTION uid_internal.uid_sequence_next(sequence regclass, OUT next numeric, OUT increment bigint,
    OUT options text, OUT comment text, OUT noted_next numeric, OUT noted_identity text)
RETURNS record
LANGUAGE plpgsql STRICT
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  SELECT q.seqincrement, format('INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s', q.seqincrement, q.seqmin,
                                q.seqmax, q.seqstart, q.seqcache, CASE WHEN q.seqcycle THEN ' CYCLE' ELSE '' END),
         CASE WHEN n.note IS NULL THEN d.text ELSE nullif(n.note[1], '') END, n.note[2], n.note[3]
    INTO increment, options, comment, noted_next, noted_identity
    FROM pg_sequence q CROSS JOIN LATERAL obj_description(q.seqrelid, 'pg_class') d(text)
    CROSS JOIN LATERAL regexp_match(d.text,
                 E'^(.*?)\n?kept by uid_adopt[(][)]; next value (-?[0-9]+)(?:, (ALWAYS|BY DEFAULT) identity)?$') n(note)
   WHERE q.seqrelid = sequence;
  IF NOT FOUND THEN
    RAISE EXCEPTION '% is not a sequence', sequence
      USING ERRCODE = 'wrong_object_type', HINT = 'Pass a generator or a sequence.';
  END IF;
  EXECUTE format('SELECT last_value::numeric + CASE WHEN is_called THEN $1 ELSE 0 END FROM %s', sequence)
    INTO next USING increment;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence, the increment, and the '
  'options that make a sequence like this one; then its comment, and what uid_adopt() has noted at its end.';

CREATE FUNCTION uid_internal.uid_movable_column(table_name regclass, column_name name,
    OUT relation text, OUT attnum smallint, OUT identity text, OUT expression text, OUT sequence regclass,
    OUT drawn_by text, OUT generator regclass, OUT segment regclass)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  source regclass;
  owner oid;
  is_inherited boolean;
  is_integer boolean;
BEGIN
  -- The sequence is that of the identity, or the one that was kept for it, if the column was a serial before, which
  -- leaves another one. A domain has the
  -- output function of its type. The type of another role has that role's casts and operators.
  SELECT format('%I.%I', n.nspname, t.relname), a.attnum, pg_get_expr(d.adbin, d.adrelid), u.drawn_by, u.source,
         CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END,
         (SELECT o.objid FROM pg_depend o JOIN pg_class s ON s.oid = o.objid
           WHERE s.relkind = 'S' AND o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
             AND o.refobjid = t.oid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
           ORDER BY o.deptype DESC, position('kept by uid_adopt()' in obj_description(o.objid, 'pg_class')) > 0
                    DESC NULLS LAST, o.objid LIMIT 1),
         t.relowner, a.attinhcount > 0,
         a.attgenerated = '' AND y.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'int8out'::regproc)
    INTO relation, attnum, expression, drawn_by, source, identity, sequence, owner, is_inherited, is_integer
    FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_attribute a ON a.attrelid = t.oid
    JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    CROSS JOIN LATERAL (
      SELECT min(f.proname::text) AS drawn_by, min(s.oid)::regclass AS source
        FROM pg_depend p LEFT JOIN pg_class s ON s.tableoid = p.refclassid AND s.oid = p.refobjid AND s.relkind = 'S'
        LEFT JOIN pg_proc f ON f.tableoid = p.refclassid AND f.oid = p.refobjid
         AND f.pronamespace = home::regnamespace AND f.proname IN ('uid_next', 'segment_next')
       WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid) u
   WHERE t.oid = table_name AND t.relkind IN ('r', 'p') AND a.attname = column_name AND a.attnum > 0;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, coalesce(table_name::text, 'NULL')
      USING ERRCODE = 'undefined_column', HINT = 'Use a column of an ordinary table or a partitioned one.';
  ELSIF NOT pg_has_role(owner, 'USAGE') THEN
    RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = 'insufficient_privilege';
  ELSIF is_inherited THEN
    RAISE EXCEPTION 'column "%" of table % is inherited', column_name, relation
      USING ERRCODE = 'wrong_object_type', HINT = 'Name the parent instead. Its partitions and children change with it.';
  ELSIF NOT is_integer THEN
    RAISE EXCEPTION 'column "%" of table % cannot draw ids', column_name, relation
      USING ERRCODE = 'datatype_mismatch',
            HINT = 'Use a column of type bigint, integer or smallint that is not generated.';
  ELSIF drawn_by = 'segment_next' AND source IS NULL THEN
    RAISE EXCEPTION 'default of column "%" of table % names a segment by text', column_name, relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Pass its sequence: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT '
                          '%s.segment_next(''uid_segments.name''::regclass).', relation, column_name, home);
  END IF;
  generator := CASE drawn_by WHEN 'uid_next' THEN coalesce(
    source, (SELECT g.generator FROM uid_internal.generators g WHERE g.is_default)) END;
  segment := CASE drawn_by WHEN 'segment_next' THEN source END;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_movable_column(regclass, name) IS
  'Returns what uid_adopt() and uid_release() need to know of a column, and fails if they cannot change it: its '
  'qualified table, its identity or default, the sequence that it owns, the function of uidgen that its default calls, '
  'and the generator or segment that this function draws from.';

CREATE FUNCTION uid_internal.uid_check_width(table_name regclass, attnum smallint, column_name name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  conversions text;
  tables text;
BEGIN
  WITH RECURSIVE holding(relation, number) AS (
    SELECT table_name::oid, attnum
     UNION
    SELECT n.relation, n.number FROM holding h CROSS JOIN LATERAL (
      SELECT k.conrelid, k.conkey[i] FROM pg_constraint k, generate_subscripts(k.conkey, 1) i
       WHERE k.contype = 'f' AND k.confrelid = h.relation AND k.confkey[i] = h.number
       UNION ALL
      SELECT b.attrelid, b.attnum
        FROM pg_attribute a CROSS JOIN LATERAL (
               SELECT p.inhparent FROM pg_inherits p WHERE p.inhrelid = h.relation
                UNION ALL SELECT p.inhrelid FROM pg_inherits p WHERE p.inhparent = h.relation) r(relative)
        JOIN pg_attribute b ON b.attrelid = r.relative AND b.attname = a.attname AND b.attnum > 0
       WHERE a.attrelid = h.relation AND a.attnum = h.number) n(relation, number)
  ), c AS (
    SELECT format('%I.%I', n.nspname, t.relname) AS relation, a.attname, h.relation = table_name AS is_first,
           y.typoutput IN ('int2out'::regproc, 'int4out'::regproc) AND a.attinhcount = 0 AS is_narrow
      FROM holding h JOIN pg_attribute a ON a.attrelid = h.relation AND a.attnum = h.number
      JOIN pg_type y ON y.oid = a.atttypid
      JOIN pg_class t ON t.oid = h.relation JOIN pg_namespace n ON n.oid = t.relnamespace)
  SELECT string_agg(format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', relation, attname), ' '
                    ORDER BY is_first DESC, relation COLLATE "C", attname) FILTER (WHERE is_narrow),
         concat(string_agg(DISTINCT relation || ', ', '') FILTER (WHERE NOT is_first),
                min(relation) FILTER (WHERE is_first))
    INTO conversions, tables FROM c;
  IF conversions IS NOT NULL THEN
    -- A session that inserts has locked the table that refers first, too. The timeout is shorter than deadlock_timeout.
    RAISE EXCEPTION 'ids of column "%" of table % need bigint', column_name, table_name
      USING ERRCODE = 'datatype_mismatch',
            HINT = format('Convert the columns that have them, which rewrites and locks their tables. '
                          'Repeat it after a lock timeout: BEGIN; SET LOCAL lock_timeout = ''200ms''; LOCK TABLE %s; '
                          '%s COMMIT;', tables, conversions);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_width(regclass, smallint, name) IS
  'Fails unless the ids of a column fit all columns that would have to hold them: itself, the columns that refer to '
  'it by foreign keys, and so on, each with its partitions and children.';

CREATE FUNCTION uid_internal.uid_beyond_plan(table_name regclass, column_name name, source regclass,
    is_generator boolean) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  relation text := (uid_internal.uid_movable_column(table_name, column_name)).relation;
  next numeric;
  stride bigint := 1;
  furthest bigint;
BEGIN
  IF is_generator THEN
    EXECUTE format('SELECT %s.uid_next(%s)', uid_internal.uid_home(), quote_literal(source::text) || '::regclass')
      INTO next;
  -- Of an attached segment, only the registry knows which values come next.
  ELSIF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = source AND c.relkind = 'S' AND c.relpersistence = 'p')
     OR EXISTS (SELECT FROM uid_internal.segments g WHERE g.sequence = source AND g.fleet > 0) THEN
    RAISE EXCEPTION 'column "%" of table % cannot draw from %', column_name, relation, source
      USING ERRCODE = 'wrong_object_type',
            HINT = 'Pass a generator, or a permanent sequence that is not attached to a fleet''s registry.';
  ELSE
    SELECT s.next, s.increment INTO next, stride FROM uid_internal.uid_sequence_next(source) s;
  END IF;
  EXECUTE format('SELECT %s(%I)::bigint FROM %s', CASE WHEN stride > 0 THEN 'max' ELSE 'min' END, column_name, relation)
    INTO furthest;
  IF (furthest - next) * stride >= 0 THEN
    RAISE EXCEPTION 'ids of % would not be beyond those in column "%" of table %', source, column_name, relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The next id is %s, and the column has the id %s.', next, furthest),
            HINT = CASE WHEN is_generator THEN
                     format('Call again when the clock is past the time of that id, or pass a generator with an earlier '
                            'epoch or more bits below the time, made with uid_generator_create(above => %s).', furthest)
                   ELSE
                     format('If the column has ids of a generator, call uid_release() first. Otherwise run SELECT '
                            'setval(%L, %s(%I)) FROM %s.', source::text, CASE WHEN stride > 0 THEN 'max' ELSE 'min' END,
                            column_name, relation) END;
  END IF;
  RETURN format('-- furthest id: %s; the next one of %s is %s', coalesce(furthest::text, 'none'), source, next);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_beyond_plan(regclass, name, regclass, boolean) IS
  'Returns the comment that says which ids a column gets from now on, and fails unless they are beyond those in it.';

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
  'Returns the statement that lets each role draw from a generator or sequence that may insert into a table, and fails '
  'if the caller cannot run it. A new sequence has no privileges yet.';

CREATE FUNCTION uid_internal.uid_keep_sequence_plan(owned regclass, relation text, column_name name)
RETURNS SETOF text
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT unnest(ARRAY[
    '-- DROP IDENTITY drops the sequence, so another one with the same name and counter takes its place.',
    format('ALTER SEQUENCE %s RENAME TO %I;', owned, x.aside),
    format('CREATE SEQUENCE %s AS %s %s;', owned, format_type(q.seqtypid, NULL), s.options),
    format('SELECT setval(%L::regclass, last_value, is_called) FROM %I.%I;', owned::text, n.nspname, x.aside),
    format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;', relation, column_name),
    format('ALTER SEQUENCE %s OWNER TO %I;', owned, pg_get_userbyid(c.relowner)),
    format('ALTER SEQUENCE %s OWNED BY %s.%I;', owned, relation, column_name)])
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence q ON q.seqrelid = c.oid
   CROSS JOIN LATERAL uid_internal.uid_sequence_next(owned) s CROSS JOIN (VALUES ('uid_adopt_' || owned::oid)) x(aside)
   WHERE c.oid = owned
$$;
COMMENT ON FUNCTION uid_internal.uid_keep_sequence_plan(regclass, text, name) IS
  'Returns the statements that end the identity of a column and keep its sequence, owned by the column.';
