#include "explain/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/format.hpp"
#include "core/order.hpp"
#include "explain/cause.hpp"
#include "explain/processes.hpp"

namespace vramtrack::explain {
namespace {

/// Among requests of several sizes, this many failures of one size with ever more memory held are a leak. Two suffice
/// if no other size failed: else the second may come from another place in the program.
constexpr std::size_t kLeastFailures = 3;
/// This many in rising order are no coincidence (one in 24), however small the rise: a full card has no room for more.
constexpr std::size_t kNoChance = 4;
/// Messages round to two decimals.
constexpr double kRounding = 0.01;

/// What one process held at its failures, in the order of the text.
///
/// Only failures of equal requests can be compared. What is held when a request fails depends on the request: a smaller
/// one fails later, on a fuller device, and a larger batch holds more and requests more. So a rise shows a leak where
/// the requests are equal, and the batch is the same, as far as the text reports it.
struct Series {
  std::vector<double> held;
  std::vector<double> asked;
  std::vector<double> batches;

  void add(const Failure& failure) {
    held.push_back(*failure.figures.get(Figure::allocated));
    asked.push_back(failure.figures.get(Figure::asked).value_or(0));
    batches.push_back(failure.batch);
  }
  [[nodiscard]] bool rises() const {
    return held.size() > 1 && std::adjacent_find(held.begin(), held.end(), std::greater_equal<>()) == held.end();
  }
  [[nodiscard]] bool is_one_request() const { return asked.front() > 0 && all_equal(asked); }
  [[nodiscard]] bool is_leak() const {
    if (!rises() || !is_one_request() || !all_equal(batches)) return false;
    const double rise = (held.back() - held.front()) / held.back();
    // A rise by a tenth of what is held: less did not fill the device (as in `snapshot oom`).
    return rise >= 0.1 || (held.size() >= kNoChance && rise > kRounding);
  }
  [[nodiscard]] std::string words() const {
    const auto [least, most] = std::minmax_element(held.begin(), held.end());
    if (!rises())
      return fmt::format("what was allocated did not grow from one to the next ({} to {})", size_words(*least),
                         size_words(*most));
    const std::string who = is_one_request() ? fmt::format("the same request of {} failed {} times, and ",
                                                           size_words(asked.front()), format_number(held.size()))
                                             : "";
    return fmt::format("{}what was allocated rose each time, from {} to {}{}", who, size_words(*least),
                       size_words(*most), why_no_leak());
  }

 private:
  static bool all_equal(const std::vector<double>& values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  }
  [[nodiscard]] std::string why_no_leak() const {
    if (!all_equal(batches)) {
      const auto [least, most] = std::minmax_element(batches.begin(), batches.end());
      return *least > 0 ? fmt::format(", with batch sizes from {:.0f} to {:.0f}, which may explain it", *least, *most)
                        : ", with other batch sizes, which may explain it";
    }
    if (is_one_request()) return "";
    const auto [least, most] = std::minmax_element(asked.begin(), asked.end());
    return fmt::format(
        ", while requests of {} to {} failed: other work may explain that, and only equal requests show a leak",
        size_words(*least), size_words(*most));
  }
};

std::string what_failed(const Failure& failure) {
  if (failure.wording->role == Role::device)
    return fmt::format("{} {}", who(*failure.wording),
                       failure.wording->name == "statement" ? "ran out of memory" : "ran out of GPU memory");
  if (failure.wording->role == Role::resource)
    return fmt::format("{} ran out of {}", who(*failure.wording), resource_of(*failure.wording));
  if (failure.cause == Cause::unknown || failure.wording->name == "statement_killed")
    return "a process was ended by signal 9 (SIGKILL)";
  return failure.wording->program == "any" ? "the host's memory ran out"
                                           : fmt::format("the host's memory ran out ({})", failure.wording->program);
}

}  // namespace

HeldGrowth growth_of(const std::vector<Failure>& failures) {
  using Process = std::tuple<double, std::string_view>;  // its device, and the process that printed its message
  std::map<Process, Series> processes;
  std::map<std::tuple<Process, double, double>, Series> requests;  // their sizes, and the batch
  const Series* first = nullptr;
  for (const Failure& failure : failures) {
    if (failure.wording->role != Role::device || !failure.figures.get(Figure::allocated)) continue;
    const Process process{failure.figures.get(Figure::device).value_or(-1), speaker_of(failure.before)};
    processes[process].add(failure);
    requests[{process, failure.figures.get(Figure::asked).value_or(0), failure.batch}].add(failure);
    if (first == nullptr) first = &processes[process];
  }
  for (const auto& [process, series] : processes)
    if (series.is_leak()) return {true, series.words()};
  for (const auto& [request, series] : requests)
    if (series.held.size() >= kLeastFailures && series.is_leak()) return {true, series.words()};
  if (first == nullptr || first->held.size() < 2) return {};
  return {false, first->words()};
}

std::string rise_words(const std::vector<double>& held) {
  constexpr std::size_t kLeastReadings = 8;
  constexpr double kRise = 1.5;
  if (held.size() < kLeastReadings || held.back() < kRise * held.front()) return "";
  std::size_t rises = 0;
  for (std::size_t i = 1; i < held.size(); ++i) rises += held[i] > held[i - 1] ? 1U : 0U;
  if (rises * 10 < (held.size() - 1) * 9) return "";
  return fmt::format("what the text says was allocated rose in {} of {} readings before it failed, from {} to {}",
                     rises, held.size() - 1, size_words(held.front()), size_words(held.back()));
}

std::vector<Event> events_of(const std::vector<Failure>& failures, std::span<const Message> messages) {
  std::vector<Event> all;
  for (const Failure& failure : failures) all.push_back({failure.line, failure.last_line, 1, what_failed(failure)});
  for (const Message& message : messages)
    if (message.wording->role == Role::event)
      all.push_back({message.line, message.line, 1, std::string(message.wording->setting)});
  order(all, [](const Event& a, const Event& b) { return a.line < b.line; });
  std::vector<Event> kinds;
  for (const Event& event : all) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Event& k) { return k.what == event.what; });
    if (known == kinds.end()) {
      kinds.push_back(event);
    } else {
      ++known->count;
      known->last_line = event.last_line;
    }
  }
  if (kinds.size() == 1 && !failures.empty()) kinds.clear();
  return kinds;
}

std::string event_words(const Event& event) {
  std::string out = fmt::format("line {}: {}", format_number(event.line), event.what);
  if (event.count > 1)
    out += fmt::format(", {} times until line {}", format_number(event.count), format_number(event.last_line));
  return out;
}

std::string failures_words(const std::vector<Failure>& failures) {
  if (failures.size() < 2) return "";
  return fmt::format("{} failures, the first in line {}, the last in line {}", format_number(failures.size()),
                     format_number(failures.front().line), format_number(failures.back().line));
}

std::string sequence_words(const Explanation& e) {
  std::string out;
  const auto add = [&out](const std::string& words) { out += (out.empty() || words.empty() ? "" : "; ") + words; };
  for (const Event& event : e.events) add(event_words(event));
  if (e.events.empty()) add(failures_words(e.failures));
  add(e.growth);
  return out;
}

}  // namespace vramtrack::explain
