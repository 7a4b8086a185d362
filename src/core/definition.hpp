// The definition of a generator, a segment or a key: what the security label of its sequence says, as
// definition_text.hpp reads and writes it. A field has the name of its column and of its parameter. find_fault() alone
// says which definitions are valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "clock_policy.hpp"
#include "field.hpp"
#include "layout.hpp"
#include "node.hpp"

namespace uidgen::core {

// ---------------------------------------------------------------------------------------------------------
// What a field may be.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t null_number = INT64_MIN; // a number that is null; a text is null as a null pointer

// Where a generator's worker id comes from.
enum class WorkerPolicy : uint32_t {
    disposable, // drawn again at each start of the server
    sticky,     // the last one of this host and port; drawn if there is none
    fixed,      // the number that the user gave (`static`)
};
constexpr const char *worker_policy_names[] = {"disposable", "sticky", "static"};

enum class WhenRingEmpty : uint32_t { pad, wait, error };

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
constexpr const char *when_ring_empty_names[] = {"pad", "wait", "error"};

constexpr bool or_null = true;

// A field without its name and offset, and the type of its member.
template <typename T> struct Kind : Field { using Member = T; };
template <typename T = int64_t>
constexpr Kind<T> values(FieldType type, int64_t least, int64_t most, bool nullable,
                         const char *const *choices = nullptr) {
    return {{nullptr, type, 0, nullable, null_number, least, most, choices}};
}
constexpr auto number(int64_t least, int64_t most, bool nullable = false) {
    return values(FieldType::int64, least, most, nullable);
}
constexpr auto flag() { return values(FieldType::flag, 0, 1, false, boolean_names); }
template <size_t count> constexpr auto choice(const char *const (&choices)[count]) {
    return values(FieldType::choice, 0, count - 1, false, choices);
}
constexpr auto time() { return values(FieldType::time, 0, max_instant_us, false); }
constexpr auto text(int64_t most, bool nullable = false) {
    return values<const char *>(FieldType::text, 1, most, nullable);
}

} // namespace detail

// ---------------------------------------------------------------------------------------------------------
// What is defined: the only list of fields. The structs follow from it, the text, the checks, the rows of views, and
// what arguments set. sql/labels.sql compares the signatures in src/sql.
// ---------------------------------------------------------------------------------------------------------

// clang-format off
#define UIDGEN_GENERATOR_FIELDS(field)                          \
    field(preset, text(longest_preset))                         \
    field(epoch, time())                                        \
    field(tick_us, number(1, max_tick_us))                      \
    field(time_bits, number(1, max_time_bits))                  \
    field(datacenter_bits, number(0, max_field_bits))           \
    field(worker_bits, number(0, max_field_bits))               \
    field(sequence_bits, number(0, max_field_bits))             \
    field(sequence_first, flag())                               \
    field(backup_worker, flag())                                \
    field(lease_ms, number(1, longest_ahead_ms))                \
    field(max_ahead_ms, number(1, longest_ahead_ms))            \
    field(when_full, choice(when_full_names)) /* WhenFull */    \
    field(when_back, choice(when_back_names)) /* WhenBack */    \
    field(tolerance_ms, number(0, longest_ms, or_null))         \
    field(spread, flag())                                       \
    field(worker_policy, choice(worker_policy_names))           \
    field(worker_number, number(0, INT32_MAX, or_null))         \
    field(datacenter_id, number(0, INT32_MAX, or_null))         \
    field(own_pool, flag())                                     \
    field(mode, choice(mode_names))                             \
    field(boost_power, number(0, 20))                           \
    field(padding_factor, number(1, 100))                       \
    field(schedule_ms, number(1, longest_ms, or_null))          \
    field(when_ring_empty, choice(when_ring_empty_names))       \
    field(max_staleness_ms, number(1, longest_ms))              \
    field(created, time())                                      \
    field(is_default, flag())

#define UIDGEN_SEGMENT_FIELDS(field)                            \
    field(name, text(longest_name))                             \
    field(step, number(1, most_step, or_null))                  \
    field(max_step, number(1, most_step, or_null))              \
    field(registry_name, text(longest_registry_name, or_null))  \
    field(fleet, number(1, INT64_MAX, or_null))                 \
    field(increment, number(null_number + 1, INT64_MAX, or_null))

#define UIDGEN_KEY_FIELDS(field)                                \
    field(id, number(1, INT64_MAX)) /* of its secrets */
// clang-format on

namespace detail {
#define UIDGEN_MEMBER(name, values) decltype(values)::Member name;
struct GeneratorDefinition {
    UIDGEN_GENERATOR_FIELDS(UIDGEN_MEMBER)
};
struct SegmentDefinition {
    UIDGEN_SEGMENT_FIELDS(UIDGEN_MEMBER)
};
struct KeyDefinition {
    UIDGEN_KEY_FIELDS(UIDGEN_MEMBER)
};
} // namespace detail

using detail::GeneratorDefinition;
using detail::KeyDefinition;
using detail::SegmentDefinition;

enum class DefinitionKind : uint8_t { none, generator, segment, key };
constexpr const char *definition_kinds[] = {"", "generator", "segment", "key"};
constexpr const char *kind_name(DefinitionKind kind) noexcept { return definition_kinds[static_cast<size_t>(kind)]; }

struct Definition {
    DefinitionKind kind;
    union {
        GeneratorDefinition generator;
        SegmentDefinition segment;
        KeyDefinition key;
    };
};

namespace detail {

constexpr Field named(const char *name, size_t offset, Field field) {
    field.name = name;
    field.offset = offset;
    return field;
}
#define UIDGEN_OF(member, name, values) named(#name, offsetof(Definition, member.name), values),
#define UIDGEN_OF_GENERATOR(name, values) UIDGEN_OF(generator, name, values)
#define UIDGEN_OF_SEGMENT(name, values) UIDGEN_OF(segment, name, values)
#define UIDGEN_OF_KEY(name, values) UIDGEN_OF(key, name, values)
constexpr Field of_generator[] = {UIDGEN_GENERATOR_FIELDS(UIDGEN_OF_GENERATOR)};
constexpr Field of_segment[] = {UIDGEN_SEGMENT_FIELDS(UIDGEN_OF_SEGMENT)};
constexpr Field of_key[] = {UIDGEN_KEY_FIELDS(UIDGEN_OF_KEY)};
constexpr Fields of_kinds[] = {{nullptr, nullptr}, fields_in(of_generator), fields_in(of_segment), fields_in(of_key)};

} // namespace detail

// The fields of a Definition of that kind.
constexpr const Fields &fields_of(DefinitionKind kind) noexcept { return detail::of_kinds[static_cast<size_t>(kind)]; }

// ---------------------------------------------------------------------------------------------------------
// What a generator's definition means. It must be valid.
// ---------------------------------------------------------------------------------------------------------

constexpr Layout layout_of(const GeneratorDefinition &generator) noexcept {
    constexpr auto narrow = [](int64_t bits) { return static_cast<int32_t>(bits); };
    return {.epoch_us = generator.epoch,
            .tick_us = generator.tick_us,
            .time_bits = narrow(generator.time_bits),
            .datacenter_bits = narrow(generator.datacenter_bits),
            .worker_bits = narrow(generator.worker_bits),
            .sequence_bits = narrow(generator.sequence_bits),
            .sequence_first = generator.sequence_first != 0,
            .backup = generator.backup_worker != 0};
}

// Cached mode: ids are made ahead of the call, into a ring (src/pg/generator/cached.cpp).
struct CachedConfig {
    bool on;
    uint64_t size;       // ids in a full ring, a power of two
    uint64_t threshold;  // ids in the ring below which it is refilled
    int64_t schedule_us; // time between two refills; 0: no schedule
    WhenRingEmpty when_empty;
    int64_t fresh_us; // half of max_staleness: how long a reading of the clock counts, and how old an id may be at it
};

constexpr CachedConfig cached_of(const GeneratorDefinition &generator) noexcept {
    const uint64_t size = UINT64_C(1) << (generator.sequence_bits + generator.boost_power);
    return {.on = generator.mode != 0,
            .size = size,
            .threshold = std::max(size * static_cast<uint64_t>(generator.padding_factor) / 100, UINT64_C(1)),
            .schedule_us = generator.schedule_ms == null_number ? 0 : generator.schedule_ms * 1000,
            .when_empty = static_cast<WhenRingEmpty>(generator.when_ring_empty),
            .fresh_us = generator.max_staleness_ms * 1000 / 2};
}

constexpr ClockPolicy policy_of(const GeneratorDefinition &generator) noexcept {
    const auto ticks = [&generator](int64_t ms) { return ms * 1000 / generator.tick_us; };
    const auto sequence_bits = static_cast<int32_t>(generator.sequence_bits);
    const auto when_full = static_cast<WhenFull>(generator.when_full);
    const CachedConfig cached = cached_of(generator);
    return {.sequence_bits = sequence_bits,
            .end = INT64_C(1) << generator.time_bits,
            .lease = std::max(ticks(generator.lease_ms), INT64_C(1)),
            .max_ahead = std::max(ticks(generator.max_ahead_ms), INT64_C(1)),
            .when_full = when_full,
            .when_back = static_cast<WhenBack>(generator.when_back),
            .tolerance = generator.tolerance_ms == null_number ? no_limit : ticks(generator.tolerance_ms),
            .spread = generator.spread != 0 ? spread_for(sequence_bits, when_full) : Spread{0},
            .behind =
                cached.on ? cached.fresh_us / generator.tick_us - 1 : 0}; // the clock may be at the end of its tick
}

// ---------------------------------------------------------------------------------------------------------
// Whether a definition is valid.
// ---------------------------------------------------------------------------------------------------------

enum class FaultKind : uint8_t {
    none,
    kind,     // the text does not begin with a kind
    unknown,  // not a field and its value
    repeated, // `field` is there twice
    missing,  // `field` is not there
    value,    // not a value of `field`: print_allowed() says what is
    rule,     // the value of `field` does not go with others
};

struct DefinitionFault {
    FaultKind kind;
    const Field *field = nullptr;
    const char *at = nullptr; // the part of the text, of `size` bytes; null: print_value() has it
    size_t size = 0;
    const char *detail = nullptr; // of a rule, whole sentences, or null
    const char *hint = nullptr;   // null: the value must be at most `most`
    int64_t most = 0;
};

namespace detail {

constexpr DefinitionFault no_fault = {FaultKind::none};

inline bool fits(const Definition &definition, const Field &field) noexcept {
    if (is_null(&definition, field))
        return field.nullable;
    const int64_t value = field.type == FieldType::text ? static_cast<int64_t>(strlen(text_in(&definition, field)))
                                                        : number_in(&definition, field);
    return value >= field.least && value <= field.most;
}

struct Rule {
    bool broken;
    const char *field;
    const char *hint;
    const char *detail = nullptr;
    int64_t most = 0;
};

template <size_t count> DefinitionFault first_broken(DefinitionKind kind, const Rule (&rules)[count]) noexcept {
    for (const Rule &rule : rules)
        if (rule.broken)
            return {.kind = FaultKind::rule,
                    .field = find_field(fields_of(kind), rule.field),
                    .detail = rule.detail,
                    .hint = rule.hint,
                    .most = rule.most};
    return no_fault;
}

inline DefinitionFault check_rules(const GeneratorDefinition &generator) noexcept {
    const Layout layout = layout_of(generator);
    const LayoutFault fault = find_layout_fault(layout);
    const ClockPolicy policy = policy_of(generator);
    const CachedConfig cached = cached_of(generator);
    const int32_t worker_bits = fault == LayoutFault::none ? drawn_worker_bits(layout) : 0;
    const int32_t datacenter_bits = fault == LayoutFault::none ? datacenter_id_bits(layout) : 0;
    const bool uses_backup = policy.when_full == WhenFull::backup || policy.when_back == WhenBack::backup;
    const bool is_fixed = static_cast<WorkerPolicy>(generator.worker_policy) == WorkerPolicy::fixed;
    return first_broken(
        DefinitionKind::generator,
        {{fault == LayoutFault::widths && layout.backup && layout.worker_bits == 0, "worker_bits",
          "Set worker_bits to at least 1, or backup_worker to false.",
          "The backup worker needs a bit of the worker id."},
         {fault == LayoutFault::widths, "time_bits",
          "Reduce time_bits, datacenter_bits, worker_bits or sequence_bits, to at most 63 together."},
         {fault == LayoutFault::beyond_calendar, "time_bits",
          "Reduce time_bits or tick_us, because the last tick is after the year 10889."},
         {generator.lease_ms > generator.max_ahead_ms, "lease_ms", "Use a lease_ms of at most max_ahead_ms."},
         {uses_backup && !layout.backup, "backup_worker", "Use true, or policies other than backup.",
          "The policy backup of when_full and when_back needs a backup worker."},
         {is_fixed && generator.worker_number == null_number, "worker_number", nullptr,
          "worker_policy static needs a worker_number, and -1 stands for null.", largest(worker_bits)},
         {is_fixed && generator.worker_number > largest(worker_bits), "worker_number", nullptr,
          layout.backup ? "The backup worker takes one of the worker_bits." : nullptr, largest(worker_bits)},
         {generator.datacenter_id > largest(datacenter_bits), "datacenter_id", nullptr,
          layout.datacenter_bits == 0 ? "Without datacenter_bits it is the worker id." : nullptr,
          largest(datacenter_bits)},
         {cached.on && INT64_C(1) << generator.boost_power > policy.max_ahead, "boost_power",
          "Use a smaller boost_power, or a larger max_ahead_ms.",
          "The ring holds the ids of 2^boost_power ticks, which max_ahead_ms must cover."},
         {cached.on && policy.behind < 0, "max_staleness_ms", "Use the length of two ticks, or more."},
         {cached.on && (policy.when_full != WhenFull::borrow || policy.when_back != WhenBack::hold ||
                        policy.tolerance != no_limit || policy.spread.count != 0),
          "mode", "Use when_full => 'borrow', when_back => 'hold', tolerance_ms => -1, spread => false.",
          "In cached mode, ids are made ahead of the call, so other policies cannot apply."}});
}

inline DefinitionFault check_rules(const SegmentDefinition &segment) noexcept {
    const bool is_attached = segment.registry_name != nullptr;
    return first_broken(
        DefinitionKind::segment,
        {{segment.max_step != null_number && segment.max_step < segment.step, "max_step",
          "Use a max_step of at least step, or NULL."},
         {is_attached != (segment.fleet != null_number) || is_attached != (segment.increment != null_number),
          "registry_name", "Set all of registry_name, fleet and increment, or none."},
         {segment.increment == 0, "increment", "Use an increment other than 0."}});
}

} // namespace detail

inline DefinitionFault find_fault(const Definition &definition) noexcept {
    for (const Field &field : fields_of(definition.kind))
        if (!detail::fits(definition, field))
            return {.kind = FaultKind::value, .field = &field};
    switch (definition.kind) {
    case DefinitionKind::generator:
        return detail::check_rules(definition.generator);
    case DefinitionKind::segment:
        return detail::check_rules(definition.segment);
    case DefinitionKind::key:
        return detail::no_fault;
    case DefinitionKind::none:
        break;
    }
    return {.kind = FaultKind::kind, .at = ""};
}

} // namespace uidgen::core
