// A disk that fails when it is told to, preloaded into a server: no root and no file system of its own is needed.
//
// UIDGEN_DISK names a file of one Order, which all processes map. The harness (Disk.pm) writes it in place, so a change
// is in force at once, everywhere.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Calls : int32_t { writes = 1, syncs = 2 };

struct Order {
    volatile int32_t error; // errno of the calls that fail; 0: none fails
    volatile int32_t calls;
    char where[504]; // they fail in files whose path begins so
};

Order *order = nullptr;

__attribute__((constructor)) void map_order() {
    const char *path = getenv("UIDGEN_DISK");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(nullptr, sizeof(Order), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        order = static_cast<Order *>(mapped);
}

bool is_there(int file) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, path, sizeof path);
    const size_t wanted = strnlen(order->where, sizeof order->where);
    return length >= static_cast<ssize_t>(wanted) && memcmp(path, order->where, wanted) == 0;
}

// The errno of a call on that file; 0: it does not fail.
int error_of(int file, Calls call) {
    if (order == nullptr || order->error == 0 || (order->calls & call) == 0)
        return 0;
    const int before = errno;
    const int error = is_there(file) ? order->error : 0;
    errno = before;
    return error;
}

template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Calls the function of that name in the next library, or fails.
#define UNLESS_ERROR(call, function, ...)                                                                              \
    static const auto original = next<decltype(&(function))>(#function);                                               \
    const int error = error_of(file, call);                                                                            \
    if (error == 0)                                                                                                    \
        return original(__VA_ARGS__);                                                                                  \
    errno = error;                                                                                                     \
    return -1

} // namespace

extern "C" {

ssize_t write(int file, const void *bytes, size_t count) { UNLESS_ERROR(writes, write, file, bytes, count); }

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    UNLESS_ERROR(writes, pwrite, file, bytes, count, at);
}

ssize_t pwritev(int file, const iovec *parts, int count, off_t at) {
    UNLESS_ERROR(writes, pwritev, file, parts, count, at);
}

int fsync(int file) { UNLESS_ERROR(syncs, fsync, file); }

int fdatasync(int file) { UNLESS_ERROR(syncs, fdatasync, file); }

// Returns the error instead of setting errno.
int posix_fallocate(int file, off_t at, off_t count) {
    static const auto original = next<decltype(&posix_fallocate)>("posix_fallocate");
    const int error = error_of(file, writes);
    return error != 0 ? error : original(file, at, count);
}
}
