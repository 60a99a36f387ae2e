#include "act/audit.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errno_words.hpp"
#include "core/file_way.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

/// The size of a full file plus the line that filled it.
constexpr std::size_t kMostRead = Journal::kFullBytes + (1U << 20U);

/// One climb, reconstructed from its entries.
struct RecordedClimb {
  AuditEntry begin;                ///< empty: it has not begun
  std::optional<AuditEntry> open;  ///< an intent without a result
  Climb climb;
  bool is_over = false;

  [[nodiscard]] bool has_begun() const { return !begin.event.empty(); }
};

void take_result(RecordedClimb& recorded, const AuditEntry& e) {
  const ActionInfo* info = find_action(e.action);
  recorded.open.reset();
  if (e.event == "refused") {
    recorded.climb.phase = Climb::Phase::standing;
    return;
  }
  recorded.climb.step = e.step.value_or(recorded.climb.step) + 1;
  recorded.climb.step_since = e.time;
  if (info != nullptr && info->traits.ends_process && e.event == "done") recorded.climb.ended_process = true;
}

void take(RecordedClimb& recorded, const AuditEntry& e) {
  Climb& climb = recorded.climb;
  const auto unattributed_bytes = climb.subject.unattributed_bytes;
  climb.subject = e.subject;
  if (!climb.subject.unattributed_bytes) climb.subject.unattributed_bytes = unattributed_bytes;
  if (e.event == "intent") {
    recorded.open = e;
    if (!e.undo.empty()) climb.held.push_back({e.step.value_or(0), e.action, e.undo, 0});
  } else if (e.event == "done" || e.event == "failed" || e.event == "refused" || e.event == "skipped" ||
             e.event == "would") {
    take_result(recorded, e);
  } else if (e.event == "undone" || e.event == "released") {
    std::erase_if(climb.held, [&e](const Climb::Held& held) { return e.step && held.step == *e.step; });
    if (e.event == "undone" || !e.step) return;
    climb.step = std::min(climb.step, *e.step);  // it was undone only because vramtrack ended: the step is due again
    climb.step_since = e.time;
    climb.phase = Climb::Phase::climbing;
  }
}

AuditEntry entry_of(const RecordedClimb& recorded, const char* event, Timestamp now, const std::string& boot,
                    std::string text) {
  AuditEntry e;
  e.event = event;
  e.time = e.written = now;
  e.boot = boot;
  e.climb = recorded.begin.climb;
  e.policy = recorded.begin.policy;
  e.dry_run = recorded.begin.dry_run;
  e.subject = recorded.climb.subject;
  e.text = std::move(text);
  return e;
}

struct OutcomeWords {
  std::string_view event;
  std::string_view words;
};
constexpr std::array kOutcomes = {
    OutcomeWords{"done", "done"},          OutcomeWords{"failed", "failed"},
    OutcomeWords{"refused", "refused"},    OutcomeWords{"skipped", "left out"},
    OutcomeWords{"waits", "waits"},        OutcomeWords{"undone", "undone"},
    OutcomeWords{"released", "undone"},    OutcomeWords{"undo_failed", "could not be undone"},
    OutcomeWords{"left", "left as it is"},
};

const OutcomeWords* outcome_of(std::string_view event) {
  const auto at = std::find_if(kOutcomes.begin(), kOutcomes.end(),
                               [event](const OutcomeWords& outcome) { return outcome.event == event; });
  return at == kOutcomes.end() ? nullptr : &*at;
}

/// The last bytes of a file, starting at the beginning of a line; empty if there is no file.
Result<std::string> read_end(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return std::string();
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return fail(fmt::format("cannot read {}: {}", path, errno_words(errno)));
  if (!S_ISREG(info.st_mode)) return fail(fmt::format("cannot read {}: it is not a regular file", path));
  const auto size = static_cast<std::size_t>(info.st_size);
  const std::size_t from = size > most_bytes ? size - most_bytes : 0;
  std::string text(size - from, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::pread(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(from + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  if (from > 0) text.erase(0, std::min(text.size(), text.find('\n')));
  return text;
}

void parse_lines(std::string_view text, std::vector<AuditEntry>& entries) {
  while (!text.empty()) {
    if (auto entry = parse_audit(next_line(text))) entries.push_back(std::move(*entry));
  }
}

/// Opens a file for appending, after completing its last line.
Result<std::pair<int, std::uint64_t>> open_to_append(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return fail(fmt::format("cannot write {}: {}", path, errno_words(errno)));
  if (!S_ISREG(info.st_mode)) return fail(fmt::format("{} is not a regular file; move it away", path));
  // A line cut short by a power failure must not run into the next one.
  char last = '\n';
  if (info.st_size > 0 && ::pread(file.get(), &last, 1, info.st_size - 1) == 1 && last != '\n' &&
      !write_all(file.get(), "\n"))
    return fail(fmt::format("cannot write {}: {}", path, errno_words(errno)));
  if (const Status synced = sync_folder_of(path); !synced) return fail(synced.error());
  return std::pair(file.release(), static_cast<std::uint64_t>(info.st_size));
}

}  // namespace

std::string audit_path(const std::string& store_path) {
  return store_path + ".acts.jsonl";
}

std::string full_audit_path(const std::string& path, std::uint32_t number) {
  return fmt::format("{}.{}", path, number);
}

std::uint32_t full_audits(const std::string& path) {
  std::uint32_t count = 0;
  while (::access(full_audit_path(path, count + 1).c_str(), F_OK) == 0) ++count;
  return count;
}

Result<std::vector<AuditEntry>> read_audit(const std::string& path) {
  auto newest = read_end(path, kMostRead);
  if (!newest) return fail(newest.error());
  std::vector<AuditEntry> entries;
  // Older entries are at the end of the previous file. Right after a rename, the newest file may be missing.
  const std::uint32_t full = full_audits(path);
  if (full > 0 && newest->size() < kMostRead) {
    const auto before = read_end(full_audit_path(path, full), kMostRead - newest->size());
    if (!before) return fail(before.error());
    parse_lines(*before, entries);
  }
  parse_lines(*newest, entries);
  return entries;
}

Result<Journal> Journal::open(const std::string& path) {
  if (path.empty()) return Journal({}, -1, std::nullopt);
  if (const Status ours = check_links(path); !ours) return fail(ours.error());
  std::error_code ec;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ec);
  auto lock = FileLock::take_now(path + ".lock");
  if (!lock) return fail(lock.error());
  if (!*lock) return fail(fmt::format("another vramtrack is using {} and is already acting", path));
  const auto file = open_to_append(path);
  if (!file) return fail(file.error());
  return Journal(path, file->first, std::move(*lock), file->second);
}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      lock_(std::move(other.lock_)),
      size_(other.size_) {}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

Status Journal::append(const AuditEntry& entry, bool synced) {
  if (path_.empty()) return {};
  if (size_ >= kFullBytes)
    if (Status begun = begin_next_file(); !begun) return begun;
  const std::string line = audit_json(entry) + '\n';
  if (!write_all(fd_, line) || (synced && ::fsync(fd_) != 0))
    return fail(fmt::format("cannot write {}: {}", path_, errno_words(errno)));
  size_ += line.size();
  return {};
}

/// The files on the disk are consistent after each step: a crash between the two steps leaves no newest file, and the
/// next run creates it.
Status Journal::begin_next_file() {
  const std::string full = full_audit_path(path_, full_audits(path_) + 1);
  if (::fsync(fd_) != 0 || ::rename(path_.c_str(), full.c_str()) != 0)
    return fail(fmt::format("cannot rename {} to {}: {}", path_, full, errno_words(errno)));
  const auto next = open_to_append(path_);
  if (!next) return fail(next.error());
  ::close(std::exchange(fd_, next->first));
  size_ = next->second;
  return {};
}

bool is_outcome(const AuditEntry& entry) {
  return !entry.action.empty() &&
         (entry.event == "would" || entry.event == "would_undo" || outcome_of(entry.event) != nullptr);
}

bool needs_notification(const AuditEntry& entry) {
  const ActionInfo* info = find_action(entry.action);
  if (entry.dry_run || info == nullptr || outcome_of(entry.event) == nullptr) return false;
  // The next run continues with acts on the node: no process waits for them meanwhile.
  if (entry.event == "left") return info->traits.needs_process;
  return !info->traits.is_free;
}

Note note_of(const AuditEntry& entry) {
  const Subject& subject = entry.subject;
  const OutcomeWords* outcome = outcome_of(entry.event);
  const ActionInfo* info = find_action(entry.action);
  Note note;
  note.act_id = fmt::format("{}-{}", entry.climb,
                            text_hash(fmt::format("{}/{}/{}/{}/{}", entry.step.value_or(0), entry.action, entry.event,
                                                  entry.time.time_since_epoch().count(), entry.text)));
  note.is_always_sent =
      entry.event != "refused" && entry.event != "skipped" && entry.event != "waits" && outcome != nullptr;
  note.incident = subject.incident;
  note.key.device_id = subject.device_id;
  note.key.host = subject.process.host;
  note.key.pid = subject.process.pid;
  note.key.pid_start_ticks = subject.process.start_ticks;
  note.severity = std::max(subject.severity, Severity::warning);
  note.time = entry.time;
  std::string text = fmt::format("POLICY {}: ", entry.policy);
  if (outcome != nullptr && !entry.action.empty()) text += fmt::format("{} {}: ", entry.action, outcome->words);
  text += entry.text;
  if (const std::string about = subject_words(subject); !about.empty()) text += "; " + about;
  if (info != nullptr && info->by_hand != nullptr && !entry.undo.empty()) {
    if (entry.event == "done" && info->traits.stops_growth) text += "; it will not free its memory by itself";
    text += "; to undo it by hand: " + info->by_hand(subject, entry.undo);
  }
  note.text = printable(text);
  return note;
}

namespace {

/// A claim without a ladder: it waits for one, or has had one that counts.
Climb claimed(const RecordedClimb& recorded) {
  Climb climb;
  climb.id = recorded.climb.id;
  climb.phase = recorded.is_over ? Climb::Phase::over : Climb::Phase::claimed;
  climb.claim = recorded.climb.claim;
  if (recorded.has_begun()) {
    climb.policy = recorded.begin.policy;
    climb.subject = recorded.climb.subject;
    climb.dry_run = recorded.begin.dry_run;
  }
  for (const auto& [name, value] : climb.claim->labels) climb.subject.labels.emplace(name, value);
  climb.refusal = recorded.climb.refusal;
  climb.why = recorded.climb.why;
  climb.with = recorded.climb.with;
  return climb;
}

/// Adds what the limits count, and the breaker's state.
void take_limits(const AuditEntry& e, Timestamp now, Limits& limits) {
  const ActionInfo* info = find_action(e.action);
  const bool is_act = e.event == "intent" || e.event == "would";
  const double age_s = seconds_between(e.time, now);
  if (is_act && info != nullptr && !info->traits.is_free && age_s < limits.longest_window_s())
    limits.count_act(e.time, e.subject.node);
  if (e.event == "done" && !e.workload.empty() && age_s < Ladder::kRetryWindow_s)
    limits.count_restart(e.time, e.workload);
  if (e.event == "breaker_opened") limits.open_breaker({e.time, e.text});
  if (e.event == "breaker_closed") limits.close_breaker();
}

}  // namespace

std::vector<AuditEntry> recover(const std::vector<AuditEntry>& entries, const std::string& boot, Timestamp now,
                                Ladder& ladder) {
  std::map<std::string, RecordedClimb> climbs;
  std::vector<std::string> order;
  const auto begin_anew = [&](const std::string& id) -> RecordedClimb& {
    const auto [at, is_new] = climbs.try_emplace(id);
    if (is_new) order.push_back(id);
    RecordedClimb recorded;
    recorded.climb.id = id;
    recorded.climb.claim = std::move(at->second.climb.claim);
    return at->second = std::move(recorded);
  };
  for (const AuditEntry& e : entries) {
    // A dry run's acts do not count for a real run.
    const bool counts = !e.dry_run || ladder.config().dry_run;
    if (counts) take_limits(e, now, ladder.restored_limits());
    if (e.event == "begin") {
      RecordedClimb& recorded = begin_anew(e.climb);
      recorded.begin = e;
      recorded.climb.subject = e.subject;
      recorded.climb.step_since = e.time;
      continue;
    }
    if (e.event == "claim" && e.claim) {
      RecordedClimb& recorded = climbs.contains(e.climb) ? climbs.at(e.climb) : begin_anew(e.climb);
      recorded.climb.claim = e.claim;
      recorded.is_over = recorded.is_over || (counts && e.claim->is_over);
      continue;
    }
    const auto at = climbs.find(e.climb);
    if (at == climbs.end()) continue;
    RecordedClimb& recorded = at->second;
    if (e.event == "end" && !recorded.climb.claim) {
      climbs.erase(at);
    } else if (e.event == "end") {
      recorded.is_over = counts;
      if (!counts) begin_anew(e.climb);
    } else if (e.event == "joined") {
      if (counts) recorded.climb.with = e.text;
    } else if (!e.reason.empty()) {
      if (counts) recorded.climb.refusal = e.reason, recorded.climb.why = e.text;
    } else {
      take(recorded, e);
    }
  }
  std::vector<AuditEntry> notes;
  for (const std::string& id : order) {
    const auto at = climbs.find(id);
    if (at == climbs.end()) continue;
    RecordedClimb& recorded = at->second;
    if (!recorded.climb.with.empty()) {
      const auto other = climbs.find(recorded.climb.with);
      recorded.is_over = recorded.is_over || other == climbs.end() || other->second.is_over;
    }
    if (!recorded.has_begun() || recorded.is_over) {
      ladder.restore(claimed(recorded));
      continue;
    }
    if (recorded.begin.boot != boot || recorded.begin.dry_run) {
      notes.push_back(entry_of(recorded, "end", now, boot,
                               recorded.begin.dry_run ? "vramtrack was restarted" : "the machine was restarted"));
      if (!recorded.climb.claim) continue;
      recorded.is_over = !recorded.begin.dry_run || ladder.config().dry_run;
      if (!recorded.is_over) recorded.begin = {};
      ladder.restore(claimed(recorded));
      continue;
    }
    Climb& climb = recorded.climb;
    climb.policy = recorded.begin.policy;
    climb.rule = ladder.rule(recorded.begin.policy, recorded.begin.policy_text);
    climb.began = recorded.begin.time;
    if (recorded.open) {
      const AuditEntry& open = *recorded.open;
      const ActionInfo* info = find_action(open.action);
      if (info != nullptr && info->traits.is_repeatable) {
        climb.step = open.step.value_or(0);
        climb.pending = ActPlan{open.text, open.undo};
        // The act may have been carried out: then its process has ended, and its memory is being watched.
        climb.ended_process |= info->traits.ends_process;
        notes.push_back(entry_of(
            recorded, "say", now, boot,
            fmt::format("vramtrack ended during '{}', which is repeated if it was not completed", open.action)));
      } else {
        AuditEntry done =
            entry_of(recorded, "done", open.time, boot,
                     "vramtrack ended while it was being done: it is assumed to be done and not repeated");
        done.written = now;
        done.step = open.step;
        done.action = open.action;
        done.workload = open.workload;
        if (!open.workload.empty()) ladder.restored_limits().count_restart(open.time, open.workload);
        take_result(recorded, done);
        notes.push_back(std::move(done));
      }
    }
    climb.held_used_bytes = climb.subject.used_bytes;
    climb.unattributed_bytes = climb.subject.unattributed_bytes;
    climb.process_bytes = static_cast<double>(climb.subject.used_bytes);
    // A process that should have been resumed before the next step may not have been.
    climb.unwind = climb.rule && climb.step > 0 && climb.step <= climb.rule->steps.size() &&
                   climb.rule->steps[climb.step - 1].action->traits.needs_running && !climb.held.empty();
    ladder.restore(std::move(climb));
  }
  return notes;
}

}  // namespace vramtrack::act
