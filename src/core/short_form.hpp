// Short texts for ids 0 .. 2^63 - 1, to and from: base62 and Crockford's base32.
//
//   form   | characters | digits
//   base62 | 11         | 0-9 A-Z a-z
//   base32 | 13         | 0-9 A-Z without I L O U
//
// Both sort as the ids do, byte by byte, because the digits are in the order of ASCII.
//
// base62 and base32 are numbers, the most significant digit first, and always written with all their digits. Reading
// takes any number of leading zeros, also none. base32 reads as Douglas Crockford defines it
// (crockford.com/base32.html): small letters as capitals, I and L as 1, O as 0, and it ignores hyphens. His check
// symbol is not read.
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
    size_t at;  // the byte that shows the fault; with `empty` the end of the text
    int64_t id; // 0 when there is a fault
};

// What a byte stands for: 0 .. base - 1, or one of these.
constexpr int8_t not_a_digit = -1;
constexpr int8_t ignored = -2;

struct Alphabet {
    char digits[65];
    uint32_t base;
    size_t width; // digits of 2^63 - 1
    int8_t values[256];

    constexpr Alphabet(const char *of_digits, size_t of_width) noexcept : digits{}, base{0}, width{of_width}, values{} {
        for (int8_t &value : values)
            value = not_a_digit;
        for (; of_digits[base] != '\0'; base++) {
            digits[base] = of_digits[base];
            values[static_cast<uint8_t>(of_digits[base])] = static_cast<int8_t>(base);
        }
    }
};

constexpr Alphabet base62{"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11};
constexpr Alphabet base32 = [] {
    Alphabet a{"0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13};
    for (char letter = 'A'; letter <= 'Z'; letter++) {
        const char *look_alike = letter == 'I' || letter == 'L' ? "1" : letter == 'O' ? "0" : nullptr;
        if (look_alike != nullptr)
            a.values[static_cast<uint8_t>(letter)] = a.values[static_cast<uint8_t>(*look_alike)];
        a.values[static_cast<uint8_t>(letter - 'A' + 'a')] = a.values[static_cast<uint8_t>(letter)];
    }
    a.values[static_cast<uint8_t>('-')] = ignored;
    return a;
}();

constexpr size_t longest_short_form = 13;

// Writes a.width digits. The id must not be negative.
constexpr void write_number(const Alphabet &a, int64_t id, char *text) noexcept {
    auto rest = static_cast<uint64_t>(id);
    for (size_t i = a.width; i-- > 0; rest /= a.base)
        text[i] = a.digits[rest % a.base];
}

constexpr ReadShort read_number(const Alphabet &a, const char *text, size_t length) noexcept {
    int64_t id = 0;
    bool any = false;
    for (size_t i = 0; i < length; i++) {
        const int8_t digit = a.values[static_cast<uint8_t>(text[i])];
        if (digit == ignored)
            continue;
        if (digit == not_a_digit)
            return {ShortFault::foreign, i, 0};
        if (__builtin_mul_overflow(id, static_cast<int64_t>(a.base), &id) || __builtin_add_overflow(id, digit, &id))
            return {ShortFault::too_large, i, 0};
        any = true;
    }
    if (!any)
        return {ShortFault::empty, length, 0};
    return {ShortFault::none, 0, id};
}

} // namespace uidgen::core
