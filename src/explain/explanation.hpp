// Explanation: what the out-of-memory messages of one text show together: why memory could not be allocated, from which
// figures, and the next step. docs/explain.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/reader.hpp"

namespace vramtrack::explain {

/// One failure to allocate memory: a message, with those near it that report the same failure.
struct Failure {
  const Wording* wording = nullptr;  ///< of the most informative message
  std::uint64_t line = 0;
  std::string text;             ///< as Message::text
  std::uint64_t messages = 1;   ///< messages that report it
  std::uint64_t last_line = 0;  ///< line of the last of them
  std::string before;           ///< as Message::before
  Figures figures;
  std::vector<OtherProcess> others;
  std::uint64_t used_line = 0;  ///< line of the table that shows use, and the others; 0: in the message itself, or none
  double own_pid = 0;           ///< of the process that failed; 0: not in the text
  bool may_name_itself = false;   ///< one of the others may be the process that failed
  std::vector<Holding> largest;   ///< the largest holders, from each table near the message; may be empty
  std::uint64_t table_line = 0;   ///< the last line of the tables near it; 0: none
  std::string_view runs_in;       ///< the program whose code caused it; empty: nothing near shows it
  double batch = 0;               ///< as Message::batch
  std::string went_on;            ///< as Message::went_on
  Remarks remarks;                ///< as Message::remarks
  std::set<std::string> refused;  ///< as Message::refused
  System system = System::any;    ///< as Message::system
  std::vector<double> held;       ///< as Message::held
  bool is_pinned = false;         ///< it happened while host memory was pinned
  Cause cause = Cause::unknown;
  std::string because;
  std::string
      missing_evidence;  ///< the missing evidence, if the figures show more about that than the wording; may be empty
};

/// What happened, and how often.
struct Event {
  std::uint64_t line = 0;  ///< of the first
  std::uint64_t last_line = 0;
  std::uint64_t count = 1;
  std::string what;  ///< "PyTorch ran out of GPU memory"
};

struct Explanation {
  std::vector<Failure> failures;  ///< in text order; at least one
  std::size_t decisive = 0;       ///< index of the failure that is explained: the first one with a known cause
  std::uint64_t message_count = 0;
  Cause cause = Cause::unknown;
  std::string because;  ///< the figures after it, in words
  std::string fault;    ///< the responsible party
  std::string next_step;
  std::string missing_evidence;  ///< what would decide; empty where the cause is known
  std::vector<Event> events;  ///< of several kinds, in the order in which each first happened; empty: there is one kind
  std::string growth;         ///< whether what is held rose from one failure to the next; empty: nothing shows it
  std::string sequence;       ///< both in words, and how often it failed; empty where there is one failure alone

  [[nodiscard]] const Failure& failure() const { return failures[decisive]; }
};

/// nullopt: there is no failure among them. O(failures * messages).
std::optional<Explanation> explain(std::span<const Message> messages);

/// Memory in use on a device next to an allocator without a particular culprit: contexts and kernels of libraries. As
/// in `snapshot oom`, and at least 1.5 GiB: contexts and desktops do not shrink with the card, and messages come from
/// small ones.
double ordinary_outside_bytes(double total_bytes);

}  // namespace vramtrack::explain
