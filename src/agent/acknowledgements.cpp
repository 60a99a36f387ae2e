#include "agent/acknowledgements.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/errno_words.hpp"
#include "report/view_json.hpp"

namespace vramtrack::agent {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMost = 4096;
constexpr std::string_view kSchema = "vramtrack.acknowledged.v1";

Status write_file(const std::string& path, const std::string& text) {
  const std::string next = path + ".new";
  const int fd = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fail(fmt::format("cannot write {}: {}", next, errno_words(errno)));
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  const std::string why = written ? "" : errno_words(errno);
  ::close(fd);
  if (!written || ::rename(next.c_str(), path.c_str()) != 0) {
    const std::string problem = written ? errno_words(errno) : why;
    ::unlink(next.c_str());
    return fail(fmt::format("cannot write {}: {}", path, problem));
  }
  return {};
}

/// While it lives no other program changes the file at `path`: what is read is what is written back. Without a file
/// there is nothing to guard.
class ChangeLock {
 public:
  static Result<ChangeLock> take(const std::string& path) {
    if (path.empty()) return ChangeLock(-1);
    const std::string name = path + ".lock";
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail(fmt::format("cannot write {}: {}", name, errno_words(errno)));
    while (::flock(fd, LOCK_EX) != 0) {  // held for a write of some kilobytes
      if (errno == EINTR) continue;
      const std::string why = errno_words(errno);
      ::close(fd);
      return fail(fmt::format("cannot lock {}: {}", name, why));
    }
    return ChangeLock(fd);
  }
  ChangeLock(ChangeLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ChangeLock& operator=(ChangeLock&&) = delete;
  ~ChangeLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit ChangeLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace

std::string acknowledgements_path(const std::string& store_path) {
  return store_path + ".acknowledged.json";
}

Status Acknowledgements::refresh() {
  if (path_.empty()) return {};
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) {
    if (errno != ENOENT) return fail(fmt::format("cannot read {}: {}", path_, errno_words(errno)));
    if (seen_ns_ >= 0) {
      table_.clear();
      seen_ns_ = -1;
      ++revision_;
    }
    return {};
  }
  const std::int64_t changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (changed_ns == seen_ns_ && info.st_ino == seen_inode_) return {};
  std::ifstream in(path_);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) return fail(fmt::format("cannot read {}; check its rights", path_));
  const auto not_ours = [&] {
    return fail(
        fmt::format("{} is not a file of acknowledgements ({}); move it away to start a new one", path_, kSchema));
  };
  try {
    const json file = json::parse(text.str());
    if (!file.is_object() || file.value("schema", "") != kSchema) return not_ours();
    Table table;
    for (const auto& [id, entry] : file.at("alerts").items()) {
      const auto time = parse_exact_time(entry.at("time").get<std::string>());
      if (time) table[id] = {*time, entry.value("by", ""), entry.value("note", "")};
    }
    table_ = std::move(table);
  } catch (const json::exception&) {
    return not_ours();
  }
  seen_ns_ = changed_ns;
  seen_inode_ = info.st_ino;
  ++revision_;
  return {};
}

Status Acknowledgements::write(const Table& table) {
  json alerts = json::object();
  for (const auto& [id, a] : table) alerts[id] = {{"time", exact_time(a.time)}, {"by", a.by}, {"note", a.note}};
  const json file = {{"schema", kSchema}, {"alerts", alerts}};
  if (Status written = write_file(path_, file.dump(1, ' ', false, json::error_handler_t::replace) + '\n'); !written)
    return fail(written.error());
  return refresh();
}

std::optional<Acknowledgement> Acknowledgements::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  // A file that cannot be read now leaves what was read before.
  [[maybe_unused]] const Status fresh = refresh();
  const auto it = table_.find(id);
  if (it == table_.end()) return std::nullopt;
  return it->second;
}

Status Acknowledgements::set(const std::string& id, Acknowledgement acknowledgement) {
  const std::lock_guard lock(mutex_);
  const auto alone = ChangeLock::take(path_);
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  next[id] = std::move(acknowledgement);
  if (next.size() > kMost)
    next.erase(std::min_element(next.begin(), next.end(),
                                [](const auto& a, const auto& b) { return a.second.time < b.second.time; }));
  if (!path_.empty()) return write(next);
  table_ = std::move(next);
  ++revision_;
  return {};
}

Status Acknowledgements::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto alone = ChangeLock::take(path_);
  if (!alone) return fail(alone.error());
  if (Status fresh = refresh(); !fresh) return fresh;
  Table next = table_;
  if (next.erase(id) == 0) return {};
  if (!path_.empty()) return write(next);
  table_ = std::move(next);
  ++revision_;
  return {};
}

std::uint64_t Acknowledgements::revision() {
  const std::lock_guard lock(mutex_);
  [[maybe_unused]] const Status fresh = refresh();
  return revision_;
}

}  // namespace vramtrack::agent
