#include "explain/judge.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "explain/advice.hpp"
#include "explain/cause.hpp"
#include "explain/processes.hpp"

namespace vramtrack::explain {
namespace {

/// Messages this near to one another may tell of one failure: a traceback lies between them, or a table.
constexpr std::uint64_t kNearLines = 60;
/// A line of a traceback this near above a message belongs to it.
constexpr std::uint64_t kTracebackLines = 20;
/// So many failures that hold ever more are a leak; of two, the second may be another place of the program.
constexpr std::size_t kLeastFailures = 3;

/// The last line that tells of it: a table may be longer than what lies between two messages.
std::uint64_t end_of(const Failure& failure) {
  return std::max(failure.last_line, failure.table_line);
}

bool is_same_failure(const Failure& failure, const Message& message) {
  if (failure.wording->role != message.wording->role) return false;
  if (!failure.figures.agrees_with(message.figures)) return false;
  // Figures that are there twice are a message that was printed twice; another failure differs in them.
  return message.line <= end_of(failure) + kNearLines;
}

void merge(Failure& failure, const Message& message) {
  ++failure.messages;
  failure.last_line = message.line;
  const bool tells_cause = failure.wording->otherwise == Cause::unknown && message.wording->otherwise != Cause::unknown;
  if (message.figures.count() > failure.figures.count() || tells_cause) {
    failure.wording = message.wording;
    failure.text = message.text;
    failure.before = message.before;
  }
  failure.figures.complete(message.figures);
  if (failure.others.empty()) failure.others = message.others;
}

/// The failure that a table belongs to: the one that it follows, else the one that follows it. nullptr: none is near.
Failure* failure_of(std::vector<Failure>& failures, const Message& table) {
  Failure* before = nullptr;
  Failure* after = nullptr;
  for (Failure& failure : failures) {
    if (failure.line <= table.line && table.line <= end_of(failure) + kNearLines) before = &failure;
    if (after == nullptr && failure.line > table.line && failure.line <= table.last_line + kNearLines) after = &failure;
  }
  return before != nullptr ? before : after;
}

void add_table(std::vector<Failure>& failures, const Message& table) {
  Failure* const failure = failure_of(failures, table);
  if (failure == nullptr) return;
  failure->figures.complete(table.figures);
  if (failure->largest.empty()) failure->largest = table.largest;
}

/// What a line beside a failure adds to it. Figures of the program's budget hold for all that comes after.
void add_context(std::vector<Failure>& failures, const std::vector<const Message*>& contexts) {
  for (const Message* const context : contexts)
    if (context->last_line > 0) add_table(failures, *context);
  for (Failure& failure : failures) {
    for (const Message* const context : contexts) {
      if (context->last_line > 0) continue;
      const bool is_pinning = context->wording->otherwise == Cause::host;
      if (is_pinning) {
        if (context->line <= failure.line && context->line + kTracebackLines >= failure.line) failure.is_pinned = true;
        continue;
      }
      const bool is_before = context->line <= failure.line;
      if (!is_before && context->line > end_of(failure) + kNearLines) continue;
      const auto device = context->figures.get(Figure::device);
      if (device && failure.figures.get(Figure::device) != device) continue;
      failure.figures.complete(context->figures);
    }
  }
}

std::string story_of(const std::vector<Failure>& failures, bool& is_leak) {
  is_leak = false;
  if (failures.size() < 2) return {};
  std::string out =
      fmt::format("{} failures, the first in line {}, the last in line {}", format_number(failures.size()),
                  format_number(failures.front().line), format_number(failures.back().line));
  std::vector<double> held;
  std::optional<double> device = failures.front().figures.get(Figure::device);
  for (const Failure& failure : failures)
    if (const auto allocated = failure.figures.get(Figure::allocated);
        allocated && failure.figures.get(Figure::device) == device)
      held.push_back(*allocated);
  if (held.size() < 2) return out;
  const bool rises = std::adjacent_find(held.begin(), held.end(), std::greater_equal<>()) == held.end();
  const double rise = held.back() - held.front();
  // A tenth of what is held: less did not fill the device (as `snapshot oom`).
  is_leak = rises && held.size() >= kLeastFailures && rise * 10 >= held.back();
  if (rises)
    out += fmt::format("; what was allocated rose each time, from {} to {}", size_words(held.front()),
                       size_words(held.back()));
  else
    out += fmt::format("; what was allocated did not grow from one to the next ({} to {})",
                       size_words(*std::min_element(held.begin(), held.end())),
                       size_words(*std::max_element(held.begin(), held.end())));
  return out;
}

}  // namespace

std::optional<Explanation> explain(std::span<const Message> messages) {
  Explanation out;
  std::vector<const Message*> contexts;
  for (const Message& message : messages) {
    if (message.wording->role == Role::context) {
      contexts.push_back(&message);
      if (!out.failures.empty() && message.line <= end_of(out.failures.back()) + kNearLines)
        out.failures.back().table_line = std::max(out.failures.back().table_line, message.last_line);
      continue;
    }
    ++out.message_count;
    if (!out.failures.empty() && is_same_failure(out.failures.back(), message)) {
      merge(out.failures.back(), message);
      continue;
    }
    Failure& failure = out.failures.emplace_back();
    failure.wording = message.wording;
    failure.line = failure.last_line = message.line;
    failure.text = message.text;
    failure.figures = message.figures;
    failure.others = message.others;
    failure.before = message.before;
  }
  if (out.failures.empty()) return std::nullopt;
  add_context(out.failures, contexts);
  for (Failure& failure : out.failures) {
    find_own_process(failure);
    find_cause(failure);
  }
  const auto known = std::find_if(out.failures.begin(), out.failures.end(),
                                  [](const Failure& failure) { return failure.cause != Cause::unknown; });
  if (known != out.failures.end()) out.decisive = static_cast<std::size_t>(known - out.failures.begin());
  bool is_leak = false;
  out.story = story_of(out.failures, is_leak);
  Failure& decisive = out.failures[out.decisive];
  if (is_leak && decisive.cause != Cause::host) {
    decisive.cause = Cause::leak;
    decisive.because = fmt::format("{}; {}", decisive.because, out.story);
  }
  out.cause = decisive.cause;
  out.because = decisive.because;
  out.fault = fault_of(decisive);
  out.next_step = next_step_of(decisive);
  if (out.cause == Cause::unknown) {
    out.would_tell = would_tell_of(decisive);
    out.next_step.clear();
  }
  return out;
}

}  // namespace vramtrack::explain
