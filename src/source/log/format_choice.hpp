// Chooses the format of a text by the evidence that it has a format (Evidence), and, if that is not enough, by what the
// formats read from it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "source/log/format.hpp"
#include "source/log/rows.hpp"

namespace vramtrack {

/// A head read as a log in one format: it plans once and reads the head at most once.
class Trial {
 public:
  /// `reads` counts how often a head is read; it and `head.text` must outlive this object.
  Trial(const LogFormatInfo& format, const LogHead& head, std::size_t& reads);

  const LogFormatInfo& format;
  std::unique_ptr<LogParser> parser;  ///< nullptr: the format cannot read the head
  std::string why;                    ///< why it cannot

  // --- REQUIRE parser, and read the head ---
  /// Whether figures precede the head's end, where a last reading is known to be complete.
  bool has_complete_reading();
  /// The head's rows, including its last reading; with `or_without`, without it if there are others.
  const LogRows& rows(bool or_without = false);
  std::size_t readings();  ///< number of distinct times
  DeviceRoster devices;

 private:
  std::string_view text_;
  std::size_t& reads_;
  Catalog catalog_;
  LogRows rows_;
  bool is_read_ = false;
  bool is_finished_ = false;
  bool has_complete_reading_ = false;
};

/// A head, and the formats that were tried on it.
class Trials {
 public:
  Trials(const LogHead& head, std::size_t& reads) : head_(head), reads_(reads) {}
  /// For the text `own` in place of the head.
  Trials(const Trials& as_is, std::string own) : own_(std::move(own)), head_(as_is.head_), reads_(as_is.reads_) {
    head_.text = own_;
  }

  [[nodiscard]] const LogHead& head() const { return head_; }
  Trial& of(const LogFormatInfo& format) { return trials_.try_emplace(&format, format, head_, reads_).first->second; }
  /// Like Trial::readings(); 0 if the format cannot read the head.
  std::size_t readings_of(const LogFormatInfo& format) { return of(format).parser ? of(format).readings() : 0; }

 private:
  std::string own_;
  LogHead head_;
  std::size_t& reads_;
  std::map<const LogFormatInfo*, Trial> trials_;
};

/// The format that the options name, or that reads the text best; its parser can be made. An Error reports why there is
/// none.
Result<const LogFormatInfo*> choose_format(Trials& trials);
Result<const LogFormatInfo*> choose_format(const LogHead& head);

/// Whether the options name no format, so that it must be found.
bool is_format_open(const LogOptions& options);

/// The trial as text of any kind; nullptr if `tried` is already that, or the lines cannot be read that way.
Trial* as_prose(Trials& trials, const LogFormatInfo& tried);

/// The first screen format that recognises `head`; nullptr if none does.
const LogFormatInfo* screen_in(std::string_view head);

}  // namespace vramtrack
