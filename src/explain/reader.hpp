// Reader: finds out-of-memory messages in any text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "explain/anchors.hpp"
#include "explain/message.hpp"
#include "explain/statement.hpp"
#include "explain/table.hpp"

namespace vramtrack::explain {

/// Takes a text piece by piece. Any bytes are accepted; nothing in them is executed. Holds at most 1 MiB of the text
/// and 10,000 messages (the first ones; dropped_count() continues). The cost is linear in the text, no matter what it
/// contains: if messages with fewer than two figures are denser than one in 2,000 bytes, only the first 500 of them are
/// distinguished from mentions, and the rest is dropped. Not thread-safe.
class Reader {
 public:
  void feed(std::string_view piece);
  /// The messages found, in text order. Call once, after the last feed().
  std::vector<Message> finish();

  /// Messages that were not kept.
  [[nodiscard]] std::uint64_t dropped_count() const { return dropped_; }
  /// The first line that only mentions a message (quotation.hpp, place.hpp); 0: none.
  [[nodiscard]] std::uint64_t quotation_line() const { return quotation_line_; }

 private:
  struct Found {
    std::size_t begin = 0;
    const Wording* wording = nullptr;
    std::size_t anchor_size = 0;
    Match match;
  };
  /// Reported between failures: allocated memory, "mem_allocated: 1698 MB", and batch sizes.
  struct Held {
    std::size_t at = 0;
    double bytes = 0;
    double batch = 0;  ///< 0: the other kind
  };
  void scan(bool is_end);
  [[nodiscard]] std::vector<Statement> find_statements(const std::vector<Hit>& hits) const;
  /// Drops the wordings of `all` that no statement stands for, and adds the statements before `until` that have none.
  void join(const std::vector<Statement>& statements, std::size_t until, std::vector<Found>& all) const;
  void take(const Found& found);
  /// Whether the text, which has mentions but no message, is a user's report: short, and of several lines.
  [[nodiscard]] bool is_report() const;
  /// The system that the text names at its beginning or near `begin`: the first one found.
  System system_at(std::size_t begin);
  /// Adds the options that the line at `at` names, and says are not supported or ignored.
  void add_refused(std::string_view text, std::size_t at);
  /// Consumes the readings of `readings_` before `until`.
  void take_held(std::size_t until);

  std::string text_;                ///< unread text, and some before it
  std::size_t taken_until_ = 0;     ///< offset in text_: messages that begin before it have been read
  std::uint64_t lines_before_ = 0;  ///< line feeds before counted_
  std::size_t counted_ = 0;         ///< offset in text_
  TableReader tables_;
  System system_ = System::any;
  std::vector<Message> messages_;
  std::vector<Message> spoken_;  ///< the first mentions identified only by their sentence (Mention::spoken)
  bool is_document_ = false;     ///< the text begins with its title
  std::uint64_t read_bytes_ = 0;
  std::uint64_t erased_ = 0;       ///< bytes dropped before text_
  std::uint64_t judged_ = 0;       ///< messages examined for being mentions
  double batch_ = 0;               ///< the last batch size
  std::vector<Held> readings_;     ///< not yet consumed
  std::vector<double> held_;       ///< the last ones consumed
  std::set<std::string> refused_;  ///< as Message::refused, so far
  std::uint64_t dropped_ = 0;
  std::uint64_t quotation_line_ = 0;
};

/// The messages of a complete text.
std::vector<Message> read_messages(std::string_view text);

}  // namespace vramtrack::explain
