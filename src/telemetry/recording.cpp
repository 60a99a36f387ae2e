#include "telemetry/recording.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "core/errno_words.hpp"
#include "core/read_all.hpp"
#include "host/process.hpp"
#include "symbolize/debug_names.hpp"
#include "telemetry/python_code.hpp"
#include "telemetry/unwinder.hpp"

namespace vramtrack::telemetry {
namespace {

using probe::Call;
using probe::Record;

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::int64_t realtime_us() {
  return static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME) / 1000);
}

/// A process that has no such library is looked at again after as long: libraries are also loaded late.
constexpr std::uint64_t kLookAgainNs = 5'000'000'000;
/// Records are handed on in pieces of this many.
constexpr std::size_t kMostPending = 1024;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<MappedFile> files_of(std::uint32_t pid) {
  std::ifstream in(fmt::format("/proc/{}/maps", pid));
  const auto text = in ? read_all(in) : std::nullopt;
  return text ? executable_files(*text) : std::vector<MappedFile>{};
}

}  // namespace

struct Recording::Process {
  std::uint32_t pid = 0, index = 0;
  std::uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  trace::ProbeProcess known;
  bool is_entered = false;  ///< in the trace
  std::shared_ptr<Unwinder> unwinder;
  bool is_copy = false;  ///< a child whose own files have not been looked at yet: it unwinds as its parent does
  std::optional<PythonCode> python;
  std::vector<MappedFile> files;  ///< that the trace names
  std::unordered_map<std::string, std::uint32_t> texts, stacks, codes;
  std::unordered_map<std::uint32_t, std::uint16_t> threads;  ///< by thread id
  std::vector<probe::Slot> pending;
};

Recording::Recording(trace::ProbeFileWriter file, Select select) : select_(std::move(select)), file_(std::move(file)) {}

Recording::~Recording() = default;

Result<std::unique_ptr<Recording>> Recording::begin(const std::string& output, const std::string& title,
                                                    Select select) {
  auto file = trace::ProbeFileWriter::open(output, title, realtime_us());
  if (!file) return fail(file.error());
  std::unique_ptr<Recording> recording(new Recording(std::move(*file), std::move(select)));
  auto tracer = Tracer::open(
      [self = recording.get()](const telemetry_event& event, std::size_t bytes) { self->take(event, bytes); });
  if (!tracer) return fail(tracer.error());
  recording->tracer_.emplace(std::move(*tracer));
  return recording;
}

void Recording::check(const Status& status) {
  if (!status && failed_) failed_ = status;
}

void Recording::write(Process& process, const probe::Slot& slot) {
  process.pending.push_back(slot);
  if (process.pending.size() >= kMostPending) send(process);
}

void Recording::send(Process& process) {
  if (process.pending.empty()) return;
  check(live_.slots(process.index, process.pending));
  check(file_->write_slots(process.index, process.pending));
  process.pending.clear();
}

std::uint32_t Recording::text(Process& process, std::string_view text) {
  const auto [known, is_new] =
      process.texts.try_emplace(std::string(text), static_cast<std::uint32_t>(process.texts.size() + 1));
  if (!is_new) return known->second;
  for (std::size_t at = 0; at == 0 || at < text.size(); at += probe::kTextBytes) {
    std::uint64_t piece[2] = {};
    std::memcpy(piece, text.data() + at, std::min(probe::kTextBytes, text.size() - at));
    write(process, {probe::head_of(Record::text, Call::none, 0, 0, known->second),
                    at | static_cast<std::uint64_t>(text.size()) << 32U, piece[0], piece[1]});
  }
  return known->second;
}

void Recording::write_files(Process& process) {
  if (process.files == process.unwinder->files()) return;
  const std::string root = fmt::format("/proc/{}/root", process.pid);
  for (const MappedFile& file : process.unwinder->files()) {
    if (std::find(process.files.begin(), process.files.end(), file) != process.files.end()) continue;
    const std::uint32_t path = text(process, file.path);
    write(process, {probe::head_of(Record::module, Call::none, 0, 0, path), file.file_offset, file.begin, file.length});
    const trace::ProbeModule module{file.path, symbolize::build_id_of(root + file.path)};
    check(live_.module(process.index, module));
    check(file_->write_module(process.index, module));
  }
  process.files = process.unwinder->files();
}

/// A process gets its place in the trace with its first allocation: most children of a program use no GPU.
void Recording::enter(Process& process) {
  if (process.is_entered) return;
  process.is_entered = true;
  process.index = next_index_++;
  check(live_.process(process.index, process.known));
  if (const auto index = file_->begin_process(process.known); !index) check(fail(index.error()));
}

Recording::Process& Recording::keep(std::unique_ptr<Process> process, const trace::ProbeProcess& known) {
  process->pid = known.pid;
  process->known = known;
  process->begin_ns = clock_ns(CLOCK_MONOTONIC);
  return *(running_[known.pid] = std::move(process));
}

Recording::Process* Recording::add(std::uint32_t pid) {
  if (const auto known = running_.find(pid); known != running_.end()) return known->second.get();
  const auto info = read_process("/proc", pid);
  if (!info) return nullptr;
  auto process = std::make_unique<Process>();
  process->unwinder = std::make_shared<Unwinder>(pid);
  return &keep(std::move(process), {pid, info->start_ticks, realtime_us(), info->command});
}

/// It may have ended already: all that is needed is known from its parent, whose memory it has a copy of.
void Recording::add_child(const telemetry_event& fork) {
  const auto parent = running_.find(static_cast<std::uint32_t>(fork.address));
  if (parent == running_.end()) return;
  auto process = std::make_unique<Process>();
  process->unwinder = parent->second->unwinder;
  process->python = parent->second->python;
  process->is_copy = true;
  const auto ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t start_ticks = fork.bytes / (1'000'000'000U / ticks_per_s);
  Process& child = keep(std::move(process), {fork.tgid, start_ticks, realtime_us(), parent->second->known.command});
  child.begin_ns = std::min(child.begin_ns, fork.time_ns);
}

/// Probes the libraries of a process, and makes it a target if it has any.
void Recording::look_at(std::uint32_t pid, std::uint64_t now_ns) {
  looked_ns_[pid] = now_ns;
  const std::vector<MappedFile> files = files_of(pid);
  bool has_library = false;
  for (const MappedFile& file : files) {
    const std::string_view name = base_name(file.path);
    if (!is_traced_library(name)) continue;
    has_library = true;
    const std::string path = fmt::format("/proc/{}/root{}", pid, file.path);
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0) continue;  // replaced since it was mapped, or the process is gone
    const auto [known, is_new] = libraries_.try_emplace({found.st_dev, found.st_ino}, true);
    if (!is_new) continue;
    if (const auto count = tracer_->attach(name, path); !count) {
      known->second = false;
      warnings_.push_back(count.error().message);
    }
  }
  if (!has_library) return;
  has_target_ = true;
  const bool is_new = running_.count(pid) == 0;
  Process* const process = add(pid);
  if (process == nullptr) return;
  if (process->is_copy) {
    process->is_copy = false;
    process->unwinder = std::make_shared<Unwinder>(pid);
    process->python.reset();
  }
  if (!is_new && process->python) return;
  std::string why;
  process->python = PythonCode::of(pid, files, why);
  if (!why.empty() && is_new) warnings_.push_back(fmt::format("process {}: {}", pid, why));
  telemetry_python layout{};
  if (process->python) layout = process->python->layout();
  check(tracer_->add_target(pid, layout));
}

Status Recording::find_targets() {
  const std::uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  std::error_code error;
  std::map<std::uint32_t, std::uint64_t> alive;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    std::uint32_t pid = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong != std::errc{} || end != name.data() + name.size()) continue;
    const auto looked = looked_ns_.find(pid);
    alive[pid] = looked == looked_ns_.end() ? 0 : looked->second;
    const bool is_due = looked == looked_ns_.end() || now_ns - looked->second >= kLookAgainNs;
    if (is_due && (running_.count(pid) != 0 || select_(pid))) look_at(pid, now_ns), alive[pid] = now_ns;
  }
  looked_ns_ = std::move(alive);  // pids are used again
  return failed_;
}

std::uint32_t Recording::stack_number(Process& process, const std::vector<std::uint64_t>& native,
                                      const telemetry_frame* python, std::size_t count) {
  std::string key(reinterpret_cast<const char*>(native.data()), native.size() * sizeof(std::uint64_t));
  key.append(1, '|').append(reinterpret_cast<const char*>(python), count * sizeof *python);
  const auto [known, is_new] = process.stacks.try_emplace(std::move(key), 0);
  if (!is_new) return known->second;
  std::vector<PythonFrame> frames;
  if (process.python && count > 0) frames = process.python->frames(python, count);
  const std::uint32_t number = known->second = static_cast<std::uint32_t>(process.stacks.size());
  const std::uint64_t all = static_cast<std::uint64_t>(native.size() + frames.size()) << 32U;
  std::uint64_t index = 0;
  for (const std::uint64_t address : native)
    write(process, {probe::head_of(Record::frame, Call::none, 0, 0, number), index++ | all, address, 0});
  for (const PythonFrame& frame : frames) {
    const std::string function = fmt::format("{}\n{}\n{}", frame.file, frame.name, frame.first_line);
    const auto [code, is_new_code] =
        process.codes.try_emplace(function, static_cast<std::uint32_t>(process.codes.size() + 1));
    if (is_new_code) {
      const std::uint64_t file = text(process, frame.file), name = text(process, frame.name);
      write(process,
            {probe::head_of(Record::code, Call::none, 0, 0, code->second), frame.first_line, file | name << 32U, 0});
    }
    const std::uint8_t flags = probe::kPythonFrame | (frame.is_entry ? probe::kEntryFrame : 0);
    write(process,
          {probe::head_of(Record::frame, Call::none, 0, flags, number), index++ | all, code->second, frame.line});
  }
  return number;
}

void Recording::take_allocation(Process& process, const telemetry_event& event, std::size_t bytes) {
  const telemetry_frame* python = nullptr;
  std::vector<std::uint64_t> native;
  if (bytes >= sizeof(telemetry_stack_event)) {
    const auto& whole = reinterpret_cast<const telemetry_stack_event&>(event);
    python = whole.frames;
    native = process.unwinder->unwind(whole, static_cast<Call>(event.call) == Call::torch_block);
    write_files(process);
  } else if (bytes >= sizeof(telemetry_python_event)) {
    python = reinterpret_cast<const telemetry_python_event&>(event).frames;
  }
  const std::size_t count = python == nullptr ? 0 : std::min<std::size_t>(event.frames, TELEMETRY_MOST_FRAMES);
  const std::uint32_t stack = stack_number(process, native, python, count);
  const std::uint64_t time_us = event.time_ns > process.begin_ns ? (event.time_ns - process.begin_ns) / 1000 : 0;
  const auto [thread, is_new] =
      process.threads.try_emplace(event.tid, static_cast<std::uint16_t>(process.threads.size() + 1));
  if (is_new) {
    std::ifstream in(fmt::format("/proc/{}/task/{}/comm", process.pid, event.tid));
    std::string name;
    std::getline(in, name);
    write(process,
          {probe::head_of(Record::thread, Call::none, 0, 0, text(process, name)), thread->second, event.tid, 0});
  }
  write(process, {probe::head_of(Record::alloc, static_cast<Call>(event.call), event.device >> 8U, 0, stack),
                  probe::when(time_us, thread->second), event.address, event.bytes});
}

void Recording::take(const telemetry_event& event, std::size_t bytes) {
  const bool is_change = event.kind <= TELEMETRY_EVENT_FAILED;
  if (event.kind == TELEMETRY_EVENT_FORK) return add_child(event);
  const auto known = running_.find(event.tgid);
  if (known == running_.end()) return;
  Process& process = *known->second;
  if (event.kind == TELEMETRY_EVENT_EXIT || event.kind == TELEMETRY_EVENT_EXEC) {
    const std::uint64_t time_us = event.time_ns > process.begin_ns ? (event.time_ns - process.begin_ns) / 1000 : 0;
    if (process.is_entered) {
      write(process, {probe::head_of(Record::exit, Call::none, 0, 0, 0), probe::when(time_us, 0), 0, 0});
      send(process);
    }
    processes_.push_back(std::move(known->second));
    running_.erase(known);
    looked_ns_.erase(event.tgid);  // what it has become is looked at anew
    if (event.kind == TELEMETRY_EVENT_EXEC) add(event.tgid);
    return;
  }
  if (!is_change) return;
  enter(process);
  ++events_;
  if (const std::uint64_t lost = tracer_->lost(); lost > told_lost_) {
    write(process, {probe::head_of(Record::lost, Call::none, 0, 0, 0), lost - told_lost_, 0, 0});
    told_lost_ = lost;
  }
  if (event.kind == TELEMETRY_EVENT_ALLOC) return take_allocation(process, event, bytes);
  const std::uint64_t time_us = event.time_ns > process.begin_ns ? (event.time_ns - process.begin_ns) / 1000 : 0;
  if (event.kind == TELEMETRY_EVENT_FREE && event.address == 0) return;
  const Record record = event.kind == TELEMETRY_EVENT_FREE ? Record::free : Record::failed;
  write(process, {probe::head_of(record, static_cast<Call>(event.call), event.device >> 8U, 0, 0),
                  probe::when(time_us, 0), event.address, event.bytes});
}

Status Recording::poll(int timeout_ms) {
  check(tracer_->poll(timeout_ms));
  for (const auto& [pid, process] : running_) send(*process);
  return failed_;
}

Status Recording::flush() {
  check(file_->flush());
  return failed_;
}

Status Recording::finish() {
  check(tracer_->poll(0));
  for (const auto& [pid, process] : running_) {
    if (!process->is_entered) continue;
    write(*process, {probe::head_of(Record::onward, Call::none, 0, 0, 0),
                     probe::when((clock_ns(CLOCK_MONOTONIC) - process->begin_ns) / 1000, 0), 0, 0});
    send(*process);
  }
  trace::ProbeEnd end;
  end.realtime_us = realtime_us();
  check(file_->finish(end));
  return failed_;
}

std::size_t Recording::running() const {
  return running_.size();
}

std::vector<std::string> Recording::take_warnings() {
  return std::exchange(warnings_, {});
}

}  // namespace vramtrack::telemetry
