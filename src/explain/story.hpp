// The story of a text: what happened in it, in which order, and whether what is held grew from one failure to the next.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "explain/judge.hpp"

namespace vramtrack::explain {

struct Growth {
  bool is_leak = false;
  std::string words;  ///< empty: no two failures can be compared
};
Growth growth_of(const std::vector<Failure>& failures);

/// That what is allocated rose, by the readings of it that the text has before the failure; empty: it did not, by half
/// and nearly each time, or there are too few.
std::string rise_words(const std::vector<double>& held);

/// Each kind of failure, and of the events among `messages`, in the order in which it first happened; empty: there is
/// one kind only. Failures without messages: the events alone.
std::vector<Event> events_of(const std::vector<Failure>& failures, std::span<const Message> messages);

/// "line 3: PyTorch ran out of GPU memory, 4 times until line 90"
std::string event_words(const Event& event);

/// "3 failures, the first in line 1, the last in line 3"; empty: there is one.
std::string failures_words(const std::vector<Failure>& failures);

/// All of it in one line.
std::string story_words(const Explanation& explanation);

}  // namespace vramtrack::explain
