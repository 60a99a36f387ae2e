// Audit: the append-only record of every act, one JSON object per line (docs/formats/acts.md). It is also the journal:
// each act is on the disk before it is carried out, and its result afterwards, so the run after a crash can tell what
// may have been done.
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
  Timestamp written;  ///< by the wall clock
  std::string boot;   ///< identifies this boot of the machine
  std::string climb;
  std::string policy;
  std::string policy_text;  ///< for begin: text_hash()
  std::optional<std::size_t> step;
  std::string action;
  std::string text;      ///< the act, its result, or the reason
  std::string undo;      ///< for intent, done, undo_failed and left: ActPlan::undo
  std::string workload;  ///< for acts that restart work
  bool dry_run = false;
  bool is_for_people = false;
  std::string reason;          ///< for say: why nothing confirms a claim, in one word
  std::optional<Claim> claim;  ///< for claim
  Subject subject;             ///< with the evidence at that moment
};

/// The entry as one line, without a newline. Printable.
std::string audit_json(const AuditEntry& entry);
/// The reverse of audit_json(). Errors state what is missing or wrong. Pure.
Result<AuditEntry> parse_audit(std::string_view line);
/// A list of entries, as the API returns them.
std::string audit_list_json(const std::vector<AuditEntry>& entries);

/// is_outcome(): whether the entry is the outcome of a step and so counts. needs_notification(): whether to notify
/// people even without a `notify` step, because an act was done or undone, or could not be; never for a dry run. Pure.
bool is_outcome(const AuditEntry& entry);
bool needs_notification(const AuditEntry& entry);
/// The notification for an entry. Its id depends only on the entry. Pure.
Note note_of(const AuditEntry& entry);

/// `store_path` + ".acts.jsonl".
std::string audit_path(const std::string& store_path);

/// The entries of the record, oldest first: the last 16 MiB, from the file and the full one before it. Lines that
/// are not entries (a write cut short by a power cut) are left out. Empty if there is no file.
Result<std::vector<AuditEntry>> read_audit(const std::string& path);

/// The number of full files. They are numbered from the oldest, `path` + ".1".
std::uint32_t full_audits(const std::string& path);
std::string full_audit_path(const std::string& path, std::uint32_t number);

/// The record file, open for appending, by at most one program at a time. When it is full, it is renamed to the next
/// number and a new one begins; no file is ever deleted. Not thread-safe.
class Journal {
 public:
  static constexpr std::uint64_t kFullBytes = 16 * 1024 * 1024;  ///< about ten thousand acts

  /// If `path` is empty, the journal keeps nothing. Errors: another vramtrack has it open, no permission to write.
  static Result<Journal> open(const std::string& path);
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Appends one line; with `synced`, it is on the disk when the call returns.
  Status append(const AuditEntry& entry, bool synced);
  /// Whether the next line begins a new file.
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

/// Gives `ladder` what earlier runs left: climbs that have not ended, acts that still count, and work that was
/// restarted. An intent without a result counts as done if doing it twice differs from doing it once; otherwise its
/// step is due again, with the recorded plan. Climbs from another boot have ended with their processes. Claims are
/// remembered and the breaker stays open, but a run that acts ignores dry runs. Returns the entries to append for all
/// this. REQUIRES: ladder.advance() has not been called yet.
std::vector<AuditEntry> recover(const std::vector<AuditEntry>& entries, const std::string& boot, Timestamp now,
                                Ladder& ladder);

}  // namespace vramtrack::act
