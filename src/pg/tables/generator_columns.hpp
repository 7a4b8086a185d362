// Columns of uid_generator and uid_segment, as the install script makes them.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

enum GeneratorColumn : AttrNumber {
    generator_sequence = 1,
    generator_preset,
    generator_epoch,
    generator_tick_us,
    generator_time_bits,
    generator_datacenter_bits,
    generator_worker_bits,
    generator_sequence_bits,
    generator_sequence_first,
    generator_backup_worker,
    generator_lease_ms,
    generator_max_ahead_ms,
    generator_when_full,
    generator_when_back,
    generator_tolerance_ms,
    generator_spread,
    generator_worker_policy,
    generator_worker_number,
    generator_mode,
    generator_boost_power,
    generator_padding_factor,
    generator_schedule_ms,
    generator_when_ring_full,
    generator_when_ring_empty,
    generator_chunk,
    generator_max_staleness_ms,
    generator_created,
    generator_builtin,
    generator_is_default,
    generator_last_column = generator_is_default,
};
enum SegmentColumn : AttrNumber { segment_name = 1, segment_sequence, segment_step, segment_max_step };

} // namespace uidgen::pg
