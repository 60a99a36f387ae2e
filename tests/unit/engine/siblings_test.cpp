// Ranks and replicas of one job, each on its own GPU: the others decide cases that one series cannot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../at.hpp"
#include "engine/engine.hpp"
#include "engine/sibling_groups.hpp"
#include "engine/sibling_summary.hpp"
#include "told.hpp"

namespace vramtrack {
namespace {

constexpr double kGiB = 1024.0 * 1048576;
constexpr double kMiB = 1048576;
using Shape = std::function<double(double)>;

/// A rank: its memory by age, when it begins and ends, and its command.
struct Rank {
  Shape bytes;
  double begin_s = 0;
  double end_s = 1e18;
  std::string command = "python app.py --local-rank=";
  std::string host;
  std::string user = "ada";
  double again_s = 1e18;  ///< from here on the same process is there again, as in a container that is restarted
};

struct Scene {
  explicit Scene(std::vector<Rank> of) : ranks(std::move(of)) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      DeviceInfo device;
      device.id = "GPU-" + std::to_string(i);
      device.index = static_cast<int>(i);
      device.capacity_bytes = static_cast<std::uint64_t>(80 * kGiB);
      device.host = ranks[i].host;
      catalog->describe(device);
      ProcessInfo info;
      info.pid = static_cast<std::uint32_t>(100 + i);
      info.start_ticks = 1000 + i;
      info.command = ranks[i].command + std::to_string(i);
      info.user = ranks[i].user;
      info.host = ranks[i].host;
      catalog->describe(info);
      used.push_back(catalog->intern({Metric::device_used, device.id, 0, 0, ranks[i].host}));
      held.push_back(catalog->intern({Metric::process_used, device.id, info.pid, info.start_ticks, ranks[i].host}));
    }
    played = begin(catalog);
  }

  void run(double until_s, double period_s = 20, bool backwards = false) {
    for (double t = now_s; t <= until_s; t += period_s, now_s = t) {
      Batch batch;
      std::vector<Sample> samples;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Rank& rank = ranks[i];
        const bool runs = (t >= rank.begin_s && t < rank.end_s) || t >= rank.again_s;
        const double bytes = runs ? std::max(0.0, rank.bytes(t - rank.begin_s)) : 0;
        samples.push_back({at(t), used[i], static_cast<std::uint64_t>(bytes + 0.5 * kGiB)});
        if (runs) samples.push_back({at(t), held[i], static_cast<std::uint64_t>(bytes)});
        if (t >= rank.end_s && ended.insert(i).second) {
          Event end;
          end.time = at(t);
          end.kind = Event::Kind::process_ended;
          end.pid = static_cast<std::uint32_t>(100 + i);
          end.pid_start_ticks = 1000 + i;
          end.host = rank.host;
          batch.events.push_back(end);
        }
      }
      if (backwards) std::reverse(samples.begin(), samples.end());
      batch.samples = samples;
      feed(played, batch);
      const auto view = played.engine->view();
      for (const SeriesView& s : view->series)
        if (s.verdict.finding.leak) told_s.try_emplace(s.id, t);
    }
  }

  /// The time at which it was first shown as a leak.
  [[nodiscard]] std::optional<double> raised_s(std::size_t rank) const {
    const auto found = told_s.find(held[rank]);
    return found == told_s.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] SeriesView seen(std::size_t rank) const {
    const auto view = played.engine->view();
    return *std::find_if(view->series.begin(), view->series.end(), [&](const auto& s) { return s.id == held[rank]; });
  }
  [[nodiscard]] std::size_t alerts() const {
    return static_cast<std::size_t>(std::count_if(played.told->begin(), played.told->end(), [](const auto& telling) {
      return telling.change.news == AlertNews::raised;
    }));
  }

  std::vector<Rank> ranks;
  std::shared_ptr<Catalog> catalog = std::make_shared<Catalog>();
  std::vector<SeriesId> used;
  std::vector<SeriesId> held;
  std::set<std::size_t> ended;
  std::map<SeriesId, double> told_s;
  Played played;
  double now_s = 0;
};

/// A little noise, different for each rank: steady() at 30 GiB.
double noise(double t, int rank) {
  return 8 * kMiB * std::sin(t * (0.7 + 0.013 * rank) + rank);
}
Shape steady(int rank = 0) {
  return [rank](double t) { return 30 * kGiB + noise(t, rank); };
}
/// A leak from its start on, which may be a ramp as well.
Shape leak(double mib_per_min, int rank = 0) {
  return [=](double t) { return 30 * kGiB + mib_per_min / 60 * t * kMiB + noise(t, rank); };
}
/// Straight up for an hour: a judge without siblings raises an alert.
Shape warm_up(int rank = 0) {
  return [rank](double t) { return 2 * kGiB + std::min(1.0, t / 3600) * 50 * kGiB + noise(t, rank); };
}

std::vector<Rank> job(int ranks, const std::function<Shape(int)>& shape) {
  std::vector<Rank> all;
  for (int i = 0; i < ranks; ++i) all.push_back({shape(i)});
  return all;
}

TEST(Siblings, OneOfEightThatLeaksIsConfirmedSoonerThanAlone) {
  Scene alone({{leak(180)}});
  alone.run(4800);
  Scene together(job(8, [](int i) { return i == 3 ? leak(180) : steady(i); }));
  together.run(4800);
  ASSERT_TRUE(alone.raised_s(0));
  ASSERT_TRUE(together.raised_s(3));
  EXPECT_LT(*together.raised_s(3), 0.85 * *alone.raised_s(0));
  for (std::size_t i = 0; i < 8; ++i)
    if (i != 3) {
      EXPECT_FALSE(together.raised_s(i));
    }
  EXPECT_NE(together.seen(3).verdict.finding.because.find("all 7 siblings show no growth"), std::string::npos)
      << together.seen(3).verdict.finding.because;
}

TEST(Siblings, ThatStandStillSayThatARiseIsNoMorning) {
  Scene alone({{leak(60)}});  // memory ends in 14 hours
  alone.run(4800);
  Scene together(job(4, [](int i) { return i == 3 ? leak(60) : steady(i); }));
  together.run(4800);
  EXPECT_FALSE(alone.raised_s(0));
  EXPECT_EQ(alone.seen(0).verdict.finding.stage, Stage::suspected);
  EXPECT_TRUE(together.raised_s(3));
}

TEST(Siblings, ThatAllLeakIsALeakAsAlone) {
  Scene alone({{leak(180)}});
  alone.run(4800);
  Scene together(job(8, [](int) { return leak(180); }));
  together.run(4800);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(together.raised_s(i), alone.raised_s(0)) << i;
  EXPECT_NE(together.seen(0).verdict.finding.because.find("all 7 siblings rise, too"), std::string::npos)
      << together.seen(0).verdict.finding.because;
}

TEST(Siblings, RanksThatLeakAreOneIncidentAndPeopleAreToldOnce) {
  const auto told_of = [](std::vector<Rank> ranks) {
    Scene scene(std::move(ranks));
    scene.run(9000);
    EXPECT_GE(scene.alerts(), 4U);
    std::set<std::string> incidents;
    std::size_t told = 0;
    for (const auto& telling : *scene.played.told) {
      incidents.insert(telling.change.incident.id);
      if (telling.change.incident.news == AlertNews::raised) ++told;
    }
    return std::pair(incidents.size(), told);
  };
  EXPECT_EQ(told_of(job(4, [](int i) { return leak(600, i); })), std::pair(std::size_t{1}, std::size_t{1}));
  std::vector<Rank> strangers = job(4, [](int i) { return leak(600, i); });
  for (std::size_t i = 0; i < strangers.size(); ++i) strangers[i].user = "user" + std::to_string(i);
  EXPECT_EQ(told_of(strangers), std::pair(std::size_t{4}, std::size_t{4}));
}

TEST(Siblings, ARiseThatTheOthersMadeAndEndedIsAWarmUp) {
  Scene alone({{warm_up(), 0}});
  alone.run(3500);
  ASSERT_TRUE(alone.raised_s(0)) << "the ramp must be one that alarms for a stranger";
  std::vector<Rank> replicas = job(8, [](int i) { return warm_up(i); });
  replicas[5].begin_s = 5400;  // restarted, while the others serve
  Scene together(replicas);
  together.run(5300);
  const std::size_t before = together.alerts();
  together.run(8400);
  EXPECT_NE(together.seen(5).verdict.finding.because.find("all 7 siblings rose in the same way and then stopped"),
            std::string::npos)
      << together.seen(5).verdict.finding.because;
  EXPECT_EQ(together.seen(5).verdict.finding.stage, Stage::none);
  together.run(10800);
  EXPECT_FALSE(together.raised_s(5));
  EXPECT_EQ(together.alerts(), before);
}

TEST(Siblings, AllThatWarmUpTogetherAreSilent) {
  // Each one begins a little later than the previous one: the last ones see the others stand still once they are done.
  for (const double minutes : {4.0, 8.0, 20.0}) {
    std::vector<Rank> ranks = job(8, [&](int i) -> Shape {
      return [=](double t) { return 2 * kGiB + 30 * kGiB * (1 - std::exp(-t / (20 * minutes))) + noise(t, i); };
    });
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].begin_s = 15.0 * static_cast<double>(i);
    Scene together(ranks);
    together.run(4800);
    EXPECT_EQ(together.alerts(), 0U) << minutes;
  }
}

TEST(Siblings, ALeakBehindAWarmUpOfAllIsFound) {
  std::vector<Rank> replicas = job(8, [](int i) { return warm_up(i); });
  replicas[5].bytes = [](double t) { return warm_up(5)(t) + std::max(0.0, t - 5400) * 2 * kMiB; };
  Scene together(replicas);
  together.run(10800);
  ASSERT_TRUE(together.raised_s(5));
  const SeriesView seen = together.seen(5);
  EXPECT_EQ(seen.alerts.back().ended, AlertEnd::standing);
}

TEST(Siblings, OtherProgramsUsersAndJobsDoNotCount) {
  Scene alone({{leak(180)}});
  alone.run(4800);
  std::vector<Rank> mixed = job(8, [](int i) { return i == 0 ? leak(180) : steady(i); });
  for (std::size_t i = 1; i < 8; ++i) {
    if (i % 2 == 0)
      mixed[i].command = "python serve.py --port ";
    else
      mixed[i].user = "bob";
  }
  Scene among(mixed);
  among.run(4800);
  EXPECT_EQ(among.raised_s(0), alone.raised_s(0));
  EXPECT_EQ(among.seen(0).verdict.finding.because.find("sibling"), std::string::npos);
}

TEST(Siblings, WhoHoldsMuchLessDoesSomethingElse) {
  Scene alone({{leak(180)}});
  alone.run(4800);
  Scene among(job(8, [](int i) -> Shape {
    if (i == 0) return leak(180);
    return [](double) { return 0.5 * kGiB; };  // a context, and no more
  }));
  among.run(4800);
  EXPECT_EQ(among.raised_s(0), alone.raised_s(0));
}

TEST(Siblings, RanksThatHaveEndedOrAreNotSeenAnyMoreDoNotCount) {
  Scene alone({{leak(180)}});
  alone.run(4800);
  std::vector<Rank> short_lived = job(4, [](int i) { return i == 0 ? leak(180) : steady(i); });
  for (std::size_t i = 1; i < 4; ++i) short_lived[i].end_s = 200;
  Scene ends(short_lived);
  ends.run(4800);
  EXPECT_EQ(ends.raised_s(0), alone.raised_s(0));
  EXPECT_EQ(ends.seen(0).verdict.finding.because.find("sibling"), std::string::npos);
  // One of eight ends: the others are still compared.
  std::vector<Rank> one_ends = job(8, [](int i) { return i == 0 ? leak(180) : steady(i); });
  one_ends[7].end_s = 1000;
  Scene goes_on(one_ends);
  goes_on.run(4800);
  EXPECT_LT(*goes_on.raised_s(0), *alone.raised_s(0));
  EXPECT_NE(goes_on.seen(0).verdict.finding.because.find("all 6 siblings show no growth"), std::string::npos);
}

TEST(Siblings, RanksOfOtherHostsInOneRecordingCount) {
  std::vector<Rank> fleet = job(8, [](int i) { return i == 3 ? leak(180) : steady(i); });
  for (std::size_t i = 0; i < 8; ++i) fleet[i].host = i < 4 ? "node-a" : "node-b";
  Scene together(fleet);
  together.run(3600);
  EXPECT_NE(together.seen(3).verdict.finding.because.find("all 7 siblings show no growth"), std::string::npos)
      << together.seen(3).verdict.finding.because;
}

TEST(Siblings, RanksThatAnotherEngineWatchesCountAsIfTheyWereHere) {
  const auto hash = [](const std::string& name) { return std::to_string(std::hash<std::string>{}(name)); };
  Scene all(job(4, [](int i) { return i == 0 ? leak(180) : steady(i); }));
  Scene here({{leak(180)}});
  std::vector<Rank> others = job(3, [](int i) { return steady(i + 1); });
  for (Rank& rank : others) rank.host = "node-b";
  Scene there(others);
  here.played.engine->share_siblings(hash);
  there.played.engine->share_siblings(hash);
  for (double t = 0; t <= 4800; t += 20) {
    all.run(t);
    there.run(t);
    here.run(t);
    const auto told = there.played.engine->siblings();
    for (const SiblingSummary& one : told) EXPECT_EQ(one.group.find("app.py"), std::string::npos);
    here.played.engine->set_remote_siblings(told);
  }
  EXPECT_EQ(here.raised_s(0), all.raised_s(0));
  EXPECT_NE(here.seen(0).verdict.finding.because.find("all 3 siblings show no growth"), std::string::npos);
  here.played.engine->set_remote_siblings({});
  here.run(4900);
  EXPECT_EQ(here.seen(0).verdict.finding.because.find("sibling"), std::string::npos);
}

TEST(Siblings, TheOrderOfSeriesWithinATickDoesNotMatter) {
  auto ranks = job(6, [](int i) { return i == 3 ? leak(180) : i == 4 ? warm_up(i) : steady(i); });
  // One ends, and another that its siblings are compared with starts over in the middle of a tick.
  ranks[1].end_s = 1000;
  ranks[2].end_s = 1200;
  ranks[2].again_s = 1600;
  Scene forwards(ranks);
  forwards.run(4000);
  Scene backwards(ranks);
  backwards.run(4000, 20, true);
  EXPECT_EQ(in_full(forwards.played), in_full(backwards.played));
}

/// The same jobs, as one program and as unrelated ones: the value of the siblings. docs/detectors/judge.md quotes it.
TEST(Siblings, TheirWordIsWorthItsPlace) {
  const auto strangers = [](std::vector<Rank> ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ranks[i].command = std::string("python ") + static_cast<char>('a' + i) + ".py ";
    return ranks;
  };
  // One of eight leaks from the start, or later; the others stand still, oscillate or warm up before.
  std::vector<double> with_s;
  std::vector<double> without_s;
  for (int seed = 0; seed < 8; ++seed) {
    const double rate = 20.0 * std::pow(1.4, seed);
    const auto shape = [=](int i) -> Shape {
      const bool leaks = i == seed % 8;
      return [=](double t) {
        const double swing = seed % 3 == 1 ? 200 * kMiB * (1 + std::sin(t / 90 + i)) : 0;
        const double base = seed % 3 == 2 ? 30 * kGiB * (1 - std::exp(-t / 300)) : 30 * kGiB;
        return base + swing + noise(t, i) + (leaks ? rate / 60 * t * kMiB : 0);
      };
    };
    const double until_s = std::min(9000.0, 45 * 1024 / rate * 60);
    Scene with(job(8, shape));
    with.run(until_s, 30);
    Scene without(strangers(job(8, shape)));
    without.run(until_s, 30);
    with_s.push_back(with.raised_s(static_cast<std::size_t>(seed % 8)).value_or(until_s));
    without_s.push_back(without.raised_s(static_cast<std::size_t>(seed % 8)).value_or(until_s));
    EXPECT_LE(with_s.back(), without_s.back()) << seed;
    EXPECT_LE(with.alerts(), 2U) << seed << ": the rank and its GPU";
  }
  double with = 0;
  double without = 0;
  for (std::size_t i = 0; i < with_s.size(); ++i) {
    with += with_s[i] / 60;
    without += without_s[i] / 60;
  }
  const auto n = static_cast<double>(with_s.size());
  RecordProperty("minutes_with", fmt::format("{:.1f}", with / n));
  RecordProperty("minutes_without", fmt::format("{:.1f}", without / n));
  EXPECT_LT(with, 0.8 * without) << with / n << " against " << without / n << " min";
  // Replicas that are restarted one after another, each with a straight warm-up.
  std::size_t alerts_with = 0;
  std::size_t alerts_without = 0;
  for (int seed = 0; seed < 3; ++seed) {
    std::vector<Rank> ranks = job(5, [=](int i) -> Shape {
      const double minutes = 20 + 16.0 * seed + i;
      return [=](double t) { return 2 * kGiB + 50 * kGiB * std::min(1.0, t / 60 / minutes) + noise(t, i); };
    });
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].begin_s = (40 + 32.0 * seed) * 60 * static_cast<double>(i);
    const double until_s = ranks.back().begin_s + 5400;
    Scene with_siblings(ranks);
    with_siblings.run(until_s, 30);
    Scene without_siblings(strangers(ranks));
    without_siblings.run(until_s, 30);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      alerts_with += with_siblings.raised_s(i) ? 1U : 0U;
      alerts_without += without_siblings.raised_s(i) ? 1U : 0U;
    }
  }
  RecordProperty("false_alerts_with", static_cast<int>(alerts_with));
  RecordProperty("false_alerts_without", static_cast<int>(alerts_without));
  EXPECT_LE(2 * alerts_with, alerts_without) << alerts_with << " against " << alerts_without;
}

TEST(SiblingGroup, IsTheProgramWithoutItsRankAndHost) {
  ProcessInfo one;
  one.command = "python app.py --batch-size 32 --rank 0";
  one.user = "ada";
  one.host = "node-a";
  one.slurm_job = "77.0";
  ProcessInfo other = one;
  other.command = "python app.py --batch-size 32 --rank 5";
  other.host = "node-b";
  other.slurm_job = "77.1";
  EXPECT_EQ(sibling_group(one), sibling_group(other));
  other.slurm_job = "78";
  EXPECT_NE(sibling_group(one), sibling_group(other)) << "another job";
  other = one;
  other.command = "python app.py --batch-size 64 --rank 5";
  EXPECT_NE(sibling_group(one), sibling_group(other));
  other.command = "/usr/bin/python3.11";
  EXPECT_EQ(sibling_group(other), "") << "it may run anything";
  other.command.clear();
  other.name = "python3";
  EXPECT_EQ(sibling_group(other), "");
  EXPECT_EQ(sibling_group({}), "");
}

}  // namespace
}  // namespace vramtrack
