// Judges what workers wrote down: checker DIRECTORY. It prints what it found, and exits with 1 if it found anything.
//
// DIRECTORY has lines of fields, separated by tabs, in
//   streams   name, order (2: across all sessions, 1: in each connection, 0: none), sign (-1: values fall), least and
//             greatest value, scope (history: no value comes twice in one history of the stream; connection: in one
//             connection; any other word: in all streams with that word), lowest bits that order does not count, and for
//             ids: epoch and tick in microseconds, number of bits below the time, microseconds that an id may be ahead of
//             the clock and behind it, 1 if a background worker may make them, which has the real clock, the
//             server's clock, and the fields whose values are known ("-": none): "shift:width:values" for each,
//             separated by spaces. Values are separated by commas; "5+" is 5 and one more for each fault alter_worker.
//   faults    begin, end, name, details, SQLSTATEs that it explains ("-": none), marks (stall: calls may last longer;
//             crash: records that nobody flushed are lost; "-"), and when it was over: the end of a stall. Errors may
//             still arrive until `end`.
//   clock     when an offset was set, when it surely was, the offset in microseconds, whose clock (*: every server's)
//   bound     the longest that a call may last, without the time in which it was stalled, and the beginning of the round
// and logs/*.log (log.hpp). Times are nanoseconds of CLOCK_MONOTONIC.
//
// Memory: one statement per session, one bucket of runs of values. A billion values need 8 GB in DIRECTORY, and up to
// 16 GB more if few of them follow one another.
#include "log.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

using namespace torture;

namespace {

struct ClockStep {
    int64_t from_ns, surely_ns, offset_us;
};

struct Field {
    int shift, width;
    std::vector<std::pair<int64_t, int64_t>> values; // least and greatest
};

struct Stream {
    std::string name;
    int order;
    int64_t sign, least, greatest;
    std::string scope;
    int loose_bits;
    int64_t epoch_us, tick_us; // tick_us 0: not ids
    int shift;
    int64_t ahead_us, behind_us;
    bool in_background;
    const std::vector<ClockStep> *clock;
    std::vector<Field> fields;
};

struct Fault {
    int64_t begin, end;
    std::string name, details, states, marks;
    int64_t over;
};

struct Interval {
    int64_t begin, end;
};

struct Statement {
    Record record;
    std::vector<int64_t> values;
    int64_t floor = INT64_MIN; // the highest value that had arrived anywhere before it was sent
};

// Values that were given one after another, each one more than the one before. `space` numbers the sets in which no
// value may come twice.
struct Given {
    int64_t first;
    uint32_t space;
    uint32_t count;
};

std::string directory;
std::vector<Stream> streams;
std::vector<Fault> faults;
std::vector<Interval> stalls; // of all faults together: in order, and apart from each other
std::map<std::string, std::vector<ClockStep>> clocks;
int64_t bound_ns, origin_ns;
uint64_t statements, values, explained;
int64_t longest_ns; // of a call, without stalls
std::map<std::string, uint64_t> found;

std::vector<std::vector<std::string>> lines_of(const std::string &name) {
    std::ifstream file(directory + "/" + name);
    if (!file)
        die("no file " + name);
    std::vector<std::vector<std::string>> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(split(line, "\t"));
    return lines;
}

bool has_word(const std::string &list, const std::string &word) {
    return (" " + list + " ").find(" " + word + " ") != std::string::npos;
}

std::vector<Interval> stalls_of(const std::vector<Fault> &list) {
    std::vector<Interval> sorted, merged;
    for (const Fault &fault : list)
        if (has_word(fault.marks, "stall"))
            sorted.push_back({fault.begin, fault.over});
    std::sort(sorted.begin(), sorted.end(), [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
    for (const Interval &stall : sorted)
        if (!merged.empty() && stall.begin <= merged.back().end)
            merged.back().end = std::max(merged.back().end, stall.end);
        else
            merged.push_back(stall);
    return merged;
}

const std::vector<ClockStep> &clock_named(const std::string &name) {
    const auto [it, is_new] = clocks.try_emplace(name);
    if (is_new)
        for (const auto &f : lines_of("clock"))
            if (f.at(3) == name || f.at(3) == "*")
                it->second.push_back({stoll(f.at(0)), stoll(f.at(1)), stoll(f.at(2))});
    return it->second;
}

std::vector<Field> fields_of(const std::string &text, int64_t more) {
    std::vector<Field> fields;
    if (text == "-")
        return fields;
    for (const std::string &part : split(text, " ")) {
        const auto parts = split(part, ":");
        fields.push_back({stoi(parts.at(0)), stoi(parts.at(1)), {}});
        for (const std::string &value : split(parts.at(2), ","))
            fields.back().values.emplace_back(stoll(value), stoll(value) + (value.back() == '+' ? more : 0));
    }
    return fields;
}

void read_description() {
    for (const auto &f : lines_of("faults"))
        faults.push_back({stoll(f.at(0)), stoll(f.at(1)), f.at(2), f.at(3), f.at(4), f.at(5), stoll(f.at(6))});
    const int64_t altered =
        std::count_if(faults.begin(), faults.end(), [](const Fault &f) { return f.name == "alter_worker"; });
    for (const auto &f : lines_of("streams")) {
        streams.push_back({f.at(0), stoi(f.at(1)), stoll(f.at(2)), stoll(f.at(3)), stoll(f.at(4)), f.at(5),
                           stoi(f.at(6)), stoll(f.at(7)), stoll(f.at(8)), stoi(f.at(9)), stoll(f.at(10)),
                           stoll(f.at(11)), f.at(12) == "1", &clock_named(f.at(13)), fields_of(f.at(14), altered)});
    }
    stalls = stalls_of(faults);
    const auto bound = lines_of("bound").at(0);
    bound_ns = stoll(bound.at(0));
    origin_ns = stoll(bound.at(1));
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double since_start(int64_t ns) { return seconds(ns - origin_ns); }

// The session's own words about an error.
std::string message_of(const std::string &log, const Record &record) {
    std::ifstream file(log + ".errors");
    const std::string wanted = std::to_string(record.end_ns) + " ";
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, wanted.size(), wanted) == 0)
            return line.substr(wanted.size());
    return "";
}

// The file of one session. A file may end in half a record.
class Log {
  public:
    explicit Log(std::string path) : path(std::move(path)), file(fopen(this->path.c_str(), "rb")) {
        if (file == nullptr)
            die("could not open " + this->path);
        setvbuf(file, nullptr, _IOFBF, 1 << 16);
        read_ahead();
    }
    ~Log() { fclose(file); }
    Log(const Log &) = delete;

    // The records of one statement: one for each stream.
    bool next(std::vector<Statement> *group) {
        group->clear();
        while (has_ahead && (group->empty() || ahead.record.start_ns == group->front().record.start_ns)) {
            group->push_back(std::move(ahead));
            read_ahead();
        }
        return !group->empty();
    }

    const std::string path;

  private:
    void read_ahead() {
        ahead = {};
        has_ahead = fread(&ahead.record, sizeof ahead.record, 1, file) == 1;
        if (!has_ahead)
            return;
        if (ahead.record.magic != record_magic || (ahead.record.count > 0 && ahead.record.stream >= streams.size()))
            die("not a record in " + path);
        ahead.values.resize(ahead.record.count);
        has_ahead = fread(ahead.values.data(), sizeof(int64_t), ahead.record.count, file) == ahead.record.count;
    }

    FILE *file;
    Statement ahead;
    bool has_ahead = false;
};

std::vector<std::unique_ptr<Log>> open_logs() {
    std::vector<std::string> paths;
    for (const auto &entry : std::filesystem::directory_iterator(directory + "/logs"))
        if (entry.path().extension() == ".log")
            paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::unique_ptr<Log>> logs;
    for (const std::string &path : paths)
        logs.push_back(std::make_unique<Log>(path));
    return logs;
}

std::string where(const Log &log, const Record &record) {
    char text[200];
    const std::string item =
        record.item == no_item ? "connecting or rolling back" : "line " + std::to_string(record.item + 1);
    snprintf(text, sizeof text, "session %s, sent at %.3f s, answered at %.3f s, %s",
             std::filesystem::path(log.path).stem().c_str(), since_start(record.start_ns), since_start(record.end_ns),
             item.c_str());
    return text;
}

// The first few of each kind are shown.
void report(const std::string &kind, const std::string &what) {
    if (++found[kind] <= 5)
        printf("FOUND %s: %s\n", kind.c_str(), what.c_str());
}

void report(const std::string &kind, const Log &log, const Statement &s, const std::string &what) {
    report(kind, streams.at(s.record.stream).name + ": " + what + "\n      " + where(log, s.record));
}

bool overlaps(const Fault &fault, int64_t from, int64_t to) { return fault.begin <= to && fault.end >= from; }

// ---------------------------------------------------------------------------------------------------------------
// What a statement alone shows.
// ---------------------------------------------------------------------------------------------------------------

void check_error(const Log &log, const Record &record) {
    const std::string state = record.sqlstate;
    if (state == "00000")
        return;
    if ((record.flags & scarce) && (state == "55000" || state == "40001")) {
        explained++;
        return;
    }
    for (const Fault &fault : faults)
        if (overlaps(fault, record.start_ns, record.end_ns) && has_word(fault.states, state)) {
            explained++;
            return;
        }
    report("unexplained error " + state, where(log, record) + "\n      " + message_of(log.path, record));
}

void check_duration(const Log &log, const Record &record) {
    int64_t lasted_ns = record.end_ns - record.start_ns;
    for (const Interval &stall : stalls)
        lasted_ns -= std::max(std::min(stall.end, record.end_ns) - std::max(stall.begin, record.start_ns), int64_t{0});
    longest_ns = std::max(longest_ns, lasted_ns);
    if (lasted_ns > bound_ns)
        report("slow call", where(log, record) + "\n      " + std::to_string(seconds(lasted_ns)) + " s without stalls");
}

// Values of a falling sequence are negated.
bool is_in_order(const Stream &stream, int64_t before, int64_t after) {
    if (stream.loose_bits == 0)
        return before < after;
    return before >> stream.loose_bits <= after >> stream.loose_bits;
}

void check_fields(const Log &log, const Statement &s, int64_t id) {
    for (const Field &field : streams.at(s.record.stream).fields) {
        const int64_t value = id >> field.shift & ((int64_t{1} << field.width) - 1);
        if (std::none_of(field.values.begin(), field.values.end(),
                         [&](const auto &known) { return known.first <= value && value <= known.second; }))
            report("wrong field", log, s,
                   std::to_string(id) + " has " + std::to_string(value) + " in the " + std::to_string(field.width) +
                       " bits above " + std::to_string(field.shift));
    }
}

void check_values(const Log &log, const Statement &s) {
    const Stream &stream = streams.at(s.record.stream);
    for (size_t i = 0; i < s.values.size(); i++) {
        check_fields(log, s, s.values[i]);
        if (s.values[i] < stream.least || s.values[i] > stream.greatest)
            report("out of range", log, s, std::to_string(s.values[i]));
        if (i > 0 && stream.order > 0 && !(s.record.flags & (unordered | earlier)) &&
            !is_in_order(stream, s.values[i - 1] * stream.sign, s.values[i] * stream.sign))
            report("out of order in a statement", log, s,
                   std::to_string(s.values[i]) + " after " + std::to_string(s.values[i - 1]));
    }
}

// The offsets that the server's clock may have had at any time of an interval.
std::pair<int64_t, int64_t> offsets(const Stream &stream, int64_t from, int64_t to) {
    const std::vector<ClockStep> &clock_steps = *stream.clock;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < clock_steps.size(); i++) {
        const bool begun = i == 0 || clock_steps[i].from_ns <= to;
        const bool over = i + 1 < clock_steps.size() && clock_steps[i + 1].surely_ns < from;
        if (begun && !over) {
            least = std::min(least, clock_steps[i].offset_us);
            most = std::max(most, clock_steps[i].offset_us);
        }
    }
    return stream.in_background ? std::make_pair(std::min(least, int64_t{0}), std::max(most, int64_t{0}))
                                : std::make_pair(least, most);
}

int64_t time_of(const Stream &stream, int64_t id) { return stream.epoch_us + (id >> stream.shift) * stream.tick_us; }

// The earliest and the latest time that the server's clock may have shown during a call, in microseconds.
std::pair<int64_t, int64_t> clock_during(const Stream &stream, const Record &record) {
    // A reading is rounded down to its microsecond, and libfaketime rounds.
    const int64_t slack_us = 5000;
    const auto range = offsets(stream, record.start_ns - stream.behind_us * 1000, record.end_ns);
    const int64_t real_us = record.real_ns / 1000;
    return {record.start_ns / 1000 + real_us + range.first - slack_us,
            record.end_ns / 1000 + real_us + range.second + slack_us};
}

void check_times(const Log &log, const Statement &s) {
    const Stream &stream = streams.at(s.record.stream);
    if (stream.tick_us == 0 || s.values.empty())
        return;
    const auto [least, most] = std::minmax_element(s.values.begin(), s.values.end());
    const auto clock = clock_during(stream, s.record);
    const int64_t latest = clock.second + stream.ahead_us;
    const int64_t earliest = clock.first - stream.behind_us;
    if (time_of(stream, *most) > latest)
        report("too far ahead of the clock", log, s,
               std::to_string(*most) + " by " + std::to_string(time_of(stream, *most) - latest) +
                   " us more than allowed");
    if (!(s.record.flags & earlier) && time_of(stream, *least) + stream.tick_us < earliest)
        report("too far behind the clock", log, s,
               std::to_string(*least) + " by " + std::to_string(earliest - time_of(stream, *least)) +
                   " us more than allowed");
}

// ---------------------------------------------------------------------------------------------------------------
// No value twice. Values are spread over files by a hash of all but their lowest bits, so that a run of values stays
// together. Each file is sorted in memory. Two runs that overlap have values in common.
// ---------------------------------------------------------------------------------------------------------------

using Space = std::tuple<uint32_t, uint32_t, size_t, uint32_t>; // stream, history, session, connection

std::map<Space, uint32_t> spaces;

Space space_in_scope(const Statement &s, size_t session) {
    const std::string &scope = streams.at(s.record.stream).scope;
    if (scope == "connection")
        return {s.record.stream, s.record.history, session + 1, s.record.connection};
    if (scope == "history")
        return {s.record.stream, s.record.history, 0, 0};
    const auto first = std::find_if(streams.begin(), streams.end(), [&](const Stream &t) { return t.scope == scope; });
    return {static_cast<uint32_t>(first - streams.begin()), 0, 0, 0};
}

uint32_t space_of(const Statement &s, size_t session) {
    const Space space = space_in_scope(s, session);
    return spaces.emplace(space, static_cast<uint32_t>(spaces.size())).first->second;
}

constexpr uint64_t bucket_values = 8000000;
constexpr int block_bits = 12; // a run does not reach beyond so many low bits
std::vector<FILE *> buckets;

std::string bucket_path(size_t bucket) { return directory + "/bucket" + std::to_string(bucket); }

void open_buckets() {
    uint64_t bytes = 0;
    for (const auto &entry : std::filesystem::directory_iterator(directory + "/logs"))
        bytes += entry.file_size();
    for (size_t i = 0; i <= bytes / sizeof(int64_t) / bucket_values; i++) {
        buckets.push_back(fopen(bucket_path(i).c_str(), "wb"));
        if (buckets.back() == nullptr)
            die("could not make " + bucket_path(i));
    }
}

void write_run(const Given &run) {
    const uint64_t hash = static_cast<uint64_t>(run.first >> block_bits) * 0x9e3779b97f4a7c15;
    if (fwrite(&run, sizeof run, 1, buckets[(hash >> 32) % buckets.size()]) != 1)
        die("could not write to a bucket");
}

void spill(const Statement &s, size_t session) {
    Given run = {s.values[0], space_of(s, session), 1};
    for (size_t i = 1; i < s.values.size(); i++) {
        const int64_t value = s.values[i];
        if (value == s.values[i - 1] + 1 && value >> block_bits == run.first >> block_bits) {
            run.count++;
            continue;
        }
        write_run(run);
        run = {value, run.space, 1};
    }
    write_run(run);
}

using Repeated = std::map<std::pair<uint32_t, int64_t>, std::vector<std::tuple<Record, size_t>>>;

// `last` is the highest value of the space so far.
void note_overlaps(const std::vector<Given> &sorted, Repeated *repeated) {
    int64_t last = 0;
    for (size_t k = 0; k < sorted.size() && repeated->size() < 100000; k++) {
        const Given &run = sorted[k];
        const int64_t end = run.first + (run.count - 1);
        const bool is_first = k == 0 || sorted[k - 1].space != run.space;
        for (int64_t value = run.first; !is_first && value <= std::min(last, end); value++)
            (*repeated)[{run.space, value}];
        last = is_first ? end : std::max(last, end);
    }
}

Repeated repeated_values() {
    Repeated repeated;
    for (size_t i = 0; i < buckets.size(); i++) {
        if (fclose(buckets[i]) != 0)
            die("could not write to a bucket");
        std::vector<Given> all(std::filesystem::file_size(bucket_path(i)) / sizeof(Given));
        FILE *file = fopen(bucket_path(i).c_str(), "rb");
        if (file == nullptr || fread(all.data(), sizeof(Given), all.size(), file) != all.size())
            die("could not read a bucket");
        fclose(file);
        std::filesystem::remove(bucket_path(i));
        const auto key = [](const Given &g) { return std::make_pair(g.space, g.first); };
        std::sort(all.begin(), all.end(), [&](const Given &a, const Given &b) { return key(a) < key(b); });
        note_overlaps(all, &repeated);
    }
    return repeated;
}

// A value that nextval gave to no committed row may come again after a crash.
bool excused(const Record &earlier, const Record &later) {
    const bool failed = strcmp(earlier.sqlstate, "00000") != 0;
    return ((earlier.flags & loose) || ((earlier.flags & inserted) && failed)) &&
           std::any_of(faults.begin(), faults.end(), [&](const Fault &fault) {
               return has_word(fault.marks, "crash") && overlaps(fault, earlier.start_ns, later.end_ns);
           });
}

void report_repeated() {
    Repeated repeated = repeated_values();
    if (repeated.empty())
        return;
    const auto logs = open_logs();
    std::vector<Statement> group;
    for (size_t i = 0; i < logs.size(); i++)
        while (logs[i]->next(&group))
            for (const Statement &s : group) {
                const uint32_t space = space_of(s, i);
                for (int64_t value : s.values) {
                    const auto it = repeated.find({space, value});
                    if (it != repeated.end())
                        it->second.emplace_back(s.record, i);
                }
            }
    for (auto &[key, given] : repeated) {
        std::sort(given.begin(), given.end(),
                  [](const auto &a, const auto &b) { return std::get<0>(a).end_ns < std::get<0>(b).end_ns; });
        for (size_t k = 1; k < given.size(); k++) {
            const auto &[before, session] = given[k - 1];
            const auto &[after, other] = given[k];
            if (!excused(before, after))
                report("given twice", streams.at(before.stream).name + " and " + streams.at(after.stream).name + ": " +
                                          std::to_string(key.second) + "\n      " + where(*logs[session], before) +
                                          "\n      " + where(*logs[other], after));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Order. All sessions' statements pass in the order in which they were sent and answered. A value must be above those
// that had arrived before its statement was sent.
// ---------------------------------------------------------------------------------------------------------------

// Whether a value may be below `before`. A generator that is made anew starts above the ids of those that were dropped,
// unless these are further ahead of the clock than max_ahead (P1, 10). Its stream has the scope of a connection.
bool may_start_below(const Stream &stream, int64_t before, const Record &record) {
    return stream.scope == "connection" &&
           time_of(stream, before) > clock_during(stream, record).first + stream.ahead_us;
}

class Orders {
  public:
    void sent(Statement *s) const {
        const auto it = highest.find({s->record.stream, s->record.history});
        s->floor = it == highest.end() ? INT64_MIN : it->second;
    }

    void answered(const Log &log, size_t session, const Statement &s) {
        const Stream &stream = streams.at(s.record.stream);
        if (s.values.empty() || stream.order == 0)
            return;
        const auto [least, most] = std::minmax_element(s.values.begin(), s.values.end());
        const int64_t low = stream.sign > 0 ? *least : -*most, high = stream.sign > 0 ? *most : -*least;
        auto &own = of_connection[{session, s.record.stream}];
        const bool is_row = (s.record.flags & earlier) != 0;
        if (!is_row && own.first == s.record.connection && !is_in_order(stream, own.second, low) &&
            !may_start_below(stream, own.second, s.record))
            report("out of order in a session", log, s, std::to_string(low) + " after " + std::to_string(own.second));
        else if (!is_row && stream.order == 2 && !is_in_order(stream, s.floor, low))
            report("out of order", log, s, std::to_string(low) + " after " + std::to_string(s.floor));
        if (s.record.flags & block)
            return;
        own = {s.record.connection, high};
        auto &all = highest.emplace(std::make_pair(s.record.stream, s.record.history), INT64_MIN).first->second;
        all = std::max(all, high);
    }

  private:
    std::map<std::pair<uint32_t, uint32_t>, int64_t> highest;                          // of stream and history
    std::map<std::pair<size_t, uint32_t>, std::pair<uint32_t, int64_t>> of_connection; // connection, its highest
};

void check_all() {
    using Event = std::tuple<int64_t, bool, size_t>; // time, whether it is the answer, session
    const auto logs = open_logs();
    std::vector<std::vector<Statement>> current(logs.size());
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    Orders orders;
    const auto next_of = [&](size_t i) {
        if (!logs[i]->next(&current[i]))
            return;
        statements++;
        check_error(*logs[i], current[i].front().record);
        check_duration(*logs[i], current[i].front().record);
        for (const Statement &s : current[i]) {
            if (s.values.empty())
                continue;
            values += s.values.size();
            check_values(*logs[i], s);
            check_times(*logs[i], s);
            spill(s, i);
        }
        events.emplace(current[i].front().record.start_ns, false, i);
    };
    for (size_t i = 0; i < logs.size(); i++)
        next_of(i);
    while (!events.empty()) {
        const auto [time, is_answer, i] = events.top();
        events.pop();
        for (Statement &s : current[i])
            if (is_answer)
                orders.answered(*logs[i], i, s);
            else
                orders.sent(&s);
        if (is_answer)
            next_of(i);
        else
            events.emplace(current[i].front().record.end_ns, true, i);
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2)
        die("usage: checker DIRECTORY");
    directory = argv[1];
    read_description();
    open_buckets();
    check_all();
    report_repeated();
    for (const auto &[kind, count] : found)
        if (count > 5)
            printf("FOUND %s: %" PRIu64 " in all\n", kind.c_str(), count);
    printf("checked %" PRIu64 " statements with %" PRIu64 " values; the faults explain %" PRIu64
           " errors; the longest call took %.1f s without stalls, of at most %.1f s\n",
           statements, values, explained, seconds(longest_ns), seconds(bound_ns));
    if (values == 0)
        report("nothing to check", "no value was given");
    return found.empty() ? 0 : 1;
}
