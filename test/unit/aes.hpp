// AES (FIPS 197) for tests, written for clarity and not for speed or secrecy: it computes its table, and takes keys of
// 16, 24 or 32 bytes. The library itself encrypts with OpenSSL (src/pg/sql/conceal.cpp).
#pragma once

#include "concealed_id.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace uidgen::core {

inline std::vector<uint8_t> bytes_of_hex(const std::string &hex) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<uint8_t>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16)));
    return bytes;
}

class Aes {
  public:
    explicit Aes(const std::vector<uint8_t> &key) {
        const size_t key_words = key.size() / 4;
        rounds_ = key_words + 6;
        for (size_t i = 0; i < key.size(); i++)
            schedule_.push_back(key[i]);
        uint8_t constant = 1;
        for (size_t word = key_words; word < 4 * (rounds_ + 1); word++) {
            std::array<uint8_t, 4> t = {};
            for (size_t i = 0; i < 4; i++)
                t[i] = schedule_[4 * (word - 1) + i];
            if (word % key_words == 0) {
                t = {substitute(t[1]), substitute(t[2]), substitute(t[3]), substitute(t[0])};
                t[0] = static_cast<uint8_t>(t[0] ^ constant);
                constant = times(constant, 2);
            } else if (key_words > 6 && word % key_words == 4) {
                for (uint8_t &byte : t)
                    byte = substitute(byte);
            }
            for (size_t i = 0; i < 4; i++)
                schedule_.push_back(static_cast<uint8_t>(schedule_[4 * (word - key_words) + i] ^ t[i]));
        }
    }

    Block operator()(const Block &text) const {
        Block state = text;
        add_key(&state, 0);
        for (size_t round = 1; round <= rounds_; round++) {
            Block shifted = {};
            for (int i = 0; i < 16; i++) // byte i is in row i % 4, which is turned by as many columns
                shifted.bytes[i] = substitute(state.bytes[(i + 4 * (i % 4)) % 16]);
            state = round == rounds_ ? shifted : mixed(shifted);
            add_key(&state, round);
        }
        return state;
    }

  private:
    // Products in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
    static uint8_t times(uint8_t a, uint8_t b) {
        unsigned product = 0;
        for (unsigned x = a; b != 0; b = static_cast<uint8_t>(b >> 1)) {
            if ((b & 1) != 0)
                product ^= x;
            x = x << 1 ^ ((x & 0x80) != 0 ? 0x11b : 0);
        }
        return static_cast<uint8_t>(product);
    }

    // The S-box: the inverse in that field, then an affine map of its bits.
    static std::array<uint8_t, 256> make_box() {
        std::array<uint8_t, 256> box = {};
        for (unsigned value = 0; value < 256; value++) {
            unsigned inverse = 0;
            for (unsigned other = 1; other < 256 && inverse == 0; other++)
                if (times(static_cast<uint8_t>(value), static_cast<uint8_t>(other)) == 1)
                    inverse = other;
            unsigned mapped = 0x63;
            for (unsigned turn = 0; turn < 5; turn++)
                mapped ^= (inverse << turn | inverse >> (8 - turn)) & 0xff;
            box[value] = static_cast<uint8_t>(mapped);
        }
        return box;
    }

    static uint8_t substitute(uint8_t value) {
        static const std::array<uint8_t, 256> box = make_box();
        return box[value];
    }

    static Block mixed(const Block &from) {
        Block to = {};
        for (int i = 0; i < 16; i++) {
            const auto at = [&](int row) { return from.bytes[i / 4 * 4 + (i + row) % 4]; };
            to.bytes[i] = static_cast<uint8_t>(times(at(0), 2) ^ times(at(1), 3) ^ at(2) ^ at(3));
        }
        return to;
    }

    void add_key(Block *state, size_t round) const {
        for (size_t i = 0; i < 16; i++)
            state->bytes[i] = static_cast<uint8_t>(state->bytes[i] ^ schedule_[16 * round + i]);
    }

    size_t rounds_;
    std::vector<uint8_t> schedule_;
};

} // namespace uidgen::core
