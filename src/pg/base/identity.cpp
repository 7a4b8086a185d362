#include "identity.hpp"

#include <cstdlib>
#include <unistd.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "base.hpp"

namespace uidgen::pg {

bool read_host_name(char *into, size_t bytes) {
    into[0] = '\0';
    const bool known = gethostname(into, bytes - 1) == 0;
    into[bytes - 1] = '\0';
    return known;
}

ServerAddress address_of_server() {
    ServerAddress address = {};
    (void)read_host_name(address.host, sizeof(address.host));
    address.host[64] = '\0'; // as wide as the column
    address.port = psprintf("%d", PostPortNumber);
    return address;
}

bool read_data_directory(char *into, size_t bytes) {
    char *resolved = realpath(DataDir, nullptr);
    const bool fits = resolved != nullptr && strlcpy(into, resolved, bytes) < bytes;
    free(resolved);
    return fits;
}

namespace {

// The kernel's boot id, from /proc. False: the file cannot be read.
bool read_boot_id(char *into, size_t bytes) {
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, into, bytes);
    if (file >= 0)
        close(file);
    return length > 0;
}

} // namespace

bool identify(int file, FileIdentity *identity) {
    struct stat directory;
    struct stat network;
    struct statx own;
    memset(identity, 0, sizeof(*identity));
    if (!read_boot_id(identity->boot, sizeof(identity->boot)) || stat("/proc/self/ns/net", &network) != 0 ||
        !read_host_name(identity->host, sizeof(identity->host)) ||
        !read_data_directory(identity->directory, sizeof(identity->directory)) || stat(DataDir, &directory) != 0 ||
        statx(file, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &own) != 0)
        return false;
    identity->network[0] = network.st_dev;
    identity->network[1] = network.st_ino;
    identity->directory_inode = directory.st_ino;
    identity->file_inode = own.stx_ino;
    if ((own.stx_mask & STATX_BTIME) != 0) {
        identity->born_seconds = own.stx_btime.tv_sec;
        identity->born_ns = own.stx_btime.tv_nsec;
    }
    return true;
}

bool birth_of(const char *path, uint64 *born) {
    struct statx about;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME | STATX_MTIME, &about) != 0)
        return false;
    const auto &time = (about.stx_mask & STATX_BTIME) != 0 ? about.stx_btime : about.stx_mtime;
    const uint64 parts[] = {about.stx_ino, static_cast<uint64>(time.tv_sec), time.tv_nsec};
    *born = hash_bytes_extended(reinterpret_cast<const unsigned char *>(parts), sizeof(parts), 0);
    return true;
}

uint64 place_of_server() {
    struct {
        uint64 born;
        char host[256];
        char directory[MAXPGPATH];
    } place = {};
    (void)read_host_name(place.host, sizeof(place.host));
    (void)read_data_directory(place.directory, sizeof(place.directory));
    (void)birth_of("PG_VERSION", &place.born); // written once in the life of a data directory
    return hash_bytes_extended(reinterpret_cast<const unsigned char *>(&place), sizeof(place), 0);
}

int64_t random_number() {
    uint64_t number = 0;
    do
        if (!pg_strong_random(&number, sizeof(number)))
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
    while ((number >>= 1) == 0);
    return static_cast<int64_t>(number);
}

} // namespace uidgen::pg
