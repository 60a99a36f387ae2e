// What filled the memory when an allocation failed: each reason, and the failure that counts.
#include "trace/run_oom.hpp"

#include <gtest/gtest.h>

#include "golden.hpp"
#include "probe_script.hpp"

namespace vramtrack::trace {
namespace {

using probe::Call;
using probe::Record;

constexpr std::uint64_t kMiB = 1 << 20;

struct Failed {
  Symbols symbols;
  ProbeTrace trace;
  std::unique_ptr<ProbeNames> names;
  std::optional<RunOom> oom;

  explicit Failed(const ProbeScript& script, const std::vector<ProbeHolder>& holders = {}) {
    (void)trace.process(0, {4711, 99, 1'000'000, "./program --fast"});
    (void)trace.slots(0, script.slots);
    for (const ProbeHolder& holder : holders) (void)trace.holder(holder);
    trace.finish();
    names = std::make_unique<ProbeNames>(trace, symbols, nullptr, OwnCode({}, {}));
    oom = oom_of_run(trace, *names, report_of(trace, *names));
  }
  [[nodiscard]] std::string text() const { return oom ? run_oom_text(*oom, *names, 5) : std::string(); }
};

void fails(ProbeScript& script, Record record, std::uint64_t bytes, std::uint32_t stack, std::uint64_t figure = 0,
           Call call = Call::cu_mem_alloc) {
  script.put(record, call, 0, 0, stack, probe::when(script.now_us++, 0), figure, bytes);
}

ProbeScript on_device() {
  ProbeScript script;
  script.put(Record::device, Call::none, 0, 0, script.text("GPU-1"), 0, 1000 * kMiB, script.text("Some GPU"));
  return script;
}

TEST(RunOom, NoFailureIsNone) {
  ProbeScript script = on_device();
  script.alloc(0x1000, 10, script.line("/home/me/a.py", 1));
  EXPECT_FALSE(Failed(script).oom);
}

TEST(RunOom, WhatKeepsTheLeakIsWhatToBound) {
  ProbeScript script = on_device();
  const std::uint32_t leak = script.line("/home/me/serve.py", 7);
  for (std::uint64_t i = 0; i < 400; ++i) script.alloc(0x2000'0000 + i * 4096, kMiB, leak);
  const std::uint32_t words = script.text("cache (dict, 400 items) in serve.py module globals");
  for (std::uint64_t i = 0; i < 400; i += 4)
    script.put(Record::kept, Call::none, 0, probe::kRootedKeeper, words, probe::when(script.now_us, 0),
               0x2000'0000 + i * 4096, 100);
  script.put(Record::kept, Call::none, 0, probe::kLookEnd, 0, probe::when(script.now_us, 0), 400, 3000);
  fails(script, Record::refused, kMiB, leak, 500 * kMiB);
  const Failed failed(script);
  ASSERT_TRUE(failed.oom);
  EXPECT_TRUE(failed.oom->next_step.starts_with("bound what is in cache (dict, 400 items) ")) << failed.oom->next_step;
}

TEST(RunOom, ALeakIsNamedBeforeTheLimitThatStoppedIt) {
  ProbeScript script = on_device();
  const std::uint32_t model = script.line("/home/me/model.py", 3), leak = script.line("/home/me/serve.py", 7);
  script.put(Record::limit, Call::none, 0, 0, 0, 0, 0, 500 * kMiB);
  script.alloc(0x1000, 100 * kMiB, model);
  for (std::uint64_t i = 0; i < 400; ++i) script.alloc(0x2000'0000 + i * 4096, kMiB, leak);
  fails(script, Record::refused, kMiB, leak, 500 * kMiB);
  const Failed failed(script);
  ASSERT_TRUE(failed.oom);
  EXPECT_EQ(failed.oom->cause, RunOomCause::leak);
  expect_golden("words/trace/run_oom_leak.txt", failed.text());
  EXPECT_TRUE(failed.oom->is_refused);
  ASSERT_EQ(failed.oom->sites.size(), 2U);
  EXPECT_EQ(failed.oom->sites[0].live.blocks, 400);
  EXPECT_TRUE(failed.oom->sites[0].leak);
  EXPECT_FALSE(failed.oom->sites[1].leak);
}

TEST(RunOom, WhatIsFreedAfterwardsWasLiveThen) {
  ProbeScript script = on_device();
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x1000, 900 * kMiB, line);
  fails(script, Record::failed, 200 * kMiB, line, 100 * kMiB);
  script.free(0x1000);
  const Failed failed(script);
  ASSERT_TRUE(failed.oom);
  EXPECT_EQ(failed.oom->live_bytes, static_cast<std::int64_t>(900 * kMiB));
  EXPECT_EQ(failed.oom->cause, RunOomCause::full);
  expect_golden("words/trace/run_oom_full.txt", failed.text());
}

TEST(RunOom, AnErrorOfTheFrameworkComesBeforeTheDriversRefusals) {
  ProbeScript script = on_device();
  const std::uint32_t line = script.line("/home/me/a.py", 1), retried = script.line("/home/me/b.py", 2);
  script.alloc(0x1000'0000, 100 * kMiB, line);
  fails(script, Record::failed, 20 * kMiB, retried);  // the cache was released, and the retry succeeded
  script.alloc(0x2000'0000, 300 * kMiB, line);
  fails(script, Record::failed, 512 * kMiB, line);
  fails(script, Record::failed, 500 * kMiB, line, 0, Call::torch_block);
  const Failed failed(script);
  ASSERT_TRUE(failed.oom);
  EXPECT_EQ(failed.oom->asked_bytes, 500 * kMiB);
  EXPECT_EQ(failed.oom->cause, RunOomCause::request);
  expect_golden("words/trace/run_oom_request.txt", failed.text());
}

TEST(RunOom, WhatAFrameworkTriedAgainWithSuccessIsNone) {
  ProbeScript script = on_device();
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x1000'0000, 100 * kMiB, line);
  script.alloc(0x1000'0000, 50 * kMiB, line, Call::torch_block);
  fails(script, Record::failed, 200 * kMiB, line);
  script.alloc(0x2000'0000, 200 * kMiB, line);
  EXPECT_FALSE(Failed(script).oom);
}

TEST(RunOom, CachedMemoryInPieces) {
  ProbeScript script = on_device();
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  for (std::uint64_t i = 1; i <= 40; ++i) {
    script.alloc(i << 28U, 20 * kMiB, line);
    script.alloc(i << 28U, 10 * kMiB, line, Call::torch_block);
  }
  for (int i = 0; i < 400; ++i) {  // no growth from here on
    script.free(1U << 28U, Call::torch_block);
    script.alloc(1U << 28U, 10 * kMiB, line, Call::torch_block);
  }
  fails(script, Record::failed, 64 * kMiB, line, 0, Call::torch_block);
  const Failed failed(script);
  ASSERT_TRUE(failed.oom);
  EXPECT_EQ(failed.oom->cause, RunOomCause::fragmentation);
  expect_golden("words/trace/run_oom_fragmentation.txt", failed.text());
}

TEST(RunOom, OthersOnTheDeviceAreNamed) {
  ProbeScript script = on_device();
  const std::uint32_t line = script.line("/home/me/a.py", 1);
  script.alloc(0x1000, 100 * kMiB, line);
  fails(script, Record::failed, 50 * kMiB, line, 10 * kMiB);
  const Failed failed(script, {{1'500'000, "GPU-1", 77, 800 * kMiB, "ollama serve"},
                               {1'500'000, "GPU-1", 4711, 400 * kMiB, "itself"},
                               {1'500'000, "GPU-2", 78, 9000 * kMiB, "elsewhere"},
                               {9'000'000'000, "GPU-1", 79, 9000 * kMiB, "hours later"}});
  ASSERT_TRUE(failed.oom);
  EXPECT_EQ(failed.oom->cause, RunOomCause::others);
  EXPECT_EQ(failed.oom->others_bytes, 800 * kMiB);
  expect_golden("words/trace/run_oom_others.txt", failed.text());
}

TEST(RunOom, SaysItInTenLines) {
  ProbeScript script = on_device();
  for (std::uint64_t i = 1; i <= 30; ++i)
    script.alloc(i << 28U, i * kMiB, script.line("/home/me/" + std::to_string(i) + ".py", 1));
  fails(script, Record::refused, 600 * kMiB, 1);
  const Failed failed(script);
  const std::string text = failed.text();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 11) << text;
  EXPECT_EQ(failed.oom->cause, RunOomCause::limit);
  expect_golden("words/trace/run_oom_limit.txt", text);
}

}  // namespace
}  // namespace vramtrack::trace
