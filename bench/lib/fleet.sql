-- The request of a member that got this answer last; NULL: of a newcomer.
CREATE FUNCTION bench_request(incarnation bigint, a uid_internal.uid_fleet_answer) RETURNS uid_internal.uid_fleet_request LANGUAGE sql AS $$
  SELECT jsonb_populate_record(NULL::uid_internal.uid_fleet_request, jsonb_build_object(
      'protocol', 1, 'fleet', a.fleet, 'term', a.term, 'term_nonce', a.term_nonce, 'serial', a.serial, 'seal', a.seal,
      'host', 'host', 'port', '5432', 'database', 'db', 'version', 'v',
      'incarnation', incarnation, 'held_node', a.node, 'held_from', a.granted_from, 'held_until', a.granted_until,
      'held_membership', a.membership, 'held_term', CASE WHEN a.node IS NOT NULL THEN a.term END,
      'held_term_nonce', a.term_nonce, 'held_serial', a.serial, 'held_seal', a.held_seal,
      'clock_us', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
      'lowest', extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00+00')::bigint, 'length', 600,
      'generator', 'uid_generators.bench', 'preset', 'bench', 'layout_epoch_us', 1767225600000000, 'tick_us', 1000000,
      'time_bits', 28, 'datacenter_bits', 0, 'worker_bits', 22, 'sequence_bits', 13, 'policy', 'disposable'))
$$;
