#include "run/run_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/errno_words.hpp"
#include "core/number_text.hpp"
#include "core/option.hpp"
#include "host/process.hpp"
#include "live/clock.hpp"
#include "run/build_id.hpp"

namespace vramtrack::run {
namespace {

/// The launcher numbers its texts from here; the probe counts up from 1.
constexpr std::uint32_t kFirstOwnText = 0xf000'0000U;

/// The current time on the clock of the process's records, without a thread number.
std::uint64_t since_begin(const ProbedProcess& process) {
  return probe::when(static_cast<std::uint64_t>(std::max<std::int64_t>(0, realtime_us() - process.begin_realtime_us)),
                     0);
}

/// Whether later records may refer to the record.
bool defines(const probe::Slot& slot) {
  switch (probe::record_of(slot)) {
    case probe::Record::frame:
    case probe::Record::text:
    case probe::Record::code:
    case probe::Record::module:
    case probe::Record::process:
    case probe::Record::device:
      return true;
    default:
      return false;
  }
}

/// The pid, in this namespace, of the process with `pid` in its own, which may be another. It is matched by its start
/// time, which no two processes share.
std::optional<std::uint32_t> pid_here(std::uint32_t pid, std::uint64_t start_ticks) {
  std::string path;
  const auto is_it = [&](std::uint32_t candidate) {
    const auto alive = process_alive("/proc", candidate, path);
    return alive && alive->start_ticks == start_ticks;
  };
  if (is_it(pid)) return pid;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto candidate = parse_number<std::uint32_t>(entry.path().filename().string());
    if (candidate && is_it(*candidate)) return candidate;
  }
  return std::nullopt;
}

/// The program's file name as used in our file names: a name may contain anything but a slash.
std::string plain_name(const std::string& program) {
  std::string name = std::filesystem::path(program).filename().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._+-", c) == nullptr) c = '_';
  return name;
}

}  // namespace

std::int64_t realtime_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(time_of_day().time_since_epoch()).count();
}

RunTrace::RunTrace(std::string output, std::vector<std::string> program, Warn warn)
    : output_(std::move(output)), is_named_(!output_.empty()), program_(std::move(program)), warn_(std::move(warn)) {
  if (output_.empty()) output_ = fmt::format("vramtrack.{}.%p.trace", plain_name(program_.front()));
  if (const std::size_t at = output_.find("%p"); at != std::string::npos)
    output_.replace(at, 2, std::to_string(::getpid()));
}

Status RunTrace::can_be_written() const {
  if (std::error_code error; std::filesystem::is_directory(output_, error))
    return fail(fmt::format("cannot write a trace into {}: it is a folder; name a file in it with {}", output_,
                            name_of(Option::output)));
  const std::filesystem::path folder = std::filesystem::path(output_).parent_path();
  const std::string directory = folder.empty() ? std::string(".") : folder.string();
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  return fail(fmt::format("cannot write a trace into {}: {}; name another file with {}", directory, errno_words(errno),
                          name_of(Option::output)));
}

void RunTrace::check(const Status& status) {
  if (status || has_failed_) return;
  has_failed_ = true;
  file_.reset();
  warn_(fmt::format("recording has ended: {}", status.error().message));
}

void RunTrace::open() {
  // A file with a name that the user did not choose replaces nothing, because two containers may use the same pids.
  std::error_code ignored;
  const std::string wanted = output_;
  for (int i = 1; !is_named_ && std::filesystem::exists(std::filesystem::symlink_status(output_, ignored)); ++i)
    output_ = fmt::format("{}.{}.trace", wanted.substr(0, wanted.size() - std::string_view(".trace").size()), i);
  auto opened = trace::ProbeFileWriter::open(output_, fmt::format("{}", fmt::join(program_, " ")), realtime_us());
  if (!opened) return check(fail(opened.error()));
  path_ = output_;
  file_.emplace(std::move(*opened));
}

void RunTrace::begin(const ProbedProcess& process) {
  if (!file_ && !has_failed_) open();
  if (!file_) return;
  trace::ProbeProcess known;
  known.pid = process.pid;
  known.start_ticks = process.start_ticks;
  known.begin_realtime_us = process.begin_realtime_us;
  const auto index = file_->begin_process(known);
  if (!index) return check(fail(index.error()));
  indices_.resize(std::max(indices_.size(), process.index + 1), trace::kNoProbeProcess);
  indices_[process.index] = *index;
}

void RunTrace::take(const ProbedProcess& process, std::span<const probe::Slot> records, ProcessFacts& facts) {
  if (!is_known(process)) begin(process);
  facts.take(records);
  records_ += records.size();
  if (file_) check(file_->write_slots(indices_[process.index], records));
  for (const std::string& module : facts.new_modules())
    if (file_ && modules_.insert({process.index, module}).second)
      check(file_->write_module(indices_[process.index], {module, build_id_of_module(process, module)}));
  // Records that others refer to are no longer in any ring, so write them at once: this process may be killed.
  if (file_ && std::any_of(records.begin(), records.end(), defines)) check(file_->flush());
}

/// Reads the file as seen by the process, which may have another root; if that has ended, as seen by this process.
std::string RunTrace::build_id_of_module(const ProbedProcess& process, const std::string& module) {
  auto [root, is_new] = roots_.try_emplace(process.index);
  if (is_new)
    if (const auto pid = pid_here(process.pid, process.start_ticks)) root->second = fmt::format("/proc/{}/root", *pid);
  std::error_code gone;
  if (root->second.empty() || !std::filesystem::exists(root->second + "/", gone)) return build_id_of(module);
  return build_id_of(root->second + module);
}

bool RunTrace::is_known(const ProbedProcess& process) const {
  return process.index < indices_.size() && indices_[process.index] != trace::kNoProbeProcess;
}

void RunTrace::limits(const ProbedProcess& process, const Limits& limits) {
  if (!file_ || !is_known(process)) return;
  const probe::Slot slot{probe::head_of(probe::Record::limit, probe::Call::none, 0, 0, 0), since_begin(process),
                         limits.soft_limit_bytes, limits.limit_bytes};
  check(file_->write_slots(indices_[process.index], {&slot, 1}));
}

void RunTrace::mark(const ProbedProcess& process, const std::string& name) {
  if (!file_ || !is_known(process)) return;
  std::vector<probe::Slot> slots;
  const std::uint32_t number = kFirstOwnText + texts_++;
  for (std::size_t at = 0; at < name.size(); at += probe::kTextBytes) {
    std::uint64_t piece[2] = {};
    std::memcpy(piece, name.data() + at, std::min(probe::kTextBytes, name.size() - at));
    slots.push_back({probe::head_of(probe::Record::text, probe::Call::none, 0, 0, number),
                     at | static_cast<std::uint64_t>(name.size()) << 32U, piece[0], piece[1]});
  }
  slots.push_back({probe::head_of(probe::Record::mark, probe::Call::none, 0, 0, number), since_begin(process), 0, 0});
  check(file_->write_slots(indices_[process.index], slots));
}

void RunTrace::reading(const ProbedProcess& process, const trace::ProbeReading& reading) {
  if (file_ && is_known(process)) check(file_->write_reading(indices_[process.index], reading));
}

void RunTrace::holder(const trace::ProbeHolder& holder) {
  if (file_) check(file_->write_holder(holder));
}

void RunTrace::flush() {
  if (file_) check(file_->flush());
}

void RunTrace::finish(const ProgramEnd& end) {
  if (!file_) return;
  trace::ProbeEnd written;
  written.realtime_us = realtime_us();
  written.exit_code = end.exit_code.value_or(0);
  written.signal = end.signal;
  check(file_->finish(written));
}

}  // namespace vramtrack::run
