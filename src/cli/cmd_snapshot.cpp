// snapshot: PyTorch's memory snapshots, read as a stream: who holds the memory, what grew, what filled it.
#include "cli/cmd_snapshot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/commands.hpp"
#include "core/errno_words.hpp"
#include "trace/torch_snapshot.hpp"
#include "trace/usage.hpp"

namespace vramtrack::cli {

SnapshotOutput::SnapshotOutput(Console& console, std::string path) : console_(console), path_(std::move(path)) {
  if (path_.empty()) return;
  fd_ = ::open((path_ + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) error_ = errno;
}

SnapshotOutput::~SnapshotOutput() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink((path_ + ".new").c_str());
}

bool SnapshotOutput::write(std::string_view text) {
  if (path_.empty()) {
    console_.write(text);
    return !console_.gone() && !console_.failed();
  }
  while (error_ == 0 && !text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      error_ = errno;
  }
  return error_ == 0;
}

Status SnapshotOutput::close() {
  if (path_.empty()) return {};
  if (fd_ >= 0) {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0 && ::rename((path_ + ".new").c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) ::unlink((path_ + ".new").c_str());
  }
  if (error_ == 0) return {};
  return vramtrack::fail(fmt::format("cannot write {}: {}", path_, errno_words(error_)));
}

Status SnapshotWork::write(std::string_view text) const {
  SnapshotOutput out(console, options.output);
  out.write(text);
  return out.close();
}

int SnapshotWork::fail(const std::string& why) const {
  console.error(why);
  return kSnapshotFailed;
}

int SnapshotWork::finish(std::string_view text, int exit_code) const {
  const Status written = write(text);
  return written ? exit_code : fail(written.error().message);
}

namespace {

struct Verb {
  const char* name;
  int (*run)(SnapshotWork&);
  bool keeps_events;
  std::size_t least_files;
  std::size_t most_files;
};

constexpr Verb kVerbs[] = {
    {"summary", snapshot_summary, false, 1, SIZE_MAX}, {"leaks", snapshot_leaks, false, 2, SIZE_MAX},
    {"timeline", snapshot_timeline, true, 1, 1},       {"oom", snapshot_oom, true, 1, 1},
    {"flamegraph", snapshot_flamegraph, true, 1, 1},   {"export", snapshot_export, true, 1, 1},
};

/// The devices that --device may name, for the error when it names another.
std::string devices_words(const std::vector<std::uint32_t>& known) {
  return known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "));
}

}  // namespace

int snapshot(const Options& options, Console& console) {
  const Verb* verb = kVerbs;
  for (const Verb& v : kVerbs)
    if (options.snapshot.verb == v.name) verb = &v;
  SnapshotWork work{options, console, {}, {}};
  if (options.files.size() < verb->least_files)
    return work.fail(
        fmt::format("snapshot {} compares snapshots: name at least two, in the order they were taken", verb->name));
  if (options.files.size() > verb->most_files)
    return work.fail(fmt::format("snapshot {} takes one file, not {}", verb->name, options.files.size()));
  for (const std::string& file : options.files) {
    trace::ReadOptions read;
    read.keep_events = verb->keeps_events;
    auto snapshot = trace::read_torch_snapshot(file, work.symbols, read);
    if (!snapshot) return work.fail("cannot read the snapshot: " + snapshot.error().message);
    const std::vector<std::uint32_t> known = trace::known_devices(*snapshot);
    if (work.device() && std::find(known.begin(), known.end(), *work.device()) == known.end())
      return work.fail(
          fmt::format("--device {}: {} has nothing of it; it has {}", *work.device(), file, devices_words(known)));
    for (const std::string& note : snapshot->notes) console.warn(fmt::format("{}: {}", file, note));
    work.snapshots.push_back(std::move(*snapshot));
  }
  return verb->run(work);
}

}  // namespace vramtrack::cli
