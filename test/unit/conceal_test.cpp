// FF1 by NIST's samples, and concealed ids: a permutation at each width, with the key's version above it.

#include "concealed_id.hpp"
#include "node.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace uidgen::core {
namespace {

std::vector<uint8_t> bytes_of_hex(const std::string &hex) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

// AES with a key of 16, 24 or 32 bytes.
class Aes {
  public:
    explicit Aes(const std::vector<uint8_t> &key) {
        const EVP_CIPHER *cipher = key.size() == 16   ? EVP_aes_128_ecb()
                                   : key.size() == 24 ? EVP_aes_192_ecb()
                                                      : EVP_aes_256_ecb();
        EXPECT_EQ(EVP_EncryptInit_ex(context_.get(), cipher, nullptr, key.data(), nullptr), 1);
    }
    CipherBlock operator()(const CipherBlock &text) const {
        CipherBlock result = {};
        int length = 0;
        EXPECT_EQ(EVP_EncryptUpdate(context_.get(), result.bytes, &length, text.bytes, sizeof(text.bytes)), 1);
        return result;
    }

  private:
    std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_{EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free};
};

uint64_t number_of(const std::string &digits, uint32_t radix) {
    uint64_t number = 0;
    for (const char digit : digits)
        number = number * radix + static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    return number;
}

Halves halves_of_text(const std::string &text, uint32_t radix) {
    return {number_of(text.substr(0, text.size() / 2), radix), number_of(text.substr(text.size() / 2), radix)};
}

// csrc.nist.gov: Cryptographic Standards and Guidelines, Examples with Intermediate Values, FF1samples.
TEST(Ff1, SamplesOfTheStandard) {
    const std::string key = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94"; // or its beginning
    const std::string decimal = "39383736353433323130";
    const std::string letters = "3737373770717273373737";
    const struct {
        size_t key_bytes;
        uint32_t radix;
        std::string tweak, text, encrypted;
    } samples[] = {
        {16, 10, "", "0123456789", "2433477484"},
        {16, 10, decimal, "0123456789", "6124200773"},
        {16, 36, letters, "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
        {24, 10, "", "0123456789", "2830668132"},
        {24, 10, decimal, "0123456789", "2496655549"},
        {24, 36, letters, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"},
        {32, 10, "", "0123456789", "6657667009"},
        {32, 10, decimal, "0123456789", "1001623463"},
        {32, 36, letters, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
    };
    for (const auto &sample : samples) {
        const Aes aes(bytes_of_hex(key.substr(0, 2 * sample.key_bytes)));
        const std::vector<uint8_t> tweak = bytes_of_hex(sample.tweak);
        const Ff1 ff1(sample.radix, static_cast<int32_t>(sample.text.size()), tweak.data(),
                      static_cast<uint32_t>(tweak.size()), std::cref(aes));
        const Halves text = halves_of_text(sample.text, sample.radix);
        const Halves encrypted = ff1.encrypt(text);
        const Halves expected = halves_of_text(sample.encrypted, sample.radix);
        EXPECT_EQ(encrypted.left, expected.left) << sample.encrypted;
        EXPECT_EQ(encrypted.right, expected.right) << sample.encrypted;
        const Halves decrypted = ff1.decrypt(encrypted);
        EXPECT_EQ(decrypted.left, text.left) << sample.encrypted;
        EXPECT_EQ(decrypted.right, text.right) << sample.encrypted;
    }
}

// The key 00 01 02 ... 1f.
auto test_aes() {
    static const Aes aes(bytes_of_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    return std::cref(aes);
}

struct Concealer {
    explicit Concealer(const KeyFormat &of) : format(of), permutation(permutation_of(of, test_aes())) {}
    int64_t conceal(int64_t id, int32_t version = 1) const { return core::conceal(format, permutation, version, id); }
    int64_t reveal(int64_t value) const { return core::reveal(format, permutation, value); }

    KeyFormat format;
    Ff1<std::reference_wrapper<const Aes>> permutation;
};

// Computed with another implementation: FF1 of the npm package @noble/ciphers 2.4.0, with radix 2, the test key and an
// empty tweak, on the binary digits of the id.
TEST(ConcealedId, AnotherImplementationAgrees) {
    const struct {
        int32_t width;
        int64_t id, value;
    } samples[] = {
        {20, 0, 612523},
        {20, 1048575, 219662},
        {21, 0, 1091},
        {21, 2097151, 864269},
        {31, 0, 793364489},
        {31, 1254100992, 1900241819},
        {32, 0, 2647869729},
        {32, 4294967295, 1347965438},
        {33, 1, 6871711376},
        {33, 8589934591, 2238141452},
        {48, 0, 233335058339979},
        {48, 281474976710655, 35570191333174},
        {49, 1, 461907358658819},
        {49, 562949953421311, 394610108561601},
        {53, 0, 5648127791841061},
        {53, 9007199254740991, 8329227744706873},
        {60, 117443343637549056, 280591259114866656},
        {63, 0, 8644528584386371073},
        {63, 117443343637549056, 7655288325273801517},
        {63, 9223372036854775807, 4244600280903827775},
    };
    for (const auto &sample : samples) {
        const Concealer key({sample.width, 0});
        EXPECT_EQ(key.conceal(sample.id), sample.value) << sample.width;
        EXPECT_EQ(key.reveal(sample.value), sample.id) << sample.width;
    }
}

// Any function will do as the cipher (ff1.hpp, 1), so this one is fast.
TEST(ConcealedId, IsAPermutationOfAllIdsOfTwentyBits) {
    const auto cipher = [](const CipherBlock &block) {
        CipherBlock result = {};
        uint64_t words[2];
        std::memcpy(words, block.bytes, sizeof(words));
        words[0] = mix(words[0] + 3 * mix(words[1] + 1));
        std::memcpy(result.bytes, words, sizeof(words));
        return result;
    };
    const KeyFormat format = {20, 0};
    const auto permutation = permutation_of(format, cipher);
    std::vector<bool> seen(size_t(1) << 20);
    for (int64_t id = 0; id <= largest_id(format); id++) {
        const int64_t value = conceal(format, permutation, 1, id);
        ASSERT_GE(value, 0);
        ASSERT_LE(value, largest_value(format, 1));
        ASSERT_FALSE(seen[static_cast<size_t>(value)]) << id;
        seen[static_cast<size_t>(value)] = true;
        ASSERT_EQ(reveal(format, permutation, value), id);
    }
}

TEST(ConcealedId, IsRevealedAtEachWidth) {
    std::mt19937_64 random(7);
    for (int32_t width = 20; width <= 63; width++)
        for (int32_t version_bits = 0; version_bits <= 10 && width - version_bits >= 20; version_bits++) {
            const Concealer key({width, version_bits});
            const int64_t most = largest_id(key.format);
            for (const int64_t id : {INT64_C(0), most, static_cast<int64_t>(random() & static_cast<uint64_t>(most))})
                for (const int32_t version : {1, 1 << version_bits}) {
                    const int64_t value = key.conceal(id, version);
                    ASSERT_GE(value, 0);
                    ASSERT_LE(value, largest_value(key.format, version));
                    ASSERT_EQ(version_in(key.format, value), version);
                    ASSERT_EQ(key.reveal(value), id) << width << " " << version_bits;
                }
        }
}

} // namespace
} // namespace uidgen::core
