#include "source/log/record_sorter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/errno_words.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kLeastWindow = 64 * kBytesPerKiB;

/// Precedes the text of a record in the spool.
struct Header {
  std::int64_t key;
  std::uint64_t line;
  std::uint32_t length;
  std::uint32_t complete;
};

}  // namespace

Status RecordSorter::add(const LogRecord& record) {
  if (!entries_.empty() && text_.size() + record.text.size() + entries_.size() * sizeof(Entry) > buffer_bytes_)
    if (auto ok = spill(); !ok) return ok;
  entries_.push_back(
      {record.key, record.line, text_.size(), static_cast<std::uint32_t>(record.text.size()), record.complete});
  text_ += record.text;
  ++size_;
  return {};
}

Status RecordSorter::spill() {
  if (!spool_) {
    auto made = Spool::make();
    if (!made) return fail(std::move(made.error()));
    spool_.emplace(std::move(*made));
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  Run run;
  run.at = spool_->size_bytes();
  std::string out;
  for (const Entry& e : entries_) {
    const Header header{e.key, e.line, e.length, e.complete ? 1U : 0U};
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(text_, e.offset, e.length);
    if (out.size() < kBytesPerMiB) continue;
    if (auto ok = spool_->append(out); !ok) return ok;
    out.clear();
  }
  if (auto ok = spool_->append(out); !ok) return ok;
  run.end = spool_->size_bytes();
  runs_.push_back(std::move(run));
  text_.clear();
  entries_.clear();
  return {};
}

bool RecordSorter::later(std::size_t a, std::size_t b) const {
  // With equal keys, the records of the earlier run come first: they were added first.
  return runs_[a].front.key != runs_[b].front.key ? runs_[a].front.key > runs_[b].front.key : a > b;
}

Status RecordSorter::start() {
  started_ = true;
  if (runs_.empty()) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return {};
  }
  if (!entries_.empty())
    if (auto ok = spill(); !ok) return ok;
  text_ = {};
  entries_ = {};
  const std::size_t window = std::max(kLeastWindow, buffer_bytes_ / runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    runs_[i].window.resize(window);
    auto more = advance(runs_[i]);
    if (!more) return fail(std::move(more.error()));
    if (*more) heap_.push_back(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), [this](std::size_t a, std::size_t b) { return later(a, b); });
  return {};
}

Status RecordSorter::fill(Run& run, std::size_t least) {
  std::memmove(run.window.data(), run.window.data() + run.begin, run.filled - run.begin);
  run.filled -= run.begin;
  run.begin = 0;
  if (run.window.size() < least) run.window.resize(least);
  const std::size_t room = std::min<std::uint64_t>(run.window.size() - run.filled, run.end - run.at);
  auto n = spool_->read_at(run.at, {run.window.data() + run.filled, room});
  if (!n) return fail(std::move(n.error()));
  if (*n != room) return fail("a temporary file was cut off while it was being read");
  run.at += room;
  run.filled += room;
  return {};
}

/// Reads the run's next record into its front.
Result<bool> RecordSorter::advance(Run& run) {
  if (run.begin == run.filled && run.at == run.end) return false;
  if (run.filled - run.begin < sizeof(Header))
    if (auto ok = fill(run, sizeof(Header)); !ok) return fail(std::move(ok.error()));
  Header header;
  std::memcpy(&header, run.window.data() + run.begin, sizeof header);
  const std::size_t whole = sizeof header + header.length;
  if (run.filled - run.begin < whole)
    if (auto ok = fill(run, whole); !ok) return fail(std::move(ok.error()));
  run.front = {header.key, header.line, header.complete != 0,
               std::string_view(run.window.data() + run.begin + sizeof header, header.length)};
  run.begin += whole;
  return true;
}

Result<bool> RecordSorter::next(LogRecord& out) {
  if (!started_)
    if (auto ok = start(); !ok) return fail(std::move(ok.error()));
  if (runs_.empty()) {
    if (taken_ == entries_.size()) return false;
    const Entry& e = entries_[taken_++];
    out = {e.key, e.line, e.complete, std::string_view(text_).substr(e.offset, e.length)};
    return true;
  }
  const auto order = [this](std::size_t a, std::size_t b) { return later(a, b); };
  if (current_ != SIZE_MAX) {
    auto more = advance(runs_[current_]);
    if (!more) return fail(std::move(more.error()));
    if (*more) {
      heap_.push_back(current_);
      std::push_heap(heap_.begin(), heap_.end(), order);
    }
    current_ = SIZE_MAX;
  }
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), order);
  current_ = heap_.back();
  heap_.pop_back();
  out = runs_[current_].front;
  return true;
}

Result<Spool> Spool::make() {
  const char* const given = std::getenv("TMPDIR");
  std::string folder = given != nullptr && *given != '\0' ? given : "/tmp";
  int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // A file system that does not support unnamed files.
    std::string name = folder + "/vramtrack-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(name.c_str());
  }
  if (fd < 0)
    return fail(fmt::format("cannot make a temporary file in {}: {}; name another folder in TMPDIR", folder,
                            errno_words(errno)));
  return Spool(fd, std::move(folder));
}

Spool::Spool(Spool&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), folder_(std::move(other.folder_)), size_(other.size_) {}

Spool& Spool::operator=(Spool&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(folder_, other.folder_);
  std::swap(size_, other.size_);
  return *this;
}

Spool::~Spool() {
  if (fd_ >= 0) ::close(fd_);
}

Status Spool::append(std::string_view bytes) {
  if (size_ + bytes.size() > kMostBytes)
    return fail(
        fmt::format("the log is not in order of time, and it is larger than the {} GiB that can be sorted in temporary "
                    "files; sort it by its time column first",
                    kMostBytes / kBytesPerGiB));
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(fmt::format("cannot write a temporary file in {}: {}; name a folder with more room in TMPDIR",
                              folder_, errno_words(n < 0 ? errno : ENOSPC)));
    size_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::size_t> Spool::read_at(std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(fmt::format("cannot read a temporary file in {}: {}", folder_, errno_words(errno)));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string Spool::path() const {
  return fmt::format("/proc/self/fd/{}", fd_);
}

}  // namespace vramtrack
