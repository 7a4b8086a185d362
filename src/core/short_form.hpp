// Short texts for ids 0 .. 2^63 - 1, to and from: numbers of base 62, the most significant digit first.
//
// They are written with all of their 11 digits, 0-9 A-Z a-z. So they sort as the ids do, byte by byte: the digits are
// in the order of ASCII. Reading takes any number of leading zeros, even none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uidgen::core {

enum class ShortFault : uint8_t {
    none,
    empty,     // no digit
    foreign,   // a character that is not a digit
    too_large, // beyond 2^63 - 1
};

struct ReadShort {
    ShortFault fault;
    size_t at;  // the byte that shows the fault
    int64_t id; // 0 when there is a fault
};

constexpr int64_t short_form_base = 62;
constexpr size_t short_form_width = 11; // digits of 2^63 - 1

constexpr char short_form_digit(uint64_t value) noexcept {
    return "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[value];
}

// What a byte stands for, or -1 if it is no digit.
constexpr int64_t short_form_value(char byte) noexcept {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A' + 10;
    return byte >= 'a' && byte <= 'z' ? byte - 'a' + 36 : -1;
}

// Writes all digits. The id must not be negative.
constexpr void write_short_form(int64_t id, char *text) noexcept {
    for (size_t i = short_form_width; i-- > 0; id /= short_form_base)
        text[i] = short_form_digit(static_cast<uint64_t>(id % short_form_base));
}

constexpr ReadShort read_short_form(const char *text, size_t length) noexcept {
    int64_t id = 0;
    for (size_t i = 0; i < length; i++) {
        const int64_t digit = short_form_value(text[i]);
        if (digit < 0)
            return {ShortFault::foreign, i, 0};
        if (__builtin_mul_overflow(id, short_form_base, &id) || __builtin_add_overflow(id, digit, &id))
            return {ShortFault::too_large, i, 0};
    }
    return {length == 0 ? ShortFault::empty : ShortFault::none, 0, id};
}

} // namespace uidgen::core
