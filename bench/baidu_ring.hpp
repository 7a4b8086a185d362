// The ring of Baidu's uid-generator (2017), from its published description, to be measured beside the word of src/core.
//
// Slots hold the ids, and a flag a slot says whether it may be put to or taken from. put() runs under a lock. take()
// moves the cursor first, then reads the slot and gives it back. Tail, cursor and flags stand on lines of their own,
// and every atomic is as strong as Java's volatile.
//
// Its two rejections and its failed assertion are one answer here, "nothing taken". As in the original, a taker that
// finds the ring empty just after another took the last id may read the same slot again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace uidgen::bench {

class BaiduRing {
  public:
    struct Taken {
        bool ok;
        int64_t filled; // how far the tail was ahead
    };

    explicit BaiduRing(uint64_t size) : mask_(size - 1), slots_(new uint64_t[size]), flags_(new Padded[size]) {
        for (uint64_t i = 0; i < size; i++)
            flags_[i].value.store(can_put);
    }

    // False: the ring is full.
    bool put(uint64_t id) {
        const std::lock_guard<std::mutex> guard(lock_);
        const int64_t tail = tail_.value.load();
        const int64_t cursor = cursor_.value.load();
        if (tail - (cursor == start ? 0 : cursor) == static_cast<int64_t>(mask_))
            return false;
        const uint64_t at = static_cast<uint64_t>(tail + 1) & mask_;
        if (flags_[at].value.load() != can_put)
            return false;
        slots_[at] = id;
        flags_[at].value.store(can_take);
        tail_.value.fetch_add(1);
        return true;
    }

    Taken take(uint64_t *id) {
        const int64_t before = cursor_.value.load();
        int64_t seen = before, next = 0;
        do
            next = seen == tail_.value.load() ? seen : seen + 1;
        while (!cursor_.value.compare_exchange_weak(seen, next));
        const int64_t filled = tail_.value.load() - next;
        const uint64_t at = static_cast<uint64_t>(next) & mask_;
        if (next == before || flags_[at].value.load() != can_take)
            return {false, filled};
        *id = slots_[at];
        flags_[at].value.store(can_put);
        return {true, filled};
    }

  private:
    static constexpr int64_t start = -1;
    static constexpr int64_t can_put = 0;
    static constexpr int64_t can_take = 1;

    struct alignas(64) Padded {
        std::atomic<int64_t> value{start};
    };

    const uint64_t mask_;
    const std::unique_ptr<uint64_t[]> slots_;
    const std::unique_ptr<Padded[]> flags_;
    Padded tail_;
    Padded cursor_;
    std::mutex lock_;
};

} // namespace uidgen::bench
