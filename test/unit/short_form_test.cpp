// Short forms of ids: vectors of other implementations, round trips, order, and what is refused.
//
// Sources of the vectors:
//   sindresorhus  the readme of npm's package @sindresorhus/base62
//   b62           the description of PyPI's package b62
//   base-x        npm's package base-x 5.0.1 with this alphabet, on the bytes of the number
#include "id_forms.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

using namespace uidgen::core;

namespace {

std::string in_base62(int64_t id) {
    std::string text(short_form_width, '?');
    write_short_form(id, text.data());
    return text;
}

int64_t of_base62(std::string_view text) { return read_short_form(text.data(), text.size()); }

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
        EXPECT_EQ(of_base62(v.text), v.id);
    }
}

// The ends, the powers of each base and their neighbours, and a hundred thousand ids of every length in bits.
template <typename Check> void for_many_ids(Check check) {
    check(0);
    for (const int64_t base : {2, 62, 64})
        for (int64_t power = base; power <= INT64_MAX / base; power *= base)
            for (const int64_t id : {power - 1, power, power + 1})
                check(id);
    check(INT64_MAX);
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; i++)
        check(static_cast<int64_t>(random() >> (1 + i % 63)));
}

TEST(ShortForm, ReadsWhatItWrites) {
    for_many_ids([](int64_t id) { EXPECT_EQ(of_base62(in_base62(id)), id); });
}

TEST(ShortForm, TextsSortAsIdsDo) {
    int64_t other = 0;
    for_many_ids([&other](int64_t id) {
        EXPECT_EQ(in_base62(other) < in_base62(id), other < id);
        other = id;
    });
}

TEST(ShortForm, EveryByteIsADigitOrRefused) {
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'1', static_cast<char>(byte), '1'};
        const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        const bool taken = letter || (byte >= '0' && byte <= '9');
        EXPECT_EQ(of_base62(std::string_view(text, sizeof text)) != no_id, taken);
    }
}

TEST(ShortForm, LeadingZerosDoNotMatter) {
    EXPECT_EQ(of_base62("LZ"), 1337);
    EXPECT_EQ(of_base62(std::string(1000, '0') + "LZ"), 1337);
}

TEST(ShortForm, NothingBeyondTheLargestId) {
    EXPECT_EQ(of_base62("AzL8n0Y58m8"), no_id);
    EXPECT_EQ(of_base62("zzzzzzzzzzz"), no_id);
    EXPECT_EQ(of_base62("AzL8n0Y58m70"), no_id);
    EXPECT_EQ(of_base62("AzL8n0Y58m8!"), no_id);
}

TEST(ShortForm, EmptyTextsAreRefused) { EXPECT_EQ(of_base62(""), no_id); }

} // namespace
