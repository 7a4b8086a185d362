-- Columns that uid_adopt() and uid_release() may change: what they draw, and whether ids fit.

CREATE FUNCTION uid_internal.uid_movable_column(table_name regclass, column_name name,
    OUT attnum smallint, OUT identity text, OUT expression text, OUT drawn_by text, OUT source regclass,
    OUT sequence regclass, OUT increment bigint, OUT options text, OUT comment text, OUT noted_next numeric,
    OUT noted_identity text, OUT floor bigint, OUT next numeric, OUT is_distributed boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  owner oid;
  is_inherited boolean;
  is_integer boolean;
BEGIN
  -- The sequence is that of the identity, or the one that was kept for it, if the column was a serial before, which
  -- leaves another one. A domain has the output function of its type. The type of another role has that role's casts
  -- and operators.
  SELECT a.attnum, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END,
         pg_get_expr(d.adbin, d.adrelid), u.drawn_by, u.source, q.seqrelid, q.seqincrement, q.options,
         CASE WHEN q.note IS NULL THEN q.text ELSE nullif(q.note[1], '') END, q.note[2], q.note[3],
         t.relowner, a.attinhcount > 0,
         a.attgenerated = '' AND y.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'int8out'::regproc)
    INTO attnum, identity, expression, drawn_by, source, sequence, increment, options, comment, noted_next,
         noted_identity, owner, is_inherited, is_integer
    FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
    JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    CROSS JOIN LATERAL (
      SELECT min(f.proname::text) AS drawn_by, min(s.oid)::regclass AS source
        FROM pg_depend p LEFT JOIN pg_class s ON s.tableoid = p.refclassid AND s.oid = p.refobjid AND s.relkind = 'S'
        LEFT JOIN pg_proc f ON f.tableoid = p.refclassid AND f.oid = p.refobjid
         AND f.pronamespace = home::regnamespace AND f.proname IN ('uid_next', 'segment_next')
       WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid) u
    LEFT JOIN LATERAL (
      SELECT s.seqrelid, s.seqincrement, c.text, n.note,
             format('INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s', s.seqincrement, s.seqmin, s.seqmax,
                    s.seqstart, s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END) AS options
        FROM pg_depend o JOIN pg_sequence s ON s.seqrelid = o.objid
       CROSS JOIN LATERAL obj_description(o.objid, 'pg_class') c(text)
       CROSS JOIN LATERAL regexp_match(c.text,
               E'^(.*?)\n?kept by uid_adopt[(][)]; next value (-?[0-9]+)(?:, (ALWAYS|BY DEFAULT) identity)?$') n(note)
       WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass AND o.refobjid = t.oid
         AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
       ORDER BY o.deptype DESC, n.note IS NULL, o.objid LIMIT 1) q ON true
   WHERE t.oid = table_name AND t.relkind IN ('r', 'p') AND a.attname = column_name AND a.attnum > 0;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'relation % is not a table with a column "%"', coalesce(table_name::text, 'NULL'), column_name
      USING ERRCODE = 'undefined_column', HINT = 'Use a column of an ordinary table or a partitioned one.';
  ELSIF NOT pg_has_role(owner, 'USAGE') THEN
    RAISE EXCEPTION 'must be owner of table %', table_name USING ERRCODE = 'insufficient_privilege';
  ELSIF EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'uidgen'
                 WHERE d.classid = 'pg_class'::regclass AND d.objid = table_name AND d.deptype = 'e') THEN
    RAISE EXCEPTION 'table % belongs to extension uidgen', table_name
      USING ERRCODE = 'wrong_object_type', HINT = 'Use a column of a table of your own.';
  ELSIF is_inherited THEN
    RAISE EXCEPTION 'column "%" of table % is inherited', column_name, table_name
      USING ERRCODE = 'wrong_object_type',
            HINT = 'Name the parent instead. Its partitions and children change with it.';
  ELSIF NOT is_integer THEN
    RAISE EXCEPTION 'column "%" of table % cannot draw ids', column_name, table_name
      USING ERRCODE = 'datatype_mismatch',
            HINT = 'Use a column of type bigint, integer or smallint that is not generated.';
  ELSIF drawn_by = 'segment_next' AND source IS NULL THEN
    RAISE EXCEPTION 'default of column "%" of table % names a segment by text', column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Pass its sequence: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT '
                          '%s.segment_next(''uid_segments.name''::regclass).', table_name, column_name, home);
  END IF;
  IF drawn_by = 'uid_next' THEN
    -- An hour for a clock that was ahead at the creation. Any generator may have been the default; one that was made in
    -- the first hour of its epoch says nothing of small ids.
    EXECUTE format('SELECT min(%s.uid_lower_bound(g.created - interval ''1 hour'', g.generator))
                      FROM uid_internal.generators g
                     WHERE g.generator = $1 OR $1 IS NULL AND g.created - interval ''1 hour'' > g.epoch', home)
      INTO floor USING source;
  END IF;
  IF sequence IS NOT NULL THEN
    -- A counter above the floor was set there, as setval(max(id)) does. What it gave to other columns is unknown.
    next := uid_internal.uid_sequence_next(sequence);
    next := CASE WHEN next >= floor THEN CASE WHEN NOT EXISTS (
                SELECT FROM pg_depend p WHERE p.classid = 'pg_attrdef'::regclass
                   AND p.refclassid = 'pg_class'::regclass AND p.refobjid = sequence) THEN noted_next END
              ELSE greatest(next, noted_next,
              CASE drawn_by WHEN 'segment_next' THEN uid_internal.uid_sequence_next(source) END) END;
  END IF;
  EXECUTE CASE WHEN to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN 'SELECT false' ELSE
            'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition d WHERE d.logicalrelid = $1)' END
    INTO is_distributed USING table_name;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_movable_column(regclass, name) IS
  'Returns what uid_adopt() and uid_release() need to know of a column; fails if they cannot change it.';

CREATE FUNCTION uid_internal.uid_check_width(table_name regclass, column_name name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  conversions text;
  tables text;
  partitioned text; -- a column whose type PostgreSQL does not change
BEGIN
  WITH RECURSIVE holding(relation, number) AS (
    SELECT a.attrelid, a.attnum FROM pg_attribute a WHERE a.attrelid = table_name AND a.attname = column_name
     UNION
    SELECT n.relation, n.number FROM holding h CROSS JOIN LATERAL (
      SELECT k.conrelid, k.conkey[i] FROM pg_constraint k, generate_subscripts(k.conkey, 1) i
       WHERE k.contype = 'f' AND k.confrelid = h.relation AND k.confkey[i] = h.number
       UNION ALL
      SELECT b.attrelid, b.attnum
        FROM pg_attribute a JOIN pg_inherits p ON a.attrelid IN (p.inhrelid, p.inhparent)
        JOIN pg_attribute b ON b.attrelid IN (p.inhrelid, p.inhparent) AND b.attname = a.attname
       WHERE a.attrelid = h.relation AND a.attnum = h.number) n(relation, number)
  ), c AS (
    SELECT h.relation::regclass::text AS relation, a.attname, h.relation = table_name AS is_first,
           y.typoutput IN ('int2out'::regproc, 'int4out'::regproc) AS is_narrow, a.attinhcount = 0 AS is_own,
           EXISTS ( -- also in an expression of the key
             SELECT FROM pg_depend d
              WHERE d.classid = 'pg_class'::regclass AND d.objid = h.relation AND d.objsubid = h.number
                AND d.refclassid = d.classid AND d.refobjid = h.relation AND d.refobjsubid = 0) AS is_in_partition_key
      FROM holding h JOIN pg_attribute a ON a.attrelid = h.relation AND a.attnum = h.number
      JOIN pg_type y ON y.oid = a.atttypid)
  SELECT string_agg(format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', relation, attname), ' '
                    ORDER BY is_first DESC, relation COLLATE "C", attname) FILTER (WHERE is_narrow AND is_own),
         concat(string_agg(DISTINCT relation || ', ', '') FILTER (WHERE NOT is_first), table_name),
         min(format('column "%s" of table %s', attname, relation)) FILTER (WHERE is_narrow AND is_in_partition_key)
    INTO conversions, tables, partitioned FROM c;
  IF conversions IS NOT NULL THEN
    -- A session that inserts has locked the table that refers first, too. The timeout is shorter than deadlock_timeout.
    RAISE EXCEPTION 'ids of column "%" of table % need bigint', column_name, table_name
      USING ERRCODE = 'datatype_mismatch',
            HINT = coalesce('Move the rows to a new table with a bigint for ' || partitioned || ', because PostgreSQL '
                            'does not change the type of a column in a partition key.',
                     format('Convert the columns that hold these ids, which locks and rewrites their tables. '
                            'After a lock timeout, repeat it: BEGIN; SET LOCAL lock_timeout = ''200ms''; '
                            'LOCK TABLE %s; %s COMMIT;', tables, conversions));
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_width(regclass, name) IS
  'Fails unless a column, and all that refer to it by foreign keys, with their partitions and children, can hold ids.';
