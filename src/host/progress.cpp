#include "host/progress.hpp"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/nature.hpp"
#include "host/parentage.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

/// If there are more processes than this, none are examined: such a machine has another problem.
constexpr std::size_t kMostProcesses = 65536;
/// Per process; if there are more, the activity of the others is unknown, and nothing is concluded.
constexpr std::size_t kMostChildren = 1024;
constexpr std::size_t kMostChildrenRead = 64;
/// For a process and its children.
constexpr std::size_t kMostThreads = 1024;
/// Servers above a worker: uvicorn above its workers, a launcher above that.
constexpr int kMostServersAbove = 3;
/// Below this share of a core and this many bytes per second, a process is idle, and worth a closer look.
constexpr double kRestingCpu = 0.02;
constexpr double kRestingIo = 4096;
/// The port where PyTorch's ranks meet by default.
constexpr std::array<std::uint16_t, 2> kMeetingPorts = {29400, 29500};

/// The number after "key:" at the beginning of a line.
std::optional<std::uint64_t> number_at(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.substr(0, key.size()) == key) return parse_unsigned(trimmed(line.substr(key.size())));
  }
  return std::nullopt;
}

/// The same for an amount, which the kernel reports in kB of 2^10 bytes.
std::optional<std::uint64_t> kibibytes_at(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.substr(0, key.size()) != key) continue;
    const std::string_view value = trimmed(line.substr(key.size()));
    const auto number = parse_unsigned(value.substr(0, value.find(' ')));
    return number ? std::optional(*number * 1024) : std::nullopt;
  }
  return std::nullopt;
}

/// Whether a thread of the process or of its children has work for a core: it runs, or would if there were one. This
/// program itself, which runs while it looks, does not count.
bool wants_core(const std::string& proc_root, std::uint32_t pid,
                const std::multimap<std::uint32_t, std::uint32_t>& children) {
  std::array<char, 1024> buffer;
  std::size_t threads = 0;
  std::vector<std::uint32_t> family = {pid};
  for (std::size_t i = 0; i < family.size() && i < kMostChildrenRead; ++i) {
    const auto [from, to] = children.equal_range(family[i]);
    for (auto it = from; it != to; ++it) family.push_back(it->second);
    if (family[i] == static_cast<std::uint32_t>(::getpid())) continue;
    const std::string tasks = proc_root + '/' + std::to_string(family[i]) + "/task";
    DIR* const open = ::opendir(tasks.c_str());
    if (open == nullptr) continue;
    bool wants = false;
    while (const dirent* entry = wants ? nullptr : ::readdir(open)) {
      if (entry->d_name[0] == '.' || ++threads > kMostThreads) continue;
      const auto text = read_small_file((tasks + '/' + entry->d_name + "/stat").c_str(), buffer);
      const auto stat = text ? parse_stat(*text) : std::nullopt;
      wants = stat && stat->state == 'R';
    }
    ::closedir(open);
    if (wants) return true;
  }
  return false;
}

}  // namespace

/// The job that a process is a rank of, according to its environment.
struct ProgressReader::Job {
  bool is_rank = false;
  std::set<std::uint16_t> ports;  ///< the ports where its ranks meet
};

ProgressReader::ProgressReader(std::string proc_root, std::string sys_root)
    : proc_root_(std::move(proc_root)), sys_root_(std::move(sys_root)) {}

std::string ProgressReader::file(std::uint32_t pid, std::string_view name) const {
  std::string path = proc_root_;
  return path.append("/").append(std::to_string(pid)).append("/").append(name);
}

void ProgressReader::list_processes() {
  all_.clear();
  children_.clear();
  DIR* const open = ::opendir(proc_root_.c_str());
  if (open == nullptr) return;
  std::array<char, 1024> buffer;
  while (const dirent* entry = ::readdir(open)) {
    const auto pid = parse_unsigned(entry->d_name);
    if (!pid || *pid > 0xffffffffU || all_.size() >= kMostProcesses) continue;
    const auto text = read_small_file(file(static_cast<std::uint32_t>(*pid), "stat").c_str(), buffer);
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) continue;
    Entry one;
    static_cast<ProcessStat&>(one) = *stat;
    one.pid = static_cast<std::uint32_t>(*pid);
    one.name = {};  // a view into the buffer
    one.start_ticks = std::max<std::uint64_t>(one.start_ticks, 1);
    all_.push_back(one);
  }
  ::closedir(open);
  std::sort(all_.begin(), all_.end(), [](const Entry& a, const Entry& b) { return a.pid < b.pid; });
  for (const Entry& one : all_) children_.emplace(one.parent_pid, one.pid);
}

const ProgressReader::Entry* ProgressReader::find(std::uint32_t pid) const {
  const auto at =
      std::lower_bound(all_.begin(), all_.end(), pid, [](const Entry& e, std::uint32_t p) { return e.pid < p; });
  return at != all_.end() && at->pid == pid ? &*at : nullptr;
}

std::optional<ProgressReader::Io> ProgressReader::io_of(std::uint32_t pid) const {
  std::array<char, 512> buffer;
  const auto text = read_small_file(file(pid, "io").c_str(), buffer);
  if (!text) return std::nullopt;
  const auto in = number_at(*text, "rchar:");
  const auto out = number_at(*text, "wchar:");
  if (!in || !out) return std::nullopt;
  return Io{*in, *out};
}

void ProgressReader::read_children(const Entry& process, ProcessProgress& into) const {
  into.children_cpu_s = tick_seconds(process.waited_ticks);
  std::vector<std::uint32_t> below = {process.pid};
  std::optional<std::uint64_t> io = 0;
  for (std::size_t i = 0; i < below.size(); ++i) {
    const auto [from, to] = children_.equal_range(below[i]);
    for (auto it = from; it != to; ++it) {
      if (below.size() > kMostChildren || it->second == process.pid) break;
      below.push_back(it->second);
      const Entry* const child = find(it->second);
      if (child == nullptr || child->state == 'Z') continue;
      ++into.children;
      into.children_cpu_s += tick_seconds(child->cpu_ticks + child->waited_ticks);
      if (into.children > kMostChildrenRead) continue;
      const auto its = io_of(it->second);
      io = io && its ? std::optional(*io + its->read_bytes + its->written_bytes) : std::nullopt;
    }
  }
  into.children_io_bytes = io;
}

void ProgressReader::read_parent(const Entry& process, const ProcessInfo& info, Before& before,
                                 ProcessProgress& into) const {
  into.parent_pid = process.parent_pid;
  if (before.parent_pid != process.parent_pid) before.parent_left = true;
  const Entry* const parent = find(process.parent_pid);
  if (parent != nullptr && parent->group == process.group) into.parent_cpu_s = tick_seconds(parent->cpu_ticks);
  Parentage known;
  known.pid = process.pid;
  known.parent_pid = process.parent_pid;
  known.group = process.group;
  known.session = process.session;
  known.leader_lives = find(process.group) != nullptr;
  if (parent != nullptr) {
    known.parent_is_visible = true;
    known.parent_group = parent->group;
    known.parent_session = parent->session;
    // Ray's workers have no pipe of their parent's.
    if (into.helper && !info.name.starts_with("ray::"))
      known.parent_holds_pipe = holds_other_end(proc_root_, process.pid, parent->pid);
  }
  into.orphaned = before.parent_left || has_lost_its_starter(known);
}

/// Mapped files are read without a call: the reads show as pages of files that become resident.
void ProgressReader::read_status(std::uint32_t pid, Before& before, ProcessProgress& into) const {
  std::array<char, 4096> buffer;
  const auto text = read_small_file(file(pid, "status").c_str(), buffer);
  if (!text) return;
  into.tracer_pid = static_cast<std::uint32_t>(number_at(*text, "TracerPid:").value_or(0));
  into.switches = number_at(*text, "voluntary_ctxt_switches:");
  const auto pages_bytes = kibibytes_at(*text, "RssFile:");
  if (!pages_bytes) return;
  if (before.file_pages_bytes > 0 && *pages_bytes > before.file_pages_bytes)
    before.mapped_bytes += *pages_bytes - before.file_pages_bytes;
  before.file_pages_bytes = *pages_bytes;
  if (into.read_bytes) *into.read_bytes += before.mapped_bytes;
}

ProgressReader::Job ProgressReader::job_of(std::uint32_t pid) const {
  Job job;
  job.ports.insert(kMeetingPorts.begin(), kMeetingPorts.end());
  const auto text = read_text_file(file(pid, "environ"), std::size_t{256} << 10U);
  if (!text) return job;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = one.substr(0, equals);
    const auto number = parse_unsigned(one.substr(equals + 1));
    if (!number) continue;
    if (name == "WORLD_SIZE" || name == "OMPI_COMM_WORLD_SIZE" || name == "PMI_SIZE" || name == "SLURM_NTASKS")
      job.is_rank = job.is_rank || *number > 1;
    if (name == "MASTER_PORT" && *number <= 0xffff) job.ports.insert(static_cast<std::uint16_t>(*number));
  }
  return job;
}

bool ProgressReader::waits_for_terminal(std::uint32_t pid) const {
  // "0 0x0 0x7f..." while it reads from descriptor 0; readline waits for that one alone.
  std::array<char, 256> buffer;
  const auto text = read_small_file(file(pid, "syscall").c_str(), buffer);
  if (!text) return false;
  std::string_view rest = *text;
  const std::string_view call = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), call.size() + 1));
  const std::string_view argument = rest.substr(0, rest.find(' '));
  const auto number = parse_unsigned(call);
  if (!number) return false;
  if (*number == SYS_read) return argument == "0x0";
#ifdef SYS_select
  if (*number == SYS_select) return argument == "0x1";
#endif
  return *number == SYS_pselect6 && argument == "0x1";
}

bool ProgressReader::is_frozen(const ProcessInfo& info) const {
  if (info.cgroup.size() < 2) return false;
  std::array<char, 256> buffer;
  for (const char* mount : {"/fs/cgroup", "/fs/cgroup/unified"}) {
    const auto events = read_small_file((sys_root_ + mount + info.cgroup + "/cgroup.events").c_str(), buffer);
    if (!events) continue;
    std::string_view text = *events;
    while (!text.empty())
      if (next_line(text) == "frozen 1") return true;
  }
  const auto state =
      read_small_file((sys_root_ + "/fs/cgroup/freezer" + info.cgroup + "/freezer.state").c_str(), buffer);
  return state && trimmed(*state) == "FROZEN";
}

void ProgressReader::read_at_rest(const Entry& process, const ProcessInfo& info, SocketTables& sockets,
                                  ProcessProgress& into) const {
  std::array<char, 128> buffer;
  if (const auto where = read_small_file(file(process.pid, "wchan").c_str(), buffer))
    if (const std::string_view name = trimmed(*where); name != "0") into.waits_in = std::string(name);
  into.frozen = is_frozen(info);
  into.foreground = process.terminal != 0 && process.foreground_group == static_cast<std::int64_t>(process.group);
  if (into.nature == ProcessNature::worker && process.terminal != 0 &&
      (is_bare_interpreter(info.command) || waits_for_terminal(process.pid))) {
    into.nature = ProcessNature::prompt;
    into.what = "program at a prompt";
  }
  const Job job = job_of(process.pid);
  into.listening = sockets.of(process.pid, job.is_rank, job.ports);
  // The process that launches ranks listens for them.
  if (!into.listening || job.is_rank) return;
  const Entry* above = find(process.parent_pid);
  for (int i = 0; i < kMostServersAbove && above != nullptr && above->group == process.group; ++i) {
    if (const auto its = sockets.of(above->pid, false, job.ports)) {
      into.listening->ports.insert(into.listening->ports.end(), its->ports.begin(), its->ports.end());
      into.listening->local += its->local;
      into.listening->clients += its->clients;
      into.listening->waiting += its->waiting;
    }
    above = above->parent_pid > 1 ? find(above->parent_pid) : nullptr;
  }
  std::vector<std::uint16_t>& ports = into.listening->ports;
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
}

void ProgressReader::read(std::span<const ProcessInfo> processes, Timestamp now, std::vector<ProgressReading>& out) {
  ++round_;
  if (processes.empty()) return before_.clear();
  list_processes();
  SocketTables sockets(proc_root_);
  for (const ProcessInfo& info : processes) {
    const Entry* const process = find(info.pid);
    if (process == nullptr || process->start_ticks != info.start_ticks) continue;
    auto [known, is_new] = before_.try_emplace(info.pid);
    Before& before = known->second;
    if (before.start_ticks != info.start_ticks) {
      is_new = true;
      before = Before{};
      before.start_ticks = info.start_ticks;
      before.parent_pid = process->parent_pid;
    }
    ProgressReading reading;
    reading.time = now;
    reading.pid = info.pid;
    reading.pid_start_ticks = info.start_ticks;
    ProcessProgress& p = reading.progress;
    p.state = process->state;
    p.cpu_s = tick_seconds(process->cpu_ticks);
    if (const auto io = io_of(info.pid)) {
      p.io_bytes = io->read_bytes + io->written_bytes;
      p.read_bytes = io->read_bytes;
    }
    read_children(*process, p);
    p.helper = is_multiprocessing_helper(info.command, info.name);
    read_parent(*process, info, before, p);
    read_status(info.pid, before, p);
    const NatureFound found = nature_of(info.command, info.name, info.kind);
    p.nature = found.nature;
    p.what = found.what;
    const double passed_s = is_new ? 0 : seconds_between(before.time, now);
    const bool quiet_cpu = passed_s > 0 && p.cpu_s - before.cpu_s <= kRestingCpu * passed_s;
    const bool quiet_io =
        passed_s > 0 && p.io_bytes && before.io_bytes &&
        static_cast<double>(*p.io_bytes) - static_cast<double>(*before.io_bytes) <= kRestingIo * passed_s;
    if (quiet_cpu || quiet_io) {
      read_at_rest(*process, info, sockets, p);
      if ((p.state == 'S' || p.state == 'D') && wants_core(proc_root_, info.pid, children_)) p.state = 'R';
    }
    before.time = now;
    before.cpu_s = p.cpu_s;
    before.io_bytes = p.io_bytes;
    before.round = round_;
    out.push_back(std::move(reading));
  }
  std::erase_if(before_, [&](const auto& entry) { return entry.second.round != round_; });
}

}  // namespace vramtrack
