// A thousand lives: which acts were right, which zombies were missed, and how long it took.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "engine/paging.hpp"
#include "stage.hpp"

namespace bench {
namespace {

using namespace vramtrack;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr double kMostWait_s = 5400;
constexpr double kMostDue_min = 30;

void draw_life(Slot& slot, std::mt19937& random, double speed, std::uint32_t device) {
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  // A third is in trouble.
  static constexpr Kind kDrawn[] = {Kind::steady, Kind::sawtooth, Kind::warm_up,  Kind::batches, Kind::brief,
                                    Kind::server, Kind::steady,   Kind::sawtooth, Kind::batches, Kind::brief,
                                    Kind::leaks,  Kind::stubborn, Kind::hangs,    Kind::stopped, Kind::orphaned};
  slot.kind = kDrawn[random() % std::size(kDrawn)];
  slot.seed = static_cast<std::uint32_t>(random());
  slot.device = device;
  slot.speed = speed;
  slot.base_bytes = static_cast<std::uint64_t>(between(0.5, 4) * static_cast<double>(kGiB));
  slot.onset_s = between(300, 900);
  slot.length_s = slot.kind == Kind::brief ? between(20, 240) : between(1500, 4500);
  if (is_leak(slot.kind)) {
    slot.growth_bytes_per_s = between(100, 500) * (1 << 20) / 60;
    slot.length_s = 6 * 3600;
  }
}

struct Outcome {
  std::size_t lives[kKinds]{};
  std::size_t ended_by_act[kKinds]{};
  std::size_t not_due = 0, alerts_wrong = 0, acts = 0, acts_wrong = 0, ends_wrong = 0;
  std::vector<double> zombie_found_s, leak_found_s;
  std::vector<std::string> remarks;
};

/// The lives that had a pid, in their order: a busy machine uses them again within a run.
using Lives = std::map<std::uint32_t, std::vector<std::size_t>>;

/// The life that had the pid then; nullptr if none had.
const Slot* life_at(const Lives& by_pid, Stage& stage, std::uint32_t pid, double minute) {
  const auto known = by_pid.find(pid);
  if (known == by_pid.end()) return nullptr;
  for (auto index = known->second.rbegin(); index != known->second.rend(); ++index)
    if (stage.minute_of(stage.slot(*index).began_us) <= minute) return &stage.slot(*index);
  return nullptr;
}

void count_acts(const Lives& by_pid, Stage& stage, Outcome& out) {
  for (const act::AuditEntry& entry : stage.acts()) {
    if (entry.event != "done") continue;
    ++out.acts;
    const Slot* slot = life_at(by_pid, stage, entry.subject.process.pid, stage.minute_of(entry.time));
    const bool is_right = slot != nullptr && (is_leak(slot->kind) || is_zombie(slot->kind)) && slot->trouble_us != 0;
    const bool ends = entry.action == "terminate" || entry.action == "kill";
    if (is_right && ends) ++out.ended_by_act[static_cast<std::size_t>(slot->kind)];
    if (is_right) continue;
    ++out.acts_wrong;
    if (ends) ++out.ends_wrong;
    out.remarks.push_back(fmt::format("wrong: {} of {} ({}): {}", entry.action, entry.subject.process.pid,
                                      slot == nullptr ? "unknown" : kKindNames[static_cast<std::size_t>(slot->kind)],
                                      entry.subject.because));
  }
}

/// Whether the alert of a leak is due by the truth: what is left of its device, at the rate of all leaks there.
bool is_due(Stage& stage, std::size_t index, const std::set<std::size_t>& running, double lead_s) {
  const auto since_s = [&](const Slot& slot) { return (stage.minutes() - stage.minute_of(slot.trouble_us)) * 60; };
  double free_bytes = stage.device_bytes(), growth_bytes_per_s = 0;
  for (const std::size_t other : running) {
    const Slot& slot = stage.slot(other);
    if (slot.device != stage.slot(index).device) continue;
    free_bytes -= static_cast<double>(slot.base_bytes);
    if (!is_leak(slot.kind) || slot.trouble_us == 0) continue;
    growth_bytes_per_s += slot.growth_bytes_per_s;
    free_bytes -= slot.growth_bytes_per_s * since_s(slot);
  }
  const double left_s = free_bytes / growth_bytes_per_s;
  return left_s <= needed_s(lead_s, since_s(stage.slot(index)), left_s);
}

/// When what happened to a life that was missed, in minutes after its trouble began.
std::string what_happened(const Lives& by_pid, Stage& stage, const Slot& slot) {
  const double from = stage.minute_of(slot.trouble_us);
  std::string out =
      fmt::format("missed: {} {} on GPU {}, {:.0f} MB/min:", kKindNames[static_cast<std::size_t>(slot.kind)],
                  slot.pid.load(), slot.device, slot.growth_bytes_per_s * 60 / (1 << 20));
  for (const Told& told : stage.told())
    if (life_at(by_pid, stage, told.key.pid, stage.minute_of(told.at_us)) == &slot && told.news != AlertNews::escalated)
      out += fmt::format(" {} {:.1f},", told.news == AlertNews::raised ? "alert" : "alert ended",
                         stage.minute_of(told.at_us) - from);
  for (const act::AuditEntry& entry : stage.acts())
    if (entry.event == "done" &&
        life_at(by_pid, stage, entry.subject.process.pid, stage.minute_of(entry.time)) == &slot)
      out += fmt::format(" {} {:.1f},", entry.action, stage.minute_of(entry.time) - from);
  return out + (slot.full_us == 0 ? " never ended"
                                  : fmt::format(" memory full {:.1f}", stage.minute_of(slot.full_us) - from));
}

}  // namespace

int run_chaos(Stage& stage, std::size_t lives, std::size_t at_once, std::uint32_t seed, double speed) {
  std::mt19937 random(seed);
  std::set<std::size_t> running;
  Lives by_pid;
  std::set<std::size_t> alerted;  ///< leaks
  std::map<std::size_t, double> due_since_min;
  std::size_t next = 0, seen_told = 0;
  Outcome out;
  const double lead_s = Config{}.detection.lead_time_minutes * 60;
  std::size_t missed[kKinds]{};
  std::vector<std::size_t> missed_slots;
  while (next < lives || !running.empty()) {
    while (running.size() < at_once && next < lives) {
      draw_life(stage.slot(next), random, speed, static_cast<std::uint32_t>(next % 8));
      stage.start(next, fmt::format("program-{}", random() % 20));  // of any kind: its earlier runs may mislead
      ++out.lives[static_cast<std::size_t>(stage.slot(next).kind)];
      running.insert(next++);
    }
    stage.tick();
    for (const std::size_t index : std::vector(running.begin(), running.end())) {
      const Slot& slot = stage.slot(index);
      if (slot.pid != 0 && (by_pid[slot.pid].empty() || by_pid[slot.pid].back() != index))
        by_pid[slot.pid].push_back(index);
      const bool is_over = stage.has_ended(index);
      // Nobody waits for ever: what was not found within an hour and a half of its trouble was missed. The alert of a
      // leak has half an hour from when it is due; where it is not due yet, nothing was missed.
      const double since_s = slot.trouble_us == 0 ? 0 : static_cast<double>(now_us() - slot.trouble_us) * 1e-6 * speed;
      if (!is_over && alerted.contains(index)) continue;
      const bool waits = !is_over && is_leak(slot.kind) && slot.trouble_us != 0;
      const bool due = waits && is_due(stage, index, running, lead_s);
      if (!due) due_since_min.erase(index);
      const double due_min =
          due ? stage.minutes() - due_since_min.try_emplace(index, stage.minutes()).first->second : 0;
      if (waits && !due && since_s > kMostWait_s) {
        ++out.not_due;
        stage.end(index);
      } else if (waits ? due_min > kMostDue_min : !is_over && since_s > kMostWait_s) {
        ++missed[static_cast<std::size_t>(slot.kind)];
        missed_slots.push_back(index);
        stage.end(index);
      } else if (is_over && (is_leak(slot.kind) && slot.full_us != 0)) {
        ++missed[static_cast<std::size_t>(slot.kind)];
        missed_slots.push_back(index);
      } else if (!is_over) {
        continue;
      }
      running.erase(index);
    }
    for (; seen_told < stage.told().size(); ++seen_told) {
      const Told& told = stage.told()[seen_told];
      const auto known = by_pid.find(told.key.pid);
      if (told.news != AlertNews::raised || told.key.pid == 0 || known == by_pid.end()) continue;
      const Slot& slot = stage.slot(known->second.back());
      const double after_s = static_cast<double>(told.at_us - slot.trouble_us) * 1e-6 * speed;
      if (slot.trouble_us == 0) {
        ++out.alerts_wrong;
        out.remarks.push_back(fmt::format("alert of a {}: {}", kKindNames[static_cast<std::size_t>(slot.kind)],
                                          told.alert.finding.because));
      } else if (is_zombie(slot.kind) && told.alert.kind == AlertKind::stall) {
        out.zombie_found_s.push_back(after_s);
      } else if (is_leak(slot.kind) && told.alert.kind == AlertKind::leak) {
        out.leak_found_s.push_back(after_s);
        alerted.insert(known->second.back());
      }
    }
  }
  count_acts(by_pid, stage, out);
  for (const std::size_t index : missed_slots) out.remarks.push_back(what_happened(by_pid, stage, stage.slot(index)));
  std::printf("%zu lives, %.0f minutes of the watch, %zu acts\n", lives, stage.minutes(), out.acts);
  for (std::size_t i = 0; i < kKinds; ++i)
    std::printf("  %-9s %4zu lives, %4zu signals that end, %3zu missed\n", kKindNames[i], out.lives[i],
                out.ended_by_act[i], missed[i]);
  std::printf("acts: %zu right, %zu wrong, of these %zu that end a process; alerts of healthy lives: %zu\n",
              out.acts - out.acts_wrong, out.acts_wrong, out.ends_wrong, out.alerts_wrong);
  std::printf("leaks whose alert was not due within 90 min: %zu\n", out.not_due);
  std::printf("from zombie to finding, minutes: median %.1f, p90 %.1f, longest %.1f (%zu)\n",
              quantile(out.zombie_found_s, 0.5) / 60, quantile(out.zombie_found_s, 0.9) / 60,
              quantile(out.zombie_found_s, 1) / 60, out.zombie_found_s.size());
  std::printf("from leak to finding, minutes: median %.1f, p90 %.1f, longest %.1f (%zu)\n",
              quantile(out.leak_found_s, 0.5) / 60, quantile(out.leak_found_s, 0.9) / 60,
              quantile(out.leak_found_s, 1) / 60, out.leak_found_s.size());
  for (const std::string& remark : out.remarks) std::printf("  %s\n", remark.c_str());
  const auto missed_any = std::any_of(std::begin(missed), std::end(missed), [](std::size_t n) { return n > 0; });
  return out.acts_wrong == 0 && !missed_any ? 0 : 1;
}

}  // namespace bench
