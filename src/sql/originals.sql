-- Segments as the tables of other services: t_sequence, and Leaf's leaf_alloc. Their nodes take blocks of values with
-- the statements that they send to such a table.

CREATE FUNCTION uid_internal.uid_reserve_block() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_reserve_block';
COMMENT ON FUNCTION uid_internal.uid_reserve_block() IS
  'Trigger function of t_sequence, which passes an argument, and of leaf_alloc. It reserves a block of values for each '
  'version of a row, and writes into the row what was reserved. An INSERT or another name creates a segment, unless it '
  'exists. The caller needs USAGE on the sequence of the segment.';

-- Always, or a session in the role of a replica would move a row without a block. Rows that logical replication brings
-- stay as they are.
CREATE FUNCTION uid_internal.uid_create_original(schema text, leaf boolean) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  name text := CASE WHEN leaf THEN 'leaf_alloc' ELSE 't_sequence' END;
  relation text;
BEGIN
  IF coalesce(schema, '') = '' THEN
    RAISE EXCEPTION 'no schema has been selected for table "%"', name
      USING ERRCODE = 'invalid_schema_name', HINT = 'Pass the name of a schema.';
  END IF;
  relation := format('%I.%I', schema::name, name);
  IF leaf THEN
    EXECUTE format(
      'CREATE TABLE %s (
         biz_tag varchar(128) PRIMARY KEY DEFAULT '''',
         max_id bigint NOT NULL DEFAULT 1,
         step integer NOT NULL,
         description varchar(256),
         update_time timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP)', relation);
  ELSE
    EXECUTE format(
      'CREATE TABLE %s (
         pk_seq_name text PRIMARY KEY,
         current_val bigint NOT NULL,
         increment_val bigint NOT NULL DEFAULT 1
           CONSTRAINT "increment_val from 1 to 2^40" CHECK (increment_val BETWEEN 1 AND 1099511627776))', relation);
  END IF;
  EXECUTE format(
    'CREATE TRIGGER uid_reserve_block BEFORE INSERT OR UPDATE ON %1$s
       FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block(%2$s);
     ALTER TABLE %1$s ENABLE ALWAYS TRIGGER uid_reserve_block;
     COMMENT ON TABLE %1$s IS %3$L',
    relation, CASE WHEN leaf THEN '' ELSE name END,
    format('A table of another service over segments of uidgen. uid_%s_create() created it.', name));
  RETURN relation::regclass;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_create_original IS
  'Creates a table leaf_alloc, or else t_sequence, with its trigger.';

CREATE FUNCTION uid_t_sequence_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_create_original(schema, false);
END;
COMMENT ON FUNCTION uid_t_sequence_create(text) IS
  'Creates a table t_sequence (pk_seq_name, current_val, increment_val) in the current schema or in the given one. Its '
  'rows take their values from the segments that pk_seq_name names. A node takes a block of increment_val values with '
  'SELECT ... FOR UPDATE and UPDATE t_sequence SET current_val = current_val + increment_val, before the UPDATE or '
  'after it: the values from current_val - increment_val to current_val + 2 * increment_val are reserved for the row. '
  'SET current_val = 0 starts over if too few values are left, and otherwise continues. An INSERT, or another '
  'pk_seq_name, creates the segment unless it exists. The caller owns the table. Let other roles use it with GRANT '
  'SELECT, UPDATE; they also need USAGE on the sequences of the segments, to start over UPDATE, and to create segments '
  'CREATE on the schema uid_segments.';

CREATE FUNCTION uid_leaf_alloc_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_create_original(schema, true);
END;
COMMENT ON FUNCTION uid_leaf_alloc_create(text) IS
  'Creates a table leaf_alloc (biz_tag, max_id, step, description, update_time) in the current schema or in the given '
  'one. Its rows take their values from the segments that biz_tag names. A node of Leaf takes a block with UPDATE '
  'leaf_alloc SET max_id = max_id + n, and reads max_id afterwards in the same transaction. The n + 1 values up to '
  'max_id are reserved, so a node may take those below max_id or those up to max_id, as long as all nodes of one row '
  'do the same. An INSERT, or an UPDATE of biz_tag, creates the segment unless it exists. The caller owns the table. '
  'Let other roles use it with GRANT SELECT, UPDATE; they also need USAGE on the sequences of the segments. Drop it '
  'with DROP TABLE.';
