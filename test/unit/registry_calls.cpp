// Prints calls of the registry's model, and statements of administrators, each as a line of JSON: what the registry was,
// the request, the answer, and what the registry was then. test/tap/066_registry_calls.t replays them through
// uidgen_registry.sql.
//
// They are of seeded walks of all scenarios, without repetitions.
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "registry_scenarios.hpp"

using namespace uidgen::test;

namespace {

// In addition to the scenarios, which are sound: proofs, and statements that are false.
const Scenario false_statements = {
    "", "whole_calls 1, registry_clocks 0 1, put_back 1, dies 1, take_back 1, false_lift 2, invent 1, end 16", 0};

constexpr size_t calls_of_a_kind = 12; // in each scenario
constexpr uint64_t one_in = 7;         // of the calls of a walk

std::string json(const Server &server) {
    const Registry &db = server.db;
    char text[1000];
    int length = snprintf(text, sizeof(text),
                          R"({"fleet": %d, "keeps": %d, "system": %d, "timeline": %d, "started": %d, "term": %d, )"
                          R"("fence": %d, "standing": %d, "lost_from": %d, "former": %d, "shown": %d, "layouts": %d, )"
                          R"("rows": [)",
                          db.fleet, db.keeps, db.system, db.timeline, db.started, db.term, db.fence, db.standing,
                          db.lost_from, db.former, db.shown, db.layouts);
    const char *separator = "";
    for (int node = 0; node < most_nodes; node++) {
        const Row &row = db.rows[node];
        if (row.token == 0)
            continue;
        length +=
            snprintf(text + length, sizeof(text) - length, R"(%s{"node": %d, "until": %d, "token": %d, "fence": %d})",
                     separator, node, row.until, row.token, row.fence);
        separator = ", ";
    }
    return std::string(text) + "]}";
}

std::string json(const Request &r) {
    char text[400];
    snprintf(text, sizeof(text),
             R"({"fleet": %d, "seen": %d, "layout": %d, "node": %d, "since": %d, "until": %d, "token": %d, )"
             R"("new_token": %d, "earliest": %d, "length": %d})",
             r.fleet, r.seen, r.layout, r.node, r.since, r.until, r.token, r.new_token, r.earliest, r.length);
    return text;
}

std::string json(const Reply &r) {
    char text[400];
    snprintf(text, sizeof(text), R"({"why": "%s", "term": %d, "node": %d, "since": %d, "until": %d})",
             uidgen::core::why_name(r.why), r.term, r.node, r.since, r.until);
    return text;
}

// The server, and the registry in it.
std::string json(const Server &server, int now, const Size &size) {
    char here[200];
    snprintf(here, sizeof(here),
             R"("here": {"system": %d, "timeline": %d, "started": %d, "now": %d, "nodes": %d, "layouts": %d, )"
             R"("longest": %d, "bound": %d}, "before": )",
             server.system, server.timeline, server.started, now, size.nodes, size.layouts, size.length, size.bound);
    return here + json(server);
}

void print_calls(const Scenario &scenario) {
    const Size size = size_of(scenario.size);
    World world({}, size);
    // By answer, of a renewal or not, and whether the registry's row has changed.
    std::map<std::tuple<uidgen::core::Why, bool, bool>, std::set<std::string>> calls;
    std::map<std::pair<std::string, bool>, std::set<std::string>> statements;
    std::mt19937_64 random(1);
    world.on_call = [&](const Server &before, int now, const Request &request, const Reply &reply,
                        const Server &after) {
        const bool changes = before.db.fence != after.db.fence || before.db.term != after.db.term;
        std::set<std::string> &kind = calls[{reply.why, request.node >= 0, changes}];
        if (kind.size() == calls_of_a_kind || random() % one_in != 0)
            return;
        kind.insert("{" + json(before, now, size) + R"(, "request": )" + json(request) + R"(, "reply": )" +
                    json(reply) + R"(, "after": )" + json(after) + "}");
    };
    world.on_statement = [&](const Server &before, int now, const char *function, int argument, bool is_refused,
                             const Server &after) {
        std::set<std::string> &kind = statements[{function, is_refused}];
        if (kind.size() == calls_of_a_kind)
            return;
        char text[200];
        snprintf(text, sizeof(text), R"("statement": "%s", "argument": %d, "reply": {"why": "%s"})", function, argument,
                 is_refused ? "refused" : "done");
        kind.insert("{" + json(before, now, size) + ", " + text + R"(, "after": )" + json(after) + "}");
    };
    walk(world, 1, 200000, 60);
    for (const auto &[kind, some] : calls)
        for (const std::string &call : some)
            puts(call.c_str());
    for (const auto &[kind, some] : statements)
        for (const std::string &statement : some)
            puts(statement.c_str());
}

} // namespace

int main() {
    for (const Scenario &scenario : scenarios)
        print_calls(scenario);
    print_calls(false_statements);
    return 0;
}
