// FF1, the format-preserving encryption of NIST SP 800-38G (2016) and of its Revision 1 (second public draft, 2025): a
// permutation of the texts of `length` digits in a radix, chosen by the key of a block cipher and by a tweak.
//
//   1. It is a Feistel network of ten rounds. A round adds a pseudorandom number of one half to the other half, modulo
//      the number of values that half can have. So each round, and the whole, can be undone with the same numbers,
//      whatever the cipher does.
//   2. The pseudorandom number is a CBC-MAC under AES. Its input begins with a block that depends on the format only,
//      and with the tweak. The constructor computes that part once for a key.
//   3. A cipher maps a block of 16 bytes to another one, always in the same way. It may raise an error (longjmp), as
//      that of src/pg does.
//   4. Halves are numbers, so they must be below 2^56. That is enough for all formats of this library, and for the
//      samples that NIST has published.
//
// The names of the standard are in brackets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.hpp"

namespace uidgen::core {

struct CipherBlock {
    uint8_t bytes[16];
};

// A text as two numbers: of its first length / 2 digits [A], and of the others [B].
struct Halves {
    uint64_t left;
    uint64_t right;
};

constexpr uint64_t power(uint64_t base, int32_t exponent) noexcept {
    uint64_t result = 1;
    for (int32_t i = 0; i < exponent; i++)
        result *= base;
    return result;
}

template <typename Cipher> class Ff1 {
  public:
    Ff1() = default;

    Ff1(uint32_t radix, int32_t length, const uint8_t *tweak, uint32_t tweak_length, const Cipher &cipher)
        : cipher_(cipher), left_values_(power(radix, length / 2)), right_values_(power(radix, length - length / 2)),
          half_bytes_(bytes_below(right_values_)) {
        absorb(&common_, 0x010201, 3);
        absorb(&common_, radix, 3);
        absorb(&common_, rounds, 1);
        absorb(&common_, static_cast<uint32_t>(length / 2), 1);
        absorb(&common_, static_cast<uint32_t>(length), 4);
        absorb(&common_, tweak_length, 4);
        for (uint32_t i = 0; i < tweak_length; i++)
            absorb(&common_, tweak[i], 1);
        // So that the round's number and the half end a block.
        while ((common_.filled + 1 + half_bytes_) % block_size != 0)
            absorb(&common_, 0, 1);
    }

    Halves encrypt(Halves text) const {
        for (int32_t round = 0; round < rounds; round++)
            text = {text.right, (text.left + pseudorandom(round, text.right)) % values_in(round)};
        return text;
    }

    Halves decrypt(Halves text) const {
        for (int32_t round = rounds - 1; round >= 0; round--) {
            const uint64_t values = values_in(round);
            text = {(text.right + values - pseudorandom(round, text.left)) % values, text.left};
        }
        return text;
    }

  private:
    static constexpr int32_t rounds = 10;
    static constexpr int32_t block_size = 16;

    // A CBC-MAC of the bytes so far [the PRF].
    struct Mac {
        CipherBlock state;
        int32_t filled; // bytes of the block that is not full yet
    };

    // [b]: how many bytes hold each number below `values`.
    static constexpr int32_t bytes_below(uint64_t values) noexcept {
        int32_t bytes = 0;
        for (uint64_t largest = values - 1; largest > 0; largest >>= 8)
            bytes++;
        return bytes;
    }

    // The last bytes of a number, the most significant one first.
    void absorb(Mac *mac, uint64_t number, int32_t bytes) const {
        for (int32_t i = bytes - 1; i >= 0; i--) {
            mac->state.bytes[mac->filled++] ^= static_cast<uint8_t>(number >> (8 * i));
            if (mac->filled == block_size)
                *mac = {cipher_(mac->state), 0};
        }
    }

    // [radix^m]: the number of values of the half that a round changes. The halves change places with each round.
    uint64_t values_in(int32_t round) const { return round % 2 == 0 ? left_values_ : right_values_; }

    // [y mod radix^m]. The MAC's first bytes [d] are four more than a half needs, so the remainder is nearly uniform.
    uint64_t pseudorandom(int32_t round, uint64_t half) const {
        Mac mac = common_;
        absorb(&mac, static_cast<uint32_t>(round), 1);
        absorb(&mac, half, half_bytes_);
        const int32_t bytes = (half_bytes_ + 3) / 4 * 4 + 4;
        unsigned __int128 number = 0;
        for (int32_t i = 0; i < bytes; i++)
            number = number << 8 | mac.state.bytes[i];
        return static_cast<uint64_t>(number % values_in(round));
    }

    Cipher cipher_ = {};
    uint64_t left_values_ = 0;  // [radix^u]
    uint64_t right_values_ = 0; // [radix^v]
    int32_t half_bytes_ = 0;    // [b]
    Mac common_ = {};           // what all rounds have in common: [P], the tweak and zeros
};

// ---------------------------------------------------------------------------------------------------------
// What a concealed id is made of: the version of its key, if the key has bits for it, above an id that FF1 permutes.
//
//   1. An id is a text of id_bits() binary digits, the most significant first. So it is FF1's text of radix 2, without
//      any conversion.
//   2. FF1 is a permutation, and the version is above its bits. So no two ids have the same concealed id, even with two
//      versions. A key without version bits has one version.
//   3. Without version bits each value from 0 to largest_id() is a concealed id.
// ---------------------------------------------------------------------------------------------------------

struct KeyFormat {
    int32_t width;        // bits of a concealed id, with the version
    int32_t version_bits; // so there are 2^version_bits versions at most
};

constexpr int32_t id_bits(const KeyFormat &format) noexcept { return format.width - format.version_bits; }

// As the trigger of uid_key says. FF1 needs a million values or more.
constexpr bool format_is_valid(const KeyFormat &format, int32_t versions) noexcept {
    return format.version_bits >= 0 && format.version_bits <= 10 && format.width <= 63 && id_bits(format) >= 20 &&
           versions >= 1 && versions <= 1 << format.version_bits;
}

// Versions count from 1.
constexpr int32_t version_in(const KeyFormat &format, int64_t value) noexcept {
    return static_cast<int32_t>(value >> id_bits(format)) + 1;
}

constexpr int64_t version_part(const KeyFormat &format, int32_t version) noexcept {
    return static_cast<int64_t>(version - 1) << id_bits(format);
}

constexpr int64_t largest_id(const KeyFormat &format) noexcept { return largest(id_bits(format)); }

// With so many versions.
constexpr int64_t largest_value(const KeyFormat &format, int32_t versions) noexcept {
    return version_part(format, versions) | largest_id(format);
}

// The permutation of the ids of a format. Each version has a key of its own, so the tweak is empty.
template <typename Cipher> Ff1<Cipher> permutation_of(const KeyFormat &format, const Cipher &cipher) {
    return {2, id_bits(format), nullptr, 0, cipher};
}

// The digits of an id after permute(Halves).
template <typename Permute> int64_t permuted(const KeyFormat &format, int64_t id, Permute permute) {
    const int32_t right_bits = id_bits(format) - id_bits(format) / 2;
    const Halves halves =
        permute(Halves{static_cast<uint64_t>(id) >> right_bits, static_cast<uint64_t>(id & largest(right_bits))});
    return static_cast<int64_t>(halves.left << right_bits | halves.right);
}

// 0 <= id <= largest_id().
template <typename Cipher>
int64_t conceal(const KeyFormat &format, const Ff1<Cipher> &permutation, int32_t version, int64_t id) {
    return version_part(format, version) |
           permuted(format, id, [&](Halves halves) { return permutation.encrypt(halves); });
}

// 0 <= value <= largest_value(), and of the version that the permutation belongs to.
template <typename Cipher> int64_t reveal(const KeyFormat &format, const Ff1<Cipher> &permutation, int64_t value) {
    return permuted(format, value & largest_id(format), [&](Halves halves) { return permutation.decrypt(halves); });
}

} // namespace uidgen::core
