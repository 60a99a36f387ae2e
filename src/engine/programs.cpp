#include "engine/programs.hpp"

#include <algorithm>

namespace vramtrack {
namespace {

constexpr std::size_t kMostRuns = 64;
constexpr std::size_t kMostPrograms = 512;
/// Runs differ: one that grows by up to half as much again as an earlier one still resembles it.
constexpr double kAlike = 1.5;
/// With two similar runs, the chance that the next one differs is at most one in four (Laplace's rule of succession).
constexpr int kFewest = 2;
/// The same for the chance to live until memory ends: below this, it is not a leak of the device.
constexpr double kLivesOn = 1.0 / 3;

}  // namespace

void Programs::add(const std::string& program, const ProgramRun& run) {
  if (program.empty()) return;
  const auto [it, is_new] = runs_.try_emplace(program);
  if (is_new) order_.push_back(program);
  it->second.push_back(run);
  if (it->second.size() > kMostRuns) it->second.pop_front();
  if (order_.size() > kMostPrograms) {
    runs_.erase(order_.front());
    order_.pop_front();
  }
}

const std::deque<ProgramRun>* Programs::of(const std::string& program) const {
  const auto it = runs_.find(program);
  return it == runs_.end() ? nullptr : &it->second;
}

std::optional<Programs::Word> Programs::against_leak(const std::string& program, const ProgramRun& run,
                                                     std::optional<double> end_in_s,
                                                     const std::vector<ProgramRun>& settled) const {
  static const std::deque<ProgramRun> kNone;
  const auto it = runs_.find(program);
  int leaked = 0;
  int grew = 0;
  int lived = 0;
  int lived_on = 0;
  const auto grew_alike = [&](const ProgramRun& other) {
    return run.peak_bytes <= kAlike * other.peak_bytes && run.grew_s <= kAlike * other.grew_s;
  };
  for (const ProgramRun& other : settled) grew += grew_alike(other) ? 1 : 0;
  for (const ProgramRun& earlier : it == runs_.end() ? kNone : it->second) {
    if (earlier.leaked) {
      ++leaked;
      continue;
    }
    grew += grew_alike(earlier) ? 1 : 0;
    if (run.lived_s > earlier.lived_s || (!run.small && run.peak_bytes > kAlike * earlier.peak_bytes)) continue;
    ++lived;
    if (end_in_s && earlier.lived_s >= run.lived_s + *end_in_s) ++lived_on;
  }
  if (grew >= kFewest && grew > leaked) return Word{grew, false};
  const double lives_on = (lived_on + leaked + 1.0) / (lived + leaked + 2.0);
  if (lived >= kFewest && lives_on < kLivesOn) return Word{lived, true};
  return std::nullopt;
}

}  // namespace vramtrack
