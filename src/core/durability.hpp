// How durable a range's record is: the three levels that a caller's synchronous_commit may ask for.
#pragma once

#include <cstdint>

namespace uidgen::core {

enum class Durability : uint32_t {
    local,          // flushed on this server
    remote_written, // and received by the synchronous standby
    remote_flushed, // and flushed there
};

constexpr uint32_t durability_levels = 3;

constexpr uint32_t index(Durability level) noexcept { return static_cast<uint32_t>(level); }

} // namespace uidgen::core
