// snapshot: allocation traces of any format of trace/formats.def: who holds the memory, what grew, what filled it.
#include "cli/cmd_snapshot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/commands.hpp"
#include "core/errno_words.hpp"
#include "trace/format.hpp"
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
  bool replays_streams;  ///< one that is alone: in bounded memory, whatever its length
};

constexpr Verb kVerbs[] = {
    {"summary", snapshot_summary, false, 1, SIZE_MAX, false}, {"leaks", snapshot_leaks, false, 2, SIZE_MAX, true},
    {"timeline", snapshot_timeline, true, 1, 1, true},        {"oom", snapshot_oom, true, 1, 1, false},
    {"flamegraph", snapshot_flamegraph, true, 1, 1, false},   {"export", snapshot_export, true, 1, 1, false},
};

/// The devices that --device may name, for the error when it names another.
std::string devices_words(const std::vector<std::uint32_t>& known) {
  return known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "));
}

/// Replays a stream as it is read; of the snapshot there is the name.
Status replay(SnapshotWork& work, trace::TraceInput input) {
  trace::Snapshot named;
  named.file = input.bytes.name();
  auto streams = trace::replay_stream(std::move(input), work.symbols, timeline_options(work.options));
  if (!streams) return fail(streams.error());
  std::string known;
  for (const trace::StreamReplay& stream : *streams) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", stream.device());
    for (const std::string& note : stream.live().notes(stream.device()))
      work.console.warn(fmt::format("{}: {}", named.file, note));
  }
  std::erase_if(*streams,
                [&](const trace::StreamReplay& s) { return work.device().value_or(s.device()) != s.device(); });
  if (streams->empty())
    return fail(work.device() ? fmt::format("--device {}: {} has nothing of it; it has {}", *work.device(), named.file,
                                            known.empty() ? "none" : known)
                              : named.file + ": has no event");
  work.snapshots.push_back(std::move(named));
  work.streams = std::move(*streams);
  return {};
}

Status read(SnapshotWork& work, trace::TraceInput input, const std::string& file, bool keep_events) {
  auto snapshot = trace::read_trace(std::move(input), work.symbols, {keep_events});
  if (!snapshot) return fail(snapshot.error().during("cannot read the snapshot"));
  const std::vector<std::uint32_t> known = trace::known_devices(*snapshot);
  if (work.device() && std::find(known.begin(), known.end(), *work.device()) == known.end())
    return fail(
        fmt::format("--device {}: {} has nothing of it; it has {}", *work.device(), file, devices_words(known)));
  for (const std::string& note : snapshot->notes) work.console.warn(fmt::format("{}: {}", file, note));
  work.snapshots.push_back(std::move(*snapshot));
  return {};
}

}  // namespace

int snapshot(const Options& options, Console& console) {
  const Verb* verb = kVerbs;
  for (const Verb& v : kVerbs)
    if (options.snapshot.verb == v.name) verb = &v;
  SnapshotWork work{options, console, {}, {}, {}};
  if (options.files.size() > verb->most_files)
    return work.fail(fmt::format("snapshot {} takes one file, not {}", verb->name, options.files.size()));
  for (const std::string& file : options.files) {
    auto input = trace::open_trace(file);
    if (!input) return work.fail("cannot read the snapshot: " + input.error().message);
    const bool is_stream = input->format->stream != nullptr;
    if (options.files.size() < verb->least_files && !(is_stream && verb->replays_streams))
      return work.fail(
          fmt::format("snapshot {} compares snapshots: name at least two, in the order they were taken", verb->name));
    const bool replays = is_stream && verb->replays_streams && options.files.size() == 1;
    const Status done =
        replays ? replay(work, std::move(*input)) : read(work, std::move(*input), file, verb->keeps_events);
    if (!done) return work.fail(done.error().message);
  }
  return verb->run(work);
}

}  // namespace vramtrack::cli
