-- Concealed ids. Applications call uid_conceal() and uid_reveal(); owners of keys call the others. A key is a sequence
-- in uid_keys, which carries its name, owner and privileges, and a row of uid_key, which carries its secrets. The
-- sequence's security label has the id of that row. Its counter means nothing.
--
-- The table is in uid_secrets, where no GRANT on all tables of the applications' schemas reaches the secrets.

CREATE SCHEMA uid_keys;
COMMENT ON SCHEMA uid_keys IS
  'Sequences of uidgen''s keys, one for each key. USAGE on one lets a role conceal and reveal ids with the key.';

-- No message shows a secret when a line of COPY is refused:
--
--   1. PostgreSQL shows at most the first 100 bytes of a line, and 64 of each field of a row. A warning of 105 bytes
--      stands before the secrets.
--   2. An input function may show all of its argument. Of a line, damaged or not, the secrets are in the first field:
--      they stand in front, and neither they nor the warning have a character that COPY takes for a delimiter. This
--      field is text, whose input function accepts everything.
--   3. The trigger checks, not a CHECK, and its messages show no secret. Of a row with a NULL, see 1.
CREATE TABLE uid_secrets.uid_key (
  secrets      text,
  id           bigint      PRIMARY KEY,
  width        integer     DEFAULT 63,
  version_bits integer     DEFAULT 0,
  versions     integer     DEFAULT 1,
  created      timestamptz NOT NULL DEFAULT now(),
  rotated      timestamptz
);
COMMENT ON TABLE uid_secrets.uid_key IS
  'The secrets of keys, one row for each. Only its owner, the owner of the database, members of pg_read_all_data and '
  'superusers may read it.';
COMMENT ON COLUMN uid_secrets.uid_key.secrets IS
  'a warning of 105 characters, which messages may show, and for each version an AES-256 key in hexadecimal; NULL in '
  'a new row: made at random';
COMMENT ON COLUMN uid_secrets.uid_key.id IS 'random number of the key, which the label of its sequence has, too';
COMMENT ON COLUMN uid_secrets.uid_key.width IS 'bits of a concealed id, 20 + version_bits to 63';
COMMENT ON COLUMN uid_secrets.uid_key.version_bits IS
  'bits of a concealed id that show the version of the key, above the others, 0 to 10';
COMMENT ON COLUMN uid_secrets.uid_key.versions IS
  'number of versions, from 1 to 2^version_bits; the last one is the newest';
COMMENT ON COLUMN uid_secrets.uid_key.created IS 'creation time of the key';
COMMENT ON COLUMN uid_secrets.uid_key.rotated IS
  'creation time of the newest version; NULL: there is only the first one';

CREATE FUNCTION uid_internal.uid_key_changing() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  key text := coalesce((SELECT k.name FROM uid_internal.keys k WHERE k.id = NEW.id LIMIT 1), NEW.id::text);
  warning CONSTANT text := 'secret.keys.of.uidgen.with.the.rest.of.this.text.'
                           'anybody.can.reveal.the.ids.that.were.concealed.by.a.key.';
  former text := warning;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.id, NEW.width, NEW.version_bits, NEW.created)
       IS DISTINCT FROM (OLD.id, OLD.width, OLD.version_bits, OLD.created) THEN
      RAISE EXCEPTION 'cannot change id, width, version_bits or created of key "%"', key
        USING ERRCODE = 'feature_not_supported', HINT = 'Create another key with uid_key_create().';
    END IF;
    former := OLD.secrets;
    IF NEW.versions > OLD.versions THEN
      NEW.rotated := now();
    END IF;
  END IF;
  IF (NEW.version_bits BETWEEN 0 AND 10 AND NEW.width BETWEEN 20 + NEW.version_bits AND 63) IS NOT TRUE THEN
    RAISE EXCEPTION 'invalid width % and version_bits % of key "%"', NEW.width, NEW.version_bits, key
      USING ERRCODE = 'invalid_parameter_value', -- FF1 needs a million values or more
            HINT = 'Use version_bits from 0 to 10, and a width from 20 + version_bits to 63.';
  END IF;
  IF (NEW.versions BETWEEN 1 AND 1 << NEW.version_bits) IS NOT TRUE THEN
    RAISE EXCEPTION 'key "%" cannot have % versions', key, NEW.versions
      USING ERRCODE = 'program_limit_exceeded',
            HINT = format('Create another key with uid_key_create(), with more version_bits than %s.',
                          NEW.version_bits);
  END IF;
  -- A secret is made here and nowhere else, so it is in no statement, no parameter and no log. A random uuid is 122
  -- bits of the server's strong random numbers.
  IF NEW.secrets IS NULL OR TG_OP = 'UPDATE' THEN
    NEW.secrets := coalesce(NEW.secrets, warning);
    WHILE length(NEW.secrets) < length(warning) + 64 * NEW.versions LOOP
      NEW.secrets := NEW.secrets || encode(sha256(
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex');
    END LOOP;
  END IF;
  IF NOT starts_with(NEW.secrets, former) OR length(NEW.secrets) <> length(warning) + 64 * NEW.versions
     OR substr(NEW.secrets, length(warning) + 1) !~ '^[0-9a-f]*$' THEN
    RAISE EXCEPTION 'invalid secrets of key "%"', key
      USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'After a warning, a key has 64 hexadecimal digits for each version. They do not change.',
            HINT = 'Leave the column out, and the server makes the secrets.';
  END IF;
  RETURN NEW;
END
$$;
COMMENT ON FUNCTION uid_internal.uid_key_changing() IS
  'Trigger function of uid_key. It makes the secrets, and rejects a row that is not valid or whose secrets would '
  'change.';

CREATE TRIGGER uid_key_changing BEFORE INSERT OR UPDATE ON uid_secrets.uid_key
  FOR EACH ROW EXECUTE FUNCTION uid_internal.uid_key_changing();
-- Whatever session_replication_role is, a key gets its secret.
ALTER TABLE uid_secrets.uid_key ENABLE ALWAYS TRIGGER uid_key_changing;

CREATE VIEW uid_internal.keys AS
SELECT c.relname::text AS name, l.objoid::regclass AS sequence,
       pg_catalog.substring(l.label, '^key id=([0-9]+)$')::bigint AS id
  FROM pg_catalog.pg_seclabel l JOIN pg_catalog.pg_class c ON c.oid = l.objoid
 WHERE l.classoid = 'pg_catalog.pg_class'::regclass::oid AND l.objsubid = 0 AND l.provider = 'uidgen'::text
   AND pg_catalog.starts_with(l.label, 'key '::text);
COMMENT ON VIEW uid_internal.keys IS 'The names of keys, and the ids of their rows in uid_key, for functions.';

CREATE VIEW uid_key_config AS
SELECT n.name, n.sequence, k.width, k.version_bits, k.versions, k.created, k.rotated,
       9223372036854775807 >> (63 - k.width + k.version_bits) AS largest_id
  FROM uid_internal.keys n LEFT JOIN uid_secrets.uid_key k ON k.id = n.id;
COMMENT ON VIEW uid_key_config IS
  'The keys, without their secrets. largest_id: the largest id that the key can conceal. The other columns are those '
  'of uid_key.';

CREATE FUNCTION uid_key_create(name text, width integer DEFAULT 63, version_bits integer DEFAULT 0,
    if_not_exists boolean DEFAULT false) RETURNS regclass
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_key_create';
COMMENT ON FUNCTION uid_key_create(text, integer, integer, boolean) IS
  'Creates a key with a random secret, which roles with REPLICATION can read, for concealed ids of width bits '
  '(20 + version_bits to 63), whose upper version_bits (0 to 10) show the version. If it exists, the call fails, or '
  'with if_not_exists changes nothing. Needs CREATE on the schema uid_keys; USAGE on the sequence lets a role use '
  'the key, and DROP SEQUENCE drops it.';

CREATE FUNCTION uid_key_rotate(name text) RETURNS integer
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'uid_key_rotate';
COMMENT ON FUNCTION uid_key_rotate(text) IS
  'Makes a new version of a key, which other transactions use from the commit on, and returns its number. Fails if '
  'no version bit is left. Only the owner of the key may call it.';

CREATE FUNCTION uid_conceal(id bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_conceal';
COMMENT ON FUNCTION uid_conceal(bigint, text) IS
  'Returns the concealed id for an id from 0 to the key''s largest_id: FF1 (NIST SP 800-38G) with its newest '
  'version. Needs USAGE on the key''s sequence.';

CREATE FUNCTION uid_reveal(value bigint, key_name text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'uid_reveal';
COMMENT ON FUNCTION uid_reveal(bigint, text) IS
  'Returns the id behind a concealed id. A value that the key cannot have concealed fails with '
  'numeric_value_out_of_range. Needs USAGE on the key''s sequence.';
