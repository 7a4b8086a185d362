// A session that draws, and writes down every value at the moment it arrives.
//
//   worker TARGET STATEMENTS LOG SEED NUMBER PACE_US LIFE_MS STOP
//
// TARGET      a file: a connection string, and on a second line the number of the history. It is read before each
//             connection, so that a session follows a promotion.
// STATEMENTS  a file of lines "weight <tab> streams <tab> statement":
//             - weight 0: sent after each connection. -1: the same, and an error is not written down.
//             - streams: for each column of the result the number of its stream, followed by letters of flags
//               (log.hpp): u (unordered), l (loose), e (earlier), b (block), s (scarce), i (inserted). A column further
//               right belongs to the last one. "-": no values.
//             - A statement may be several, separated by " ;; ", which are sent one after another.
//             - One that begins with /*binary*/ is one statement, with arrays of bigint as its result.
//             - {100} becomes a number from 1 to 100, small ones most often; {w} NUMBER; {c} another number each time.
// LOG         see log.hpp. LOG.errors gets a line for each error.
// PACE_US     the mean pause between two statements.
// LIFE_MS     how long a connection lasts at most. 0: to the end.
// STOP        the session ends when this file exists. "once": after each statement was sent once.
//
// Values are those fields that are an integer or an array of integers.
#include "log.hpp"

#include <arpa/inet.h>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <libpq-fe.h>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace torture;

namespace {

struct Column {
    uint32_t stream;
    uint32_t flags;
};

struct Item {
    int weight;
    std::vector<Column> columns;
    std::vector<std::string> statements;
    bool prepares = false; // has PREPARE TRANSACTION
};

struct Answer {
    std::string sqlstate = "00000";
    std::string message;
    std::vector<std::vector<int64_t>> values; // of each column

    void fail(const char *state, const char *text) {
        if (sqlstate != "00000")
            return;
        sqlstate = state;
        message = text;
        for (char &c : message)
            c = c == '\n' ? ' ' : c;
    }
};

std::vector<Item> items;
std::mt19937_64 dice;
std::string number;
uint64_t counter;
uint32_t history;
uint32_t connection;
FILE *log_file;
FILE *errors;

uint64_t roll(uint64_t below) { return dice() % below; }

void read_items(const char *path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const std::vector<std::string> fields = split(line, "\t");
        if (fields.size() != 3)
            die("not a line of statements: " + line);
        Item item = {std::stoi(fields[0]), {}, split(fields[2], " ;; ")};
        item.prepares = fields[2].find("PREPARE TRANSACTION") != std::string::npos;
        if (fields[1] != "-")
            for (const std::string &column : split(fields[1], ",")) {
                const auto flag = [&](char letter, Flag value) {
                    return column.find(letter) == std::string::npos ? uint32_t{0} : uint32_t{value};
                };
                item.columns.push_back({static_cast<uint32_t>(std::stoul(column)),
                                        flag('u', unordered) | flag('l', loose) | flag('e', earlier) |
                                            flag('b', block) | flag('s', scarce) | flag('i', inserted)});
            }
        items.push_back(item);
    }
}

// Each order of magnitude is as likely as another.
uint64_t count_up_to(uint64_t most) {
    uint64_t below = 1;
    while (below < most && roll(3) != 0)
        below *= 4;
    return 1 + roll(below < most ? below : most);
}

std::string with_numbers(const std::string &statement) {
    std::string sent;
    for (size_t at = 0; at < statement.size();) {
        const size_t close = statement[at] == '{' ? statement.find('}', at) : std::string::npos;
        const std::string inside = close == std::string::npos ? "" : statement.substr(at + 1, close - at - 1);
        if (inside == "w" || inside == "c")
            sent += inside == "w" ? number : std::to_string(counter);
        else if (!inside.empty() && inside.find_first_not_of("0123456789") == std::string::npos)
            sent += std::to_string(count_up_to(std::stoull(inside)));
        else {
            sent += statement[at++];
            continue;
        }
        at = close + 1;
    }
    return sent;
}

void take_field(const char *text, std::vector<int64_t> *values) {
    if (strspn(text, "-{},0123456789") != strlen(text))
        return;
    while (*text != '\0') {
        if (strchr("{},", *text) != nullptr) {
            text++;
            continue;
        }
        char *end;
        values->push_back(strtoll(text, &end, 10));
        text = end;
    }
}

uint32_t number_at(const char *bytes) {
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return ntohl(number);
}

// The wire format of int8[]: dimensions, whether it has nulls, the type of its elements; length and lower bound of each
// dimension; length and value of each element.
void take_binary_array(const char *bytes, int length, std::vector<int64_t> *values) {
    constexpr int header = 20, element = 12;
    const uint32_t int8_oid = 20;
    if (length < header || number_at(bytes) != 1 || number_at(bytes + 4) != 0 || number_at(bytes + 8) != int8_oid ||
        (length - header) / element != static_cast<int>(number_at(bytes + 12)))
        die("not an array of bigint");
    for (int at = header; at + element <= length; at += element)
        values->push_back(static_cast<int64_t>(uint64_t{number_at(bytes + at + 4)} << 32 | number_at(bytes + at + 8)));
}

std::vector<int64_t> *values_of(const Item &item, size_t column, Answer *answer) {
    return &answer->values[column < item.columns.size() ? column : item.columns.size() - 1];
}

void take(const Item &item, size_t column, const char *text, Answer *answer) {
    if (!item.columns.empty())
        take_field(text, values_of(item, column, answer));
}

void take_rows(const Item &item, const PGresult *result, Answer *answer) {
    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < PQnfields(result); column++) {
            const char *field = PQgetvalue(result, row, column);
            if (PQfformat(result, column) == 1)
                take_binary_array(field, PQgetlength(result, row, column), values_of(item, column, answer));
            else
                take(item, column, field, answer);
        }
}

void copy_out(PGconn *server, const Item &item, Answer *answer) {
    char *line;
    while (PQgetCopyData(server, &line, 0) > 0) {
        size_t column = 0;
        char *rest = line;
        while (const char *field = strsep(&rest, "\t\n"))
            take(item, column++, field, answer);
        PQfreemem(line);
    }
}

void copy_in(PGconn *server) {
    for (uint64_t left = count_up_to(200); left > 0; left--)
        PQputCopyData(server, "x\n", 2);
    PQputCopyEnd(server, nullptr);
}

Answer send(PGconn *server, const Item &item, const std::string &statement) {
    Answer answer;
    answer.values.resize(item.columns.size());
    const bool is_binary = statement.compare(0, 10, "/*binary*/") == 0;
    if (!(is_binary ? PQsendQueryParams(server, statement.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 1)
                    : PQsendQuery(server, statement.c_str()))) {
        answer.fail("08006", PQerrorMessage(server));
        return answer;
    }
    PQsetSingleRowMode(server);
    while (PGresult *result = PQgetResult(server)) {
        switch (PQresultStatus(result)) {
        case PGRES_COPY_OUT:
            copy_out(server, item, &answer);
            break;
        case PGRES_COPY_IN:
            copy_in(server);
            break;
        case PGRES_SINGLE_TUPLE:
        case PGRES_TUPLES_OK:
            take_rows(item, result, &answer);
            break;
        case PGRES_FATAL_ERROR: {
            const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
            answer.fail(state == nullptr ? "08006" : state, PQresultErrorMessage(result));
            break;
        }
        default:
            break;
        }
        const bool lost = PQstatus(server) == CONNECTION_BAD;
        PQclear(result);
        if (lost)
            break;
    }
    return answer;
}

// Stands for a connection that failed.
const Item nothing = {0, {}, {}};

void write_down(const Item &item, const Answer &answer, const std::string &statement, int64_t start_ns) {
    Record record = {};
    record.magic = record_magic;
    record.item = &item == &nothing ? no_item : static_cast<uint32_t>(&item - items.data());
    record.history = history;
    record.connection = connection;
    snprintf(record.sqlstate, sizeof record.sqlstate, "%s", answer.sqlstate.c_str());
    record.start_ns = start_ns;
    record.end_ns = nanoseconds(CLOCK_MONOTONIC);
    record.real_ns = real_offset_ns();
    if (item.columns.empty())
        fwrite(&record, sizeof record, 1, log_file);
    for (size_t i = 0; i < item.columns.size(); i++) {
        record.stream = item.columns[i].stream;
        record.flags = item.columns[i].flags;
        record.count = static_cast<uint32_t>(answer.values[i].size());
        fwrite(&record, sizeof record, 1, log_file);
        fwrite(answer.values[i].data(), sizeof(int64_t), record.count, log_file);
    }
    fflush(log_file);
    if (answer.sqlstate != "00000") {
        fprintf(errors, "%" PRId64 " %s %s| %s\n", record.end_ns, answer.sqlstate.c_str(), answer.message.c_str(),
                statement.c_str());
        fflush(errors);
    }
}

// Sends all statements of an item, up to the first error. An open transaction is rolled back. False: there was an error.
bool perform(PGconn *server, const Item &item) {
    bool failed = false;
    counter++;
    for (const std::string &part : item.statements) {
        const std::string statement = with_numbers(part);
        const int64_t start_ns = nanoseconds(CLOCK_MONOTONIC);
        const Answer answer = send(server, item, statement);
        failed = answer.sqlstate != "00000";
        if (!failed || item.weight >= 0)
            write_down(item, answer, statement, start_ns);
        if (failed)
            break;
    }
    if (PQstatus(server) == CONNECTION_OK && PQtransactionStatus(server) != PQTRANS_IDLE) {
        const int64_t start_ns = nanoseconds(CLOCK_MONOTONIC);
        const Answer answer = send(server, nothing, "ROLLBACK");
        if (answer.sqlstate != "00000")
            write_down(nothing, answer, "ROLLBACK", start_ns);
    }
    return !failed;
}

// libpq has no SQLSTATE for a connection that was refused.
const char *state_of_refusal(const char *message) {
    const auto says = [message](const char *words) { return strstr(message, words) != nullptr; };
    if (says("canceling statement due to user request")) // while the session began
        return "57014";
    return says("too many clients") || says("connection slots") ? "53300" : "08001";
}

// A null pointer if that fails.
PGconn *connect(const char *target) {
    std::ifstream file(target);
    std::string conninfo, of_history;
    std::getline(file, conninfo);
    std::getline(file, of_history);
    history = static_cast<uint32_t>(atol(of_history.c_str()));
    connection++;
    const int64_t start_ns = nanoseconds(CLOCK_MONOTONIC);
    PGconn *server = PQconnectdb(conninfo.c_str());
    if (PQstatus(server) != CONNECTION_OK) {
        Answer answer;
        answer.fail(state_of_refusal(PQerrorMessage(server)), PQerrorMessage(server));
        write_down(nothing, answer, "(connect)", start_ns);
        PQfinish(server);
        return nullptr;
    }
    PQsetNoticeProcessor(
        server, [](void *, const char *) {}, nullptr);
    for (const Item &item : items)
        if (item.weight <= 0 && !perform(server, item) && item.weight == 0) {
            PQfinish(server); // what the session draws by could not be prepared
            return nullptr;
        }
    return server;
}

const Item &choose(uint64_t total) {
    int64_t at = static_cast<int64_t>(roll(total));
    for (const Item &item : items)
        if (item.weight > 0 && (at -= item.weight) < 0)
            return item;
    die("no statement has a weight");
}

bool exists(const char *path) { return access(path, F_OK) == 0; }

// Neither lost nor in a transaction, which it is if memory did not even suffice for ROLLBACK.
bool is_idle(PGconn *server) {
    return PQstatus(server) == CONNECTION_OK && PQtransactionStatus(server) == PQTRANS_IDLE;
}

// Sends statements until the file exists, or the program that started this one has ended.
void draw_until(const char *stop, const char *target, useconds_t pace_us, uint64_t life_ms) {
    uint64_t total = 0;
    for (const Item &item : items)
        total += item.weight > 0 ? item.weight : 0;
    PGconn *server = nullptr;
    int64_t until_ns = 0;
    const pid_t parent = getppid();
    while (!exists(stop) && getppid() == parent) {
        if (server != nullptr && (!is_idle(server) || nanoseconds(CLOCK_MONOTONIC) > until_ns)) {
            PQfinish(server);
            server = nullptr;
        }
        if (server == nullptr) {
            server = connect(target);
            until_ns =
                life_ms == 0 ? INT64_MAX : nanoseconds(CLOCK_MONOTONIC) + static_cast<int64_t>(roll(life_ms)) * 1000000;
        }
        if (server == nullptr)
            usleep(50000);
        else {
            const Item &item = choose(total);
            if (!perform(server, item) && item.prepares)
                until_ns = 0; // a new connection ends what is still prepared
        }
        if (pace_us > 0)
            usleep(static_cast<useconds_t>(roll(2 * pace_us)));
    }
    PQfinish(server);
}

void draw_once(const char *target) {
    PGconn *server = connect(target);
    if (server == nullptr)
        die("could not connect");
    for (const Item &item : items)
        perform(server, item);
    PQfinish(server);
}

FILE *open_to_append(const std::string &path) {
    FILE *file = fopen(path.c_str(), "a");
    return file != nullptr ? file : (die("could not open " + path), nullptr);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 9)
        die("usage: worker TARGET STATEMENTS LOG SEED NUMBER PACE_US LIFE_MS STOP");
    read_items(argv[2]);
    log_file = open_to_append(argv[3]);
    errors = open_to_append(std::string(argv[3]) + ".errors");
    dice.seed(std::stoull(argv[4]));
    number = argv[5];
    if (strcmp(argv[8], "once") == 0)
        draw_once(argv[1]);
    else
        draw_until(argv[8], argv[1], static_cast<useconds_t>(std::stoul(argv[6])), std::stoull(argv[7]));
    return fclose(log_file) == 0 && fclose(errors) == 0 ? 0 : 2;
}
