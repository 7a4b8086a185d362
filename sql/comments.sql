-- What the extension says of itself.
CREATE EXTENSION uidgen;

-- Everything in it has a comment. (A table's row type and array type, its index, TOAST table and constraints have none
-- anywhere in PostgreSQL; a trigger is described by its function.)
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
  FROM pg_depend AS d
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
   AND d.classid <> 'pg_type'::regclass AND d.classid <> 'pg_rewrite'::regclass
   AND obj_description(d.objid, d.classid::regclass::name) IS NULL
 ORDER BY 1;
SELECT obj_description(oid, 'pg_extension') IS NOT NULL AS extension FROM pg_extension WHERE extname = 'uidgen';
SELECT c.relname, a.attname AS column_without_comment
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
 WHERE c.relname IN ('uid_generator', 'uid_segment', 'worker_node', 'uid_fleet_state', 'uid_fleet_pool',
                     'uid_fleet_node', 'uid_key')
   AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND col_description(c.oid, a.attnum) IS NULL
 ORDER BY 1, 2;

-- The objects themselves, and for functions how they may be used.
\pset format unaligned
\pset footer off
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
  FROM pg_depend AS d
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
   AND d.classid NOT IN ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_rewrite'::regclass)
 ORDER BY pg_describe_object(d.classid, d.objid, 0) COLLATE "C";
SELECT p.oid::regprocedure AS function, p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict,
       p.prosecdef AS definer, p.proconfig AS settings
  FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
 ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Code in SQL or PL/pgSQL is either parsed when it is made, or pins its search_path with pg_catalog first and
-- pg_temp last.
SELECT p.oid::regprocedure AS not_pinned
  FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'uidgen'
  JOIN pg_language AS l ON l.oid = p.prolang
 WHERE l.lanname <> 'c' AND p.prosqlbody IS NULL
   AND NOT coalesce(p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false);

-- What everybody may do.
SELECT c.oid::regclass AS relation, array_agg(a.privilege_type ORDER BY a.privilege_type) AS public
  FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  CROSS JOIN LATERAL aclexplode(c.relacl) AS a
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND a.grantee = 0
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'uidgen')
 GROUP BY c.oid ORDER BY c.oid::regclass::text COLLATE "C";
-- Triggers that guard the tables.
SELECT tgrelid::regclass AS "table", tgname, tgfoid::regproc AS function FROM pg_trigger
 WHERE tgrelid IN ('uid_generator'::regclass, 'uid_segment'::regclass, 'uid_secrets.uid_key'::regclass, 'worker_node'::regclass) AND NOT tgisinternal
 ORDER BY 1, 2;
SELECT evtname, evtevent, evtenabled FROM pg_event_trigger;

-- What pg_dump takes along.
SELECT c.oid::regclass AS relation, condition
  FROM pg_extension, unnest(extconfig, extcondition) AS u(config, condition) JOIN pg_class AS c ON c.oid = config
 WHERE extname = 'uidgen' ORDER BY 1;

DROP EXTENSION uidgen;
