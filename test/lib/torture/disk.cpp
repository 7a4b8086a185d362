// A disk that fails when it is told to, preloaded into a server: no root and no file system of its own is needed.
//
// UIDGEN_DISK names a file of one Order, which all processes map. The harness (Disk.pm) writes it in place, so a change
// is in force at once, everywhere.
#include <atomic>
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

enum Calls : int32_t { writes = 1, syncs = 2, shorts = 4 };

struct Order {
    volatile int32_t error; // errno of the calls that fail; 0: none fails
    volatile int32_t calls;
    char where[504];                 // they fail in files whose path begins so
    std::atomic<int64_t> failed;     // how many have failed so far
    std::atomic<int64_t> failed_own; // of these, how many in uidgen's files
};

Order *order = nullptr;

__attribute__((constructor)) void map_order() {
    const char *path = getenv("UIDGEN_DISK");
    const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(nullptr, sizeof(Order), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        order = static_cast<Order *>(mapped);
}

bool is_in_force(Calls call) { return order != nullptr && order->error != 0 && (order->calls & call) != 0; }

// Counts the call if it fails.
bool is_met(const char *whole_path) {
    const size_t wanted = strnlen(order->where, sizeof order->where);
    if (strncmp(whole_path, order->where, wanted) != 0)
        return false;
    order->failed++;
    if (strstr(whole_path, "/uidgen.") != nullptr)
        order->failed_own++;
    return true;
}

bool is_there(int file) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    return is_met(path);
}

// A process of a server is in its data directory.
bool is_there(const char *path) {
    char directory[4096], whole[8192];
    if (path[0] == '/' || getcwd(directory, sizeof directory) == nullptr)
        return is_met(path);
    snprintf(whole, sizeof whole, "%s/%s", directory, path);
    return is_met(whole);
}

// The errno of a call on that file, which is open or has that name; 0: it does not fail.
template <typename File> int error_of(File file, Calls call) {
    if (!is_in_force(call))
        return 0;
    const int before = errno;
    const int error = is_there(file) ? order->error : 0;
    errno = before;
    return error;
}

// So many of the bytes, or of the items, are written before the disk is full.
size_t shortened(int file, size_t count) { return count > 1 && error_of(file, shorts) != 0 ? count / 2 : count; }

template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Calls the function of that name in the next library, or fails with that error.
#define UNLESS_ERROR(fails_with, function, failure, ...)                                                               \
    static const auto original = next<decltype(&(function))>(#function);                                               \
    const int error = fails_with;                                                                                      \
    if (error == 0)                                                                                                    \
        return original(__VA_ARGS__);                                                                                  \
    errno = error;                                                                                                     \
    return failure

} // namespace

extern "C" {

ssize_t write(int file, const void *bytes, size_t count) {
    const size_t possible = shortened(file, count);
    UNLESS_ERROR(error_of(file, writes), write, -1, file, bytes, possible);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    UNLESS_ERROR(error_of(file, writes), pwrite, -1, file, bytes, count, at);
}

ssize_t pwritev(int file, const iovec *parts, int count, off_t at) {
    UNLESS_ERROR(error_of(file, writes), pwritev, -1, file, parts, count, at);
}

int fsync(int file) { UNLESS_ERROR(error_of(file, syncs), fsync, -1, file); }

int fdatasync(int file) { UNLESS_ERROR(error_of(file, syncs), fdatasync, -1, file); }

// Returns the error instead of setting errno.
int posix_fallocate(int file, off_t at, off_t count) {
    static const auto original = next<decltype(&posix_fallocate)>("posix_fallocate");
    const int error = error_of(file, writes);
    return error != 0 ? error : original(file, at, count);
}

int rename(const char *from, const char *to) { UNLESS_ERROR(error_of(from, writes), rename, -1, from, to); }

// glibc writes the buffer of a FILE without calling write() above. So these fail themselves.

FILE *fopen(const char *path, const char *mode) {
    UNLESS_ERROR(mode[0] == 'r' ? 0 : error_of(path, writes), fopen, nullptr, path, mode);
}

size_t fwrite(const void *items, size_t size, size_t count, FILE *file) {
    static const auto original = next<decltype(&fwrite)>("fwrite");
    const int error = error_of(fileno(file), writes);
    const size_t possible = error != 0 ? 0 : shortened(fileno(file), count);
    const size_t written = possible == 0 ? 0 : original(items, size, possible, file);
    if (written < count && written == possible) {
        file->_flags |= _IO_ERR_SEEN; // ferror() tells
        errno = error != 0 ? error : ENOSPC;
    }
    return written;
}

// The file is closed all the same.
int fclose(FILE *file) {
    static const auto original = next<decltype(&fclose)>("fclose");
    const bool is_written = is_in_force(writes) && (fcntl(fileno(file), F_GETFL) & O_ACCMODE) != O_RDONLY;
    const int error = is_written ? error_of(fileno(file), writes) : 0;
    const int result = original(file);
    if (error == 0)
        return result;
    errno = error;
    return EOF;
}
}
