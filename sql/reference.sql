-- docs/reference.md is what test/reference.sql prints: lines that begin with < or > are no longer true, or missing.
CREATE EXTENSION uidgen;
\getenv source PG_ABS_SRCDIR
\set reference :source '/test/reference.sql'
\o | diff "$PG_ABS_SRCDIR/docs/reference.md" -
\set ECHO none
\i :reference
\set ECHO all
\o

-- Everything has a comment. (A table's row type and array type, its index, TOAST table and constraints have none anywhere
-- in PostgreSQL; a trigger is described by its function.)
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
  FROM pg_depend AS d
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
   AND d.classid <> 'pg_type'::regclass AND d.classid <> 'pg_rewrite'::regclass
   AND obj_description(d.objid, d.classid::regclass::name) IS NULL
 ORDER BY 1;
SELECT c.oid::regclass AS relation, a.attname AS column_without_comment
  FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  JOIN pg_attribute AS a ON a.attrelid = c.oid
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
   AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND col_description(c.oid, a.attnum) IS NULL
 ORDER BY 1, 2;

-- Code in SQL or PL/pgSQL is either parsed when it is made, or pins its search_path with pg_catalog first and
-- pg_temp last.
SELECT p.oid::regprocedure AS not_pinned
  FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'uidgen'
  JOIN pg_language AS l ON l.oid = p.prolang
 WHERE l.lanname <> 'c' AND p.prosqlbody IS NULL
   AND NOT coalesce(p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false);

-- How a planner may treat functions.
SELECT p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict, p.prosecdef AS definer,
       string_agg(DISTINCT p.proname::text, ' ' ORDER BY p.proname::text) AS functions
  FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;

-- Triggers that guard the tables.
SELECT tgrelid::regclass AS "table", tgname, tgfoid::regproc AS function FROM pg_trigger
 WHERE tgfoid IN (SELECT objid FROM pg_depend WHERE classid = 'pg_proc'::regclass AND deptype = 'e') AND NOT tgisinternal
 ORDER BY tgrelid::regclass::text COLLATE "C", 2;
SELECT evtname, evtevent, evtenabled FROM pg_event_trigger ORDER BY 1;

-- What pg_dump takes along.
SELECT c.oid::regclass AS relation, regexp_replace(condition, ' IN .*', ' IN ...') AS condition
  FROM pg_extension, unnest(extconfig, extcondition) AS u(config, condition) JOIN pg_class AS c ON c.oid = config
 WHERE extname = 'uidgen' ORDER BY c.oid::regclass::text COLLATE "C";

-- Which internal functions only some roles may call. Triggers are among them, which need no privilege.
SELECT p.oid::regprocedure AS not_for_everyone
  FROM pg_proc AS p
 WHERE p.pronamespace = 'uid_internal'::regnamespace
   AND NOT EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS x WHERE x.grantee = 0)
 ORDER BY p.oid::regprocedure::text COLLATE "C";
DROP EXTENSION uidgen;
