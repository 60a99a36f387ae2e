// Explanation: what the out-of-memory messages of one text say together: why memory could not be had, by which figures,
// and what to do next. docs/explain.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/reader.hpp"

namespace vramtrack::explain {

/// One failure to get memory: a message, with those beside it that tell of the same failure.
struct Failure {
  const Wording* wording = nullptr;  ///< of the message that tells most
  std::uint64_t line = 0;
  std::string text;             ///< as Message::text
  std::uint64_t messages = 1;   ///< that tell of it
  std::uint64_t last_line = 0;  ///< of the last of them
  std::string before;           ///< as Message::before
  Figures figures;
  std::vector<OtherProcess> others;
  std::uint64_t used_line =
      0;               ///< of the table that shows what is in use, and the others; 0: the message does, or none
  double own_pid = 0;  ///< of the process that failed; 0: the text does not tell
  bool may_name_itself = false;  ///< one of the others may be the process that failed
  std::vector<Holding> largest;  ///< what holds most, of each table beside the message; may be empty
  std::uint64_t table_line = 0;  ///< the last line of the tables beside it; 0: there are none
  std::string_view runs_in;      ///< the program whose code led to it; empty: nothing near shows it
  double batch = 0;              ///< as Message::batch
  std::string went_on;           ///< as Message::went_on
  Remarks remarks;               ///< as Message::remarks
  System system = System::any;   ///< as Message::system
  std::vector<double> held;      ///< as Message::held
  bool is_pinned = false;        ///< it happened while host memory was pinned
  Cause cause = Cause::unknown;
  std::string because;
  std::string would_tell;  ///< what would decide, where the figures tell more of that than the wording; may be empty
};

/// What happened, once or more often.
struct Event {
  std::uint64_t line = 0;  ///< of the first
  std::uint64_t last_line = 0;
  std::uint64_t count = 1;
  std::string what;  ///< "PyTorch ran out of GPU memory"
};

struct Explanation {
  std::vector<Failure> failures;  ///< in the order of the text; at least one
  std::size_t decisive = 0;       ///< index of the failure that is explained: the first that tells its cause
  std::uint64_t message_count = 0;
  Cause cause = Cause::unknown;
  std::string because;  ///< the figures behind it, in words
  std::string fault;    ///< whose it is
  std::string next_step;
  std::string would_tell;     ///< what would decide; empty where the cause is known
  std::vector<Event> events;  ///< of several kinds, in the order in which each first happened; empty: there is one kind
  std::string growth;         ///< whether what is held rose from one failure to the next; empty: nothing shows it
  std::string story;          ///< both in words, and how often it failed; empty where there is one failure alone

  [[nodiscard]] const Failure& failure() const { return failures[decisive]; }
};

/// nullopt: there is no failure among them. O(failures * messages).
std::optional<Explanation> explain(std::span<const Message> messages);

/// What of a device is in use beside an allocator without anybody to blame: contexts and kernels of libraries. As in
/// `snapshot oom`, and at least 1.5 GiB: contexts and desktops do not get smaller with the card, and messages come from
/// small ones.
double ordinary_outside_bytes(double total_bytes);

}  // namespace vramtrack::explain
