// What a worker writes down, and the checker reads: a file per session, a record per statement and stream, and the
// values of the record after it.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace torture {

constexpr uint32_t record_magic = 0x54524f54;
constexpr uint32_t no_item = UINT32_MAX; // the session could not connect, or not roll back

enum Flag : uint32_t {
    unordered = 1, // the statement may hand out its values in any order: parallel workers
    loose = 2,     // values of nextval that no committed row holds: a crash may bring them again
    inserted =
        32,      // values of nextval in rows of one statement: loose if it fails, because a server that is told to end
                 // at once still sends the rows that no commit has followed
    earlier = 4, // rows of a table: the values were handed out at some time before, in any order
    block = 8,   // a block of values: beyond those before it, and those after it may be smaller
    scarce = 16, // a refusal needs no fault to be explained: an altered generator, or values that another session
                 // has reserved while a view's block grew
};

struct Record {
    uint32_t magic;
    uint32_t stream;     // a line of the file of streams
    uint32_t item;       // a line of the session's file of statements
    uint32_t history;    // grows when an asynchronous standby is promoted
    uint32_t connection; // of this session
    uint32_t flags;
    uint32_t count;   // of values that follow
    char sqlstate[8]; // "00000": no error
    int64_t start_ns; // when it was sent, and when its last answer had arrived: CLOCK_MONOTONIC
    int64_t end_ns;
    int64_t real_ns; // CLOCK_REALTIME - CLOCK_MONOTONIC
};

inline int64_t nanoseconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// CLOCK_REALTIME - CLOCK_MONOTONIC. A process that loses its processor between the two readings would get too much.
inline int64_t real_offset_ns() {
    for (;;) {
        const int64_t before_ns = nanoseconds(CLOCK_MONOTONIC);
        const int64_t offset_ns = nanoseconds(CLOCK_REALTIME) - before_ns;
        if (nanoseconds(CLOCK_MONOTONIC) - before_ns < 100000)
            return offset_ns;
    }
}

[[noreturn]] inline void die(const std::string &what) {
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
    exit(2);
}

inline std::vector<std::string> split(const std::string &text, const std::string &separator) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t to; (to = text.find(separator, from)) != std::string::npos; from = to + separator.size())
        parts.push_back(text.substr(from, to - from));
    parts.push_back(text.substr(from));
    return parts;
}

} // namespace torture
