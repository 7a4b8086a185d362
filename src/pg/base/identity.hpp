// What distinguishes this server from another one, and how its own files are checked.
#pragma once

#include "postgres.hpp"

namespace uidgen::pg {

// The host's name from the operating system, always terminated. False: it is unknown or too long.
bool read_host_name(char *into, size_t bytes);

struct ServerAddress {
    char host[NI_MAXHOST];
    const char *port;
};
// Host and port as worker_node and the registry show them, by the operating system and the settings.
ServerAddress address_of_server();

// The path of the data directory, with symbolic links resolved. False: it is unknown or too long.
bool read_data_directory(char *into, size_t bytes);

// ---------------------------------------------------------------------------------------------------------
// How a file of this server is told from a copy of it.
//
// A file keeps its own identity in its content. It is this server's own, and no copy, only if all of the following are
// as they were when it was written:
//   1. the host's name, its boot and its network namespace, and the data directory's path and inode: the directory was
//      not copied or moved, no clone of its volume runs on another machine or in another container, and two servers
//      cannot run on one directory
//   2. the file's own inode and time of birth: it was not put back from a backup into the same directory. (Where the
//      file system keeps no time of birth, the inode alone counts.)
// So the file must be made before its content is, and a rename must follow, which keeps the inode. A clone
// of a whole machine with its memory cannot be told from the original.
// ---------------------------------------------------------------------------------------------------------

// All bytes of it are set, so that it can be compared and summed.
struct FileIdentity {
    char boot[40];     // the kernel's boot id
    uint64 network[2]; // device and inode of the network namespace
    uint64 directory_inode;
    uint64 file_inode;
    int64 born_seconds;
    uint64 born_ns;
    char host[256];
    char directory[MAXPGPATH];
};

// Reads the identity of the open file, of the data directory and of this host. False: the system does not tell.
bool identify(int file, FileIdentity *identity);

// A number that no file of this path has that is made later. (Where the file system keeps no time of birth, the time of
// the last change counts.) False: the file cannot be looked at, and errno says why.
bool birth_of(const char *path, uint64 *born);

// A number that copies of this server do not have, unless they were made below the file system and have its host name
// and path: of host, data directory, and birth of the directory's oldest file.
uint64 place_of_server();

// A random number above 0, for what must differ from every other server's and life's.
int64_t random_number();

} // namespace uidgen::pg
