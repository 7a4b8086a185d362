// The definition of a generator, a segment or a key: what the security label of its sequence says, as
// definition_text.hpp reads and writes it. One list of fields (fields_of) is the base of text, checks and views. A
// field has the name of its column and of its parameter. check() alone says which definitions are valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "clock_policy.hpp"
#include "layout.hpp"
#include "node.hpp"

namespace uidgen::core {

// ---------------------------------------------------------------------------------------------------------
// What is defined.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t null_number = INT64_MIN; // a number that is null; a text is null as a null pointer

// Times are microseconds since 1970-01-01 UTC. A boolean is 0 or 1, a choice the number of its word.
struct GeneratorDefinition {
    const char *preset;
    int64_t epoch;
    int64_t tick_us;
    int64_t time_bits;
    int64_t datacenter_bits;
    int64_t worker_bits;
    int64_t sequence_bits;
    int64_t sequence_first;
    int64_t backup_worker;
    int64_t lease_ms;
    int64_t max_ahead_ms;
    int64_t when_full; // WhenFull
    int64_t when_back; // WhenBack
    int64_t tolerance_ms;
    int64_t spread;
    int64_t worker_policy; // WorkerPolicy
    int64_t worker_number;
    int64_t datacenter_id;
    int64_t own_pool;
    int64_t mode;
    int64_t boost_power;
    int64_t padding_factor;
    int64_t schedule_ms;
    int64_t when_ring_full;
    int64_t when_ring_empty; // WhenRingEmpty
    int64_t max_staleness_ms;
    int64_t created;
    int64_t is_default;
};

struct SegmentDefinition {
    const char *name;
    int64_t step;
    int64_t max_step;
    const char *registry_name;
    int64_t fleet;
    int64_t increment;
    int64_t increment_val;
};

struct KeyDefinition {
    int64_t id; // of its secrets
};

enum class DefinitionKind : uint8_t { none, generator, segment, key };
constexpr const char *definition_kinds[] = {"", "generator", "segment", "key"};

struct Definition {
    DefinitionKind kind;
    union {
        GeneratorDefinition generator;
        SegmentDefinition segment;
        KeyDefinition key;
    };
};

// Where a generator's worker id comes from.
enum class WorkerPolicy : uint32_t {
    disposable, // drawn again at each start of the server
    sticky,     // the last one of this host and port; drawn if there is none
    fixed,      // the number that the user gave (`static`)
};
constexpr const char *worker_policy_names[] = {"disposable", "sticky", "static"};

enum class WhenRingEmpty : uint32_t { pad, wait, error };

// ---------------------------------------------------------------------------------------------------------
// The fields.
// ---------------------------------------------------------------------------------------------------------

enum class FieldType : uint8_t { number, boolean, choice, time, text };

struct Field {
    const char *word;
    size_t offset; // in the struct of its kind
    FieldType type;
    int64_t least; // of a text: bytes
    int64_t most;
    const char *const *words; // of a choice or boolean
    bool nullable;
};

struct Fields {
    const Field *first;
    const Field *last; // one beyond

    constexpr const Field *begin() const noexcept { return first; }
    constexpr const Field *end() const noexcept { return last; }
};

namespace detail {

constexpr int64_t longest_ms = INT32_MAX;
constexpr int64_t most_step = INT64_C(1) << 40;

// Bounds what a label costs, because many statements read those of all sequences. Longer names fit no index, and longer
// ones at the registry no request.
constexpr int64_t longest_preset = 63;
constexpr int64_t longest_name = 2500;
constexpr int64_t longest_registry_name = 1024;

constexpr const char *boolean_names[] = {"false", "true"};
constexpr const char *when_full_names[] = {"wait", "borrow", "backup"};
constexpr const char *when_back_names[] = {"hold", "wait", "backup", "error"};
constexpr const char *mode_names[] = {"snowflake", "cached"};
constexpr const char *when_ring_full_names[] = {"stop", "discard"};
constexpr const char *when_ring_empty_names[] = {"pad", "wait", "error"};

constexpr Field number(const char *word, size_t offset, int64_t least, int64_t most, bool nullable = false) {
    return {word, offset, FieldType::number, least, most, nullptr, nullable};
}
constexpr Field boolean(const char *word, size_t offset) {
    return {word, offset, FieldType::boolean, 0, 1, boolean_names, false};
}
template <size_t count> constexpr Field choice(const char *word, size_t offset, const char *const (&words)[count]) {
    return {word, offset, FieldType::choice, 0, count - 1, words, false};
}
constexpr Field time(const char *word, size_t offset) {
    return {word, offset, FieldType::time, 0, max_instant_us, nullptr, false};
}
constexpr Field text(const char *word, size_t offset, int64_t most, bool nullable = false) {
    return {word, offset, FieldType::text, 1, most, nullptr, nullable};
}

constexpr Field generator_fields[] = {
    text("preset", offsetof(GeneratorDefinition, preset), longest_preset),
    time("epoch", offsetof(GeneratorDefinition, epoch)),
    number("tick_us", offsetof(GeneratorDefinition, tick_us), 1, max_tick_us),
    number("time_bits", offsetof(GeneratorDefinition, time_bits), 1, max_time_bits),
    number("datacenter_bits", offsetof(GeneratorDefinition, datacenter_bits), 0, max_field_bits),
    number("worker_bits", offsetof(GeneratorDefinition, worker_bits), 0, max_field_bits),
    number("sequence_bits", offsetof(GeneratorDefinition, sequence_bits), 0, max_field_bits),
    boolean("sequence_first", offsetof(GeneratorDefinition, sequence_first)),
    boolean("backup_worker", offsetof(GeneratorDefinition, backup_worker)),
    number("lease_ms", offsetof(GeneratorDefinition, lease_ms), 1, longest_ahead_ms),
    number("max_ahead_ms", offsetof(GeneratorDefinition, max_ahead_ms), 1, longest_ahead_ms),
    choice("when_full", offsetof(GeneratorDefinition, when_full), when_full_names),
    choice("when_back", offsetof(GeneratorDefinition, when_back), when_back_names),
    number("tolerance_ms", offsetof(GeneratorDefinition, tolerance_ms), 0, longest_ms, true),
    boolean("spread", offsetof(GeneratorDefinition, spread)),
    choice("worker_policy", offsetof(GeneratorDefinition, worker_policy), worker_policy_names),
    number("worker_number", offsetof(GeneratorDefinition, worker_number), 0, INT32_MAX, true),
    number("datacenter_id", offsetof(GeneratorDefinition, datacenter_id), 0, INT32_MAX, true),
    boolean("own_pool", offsetof(GeneratorDefinition, own_pool)),
    choice("mode", offsetof(GeneratorDefinition, mode), mode_names),
    number("boost_power", offsetof(GeneratorDefinition, boost_power), 0, 20),
    number("padding_factor", offsetof(GeneratorDefinition, padding_factor), 1, 100),
    number("schedule_ms", offsetof(GeneratorDefinition, schedule_ms), 1, longest_ms, true),
    choice("when_ring_full", offsetof(GeneratorDefinition, when_ring_full), when_ring_full_names),
    choice("when_ring_empty", offsetof(GeneratorDefinition, when_ring_empty), when_ring_empty_names),
    number("max_staleness_ms", offsetof(GeneratorDefinition, max_staleness_ms), 1, longest_ms),
    time("created", offsetof(GeneratorDefinition, created)),
    boolean("is_default", offsetof(GeneratorDefinition, is_default)),
};

constexpr Field segment_fields[] = {
    text("name", offsetof(SegmentDefinition, name), longest_name),
    number("step", offsetof(SegmentDefinition, step), 1, most_step, true),
    number("max_step", offsetof(SegmentDefinition, max_step), 1, most_step, true),
    text("registry_name", offsetof(SegmentDefinition, registry_name), longest_registry_name, true),
    number("fleet", offsetof(SegmentDefinition, fleet), 1, INT64_MAX, true),
    number("increment", offsetof(SegmentDefinition, increment), null_number + 1, INT64_MAX, true),
    number("increment_val", offsetof(SegmentDefinition, increment_val), 1, most_step),
};

constexpr Field key_fields[] = {number("id", offsetof(KeyDefinition, id), 1, INT64_MAX)};

template <size_t count> constexpr Fields all_of(const Field (&fields)[count]) { return {fields, fields + count}; }

inline bool is_word(const char *word, const char *at, size_t size) noexcept {
    return strncmp(word, at, size) == 0 && word[size] == '\0';
}

} // namespace detail

constexpr Fields fields_of(DefinitionKind kind) noexcept {
    switch (kind) {
    case DefinitionKind::generator:
        return detail::all_of(detail::generator_fields);
    case DefinitionKind::segment:
        return detail::all_of(detail::segment_fields);
    case DefinitionKind::key:
        return detail::all_of(detail::key_fields);
    case DefinitionKind::none:
        break;
    }
    return {nullptr, nullptr};
}

// Null if the kind has no such field.
inline const Field *find_field(DefinitionKind kind, const char *word, size_t size) noexcept {
    for (const Field &field : fields_of(kind))
        if (detail::is_word(field.word, word, size))
            return &field;
    return nullptr;
}
inline const Field *find_field(DefinitionKind kind, const char *word) noexcept {
    return find_field(kind, word, strlen(word));
}

// The number of one of a choice's words; -1 if it is none of them.
inline int64_t choice_of(const Field &field, const char *word, size_t size) noexcept {
    for (int64_t i = 0; i <= field.most; i++)
        if (detail::is_word(field.words[i], word, size))
            return i;
    return -1;
}
inline int64_t choice_of(const Field &field, const char *word) noexcept { return choice_of(field, word, strlen(word)); }

// The field of a definition of its kind: text_in() of a text, number_in() of all others.
inline int64_t *number_in(Definition *d, const Field &field) noexcept {
    return reinterpret_cast<int64_t *>(reinterpret_cast<char *>(&d->generator) + field.offset);
}
inline int64_t number_in(const Definition &d, const Field &field) noexcept {
    return *number_in(const_cast<Definition *>(&d), field);
}
inline const char **text_in(Definition *d, const Field &field) noexcept {
    return reinterpret_cast<const char **>(reinterpret_cast<char *>(&d->generator) + field.offset);
}
inline const char *text_in(const Definition &d, const Field &field) noexcept {
    return *text_in(const_cast<Definition *>(&d), field);
}
inline bool is_null(const Definition &d, const Field &field) noexcept {
    return field.type == FieldType::text ? text_in(d, field) == nullptr : number_in(d, field) == null_number;
}

// ---------------------------------------------------------------------------------------------------------
// What a generator's definition means. It must be valid.
// ---------------------------------------------------------------------------------------------------------

constexpr Layout layout_of(const GeneratorDefinition &g) noexcept {
    constexpr auto narrow = [](int64_t bits) { return static_cast<int32_t>(bits); };
    return {g.epoch,
            g.tick_us,
            narrow(g.time_bits),
            narrow(g.datacenter_bits),
            narrow(g.worker_bits),
            narrow(g.sequence_bits),
            g.sequence_first != 0,
            g.backup_worker != 0};
}

constexpr ClockPolicy policy_of(const GeneratorDefinition &g) noexcept {
    const auto ticks = [&g](int64_t ms) { return ms * 1000 / g.tick_us; };
    const auto sequence_bits = static_cast<int32_t>(g.sequence_bits);
    return {sequence_bits,
            INT64_C(1) << g.time_bits,
            std::max(ticks(g.lease_ms), INT64_C(1)),
            std::max(ticks(g.max_ahead_ms), INT64_C(1)),
            static_cast<WhenFull>(g.when_full),
            static_cast<WhenBack>(g.when_back),
            g.tolerance_ms == null_number ? no_limit : ticks(g.tolerance_ms),
            g.spread != 0 ? spread_for(sequence_bits, static_cast<WhenFull>(g.when_full)) : Spread{0}};
}

// Cached mode. A run is the content of one cell of the ring. All sessions draw from one run.
struct CachedConfig {
    bool on;
    uint64_t run;        // ids in a run, a power of two
    uint64_t cells;      // cells in the ring, a power of two
    uint64_t threshold;  // filled cells below which the ring is refilled
    int64_t schedule_us; // time between two refills; 0: no schedule
    bool discards;       // the rest of a tick that does not fit into the ring
    WhenRingEmpty when_empty;
    int64_t fresh_us; // half of max_staleness: how long a reading of the clock counts, and how old an id may be at it
};

constexpr uint64_t most_cells = UINT64_C(8) * 1024 * 1024; // 64 MB

constexpr CachedConfig cached_of(const GeneratorDefinition &g) noexcept {
    // A run is of one tick. It is long, so that calls seldom fetch another one, but the ring still holds several.
    constexpr uint64_t longest_run = 4096;
    constexpr uint64_t fewest_runs = 4;
    const uint64_t tick = UINT64_C(1) << g.sequence_bits;
    const uint64_t ids = tick << g.boost_power;
    const uint64_t run = std::min({longest_run, tick, std::max(ids / fewest_runs, UINT64_C(1))});
    const uint64_t cells = ids / run;
    return {g.mode != 0,
            run,
            cells,
            std::max(cells * static_cast<uint64_t>(g.padding_factor) / 100, UINT64_C(1)),
            g.schedule_ms == null_number ? 0 : g.schedule_ms * 1000,
            g.when_ring_full != 0,
            static_cast<WhenRingEmpty>(g.when_ring_empty),
            g.max_staleness_ms * 1000 / 2};
}

// ---------------------------------------------------------------------------------------------------------
// Whether a definition is valid.
// ---------------------------------------------------------------------------------------------------------

enum class FaultKind : uint8_t {
    none,
    kind,     // the first word names no kind
    word,     // not a field and its value
    repeated, // `field` is there twice
    missing,  // `field` is not there
    value,    // not a value of `field`: print_allowed() says what is
    rule,     // the value of `field` does not go with others
};

struct DefinitionFault {
    FaultKind kind;
    const Field *field = nullptr;
    const char *at = nullptr; // the word or value in the text, of `size` bytes; null: print_value() has it
    size_t size = 0;
    const char *detail = nullptr; // of a rule, whole sentences; the detail may be null
    const char *hint = nullptr;
};

namespace detail {

constexpr DefinitionFault no_fault = {FaultKind::none};

inline bool fits(const Definition &d, const Field &field) noexcept {
    if (is_null(d, field))
        return field.nullable;
    const int64_t value =
        field.type == FieldType::text ? static_cast<int64_t>(strlen(text_in(d, field))) : number_in(d, field);
    return value >= field.least && value <= field.most;
}

struct Rule {
    bool broken;
    const char *word; // of the field
    const char *hint;
    const char *detail = nullptr;
};

template <size_t count> DefinitionFault first_broken(DefinitionKind kind, const Rule (&rules)[count]) noexcept {
    for (const Rule &rule : rules)
        if (rule.broken)
            return {FaultKind::rule, find_field(kind, rule.word), nullptr, 0, rule.detail, rule.hint};
    return no_fault;
}

inline DefinitionFault check_rules(const GeneratorDefinition &g) noexcept {
    const Layout layout = layout_of(g);
    const LayoutFault fault = check(layout);
    const ClockPolicy policy = policy_of(g);
    const CachedConfig cached = cached_of(g);
    const int32_t worker_bits = fault == LayoutFault::none ? drawn_worker_bits(layout) : 0;
    const int32_t datacenter_bits = fault == LayoutFault::none ? datacenter_id_bits(layout) : 0;
    const bool uses_backup = policy.when_full == WhenFull::backup || policy.when_back == WhenBack::backup;
    const bool is_fixed = static_cast<WorkerPolicy>(g.worker_policy) == WorkerPolicy::fixed;
    return first_broken(
        DefinitionKind::generator,
        {{fault == LayoutFault::widths && layout.backup && layout.worker_bits == 0, "worker_bits",
          "Set worker_bits to at least 1, or backup_worker to false.",
          "The backup worker needs a bit of the worker id."},
         {fault == LayoutFault::widths, "time_bits",
          "Reduce time_bits, datacenter_bits, worker_bits or sequence_bits, to at most 63 together."},
         {fault == LayoutFault::beyond_calendar, "time_bits",
          "Reduce time_bits or tick_us, because the last tick is after the year 10889."},
         {g.lease_ms > g.max_ahead_ms, "lease_ms", "Use a lease_ms of at most max_ahead_ms."},
         {uses_backup && !layout.backup, "backup_worker", "Use true, or policies other than backup.",
          "The policy backup of when_full and when_back needs a backup worker."},
         {is_fixed && g.worker_number == null_number, "worker_number", "Set worker_number to a worker id.",
          "worker_policy static needs a worker_number."},
         {is_fixed && g.worker_number > largest(worker_bits), "worker_number",
          "Use a number that the worker_bits can hold, which are one less with a backup_worker."},
         {g.datacenter_id > largest(datacenter_bits), "datacenter_id",
          "Use a number that the datacenter_bits can hold, or without them the bits of the worker id."},
         {cached.on && (cached.cells > most_cells || INT64_C(1) << g.boost_power > policy.max_ahead), "boost_power",
          "Use a smaller boost_power, or a larger max_ahead_ms.",
          "The ring holds the ids of 2^boost_power ticks. They must fit max_ahead_ms, and 8388608 runs of up to 4096."},
         {cached.on && cached.fresh_us < layout.tick_us, "max_staleness_ms", "Use the length of two ticks, or more."},
         {cached.on && (policy.when_full != WhenFull::borrow || policy.when_back != WhenBack::hold ||
                        policy.tolerance != no_limit || policy.spread.count != 0),
          "mode", "Use when_full => 'borrow', when_back => 'hold', tolerance_ms => -1, spread => false.",
          "In cached mode, ids are made ahead of the call, so other policies cannot apply."}});
}

inline DefinitionFault check_rules(const SegmentDefinition &s) noexcept {
    const bool is_attached = s.registry_name != nullptr;
    return first_broken(
        DefinitionKind::segment,
        {{s.max_step != null_number && s.max_step < s.step, "max_step", "Use a max_step of at least step, or NULL."},
         {is_attached != (s.fleet != null_number) || is_attached != (s.increment != null_number), "registry_name",
          "Set all of registry_name, fleet and increment, or none."},
         {s.increment == 0, "increment", "Use an increment other than 0."}});
}

} // namespace detail

inline DefinitionFault check(const Definition &d) noexcept {
    for (const Field &field : fields_of(d.kind))
        if (!detail::fits(d, field))
            return {FaultKind::value, &field};
    switch (d.kind) {
    case DefinitionKind::generator:
        return detail::check_rules(d.generator);
    case DefinitionKind::segment:
        return detail::check_rules(d.segment);
    case DefinitionKind::key:
        return detail::no_fault;
    case DefinitionKind::none:
        break;
    }
    return {FaultKind::kind, nullptr, ""};
}

} // namespace uidgen::core
