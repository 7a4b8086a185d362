// A copy of a data directory that its file system does not show, as on a clone of the original's volume: preloaded into
// the copy's server, which then sees the original's names and inodes. Only the device is another one.
//
// UIDGEN_CLONE          the copy's directory
// UIDGEN_CLONE_OF       the original's directory
// UIDGEN_CLONE_INODES   the inode of the original's directory, and the inode and the time of birth of its file of grants
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace {

const char *own_directory = "";
const char *directory = "";
ino_t own_inode;
ino_t directory_inode, file_inode;
long long born_seconds;
unsigned born_ns;

template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int real_stat(const char *path, struct stat *about) {
    static const auto original = next<int (*)(const char *, struct stat *)>("stat");
    return original(path, about);
}

__attribute__((constructor)) void read_environment() {
    const char *own = getenv("UIDGEN_CLONE"), *of = getenv("UIDGEN_CLONE_OF"), *inodes = getenv("UIDGEN_CLONE_INODES");
    struct stat about;
    if (own == nullptr || of == nullptr || inodes == nullptr || real_stat(own, &about) != 0 ||
        sscanf(inodes, "%lu %lu %lld.%u", &directory_inode, &file_inode, &born_seconds, &born_ns) != 4)
        abort();
    own_directory = own;
    directory = of;
    own_inode = about.st_ino;
}

} // namespace

extern "C" {

char *realpath(const char *path, char *resolved) noexcept {
    static const auto original = next<char *(*)(const char *, char *)>("realpath");
    char *result = original(path, resolved);
    if (result == nullptr || resolved != nullptr || strcmp(result, own_directory) != 0)
        return result;
    free(result);
    return strdup(directory);
}

// PostgreSQL takes a server with the same inode on the same device for one in the same directory.
int stat(const char *path, struct stat *about) noexcept {
    const int result = real_stat(path, about);
    if (result == 0 && about->st_ino == own_inode) {
        about->st_ino = directory_inode;
        about->st_dev++;
    }
    return result;
}

// uidgen asks so for the files of its own only.
int statx(int at, const char *path, int flags, unsigned mask, struct statx *about) noexcept {
    static const auto original = next<int (*)(int, const char *, int, unsigned, struct statx *)>("statx");
    const int result = original(at, path, flags, mask, about);
    if (result == 0 && (flags & AT_EMPTY_PATH) != 0) {
        about->stx_ino = file_inode;
        about->stx_btime.tv_sec = born_seconds;
        about->stx_btime.tv_nsec = born_ns;
    }
    return result;
}
}
