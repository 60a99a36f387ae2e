#include "explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "explain/advice.hpp"
#include "explain/cause.hpp"
#include "explain/cause_words.hpp"
#include "explain/processes.hpp"
#include "explain/sequence.hpp"
#include "explain/words.hpp"

namespace vramtrack::explain {
namespace {

/// Messages this close together may report one failure: a traceback or a table lies between them.
constexpr std::uint64_t kNearLines = 60;
/// Beyond this distance from a failure that the program survived, another failure is a new one, not an echo.
constexpr std::uint64_t kSurvivalLines = 3;
/// A traceback line this close above a message belongs to it.
constexpr std::uint64_t kTracebackLines = 20;

/// In use on an idle device.
constexpr double kIdleBytes = 1 * kGiB;

/// The last line that reports it: a table may be longer than the gap between two messages.
std::uint64_t end_of(const Failure& failure) {
  return std::max(failure.last_line, failure.table_line);
}

/// Libraries that take memory in addition to a framework's allocator: they fail independently.
bool is_library(const Wording& wording) {
  return is_any(wording.program, "NCCL|cuBLAS|cuDNN|cuSOLVER|cuFFT|cuSPARSE");
}

/// It names neither the memory's owner nor the program: something next to it failed. `M`: Message or Failure.
template <typename M>
bool is_unspecified(const M& message) {
  return message.wording->name == "statement" && message.figures.count() == 0;
}

/// A sentence written by a person, not a log line. `M`: Message or Failure.
template <typename M>
bool is_prose(const M& message) {
  return message.wording->text.empty() && is_sentence(lower(message.text));
}

bool is_same_failure(const Failure& failure, const Message& message) {
  if (is_unspecified(message) || is_unspecified(failure) || is_prose(failure))
    return message.line <= end_of(failure) + kNearLines;
  // An interrupted recovery has ended.
  if (!failure.went_on.empty() && message.went_on.empty() && message.line > failure.last_line + kSurvivalLines)
    return false;
  if (failure.wording->role != message.wording->role) return false;
  // The kernel reports one kill on several lines, the last of which names the killed process.
  if (failure.wording->program == "Linux" && message.wording->program == "Linux" &&
      !failure.figures.get(Figure::resident) && message.line <= failure.last_line + 1)
    return true;
  if (failure.wording->program != message.wording->program &&
      (is_library(*failure.wording) || is_library(*message.wording)))
    return false;
  // Identical figures mean that a message was printed twice; another failure differs in them. Wordings round
  // differently, to two decimals.
  if (!failure.figures.agrees_with(message.figures, failure.wording == message.wording ? 0 : 0.01)) return false;
  return message.line <= end_of(failure) + kNearLines;
}

void merge(Failure& failure, const Message& message) {
  ++failure.messages;
  failure.last_line = message.line;
  if (message.went_on.empty() && message.line > failure.line) failure.went_on.clear();
  if (!message.went_on.empty()) failure.went_on = message.went_on;
  const bool adds_cause = failure.wording->otherwise == Cause::unknown && message.wording->otherwise != Cause::unknown;
  if (is_unspecified(failure)) failure.line = message.line;
  if (failure.wording->name == "jetson") failure.runs_in = failure.wording->program;
  // A person's report, before or after the log, may be short and wrong.
  const bool replaces_prose = is_prose(failure) && !is_prose(message);
  Figures figures = message.figures;
  const bool loses_setting = failure.wording->program == message.wording->program &&
                             !failure.wording->setting.empty() && message.wording->setting.empty();
  if ((message.figures.count() > failure.figures.count() && !loses_setting) || adds_cause || is_unspecified(failure) ||
      replaces_prose) {
    if (replaces_prose) failure.line = message.line;
    failure.wording = message.wording;
    failure.text = message.text;
    failure.before = message.before;
  }
  if (replaces_prose) std::swap(failure.figures, figures);
  failure.figures.complete(figures);
  if (failure.remarks.grew.empty()) failure.remarks.grew = message.remarks.grew;
  if (failure.remarks.shared.empty()) failure.remarks.shared = message.remarks.shared;
  failure.remarks.capacity = std::max(failure.remarks.capacity, message.remarks.capacity);
  if (failure.remarks.advised.empty()) failure.remarks.advised = message.remarks.advised;
  if (failure.remarks.less_works.empty()) failure.remarks.less_works = message.remarks.less_works;
  if (failure.remarks.settings.empty()) failure.remarks.settings = message.remarks.settings;
  if (failure.remarks.failed_part.empty()) failure.remarks.failed_part = message.remarks.failed_part;
  failure.remarks.is_gtt = failure.remarks.is_gtt || message.remarks.is_gtt;
  failure.remarks.set_aside = std::max(failure.remarks.set_aside, message.remarks.set_aside);
  if (failure.system == System::any) failure.system = message.system;
  failure.refused.insert(message.refused.begin(), message.refused.end());
  if (failure.others.empty()) failure.others = message.others;
}

/// The failure that a table belongs to: the previous one, else the next one. nullptr: none is near.
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
  // XLA's buffers and the chunks of its allocator are two views of one memory; of two tables of one kind the first
  // counts.
  const auto is_of_kind = [&table](const Holding& h) { return h.table == table.wording->name; };
  if (std::none_of(failure->largest.begin(), failure->largest.end(), is_of_kind))
    failure->largest.insert(failure->largest.end(), table.largest.begin(), table.largest.end());
}

/// Adds what a line near a failure says about it.
void add_line(Failure& failure, const Message& line) {
  const bool is_before = line.line <= failure.line;
  const std::uint64_t distance = is_before ? failure.line - line.line : 0;
  if (line.wording->role == Role::frame) {
    const bool is_near = is_before ? distance <= kNearLines : line.line <= end_of(failure) + kTracebackLines;
    if (is_near && failure.runs_in.empty()) failure.runs_in = line.wording->program;
    return;
  }
  if (line.wording->otherwise == Cause::host) {
    if (is_before && distance <= kTracebackLines) failure.is_pinned = true;
    return;
  }
  if (!is_before && line.line > end_of(failure) + kNearLines) return;
  if (failure.wording->role == Role::host && failure.others.empty() && line.wording->name == "processes")
    failure.others = line.others;
  const auto device = line.figures.get(Figure::device);
  const auto own_device = failure.figures.get(Figure::device);
  // Buffers belong to the program that failed; a table may show another device than the failure.
  const bool is_buffer = !own_device && (line.figures.get(Figure::weights) || line.figures.get(Figure::kv_cache));
  if (device && own_device != device && !is_buffer) return;
  if ((line.figures.get(Figure::used) && !failure.figures.get(Figure::used)) || line.figures.get(Figure::outside)) {
    // Figures in the message itself are of the moment of the failure, unless they show an empty device.
    const bool is_empty = failure.figures.get(Figure::free) == 0.0 && line.figures.get(Figure::used) < kIdleBytes;
    if (failure.figures.get(Figure::free) && !is_empty) return;
    failure.used_line = line.line;
    if (failure.others.empty()) failure.others = line.others;
  }
  Figures figures = line.figures;
  if (is_buffer) figures.clear(Figure::device);
  failure.figures.complete(figures);
}

/// Figures of the program's budget apply to everything after them; of several, the last ones count.
void add_contexts(std::vector<Failure>& failures, const std::vector<const Message*>& contexts) {
  std::vector<const Message*> lines;
  for (const Message* const context : contexts)
    if (context->last_line > 0)
      add_table(failures, *context);
    else
      lines.push_back(context);
  for (Failure& failure : failures) {
    const auto after =
        std::find_if(lines.begin(), lines.end(), [&failure](const Message* line) { return line->line > failure.line; });
    for (auto line = after; line != lines.begin();) add_line(failure, **--line);
    for (auto line = after; line != lines.end(); ++line) add_line(failure, **line);
  }
}

/// Host memory that could not be pinned is requested again, in smaller sizes: the program continues with what it gets,
/// unless something else fails afterwards.
void retried_with_less(std::vector<Failure>& failures) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= failures.size(); ++i) {
    const auto asked = [&failures](std::size_t k) { return failures[k].figures.get(Figure::asked).value_or(0); };
    if (i < failures.size() && failures[i].wording->role == Role::host && failures[i - 1].wording->role == Role::host &&
        asked(i) > 0 && asked(i) < asked(i - 1))
      continue;
    if (i - begin >= 3)
      for (std::size_t k = begin; k < i; ++k)
        if (failures[k].went_on.empty()) failures[k].went_on = "it asked for less, until it got it";
    begin = i;
  }
}

/// After the device's memory has run out, pinning fails, too: with the context, or for what the device should have
/// held.
bool is_consequence(const Failure& first, const Failure& later) {
  return first.wording->role == Role::device && first.went_on.empty() && later.wording->name == "statement_pinned";
}

/// A failure that the program survived once is survived again, if it is only a warning.
void survived_before(std::vector<Failure>& failures) {
  const auto words = [](const Failure& f) {
    std::string out = lower(f.before + f.text);
    std::erase_if(out, is_digit);
    return has_any(out, "[w]|warn") ? out : "";
  };
  for (std::size_t i = 1; i < failures.size(); ++i)
    if (failures[i].went_on.empty() && !failures[i - 1].went_on.empty() && !words(failures[i]).empty() &&
        words(failures[i]) == words(failures[i - 1]))
      failures[i].went_on = failures[i - 1].went_on;
}

}  // namespace

std::optional<Explanation> explain(std::span<const Message> messages) {
  Explanation out;
  std::vector<const Message*> contexts;
  for (const Message& message : messages) {
    if (message.wording->role == Role::context || message.wording->role == Role::frame) {
      contexts.push_back(&message);
      if (!out.failures.empty() && message.line <= end_of(out.failures.back()) + kNearLines)
        out.failures.back().table_line = std::max(out.failures.back().table_line, message.last_line);
      continue;
    }
    if (message.wording->role == Role::event) continue;
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
    failure.batch = message.batch;
    failure.went_on = message.went_on;
    failure.held = message.held;
    failure.remarks = message.remarks;
    failure.system = message.system;
    failure.refused = message.refused;
  }
  if (out.failures.empty()) return std::nullopt;
  retried_with_less(out.failures);
  survived_before(out.failures);
  add_contexts(out.failures, contexts);
  for (Failure& failure : out.failures) {
    find_own_process(failure);
    find_cause(failure);
  }
  // The failure that ended the program precedes those it survived, and a known cause precedes an unknown one.
  const auto rank = [](const Failure& f) { return (f.went_on.empty() ? 2 : 0) + (f.cause != Cause::unknown ? 1 : 0); };
  for (std::size_t i = 1; i < out.failures.size(); ++i)
    if (rank(out.failures[i]) > rank(out.failures[out.decisive]) &&
        !is_consequence(out.failures[out.decisive], out.failures[i]))
      out.decisive = i;
  const HeldGrowth growth = growth_of(out.failures);
  out.events = events_of(out.failures, messages);
  out.growth = growth.words;
  out.sequence = sequence_words(out);
  Failure& decisive = out.failures[out.decisive];
  std::string rise = growth.is_leak ? growth.words : rise_words(decisive.held);
  if (const std::string& grew = decisive.remarks.grew;
      rise.empty() && decisive.cause == Cause::unknown && !grew.empty())
    rise = grew.starts_with("after")
               ? fmt::format("it failed only {}, and what fits at first and no longer later has grown", grew)
               : fmt::format("the text says that what it holds grows: \"{}\"", grew);
  if (!rise.empty() && decisive.wording->role == Role::device && decisive.wording->name != "statement_killed") {
    decisive.cause = is_handle(decisive) ? Cause::resource : Cause::leak;
    decisive.because = fmt::format("{}; {}", rise,
                                   is_handle(decisive) ? "it asked for an object that takes hardly any "
                                                         "memory: what runs out are such objects, which "
                                                         "are created again and again and not destroyed"
                                                       : decisive.because);
  }
  out.cause = decisive.cause;
  out.because = decisive.because;
  out.fault = fault_of(decisive);
  out.next_step = next_step_of(decisive);
  if (out.cause == Cause::unknown) {
    out.missing_evidence = missing_evidence_for(decisive);
    out.next_step.clear();
  }
  return out;
}

}  // namespace vramtrack::explain
