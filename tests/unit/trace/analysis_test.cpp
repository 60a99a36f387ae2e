// Usage, growth, replay, timeline and oom for snapshots made in place, with figures that can be checked by hand.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/format.hpp"
#include "sample.hpp"
#include "trace/assess.hpp"
#include "trace/diff.hpp"
#include "trace/labels.hpp"
#include "trace/live_set.hpp"
#include "trace/oom.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace vramtrack::trace::test {
namespace {

using ::testing::HasSubstr;

void add_event(Snapshot& s, Action action, std::uint64_t address, std::uint64_t bytes, StackId stack = kNoStack) {
  if (s.traces.empty()) s.traces.emplace_back();
  s.traces[0].events.push_back({address, bytes, kNoTime, stack, 0, action});
  ++s.traces[0].event_count;
  ++s.traces[0].counts[static_cast<std::size_t>(action)];
}

void allocate(Snapshot& s, std::uint64_t address, std::uint64_t bytes, StackId stack) {
  add_event(s, Action::alloc, address, bytes, stack);
}
void release(Snapshot& s, std::uint64_t address, std::uint64_t bytes) {
  add_event(s, Action::free_requested, address, bytes);
  add_event(s, Action::free_completed, address, bytes);
}

TEST(Usage, BySegmentByHand) {
  Snapshot s;
  // 10 live (8 requested), 6 free, 4 waiting: the free part is pinned. Then a segment that is entirely free.
  Block rounded = active(10 * kMiB);
  rounded.requested_bytes = 8 * kMiB;
  add_segment(s, 0, {rounded, inactive(6 * kMiB), pending(4 * kMiB)});
  add_segment(s, 1 << 30, {inactive(3 * kMiB), inactive(2 * kMiB)});
  const Usage u = total_usage(s);
  EXPECT_EQ(u.reserved_bytes, 25 * kMiB);
  EXPECT_EQ(u.allocated_bytes, 10 * kMiB);
  EXPECT_EQ(u.requested_bytes, 8 * kMiB);
  EXPECT_EQ(u.internal_bytes(), 2 * kMiB);
  EXPECT_EQ(u.pending_free_bytes, 4 * kMiB);
  EXPECT_EQ(u.releasable_bytes, 5 * kMiB);
  EXPECT_EQ(u.pinned_bytes, 6 * kMiB);
  EXPECT_EQ(u.largest_free_bytes, 6 * kMiB);
  EXPECT_DOUBLE_EQ(u.utilisation(), 8.0 / 25);
  EXPECT_DOUBLE_EQ(u.scatter(), 1 - 6.0 / 11);
}

TEST(Usage, ExpandableSegmentsGiveBackWholePages) {
  Snapshot s;
  // Pages of 20 MiB: [live 10 | free 10] [free 20] [free 15 | live 5]. Only the middle one is whole.
  add_segment(s, 1 << 30, {active(10 * kMiB), inactive(45 * kMiB), active(5 * kMiB)}, true);
  const Usage u = total_usage(s);
  EXPECT_EQ(u.releasable_bytes, 20 * kMiB);
  EXPECT_EQ(u.pinned_bytes, 25 * kMiB);
}

TEST(Usage, PoolsAndStreamsApart) {
  Snapshot s;
  add_segment(s, 0, {active(kMiB)});
  add_segment(s, 1 << 30, {active(3 * kMiB)});
  s.segments[1].stream = 7;
  add_segment(s, 1ULL << 31, {active(2 * kMiB)});
  s.segments[2].pool = {0, 1};
  s.segments[2].device = 1;
  const auto devices = usage_of(s);
  ASSERT_EQ(devices.size(), 2U);
  ASSERT_EQ(devices[0].pools.size(), 2U);
  EXPECT_EQ(devices[0].pools[0].stream, 7);
  EXPECT_EQ(devices[0].total.reserved_bytes, 4 * kMiB);
  EXPECT_EQ(devices[1].pools[0].pool, (PoolId{0, 1}));
  EXPECT_EQ(total_usage(s, 1).reserved_bytes, 2 * kMiB);
}

TEST(Usage, PartsAddUp) {
  rc::check("reserved is requested, internal, pending and inactive; inactive is releasable and pinned", [] {
    Snapshot s;
    const int segments = *rc::gen::inRange(0, 8);
    for (int i = 0; i < segments; ++i) {
      std::vector<Block> blocks;
      const int count = *rc::gen::inRange(1, 10);
      for (int b = 0; b < count; ++b) {
        Block block = active(static_cast<std::uint64_t>(*rc::gen::inRange(1, 30 << 20)));
        const int kind = *rc::gen::inRange(0, 3);
        if (kind == 1) block = pending(block.size_bytes);
        if (kind == 2) block = inactive(block.size_bytes);
        if (kind == 0) block.requested_bytes -= block.requested_bytes / 10;
        blocks.push_back(block);
      }
      add_segment(s, static_cast<std::uint64_t>(i) << 40, blocks, *rc::gen::arbitrary<bool>());
    }
    const Usage u = total_usage(s);
    RC_ASSERT(u.reserved_bytes == u.requested_bytes + u.internal_bytes() + u.pending_free_bytes + u.inactive_bytes);
    RC_ASSERT(u.inactive_bytes == u.releasable_bytes + u.pinned_bytes);
    RC_ASSERT(u.largest_free_bytes <= u.inactive_bytes);
  });
}

TEST(Assess, NamesTheLargestPart) {
  const auto condition = [](const std::vector<Block>& a, const std::vector<Block>& b) {
    Snapshot s;
    add_segment(s, 0, a);
    if (!b.empty()) add_segment(s, 1ULL << 40, b);
    return assess(total_usage(s), {}).condition;
  };
  EXPECT_EQ(condition({active(1000 * kMiB)}, {inactive(20 * kMiB)}), Condition::steady);
  EXPECT_EQ(condition({active(1000 * kMiB)}, {inactive(900 * kMiB)}), Condition::cache);
  EXPECT_EQ(condition({active(500 * kMiB), inactive(200 * kMiB), active(100 * kMiB), inactive(200 * kMiB)}, {}),
            Condition::fragmentation);
  EXPECT_EQ(condition({active(500 * kMiB), inactive(400 * kMiB), active(100 * kMiB)}, {}), Condition::cache)
      << "one large piece";
  EXPECT_EQ(condition({active(500 * kMiB), pending(400 * kMiB)}, {}), Condition::pending);
  AllocatorSettings expandable;
  expandable.expandable_segments = true;
  EXPECT_THAT(fragmentation_advice(expandable), HasSubstr("on already"));
  EXPECT_THAT(fragmentation_advice({}), HasSubstr("expandable_segments:True"));
}

Snapshot holding(const std::vector<std::pair<StackId, std::uint64_t>>& blocks, std::uint64_t free_bytes = 0,
                 bool is_pinned = false) {
  Snapshot s;
  std::vector<Block> all;
  for (const auto& [stack, bytes] : blocks) all.push_back(active(bytes, stack));
  if (is_pinned && free_bytes > 0) all.insert(all.begin() + 1, inactive(free_bytes));
  add_segment(s, 0, all);
  if (!is_pinned && free_bytes > 0) add_segment(s, 1ULL << 40, {inactive(free_bytes)});
  return s;
}

TEST(Profile, FramesOfCpythonAndWithoutANameTellNothing) {
  Symbols symbols;
  const auto frame = [&](std::string_view name, std::string_view file, std::uint32_t line) {
    return symbols.intern(Frame{symbols.intern(name), symbols.intern(file), line});
  };
  const std::string_view torch = "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so";
  const FrameId nameless = frame("??", torch, 68989582);
  for (const FrameId noise :
       {nameless, frame("type_call", "/usr/local/src/conda/python-3.11.5/Objects/typeobject.c", 1103),
        frame("run_mod", "./build-static/../Python/pythonrun.c", 9), frame("builtin_exec", "/usr/bin/python3.11", 7)})
    EXPECT_FALSE(is_informative(symbols, noise)) << frame_words(symbols, noise);
  const FrameId own = frame("gather", "/home/me/ext/Objects/gather.c", 3);
  const FrameId kernel = frame("at::native::add", torch, 0);
  EXPECT_TRUE(is_informative(symbols, own));
  EXPECT_TRUE(is_informative(symbols, kernel));
  EXPECT_EQ(frame_words(symbols, nameless), "libtorch_cuda.so+0x41cb28e");
  EXPECT_EQ(site_of(symbols, symbols.intern(std::vector<FrameId>{nameless, kernel})), kernel);
}

TEST(SnapshotGrowth, ALeakOverThreeSnapshotsIsNamed) {
  Symbols symbols;
  const StackId model = line(symbols, "model.py", 3);
  const StackId leak = line(symbols, "train.py", 88);
  const StackId jitter = line(symbols, "data.py", 5);
  std::vector<Snapshot> snapshots;
  for (const std::uint64_t n : {1U, 2U, 3U}) {
    std::vector<std::pair<StackId, std::uint64_t>> blocks{{model, 100 * kMiB}, {jitter, (n == 2 ? 40 : 20) * kMiB}};
    for (std::uint64_t i = 0; i < n; ++i) blocks.emplace_back(leak, 5 * kMiB);
    snapshots.push_back(holding(blocks));
  }
  const SnapshotGrowth growth = growth_of(snapshots);
  EXPECT_EQ(growth.condition, Condition::leak);
  EXPECT_TRUE(growth.is_certain);
  EXPECT_EQ(growth.leaking_bytes, static_cast<std::int64_t>(10 * kMiB));
  ASSERT_EQ(growth.sites.size(), 2U) << "the model did not change";
  EXPECT_EQ(growth.sites[0].stack, leak);
  EXPECT_EQ(growth.sites[0].growth_blocks(), 2);
  EXPECT_TRUE(growth.sites[0].grew_each_time);
  EXPECT_FALSE(growth.sites[1].grew_each_time);
  const SnapshotGrowth two = growth_of(std::span(snapshots).subspan(0, 2));
  EXPECT_EQ(two.condition, Condition::leak);
  EXPECT_FALSE(two.is_certain);
  EXPECT_THAT(two.next_step, HasSubstr("a third"));
  // A warm-up: it grew once, then stayed.
  const Snapshot warm[] = {holding({{model, 100 * kMiB}}), holding({{model, 100 * kMiB}, {leak, 50 * kMiB}}),
                           holding({{model, 100 * kMiB}, {leak, 50 * kMiB}})};
  EXPECT_EQ(growth_of(warm).condition, Condition::steady);
}

TEST(SnapshotGrowth, OneHundredthOfSharedStacksMakesTwoSnapshotsComparable) {
  Symbols symbols;
  const StackId shared = line(symbols, "library.py", 1);
  const StackId here = line(symbols, "train.py", 1);
  const StackId there = line(symbols, "serve.py", 1);
  const auto comparable = [&](std::uint64_t shared_mib) {
    const Snapshot both[] = {holding({{shared, shared_mib * kMiB}, {here, (200 - shared_mib) * kMiB}}),
                             holding({{shared, shared_mib * kMiB}, {there, (200 - shared_mib) * kMiB}})};
    return growth_of(both).is_comparable;
  };
  EXPECT_FALSE(comparable(1));
  EXPECT_TRUE(comparable(2));
  EXPECT_TRUE(comparable(10));
}

TEST(SnapshotGrowth, WithoutSharedStacksOnlyATenthOfTheOtherIsComparable) {
  Symbols symbols;
  const StackId here = line(symbols, "train.py", 1);
  const StackId there = line(symbols, "serve.py", 1);
  const auto comparable = [&](std::uint64_t first_mib, std::uint64_t last_mib) {
    const Snapshot both[] = {holding({{here, first_mib * kMiB}}), holding({{there, last_mib * kMiB}})};
    return growth_of(both).is_comparable;
  };
  EXPECT_FALSE(comparable(200, 100));
  EXPECT_FALSE(comparable(100, 200));
  EXPECT_FALSE(comparable(20, 200));
  EXPECT_TRUE(comparable(19, 200)) << "from before the program held much";
  EXPECT_TRUE(comparable(200, 19));
}

TEST(SnapshotGrowth, SegmentsThatGrewOrMovedDoNotMatter) {
  Symbols symbols;
  const StackId model = line(symbols, "model.py", 3);
  Snapshot before = holding({{model, 4 * kMiB}, {model, 4 * kMiB}});
  Snapshot after;
  add_segment(after, 0, {active(4 * kMiB, model), active(4 * kMiB, model), inactive(0)}, true);
  after.segments[0].size_bytes += 0;
  const Snapshot both[] = {before, after};
  EXPECT_TRUE(growth_of(both).sites.empty());
}

TEST(SnapshotGrowth, EveryVerdictHasItsAdvice) {
  Symbols symbols;
  const StackId model = line(symbols, "model.py", 3);
  const auto of = [&](const Snapshot& a, const Snapshot& b, std::vector<std::uint64_t> used = {}) {
    const Snapshot both[] = {a, b};
    GrowthOptions options;
    options.device_used_bytes = std::move(used);
    return growth_of(both, options);
  };
  const Snapshot base = holding({{model, 100 * kMiB}, {model, 100 * kMiB}});
  const SnapshotGrowth cache = of(base, holding({{model, 100 * kMiB}, {model, 100 * kMiB}}, 300 * kMiB));
  EXPECT_EQ(cache.condition, Condition::cache);
  const SnapshotGrowth fragmented = of(base, holding({{model, 100 * kMiB}, {model, 100 * kMiB}}, 300 * kMiB, true));
  EXPECT_EQ(fragmented.condition, Condition::fragmentation);
  Snapshot waiting = base;
  add_segment(waiting, 1ULL << 41, {pending(50 * kMiB)});
  const SnapshotGrowth behind = of(base, waiting);
  EXPECT_EQ(behind.condition, Condition::pending);
  const SnapshotGrowth outside = of(base, base, {1 << 30, 2U << 30});
  EXPECT_EQ(outside.condition, Condition::outside);
  const SnapshotGrowth steady = of(base, base, {1 << 30, 1 << 30});
  EXPECT_EQ(steady.condition, Condition::steady);
  const SnapshotGrowth leak = of(base, holding({{model, 100 * kMiB}, {model, 100 * kMiB}, {model, 100 * kMiB}}));
  EXPECT_EQ(leak.condition, Condition::leak);
  const std::string steps[] = {cache.next_step, fragmented.next_step, behind.next_step, outside.next_step,
                               leak.next_step};
  for (std::size_t i = 0; i < std::size(steps); ++i) {
    EXPECT_FALSE(steps[i].empty());
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(steps[i], steps[j]);
  }
}

TEST(SnapshotGrowth, IsAntisymmetric) {
  rc::check("what grows from a to b shrinks from b to a", [] {
    Symbols symbols;
    const auto some = [&] {
      std::vector<std::pair<StackId, std::uint64_t>> blocks;
      const int count = *rc::gen::inRange(1, 12);
      for (int i = 0; i < count; ++i)
        blocks.emplace_back(line(symbols, "a.py", static_cast<std::uint32_t>(*rc::gen::inRange(0, 5))),
                            static_cast<std::uint64_t>(*rc::gen::inRange(1, 9)) << 20);
      return holding(blocks);
    };
    const Snapshot ab[] = {some(), some()};
    const Snapshot ba[] = {ab[1], ab[0]};
    std::map<StackId, std::int64_t> sum;
    for (const SiteGrowth& site : growth_of(ab).sites) sum[site.stack] += site.growth_bytes();
    for (const SiteGrowth& site : growth_of(ba).sites) sum[site.stack] += site.growth_bytes();
    for (const auto& [stack, bytes] : sum) RC_ASSERT(bytes == 0);
  });
}

TEST(LiveSet, IsAMap) {
  rc::check("as std::map does", [] {
    LiveSet set;
    std::map<std::uint64_t, std::uint64_t> model;
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 400))) {
      const auto address = static_cast<std::uint64_t>(step / 2) * 512;
      if (step % 2 == 0) {
        set.put(address, static_cast<std::uint64_t>(step), kNoStack, false);
        model[address] = static_cast<std::uint64_t>(step);
      } else {
        set.erase(address);
        model.erase(address);
      }
      RC_ASSERT(set.size() == model.size());
    }
    for (std::uint64_t address = 0; address < 200 * 512; address += 512) {
      const LiveSet::Held* const held = set.find(address);
      RC_ASSERT((held != nullptr) == model.contains(address));
      if (held != nullptr) RC_ASSERT(held->bytes == model[address]);
    }
  });
}

/// A random history of one device; the trace contains only its end.
TEST(Replay, TheLiveSetFromTheBlocksIsThatOfTheWholeHistory) {
  rc::check("begin and end of the replay are what really was live", [] {
    Symbols symbols;
    struct Live {
      std::uint64_t bytes;
      StackId stack;
      bool is_pending;
    };
    std::map<std::uint64_t, Live> live;
    std::vector<AllocEvent> history;
    std::vector<std::int64_t> live_after;
    const auto total = [&] {
      std::int64_t sum = 0;
      for (const auto& [address, block] : live)
        if (!block.is_pending) sum += static_cast<std::int64_t>(block.bytes);
      return sum;
    };
    live_after.push_back(0);
    const int length = *rc::gen::inRange(0, 200);
    for (int i = 0; i < length; ++i) {
      const auto slot = static_cast<std::uint64_t>(*rc::gen::inRange(1, 20)) << 20;
      const auto known = live.find(slot);
      if (known == live.end()) {
        const auto bytes = static_cast<std::uint64_t>(*rc::gen::inRange(1, 1 << 20));
        const StackId stack = line(symbols, "a.py", static_cast<std::uint32_t>(bytes % 4 + 1));
        live[slot] = {bytes, stack, false};
        history.push_back({slot, bytes, kNoTime, stack, 0, Action::alloc});
      } else if (!known->second.is_pending) {
        known->second.is_pending = true;
        history.push_back({slot, known->second.bytes, kNoTime, kNoStack, 0, Action::free_requested});
      } else {
        history.push_back({slot, known->second.bytes, kNoTime, kNoStack, 0, Action::free_completed});
        live.erase(known);
      }
      live_after.push_back(total());
    }
    const auto cut = static_cast<std::size_t>(*rc::gen::inRange(0, length + 1));
    Snapshot s;
    std::vector<Block> blocks;
    s.traces.emplace_back();
    for (std::size_t i = cut; i < history.size(); ++i)
      add_event(s, history[i].action, history[i].address, history[i].size_bytes, history[i].stack);
    for (const auto& [address, block] : live) {
      Segment segment;
      segment.address = address;
      segment.size_bytes = 1 << 20;
      segment.first_block = s.blocks.size();
      segment.block_count = 1;
      s.blocks.push_back({address, 1 << 20, block.bytes, block.stack,
                          block.is_pending ? BlockState::pending_free : BlockState::active});
      s.segments.push_back(segment);
    }
    const Replay replay(s, 0, symbols);
    RC_ASSERT(replay.mismatch_count() == 0U);
    RC_ASSERT(replay.begin().live_bytes == live_after[cut]);
    std::size_t at = cut;
    replay.run(
        [&](const AllocEvent&, const Change&, const Moment& now) { RC_ASSERT(now.live_bytes == live_after[++at]); });
    // And by stack, at the end: the blocks' stacks, if the trace saw them.
    if (history.size() > cut) {
      const std::uint64_t last[] = {history.size() - cut - 1};
      std::int64_t sum = 0;
      const Profile at_end = profiles_at(replay, last).front();
      for (const StackBytes& held : at_end) sum += held.bytes;
      RC_ASSERT(sum == live_after.back());
      if (cut == 0) RC_ASSERT(at_end.size() == live_profile(s).size());
    }
  });
}

TEST(Timeline, PeaksAreExplained) {
  Symbols symbols;
  const StackId weights = line(symbols, "model.py", 1);
  const StackId activations = line(symbols, "model.py", 2);
  Snapshot s;
  add_segment(s, 0, {active(10 * kMiB, weights)});
  allocate(s, 0, 10 * kMiB, weights);
  for (const std::uint64_t size : {5U, 9U, 7U}) {
    allocate(s, 1 << 30, size * kMiB, activations);
    release(s, 1 << 30, size * kMiB);
  }
  const Timeline t = timeline_of(s, 0, symbols);
  EXPECT_EQ(t.begin.live_bytes, 0);
  EXPECT_EQ(t.end.live_bytes, static_cast<std::int64_t>(10 * kMiB));
  ASSERT_EQ(t.peaks.size(), 3U);
  EXPECT_EQ(t.peaks[0].at.live_bytes, static_cast<std::int64_t>(19 * kMiB));
  EXPECT_EQ(t.peaks[0].at.event, 4U);
  ASSERT_EQ(t.peaks[0].sites.size(), 2U);
  EXPECT_EQ(t.peaks[0].sites[1].stack, activations);
  EXPECT_EQ(t.peaks[0].sites[1].bytes, static_cast<std::int64_t>(9 * kMiB));
  EXPECT_EQ(t.sites.front(), weights);
}

/// Three iterations that each keep `kept` and use 40 MiB for a while, then an allocation that fails.
OomReport fails(Symbols& symbols, std::uint64_t kept, std::uint64_t asked, std::uint64_t cached,
                std::uint64_t pending_bytes = 0, std::optional<std::uint64_t> capacity = {}) {
  const StackId leak = line(symbols, "train.py", 88);
  const StackId work = line(symbols, "model.py", 2);
  Snapshot s;
  std::uint64_t next = 1ULL << 32;
  std::vector<Block> blocks{active(200 * kMiB, line(symbols, "model.py", 1))};
  std::vector<std::uint64_t> keepers;
  for (int i = 0; i < 6; ++i) {
    if (kept > 0) {
      allocate(s, next, kept, leak);
      keepers.push_back(next);
      next += 1ULL << 30;
    }
    allocate(s, 1ULL << 31, 400 * kMiB, work);
    release(s, 1ULL << 31, 400 * kMiB);
  }
  if (pending_bytes > 0) {
    allocate(s, 1ULL << 50, pending_bytes, work);
    add_event(s, Action::free_requested, 1ULL << 50, pending_bytes);
  }
  add_event(s, Action::oom, kMiB, asked);
  add_segment(s, 0, blocks);
  for (const std::uint64_t at : keepers) add_segment(s, at, {active(kept, leak)});
  if (pending_bytes > 0) add_segment(s, 1ULL << 50, {pending(pending_bytes)});
  if (cached > 0) add_segment(s, 1ULL << 51, {inactive(cached)});
  return oom_of(s, 0, symbols, capacity);
}

TEST(Oom, EveryVerdict) {
  Symbols symbols;
  const OomReport leak = fails(symbols, 60 * kMiB, 100 * kMiB, 0);
  EXPECT_EQ(leak.condition, Condition::leak) << leak.because;
  ASSERT_FALSE(leak.risers.empty());
  EXPECT_EQ(symbols.frame(symbols.stack(leak.risers[0].stack)[0]).line, 88U);
  EXPECT_EQ(fails(symbols, 0, 100 * kMiB, 300 * kMiB).condition, Condition::fragmentation);
  EXPECT_EQ(fails(symbols, 0, 100 * kMiB, 0, 150 * kMiB).condition, Condition::pending);
  const OomReport big = fails(symbols, 0, 5000 * kMiB, 10 * kMiB);
  EXPECT_EQ(big.condition, Condition::too_big);
  EXPECT_EQ(fails(symbols, 0, 10 * kMiB, 5 * kMiB).condition, Condition::full) << "less than nine tenths of 200 MiB";
  EXPECT_EQ(big.cached_bytes, 10 * kMiB);
  EXPECT_EQ(big.device_free_bytes, kMiB);
  EXPECT_FALSE(big.outside_bytes);
  const OomReport outside = fails(symbols, 0, 100 * kMiB, 0, 0, 8ULL << 30);
  EXPECT_EQ(outside.condition, Condition::outside) << outside.because;
  EXPECT_EQ(*outside.outside_bytes, (8ULL << 30) - 201 * kMiB);
}

/// `steps` steps that each use `work` for a while and keep the amount from `kept`; then one that fails.
Condition after_steps(int steps, std::uint64_t work, const std::function<std::uint64_t(int)>& kept) {
  Symbols symbols;
  Snapshot s;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keepers;
  std::uint64_t next = 1ULL << 40;
  for (int i = 0; i < steps; ++i) {
    allocate(s, 1ULL << 38, work, line(symbols, "model.py", 2));
    if (const std::uint64_t bytes = kept(i); bytes > 0) {
      allocate(s, next, bytes, line(symbols, "train.py", 88));
      keepers.emplace_back(next, bytes);
      next += 1ULL << 38;
    }
    release(s, 1ULL << 38, work);
  }
  add_event(s, Action::oom, kMiB, 10 * kMiB);
  add_segment(s, 0, {active(2000 * kMiB, line(symbols, "model.py", 1))});
  for (const auto& [at, bytes] : keepers) add_segment(s, at, {active(bytes, line(symbols, "train.py", 88))});
  return oom_of(s, 0, symbols, {}).condition;
}

TEST(Oom, ALeakFarAboveWhatAStepUsesIsALeak) {
  EXPECT_EQ(after_steps(60, 500 * kMiB, [](int) { return 100 * kMiB; }), Condition::leak);
  EXPECT_EQ(after_steps(14, 500 * kMiB, [](int) { return 400 * kMiB; }), Condition::leak);
}

TEST(Oom, ALeakOfEverySecondStepIsALeakAndAWarmUpIsNone) {
  EXPECT_EQ(after_steps(10, 3000 * kMiB, [](int i) { return i % 2 == 0 ? 800 * kMiB : 0; }), Condition::leak);
  EXPECT_EQ(after_steps(12, 3000 * kMiB, [](int i) { return i == 0 ? 4000 * kMiB : 0; }), Condition::full);
  EXPECT_EQ(after_steps(12, 3000 * kMiB, [](int i) { return i < 4 ? 1000 * kMiB : 0; }), Condition::full);
}

TEST(Oom, WhatOneForwardPassKeepsIsNoLeak) {
  // Layers that each keep 10 GiB for the backward pass and use 2 GiB for a while.
  EXPECT_EQ(after_steps(8, 2048 * kMiB, [](int) { return 10240 * kMiB; }), Condition::full);
}

TEST(Oom, AStepThatKeepsMoreThanItGivesBackIsALeakOnceThereWereMany) {
  EXPECT_EQ(after_steps(40, 100 * kMiB, [](int) { return 400 * kMiB; }), Condition::leak);
}

/// A stack with line `number` of train.py as its outermost frame, which continues into PyTorch's `file`.
StackId inside(Symbols& symbols, const std::string& file, std::uint32_t number) {
  const StringId f = symbols.intern("f");
  return stack_of(symbols, {{symbols.intern("forward"), symbols.intern("model.py"), 20},
                            {f, symbols.intern("/usr/lib/python3/site-packages/torch/" + file), 7},
                            {f, symbols.intern("train.py"), number}});
}

/// `rounds` rounds that each allocate 1 MiB at train.py:50, then create `layers` layers that keep 10 MiB each below
/// train.py:51 and use as much for a while.
OomReport after_layers(Symbols& symbols, const std::string& file, int rounds, int layers, bool has_oom = true) {
  const StackId layer = inside(symbols, file, 51);
  const StackId batch = line(symbols, "train.py", 50);
  Snapshot s;
  std::uint64_t next = 1ULL << 40;
  for (int i = 0; i < rounds; ++i) {
    allocate(s, 1ULL << 39, kMiB, batch);
    for (int l = 0; l < layers; ++l) {
      allocate(s, 1ULL << 38, 11 * kMiB, layer);
      allocate(s, next, 10 * kMiB, layer);
      release(s, 1ULL << 38, 11 * kMiB);
      add_segment(s, next, {active(10 * kMiB, layer)});
      next += 1ULL << 32;
    }
    release(s, 1ULL << 39, kMiB);
  }
  if (has_oom) add_event(s, Action::oom, kMiB, 20 * kMiB);
  return oom_of(s, 0, symbols);
}

TEST(Oom, LayersWithinOneCallAreNoIterations) {
  Symbols symbols;
  for (const char* const file : {"nn/modules/module.py", "optim/optimizer.py"}) {
    EXPECT_EQ(after_layers(symbols, file, 1, 60).condition, Condition::full) << file;
    EXPECT_EQ(after_layers(symbols, file, 2, 60).condition, Condition::full) << file;
    EXPECT_EQ(after_layers(symbols, file, 30, 2).condition, Condition::leak) << file << ": what each step keeps";
  }
}

TEST(Oom, WithoutOneNothingIsCalledALeak) {
  Symbols symbols;
  const OomReport report = after_layers(symbols, "nn/modules/module.py", 30, 2, false);
  EXPECT_EQ(report.condition, Condition::steady);
  EXPECT_THAT(report.because, HasSubstr("no oom entry"));
  EXPECT_THAT(report.because, HasSubstr("1 site kept rising"));
  EXPECT_THAT(report.next_step, HasSubstr("vramtrack snapshot leaks"));
}

/// A holder of 700 MiB requests `asked` while the device has `free` bytes.
OomReport refused(std::uint64_t asked, std::uint64_t free, std::optional<OomNote> note = {},
                  std::optional<std::uint64_t> capacity = {}) {
  Symbols symbols;
  Snapshot s;
  add_segment(s, 1ULL << 32, {active(700 * kMiB)});
  allocate(s, 1ULL << 32, 700 * kMiB, kNoStack);
  if (!note) add_event(s, Action::oom, free, asked);
  s.oom = note;
  return oom_of(s, 0, symbols, capacity);
}

TEST(Oom, WhereTheDeviceHadRoomALimitStoppedIt) {
  const OomReport limit = refused(200 * kMiB, 7000 * kMiB, {}, 8192 * kMiB);
  EXPECT_EQ(limit.condition, Condition::limit);
  EXPECT_EQ(limit.limit->least_bytes, 700 * kMiB);
  EXPECT_EQ(limit.limit->most_bytes, 900 * kMiB);
  EXPECT_THAT(limit.because, HasSubstr("between 700.0 MiB and 900.0 MiB (8.5 % to 11.0 %"));
  EXPECT_EQ(refused(200 * kMiB, 190 * kMiB).condition, Condition::full);
  EXPECT_EQ(refused(200 * kMiB, 210 * kMiB).condition, Condition::full) << "drivers keep a little";
  EXPECT_EQ(refused(kMiB / 2, 40 * kMiB).condition, Condition::limit) << "small ones come in segments of 2 MiB";
  EXPECT_EQ(refused(kMiB * 2, 40 * kMiB).condition, Condition::full) << "and these in segments of 20 MiB";
}

TEST(Oom, WhatTheProgramNotedIsTakenWhereTheTraceHasNone) {
  const OomReport limit = refused(0, 0, OomNote{0, 200 * kMiB, 7000 * kMiB, 8192 * kMiB, 819 * kMiB});
  EXPECT_TRUE(limit.has_oom);
  EXPECT_EQ(limit.condition, Condition::limit);
  EXPECT_THAT(limit.because, HasSubstr("at 819.0 MiB (10.0 % of the device)"));
  const OomReport outside = refused(0, 0, OomNote{0, 400 * kMiB, 300 * kMiB, 8192 * kMiB, 8192 * kMiB});
  EXPECT_EQ(outside.condition, Condition::outside);
  EXPECT_THAT(outside.because, HasSubstr("7.0 GiB of the device's 8.0 GiB (87.8 %)"));
  EXPECT_FALSE(refused(0, 0, OomNote{1, 400 * kMiB, 300 * kMiB, {}, {}}).has_oom) << "of another device";
}

TEST(Oom, WithoutATraceTheBlocksTell) {
  Symbols symbols;
  Snapshot s;
  const StackId site = line(symbols, "model.py", 2);
  add_segment(s, 1ULL << 32, {active(700 * kMiB, site), inactive(300 * kMiB), active(10 * kMiB, site)});
  OomReport report = oom_of(s, 0, symbols);
  EXPECT_FALSE(report.has_trace);
  EXPECT_EQ(report.condition, Condition::steady);
  EXPECT_EQ(report.at.live_bytes, static_cast<std::int64_t>(710 * kMiB));
  ASSERT_EQ(report.sites.size(), 1U);
  s.oom = OomNote{0, 300 * kMiB, kMiB, {}, {}};
  report = oom_of(s, 0, symbols);
  EXPECT_EQ(report.condition, Condition::fragmentation) << report.because;
  EXPECT_EQ(report.cached_bytes, 300 * kMiB);
}

TEST(Labels, OfTheBlocksAndOfAMomentOfTheTrace) {
  Symbols symbols;
  const StackId site = line(symbols, "train.py", 5);
  Snapshot s;
  Origin step;
  step.metadata = symbols.intern("step 1");
  Origin graph;
  graph.pool = {2, 0};
  Origin note;
  note.metadata = symbols.intern("kept");
  const auto event = [&](Action action, std::uint64_t address, const Origin& origin) {
    add_event(s, action, address, 5 * kMiB, site);
    AllocEvent last = s.traces[0].events.back();
    last.origin = s.origins.intern(origin) & kOriginMask;
    Paged<AllocEvent> all;
    for (std::size_t i = 0; i + 1 < s.traces[0].events.size(); ++i) all.push_back(s.traces[0].events[i]);
    all.push_back(last);
    s.traces[0].events = all;
  };
  event(Action::alloc, 1ULL << 30, step);
  event(Action::alloc, 2ULL << 30, graph);
  event(Action::annotate, 2ULL << 30, note);
  event(Action::free_requested, 1 << 30, {});
  const auto words = [&](const Labels& labels) {
    std::string out;
    for (const LabelBytes& label : labels.of(site))
      out += label_words(symbols, label) + " " + std::to_string(label.bytes / static_cast<std::int64_t>(kMiB)) + "; ";
    return out;
  };
  EXPECT_EQ(words(labels_at(s, 0, 0)), "step 1 5; ");
  EXPECT_EQ(words(labels_at(s, 0, 2)), "step 1 5; kept 5; CUDA graph 2 5; ");
  EXPECT_EQ(words(labels_at(s, 0, 3)), "kept 5; CUDA graph 2 5; ");
  add_segment(s, 2ULL << 30, {active(5 * kMiB, site)});
  s.segments[0].pool = {0, 7};
  s.blocks[0].origin = s.origins.intern(step) & kOriginMask;
  s.block_annotations.push_back({0, note.metadata});
  EXPECT_EQ(words(labels_of(s)), "step 1 5; kept 5; pool 0.7 5; ");
  EXPECT_EQ(words(labels_of(s, 1)), "");
}

TEST(Assess, TheCacheOfPrivatePoolsIsNotGivenBackByEmptyCache) {
  Snapshot s;
  add_segment(s, 0, {active(100 * kMiB)});
  add_segment(s, 1ULL << 40, {inactive(900 * kMiB)});
  s.segments[1].pool = {1, 0};
  EXPECT_EQ(total_usage(s).private_releasable_bytes, 900 * kMiB);
  EXPECT_THAT(assess(total_usage(s), {}).because, HasSubstr("the cache of private pools"));
}

TEST(Oom, MemoryThatMovesFromSiteToSiteIsNoLeak) {
  // An optimizer that rebuilds its state: its memory from before the trace is released as the new state is allocated.
  Symbols symbols;
  Snapshot s;
  for (std::uint64_t i = 0; i < 8; ++i) {
    allocate(s, 1ULL << 38, 3000 * kMiB, line(symbols, "model.py", 2));
    allocate(s, (1ULL << 40) + (i << 32), 500 * kMiB, line(symbols, "optimizer.py", 75));
    release(s, (1ULL << 41) + (i << 32), 500 * kMiB);
    release(s, 1ULL << 38, 3000 * kMiB);
  }
  add_event(s, Action::oom, kMiB, 10 * kMiB);
  for (std::uint64_t i = 0; i < 8; ++i)
    add_segment(s, (1ULL << 40) + (i << 32), {active(500 * kMiB, line(symbols, "optimizer.py", 75))});
  EXPECT_EQ(oom_of(s, 0, symbols, {}).condition, Condition::full);
}

TEST(Oom, RoundingIsNoFragmentation) {
  Symbols symbols;
  const StackId site = line(symbols, "model.py", 2);
  Snapshot s;
  // Each of 100 blocks of 20 MiB holds 12: 800 MiB are unusable.
  std::vector<Block> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(active(20 * kMiB, site));
    blocks.back().requested_bytes = 12 * kMiB;
    allocate(s, (1ULL << 32) + static_cast<std::uint64_t>(i) * 20 * kMiB, 12 * kMiB, site);
  }
  add_event(s, Action::oom, kMiB, 500 * kMiB);
  add_segment(s, 1ULL << 32, blocks);
  const OomReport report = oom_of(s, 0, symbols);
  EXPECT_EQ(report.rounding_bytes, 800 * kMiB);
  EXPECT_EQ(report.cached_bytes, 0U);
  EXPECT_EQ(report.condition, Condition::full) << report.because;
  EXPECT_THAT(report.because, HasSubstr("800.0 MiB are lost to rounding"));
}

TEST(Oom, WithoutOneItSaysSo) {
  Symbols symbols;
  Snapshot s;
  add_segment(s, 0, {active(kMiB)});
  allocate(s, 0, kMiB, line(symbols, "a.py", 1));
  const OomReport report = oom_of(s, 0, symbols);
  EXPECT_FALSE(report.has_oom);
  EXPECT_EQ(report.condition, Condition::steady);
  EXPECT_THAT(report.because, HasSubstr("no oom entry"));
}

TEST(LiveSet, AddressesChosenToCollideDoNot) {
  // Values that a known multiplier maps to one place: 400,000 of them would take quadratic time.
  std::uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - 0x9e3779b97f4a7c15ULL * inverse;
  LiveSet live;
  for (std::uint64_t i = 1; i <= 400'000; ++i) live.put((i << 44) * inverse, i, kNoStack, false);
  EXPECT_EQ(live.size(), 400'000U);
  for (std::uint64_t i = 1; i <= 400'000; ++i) live.erase((i << 44) * inverse);
  EXPECT_EQ(live.size(), 0U);
}

}  // namespace
}  // namespace vramtrack::trace::test
