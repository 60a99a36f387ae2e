#include "explain/judge.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "core/units.hpp"
#include "explain/render.hpp"

namespace vramtrack::explain {
namespace {

/// As PyTorch 2 prints it; sizes in GiB.
std::string torch(double asked, double total, double free, double allocated, double cached,
                  std::string_view more = "") {
  return fmt::format(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {:.2f} GiB. GPU 0 has a total capacity of {:.2f} "
      "GiB of which {:.2f} GiB is free.{} Of the allocated memory {:.2f} GiB is allocated by PyTorch, and {:.2f} GiB "
      "is "
      "reserved by PyTorch but unallocated.\n",
      asked, total, free, more, allocated, cached);
}

Explanation explained(std::string_view text) {
  const auto explanation = explain(read_messages(text));
  EXPECT_TRUE(explanation) << text;
  return explanation.value_or(Explanation{});
}

Cause cause_of(std::string_view text) {
  return explained(text).cause;
}

TEST(Judge, EachCauseByItsFigures) {
  EXPECT_EQ(cause_of(torch(4, 24, 1, 22, 0.2)), Cause::too_big);
  EXPECT_EQ(cause_of(torch(4, 24, 1, 15, 7)), Cause::fragmentation);
  EXPECT_EQ(cause_of(torch(4, 24, 1, 8, 0.2)), Cause::outside);
  EXPECT_EQ(cause_of(torch(4, 24, 12, 11, 0.2)), Cause::limit);
  EXPECT_EQ(cause_of(torch(4, 24, 12, 11, 0.2, " 12.00 GiB allowed;")), Cause::limit);
  EXPECT_EQ(cause_of(torch(4, 24, 1, 12, 0.2, " Process 7 has 9.00 GiB memory in use.")), Cause::outside);
  EXPECT_EQ(cause_of("CUDA error: out of memory"), Cause::unknown);
  EXPECT_EQ(cause_of("OOMKilled"), Cause::host);
}

TEST(Judge, AContainersOwnPidIsNoOther) {
  const auto own = explained(torch(0.5, 16, 0.4, 14, 0.2, " Process 562167 has 15.25 GiB memory in use."));
  EXPECT_EQ(own.cause, Cause::full) << own.because;
  EXPECT_EQ(own.failure().own_pid, 562167);
  EXPECT_TRUE(own.failure().others.empty());
  const std::string text = explanation_text(own, "");
  EXPECT_NE(text.find("this process     15.25 GiB  pid 562167"), std::string::npos) << text;
}

TEST(Judge, TheOwnPidIsKnownFromALoggersWords) {
  // Two processes could be this one by their sizes; the logger names its own.
  const std::string named = " Process 400 has 14.40 GiB memory in use. Process 4711 has 14.50 GiB memory in use.";
  const auto own = explained("(EngineCore pid=4711) ERROR " + torch(0.5, 32, 0.1, 14, 0.2, named));
  EXPECT_EQ(own.failure().own_pid, 4711);
  EXPECT_EQ(own.failure().figures.get(Figure::process), 14.5 * kGiB);
  ASSERT_EQ(own.failure().others.size(), 1U);
  EXPECT_EQ(own.failure().others[0].pid, 400);
  EXPECT_EQ(own.cause, Cause::outside);
  EXPECT_EQ(explained("[4711] " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 4711);
  EXPECT_EQ(explained("2026-01-01 [engine.py:4711] " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 0);
  EXPECT_EQ(explained("(pid=47110) " + torch(0.5, 32, 0.1, 14, 0.2, named)).failure().own_pid, 0);
}

TEST(Judge, AProcessThatMayBeThisOneIsNotCalledAnother) {
  // The allocator holds nothing, and one process fills the device: an engine of this process, or a neighbour.
  const auto unsure = explained(torch(0.1, 22, 0.01, 0, 0, " Process 885415 has 21.98 GiB memory in use."));
  EXPECT_EQ(unsure.cause, Cause::outside);
  EXPECT_EQ(unsure.failure().own_pid, 0);
  EXPECT_NE(unsure.because.find("process 885415 (21.98 GiB), which may be this one"), std::string::npos)
      << unsure.because;
  EXPECT_EQ(unsure.fault.find("others'"), std::string::npos) << unsure.fault;
  const std::string text = explanation_text(unsure, "");
  EXPECT_EQ(text.find("\n  other process"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("HELD OUTSIDE THE ALLOCATOR: ")) << text;
  EXPECT_NE(text.find("pid 885415, this one or another"), std::string::npos) << text;
  EXPECT_NE(explanation_json(unsure, "").find("\"others_may_be_own\":true"), std::string::npos);
}

TEST(Judge, ThisProcessNamedTwiceIsOne) {
  const auto twice = explained(torch(0.5, 24, 0.1, 19, 0.2,
                                     " Process 1234 has 20.00 GiB memory in use. Including non-PyTorch memory, this "
                                     "process has 20.00 GiB memory in use."));
  EXPECT_EQ(twice.failure().own_pid, 1234) << "24 GiB cannot hold both";
  EXPECT_TRUE(twice.failure().others.empty());
  const auto two = explained(torch(0.5, 48, 0.1, 19, 0.2,
                                   " Process 1234 has 20.00 GiB memory in use. Including non-PyTorch memory, this "
                                   "process has 20.00 GiB memory in use."));
  EXPECT_EQ(two.failure().own_pid, 0);
  EXPECT_EQ(two.failure().others.size(), 1U);
  EXPECT_EQ(two.cause, Cause::outside);
}

TEST(Judge, ASmallRequestIsNotWhatIsTooBig) {
  const auto full = explained(torch(0.02, 24, 0.01, 22.9, 0.2));
  EXPECT_EQ(full.cause, Cause::full) << full.because;
  EXPECT_EQ(headline(full, ""),
            "FULL: 22.90 GiB of the device's 24.00 GiB were allocated and 10.2 MiB were free when 20.5 MiB were "
            "requested, with 204.8 MiB in the cache");
  EXPECT_NE(full.next_step.find("whether its memory grows"), std::string::npos) << full.next_step;
  EXPECT_EQ(cause_of(torch(2.39, 24, 0.5, 22, 0.2)), Cause::full);
  EXPECT_EQ(cause_of(torch(2.41, 24, 0.5, 22, 0.2)), Cause::too_big) << "a tenth of the device";
}

TEST(Judge, PinnedHostMemoryIsTheHosts) {
  const auto pinned = explained(
      "  File \"cuda_accelerator.py\", line 217, in pin_memory\n    return tensor.pin_memory()\n"
      "RuntimeError: CUDA error: out of memory\n");
  EXPECT_EQ(pinned.cause, Cause::host);
  EXPECT_EQ(pinned.failures.size(), 1U);
}

TEST(Judge, TheFiguresOfALineBesideHelp) {
  EXPECT_EQ(cause_of("the current vLLM instance can use total_gpu_memory (79.14GiB) x gpu_memory_utilization (0.25) = "
                     "19.78GiB\nValueError: No available memory for the cache blocks."),
            Cause::limit);
  EXPECT_EQ(cause_of("bfc: Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded)\n"
                     "Stats: \nLimit:  4294967296\nInUse:  1073741824\nMaxInUse: 4294967296\n"),
            Cause::fragmentation);
}

TEST(Story, AMessagePrintedTwiceIsOneFailure) {
  const std::string message = torch(4, 24, 1, 22, 0.2);
  const auto twice = explained(message + "\nTraceback\n" + message);
  EXPECT_EQ(twice.failures.size(), 1U);
  EXPECT_EQ(twice.message_count, 2U);
  EXPECT_TRUE(twice.story.empty());
}

TEST(Story, GrowthFromOneFailureToTheNextIsALeak) {
  const auto leak = explained(torch(4, 24, 3, 19, 0.2) + torch(4, 24, 2, 20.5, 0.2) + torch(4, 24, 1, 22, 0.2));
  EXPECT_EQ(leak.cause, Cause::leak) << leak.because;
  EXPECT_EQ(leak.story,
            "3 failures, the first in line 1, the last in line 3; what was allocated rose each time, from 19.00 GiB to "
            "22.00 GiB");
  const auto two = explained(torch(4, 24, 3, 19, 0.2) + torch(4, 24, 1, 22, 0.2));
  EXPECT_EQ(two.cause, Cause::too_big) << "two may be two places";
  const auto flat = explained(torch(4, 24, 1, 22, 0.2) + torch(3, 24, 1, 20, 0.2) + torch(4, 24, 1, 21, 0.2));
  EXPECT_EQ(flat.cause, Cause::too_big);
  EXPECT_NE(flat.story.find("did not grow"), std::string::npos) << flat.story;
}

TEST(Story, TheFirstThatTellsItsCauseDecides) {
  const auto both = explained("CUDA error: out of memory\n" + std::string(200, '\n') + torch(4, 24, 1, 15, 7));
  EXPECT_EQ(both.cause, Cause::fragmentation);
  EXPECT_EQ(both.decisive, 1U);
  EXPECT_EQ(both.failure().line, 202U);
}

TEST(Render, TextAndJson) {
  const auto explanation = explained(torch(1.12, 23.99, 0.85, 22.41, 0.21,
                                           " Including non-PyTorch memory, this process has 23.13 GiB memory in use."));
  EXPECT_EQ(
      headline(explanation, "train.log"),
      "train.log:1: FULL: 22.41 GiB of the device's 23.99 GiB were allocated and 870.4 MiB were free when 1.12 GiB were "
      "requested, with 215.0 MiB in the cache");
  const std::string text = explanation_text(explanation, "train.log");
  EXPECT_NE(text.find("whose fault"), std::string::npos);
  EXPECT_NE(text.find("this process"), std::string::npos);
  const std::string json = explanation_json(explanation, "train.log");
  EXPECT_NE(json.find("\"schema\":\"vramtrack.explain.v1\""), std::string::npos);
  EXPECT_NE(json.find("\"cause\":\"full\""), std::string::npos);
}

TEST(Render, ForeignBytesAreHarmless) {
  const std::string text = explanation_text(explained("CUDA error: out of memory"), "a\x1b[31m.log");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_FALSE(explain(read_messages("nothing here")));
}

}  // namespace
}  // namespace vramtrack::explain
