#include "run/run_lifetimes.hpp"

#include <gtest/gtest.h>

namespace vramtrack::run {
namespace {

using probe::Call;
using probe::Record;
using probe::Slot;

constexpr std::uint64_t kMib = 1 << 20;
constexpr double kBegin_s = 1.8e9;
constexpr std::uint64_t kSecond_us = 1'000'000;

/// The records of one process, as written by its probe.
class Probe {
 public:
  Probe() {
    process_.pid = 4711;
    process_.start_ticks = 99;
    process_.begin_realtime_us = static_cast<std::int64_t>(kBegin_s * 1e6);
  }

  void text(std::uint32_t number, std::string_view words) {
    for (std::size_t at = 0; at < words.size(); at += probe::kTextBytes) {
      std::uint64_t piece[2] = {};
      words.copy(reinterpret_cast<char*>(piece), probe::kTextBytes, at);
      put({probe::head_of(Record::text, Call::none, 0, 0, number), at | static_cast<std::uint64_t>(words.size()) << 32U,
           piece[0], piece[1]});
    }
  }
  /// A stack of one Python frame.
  void stack(std::uint32_t number, std::uint32_t code, std::uint32_t line) {
    put({probe::head_of(Record::frame, Call::none, 0, probe::kPythonFrame, number), std::uint64_t{1} << 32U, code,
         line});
  }
  void code(std::uint32_t number, std::uint32_t file, std::uint64_t name) {
    put({probe::head_of(Record::code, Call::none, 0, 0, number), 1, file | name << 32U, 0});
  }
  void alloc(double at_s, std::uint64_t address, std::uint64_t bytes, std::uint32_t stack,
             Call call = Call::torch_block) {
    put({probe::head_of(Record::alloc, call, 0, 0, stack), probe::when(us(at_s), 1), address, bytes});
  }
  void free(double at_s, std::uint64_t address, Call call = Call::torch_block) {
    put({probe::head_of(Record::free, call, 0, 0, 0), probe::when(us(at_s), 1), address, 0});
  }
  void put(const Slot& slot) { lifetimes_.take(process_, {&slot, 1}); }
  std::vector<trace::ProcessLifetimes> report(double at_s) { return lifetimes_.report(kBegin_s + at_s); }
  std::vector<ProcessCategories> categories() const { return lifetimes_.categories(); }
  std::vector<LateRise> late_rises(double at_s) { return lifetimes_.late_rises(kBegin_s + at_s); }

  static std::uint64_t us(double at_s) { return static_cast<std::uint64_t>(at_s * kSecond_us); }

 private:
  ProbedProcess process_;
  RunLifetimes lifetimes_{nullptr};
};

/// train.py:7 keeps its allocations, train.py:9 releases them.
void train(Probe& probe, int steps) {
  probe.text(1, "/home/me/train.py");
  probe.text(2, "train_step");
  probe.code(1, 1, 2);
  probe.stack(1, 1, 7);
  probe.stack(2, 1, 9);
  for (int i = 0; i < steps; ++i) {
    const auto address = static_cast<std::uint64_t>(i) * 4096;
    probe.alloc(i, 1'000'000 + address, kMib, 1);
    probe.alloc(i, 9'000'000, kMib, 2);
    probe.free(i + .5, 9'000'000);
  }
}

TEST(RunLifetimes, TellsWhatEachLineKeeps) {
  Probe probe;
  train(probe, 400);
  const auto told = probe.report(400);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].pid, 4711U);
  EXPECT_EQ(told[0].start_ticks, 99U);
  ASSERT_EQ(told[0].sites.size(), 2U);
  EXPECT_EQ(told[0].sites[0].site, "/home/me/train.py:7 train_step");
  EXPECT_EQ(told[0].sites[0].live_bytes, 400. * kMib);
  EXPECT_EQ(told[0].sites[1].live_bytes, 0);
  EXPECT_TRUE(probe.report(410).empty()) << "every 30 s";
  EXPECT_EQ(probe.report(500).size(), 1U);
}

TEST(RunLifetimes, LinesThatBeginToRiseTogetherAreToldOnceWithTheOneThatKeepsFirst) {
  Probe probe;
  probe.text(1, "/home/me/train.py");
  probe.text(2, "train");
  probe.text(3, "forward");
  probe.code(1, 1, 2);
  probe.code(2, 1, 3);
  probe.stack(1, 1, 7);
  // forward() in train(): a stack of two frames.
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1}})
    probe.put({probe::head_of(Record::frame, Call::none, 0, probe::kPythonFrame | probe::kEntryFrame, 2),
               at | std::uint64_t{2} << 32U, at == 0 ? 2U : 1U, at == 0 ? 30U : 8U});
  probe.stack(3, 1, 9);
  std::vector<LateRise> told;
  double told_s = 0;
  for (int i = 0; i < 1200; ++i) {
    const double at_s = 0.1 * i;
    const auto address = static_cast<std::uint64_t>(i) * 4096;
    probe.alloc(at_s, 9'000'000'000, kMib, 1);
    probe.free(at_s + .005, 9'000'000'000);
    if (at_s >= 60) {
      probe.alloc(at_s + .01, 1'000'000'000 + address, 4096, 2);
      probe.alloc(at_s + .02, 2'000'000'000 + address, 512, 3);
    }
    for (LateRise& rise : probe.late_rises(at_s + .06)) {
      told.push_back(std::move(rise));
      told_s = at_s;
    }
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_LT(told_s, 60 + 30);
  EXPECT_EQ(told[0].pid, 4711U);
  EXPECT_EQ(told[0].line, "/home/me/train.py:9 train");
  EXPECT_EQ(told[0].others, std::vector<std::string>{"/home/me/train.py:30 forward"});
  EXPECT_NEAR(told[0].since_s, 60, 0.2);
  EXPECT_NEAR(told[0].lasts_s, told_s - 60, 0.3);
  EXPECT_NEAR(told[0].bytes_per_s, 10 * (4096 + 512), 1000);
}

TEST(RunLifetimes, SumsByWhatMemoryIsFor) {
  Probe probe;
  probe.text(1, "/usr/lib/python3/site-packages/torch/optim/adam.py");
  probe.text(2, "_init_group");
  probe.text(3, "/usr/lib/python3/site-packages/transformers/cache_utils.py");
  probe.text(4, "update");
  probe.text(5, "/home/me/serve.py");
  probe.text(6, "serve");
  probe.code(1, 1, 2);
  probe.code(2, 3, 4);
  probe.code(3, 5, 6);
  // Both are called by one line of the program itself.
  for (const std::uint32_t stack : {1U, 2U})
    for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1}})
      probe.put({probe::head_of(Record::frame, Call::none, 0, probe::kPythonFrame | probe::kEntryFrame, stack),
                 at | std::uint64_t{2} << 32U, at == 0 ? stack : 3U, at == 0 ? 30U : 8U});
  probe.alloc(1, 0x1000, 3 * kMib, 1);
  probe.alloc(2, 0x2000, 5 * kMib, 2);
  probe.alloc(3, 0x3000, 7 * kMib, 2);
  probe.free(4, 0x3000);
  const auto told = probe.categories();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].pid, 4711U);
  using Bytes = std::vector<std::pair<trace::Category, std::int64_t>>;
  EXPECT_EQ(told[0].bytes,
            (Bytes{{trace::Category::optimizer_state, 3 * kMib}, {trace::Category::kv_cache, 5 * kMib}}));
  EXPECT_EQ(probe.report(5).at(0).sites.size(), 1U) << "it is one line";
}

/// One line of the program creates a context and loads code into it.
TEST(RunLifetimes, WhatTheDriverTakesIsNamedByItsCall) {
  Probe probe;
  train(probe, 1);
  probe.free(2, 1'000'000);
  probe.alloc(2, 0x1000, 3 * kMib, 1, Call::cu_context);
  probe.alloc(3, 0x2000, 5 * kMib, 1, Call::cu_library);
  probe.alloc(4, 0x3000, 2 * kMib, 1, Call::cu_graph_exec);
  probe.alloc(5, 0x4000, 7 * kMib, 1, Call::cu_mem_alloc_managed);
  using Bytes = std::vector<std::pair<trace::Category, std::int64_t>>;
  EXPECT_EQ(probe.categories().at(0).bytes, (Bytes{{trace::Category::contexts, 3 * kMib},
                                                   {trace::Category::code, 5 * kMib},
                                                   {trace::Category::graphs, 2 * kMib},
                                                   {trace::Category::managed, 7 * kMib}}));
  EXPECT_EQ(probe.report(6).at(0).sites.at(0).live_bytes, 17. * kMib) << "it is one line";
}

TEST(RunLifetimes, CountsHostMemoryAndBlocksWithinVulkansMemoryNotAtAll) {
  Probe probe;
  train(probe, 100);
  for (std::uint64_t i = 0; i < 100; ++i) {
    probe.alloc(100, 1 + i, 64 * kMib, 2, Call::cu_mem_host_alloc);
    probe.alloc(100, 1'000 + i, 64 * kMib, 2, Call::vk_bind_buffer);
  }
  EXPECT_EQ(probe.report(101).at(0).sites.at(0).live_bytes, 100. * kMib);
}

TEST(RunLifetimes, ABlockOfASampleStandsForWhatWasLeftOut) {
  Probe probe;
  probe.put({probe::head_of(Record::sampling, Call::none, 0, 0, 0), 0, 0, 16 * kMib});
  train(probe, 10);
  EXPECT_EQ(probe.report(11).at(0).sites.at(0).live_bytes, 160. * kMib);
}

TEST(RunLifetimes, SaysNothingAfterALossOrAtTheEnd) {
  for (const Record record : {Record::lost, Record::end, Record::exit}) {
    Probe probe;
    train(probe, 100);
    probe.put({probe::head_of(record, Call::none, 0, 0, 0), 1, 0, 0});
    EXPECT_TRUE(probe.report(101).empty());
  }
}

}  // namespace
}  // namespace vramtrack::run
