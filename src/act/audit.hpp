// Audit: the append-only record of every act, one JSON object per line (docs/formats/acts.md). It is also the journal:
// each act is on the disk before it is carried out, and its result afterwards. So the run that follows a crash knows
// what may have been done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "act/ladder.hpp"
#include "act/note.hpp"
#include "core/regular_file.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// One line. `event`: "begin", "intent", "done", "failed", "refused", "skipped", "waits", "would" (a dry run),
/// "undone", "released", "left", "would_undo", "undo_failed", "say", "end", "claim", "joined", "breaker_opened",
/// "breaker_closed" (docs/formats/acts.md).
struct AuditEntry {
  std::string event;
  Timestamp time;     ///< by the samples' clock
  Timestamp written;  ///< by the time of day
  std::string boot;   ///< identifies this boot of the machine
  std::string climb;
  std::string policy;
  std::string policy_text;  ///< for begin: text_hash()
  std::optional<std::size_t> step;
  std::string action;
  std::string text;      ///< what is done, its result, or the reason
  std::string undo;      ///< for intent, done, undo_failed and left: ActPlan::undo
  std::string workload;  ///< for acts that start work again
  bool dry_run = false;
  bool is_for_people = false;
  std::string reason;          ///< of say: why nothing confirms a claim, in one word
  std::optional<Claim> claim;  ///< of claim
  Subject subject;             ///< with the evidence of the moment
};

/// One line without its newline. Printable.
std::string audit_json(const AuditEntry& entry);
/// The reverse. Errors say what is missing or wrong. Pure.
Result<AuditEntry> parse_audit(std::string_view line);
/// A list of entries, as the API returns it.
std::string audit_list_json(const std::vector<AuditEntry>& entries);

/// Whether the entry says what became of a step, so that it is counted; and whether people must be notified of it
/// without a step that does: an act that was done, undone or could not be. Nothing of a dry run. Pure.
bool is_outcome(const AuditEntry& entry);
bool needs_notification(const AuditEntry& entry);
/// The message about an entry. Its id is the same whoever reads the entry. Pure.
Note note_of(const AuditEntry& entry);

/// `store_path` + ".acts.jsonl".
std::string audit_path(const std::string& store_path);

/// The entries of the record, oldest first: the last 16 MiB, from the file and the full one before it. Lines that
/// are not entries (a write cut short by a power cut) are left out. Empty if there is no file.
Result<std::vector<AuditEntry>> read_audit(const std::string& path);

/// The number of full files. They are numbered: `path` + ".1" is the oldest.
std::uint32_t full_audits(const std::string& path);
std::string full_audit_path(const std::string& path, std::uint32_t number);

/// The file, open for appending. At most one program has it open. When it is full, it is renamed to the next number and
/// a new one begins; no file is ever deleted. Not thread-safe.
class Journal {
 public:
  static constexpr std::uint64_t kFullBytes = 16 * 1024 * 1024;  ///< about ten thousand acts

  /// `path` empty: a journal that keeps nothing. Errors: another vramtrack has it open, no right to write.
  static Result<Journal> open(const std::string& path);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Appends one line; `synced`: it is on the disk when this returns.
  Status append(const AuditEntry& entry, bool synced);
  /// The next line begins a new file.
  [[nodiscard]] bool is_full() const { return !path_.empty() && size_ >= kFullBytes; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Journal(std::string path, int fd, std::optional<FileLock> lock, std::uint64_t size = 0)
      : path_(std::move(path)), fd_(fd), lock_(std::move(lock)), size_(size) {}
  Status begin_next_file();

  std::string path_;
  int fd_ = -1;
  std::optional<FileLock> lock_;
  std::uint64_t size_ = 0;  ///< of the file
};

/// Gives `ladder` what earlier runs left: climbs that have not ended, acts that still count, and work that was started
/// again. An intent without a result counts as done if doing it twice differs from doing it once; else its step is due
/// again, with the recorded plan. Climbs of another boot have ended with their processes. Claims are remembered, and
/// the breaker stays open; but what a dry run did is not of a run that acts. Returns the entries that say so, to be
/// appended. REQUIRES: ladder.advance() has not been called yet.
std::vector<AuditEntry> recover(const std::vector<AuditEntry>& entries, const std::string& boot, Timestamp now,
                                Ladder& ladder);

}  // namespace vramtrack::act
