#include "nsys/export.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/errno_words.hpp"
#include "core/format.hpp"
#include "store/sqlite.hpp"

namespace vramtrack::nsys {
namespace {

using trace::Action;
using trace::AllocEvent;
using trace::EventVisit;
using trace::Frame;
using trace::FrameId;
using trace::StackId;
using trace::Symbols;

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr std::size_t kDeepestStack = 256;
/// A globalPid or globalTid holds the process above these bits (and the machine above that).
constexpr int kThreadBits = 24;
constexpr std::int64_t kProcessMask = 0xff'ffff;
/// Device addresses have 47 bits; above them the processes of a report are distinguished.
constexpr int kAddressBits = 48;
constexpr std::uint64_t kMostProcesses = 1U << 16U;

/// The file of an export, readable by path. A copy lives as long as this.
class File {
 public:
  static Result<File> of(ByteInput& input) {
    File file;
    struct stat status {};
    const bool is_whole = input.size_bytes() && ::stat(input.name().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
                          static_cast<std::uint64_t>(status.st_size) == *input.size_bytes();
    if (is_whole) {
      file.path_ = input.name();
      return file;
    }
    // SQLite opens by name, and resolves links: a file without a name would not do.
    std::error_code ignored;
    std::string path = std::filesystem::temp_directory_path(ignored).string() + "/vramtrack-nsys-XXXXXX";
    file.fd_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (file.fd_ < 0) return fail(fmt::format("{}: {}", path, errno_words(errno)));
    file.path_ = std::move(path);
    std::vector<std::uint8_t> piece(1U << 20U);
    for (std::uint64_t copied = 0;;) {
      const auto got = input.read(piece);
      if (!got) return fail(got.error());
      if (*got == 0) return file;
      copied += *got;
      if (copied > kMostCopiedBytes)
        return fail(fmt::format("{}: larger than 4 GiB: decompress it into a file first", input.name()));
      for (std::size_t at = 0; at < *got;) {
        const ssize_t n = ::write(file.fd_, piece.data() + at, *got - at);
        if (n <= 0) return fail(fmt::format("{}: {}", input.name(), errno_words(errno)));
        at += static_cast<std::size_t>(n);
      }
    }
  }
  File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  File() = default;
  std::string path_;
  int fd_ = -1;
};

/// One allocating call of the CUDA API.
struct Call {
  std::int64_t name = 0;
  std::int64_t chain = 0;
};
/// By process and correlation id.
using CallKey = std::pair<std::int64_t, std::int64_t>;

class Reader {
 public:
  Reader(sql::Database database, std::string file, Symbols& symbols)
      : database_(std::move(database)), file_(std::move(file)), symbols_(symbols) {}

  Status read(const EventVisit& visit) {
    // Nothing of the file is code: no views, no virtual tables, no functions in its schema.
    if (Status set = database_.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"); !set)
      return damaged(set);
    const auto events = columns("CUDA_GPU_MEMORY_USAGE_EVENTS");
    if (!events) return damaged(events);
    for (const char* needed : {"start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"})
      if (events->count(needed) == 0)
        return fail(events->empty()
                        ? file_ +
                              ": has no CUDA memory events (table CUDA_GPU_MEMORY_USAGE_EVENTS): record with "
                              "'nsys profile --cuda-memory-usage=true', and export with 'nsys export --type sqlite'"
                        : fmt::format("{}: CUDA_GPU_MEMORY_USAGE_EVENTS has no column {}: this version of nsys is "
                                      "not known",
                                      file_, needed));
    has_correlation_ = events->count("correlationId") != 0;
    has_stream_ = events->count("streamId") != 0;
    has_name_ = events->count("name") != 0;
    for (const auto part : {&Reader::read_enums, &Reader::read_start, &Reader::read_calls, &Reader::read_chains})
      if (Status done = (this->*part)(); !done) return damaged(done);
    return read_events(visit);
  }

 private:
  /// What SQLite said, without its advice on a store.
  template <class Failed>
  [[nodiscard]] tl::unexpected<Error> damaged(const Failed& failed) const {
    std::string message = failed.error().message;
    if (const std::size_t colon = message.find(": "); colon != std::string::npos) message.erase(0, colon + 2);
    message.resize(std::min(message.size(), message.find("; ")));
    return fail(fmt::format("{}: cannot be read as an nsys export: {}", file_, printable(message)));
  }

  /// The columns of a plain table; empty if there is none, and for what only looks like a table.
  Result<std::set<std::string>> columns(std::string_view table) {
    std::set<std::string> names;
    auto plain = database_.prepare(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND sql LIKE 'CREATE TABLE%'");
    if (!plain) return fail(plain.error());
    const auto is_there = plain->bind(1, table).step();
    if (!is_there) return fail(is_there.error());
    if (!*is_there) return names;
    auto listed = database_.prepare(fmt::format("PRAGMA table_info({})", table));
    if (!listed) return fail(listed.error());
    for (;;) {
      const auto row = listed->step();
      if (!row) return fail(row.error());
      if (!*row) return names;
      names.emplace(listed->text(1));
    }
  }

  template <class Row>
  Status each(std::string_view query, Row row) {
    auto statement = database_.prepare(query);
    if (!statement) return fail(statement.error());
    for (;;) {
      const auto stands = statement->step();
      if (!stands) return fail(stands.error());
      if (!*stands) return {};
      if (Status taken = row(*statement); !taken) return taken;
    }
  }

  /// What the numbers mean, where the export says it; else what they have meant in all versions that are known.
  Status read_enums() {
    const auto kinds = columns("ENUM_CUDA_MEM_KIND");
    const auto operations = columns("ENUM_CUDA_DEV_MEM_EVENT_OPER");
    if (!kinds || !operations) return fail(!kinds ? kinds.error() : operations.error());
    if (kinds->count("id") != 0 && kinds->count("name") != 0) {
      host_kinds_.clear();
      if (Status done =
              each("SELECT id FROM ENUM_CUDA_MEM_KIND WHERE name LIKE '%KIND_PAGEABLE' OR name LIKE '%KIND_PINNED'",
                   [&](const sql::Statement& row) -> Status { return host_kinds_.insert(row.integer(0)), Status{}; });
          !done)
        return done;
    }
    if (operations->count("id") == 0 || operations->count("name") == 0) return {};
    return each("SELECT id FROM ENUM_CUDA_DEV_MEM_EVENT_OPER WHERE name LIKE '%DEALLOCATION'",
                [&](const sql::Statement& row) -> Status { return free_ = row.integer(0), Status{}; });
  }

  Status read_start() {
    const auto known = columns("TARGET_INFO_SESSION_START_TIME");
    if (!known) return fail(known.error());
    if (known->count("utcEpochNs") == 0) return {};
    return each("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME LIMIT 1",
                [&](const sql::Statement& row) -> Status { return epoch_ns_ = row.integer(0), Status{}; });
  }

  Status read_calls() {
    const auto known = columns("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!known) return fail(known.error());
    if (!has_correlation_ || known->count("correlationId") == 0 || known->count("globalTid") == 0 ||
        known->count("nameId") == 0)
      return {};
    const bool has_chains = known->count("callchainId") != 0;
    // The runtime's call and the driver's below it may share an id: the one with a call chain is better, else the
    // first.
    return each(fmt::format("SELECT globalTid, correlationId, nameId, {} FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE "
                            "correlationId IN (SELECT correlationId FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE "
                            "memoryOperationType <> {}) ORDER BY start",
                            has_chains ? "callchainId" : "0", free_),
                [&](const sql::Statement& row) -> Status {
                  const CallKey key{row.integer(0) >> kThreadBits, row.integer(1)};
                  const Call call{row.integer(2), row.integer(3)};
                  const auto [it, is_new] = calls_.try_emplace(key, call);
                  if (!is_new && it->second.chain == 0 && call.chain != 0) it->second = call;
                  if (call.chain != 0) chains_.try_emplace(call.chain);
                  return {};
                });
  }

  Status read_chains() {
    const auto known = columns("CUDA_CALLCHAINS");
    if (!known) return fail(known.error());
    if (chains_.empty() || known->count("id") == 0 || known->count("symbol") == 0 || known->count("stackDepth") == 0)
      return {};
    const bool has_module = known->count("module") != 0;
    return each(fmt::format("SELECT id, symbol, {} FROM CUDA_CALLCHAINS ORDER BY id, stackDepth",
                            has_module ? "module" : "NULL"),
                [&](const sql::Statement& row) -> Status {
                  const auto chain = chains_.find(row.integer(0));
                  if (chain == chains_.end() || chain->second.size() >= kDeepestStack) return {};
                  const auto function = string(row.integer(1));
                  const auto module = row.is_null(2) ? Result<trace::StringId>(trace::kNoText) : string(row.integer(2));
                  if (!function || !module) return fail(!function ? function.error() : module.error());
                  // The driver's and the runtime's own frames say no more than the call itself.
                  const std::string_view file = symbols_.text(*module);
                  if (chain->second.empty() && file.substr(file.rfind('/') + 1).starts_with("libcuda")) return {};
                  chain->second.push_back(symbols_.intern(Frame{*function, *module, 0}));
                  return {};
                });
  }

  Result<trace::StringId> string(std::int64_t id) {
    const auto known = strings_.find(id);
    if (known != strings_.end()) return known->second;
    if (!look_up_) {
      const auto there = columns("StringIds");
      if (!there) return fail(there.error());
      if (there->count("id") == 0 || there->count("value") == 0) return symbols_.intern(std::string_view{"?"});
      auto prepared = database_.prepare("SELECT value FROM StringIds WHERE id = ?1");
      if (!prepared) return fail(prepared.error());
      look_up_ = std::move(*prepared);
    }
    const sql::ResetAtEnd reset(*look_up_);
    const auto row = look_up_->bind(1, id).step();
    if (!row) return fail(row.error());
    const trace::StringId found = symbols_.intern(*row ? look_up_->text(0) : std::string_view{"?"});
    strings_.emplace(id, found);
    return found;
  }

  /// The name of a variable, the call chain (or the API's function), and the process where there are several.
  Result<StackId> stack_of(const sql::Statement& row, std::int64_t process) {
    std::vector<FrameId> stack;
    const trace::StringId nowhere = trace::kNoText;
    if (has_name_)
      if (const std::string_view name = row.text(8); !name.empty())
        stack.push_back(symbols_.intern(Frame{symbols_.intern(name), nowhere, 0}));
    const auto call = calls_.find({row.integer(1) >> kThreadBits, row.integer(6)});
    if (has_correlation_ && call != calls_.end()) {
      const auto chain = chains_.find(call->second.chain);
      if (chain != chains_.end() && !chain->second.empty()) {
        stack.insert(stack.end(), chain->second.begin(), chain->second.end());
      } else {  // without a chain the API's function is all that is known
        const auto function = string(call->second.name);
        if (!function) return fail(function.error());
        stack.push_back(symbols_.intern(Frame{*function, nowhere, 0}));
      }
    }
    if (processes_.size() > 1)
      stack.push_back(
          symbols_.intern(Frame{symbols_.intern(fmt::format("process {}", process & kProcessMask)), nowhere, 0}));
    return stack.empty() ? trace::kNoStack : symbols_.intern(stack);
  }

  Status read_events(const EventVisit& visit) {
    if (Status done = each("SELECT DISTINCT globalPid FROM CUDA_GPU_MEMORY_USAGE_EVENTS LIMIT 65537",
                           [&](const sql::Statement& row) -> Status {
                             processes_.try_emplace(row.integer(0) >> kThreadBits, processes_.size());
                             return {};
                           });
        !done)
      return damaged(done);
    if (processes_.size() > kMostProcesses) return fail(file_ + ": more processes than a machine has");
    Status refused;
    const Status done = each(
        fmt::format("SELECT start, globalPid, deviceId, address, bytes, memoryOperationType, {}, {}, {}, memKind FROM "
                    "CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start, rowid",
                    has_correlation_ ? "correlationId" : "NULL", has_stream_ ? "streamId" : "NULL",
                    has_name_ ? "name" : "NULL"),
        [&](const sql::Statement& row) -> Status {
          if (host_kinds_.count(row.integer(9)) != 0) return {};
          const std::int64_t device = row.integer(2);
          const std::int64_t process = row.integer(1) >> kThreadBits;
          const auto known = processes_.find(process);
          if (device < 0 || device > UINT32_MAX || known == processes_.end())
            return refused = fail(fmt::format("{}: {} is not the number of a device", file_, device));
          AllocEvent event;
          event.action = row.integer(5) == free_ ? Action::free_completed : Action::alloc;
          event.time_us = epoch_ns_ / 1000 + row.integer(0) / 1000;
          event.address = static_cast<std::uint64_t>(row.integer(3)) ^ (known->second << kAddressBits);
          event.size_bytes = static_cast<std::uint64_t>(row.integer(4));
          if (event.action == Action::alloc) {
            const auto stack = stack_of(row, process);
            if (!stack) return fail(stack.error());
            event.stack = *stack;
          }
          Status taken = visit(static_cast<std::uint32_t>(device), row.integer(7), event);
          if (!taken) refused = fail(fmt::format("{}: at {} ns: {}", file_, row.integer(0), taken.error().message));
          return taken;
        });
    if (!refused) return refused;
    return done ? Status{} : Status(damaged(done));
  }

  sql::Database database_;
  std::string file_;
  Symbols& symbols_;
  bool has_correlation_ = false, has_stream_ = false, has_name_ = false;
  std::set<std::int64_t> host_kinds_{0, 1};  ///< pageable, pinned
  std::int64_t free_ = 1;
  std::int64_t epoch_ns_ = 0;
  std::map<CallKey, Call> calls_;
  std::map<std::int64_t, std::vector<FrameId>> chains_;
  std::unordered_map<std::int64_t, trace::StringId> strings_;
  std::optional<sql::Statement> look_up_;
  std::map<std::int64_t, std::uint64_t> processes_;  ///< each with a number
};

int looks_like_export(std::string_view head, std::string_view) {
  return head.starts_with(kMagic) ? trace::kSure : 0;
}

Status stream(ByteInput input, Symbols& symbols, const EventVisit& visit) {
  const auto file = File::of(input);
  if (!file) return fail(file.error());
  auto database = sql::Database::open(file->path(), sql::Database::Mode::immutable);
  if (!database) return fail(fmt::format("{}: cannot be opened as an nsys export", input.name()));
  return Reader(std::move(*database), input.name(), symbols).read(visit);
}

}  // namespace

const trace::TraceFormatInfo export_trace_format{
    "nsys-export", "CUDA memory events that nsys exported with --type sqlite (docs/formats/nsys.md)", looks_like_export,
    nullptr, stream};

}  // namespace vramtrack::nsys
