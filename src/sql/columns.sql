-- Moving a column from a sequence to uidgen and back, first part: what the plans of adopt.sql need to know of the
-- column, of what it draws from, and of who draws. Only those plans call these functions.
--
-- What the column was is noted in the comment of its sequence, which a dump has, too: the next value, because imports
-- set the counter to the largest id of the generator, and the identity.

CREATE FUNCTION uid_internal.uid_base_type(type oid) RETURNS regtype
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE under(type) AS (
    SELECT uid_base_type.type UNION
    SELECT y.typbasetype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype = 'd')
  SELECT u.type::regtype FROM under u JOIN pg_type y ON y.oid = u.type AND y.typtype <> 'd'
$$;
COMMENT ON FUNCTION uid_internal.uid_base_type(oid) IS 'Returns the type below a domain, which may be over a domain.';

CREATE FUNCTION uid_internal.uid_sequence_next(sequence regclass,
    OUT next numeric, OUT increment bigint, OUT options text)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  SELECT q.seqincrement, format('INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s', q.seqincrement, q.seqmin,
                                q.seqmax, q.seqstart, q.seqcache, CASE WHEN q.seqcycle THEN ' CYCLE' ELSE '' END)
    INTO increment, options FROM pg_sequence q WHERE q.seqrelid = sequence;
  IF increment IS NULL THEN
    RAISE EXCEPTION '% is not a sequence', coalesce(sequence::text, 'NULL')
      USING ERRCODE = 'wrong_object_type', HINT = 'Pass the sequence of a column.';
  END IF;
  EXECUTE format('SELECT last_value::numeric + CASE WHEN is_called THEN $1 ELSE 0 END FROM %s', sequence)
    INTO next USING increment;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_sequence_next(regclass) IS
  'Returns the value that nextval() would return, which may be beyond the end of the sequence, the increment, and the '
  'options that make a sequence like this one.';

CREATE FUNCTION uid_internal.uid_kept_sequence(table_name regclass, attnum smallint, drawn_by text, source regclass,
    OUT sequence regclass, OUT next numeric, OUT increment bigint, OUT options text, OUT comment text,
    OUT noted_next numeric, OUT noted_identity text, OUT unused numeric)
RETURNS record
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT s.sequence, x.*, CASE WHEN n.note IS NULL THEN s.comment ELSE nullif(n.note[1], '') END,
         n.note[2]::numeric, n.note[3],
         greatest(x.next, n.note[2]::numeric, CASE WHEN drawn_by = 'segment_next(regclass)'
                                                   THEN (uid_internal.uid_sequence_next(source)).next END)
    FROM (SELECT d.objid::regclass AS sequence, obj_description(d.objid, 'pg_class') AS comment
            FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
           WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = table_name
             AND d.refobjsubid = attnum AND d.deptype IN ('a', 'i')
           ORDER BY d.deptype DESC, d.objid LIMIT 1) s
   CROSS JOIN LATERAL uid_internal.uid_sequence_next(s.sequence) x
   CROSS JOIN LATERAL regexp_match(s.comment,
                '^(.*?)\n?kept by uid_adopt\(\); next value (-?\d+)(?:, (ALWAYS|BY DEFAULT) identity)?$') n(note)
$$;
COMMENT ON FUNCTION uid_internal.uid_kept_sequence(regclass, smallint, text, regclass) IS
  'Returns the sequence that a column owns, its next value, increment and options; what uid_adopt() has noted '
  'in its comment, and the rest of the comment; and a value from which on neither it nor the source of the column has '
  'given any.';

CREATE FUNCTION uid_internal.uid_drawn_by(home text, default_oid oid, OUT drawn_by text, OUT source regclass)
RETURNS record
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT p.call, CASE WHEN p.call = 'uid_next()'
                      THEN (SELECT g.generator FROM uid_internal.generators g WHERE g.is_default) ELSE s.source END
    FROM (SELECT min(d.refobjid)::regclass FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid AND c.relkind = 'S'
           WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = default_oid
             AND d.refclassid = 'pg_class'::regclass) s(source)
    LEFT JOIN (unnest(ARRAY['uid_next()', 'uid_next(regclass)', 'segment_next(regclass)', 'segment_next(text)']) p(call)
               JOIN pg_depend d ON d.refobjid = (home || '.' || p.call)::regprocedure
                AND d.refclassid = 'pg_proc'::regclass AND d.classid = 'pg_attrdef'::regclass
                AND d.objid = default_oid) ON true
   LIMIT 1
$$;
COMMENT ON FUNCTION uid_internal.uid_drawn_by(text, oid) IS
  'Returns the function of uidgen that a default calls, and the generator or sequence that it draws from.';

CREATE FUNCTION uid_internal.uid_movable_column(table_name regclass, column_name name,
    OUT relation text, OUT attnum smallint, OUT identity text, OUT expression text, OUT drawn_by text,
    OUT source regclass)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  c record;
BEGIN
  SELECT t.relowner, t.relkind, a.*, d.oid AS default_oid, pg_get_expr(d.adbin, d.adrelid) AS expression,
         format('%I.%I', n.nspname, t.relname) AS relation
    INTO c
    FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
   WHERE t.oid = table_name;
  IF (c.relkind IN ('r', 'p')) IS NOT TRUE THEN
    RAISE EXCEPTION '% is not a table', coalesce(c.relation, 'the given relation')
      USING ERRCODE = 'wrong_object_type', HINT = 'Pass an ordinary table or a partitioned one.';
  ELSIF NOT pg_has_role(c.relowner, 'USAGE') THEN
    RAISE EXCEPTION 'must be owner of table %', c.relation USING ERRCODE = 'insufficient_privilege';
  ELSIF c.attnum IS NULL THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, c.relation
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of one of the table''s columns.';
  ELSIF c.attgenerated <> '' THEN
    RAISE EXCEPTION 'column "%" of table % is a generated column', column_name, c.relation
      USING ERRCODE = 'wrong_object_type', HINT = 'A generated column has no default. Use another column.';
  ELSIF c.attinhcount > 0 THEN
    RAISE EXCEPTION 'column "%" of table % is inherited', column_name, c.relation
      USING ERRCODE = 'wrong_object_type',
            HINT = format('Name the parent (%s) instead. Its partitions and children change with it.',
                          (SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) FROM pg_inherits i
                            WHERE i.inhrelid = table_name));
  ELSIF uid_internal.uid_base_type(c.atttypid) NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
    -- The type of another role has that role's casts and operators.
    RAISE EXCEPTION 'column "%" of table % is of type %', column_name, c.relation, format_type(c.atttypid, NULL)
      USING ERRCODE = 'datatype_mismatch', HINT = 'Only columns of type bigint, integer or smallint can draw ids.';
  END IF;
  relation := c.relation;
  attnum := c.attnum;
  identity := CASE c.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END;
  expression := c.expression;
  SELECT x.drawn_by, x.source INTO drawn_by, source FROM uid_internal.uid_drawn_by(home, c.default_oid) x;
  IF drawn_by = 'segment_next(text)' THEN
    RAISE EXCEPTION 'default of column "%" of table % names a segment by text', column_name, relation
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('Pass its sequence: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT '
                          '%s.segment_next(''uid_segments.name''::regclass).', relation, column_name, home);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_movable_column(regclass, name) IS
  'Returns what uid_adopt() and uid_release() need to know of a column, and fails if they cannot change it: its '
  'qualified table, its identity or default, the function of uidgen that its default calls, and the generator or '
  'sequence that this function draws from.';

CREATE FUNCTION uid_internal.uid_check_width(table_name regclass, attnum smallint, column_name name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  narrow text;
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
    SELECT format('%I.%I', n.nspname, t.relname) AS relation, a.attname, format_type(a.atttypid, NULL) AS type,
           uid_internal.uid_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype) AS is_narrow,
           a.attinhcount = 0 AS is_own, h.relation = table_name AS is_first
      FROM holding h JOIN pg_attribute a ON a.attrelid = h.relation AND a.attnum = h.number
      JOIN pg_class t ON t.oid = h.relation JOIN pg_namespace n ON n.oid = t.relnamespace)
  SELECT string_agg(format('Column %I of table %s is of type %s.', attname, relation, type), E'\n'
                    ORDER BY is_first DESC, relation COLLATE "C", attname) FILTER (WHERE is_narrow),
         string_agg(format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', relation, attname), ' '
                    ORDER BY is_first DESC, relation COLLATE "C", attname) FILTER (WHERE is_narrow AND is_own),
         concat(string_agg(DISTINCT relation || ', ', '') FILTER (WHERE NOT is_first),
                min(relation) FILTER (WHERE is_first))
    INTO narrow, conversions, tables FROM c;
  IF narrow IS NOT NULL THEN
    -- A session that inserts has locked the table that refers first, too. The timeout is shorter than deadlock_timeout.
    RAISE EXCEPTION 'ids of column "%" of table % need bigint', column_name, table_name
      USING ERRCODE = 'datatype_mismatch', DETAIL = narrow,
            HINT = format('Convert these columns, which writes their tables anew while they are locked. Repeat it after '
                          'a lock timeout: BEGIN; SET LOCAL lock_timeout = ''200ms''; LOCK TABLE %s; %s COMMIT;',
                          tables, conversions);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_width(regclass, smallint, name) IS
  'Fails unless the ids of a column fit all columns that would have to hold them: itself, the columns that refer to '
  'it by foreign keys, and so on, each with its partitions and children.';

CREATE FUNCTION uid_internal.uid_draw_expression(source regclass,
    OUT expression text, OUT drawn_by text, OUT generator regclass, OUT sequence regclass)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  literal text := (SELECT quote_literal(format('%I.%I', n.nspname, c.relname)) || '::regclass'
                     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                    WHERE c.oid = source AND c.relkind = 'S' AND c.relpersistence = 'p');
BEGIN
  IF source IS NULL THEN
    SELECT g.generator INTO generator FROM uid_internal.generators g WHERE g.is_default;
    IF generator IS NULL THEN
      RAISE EXCEPTION 'database has no default generator'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Choose one with uid_default_set().';
    END IF;
    drawn_by := 'uid_next()';
    expression := format('%s.uid_next()', home);
    RETURN;
  END IF;
  IF literal IS NULL THEN
    RAISE EXCEPTION '% is neither a generator nor a permanent sequence', source
      USING ERRCODE = 'wrong_object_type',
            HINT = 'Create a generator with uid_generator_create(), or pass the sequence of the column.';
  END IF;
  IF EXISTS (SELECT FROM uid_internal.segments s WHERE s.sequence = source AND s.registry_name IS NOT NULL) THEN
    RAISE EXCEPTION 'segment of sequence % is attached to a fleet''s registry', source
      USING ERRCODE = 'wrong_object_type', DETAIL = 'Only the registry knows which values come next.',
            HINT = 'Raise the segment on the registry above all ids of the column, and change the default yourself.';
  END IF;
  SELECT g.generator INTO generator FROM uid_internal.generators g WHERE g.generator = source;
  drawn_by := CASE WHEN generator IS NULL THEN 'segment_next(regclass)' ELSE 'uid_next(regclass)' END;
  sequence := CASE WHEN generator IS NULL THEN source END;
  expression := format('%s.%s(%s)', home, split_part(drawn_by, '(', 1), literal);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_draw_expression(regclass) IS
  'Returns the default of a column that draws from a generator, from any other sequence, or, for NULL, from the '
  'default generator.';

CREATE FUNCTION uid_internal.uid_column_range(table_name regclass, column_name name,
    OUT smallest bigint, OUT largest bigint)
RETURNS record
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = table_name AND a.attname = column_name) THEN
    RAISE EXCEPTION 'column "%" of table % does not exist', column_name, coalesce(table_name::text, 'NULL')
      USING ERRCODE = 'undefined_column', HINT = 'Use the name of one of the table''s columns.';
  END IF;
  EXECUTE format('SELECT min(%1$I)::bigint, max(%1$I)::bigint FROM %2$s', column_name, table_name)
    INTO smallest, largest;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_column_range(regclass, name) IS
  'Returns the smallest and the largest id in a column.';

CREATE FUNCTION uid_internal.uid_above_plan(table_name regclass, column_name name, generator regclass) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  home text := uid_internal.uid_home();
  largest bigint;
  floor bigint; -- ids of the generator are above it
  is_soon boolean;
  presets text;
BEGIN
  largest := (uid_internal.uid_column_range(table_name, column_name)).largest;
  EXECUTE format('SELECT %s.uid_lower_bound(clock_timestamp() - interval ''1 day'', $1)', home)
    INTO floor USING generator;
  -- Where the clock does not show it, the next id does.
  IF largest >= floor THEN
    EXECUTE format('SELECT %s.uid_next($1)', home) INTO floor USING generator;
  END IF;
  IF largest >= floor THEN
    EXECUTE format('SELECT $1 < %1$s.uid_lower_bound(clock_timestamp() + interval ''10 minutes'', $2),
                           string_agg(p.preset, '', '' ORDER BY p.preset) FROM %1$s.uid_preset p
                     WHERE p.epoch IS NOT NULL AND p.mode = ''snowflake''
                       AND %1$s.uid_lower_bound(clock_timestamp(), p.epoch, p.tick_us,
                                                p.datacenter_bits + p.worker_bits + p.sequence_bits) > $1', home)
      INTO is_soon, presets USING largest, generator;
    RAISE EXCEPTION 'ids of generator % would be below those in column "%" of table %',
                    generator, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The largest id is %s, and the last one of the generator is %s.', largest, floor),
            HINT = CASE WHEN is_soon THEN
              'Call again when the clock is past the time of that id, in ten minutes at most.'
            WHEN presets IS NULL THEN
              'No preset has larger ids today. Create a generator with an earlier epoch or more bits below the time, '
              'or pass a sequence.'
            ELSE format('Presets with larger ids: %s. Run SELECT uid_generator_create(%L, %L, above => %s), and pass '
                        'this generator.', presets, (SELECT c.relname FROM pg_class c WHERE c.oid = table_name),
                        split_part(presets, ', ', 1), largest) END;
  END IF;
  RETURN format('-- largest id: %s; ids of %s are above %s', coalesce(largest::text, 'none'), generator, floor);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_above_plan(regclass, name, regclass) IS
  'Returns the comment that says which ids a generator issues from now on, and fails unless they are above all ids of '
  'a column.';

CREATE FUNCTION uid_internal.uid_check_sequence(table_name regclass, column_name name, sequence regclass) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  s record;
BEGIN
  SELECT x.next, x.increment > 0 AS is_up, r.* INTO s
    FROM uid_internal.uid_sequence_next(sequence) x, uid_internal.uid_column_range(table_name, column_name) r;
  IF s.is_up AND s.next <= s.largest OR NOT s.is_up AND s.next >= s.smallest THEN
    RAISE EXCEPTION 'sequence % would repeat ids of column "%" of table %', sequence, column_name, table_name
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Its next value is %s, and the column has %s ids.', s.next,
                            CASE WHEN s.is_up THEN 'larger' ELSE 'smaller' END),
            HINT = format('If the column has ids of a generator, call uid_release() first. Otherwise run SELECT '
                          'setval(%L, %s(%I)) FROM %s.', sequence::text, CASE WHEN s.is_up THEN 'max' ELSE 'min' END,
                          column_name, table_name);
  END IF;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_check_sequence(regclass, name, regclass) IS
  'Fails if a sequence would repeat ids of a column.';

CREATE FUNCTION uid_internal.uid_grant_plan(table_name regclass, sequence regclass) RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = sequence);
  -- uid_keep_sequence_plan() puts another sequence in the place of an identity's.
  is_new boolean := EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence
                                                      AND d.deptype = 'i');
  grants text[] := ARRAY(
    SELECT format('GRANT USAGE ON SEQUENCE %s TO %s;', sequence,
                  CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END)
      FROM (SELECT c.relowner FROM pg_class c WHERE c.oid = table_name
             UNION SELECT x.grantee FROM pg_class t, aclexplode(t.relacl) x
                    WHERE t.oid = table_name AND x.privilege_type = 'INSERT'
             UNION SELECT x.grantee FROM pg_attribute a, aclexplode(a.attacl) x
                    WHERE a.attrelid = table_name AND x.privilege_type = 'INSERT') r(grantee)
     WHERE CASE WHEN is_new THEN r.grantee <> owner
                WHEN r.grantee = 0 THEN NOT has_sequence_privilege('public', sequence, 'USAGE, UPDATE')
                ELSE NOT has_sequence_privilege(r.grantee, sequence, 'USAGE, UPDATE') END
     ORDER BY 1);
BEGIN
  IF grants <> '{}' AND NOT pg_has_role(owner, 'USAGE')
     AND NOT has_sequence_privilege(sequence, 'USAGE WITH GRANT OPTION') THEN
    RAISE EXCEPTION 'roles that insert into table % may not draw from %', table_name, sequence
      USING ERRCODE = 'insufficient_privilege',
            HINT = format('The owner of %s can run: %s', sequence, array_to_string(grants, ' '));
  END IF;
  RETURN QUERY SELECT g.line FROM unnest(grants) WITH ORDINALITY g(line, place) ORDER BY g.place;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_grant_plan(regclass, regclass) IS
  'Returns the statements that let each role draw from a generator or sequence that may insert into a table, and fails '
  'if the caller cannot run them.';

CREATE FUNCTION uid_internal.uid_keep_sequence_plan(owned regclass, relation text, column_name name)
RETURNS SETOF text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  s record;
  kept text := owned;
  aside text := 'uid_adopt_' || owned::oid;
BEGIN
  SELECT n.nspname, c.relowner, format_type(q.seqtypid, NULL) AS type
    INTO s
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_sequence q ON q.seqrelid = c.oid
   WHERE c.oid = owned;
  RETURN NEXT '-- DROP IDENTITY drops the sequence, so another one with the same name and counter takes its place.';
  RETURN NEXT format('ALTER SEQUENCE %s RENAME TO %I;', kept, aside);
  RETURN NEXT format('CREATE SEQUENCE %s AS %s %s;', kept, s.type, (uid_internal.uid_sequence_next(owned)).options);
  RETURN NEXT format('SELECT setval(%L::regclass, last_value, is_called) FROM %I.%I;', kept, s.nspname, aside);
  RETURN NEXT format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;', relation, column_name);
  IF s.relowner <> quote_ident(current_user)::regrole THEN
    RETURN NEXT format('ALTER SEQUENCE %s OWNER TO %I;', kept, pg_get_userbyid(s.relowner));
  END IF;
  RETURN NEXT format('ALTER SEQUENCE %s OWNED BY %s.%I;', kept, relation, column_name);
END
$$;
COMMENT ON FUNCTION uid_internal.uid_keep_sequence_plan(regclass, text, name) IS
  'Returns the statements that end the identity of a column and keep its sequence, owned by the column.';
