// What distinguishes this server from another one, and how its own files are checked.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

// The host's name, always terminated. False: it is unknown or too long.
bool read_host_name(char *into, size_t bytes);

// The path of the data directory, with symbolic links resolved. False: it is unknown or too long.
bool read_data_directory(char *into, size_t bytes);

// Whether the server becomes a standby, or recovers from a backup, at its next start.
bool recovery_is_requested();

pg_crc32c checksum(const void *content, size_t bytes);

} // namespace uidgen::pg
