// Short texts for ids 0 .. 2^63 - 1, to and from: base62, Crockford's base32, and 11 characters of base64url.
//
//   form      | characters | digits                           | sorts as the ids do, byte by byte
//   base62    | 11         | 0-9 A-Z a-z                      | yes: the digits are in the order of ASCII
//   base32    | 13         | 0-9 A-Z without I L O U          | yes
//   base64url | 11         | A-Z a-z 0-9 - _ (RFC 4648, 5)    | no: the alphabet is not in the order of ASCII
//
// base62 and base32 are numbers, the most significant digit first, and always written with all their digits. Reading
// takes any number of leading zeros, also none. base32 reads as Douglas Crockford defines it
// (crockford.com/base32.html): small letters as capitals, I and L as 1, O as 0, and it ignores hyphens. His check
// symbol is not read. base64url is the eight bytes of the id, big-endian and without padding. So it is always 11
// characters, the last two of their 66 bits are 0, and one id has one text.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uidgen::core {

enum class ShortFault : uint8_t {
    none,
    empty,      // no digit
    foreign,    // a character that is not a digit
    too_large,  // beyond 2^63 - 1
    wrong_size, // base64url: not 11 characters
    loose_bits, // base64url: a bit below the eight bytes is set
};

struct ReadShort {
    ShortFault fault;
    size_t at;  // the byte that shows the fault; with `wrong_size` and `empty` the end of the text
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
constexpr Alphabet base64url{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 11};
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

// The last digit of base64url has the lowest four bits of the id, above two that are 0.
constexpr int32_t bits_in_last = 4;
constexpr int32_t loose_bits = 2;

constexpr void write_bytes(int64_t id, char *text) noexcept {
    const size_t last = base64url.width - 1;
    auto rest = static_cast<uint64_t>(id) >> bits_in_last;
    text[last] = base64url.digits[(id & ((1 << bits_in_last) - 1)) << loose_bits];
    for (size_t i = last; i-- > 0; rest /= base64url.base)
        text[i] = base64url.digits[rest % base64url.base];
}

constexpr ReadShort read_bytes(const char *text, size_t length) noexcept {
    uint64_t bits = 0; // of the digits so far
    for (size_t i = 0; i < length; i++) {
        const int8_t digit = base64url.values[static_cast<uint8_t>(text[i])];
        if (digit == not_a_digit)
            return {ShortFault::foreign, i, 0};
        if (i == 0 && static_cast<uint32_t>(digit) >= base64url.base / 2)
            return {ShortFault::too_large, i, 0};
        if (i == base64url.width)
            return {ShortFault::wrong_size, i, 0};
        if (i == base64url.width - 1 && (digit & ((1 << loose_bits) - 1)) != 0)
            return {ShortFault::loose_bits, i, 0};
        bits = i == base64url.width - 1 ? bits << bits_in_last | static_cast<uint64_t>(digit) >> loose_bits
                                        : bits * base64url.base + static_cast<uint64_t>(digit);
    }
    if (length == 0)
        return {ShortFault::empty, length, 0};
    if (length < base64url.width)
        return {ShortFault::wrong_size, length, 0};
    return {ShortFault::none, 0, static_cast<int64_t>(bits)};
}

} // namespace uidgen::core
