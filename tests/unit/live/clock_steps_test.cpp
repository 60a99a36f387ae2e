// Whatever is done to a machine's clock, to vramtrack and to the machine: recorded data is kept for its retention.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "../manual_clock.hpp"
#include "../temp_folder.hpp"
#include "live/loop.hpp"

namespace vramtrack {
namespace {

using namespace std::chrono_literals;

constexpr double kRawHours = 2;
constexpr Duration kRaw = 2h;
constexpr Duration kTick = 60s;

struct Step {
  enum class Kind : std::uint8_t { watch, set_clock, restart, reboot };
  Kind kind = Kind::watch;
  Duration span{0};  ///< time watched; amount by which the clock is set; time without a watch
};

void showValue(const Step& step, std::ostream& out) {
  out << "step " << static_cast<int>(step.kind) << " of " << std::chrono::duration<double>(step.span).count() << " s";
}

/// Each of its samples has a different value, so that it is known which ones are stored.
class Numbers final : public Source {
 public:
  Numbers(Catalog& catalog, std::uint64_t& number) : number_(&number) {
    catalog.describe(DeviceInfo{.id = "GPU-1", .index = 0, .capacity_bytes = 1ULL << 40U});
    used_ = catalog.intern({.metric = Metric::device_used, .device_id = "GPU-1"});
  }
  Result<Progress> poll(Timestamp now, Batch& out) override {
    out.samples.push_back({now, used_, (*number_)++});
    return Progress::more;
  }
  const SourceNotes& notes() const override { return notes_; }

 private:
  std::uint64_t* number_;
  SourceNotes notes_;
  SeriesId used_{};
};

/// A machine on which vramtrack records, driven by steps.
class Machine {
 public:
  Machine() {
    store_.path = folder_.path() + "/watch.db";
    store_.raw_hours = kRawHours;
    store_.max_size_mb = 0;
    time_->boot_id = "boot-0";
    start();
  }

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::watch:
        watch(step.span);
        break;
      case Step::Kind::set_clock:
        time_->wall += step.span;
        ++clock_steps;
        break;
      case Step::Kind::restart:
        loop_->finish();
        loop_.reset();
        pass(step.span);
        start();
        break;
      case Step::Kind::reboot:
        loop_.reset();
        time_->boot_id = fmt::format("boot-{}", ++boots_);
        time_->boot = Duration{0};
        pass(5s);
        time_->wall += step.span;
        start();
        break;
    }
  }

  /// Counts the samples that are within the retention but missing.
  std::size_t lost() {
    loop_->finish();
    std::set<std::uint64_t> there;
    auto reader = StoreReader::open(store_.path);
    EXPECT_TRUE(reader) << reader.error().message;
    Catalog catalog;
    Batch batch;
    while (true) {
      const auto more = (*reader)->read(catalog, batch);
      EXPECT_TRUE(more) << more.error().message;
      if (!more || !*more) break;
      for (const Sample& sample : batch.samples) there.insert(sample.bytes);
    }
    std::size_t lost = 0;
    for (std::uint64_t number = 0; number < polled_at_.size(); ++number)
      if (uptime_ - polled_at_[number] <= kRaw && !there.contains(number)) ++lost;
    kept = there.size();
    return lost;
  }

  std::size_t clock_steps = 0;
  std::size_t kept = 0;  ///< set once lost() has been called
  [[nodiscard]] std::size_t polled() const { return polled_at_.size(); }
  [[nodiscard]] Duration uptime() const { return uptime_; }

 private:
  void start() {
    Config config;
    config.watch.interval_seconds = std::chrono::duration<double>(kTick).count();
    LoopInput input;
    input.catalog = std::make_unique<Catalog>();
    input.sources.push_back(
        LiveSource{.name = "numbers", .source = std::make_unique<Numbers>(*input.catalog, number_)});
    loop_ = std::make_unique<Loop>(config, std::move(input), manual_clock(time_));
    ASSERT_TRUE(loop_->record_into(store_));
  }
  void watch(Duration span) {
    for (const Duration end = uptime_ + span; uptime_ < end;) {
      const Duration before = time_->boot;
      ASSERT_TRUE(loop_->clock().sleep_until(loop_->next()));
      uptime_ += time_->boot - before;
      loop_->tick();
      polled_at_.resize(number_, uptime_);
    }
  }
  void pass(Duration span) {
    time_->pass(span);
    uptime_ += span;
  }

  const TempFolder folder_;
  StoreConfig store_;
  std::shared_ptr<ManualTime> time_ = std::make_shared<ManualTime>();
  std::unique_ptr<Loop> loop_;
  int boots_ = 0;
  Duration uptime_{0};               ///< sum over all boots
  std::vector<Duration> polled_at_;  ///< the uptime at which each number was polled
  std::uint64_t number_ = 0;
};

/// From seconds to decades, forward and back alike.
template <class Random>
Duration any_clock_step(Random&& below) {
  constexpr std::int64_t kMost_s[] = {10, 3600, 86400, 86400 * 30, 86400 * 365 * 20};
  const std::int64_t most_s = kMost_s[below(5)];
  return std::chrono::seconds{static_cast<std::int64_t>(below(2 * static_cast<std::uint64_t>(most_s))) - most_s};
}

template <class Random>
Step any_step(Random&& below) {
  switch (below(7)) {
    case 0:
    case 1:
    case 2:
      return {Step::Kind::watch, std::chrono::minutes{1 + below(300)}};
    case 3:
    case 4:
      return {Step::Kind::set_clock, any_clock_step(below)};
    case 5:
      return {Step::Kind::restart, std::chrono::seconds{below(3600)}};
    default:
      return {Step::Kind::reboot, any_clock_step(below)};
  }
}

/// The clock could leave every calendar here; a machine's clock does not.
bool possible(const std::vector<Step>& steps) {
  Duration most{0};
  for (const Step& step : steps) most += std::chrono::abs(step.span);
  return most < 24h * 365 * 120;
}

RC_GTEST_PROP(ClockSteps, NeverDeleteWhatIsYoungerThanItsRetention, ()) {
  const auto steps = *rc::gen::suchThat(
      rc::gen::resize(20, rc::gen::container<std::vector<Step>>(rc::gen::exec([] {
                        return any_step([](std::uint64_t most) { return *rc::gen::inRange<std::uint64_t>(0, most); });
                      }))),
      possible);
  Machine machine;
  for (const Step& step : steps) {
    machine.take(step);
    RC_ASSERT(machine.lost() == 0U);
  }
}

/// The same clock, never set: data beyond its retention does expire.
TEST(ClockSteps, RetentionGoesOnWithTheMachine) {
  Machine machine;
  for (int i = 0; i < 12; ++i) {
    machine.take({Step::Kind::watch, 1h});
    machine.take({Step::Kind::restart, 60s});
  }
  EXPECT_EQ(machine.lost(), 0U);
  EXPECT_LE(machine.kept, 180U) << "two hours, and two blocks of a quarter of an hour";
}

/// Weeks of random steps. With VRAMTRACK_SOAK_SECONDS: for this long, one machine of three weeks after another.
TEST(ClockSteps, Soak) {
  const char* text = std::getenv("VRAMTRACK_SOAK_SECONDS");
  const std::chrono::seconds duration{text != nullptr ? std::atoi(text) : 0};
  const auto begin = std::chrono::steady_clock::now();
  std::size_t lost = 0, polled = 0, clock_steps = 0, machines = 0;
  Duration uptime{0};
  do {
    std::mt19937_64 random(machines++);
    const auto below = [&](std::uint64_t most) { return random() % most; };
    Machine machine;
    const Duration length = text != nullptr ? Duration{24h * 21} : Duration{24h};
    while (machine.uptime() < length) {
      Step step = any_step(below);
      // If a step would leave the calendar, the next ones bring it back.
      if (step.kind == Step::Kind::set_clock || step.kind == Step::Kind::reboot) step.span %= 24h * 365 * 2;
      machine.take(step);
      ASSERT_FALSE(HasFatalFailure());
      lost += machine.lost();
      ASSERT_EQ(lost, 0U) << "machine " << machines - 1;
    }
    polled += machine.polled();
    clock_steps += machine.clock_steps;
    uptime += machine.uptime();
  } while (std::chrono::steady_clock::now() - begin < duration);
  fmt::print("clock steps: {} machines, {} days in all, {} steps of the clock, {} samples, {} lost\n", machines,
             uptime / 24h, clock_steps, polled, lost);
}

}  // namespace
}  // namespace vramtrack
