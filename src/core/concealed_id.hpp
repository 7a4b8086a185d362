// What a concealed id is made of: the version of its key, if the key has bits for it, above an id that FF1 permutes.
//
//   1. An id is a text of id_bits() binary digits, the most significant first. So it is FF1's text of radix 2, without
//      any conversion.
//   2. FF1 is a permutation, and the version is above its bits. So no two ids have the same concealed id, even with two
//      versions. A key without version bits has one version.
//   3. Without version bits each value from 0 to largest_value() is a concealed id.
#pragma once

#include "ff1.hpp"
#include "layout.hpp"

namespace uidgen::core {

struct KeyFormat {
    int32_t width;        // bits of a concealed id, with the version
    int32_t version_bits; // so there are 2^version_bits versions at most
};

constexpr int32_t least_id_bits = 20; // FF1 needs a million values or more
constexpr int32_t most_version_bits = 10;
constexpr int32_t most_key_bits = 63;

constexpr bool is_valid(const KeyFormat &format) noexcept {
    return format.version_bits >= 0 && format.version_bits <= most_version_bits &&
           format.width >= least_id_bits + format.version_bits && format.width <= most_key_bits;
}

constexpr int32_t id_bits(const KeyFormat &format) noexcept { return format.width - format.version_bits; }

constexpr int64_t largest_id(const KeyFormat &format) noexcept { return largest(id_bits(format)); }
constexpr int64_t largest_value(const KeyFormat &format) noexcept { return largest(format.width); }

constexpr int32_t most_versions(const KeyFormat &format) noexcept { return 1 << format.version_bits; }

// Versions count from 1.
constexpr int32_t version_in(const KeyFormat &format, int64_t value) noexcept {
    return static_cast<int32_t>(value >> id_bits(format)) + 1;
}

constexpr int64_t version_part(const KeyFormat &format, int32_t version) noexcept {
    return static_cast<int64_t>(version - 1) << id_bits(format);
}

// The permutation of the ids of a format. Each version has a key of its own, so the tweak is empty.
template <typename Cipher> Ff1 permutation_of(const KeyFormat &format, const Cipher &cipher) {
    return Ff1(2, id_bits(format), nullptr, 0, cipher);
}

constexpr int32_t right_bits(const KeyFormat &format) noexcept { return id_bits(format) - id_bits(format) / 2; }

constexpr Halves halves_of(const KeyFormat &format, int64_t id) noexcept {
    return {static_cast<uint64_t>(id) >> right_bits(format), static_cast<uint64_t>(id & largest(right_bits(format)))};
}

constexpr int64_t joined(const KeyFormat &format, const Halves &halves) noexcept {
    return static_cast<int64_t>(halves.left << right_bits(format) | halves.right);
}

// 0 <= id <= largest_id().
template <typename Cipher>
int64_t conceal(const KeyFormat &format, const Ff1 &permutation, int32_t version, int64_t id, const Cipher &cipher) {
    return version_part(format, version) | joined(format, permutation.encrypt(halves_of(format, id), cipher));
}

// 0 <= value <= largest_value(), and of the version that the permutation belongs to.
template <typename Cipher>
int64_t reveal(const KeyFormat &format, const Ff1 &permutation, int64_t value, const Cipher &cipher) {
    const int64_t permuted = value & largest_id(format);
    return joined(format, permutation.decrypt(halves_of(format, permuted), cipher));
}

} // namespace uidgen::core
