// Searches the states of a fleet (fleet_world.hpp): breadth first with a set of the states seen, by random walks, which go
// deeper, and along told stories.
#pragma once

#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <vector>

#include "fleet_world.hpp"

namespace uidgen::test {

inline std::vector<std::string> items_of(const std::string &list, char separator) {
    std::vector<std::string> items;
    std::istringstream all(list);
    for (std::string item; std::getline(all >> std::ws, item, separator);)
        items.push_back(item);
    return items;
}

// "nodes 1, clocks 0 -3, failover 2, whole_calls 1"
inline Size size_of(const std::string &list) {
    static const std::map<std::string, int Size::*> numbers = {{"nodes", &Size::nodes},
                                                               {"length", &Size::length},
                                                               {"layouts", &Size::layouts},
                                                               {"members", &Size::members},
                                                               {"ahead", &Size::ahead},
                                                               {"end", &Size::end},
                                                               {"keeps", &Size::keeps},
                                                               {"whole_calls", &Size::whole_calls},
                                                               {"partition", &Size::partition},
                                                               {"short_grants", &Size::short_grants},
                                                               {"late_promise", &Size::late_promise},
                                                               {"former_ends", &Size::former_ends}};
    static const std::map<std::string, std::vector<int> Size::*> lists = {{"clocks", &Size::clocks},
                                                                          {"registry_clocks", &Size::registry_clocks}};
    static const std::vector<std::string> kinds_by_name = items_of(kind_names, ',');
    Size size;
    for (const std::string &item : items_of(list, ',')) {
        std::istringstream words(item);
        std::string name;
        words >> name;
        const std::vector<int> args{std::istream_iterator<int>(words), std::istream_iterator<int>()};
        const auto kind = std::find(kinds_by_name.begin(), kinds_by_name.end(), name);
        if (kind != kinds_by_name.end())
            size.budget[kind - kinds_by_name.begin()] = args.at(0);
        else if (lists.count(name) != 0)
            size.*lists.at(name) = args;
        else
            size.*numbers.at(name) = args.at(0);
    }
    return size;
}

struct Found {
    std::string broken; // what must not happen; empty: nothing did
    std::string path;   // the steps that lead to it
    int depth = 0;      // how many, or how deep the search went
    uint64_t states = 0;
    uint32_t events = 0;
    bool is_all = false;  // there are no other states
    bool has_end = false; // of a story: its last step applied
};

// The hashes of states seen. Two states of one hash count as one: with 64 bits that hides one in 10^6 searches.
class HashSet {
  public:
    HashSet() : slots_(1 << 16) {}

    // False: it was there already.
    bool insert(uint64_t hash) {
        if (2 * (count_ + 1) > slots_.size())
            grow();
        const bool is_new = put(slots_, hash + (hash == 0 ? 1 : 0));
        count_ += is_new ? 1 : 0;
        return is_new;
    }
    size_t count() const { return count_; }

  private:
    static bool put(std::vector<uint64_t> &slots, uint64_t hash) {
        size_t i = hash & (slots.size() - 1);
        for (; slots[i] != 0; i = (i + 1) & (slots.size() - 1))
            if (slots[i] == hash)
                return false;
        slots[i] = hash;
        return true;
    }

    void grow() {
        std::vector<uint64_t> larger(2 * slots_.size());
        for (const uint64_t hash : slots_)
            if (hash != 0)
                put(larger, hash);
        slots_.swap(larger);
    }

    std::vector<uint64_t> slots_;
    size_t count_ = 0;
};

inline uint64_t hash_of(const State &s) {
    uint64_t words[(sizeof(State) + 7) / 8] = {};
    memcpy(words, &s, sizeof(s));
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (const uint64_t word : words) {
        hash = (hash ^ word) * 0xff51afd7ed558ccd;
        hash ^= hash >> 32;
    }
    return hash;
}

// The texts of the steps, each the so-manieth of its state's successors.
inline std::string told(World world, const std::vector<uint16_t> &path) {
    world.telling = true;
    State at = world.start();
    std::string texts;
    for (const int step : path) {
        State to = {};
        int n = 0;
        world.expand(at, [&](const State &next, const Outcome &, const std::string &text) {
            if (n++ != step)
                return;
            to = next;
            texts += text + "; ";
        });
        at = to;
    }
    return texts;
}

// Level by level, until that many states are known.
inline Found search(const World &world, size_t most_states) {
    struct Origin {
        uint32_t from;
        uint16_t step;
    };
    std::vector<State> level = {world.start()}, next;
    std::vector<Origin> origins = {{0, 0}};
    size_t first_of_level = 0;
    HashSet seen;
    seen.insert(hash_of(level[0]));
    Found found;
    for (; !level.empty() && found.broken.empty() && seen.count() < most_states; found.depth++) {
        const size_t first_of_next = origins.size();
        for (size_t i = 0; i < level.size() && found.broken.empty() && seen.count() < most_states; i++) {
            uint16_t step = 0;
            world.expand(level[i], [&](const State &s, const Outcome &out, const std::string &) {
                const Origin origin = {static_cast<uint32_t>(first_of_level + i), step++};
                found.events |= out.events;
                if (!found.broken.empty() || (out.broken == nullptr && !seen.insert(hash_of(s))))
                    return;
                origins.push_back(origin);
                next.push_back(s);
                found.broken = out.broken != nullptr ? out.broken : "";
            });
        }
        level.swap(next);
        next.clear();
        first_of_level = first_of_next;
    }
    found.is_all = level.empty();
    found.states = seen.count();
    if (found.broken.empty())
        return found;
    std::vector<uint16_t> path;
    for (size_t at = origins.size() - 1; at != 0; at = origins[at].from)
        path.insert(path.begin(), origins[at].step);
    found.path = told(world, path);
    return found;
}

// Walks of at most `length` steps, until so many states have been seen.
inline Found walk(const World &world, uint64_t seed, uint64_t most_states, int length) {
    std::mt19937_64 random(seed);
    Found found;
    std::vector<State> successors;
    while (found.states < most_states) {
        State at = world.start();
        std::vector<uint16_t> path;
        for (int i = 0; i < length; i++) {
            successors.clear();
            size_t broken = 0;
            world.expand(at, [&](const State &s, const Outcome &out, const std::string &) {
                successors.push_back(s);
                found.events |= out.events;
                if (out.broken == nullptr || broken != 0)
                    return;
                broken = successors.size();
                found.broken = out.broken;
            });
            found.states += successors.size();
            if (successors.empty())
                break;
            const size_t chosen = broken != 0 ? broken - 1 : random() % successors.size();
            path.push_back(static_cast<uint16_t>(chosen));
            at = successors[chosen];
            found.depth = std::max(found.depth, static_cast<int>(path.size()));
            if (broken == 0)
                continue;
            found.depth = static_cast<int>(path.size());
            found.path = told(world, path);
            return found;
        }
    }
    return found;
}

// The first successor whose text begins with each step in turn. A step that does not apply is left out.
inline Found tell(World world, const std::string &story) {
    world.telling = true;
    State at = world.start();
    Found found;
    for (const std::string &step : items_of(story, ';')) {
        State to = at;
        Outcome outcome;
        found.has_end = false;
        world.expand(at, [&](const State &next, const Outcome &out, const std::string &text) {
            if (found.has_end || text.rfind(step, 0) != 0)
                return;
            found.has_end = true;
            found.path += text + "; ";
            to = next;
            outcome = out;
        });
        at = to;
        found.depth += found.has_end ? 1 : 0;
        found.events |= outcome.events;
        if (outcome.broken == nullptr)
            continue;
        found.broken = outcome.broken;
        break;
    }
    return found;
}

} // namespace uidgen::test
