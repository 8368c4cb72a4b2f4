// A market of workers, queues and customers, event by event. In C++: virtual methods, containers, algorithms,
// closures, strings.
//
// arg: 300

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Time = std::uint64_t;

struct Random {
    std::uint64_t state = 88172645463325252u;

    std::uint64_t below(std::uint64_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 20) % n;
    }
};

// What is to happen at a time; of two at the same time, the one that was made first comes first.
struct Event {
    Time time;
    std::uint64_t number;
    std::function<void()> action;
};

struct Later {
    bool operator()(const Event &a, const Event &b) const {
        return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
};

class Clock {
public:
    Time now = 0;

    void in(Time delay, std::function<void()> action) {
        events.push({now + delay, n_made++, std::move(action)});
    }

    // Lets events happen up to a time.
    std::uint64_t run(Time end) {
        std::uint64_t n = 0;
        for (; !events.empty() && events.top().time <= end; n++) {
            Event event = events.top();
            events.pop();
            now = event.time;
            event.action();
        }
        return n;
    }

private:
    std::priority_queue<Event, std::vector<Event>, Later> events;
    std::uint64_t n_made = 0;
};

struct Customer {
    std::string name;
    Time came;
    int items;
};

// Which of those who wait is served next.
class Queue {
public:
    virtual ~Queue() = default;
    virtual const char *name() const = 0;
    virtual void push(Customer customer) = 0;
    virtual Customer pop() = 0;
    virtual std::size_t size() const = 0;
};

class InOrder : public Queue {
public:
    const char *name() const override { return "in order"; }
    void push(Customer customer) override { waiting.push_back(std::move(customer)); }
    std::size_t size() const override { return waiting.size(); }

    Customer pop() override {
        Customer first = std::move(waiting.front());
        waiting.pop_front();
        return first;
    }

private:
    std::deque<Customer> waiting;
};

class FewestItems : public Queue {
public:
    const char *name() const override { return "fewest items"; }
    std::size_t size() const override { return waiting.size(); }

    void push(Customer customer) override {
        int items = customer.items;
        waiting.emplace(items, std::move(customer));
    }

    Customer pop() override {
        auto first = waiting.begin();
        Customer customer = std::move(first->second);
        waiting.erase(first);
        return customer;
    }

private:
    std::multimap<int, Customer> waiting;
};

class Market {
public:
    Market(std::unique_ptr<Queue> queue, int n_workers) : queue(std::move(queue)), n_free(n_workers) {}

    void open(Time end) {
        arrive();
        n_events = clock.run(end);
    }

    void report() {
        std::sort(waits.begin(), waits.end());
        Time sum = std::accumulate(waits.begin(), waits.end(), Time{0});
        auto at = [&](std::size_t percent) { return waits[(waits.size() - 1) * percent / 100]; };
        std::printf("%s: %" PRIu64 " events, %zu served, %zu left\n", queue->name(), n_events, waits.size(), queue->size());
        std::printf("  waited %" PRIu64 " at half, %" PRIu64 " at 99%%, %" PRIu64 " in all\n", at(50), at(99), sum);
        std::vector<std::pair<std::string, int>> best(spent.begin(), spent.end());
        std::sort(best.begin(), best.end(), [](const auto &a, const auto &b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        best.resize(std::min<std::size_t>(best.size(), 4));
        for (const auto &[name, items] : best) std::printf("  %s %d\n", name.c_str(), items);
    }

private:
    Clock clock;
    Random random;
    std::unique_ptr<Queue> queue;
    int n_free;
    std::uint64_t n_events = 0;
    std::vector<Time> waits;
    std::unordered_map<std::string, int> spent;

    void arrive() {
        static const char *const syllables[] = {"ba", "do", "ki", "lu", "me", "no", "ri", "sa"};
        std::string name;
        for (int i = 0; i < 3; i++) name += syllables[random.below(8)];
        name += ' ';
        name += std::to_string(random.below(20));
        int items = 1 + static_cast<int>(random.below(random.below(8) == 0 ? 60 : 12));
        queue->push({std::move(name), clock.now, items});
        serve();
        clock.in(1 + random.below(9), [this] { arrive(); });
    }

    void serve() {
        if (n_free == 0 || queue->size() == 0) return;
        n_free--;
        Customer customer = queue->pop();
        waits.push_back(clock.now - customer.came);
        spent[customer.name] += customer.items;
        clock.in(2 + customer.items, [this] {
            n_free++;
            serve();
        });
    }
};

} // namespace

int main(int argc, char **argv) {
    Time end = argc > 1 ? std::strtoull(argv[1], nullptr, 10) * 100 : 1000;
    std::vector<std::unique_ptr<Queue>> queues;
    queues.push_back(std::make_unique<InOrder>());
    queues.push_back(std::make_unique<FewestItems>());
    for (auto &queue : queues) {
        Market market(std::move(queue), 2);
        market.open(end);
        market.report();
    }
}
