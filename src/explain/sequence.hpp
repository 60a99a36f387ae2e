// The sequence of events in a text, and whether memory grew from one failure to the next.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "explain/explanation.hpp"

namespace vramtrack::explain {

/// How what one process held changed from one failure to the next.
struct HeldGrowth {
  bool is_leak = false;
  std::string words;  ///< empty: no two failures can be compared
};
HeldGrowth growth_of(const std::vector<Failure>& failures);

/// Reports that allocated memory rose, according to readings in the text before the failure; empty: it did not rise by
/// half and nearly each time, or there are too few readings.
std::string rise_words(const std::vector<double>& held);

/// Each kind of failure, and of the events among `messages`, in the order of first occurrence; empty: there is only one
/// kind. Without failures: only the events.
std::vector<Event> events_of(const std::vector<Failure>& failures, std::span<const Message> messages);

/// "line 3: PyTorch ran out of GPU memory, 4 times until line 90"
std::string event_words(const Event& event);

/// "3 failures, the first in line 1, the last in line 3"; empty: there is only one.
std::string failures_words(const std::vector<Failure>& failures);

/// All of it in one line.
std::string sequence_words(const Explanation& explanation);

}  // namespace vramtrack::explain
