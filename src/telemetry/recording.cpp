#include "telemetry/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "symbolize/debug_names.hpp"

namespace vramtrack::telemetry {
namespace {

using probe::Call;
using probe::Record;

/// How many records are handed on at a time.
constexpr std::size_t kMostPending = 1024;

}  // namespace

struct Recording::Process {
  std::uint32_t index = 0;
  std::vector<MappedFile> files;  ///< the files that the trace names
  std::unordered_map<std::string, std::uint32_t> texts, stacks, codes;
  std::unordered_map<std::uint32_t, std::uint16_t> threads;  ///< by thread id
  /// Physical memory: its live bytes, at its key or at the address where it is mapped.
  struct Piece {
    std::uint64_t head = 0, address = 0, bytes = 0;
    std::uint16_t thread = 0;
  };
  std::unordered_map<std::uint64_t, Piece> pieces;  ///< by key
  std::vector<probe::Slot> pending;
};

Recording::Recording(trace::ProbeFileWriter file) : file_(std::move(file)) {}

Recording::~Recording() = default;

Result<std::unique_ptr<Recording>> Recording::begin(const std::string& output, const std::string& title,
                                                    Follower::Select select) {
  auto file = trace::ProbeFileWriter::open(output, title, realtime_us());
  if (!file) return fail(file.error());
  std::unique_ptr<Recording> recording(new Recording(std::move(*file)));
  Follower::Listener listener;
  listener.allocated = [self = recording.get()](FollowedProcess& from, const telemetry_event& event,
                                                const FollowedStack& stack) { self->allocated(from, event, stack); };
  listener.freed = [self = recording.get()](FollowedProcess& from, const telemetry_event& event) {
    self->change(from, event, Record::free);
  };
  listener.moved = [self = recording.get()](FollowedProcess& from, const telemetry_event& event,
                                            const MappedMemory::Change& change) { self->moved(from, event, change); };
  listener.failed = [self = recording.get()](FollowedProcess& from, const telemetry_event& event) {
    self->change(from, event, Record::failed);
  };
  listener.ended = [self = recording.get()](FollowedProcess& from, const telemetry_event& event) {
    self->ended(from, event);
  };
  auto follower = Follower::open(std::move(select), std::move(listener));
  if (!follower) return fail(follower.error());
  recording->follower_ = std::move(*follower);
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

void Recording::write_files(const FollowedProcess& from, Process& process) {
  if (process.files == from.unwinder->files()) return;
  for (const MappedFile& file : from.unwinder->files()) {
    if (std::find(process.files.begin(), process.files.end(), file) != process.files.end()) continue;
    // A reader of the trace on this machine can open the file, even one under another root, while it exists.
    const std::string reached = reach(from.known.pid, file);
    const std::string& place = reached.empty() ? file.path : reached;
    const std::uint32_t path = text(process, place);
    write(process, {probe::head_of(Record::module, Call::none, 0, 0, path), file.file_offset, file.begin, file.length});
    const trace::ProbeModule module{place, symbolize::build_id_of(place)};
    check(live_.module(process.index, module));
    check(file_->write_module(process.index, module));
  }
  process.files = from.unwinder->files();
}

/// A process enters the trace with its first allocation: most children of a program do not use a GPU.
Recording::Process& Recording::enter(const FollowedProcess& from) {
  std::unique_ptr<Process>& process = processes_[from.number];
  if (process) return *process;
  process = std::make_unique<Process>();
  process->index = next_index_++;
  check(live_.process(process->index, from.known));
  if (const auto index = file_->begin_process(from.known); !index) check(fail(index.error()));
  return *process;
}

/// Writes what must precede a change of the live memory.
Recording::Process& Recording::before_change(const FollowedProcess& from) {
  Process& process = enter(from);
  ++events_;
  if (const std::uint64_t lost = follower_->lost(); lost > reported_lost_) {
    write(process, {probe::head_of(Record::lost, Call::none, 0, 0, 0), lost - reported_lost_, 0, 0});
    reported_lost_ = lost;
  }
  return process;
}

std::uint32_t Recording::stack_number(FollowedProcess& from, Process& process, const FollowedStack& stack) {
  const auto& [native, python, count] = stack;
  std::string key(reinterpret_cast<const char*>(native.data()), native.size() * sizeof(std::uint64_t));
  key.append(1, '|').append(reinterpret_cast<const char*>(python), count * sizeof *python);
  const auto [known, is_new] = process.stacks.try_emplace(std::move(key), 0);
  if (!is_new) return known->second;
  std::vector<PythonFrame> frames;
  if (from.python && count > 0) frames = from.python->frames(python, count);
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

void Recording::allocated(FollowedProcess& from, const telemetry_event& event, const FollowedStack& frames) {
  Process& process = before_change(from);
  if (!frames.native.empty()) write_files(from, process);
  const std::uint32_t stack = stack_number(from, process, frames);
  const std::uint64_t time_us = from.time_us(event);
  const auto [thread, is_new] =
      process.threads.try_emplace(event.tid, static_cast<std::uint16_t>(process.threads.size() + 1));
  if (is_new) {
    std::ifstream in(fmt::format("/proc/{}/task/{}/comm", from.known.pid, event.tid));
    std::string name;
    std::getline(in, name);
    write(process,
          {probe::head_of(Record::thread, Call::none, 0, 0, text(process, name)), thread->second, event.tid, 0});
  }
  const std::uint64_t head = probe::head_of(Record::alloc, static_cast<Call>(event.call), event.device >> 8U, 0, stack);
  write(process, {head, probe::when(time_us, thread->second), event.address, event.bytes});
  if (MappedMemory::is_of(event.call))
    process.pieces[event.address] = {head, event.address, event.bytes, thread->second};
}

/// Blocks that a framework carves out of it lie within the live range.
void Recording::moved(const FollowedProcess& from, const telemetry_event& event, const MappedMemory::Change& change) {
  Process& process = enter(from);
  const auto found = process.pieces.find(change.key);
  if (found == process.pieces.end()) return;
  Process::Piece& piece = found->second;
  const std::uint64_t time_us = from.time_us(event);
  write(process, {probe::head_of(Record::free, static_cast<Call>(event.call), 0, 0, 0), probe::when(time_us, 0),
                  piece.address, piece.bytes});
  piece.address = change.address == 0 ? change.key : change.address;
  if (piece.bytes == 0) piece.bytes = change.bytes;  // memory of another process
  write(process, {piece.head, probe::when(time_us, piece.thread), piece.address, piece.bytes});
}

void Recording::change(const FollowedProcess& from, const telemetry_event& event, Record record) {
  Process& process = before_change(from);
  std::uint64_t address = event.address;
  if (const auto piece = process.pieces.find(address); record == Record::free && piece != process.pieces.end()) {
    address = piece->second.address;
    process.pieces.erase(piece);
  }
  write(process, {probe::head_of(record, static_cast<Call>(event.call), event.device >> 8U, 0, 0),
                  probe::when(from.time_us(event), 0), address, event.bytes});
}

void Recording::ended(const FollowedProcess& from, const telemetry_event& event) {
  const auto known = processes_.find(from.number);
  if (known == processes_.end()) {
    ended_quietly_ = from.known;
    return;
  }
  write(*known->second, {probe::head_of(Record::exit, Call::none, 0, 0, 0), probe::when(from.time_us(event), 0), 0, 0});
  send(*known->second);
  processes_.erase(known);
}

Status Recording::poll(int timeout_ms) {
  check(follower_->poll(timeout_ms));
  for (const auto& [number, process] : processes_) send(*process);
  return failed_;
}

std::vector<std::uint32_t> Recording::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [pid, process] : follower_->running()) pids.push_back(pid);
  return pids;
}

void Recording::held(std::uint32_t pid, std::int64_t bytes) {
  const auto from = follower_->running().find(pid);
  if (from == follower_->running().end()) return;
  const auto known = processes_.find(from->second->number);
  if (known == processes_.end()) return;
  send(*known->second);
  trace::ProbeReading reading;
  reading.realtime_us = realtime_us();
  reading.process_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes));
  check(live_.reading(known->second->index, reading));
  check(file_->write_reading(known->second->index, reading));
}

Status Recording::flush() {
  check(file_->flush());
  return failed_;
}

Status Recording::finish() {
  check(follower_->poll(0));
  const bool is_quiet = next_index_ == 0;  // a traced program is in the trace even if it did nothing
  for (const auto& [pid, from] : follower_->running()) {
    if (is_quiet) enter(*from);
    const auto known = processes_.find(from->number);
    if (known == processes_.end()) continue;
    write(*known->second, {probe::head_of(Record::onward, Call::none, 0, 0, 0),
                           probe::when((monotonic_ns() - from->begin_ns) / 1000, 0), 0, 0});
    send(*known->second);
  }
  if (next_index_ == 0 && ended_quietly_) {
    check(live_.process(next_index_++, *ended_quietly_));
    if (const auto index = file_->begin_process(*ended_quietly_); !index) check(fail(index.error()));
  }
  trace::ProbeEnd end;
  end.realtime_us = realtime_us();
  check(file_->finish(end));
  return failed_;
}

}  // namespace vramtrack::telemetry
