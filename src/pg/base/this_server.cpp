#include "this_server.hpp"

#include <cstdlib>
#include <unistd.h>

namespace uidgen::pg {

bool read_host_name(char *into, size_t bytes) {
    into[0] = '\0';
    const bool known = gethostname(into, bytes - 1) == 0;
    into[bytes - 1] = '\0';
    return known;
}

bool read_data_directory(char *into, size_t bytes) {
    char *resolved = realpath(DataDir, nullptr);
    const bool fits = resolved != nullptr && strlcpy(into, resolved, bytes) < bytes;
    free(resolved);
    return fits;
}

bool recovery_is_requested() {
    const char *const signals[] = {"standby.signal", "recovery.signal", "backup_label"};
    for (const char *signal : signals)
        if (access(signal, F_OK) == 0)
            return true;
    return false;
}

pg_crc32c checksum(const void *content, size_t bytes) {
    pg_crc32c crc;
    INIT_CRC32C(crc);
    COMP_CRC32C(crc, content, bytes);
    FIN_CRC32C(crc);
    return crc;
}

} // namespace uidgen::pg
