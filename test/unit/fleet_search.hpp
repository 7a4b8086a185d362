// Searches the states of a fleet (fleet_model.hpp): breadth first with a set of the states seen, so exhaustively to a
// stated depth, and by random walks, which go deeper.
#pragma once

#include <cctype>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>

#include "fleet_model.hpp"

namespace uidgen::test {

// The words of each item of a list.
inline std::vector<std::vector<std::string>> items_of(const std::string &list) {
    std::vector<std::vector<std::string>> items;
    std::istringstream all(list);
    for (std::string item; std::getline(all, item, ',');) {
        std::istringstream words(item);
        items.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    }
    return items;
}

// "ask AB, clock A 0 9": each step by its name, of each of the members, with each of the numbers.
inline std::vector<Step> steps_of(const std::string &list) {
    static const std::vector<std::string> names = items_of(step_names)[0];
    std::vector<Step> steps;
    for (const std::vector<std::string> &words : items_of(list)) {
        const auto name = std::find(names.begin(), names.end(), words.at(0));
        if (name == names.end())
            throw std::invalid_argument("no step " + words[0]);
        const bool has_members = words.size() > 1 && std::isupper(words[1][0]) != 0;
        std::vector<std::string> args(words.begin() + (has_members ? 2 : 1), words.end());
        if (args.empty())
            args.emplace_back("");
        for (const char member : has_members ? words[1] : "A")
            for (const std::string &arg : args)
                steps.push_back(
                    {static_cast<StepKind>(name - names.begin()), static_cast<int8_t>(member - 'A'),
                     static_cast<int8_t>(std::atoi(arg.c_str())),
                     words[0] + (has_members ? std::string(" ") + member : "") + (arg.empty() ? "" : " " + arg)});
    }
    return steps;
}

// "nodes 1, length 3"
inline Size size_of(const std::string &list) {
    static const std::map<std::string, int64_t Size::*> fields = {{"longest", &Size::longest},
                                                                  {"length", &Size::length},
                                                                  {"nodes", &Size::nodes},
                                                                  {"end", &Size::end},
                                                                  {"ahead", &Size::ahead},
                                                                  {"registry_offset", &Size::registry_offset},
                                                                  {"cut", &Size::cut},
                                                                  {"clocks_are_right", &Size::clocks_are_right},
                                                                  {"never_superseded", &Size::never_superseded},
                                                                  {"never_lost", &Size::never_lost},
                                                                  {"members", &Size::members},
                                                                  {"joining", &Size::joining},
                                                                  {"closing", &Size::closing},
                                                                  {"synchronous", &Size::synchronous}};
    Size size;
    for (const std::vector<std::string> &words : items_of(list))
        size.*fields.at(words.at(0)) = std::stoi(words.at(1));
    return size;
}

// A choice of steps, in a world of that size.
struct Scenario {
    std::string name;
    Size size;
    std::vector<Step> steps;
    int depth;       // of the exhaustive search
    uint64_t events; // that the search must meet

    Scenario(const char *name, const char *size, int depth, uint64_t events, const char *steps)
        : name(name), size(size_of(size)), steps(steps_of(steps)), depth(depth), events(events) {}
};

struct Found {
    std::string broken; // what must not happen; empty: nothing did
    std::string path;   // the steps that lead to it
    int depth = 0;      // how many, or how deep the search went
    uint64_t states = 0;
    uint64_t events = 0; // all that happened
    uint64_t needless_fences = 0;
};

// The hashes of states seen. Two states of one hash count as one: with 64 bits that hides one in 10^6 searches.
class HashSet {
  public:
    HashSet() : slots_(1 << 16) {}

    // False: it was there already.
    bool insert(uint64_t hash) {
        if (2 * ++count_ > slots_.size())
            grow();
        hash += hash == 0 ? 1 : 0;
        const bool is_new = put(slots_, hash);
        count_ -= is_new ? 0 : 1;
        return is_new;
    }

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
    static_assert(sizeof(State) % 8 == 0);
    uint64_t words[sizeof(State) / 8];
    memcpy(words, &s, sizeof(s));
    uint64_t hash = 0x9e3779b97f4a7c15;
    for (const uint64_t word : words) {
        hash = (hash ^ word) * 0xff51afd7ed558ccd;
        hash ^= hash >> 32;
    }
    return hash;
}

inline Found search(const Protocol &protocol, const Scenario &scenario, int depth) {
    struct Origin {
        uint32_t from;
        uint8_t step;
    };
    const World world(protocol, scenario.size);
    std::vector<State> level = {world.start()}, next;
    std::vector<Origin> origins = {{0, 0}};
    size_t first_of_level = 0;
    HashSet seen;
    seen.insert(hash_of(level[0]));
    Found found;
    for (found.depth = 1; found.depth <= depth && !level.empty(); found.depth++) {
        const size_t first_of_next = origins.size();
        for (size_t i = 0; i < level.size(); i++)
            for (size_t k = 0; k < scenario.steps.size(); k++) {
                State s = level[i];
                Outcome out;
                if (!world.apply(s, scenario.steps[k], out))
                    continue;
                found.events |= out.events;
                // Of the last states, which are most, nothing is asked but whether a step there breaks something.
                if (out.broken == nullptr && (found.depth == depth || !seen.insert(hash_of(s))))
                    continue;
                origins.push_back({static_cast<uint32_t>(first_of_level + i), static_cast<uint8_t>(k)});
                if (out.broken != nullptr) {
                    found.broken = out.broken;
                    for (size_t at = origins.size() - 1; at != 0; at = origins[at].from)
                        found.path = scenario.steps[origins[at].step].text + "; " + found.path;
                    found.states = origins.size();
                    return found;
                }
                next.push_back(s);
            }
        level.swap(next);
        next.clear();
        first_of_level = first_of_next;
    }
    found.depth = depth;
    found.states = origins.size();
    return found;
}

// The scenario's steps in their order, but for those that do not apply.
inline Found tell(const Protocol &protocol, const Scenario &story) {
    const World world(protocol, story.size);
    State s = world.start();
    Found found;
    for (const Step &step : story.steps) {
        State after = s;
        Outcome out;
        if (!world.apply(after, step, out))
            continue;
        s = after;
        found.depth++;
        found.events |= out.events;
        found.path += step.text + "; ";
        found.broken = out.broken != nullptr ? out.broken : "";
        if (out.broken != nullptr)
            break;
    }
    return found;
}

// `walks` walks of at most `length` steps.
inline Found walk(const Protocol &protocol, const Scenario &scenario, uint64_t seed, int walks, int length) {
    const World world(protocol, scenario.size);
    std::mt19937_64 random(seed);
    Found found;
    for (int i = 0; i < walks; i++) {
        State s = world.start();
        std::vector<uint8_t> path;
        for (int tries = 0; static_cast<int>(path.size()) < length && tries < 10 * length; tries++) {
            const size_t k = random() % scenario.steps.size();
            State after = s;
            Outcome out;
            if (!world.apply(after, scenario.steps[k], out))
                continue;
            s = after;
            path.push_back(static_cast<uint8_t>(k));
            found.states++;
            found.events |= out.events;
            found.needless_fences += (out.events & fence_not_needed) != 0 ? 1 : 0;
            if (out.broken == nullptr)
                continue;
            found.broken = out.broken;
            found.depth = static_cast<int>(path.size());
            for (const uint8_t step : path)
                found.path += scenario.steps[step].text + "; ";
            return found;
        }
        found.depth = std::max(found.depth, static_cast<int>(path.size()));
    }
    return found;
}

} // namespace uidgen::test
