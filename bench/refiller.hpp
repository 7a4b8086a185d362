// The thread that fills a ring: sleeps until somebody calls it. Calls while it is at work are one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace uidgen::bench {

class Refiller {
  public:
    explicit Refiller(std::function<void()> pad) : pad_(std::move(pad)) {}
    Refiller(const Refiller &) = delete;
    Refiller &operator=(const Refiller &) = delete;
    ~Refiller() {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            ended_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    void start() {
        thread_ = std::thread([this] { run(); });
    }

    // Cheap while the refiller is at work: a load.
    void call() {
        if (called_.load(std::memory_order_relaxed) || called_.exchange(true))
            return;
        const std::lock_guard<std::mutex> guard(lock_); // not between the refiller's look and its sleep
        wake_.notify_one();
    }

  private:
    void run() {
        std::unique_lock<std::mutex> guard(lock_);
        for (;;) {
            wake_.wait(guard, [this] { return ended_ || called_.load(); });
            if (ended_)
                return;
            guard.unlock();
            pad_();
            called_.store(false);
            guard.lock();
        }
    }

    const std::function<void()> pad_;
    std::atomic<bool> called_{false};
    bool ended_ = false; // under lock_
    std::mutex lock_;
    std::condition_variable wake_;
    std::thread thread_;
};

} // namespace uidgen::bench
