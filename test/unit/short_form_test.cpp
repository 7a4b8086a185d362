// Short forms of ids: vectors of other implementations, round trips, order, and what is refused.
//
// Sources of the vectors:
//   sindresorhus  the readme of npm's package @sindresorhus/base62
//   b62           the description of PyPI's package b62
//   base-x        npm's package base-x 5.0.1 with this alphabet, on the bytes of the number
//   Ulid.Time     the documentation of Ulid.Time.encode/2 (hexdocs.pm/ulid/0.1.0), Crockford's alphabet
//   ulid          npm's package ulid 3.0.2, encodeTime()
//   Crockford     crockford.com/base32.html: what decodes to the same
#include "id_forms.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

using namespace uidgen::core;

namespace {

std::string in_base62(int64_t id) {
    std::string text(base62.width, '?');
    write_number(base62, id, text.data());
    return text;
}
std::string in_base32(int64_t id) {
    std::string text(base32.width, '?');
    write_number(base32, id, text.data());
    return text;
}

ReadShort of_base62(std::string_view text) { return read_number(base62, text.data(), text.size()); }
ReadShort of_base32(std::string_view text) { return read_number(base32, text.data(), text.size()); }

void expect_id(const ReadShort &read, int64_t id) {
    EXPECT_EQ(read.fault, ShortFault::none) << "for " << id;
    EXPECT_EQ(read.id, id);
}
void expect_fault(const ReadShort &read, ShortFault fault, size_t at) {
    EXPECT_EQ(read.fault, fault);
    EXPECT_EQ(read.at, at);
    EXPECT_EQ(read.id, 0);
}

struct Vector {
    int64_t id;
    const char *text;
};

TEST(ShortForm, Base62IsThatOfOthers) {
    constexpr Vector vectors[] = {
        {1337, "000000000LZ"},                // sindresorhus: LZ
        {123456789, "0000008M0kX"},           // b62: 8M0kX
        {34441886726, "00000base62"},         // base-x
        {117443343637549056, "08ftHvL5CKm"},  // base-x
        {1541815603606036480, "1ptWyK4WgZU"}, // base-x
        {INT64_MAX - 1, "AzL8n0Y58m6"},       // base-x
        {INT64_MAX, "AzL8n0Y58m7"},           // base-x
    };
    for (const Vector &v : vectors) {
        EXPECT_EQ(in_base62(v.id), v.text);
        expect_id(of_base62(v.text), v.id);
    }
}

TEST(ShortForm, Base32IsThatOfOthers) {
    constexpr Vector vectors[] = {
        {1337, "000000000019S"},          // ulid: 000000019S
        {34441886726, "00000102EAZ06"},   // ulid: 00102EAZ06
        {1469918176385, "00001ARYZ6S41"}, // Ulid.Time and ulid: 01ARYZ6S41
        {1470264322240, "00001AS99AA60"}, // Ulid.Time: 0001AS99AA60
    };
    for (const Vector &v : vectors) {
        EXPECT_EQ(in_base32(v.id), v.text);
        expect_id(of_base32(v.text), v.id);
    }
    EXPECT_EQ(in_base32(INT64_MAX), "7ZZZZZZZZZZZZ"); // 3 bits and 12 times 5
}

// The ends, the powers of each base and their neighbours, and a hundred thousand ids of every length in bits.
template <typename Check> void for_many_ids(Check check) {
    check(0);
    for (const int64_t base : {2, 32, 62, 64})
        for (int64_t power = base; power <= INT64_MAX / base; power *= base)
            for (const int64_t id : {power - 1, power, power + 1})
                check(id);
    check(INT64_MAX);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; i++)
        check(static_cast<int64_t>(random() >> (1 + i % 63)));
}

TEST(ShortForm, ReadsWhatItWrites) {
    for_many_ids([](int64_t id) {
        expect_id(of_base62(in_base62(id)), id);
        expect_id(of_base32(in_base32(id)), id);
    });
}

TEST(ShortForm, TextsSortAsIdsDo) {
    int64_t other = 0;
    for_many_ids([&other](int64_t id) {
        EXPECT_EQ(in_base62(other) < in_base62(id), other < id);
        EXPECT_EQ(in_base32(other) < in_base32(id), other < id);
        other = id;
    });
}

TEST(ShortForm, EveryByteIsADigitOrRefused) {
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'1', static_cast<char>(byte), '1'};
        const std::string_view view(text, sizeof text);
        const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        const bool digit = byte >= '0' && byte <= '9';
        const auto expect_taken = [](const ReadShort &read, bool taken) {
            EXPECT_EQ(read.fault, taken ? ShortFault::none : ShortFault::foreign);
            EXPECT_EQ(read.at, taken ? 0U : 1U);
        };
        expect_taken(of_base62(view), letter || digit);
        expect_taken(of_base32(view), (letter || digit || byte == '-') && byte != 'U' && byte != 'u');
    }
}

TEST(ShortForm, Base32ReadsAsCrockfordDefines) {
    expect_id(of_base32("7zzzzzzzzzzzz"), INT64_MAX);
    expect_id(of_base32("00001aryz6s41"), 1469918176385);
    for (const char *one : {"1", "I", "i", "L", "l"})
        expect_id(of_base32(one), 1);
    for (const char *zero : {"0", "O", "o"})
        expect_id(of_base32(zero), 0);
    expect_id(of_base32("0000-1ARY-Z6S41"), 1469918176385);
    expect_id(of_base32("-1-"), 1);
    for (const char *check_symbol : {"1*", "1~", "1$", "1=", "1U", "1u"})
        expect_fault(of_base32(check_symbol), ShortFault::foreign, 1);
}

TEST(ShortForm, LeadingZerosDoNotMatter) {
    expect_id(of_base62("LZ"), 1337);
    expect_id(of_base62(std::string(1000, '0') + "LZ"), 1337);
    expect_id(of_base32("19S"), 1337);
    expect_id(of_base32(std::string(1000, '0') + "19S"), 1337);
}

TEST(ShortForm, NothingBeyondTheLargestId) {
    expect_fault(of_base62("AzL8n0Y58m8"), ShortFault::too_large, 10);
    expect_fault(of_base62("zzzzzzzzzzz"), ShortFault::too_large, 10);
    expect_fault(of_base62("AzL8n0Y58m70"), ShortFault::too_large, 11);
    expect_fault(of_base32("8000000000000"), ShortFault::too_large, 12);
    expect_fault(of_base32("7ZZZZZZZZZZZZ0"), ShortFault::too_large, 13);
    expect_fault(of_base62("AzL8n0Y58m8!"), ShortFault::too_large, 10); // the first fault counts
}

TEST(ShortForm, EmptyTextsAreRefused) {
    expect_fault(of_base62(""), ShortFault::empty, 0);
    expect_fault(of_base32(""), ShortFault::empty, 0);
    expect_fault(of_base32("--"), ShortFault::empty, 2);
}

} // namespace
