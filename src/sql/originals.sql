-- Segments as the tables of other services: t_sequence, and Leaf's leaf_alloc. Their nodes take blocks of values with
-- the statements that they send to such a table.

CREATE FUNCTION uid_internal.uid_reserve_block() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'uid_reserve_block';
COMMENT ON FUNCTION uid_internal.uid_reserve_block() IS
  'Trigger function of uid_segment_row (for t_sequence) and leaf_alloc. It reserves a block of values for each version '
  'of a row, and writes into the row what was reserved. The caller needs USAGE on the sequence of the segment. Another '
  'pk_seq_name in t_sequence becomes the name of the segment, which only the owner of the sequence may rename.';
CREATE TRIGGER uid_reserve_block BEFORE UPDATE ON uid_internal.uid_segment_row
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block();
ALTER TABLE uid_internal.uid_segment_row ENABLE ALWAYS TRIGGER uid_reserve_block;

CREATE FUNCTION uid_internal.uid_add_segment() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  is_leaf boolean := TG_WHEN = 'BEFORE';
  segment text;
  value bigint;
  sequence regclass;
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'cannot delete from view "%"', TG_TABLE_NAME
      USING ERRCODE = 'feature_not_supported', HINT = 'Drop the segment with segment_drop().';
  ELSIF is_leaf THEN
    segment := NEW.biz_tag;
    value := NEW.max_id;
  ELSE
    segment := NEW.pk_seq_name;
    value := NEW.current_val;
  END IF;
  IF NOT EXISTS (SELECT FROM uid_internal.segments s WHERE s.name = segment) THEN
    EXECUTE format('SELECT %s.segment_create($1, $2, $3, $3, $4, LEAST($2, 0::bigint), $3, false)',
                   uid_internal.uid_home()) INTO sequence USING segment, value, NULL::bigint, 1::bigint;
  ELSIF NOT is_leaf THEN
    RAISE EXCEPTION 'segment "%" already exists', left(segment, 63)
      USING ERRCODE = 'unique_violation', HINT = 'Update its row, or drop the segment with segment_drop().';
  END IF;
  IF NOT is_leaf THEN
    PERFORM uid_internal.uid_place_segment(sequence, value, NEW.increment_val);
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_add_segment() IS
  'Trigger function of t_sequence and leaf_alloc. An INSERT creates a segment, and so does another biz_tag, unless '
  'leaf_alloc names one that exists. A DELETE from t_sequence fails.';

CREATE VIEW t_sequence AS SELECT s.name AS pk_seq_name, s.current_val, s.increment_val FROM uid_internal.uid_segment_row s;
ALTER VIEW t_sequence ALTER COLUMN increment_val SET DEFAULT 1;
CREATE TRIGGER uid_add_segment INSTEAD OF INSERT OR DELETE ON t_sequence
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_add_segment();
COMMENT ON VIEW t_sequence IS
  'The named segments in the form of a t_sequence table, for services that take blocks of increment_val values with '
  'SELECT ... FOR UPDATE and UPDATE t_sequence SET current_val = current_val + increment_val. The values from '
  'current_val - increment_val to current_val + 2 * increment_val are reserved for the row, so a node may take its '
  'block before the UPDATE or after it, as long as all nodes of one row do the same. current_val is NULL until the '
  'first UPDATE. SET current_val = 0 starts over if too few values are left, and otherwise continues. An INSERT '
  'creates a segment. A role needs SELECT and UPDATE on the view, and USAGE on the sequence; to start over, it needs '
  'UPDATE on the sequence, too, and to insert, INSERT on the view and CREATE on the schema uid_segments.';

CREATE FUNCTION uid_leaf_alloc_create(schema text DEFAULT pg_catalog.current_schema()) RETURNS regclass
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  leaf text;
BEGIN
  IF coalesce(schema, '') = '' THEN
    RAISE EXCEPTION 'no schema has been selected for table "leaf_alloc"'
      USING ERRCODE = 'invalid_schema_name', HINT = 'Pass the name of a schema.';
  END IF;
  leaf := format('%I.leaf_alloc', schema::name);
  EXECUTE format(
    'CREATE TABLE %1$s (
       biz_tag varchar(128) PRIMARY KEY DEFAULT '''',
       max_id bigint NOT NULL DEFAULT 1,
       step integer NOT NULL,
       description varchar(256),
       update_time timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP);
     CREATE TRIGGER uid_add_segment BEFORE INSERT OR UPDATE OF biz_tag ON %1$s
       FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_add_segment();
     CREATE TRIGGER uid_reserve_block BEFORE INSERT OR UPDATE ON %1$s
       FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_reserve_block();
     COMMENT ON TABLE %1$s IS ''The table of Leaf, over segments of uidgen. uid_leaf_alloc_create() created it.''',
    leaf);
  RETURN leaf::regclass;
END
$$;
COMMENT ON FUNCTION uid_leaf_alloc_create(text) IS
  'Creates a table leaf_alloc (biz_tag, max_id, step, description, update_time) in the current schema or in the given '
  'one. Its rows take their values from the segments that biz_tag names. A node of Leaf takes a block with UPDATE '
  'leaf_alloc SET max_id = max_id + n, and reads max_id afterwards in the same transaction. The n + 1 values up to '
  'max_id are reserved, so a node may take those below max_id or those up to max_id, as long as all nodes of one row '
  'do the same. An INSERT, or an UPDATE of biz_tag, creates the segment unless it exists. The caller owns the table. '
  'Let other roles use it with GRANT SELECT, UPDATE; they also need USAGE on the sequences of the segments. Drop it '
  'with DROP TABLE.';
