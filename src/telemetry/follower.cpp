#include "telemetry/follower.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "core/ascii.hpp"
#include "core/number_text.hpp"
#include "host/process.hpp"
#include "probe/wire.hpp"
#include "telemetry/shapes.hpp"

namespace vramtrack::telemetry {
namespace {

/// Most programs that start have ended by then. If the library is already known, nothing is missed in the meantime.
constexpr std::uint64_t kAfterLoad_ns = 100'000'000;
/// The delay if no probed loader has reported libraries yet.
constexpr std::uint64_t kAfterExec_ns = 1'000'000'000;

std::uint64_t ticks_per_s() {
  return static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

/// The current time, in the unit of process start times.
std::uint64_t boot_ticks() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * ticks_per_s() +
         static_cast<std::uint64_t>(now.tv_nsec) / (1'000'000'000U / ticks_per_s());
}

}  // namespace

std::int64_t realtime_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

Result<std::unique_ptr<Follower>> Follower::open(Select select, Listener listener, std::uint64_t blocks_per_s) {
  std::unique_ptr<Follower> follower(new Follower(std::move(select), std::move(listener)));
  auto tracer = Tracer::open(
      [self = follower.get()](const telemetry_event& event, std::size_t bytes) { self->take(event, bytes); },
      blocks_per_s);
  if (!tracer) return fail(tracer.error());
  follower->tracer_.emplace(std::move(*tracer));
  return follower;
}

void Follower::check(const Status& status) {
  if (!status && failed_) failed_ = status;
}

FollowedProcess& Follower::keep(std::unique_ptr<FollowedProcess> process, const trace::ProbeProcess& known) {
  process->number = next_number_++;
  process->known = known;
  process->begin_ns = monotonic_ns();
  if (known.start_ticks >= probed_ticks_) process->contexts.set_owners_known();
  return *(running_[known.pid] = std::move(process));
}

FollowedProcess* Follower::add(std::uint32_t pid) {
  if (const auto known = running_.find(pid); known != running_.end()) return known->second.get();
  const auto info = read_process("/proc", pid);
  if (!info) return nullptr;
  auto process = std::make_unique<FollowedProcess>();
  process->unwinder = std::make_shared<Unwinder>(pid);
  return &keep(std::move(process), {pid, info->start_ticks, realtime_us(), info->command});
}

/// The child may have ended already, but its parent provides all that is needed: its memory is a copy of the parent's.
void Follower::add_child(const telemetry_event& fork) {
  const auto parent = running_.find(static_cast<std::uint32_t>(fork.address));
  if (parent == running_.end()) return;
  auto process = std::make_unique<FollowedProcess>();
  process->unwinder = parent->second->unwinder;
  process->python = parent->second->python;
  process->is_copy = true;
  const std::uint64_t start_ticks = fork.bytes / (1'000'000'000U / ticks_per_s());
  FollowedProcess& child =
      keep(std::move(process), {fork.tgid, start_ticks, realtime_us(), parent->second->known.command});
  child.begin_ns = std::min(child.begin_ns, fork.time_ns);
}

/// Whether the file has become probed by this call.
bool Follower::probe(std::uint32_t pid, const MappedFile& file) {
  const auto [known, is_new] = libraries_.try_emplace({file.device, file.inode}, true);
  if (!is_new) return false;
  const std::string path = reach(pid, file);
  if (path.empty()) {
    libraries_.erase(known);  // the process has ended
    return false;
  }
  if (const auto count = tracer_->attach(base_name(file.path), path); !count) {
    known->second = false;
    warnings_.push_back(count.error().message);
  }
  probed_ticks_ = boot_ticks();
  return known->second;
}

/// Probes the libraries of a process and makes it a target if it has any. Returns whether it has.
bool Follower::look_at(std::uint32_t pid) {
  std::vector<MappedFile> files = files_of(pid);
  for (const MappedFile& file : files) {
    if (!is_loader(base_name(file.path))) continue;
    loaders_.insert(pid);
    if (!probe(pid, file)) continue;
    files = files_of(pid);  // because libraries loaded in the meantime were not reported
    break;
  }
  bool has_library = false;
  for (const MappedFile& file : files) {
    if (!is_traced_library(base_name(file.path))) continue;
    has_library = true;
    probe(pid, file);
  }
  if (!has_library) return false;
  has_target_ = true;
  const bool is_new = running_.count(pid) == 0;
  FollowedProcess* const process = add(pid);
  if (process == nullptr) return true;
  if (process->is_copy) {
    process->is_copy = false;
    process->unwinder = std::make_shared<Unwinder>(pid);
    process->python.reset();
  }
  if (!is_new && process->python) return true;
  std::string why;
  process->python = PythonCode::of(pid, files, why);
  if (!why.empty() && is_new) warnings_.push_back(fmt::format("process {}: {}", pid, why));
  telemetry_python layout{};
  if (process->python) layout = process->python->layout();
  check(tracer_->add_target(pid, layout));
  return true;
}

/// A driver's function that has no name in its file: a program has just looked it up and will call it by address.
void Follower::probe_found(const telemetry_event& event) {
  const std::vector<MappedFile> files = files_of(event.tgid);
  const MappedFile* const file = file_at(files, event.address);
  if (file == nullptr || is_traced_library(base_name(file->path))) return;  // probed by name
  const std::string path = reach(event.tgid, *file);
  const std::uint64_t offset = event.address - file->begin + file->file_offset;
  if (path.empty() || !found_.insert({file->device, file->inode, offset}).second) return;
  if (const Status done = tracer_->attach_found(event.bytes, path, offset); !done)
    warnings_.push_back(done.error().message);
}

void Follower::look_if_selected(std::uint32_t pid) {
  if (running_.count(pid) > 0 || select_(pid).value_or(false))
    look_at(pid);
  else
    tracer_->leave_out(pid);
}

Status Follower::find_targets() {
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns < scan_ns_) return failed_;
  scan_ns_ = now_ns + static_cast<std::uint64_t>(kScanEvery_s * 1e9);
  std::error_code error;
  std::set<std::uint32_t> living;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = parse_number<std::uint32_t>(entry.path().filename().string());
    if (!pid) continue;
    if (loaders_.count(*pid) == 0) look_if_selected(*pid);
    if (loaders_.count(*pid) > 0) living.insert(*pid);
  }
  loaders_ = std::move(living);  // because pids are reused
  return failed_;
}

/// If the process is unknown, it has just started or has just loaded the library whose probed function it calls.
FollowedProcess* Follower::process_of(const telemetry_event& event) {
  if (const auto known = running_.find(event.tgid); known != running_.end()) return known->second.get();
  const bool is_context = event.kind == TELEMETRY_EVENT_CONTEXT || event.kind == TELEMETRY_EVENT_MAPPED;
  if (event.kind != TELEMETRY_EVENT_ALLOC && event.kind != TELEMETRY_EVENT_FREE &&
      event.kind != TELEMETRY_EVENT_FAILED && !is_context)
    return nullptr;
  const std::optional<bool> is_selected = select_(event.tgid);
  if (is_selected && !*is_selected) {
    tracer_->leave_out(event.tgid);
    return nullptr;
  }
  if (is_selected) look_at(event.tgid);
  const auto found = running_.find(event.tgid);
  if (found == running_.end()) {
    if (!is_context) ++unknown_;
    return nullptr;
  }
  found->second->begin_ns = std::min(found->second->begin_ns, event.time_ns);
  return found->second.get();
}

/// Handles blocks that `event` ended, rather than a call that frees them.
void Follower::freed(FollowedProcess& process, const telemetry_event& event, std::uint64_t address) {
  telemetry_event freed = event;
  freed.kind = TELEMETRY_EVENT_FREE;
  freed.address = address;
  freed.bytes = 0;
  listener_.freed(process, freed);
}

void Follower::change_physical(FollowedProcess& process, const telemetry_event& event) {
  for (const MappedMemory::Change& change : process.physical.changed(event)) {
    if (!change.is_gone) {
      listener_.moved(process, event, change);
      continue;
    }
    telemetry_event end = event;
    end.address = change.key;
    process.contexts.freed(end);
    freed(process, end, change.key);
  }
}

void Follower::take(const telemetry_event& event, std::size_t bytes) {
  if (event.kind == TELEMETRY_EVENT_FORK) return add_child(event);
  if (event.kind == TELEMETRY_EVENT_EXEC || event.kind == TELEMETRY_EVENT_STARTED) {
    loaders_.erase(event.tgid);
    due_[event.tgid] = event.time_ns + kAfterExec_ns;
  }
  if (event.kind == TELEMETRY_EVENT_LOADED) {
    const std::uint64_t soon_ns = event.time_ns + kAfterLoad_ns;
    std::uint64_t& due_ns = due_.try_emplace(event.tgid, soon_ns).first->second;
    due_ns = std::min(due_ns, soon_ns);
  }
  FollowedProcess* const known = process_of(event);
  if (known == nullptr) return;
  FollowedProcess& process = *known;
  switch (event.kind) {
    case TELEMETRY_EVENT_ALLOC: {
      static const std::vector<std::uint64_t> kNone;
      FollowedStack stack{kNone};
      if (bytes >= sizeof(telemetry_stack_event)) {
        const auto& whole = reinterpret_cast<const telemetry_stack_event&>(event);
        const bool is_at_entry = static_cast<probe::Call>(event.call) == probe::Call::torch_block;
        const FollowedStack native{process.unwinder->unwind(whole, is_at_entry), whole.frames,
                                   std::min<std::size_t>(event.frames, TELEMETRY_MOST_FRAMES)};
        telemetry_event head = event;
        head.bytes = bytes_of(whole);
        // An array without memory of its own, or the null pointer of an empty allocation.
        if ((head.bytes == 0 && event.result != TELEMETRY_NO_SHAPE) || head.address == 0) return;
        if (MappedMemory::is_of(head.call)) {
          telemetry_event release = head;  // for the handle's previous owner, whose call has not returned yet
          release.kind = TELEMETRY_EVENT_FREE;
          release.began_ns = head.time_ns;
          change_physical(process, release);
          head.address = process.physical.created(head);
        }
        const ContextBlocks::Arrival arrival = process.contexts.allocated(head);
        if (arrival == ContextBlocks::Arrival::known) return;
        if (arrival == ContextBlocks::Arrival::replaces) freed(process, head, head.address);
        return listener_.allocated(process, head, native);
      }
      if (bytes >= sizeof(telemetry_python_event)) {
        stack.python = reinterpret_cast<const telemetry_python_event&>(event).frames;
        stack.python_count = std::min<std::size_t>(event.frames, TELEMETRY_MOST_FRAMES);
      }
      return listener_.allocated(process, event, stack);
    }
    case TELEMETRY_EVENT_FREE:
      if (event.address == 0) return;
      if (MappedMemory::is_of(event.call) && process.physical.has(event.address))
        return change_physical(process, event);
      if (process.contexts.freed(event)) listener_.freed(process, event);
      return;
    case TELEMETRY_EVENT_CONTEXT:
      for (const std::uint64_t address : process.contexts.changed(event)) {
        process.physical.ended(address);
        freed(process, event, address);
      }
      return;
    case TELEMETRY_EVENT_MAPPED:
      return change_physical(process, event);
    case TELEMETRY_EVENT_FOUND:
      return probe_found(event);
    case TELEMETRY_EVENT_FAILED:
      return listener_.failed(process, event);
    case TELEMETRY_EVENT_EXIT:
    case TELEMETRY_EVENT_EXEC:
      listener_.ended(process, event);
      running_.erase(event.tgid);
      if (event.kind == TELEMETRY_EVENT_EXEC) add(event.tgid);
      return;
    default:
      return;
  }
}

Status Follower::poll(int timeout_ms) {
  check(tracer_->poll(timeout_ms));
  const std::uint64_t now_ns = monotonic_ns();
  for (auto each = due_.begin(); each != due_.end();) {
    if (each->second > now_ns) {
      ++each;
      continue;
    }
    look_if_selected(each->first);
    each = due_.erase(each);
  }
  return failed_;
}

std::vector<std::string> Follower::take_warnings() {
  return std::exchange(warnings_, {});
}

}  // namespace vramtrack::telemetry
