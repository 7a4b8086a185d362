-- Ids and segments under two-phase commit. expected/prepared_1.out is for a server without prepared transactions.
SELECT current_setting('max_prepared_transactions')::int = 0 AS off \gset
\if :off
  \echo 'skipped: max_prepared_transactions is 0'
  \quit
\endif
\a \t
\set live_slots '(SELECT sequence, ''generator'' AS kind FROM uid_internal.uid_live_generators() UNION ALL SELECT sequence, ''segment'' FROM uid_internal.uid_live_segments()) s'
CREATE EXTENSION uidgen;
SELECT segment_create('tickets', 7);
CREATE TABLE seen (id bigint PRIMARY KEY, ticket bigint UNIQUE);
\getenv source PG_ABS_SRCDIR
\i :source/test/rows_of.sql

-- What the transaction drew.
SELECT uid_next() AS id, segment_next('tickets') AS ticket \gset
BEGIN;
INSERT INTO seen VALUES (uid_next(), segment_next('tickets'));
PREPARE TRANSACTION 'draws';
SELECT uid_next() > :id AS above, segment_next('tickets') - :ticket AS ticket;
COMMIT PREPARED 'draws';
SELECT uid_next() > :id AS above, segment_next('tickets') - :ticket AS ticket;

-- What the transaction advanced by a statement of a t_sequence service: its row stays locked, its values reserved.
SELECT uid_t_sequence_create();
INSERT INTO t_sequence VALUES ('blocks', 1, 100);
BEGIN;
UPDATE t_sequence SET current_val = current_val + increment_val WHERE pk_seq_name = 'blocks' RETURNING current_val \gset
PREPARE TRANSACTION 'advances';
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'blocks';
SELECT current_val FROM t_sequence WHERE pk_seq_name = 'blocks' FOR UPDATE SKIP LOCKED;
SELECT segment_next('blocks') > :current_val + 200 AS beyond;
COMMIT PREPARED 'advances';
SELECT current_val - :current_val AS same FROM t_sequence WHERE pk_seq_name = 'blocks';
SELECT segment_drop('blocks');

-- What the transaction made.
BEGIN;
SELECT uid_generator_create('prepared'), segment_create('prepared');
SELECT uid_next('uid_generators.prepared') AS prepared_id \gset
SELECT segment_next('prepared');
PREPARE TRANSACTION 'makes';
SELECT segment_next('prepared');
COMMIT PREPARED 'makes';
SELECT uid_next('uid_generators.prepared') > :prepared_id AS above, segment_next('prepared') > 1 AS segment_above;
SELECT rows_of('uid_generators.prepared', 1);
BEGIN;
SELECT uid_generator_create('never'), segment_create('never');
SELECT uid_next('uid_generators.never') > 0 AS positive, segment_next('never');
PREPARE TRANSACTION 'never';
ROLLBACK PREPARED 'never';
SELECT count(*) FROM :live_slots WHERE sequence::text ~ 'never|^\d';
SELECT segment_create('never', 4);
SELECT segment_next('never');

-- What the transaction dropped.
SELECT uid_next('uid_generators.prepared') AS prepared_id, segment_next('prepared') AS prepared_ticket \gset
BEGIN;
DROP SEQUENCE uid_generators.prepared, uid_segments.prepared;
PREPARE TRANSACTION 'drops';
ROLLBACK PREPARED 'drops';
SELECT uid_next('uid_generators.prepared') > :prepared_id AS above, segment_next('prepared') > :prepared_ticket AS segment_above;
BEGIN;
DROP SEQUENCE uid_generators.prepared, uid_segments.prepared;
PREPARE TRANSACTION 'drops';
COMMIT PREPARED 'drops';
SELECT segment_next('prepared');
SELECT count(*) FROM uid_generator WHERE generator::text ~ 'prepared|^\d';
SELECT count(*) FROM uid_segment WHERE name = 'prepared';
SELECT count(*) FROM :live_slots WHERE sequence::text ~ 'prepared|^\d';

DROP TABLE seen;
DROP FUNCTION rows_of(text, bigint);
DROP EXTENSION uidgen CASCADE;
