-- Prints docs/reference.md, which sql/reference.sql compares with it: what a database says of the extension, by subject.
-- Functions and views of the schema uid_internal are not listed, because only the extension calls them. To make the page anew:
--
--   test/server -XAtq <test/reference.sql >docs/reference.md
\pset format unaligned
\pset tuples_only on
SET intervalstyle = postgres; -- which defaults show
DO $$ BEGIN PERFORM uid_to_base62(0); END $$; -- loads the library, which defines the settings

-- The subjects, and the functions, views and tables of each in the order of the page. What is missing here comes last.
WITH subject(place, title, members) AS (VALUES
  (1, 'Draw ids', '{uid_next,uid_next_array,uid_next_uuid,uid_last}'::text[]),
  (2, 'Read ids', '{uid_decode,uid_timestamp,uid_lower_bound,uid_encode,uid_origin}'),
  (3, 'Other forms of ids', '{uid_to_base62,uid_from_base62,uid_to_uuid,uid_from_uuid}'),
  (4, 'Generators', '{uid_generator_create,uid_generator_alter,uid_generator_drop,uid_generator_raise,uid_default_set,
      uid_preset,uid_generator,uid_generator_status,uid_generator_limits,uid_generator_columns,
      uid_generators.uid_default,worker_node,worker_node_id_seq}'),
  (5, 'Segments', '{segment_create,segment_next,segment_next_array,segment_reserve,segment_last,segment_set,segment_alter,
      segment_drop,segment_status,uid_segment,uid_t_sequence_create,uid_leaf_alloc_create}'),
  (6, 'Concealed ids', '{uid_key_create,uid_conceal,uid_reveal,uid_key_rotate,uid_key_config,uid_secrets.uid_key}'),
  (7, 'Moving a column', '{uid_adopt,uid_release}'),
  (8, 'Statistics', '{uid_stat,uid_stat_server}'),
  (9, 'Fleet', '{segment_attach,uid_registry_status,uid_fleet_move}'),
  (10, 'Schemas', '{uid_generators,uid_segments,uid_keys,uid_internal,uid_secrets}')
), member AS (
  SELECT e.extnamespace AS home, d.classid, d.objid
    FROM pg_extension e JOIN pg_depend d ON d.refclassid = e.tableoid AND d.refobjid = e.oid AND d.deptype = 'e'
   WHERE e.extname = 'uidgen'
), parameter AS ( -- of functions, in and out
  SELECT p.oid, a.place, a.mode IN ('o', 'b', 't') AS is_out,
         concat_ws(' ', a.name, format_type(a.type, NULL),
                   'DEFAULT ' || regexp_replace(pg_get_function_arg_default(p.oid, a.place::integer), '::[a-z ]+$|"|\(\)$', '', 'g')) AS text
    FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid AND p.prokind = 'f',
         unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames,
                coalesce(p.proargmodes, array_fill('i'::"char", ARRAY[p.pronargs::integer])))
           WITH ORDINALITY a(type, name, mode, place)
), signature AS (
  SELECT p.oid, format('%s(%s) → %s', p.proname,
           (SELECT string_agg(a.text, ', ' ORDER BY a.place) FROM parameter a WHERE a.oid = p.oid AND NOT a.is_out),
           CASE WHEN EXISTS (SELECT FROM parameter a WHERE a.oid = p.oid AND a.is_out)
                THEN (CASE WHEN p.proretset THEN 'rows ' ELSE '' END)
                     || (SELECT format('(%s)', string_agg(a.text, ', ' ORDER BY a.place))
                           FROM parameter a WHERE a.oid = p.oid AND a.is_out)
                ELSE pg_get_function_result(p.oid) END) AS text
    FROM pg_proc p WHERE p.prokind = 'f'
), object(classid, objid, name, kind, form, acl, creation) AS (
  SELECT m.classid, m.objid, p.proname::text, 'function',
         CASE WHEN p.prokind = 'p' THEN format('CALL %s(...)', p.proname)
              ELSE (SELECT s.text FROM signature s WHERE s.oid = p.oid) END, coalesce(p.proacl, acldefault('f', p.proowner)), p.oid
    FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid AND p.pronamespace = m.home
   UNION ALL
  SELECT m.classid, m.objid, CASE WHEN c.relnamespace = m.home THEN '' ELSE n.nspname || '.' END || c.relname,
         CASE c.relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END,
         CASE c.relkind WHEN 'v' THEN
           (SELECT string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
              FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) END, c.relacl, c.oid
    FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname <> 'uid_internal'
   WHERE c.relkind IN ('r', 'v', 'S')
   UNION ALL
  SELECT m.classid, m.objid, n.nspname, 'schema', NULL, n.nspacl, n.oid
    FROM member m JOIN pg_namespace n ON m.classid = 'pg_namespace'::regclass AND n.oid = m.objid
), granted AS ( -- what other roles than superusers may do; what all may do with functions goes without saying
  SELECT o.classid, o.objid, string_agg(format('%s for %s', r.privileges, r.roles), '; ' ORDER BY r.roles) AS text
    FROM object o CROSS JOIN LATERAL (
         SELECT string_agg(g.privilege, ', ' ORDER BY g.privilege) AS privileges, g.roles
           FROM (SELECT CASE x.grantee WHEN x.grantor THEN 'ALL' ELSE x.privilege_type END AS privilege, -- ALL: the owner
                        CASE x.grantee WHEN 0 THEN 'every role' ELSE pg_get_userbyid(x.grantee) END AS roles
                   FROM aclexplode(o.acl) x
                  WHERE x.grantee = 0 OR pg_get_userbyid(x.grantee) LIKE 'pg\_%'
                  UNION
                 SELECT x.privilege_type || ' on columns', 'every role'
                   FROM pg_attribute a, aclexplode(a.attacl) x
                  WHERE o.kind IN ('table', 'view') AND a.attrelid = o.objid AND x.grantee = 0) g
          GROUP BY g.roles) r
   GROUP BY o.classid, o.objid
), described AS (
  SELECT o.name, o.creation, s.place, s.rank,
         concat_ws(E'\n\n', CASE WHEN o.creation = min(o.creation) OVER (PARTITION BY o.name) THEN '### ' || o.name END,
           CASE o.kind WHEN 'function' THEN format('`%s`', o.form) ELSE initcap(o.kind) || '. ' END
             || CASE o.kind WHEN 'function' THEN E'\n\n' ELSE '' END
             || obj_description(o.objid, o.classid::regclass::name),
           CASE WHEN o.kind = 'view' AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = o.objid
                                                      AND col_description(o.objid, a.attnum) IS NOT NULL)
                THEN 'Columns: ' || o.form
                WHEN o.kind IN ('table', 'view') THEN
             (SELECT string_agg(format('- `%s` %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                       ' (default ' || regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::[a-z ]+$', '') || ')',
                       ': ' || col_description(o.objid, a.attnum)), E'\n' ORDER BY a.attnum)
                FROM pg_attribute a
                LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''
               WHERE a.attrelid = o.objid AND a.attnum > 0) END,
           'Privileges: ' || CASE WHEN o.kind <> 'function' THEN coalesce(g.text, 'none granted')
                                  WHEN g.text IS NULL THEN 'none granted'
                                  WHEN g.text <> 'EXECUTE for every role' THEN g.text END) AS text
    FROM object o LEFT JOIN granted g ON g.classid = o.classid AND g.objid = o.objid
    LEFT JOIN (SELECT s.place, s.title, u.name, u.rank FROM subject s, unnest(s.members) WITH ORDINALITY u(name, rank)) s
      ON s.name = o.name
), setting AS (
  SELECT s.name, concat_ws(E'\n\n', '### ' || s.name,
           concat_ws(' ', s.short_desc, s.extra_desc),
           format('Value: %s.', concat_ws(', ', s.vartype || coalesce(', in ' || s.unit, ''),
             s.min_val || ' to ' || s.max_val, 'default ' || coalesce(nullif(s.boot_val, ''), 'empty'),
             CASE s.context WHEN 'user' THEN 'set by every role' WHEN 'superuser' THEN 'set by superusers'
                            ELSE 'set in postgresql.conf' END))) AS text
    FROM pg_settings s
   WHERE s.name LIKE 'uidgen.%' AND s.name <> 'uidgen.fault' -- of a test build
), page(place, rank, creation, name, text) AS (
  SELECT 0, 0, 0::oid, '', '# Reference

This page says what each function, view, table and setting does, and who may use it. Functions without a line on privileges may be '
    'called by every role with USAGE on the schema of the extension. Arguments with DEFAULT may be left out; if any other '
    'argument is NULL, a function returns NULL, or its error says what it needs. Superusers and owners may do everything. '
    'test/reference.sql makes this page from the comments in the database, which psql shows with \df+ and \d+.'
   UNION ALL
  SELECT s.place, 0, 0::oid, '', '## ' || s.title FROM subject s
   UNION ALL
  SELECT DISTINCT 11, 0, 0::oid, '', '## Other' FROM described d WHERE d.place IS NULL
   UNION ALL
  SELECT coalesce(d.place, 11), d.rank, d.creation, d.name, d.text FROM described d
   UNION ALL
  SELECT 12, 0, 0::oid, '', '## Settings'
   UNION ALL
  SELECT 12, 1, 0::oid, s.name, s.text FROM setting s
)
-- In Markdown, in lines of at most 120 characters that do not begin a list.
SELECT rtrim(string_agg(regexp_replace(
         replace(regexp_replace(text, '([*<])', '\\\1', 'g'), 'timestamp with time zone', 'timestamptz'),
         '([^\n]{1,120})(?: (?![-+>#=])|\n|$)', E'\\1\n', 'g'), E'\n' ORDER BY place, rank, name COLLATE "C", creation), E'\n')
  FROM page;
