// The text of a definition, in the security label of its sequence:
//
//   generator preset="js53" epoch=2026-01-01T00:00:00Z tick_us=1000000 time_bits=32 ... is_default=false
//   segment name="orders" step=null max_step=null ...
//   key id=5112345678901234567
//
//   1. A text has each field of its kind once, in any order. So a later version's presets change no generator that
//      exists. print_definition() writes them in the order of the list. One space is before each, so no text is long,
//      and all labels can be read at little cost.
//   2. A definition that was printed is parsed to the same one. Each value has one spelling, so a text that was parsed
//      is printed as the same text, in the order of the list.
//   3. A text is always in double quotes; a double quote in it is doubled. So no text is taken for a field or for null.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "definition.hpp"

namespace uidgen::core {

namespace detail {

// Writes what fits, and counts everything.
struct Writer {
    char *out;
    size_t size;
    size_t length = 0;

    void put(char c) noexcept {
        if (length + 1 < size)
            out[length] = c;
        length++;
    }
    void put(const char *text) noexcept {
        for (; *text != '\0'; text++)
            put(*text);
    }
    // What snprintf() makes of it, up to 99 bytes.
    template <typename... Values> void format(const char *how, Values... values) noexcept {
        char text[100] = {};
        (void)snprintf(text, sizeof(text), how, static_cast<long long>(values)...);
        put(text);
    }
    size_t finish() const noexcept {
        if (size > 0)
            out[std::min(length, size - 1)] = '\0';
        return length;
    }
};

constexpr int64_t us_per_second = 1000000;
constexpr int64_t seconds_per_day = 86400;

// Days from 1970-01-01 to the first day of a month. Month 13 is the next year's first.
constexpr int64_t days_before(int64_t year, int64_t month) noexcept {
    constexpr int16_t days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    constexpr auto leap_days_until = [](int64_t y) { return y / 4 - y / 100 + y / 400; };
    const int64_t leap_days = leap_days_until(month > 2 ? year : year - 1) - leap_days_until(1969);
    return (year - 1970) * 365 + leap_days + days[month - 1];
}

// Not before 1970.
inline void put_time(Writer *to, int64_t instant_us) noexcept {
    const int64_t seconds = instant_us / us_per_second;
    const int64_t day = seconds / seconds_per_day;
    const int64_t second = seconds % seconds_per_day;
    int64_t year = 1970 + day / 366;
    int64_t month = 1;
    while (days_before(year + 1, 1) <= day)
        year++;
    while (days_before(year, month + 1) <= day)
        month++;
    to->format("%04lld-%02lld-%02lldT%02lld:%02lld:%02lld", year, month, day - days_before(year, month) + 1,
               second / 3600, second / 60 % 60, second % 60);
    if (instant_us % us_per_second != 0)
        to->format(".%06lld", instant_us % us_per_second);
    to->put('Z');
}

inline void put_value(Writer *to, const Definition &definition, const Field &field) noexcept {
    if (is_null(&definition, field)) {
        to->put("null");
    } else if (field.type == FieldType::text) {
        to->put('"');
        for (const char *c = text_in(&definition, field); *c != '\0'; c++) {
            if (*c == '"')
                to->put('"');
            to->put(*c);
        }
        to->put('"');
    } else if (field.type == FieldType::time) {
        put_time(to, number_in(&definition, field));
    } else if (field.choices != nullptr) {
        to->put(field.choices[number_in(&definition, field)]);
    } else {
        to->format("%lld", number_in(&definition, field));
    }
}

// The next two read any text as something. read_value() finds out whether that has this text.
inline int64_t read_time(const char *at) noexcept {
    int64_t parts[7] = {}; // year, month, day, hours, minutes, seconds, microseconds
    for (int64_t &part : parts) {
        char *end = nullptr;
        part = std::clamp<int64_t>(strtoll(at, &end, 10), 0, 999999);
        if (*end == '\0' || *end == 'Z')
            break;
        at = end + 1;
    }
    const int64_t year = std::clamp<int64_t>(parts[0], 1970, 99999);
    const int64_t day = days_before(year, std::clamp<int64_t>(parts[1], 1, 12)) + parts[2] - 1;
    return (((day * 24 + parts[3]) * 60 + parts[4]) * 60 + parts[5]) * us_per_second + parts[6];
}

inline int64_t read_number(const Field &field, const char *at, size_t size) noexcept {
    if (field.type == FieldType::time)
        return read_time(at);
    return field.choices != nullptr ? choice_of(field, at, size) : strtoll(at, nullptr, 10);
}

// Reads a text in quotes to `space`, and moves both on; false if it does not end. Even then `space` has a text.
inline bool read_text(const char **at, char **space) noexcept {
    for (++*at; **at != '\0' && (**at != '"' || (*at)[1] == '"'); ++*at) {
        *at += **at == '"' ? 1 : 0;
        *(*space)++ = **at;
    }
    *(*space)++ = '\0';
    const bool ends = **at == '"';
    *at += ends ? 1 : 0;
    return ends;
}

// Reads the value of a field, and moves behind it; false if it is none. A value has one spelling.
inline bool read_value(Definition *to, const Field &field, const char **at, char **space) noexcept {
    const char *begin = *at;
    const bool is_text = field.type == FieldType::text;
    if (is_text && *begin == '"') {
        field_in<const char *>(to, field) = *space;
        const bool ends = read_text(at, space);
        const bool alone = **at == ' ' || **at == '\0';
        *at += strcspn(*at, " ");
        return ends && alone && fits(*to, field);
    }
    *at += strcspn(*at, " ");
    const auto size = static_cast<size_t>(*at - begin);
    set_null(to, field);
    if (is_text || is_same_text("null", begin, size))
        return field.nullable && is_same_text("null", begin, size);
    set_number(to, field, read_number(field, begin, size));
    if (!fits(*to, field))
        return false;
    char canonical[64] = {};
    Writer writer = {.out = canonical, .size = sizeof(canonical)};
    put_value(&writer, *to, field);
    (void)writer.finish();
    return is_same_text(canonical, begin, size);
}

} // namespace detail

// As snprintf(): returns the length of the text, and writes as much of it as `size` bytes hold, with a NUL at the end.
// The definition must be valid.
inline size_t print_definition(const Definition &definition, char *out, size_t size) noexcept {
    detail::Writer writer = {.out = out, .size = size};
    writer.put(kind_name(definition.kind));
    for (const Field &field : fields_of(definition.kind)) {
        writer.put(' ');
        writer.put(field.name);
        writer.put('=');
        detail::put_value(&writer, definition, field);
    }
    return writer.finish();
}

// The same with one value, which may be out of its bounds.
inline size_t print_value(const Definition &definition, const Field &field, char *out, size_t size) noexcept {
    detail::Writer writer = {.out = out, .size = size};
    if (field.type == FieldType::text || detail::fits(definition, field) || is_null(&definition, field))
        detail::put_value(&writer, definition, field);
    else
        writer.format("%lld", number_in(&definition, field));
    return writer.finish();
}

// The same with what a value may be, as a sentence for a hint.
inline size_t print_allowed(const Field &field, char *out, size_t size) noexcept {
    detail::Writer writer = {.out = out, .size = size};
    if (field.type == FieldType::text)
        writer.format("Use a text in double quotes of %lld to %lld bytes", field.least, field.most);
    else if (field.type == FieldType::time)
        writer.put("Use a finite time from 1970 on, in UTC as in 2026-01-31T23:59:59.999999Z");
    else if (field.choices == nullptr)
        writer.format("Use a number from %lld to %lld", field.least, field.most);
    else
        writer.put("Use one of '");
    for (int64_t i = 0; field.choices != nullptr && i <= field.most; i++) {
        writer.put(field.choices[i]);
        writer.put(i < field.most ? "', '" : "'");
    }
    writer.put(field.nullable ? ", or null." : ".");
    return writer.finish();
}

// `space` holds the texts of the definition, and needs one byte more than the text has.
inline DefinitionFault parse_definition(const char *text, Definition *to, char *space) noexcept {
    const auto fault = [](FaultKind kind, const Field *field, const char *at, const char *end) -> DefinitionFault {
        return {.kind = kind, .field = field, .at = at, .size = static_cast<size_t>(end - at)};
    };
    const char *at = text;
    const char *end = text + strcspn(text, " ");
    *to = {};
    for (uint8_t kind = 1; kind <= static_cast<uint8_t>(DefinitionKind::key); kind++)
        if (is_same_text(definition_kinds[kind], at, static_cast<size_t>(end - at)))
            to->kind = static_cast<DefinitionKind>(kind);
    if (to->kind == DefinitionKind::none)
        return fault(FaultKind::kind, nullptr, at, end);

    const Fields &fields = fields_of(to->kind);
    uint64_t seen = 0; // a bit for each field
    const auto bit = [&fields](const Field *field) { return UINT64_C(1) << (field - fields.begin()); };
    while (*end == ' ') {
        at = end + 1;
        end = at + strcspn(at, " =");
        const Field *field = find_field(fields, at, static_cast<size_t>(end - at));
        if (field == nullptr || *end != '=')
            return fault(FaultKind::unknown, nullptr, at, end);
        if ((seen & bit(field)) != 0)
            return fault(FaultKind::repeated, field, at, end);
        seen |= bit(field);
        at = ++end;
        if (!detail::read_value(to, *field, &end, &space))
            return fault(FaultKind::value, field, at, end);
    }
    for (const Field &field : fields)
        if ((seen & bit(&field)) == 0)
            return fault(FaultKind::missing, &field, at, at);
    return find_fault(*to);
}

} // namespace uidgen::core
