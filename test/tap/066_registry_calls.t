# Calls of the registry's model and statements of its administrators (test/unit/registry_calls.cpp) are replayed through
# uidgen_registry.sql, in which the clock and the place are the model's.
#
# Expected: the same answers, and the same rows afterwards. With another rule in the SQL some differ.
use UidgenTest;
use Pages;

my $node = new_node('registry', conf => "fsync = off\n");
$node->start;

my $calls = PostgreSQL::Test::Utils::tempdir() . '/calls';
shell_ok($node, "make -s -C test/unit BUILD='$calls.build' calls >'$calls'", 'the model makes calls', directory => '.');
shell_ok($node, 'psql -Xq -v ON_ERROR_STOP=1 -v keeps=restarts -f src/registry/uidgen_registry.sql', 'the registry is made', directory => '.');

# Times and terms of the model are small numbers, and 0 says that there is none.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION us(jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1000000 + $1::bigint';
CREATE FUNCTION us_or_none(jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 = ''0'' THEN 0 ELSE us($1) END';
CREATE FUNCTION number(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT greatest($1 - 1000000, 0)';
CREATE OR REPLACE FUNCTION uid_registry.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT current_setting('model.now')::bigint $$;
CREATE OR REPLACE FUNCTION uid_registry.here(OUT place text, OUT timeline text, OUT started timestamptz) LANGUAGE sql VOLATILE AS
  $$ SELECT current_setting('model.system'), current_setting('model.timeline'), to_timestamp(current_setting('model.started')::bigint) $$;
ALTER TABLE uid_registry.registry DISABLE TRIGGER ALL;
ALTER TABLE uid_registry.pool DISABLE TRIGGER ALL;
ALTER TABLE uid_registry.node DISABLE TRIGGER ALL;
CREATE TABLE call (call jsonb);
CREATE TABLE difference (call jsonb, said jsonb, was jsonb);

-- The registry as it was before the call.
CREATE PROCEDURE put(here jsonb, before jsonb) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('model.now', us(here -> 'now')::text, true), set_config('model.system', here ->> 'system', true),
          set_config('model.timeline', here ->> 'timeline', true), set_config('model.started', here ->> 'started', true);
  DELETE FROM uid_registry.node;
  DELETE FROM uid_registry.pool;
  INSERT INTO uid_registry.pool SELECT l, 'widths', false FROM generate_series(0, 1) AS l WHERE (before -> 'layouts')::int & (1 << l) > 0;
  INSERT INTO uid_registry.node
  SELECT CASE WHEN here -> 'layouts' = '2' THEN r ->> 'node' ELSE '0' END, (r -> 'node')::bigint, us(r -> 'until'),
         (r -> 'token')::bigint, (r -> 'fence')::bigint, 'login', 'holder', now()
    FROM jsonb_array_elements(before -> 'rows') AS r;
  UPDATE uid_registry.registry
     SET fleet = (before -> 'fleet')::bigint, keeps = (ARRAY['nothing', 'restarts', 'failovers'])[1 + (before -> 'keeps')::int],
         longest = (here -> 'longest')::bigint, bound = (here -> 'bound')::bigint, term = us(before -> 'term'),
         place = before ->> 'system', timeline = before ->> 'timeline', started = to_timestamp((before -> 'started')::bigint),
         fence = (before -> 'fence')::bigint, reason = (ARRAY['none', 'proof', 'lifted'])[1 + (before -> 'standing')::int],
         lost_from = us_or_none(before -> 'lost_from'), former = us_or_none(before -> 'former'), shown = us_or_none(before -> 'shown');
END
$$;

-- The model's request as the registry's, which prefers the node that the model gives a newcomer.
CREATE FUNCTION request(here jsonb, q jsonb, reply jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_array(jsonb_build_object('layout', q ->> 'layout', 'widths', 'widths', 'own_pool', false, 'holder', '',
           'lowest', CASE WHEN here -> 'layouts' = '2' THEN q -> 'layout' ELSE '0' END,
           'highest', CASE WHEN here -> 'layouts' = '2' THEN (q -> 'layout')::int ELSE (here -> 'nodes')::int - 1 END,
           'new_token', q -> 'new_token', 'earliest', us(q -> 'earliest'), 'length', q -> 'length')
         || CASE WHEN q -> 'node' = '-1' THEN jsonb_build_object('prefer', NULLIF(reply -> 'node', '-1'))
                 ELSE jsonb_build_object('node', q -> 'node', 'since', us(q -> 'since'), 'until', us(q -> 'until'),
                                         'token', CASE WHEN q -> 'token' = '0' THEN '99' ELSE q -> 'token' END) END)
$$;

-- What the model and the registry agree on.
CREATE FUNCTION agreed(reply jsonb, after jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT CASE WHEN reply ->> 'why' = 'granted' THEN reply ELSE reply - CASE WHEN reply ->> 'why' IN ('done', 'refused') THEN '{term,node,since,until}' ELSE '{node,since,until}' END::text[] END || (after - '{fleet,fence,term,layouts}'::text[])
         || jsonb_build_object('fences', after -> 'fence', 'term_after', after -> 'term')
$$;

-- What an administrator does.
CREATE FUNCTION stated(function text, argument jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  CASE function
    WHEN 'fence' THEN PERFORM uid_registry.fence(us(argument));
    WHEN 'promise' THEN PERFORM uid_registry.promise((ARRAY['nothing', 'restarts', 'failovers'])[1 + argument::int]);
    ELSE PERFORM uid_registry.nothing_was_lost();
  END CASE;
  RETURN 'done';
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  RETURN 'refused';
END
$$;

CREATE FUNCTION answered(c jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  a uid_registry.answer;
  r uid_registry.registry;
BEGIN
  IF c ? 'statement' THEN
    a.why := stated(c ->> 'statement', c -> 'argument');
  ELSE
    SELECT * INTO STRICT a
      FROM uid_registry.grant((c #> '{request,fleet}')::bigint, us(c #> '{request,seen}'), request(c -> 'here', c -> 'request', c -> 'reply'));
  END IF;
  SELECT * INTO STRICT r FROM uid_registry.registry;
  IF a.taken <> (a.why = 'taken') THEN
    a.why := a.why || ', taken: ' || a.taken;
  END IF;
  RETURN agreed(
    jsonb_build_object('why', coalesce(NULLIF(a.why, ''), 'granted'), 'term', number(a.term), 'node', a.node,
                       'since', number(a.since), 'until', number(a.until)),
    jsonb_build_object('system', r.place::int, 'timeline', r.timeline::int, 'started', extract(epoch FROM r.started)::int,
                       'term', number(r.term), 'fence', r.fence, 'keeps', array_position('{nothing,restarts,failovers}', r.keeps) - 1,
                       'standing', CASE r.reason WHEN 'proof' THEN 1 WHEN 'lifted' THEN 2 ELSE 0 END,
                       'lost_from', number(r.lost_from), 'former', number(r.former), 'shown', number(r.shown),
                       'rows', (SELECT coalesce(jsonb_agg(jsonb_build_object('node', n.node, 'until', number(n.until), 'token', n.token,
                                                                             'fence', n.fence) ORDER BY n.node), '[]')
                                  FROM uid_registry.node AS n)));
END
$$;

-- In an order that mixes the scenarios, until `most` calls differ.
CREATE PROCEDURE replay(most bigint) LANGUAGE plpgsql AS $$
DECLARE
  c jsonb;
  said jsonb;
  differing bigint := 0;
BEGIN
  TRUNCATE difference;
  FOR c IN SELECT call FROM call ORDER BY md5(call::text) LOOP
    CALL put(c -> 'here', c -> 'before');
    said := answered(c);
    IF said <> agreed(c -> 'reply', c -> 'after') THEN
      INSERT INTO difference VALUES (c, said, agreed(c -> 'reply', c -> 'after'));
      differing := differing + 1;
    END IF;
    COMMIT;
    EXIT WHEN differing = most;
  END LOOP;
END
$$;
SQL
$node->safe_psql('postgres', "COPY call FROM '$calls'");
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM call'), '>', 3000, 'there are thousands of calls');

sub differences ($most)
{
	$node->safe_psql('postgres', "CALL replay($most)");
	return $node->safe_psql('postgres', 'SELECT count(*) FROM difference');
}

is(differences(5), 0, 'the SQL answers and writes what the model does')
  or diag($node->safe_psql('postgres', q{SELECT concat_ws(E'\n', call, 'SQL:   ' || said, 'model: ' || was) FROM difference}));

# Another rule: a function, a part of its text, and what is there instead.
sub notices ($what, $function, $old, $new)
{
	my $text = $node->safe_psql('postgres', "SELECT pg_get_functiondef('uid_registry.$function'::regproc)");
	my $mutant = $text;
	my $count = $mutant =~ s/\Q$old\E/$new/;
	is($count, 1, "$function has that rule: $what") or return;
	$node->safe_psql('postgres', $mutant);
	is(differences(1), 1, "a call notices: $what");
	$node->safe_psql('postgres', $text);
}

notices('no fence after a takeover', 'arrive', "r.timeline <> h.timeline AND keeps <> 'failovers'", 'false');
notices('nothing_was_lost() forgets the fence before', 'arrive', 'ELSE x.lost_from END', 'ELSE 0 END');
notices('a grant that ends before lost ones could begin', 'judge', '> r.lost_from', '> 0');
notices('the beginning of a grant', 'judge', 'THEN q.since', 'THEN begins');
notices('a node is taken only if its holder has a successor', 'judge', 'k.until >= q.until', 'true');
notices('a grant begins within a bound of the clock', 'judge', 'least(q.earliest, now_us + r.bound)', 'q.earliest');
notices('a lost grant that is shown fences', 'enter', 's.until > coalesce(n.until, 0)', 'false');
notices('a known loss is no proof', 'arrive', 'lost_until > uid_registry.newcomers_from(r.lost_from, r)', 'lost_until > 0');
notices('a lost grant says what the present fence is for', 'arrive', 'uid_registry.newcomers_from(least(r.former, r.lost_from), r)', 'NULL');
notices('a takeover is above what its caller has seen', 'term', 'coalesce($4, 0)', '0');
notices('a proof forbids that a fence is lifted', 'nothing_was_lost', "r.reason IN ('proof', 'anew')", "r.reason = 'anew'");
notices('a promise compares first', 'promise', "WHEN 'restarts' IN (keeps, was) THEN 'restarts'", '');
notices('a statement can lower lost_from', 'fence', 'lost_from = uid_registry.clock()', 'lost_from = x.lost_from + uid_registry.clock()');
notices('a larger term fences as long as it is shown', 'see_larger_term', 'seen = x.shown', 'false');
done_testing();
