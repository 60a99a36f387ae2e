// Chooses the clock of a free-text log: choose_clock(), make_clock().
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "source/log/stamp.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

/// How often a clock's values rise and fall, among the lines of one program.
struct ClockSteps {
  std::size_t rises = 0, falls = 0, values = 0;

  [[nodiscard]] bool is_clock() const { return rises > 0 && falls * 10 <= rises; }
};

/// Times of day that fall, except past midnight, or never change, are durations: "eta: 0:33:10", "0:00:17 per
/// step".
void drop_durations(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  constexpr std::int64_t kNextDay_s = 6 * 3600;   // before the last one: as StampReader reads them
  std::map<std::string_view, std::int64_t> last;  // by prefix
  ClockSteps steps;
  const HeadLine* example = nullptr;
  for (const HeadLine& line : all.lines) {
    Civil civil;
    if (line.found.stamp.empty() || !read_civil(line.found.stamp, DateOrder::month_first, civil)) continue;
    if (civil.has_date || !civil.has_time) return;
    if (example == nullptr) example = &line;
    ++steps.values;
    const auto [it, is_new] = last.emplace(line.found.prefix, civil.local_s);
    if (!is_new) {
      steps.rises += civil.local_s > it->second || it->second - civil.local_s > kNextDay_s ? 1U : 0U;
      steps.falls += civil.local_s < it->second && it->second - civil.local_s <= kNextDay_s ? 1U : 0U;
    }
    it->second = civil.local_s;
  }
  constexpr std::size_t kEnough = 5;  // two lines of one second and a restart prove nothing
  if (steps.values < kEnough || steps.is_clock() || (steps.rises == 0 && steps.falls == 0 && all.lines.size() < 2))
    return;
  if (steps.falls == 0 && steps.rises == 0 && steps.values < all.lines.size()) return;
  assumptions.push_back(
      fmt::format("times such as '{}' do not rise from line to line: they are durations, not the clock",
                  excerpt(example->found.stamp)));
  plan.no_stamps = true;
  all.stamped = 0;
  for (HeadLine& line : all.lines) line.stamp.clear();
}

/// Times on separate lines are a clock only if they advance: if one of them covers many readings of a GPU, the log only
/// mentions a time now and then ("startup time: 2026-08-09 18:03:53"), and its readings are counted.
void drop_mentions(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  constexpr std::size_t kMostReadingsATime = 10;
  std::map<std::tuple<std::string_view, int, Meaning>, std::size_t> readings;
  std::set<std::string_view> times;
  std::size_t most = 0;
  for (const HeadLine& line : all.lines) {
    if (!line.found.stamp.empty()) return;
    if (!line.stamp.empty()) times.insert(line.stamp);
    for (const MemoryFigure& f : line.found.figures)
      if (plan.takes(f)) most = std::max(most, ++readings[{line.found.prefix, f.gpu, f.role}]);
  }
  if (times.empty() || most <= kMostReadingsATime * times.size()) return;
  assumptions.push_back(fmt::format("{} times for {} readings, such as '{}', are no clock: the readings are counted",
                                    times.size(), most, excerpt(*times.begin())));
  plan.no_stamps = true;
  all.stamped = 0;
  for (HeadLine& line : all.lines) line.stamp.clear();
}

/// Whether the hours and minutes at the start of lines are times of day: they do not fall, except at midnight, and each
/// belongs to one reading of a GPU.
void detect_minutes(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  constexpr std::int64_t kHalfDay_s = 12 * 3600;
  if (all.stamped * 10 >= all.lines.size() * 9) return;
  std::size_t timed = 0;
  std::size_t written = 0;
  std::size_t repeats = 0;
  std::uint64_t last_line = 0;
  std::optional<std::int64_t> last_s;
  std::set<std::pair<std::string_view, int>> in_minute;  // prefix and GPU of the lines
  for (const HeadLine& line : all.lines) {
    Civil civil;
    if (!read_civil(line.minute, DateOrder::month_first, civil)) continue;
    ++timed;
    if (line.minute_line == last_line) continue;  // a reading of several lines
    last_line = line.minute_line;
    ++written;
    if (last_s && civil.local_s < *last_s && *last_s - civil.local_s < kHalfDay_s) return;
    if (last_s != civil.local_s) in_minute.clear();
    last_s = civil.local_s;
    const bool is_own = line.minute_line == line.number;
    if (!in_minute.emplace(is_own ? line.found.prefix : std::string_view{}, is_own ? line.found.gpu : -1).second)
      ++repeats;
  }
  if (timed * 10 < all.lines.size() * 9 || written < 3) return;
  const std::string example = all.lines.front().minute;
  if (repeats * 10 > written) {
    assumptions.push_back(
        fmt::format("times such as '{}' have no seconds, and several readings share one: they are not used", example));
    return;
  }
  if (example.starts_with("00:") || example.starts_with("0:")) {
    assumptions.push_back(
        fmt::format("times such as '{}' may be hours and minutes or minutes and seconds: they are not used; write "
                    "hours, minutes and seconds (0:00:10)",
                    example));
    return;
  }
  plan.minutes = true;
  all.stamped = 0;
  for (HeadLine& line : all.lines) {
    if (line.stamp.empty()) line.stamp = line.minute;
    all.stamped += line.stamp.empty() ? 0U : 1U;
  }
}

/// Whether the durations in lines ("[12.5s]", "t=0.5 min") are times since the start: they rise, and fall only where a
/// program is restarted.
void detect_elapsed(Head& all, WordPlan& plan) {
  if (all.stamped * 10 >= all.lines.size() * 9) return;
  std::map<std::pair<std::string_view, int>, double> last;  // by prefix and GPU
  ClockSteps steps;
  for (const HeadLine& line : all.lines) {
    if (line.found.elapsed.text.empty()) continue;
    const double seconds = line.found.elapsed.seconds;
    ++steps.values;
    const auto [it, is_new] = last.emplace(std::pair(line.found.prefix, line.found.gpu), seconds);
    if (!is_new) {
      steps.rises += seconds > it->second ? 1U : 0U;
      steps.falls += seconds < it->second ? 1U : 0U;
    }
    it->second = seconds;
  }
  if (steps.values * 10 < all.lines.size() * 9 || steps.rises * 2 < steps.values || !steps.is_clock()) return;
  plan.elapsed = true;
  all.stamped = 0;
  for (HeadLine& line : all.lines) {
    line.stamp = stamp_of(line.found.elapsed);
    all.stamped += line.stamp.empty() ? 0U : 1U;
  }
}

/// What is counted in place of time: the count that rises and falls only with a new epoch, or where a program is
/// restarted; if there are several, the one that rises most often.
void find_count(const Head& head, WordPlan& plan) {
  std::size_t most = 0;
  for (const Meaning meaning : {Meaning::step, Meaning::iteration, Meaning::request, Meaning::batch, Meaning::epoch}) {
    ClockSteps steps;          // within an epoch
    bool begins_anew = false;  // with the next epoch
    std::optional<std::uint64_t> last;
    std::uint64_t last_epoch = 0;
    for (const HeadLine& line : head.lines) {
      const auto it = line.counts.find(meaning);
      if (it == line.counts.end()) continue;
      const auto epoch = line.counts.find(Meaning::epoch);
      const std::uint64_t its_epoch = epoch == line.counts.end() ? 0 : epoch->second;
      ++steps.values;
      const bool is_lower = last && it->second < *last;
      if (its_epoch > last_epoch)
        begins_anew |= is_lower;
      else
        steps.falls += is_lower ? 1U : 0U;
      steps.rises += last && it->second > *last ? 1U : 0U;
      last = it->second;
      last_epoch = its_epoch;
    }
    if (!steps.is_clock() || steps.rises <= most || steps.values * 10 < head.lines.size() * 9) continue;
    most = steps.rises;
    plan.counted = meaning;
    plan.count_in_epochs = begins_anew;
  }
}

/// Decides whether a count replaces time.
Status choose_count(Head& all, WordPlan& plan) {
  if (all.stamped * 10 < all.lines.size() * 9) {
    if (all.stamped * 2 > all.lines.size())
      return fail(
          fmt::format("the first timestamp comes after line {}: '{}', which has a figure of memory; remove the "
                      "lines before the first timestamp",
                      all.lines.front().number, excerpt(all.lines.front().text, 80)));
    find_count(all, plan);
  }
  if (!plan.counted) return {};
  EpochCounter counter;
  for (HeadLine& line : all.lines) {
    const auto it = line.counts.find(*plan.counted);
    if (it == line.counts.end()) continue;
    const auto epoch = line.counts.find(Meaning::epoch);
    const bool is_in_epoch = plan.count_in_epochs && epoch != line.counts.end();
    line.count = std::to_string(counter.next(it->second, is_in_epoch ? epoch->second : 0));
  }
  return {};
}

}  // namespace

std::string stamp_of(const Elapsed& elapsed) {
  return elapsed.text.empty() ? std::string() : fmt::format("{:.6f}", elapsed.seconds);
}

Status choose_clock(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  drop_durations(all, plan, assumptions);
  drop_mentions(all, plan, assumptions);
  detect_minutes(all, plan, assumptions);
  detect_elapsed(all, plan);
  return choose_count(all, plan);
}

/// The clock, from the times or counts that will be read.
Result<StampReader> make_clock(const LogHead& head, const Head& all, const WordPlan& plan,
                               std::vector<std::string>& assumptions) {
  std::vector<std::string> texts;
  for (const HeadLine& line : all.lines) {
    if (plan.counted) {
      if (!line.count.empty()) texts.push_back(line.count);
    } else if (!line.stamp.empty()) {
      texts.emplace_back(line.stamp);
    }
  }
  if (texts.empty()) return StampReader::of_readings(*head.options, assumptions);
  StampReader::Title title;
  title.step = plan.counted.has_value() || plan.stamps_are_steps;
  if (plan.counted) title.counts = count_word(*plan.counted);
  const std::vector<std::string_view> samples(texts.begin(), texts.end());
  return StampReader::detect(samples, title, *head.options, *head.zone, assumptions);
}

}  // namespace vramtrack
