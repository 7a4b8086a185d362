-- Segments as the tables of other services: t_sequence, and Leaf's leaf_alloc. Their nodes take blocks of values with
-- the statements that they send to such a table.

CREATE FUNCTION uid_internal.uid_reserve_block() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_reserve_block';
COMMENT ON FUNCTION uid_internal.uid_reserve_block() IS
  'Trigger function of t_sequence, which passes an argument, and of leaf_alloc. Reserves a block of values for each '
  'version of a row.';

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
  'Creates a table t_sequence (pk_seq_name, current_val, increment_val), whose rows take blocks of increment_val '
  'values from segments of the name in pk_seq_name. Roles need SELECT and UPDATE on it and USAGE on the segments'' '
  'sequences, and UPDATE on these to start over or to take more than max_step values at once.';

CREATE FUNCTION uid_leaf_alloc_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT uid_internal.uid_create_original(schema, true);
END;
COMMENT ON FUNCTION uid_leaf_alloc_create(text) IS
  'Creates a table leaf_alloc (biz_tag, max_id, step, description, update_time), whose rows take blocks of values up '
  'to max_id from segments of the name in biz_tag. Roles need SELECT and UPDATE on it and USAGE on the segments'' '
  'sequences, and UPDATE on these to start over or to take more than max_step values at once.';
