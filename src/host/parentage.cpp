#include "host/parentage.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/nature.hpp"
#include "host/process.hpp"
#include "host/small_file.hpp"
#include "host/sockets.hpp"
#include "host/waits.hpp"

namespace vramtrack {
namespace {

/// How long before and after its start the pipes of a worker are made and first written into: a large program takes a
/// while to fork.
constexpr double kBirth_s = 1;
/// The kernel reports the start of a process to 10 ms, and stamps pipes by a clock of 4 to 10 ms.
constexpr double kClock_s = 0.03;
constexpr std::size_t kEnvironmentBytes = std::size_t{256} << 10U;
/// The ports on which Ray's workers listen for each other after `ray start`, by default (--min-worker-port).
constexpr std::uint16_t kFirstOfRay = 10002;
constexpr std::uint16_t kLastOfRay = 19999;

/// When this machine started, in seconds since 1970, by the clock that stamps pipes: a new one bears the present time.
std::optional<double> boot_time_s(const std::string& proc_root) {
  const auto uptime_s = machine_uptime_s(proc_root);
  if (!uptime_s) return std::nullopt;
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  struct stat now {};
  const bool is_known = ::fstat(pipe[0], &now) == 0;
  for (const int fd : pipe) ::close(fd);
  if (!is_known) return std::nullopt;
  return static_cast<double>(now.st_mtim.tv_sec) + static_cast<double>(now.st_mtim.tv_nsec) / 1e9 - *uptime_s;
}

/// The value of a variable in the text of /proc/PID/environ; empty if absent.
std::string_view variable(std::string_view environment, std::string_view key) {
  while (!environment.empty()) {
    const std::string_view one = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(environment.size(), one.size() + 1));
    if (one.size() > key.size() && one.starts_with(key) && one[key.size()] == '=') return one.substr(key.size() + 1);
  }
  return {};
}

/// Pids are assigned in rising order, from the lowest again after the greatest: whether `pid` was between the two.
bool is_between(std::uint32_t first, std::uint32_t pid, std::uint32_t last) {
  return first < last ? first < pid && pid < last : first < pid || pid < last;
}

bool is_inherited(const Parentage& p) {
  return p.parent_pid == 1 || (p.parent_is_visible && p.parent_session != p.session);
}

}  // namespace

bool has_lost_its_starter(const Parentage& p) {
  if (p.parent_holds_pipe) return !*p.parent_holds_pipe;
  // A parent of the same group started it, even as pid 1 of a container. For a group led from outside, nobody can be
  // seen to have ended.
  if (p.group == 0 || (p.parent_is_visible && p.parent_group == p.group)) return false;
  // A process that inherited it is in another session; a job of its own leads its group.
  return is_inherited(p) && p.group != p.pid && !p.leader_lives;
}

/// The data that the constructor uses.
struct LostWorkers::Moment {
  Moment(const std::string& root, const std::vector<ListedProcess>& processes)
      : proc_root(root), all(processes), links(root, processes), sockets(root), boot_s(boot_time_s(root)) {}

  const std::string& proc_root;
  const std::vector<ListedProcess>& all;
  ProcessLinks links;
  SocketTables sockets;
  std::optional<double> boot_s;

  [[nodiscard]] const ListedProcess* find(std::uint32_t pid) const {
    const auto at = std::lower_bound(all.begin(), all.end(), pid,
                                     [](const ListedProcess& p, std::uint32_t n) { return p.pid < n; });
    return at != all.end() && at->pid == pid ? &*at : nullptr;
  }

  [[nodiscard]] std::string command_of(std::uint32_t pid) const {
    return read_text_file(fmt::format("{}/{}/cmdline", proc_root, pid), 4096).value_or(std::string());
  }

  [[nodiscard]] std::string words(std::uint32_t pid) const {
    const ListedProcess* const process = find(pid);
    return process == nullptr ? fmt::format("pid {}", pid) : fmt::format("pid {} ({})", pid, process->name);
  }

  /// Whether `pid` was started by one of `above`, or by a process that one of these started.
  template <class Set>
  [[nodiscard]] bool is_below(std::uint32_t pid, const Set& above) const {
    const ListedProcess* at = find(pid);
    for (int i = 0; at != nullptr && at->parent_pid > 1 && i < 256; ++i) {
      if (above.contains(at->parent_pid)) return true;
      at = find(at->parent_pid);
    }
    return false;
  }

  /// The pipes that multiprocessing gave it at its start, if it did and its parent does not have the other ends.
  [[nodiscard]] std::set<std::uint64_t> born_with(const ListedProcess& process) const {
    const OpenEnds& ends = links.ends_of(process.pid);
    if (!boot_s || ends.pipes.empty()) return {};
    const double start = *boot_s + tick_seconds(process.start_ticks);
    const auto parent_has = [&](const PipeEnd& end) { return links.at_other_end(end).contains(process.parent_pid); };
    const auto is_early = [&](const PipeEnd& end) { return *end.changed_s <= start + kClock_s; };
    const bool is_of_server = is_forkserver(process.pid);
    const ListedProcess* const parent = is_of_server ? find(process.parent_pid) : nullptr;
    const bool server_lives = parent != nullptr && is_lost_forkserver(*parent);
    std::vector<PipeEnd> born;  // the ends of pipes made with it whose other ends neither it nor its own workers have
    for (const PipeEnd& end : ends.pipes) {
      if ((end.reads && end.writes) || !end.changed_s) continue;
      // The server keeps the pipe into which its worker would write.
      if (server_lives && end.reads && !parent_has(end)) return {end.inode};
      if (*end.changed_s < start - kBirth_s || *end.changed_s > start + kBirth_s) continue;
      const std::set<std::uint32_t> others = links.at_other_end(end);
      const std::set<std::uint32_t> self = {process.pid};
      if (std::any_of(others.begin(), others.end(), [&](std::uint32_t other) { return is_below(other, self); }))
        continue;
      if (is_of_server && end.reads && !parent_has(end)) return {end.inode};
      born.push_back(end);
    }
    // In the order in which they were made, or written into since.
    std::sort(born.begin(), born.end(), [](const PipeEnd& a, const PipeEnd& b) {
      return *a.changed_s != *b.changed_s ? *a.changed_s < *b.changed_s : a.inode < b.inode;
    });
    // The program makes the pipe into which the worker writes, then the one from which it reads. A process forked later
    // with the program's own ends has them the other way round.
    for (auto read = born.begin(); read != born.end(); ++read) {
      if (!read->reads || !read->was_opened_here || parent_has(*read)) continue;
      const bool is_followed =
          std::any_of(read + 1, born.end(), [&](const PipeEnd& end) { return end.writes && is_early(end); });
      const auto write = std::find_if(std::make_reverse_iterator(read), born.rend(), [&](const PipeEnd& end) {
        return end.writes && is_early(end) && !parent_has(end);
      });
      if (!is_followed && write != born.rend() && ends.has_null_input && runs_python(process.pid).value_or(false))
        return {write->inode, read->inode};
    }
    return {};
  }

  /// nullopt if this user may not look.
  [[nodiscard]] std::optional<bool> runs_python(std::uint32_t pid) const {
    const MappedNames mapped = read_mapped_names(proc_root, pid);
    if (mapped.access != MappedNames::Access::read) return std::nullopt;
    return std::any_of(mapped.names.begin(), mapped.names.end(), [](std::string_view name) {
      if (name.starts_with("lib")) name.remove_prefix(3);
      return name.starts_with("python") || name.starts_with("pypy");
    });
  }

  [[nodiscard]] bool is_forkserver(std::uint32_t pid) const {
    return command_of(pid).find("multiprocessing.forkserver") != std::string::npos;
  }

  /// The server that forks workers: it has no pipes of a worker, and stays while they hold one of its own.
  [[nodiscard]] bool is_lost_forkserver(const ListedProcess& process) const {
    const OpenEnds& ends = links.ends_of(process.pid);
    return !ends.pipes.empty() && is_forkserver(process.pid) &&
           std::none_of(ends.pipes.begin(), ends.pipes.end(),
                        [&](const PipeEnd& end) { return links.at_other_end(end).contains(process.parent_pid); });
  }

  /// Whether a process above it, possibly through wrappers, may have launched it: one that has PyTorch in it.
  [[nodiscard]] bool may_have_launcher(const ListedProcess& rank) const {
    const ListedProcess* at = &rank;
    for (int i = 0; at->parent_pid > 0 && i < 256; ++i) {
      at = find(at->parent_pid);
      if (at == nullptr) return true;
      const MappedNames mapped = read_mapped_names(proc_root, at->pid);
      if (std::any_of(mapped.names.begin(), mapped.names.end(),
                      [](const std::string& name) { return name.starts_with("libtorch"); }))
        return true;
    }
    return false;
  }

  /// 0 if there is none.
  [[nodiscard]] std::uint32_t tracer_of(std::uint32_t pid) const {
    const auto text = read_text_file(fmt::format("{}/{}/status", proc_root, pid), 16384).value_or("");
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view line = next_line(rest);
      constexpr std::string_view kTracer = "TracerPid:";
      if (line.starts_with(kTracer))
        return static_cast<std::uint32_t>(parse_unsigned(trimmed(line.substr(kTracer.size()))).value_or(0));
    }
    return 0;
  }

  /// Whether its cgroup is frozen, as a paused container's is; with cgroup v2 it looks like any sleeping process.
  [[nodiscard]] bool is_frozen(std::uint32_t pid) const {
    const std::string waits_in = read_text_file(fmt::format("{}/{}/wchan", proc_root, pid), 64).value_or("");
    return waits_in == "do_freezer_trap" || waits_in == "get_signal" || waits_in == "__refrigerator";
  }

  /// Whether its current parent may be the one that started it: no adoption is visible. Then that one was in the
  /// session of `process`: it is, or it leads its own and began after that one. No process joins an existing session.
  /// If the leader of the session has ended, the pids show its age.
  [[nodiscard]] bool may_have_its_starter(const ListedProcess& process) const {
    const ListedProcess* const parent = find(process.parent_pid);
    if (parent == nullptr || parent->start_ticks > process.start_ticks) return false;
    if (parent->session != process.session) {
      if (parent->session != parent->pid) return false;
      const ListedProcess* const leader = find(process.session);
      const bool is_later = leader != nullptr && leader->start_ticks != parent->start_ticks
                                ? leader->start_ticks > parent->start_ticks
                                : is_between(parent->pid, process.session, process.pid);
      if (is_later) return false;
    }
    // The first process of a container adopts all others in it. It has started a worker itself only if it runs Python.
    const auto known = read_process(proc_root, parent->pid);
    const bool is_first = parent->pid == 1 || (known && known->ns_pid == 1);
    return !is_first || runs_python(parent->pid).value_or(true);
  }

  /// Whether a worker may be one that left its program's session to run on, as a daemon does: it calls setsid() and
  /// forks at once, so that its session is led by nobody. That of a program is older than its workers.
  [[nodiscard]] bool may_have_left(const ListedProcess& process) const {
    const auto earlier_s = [&](const ListedProcess& one, const ListedProcess& other) {
      return tick_seconds(other.start_ticks) - tick_seconds(one.start_ticks);
    };
    const ListedProcess* const leader = find(process.session);
    if (leader != nullptr && leader->state != 'Z') return false;
    // Its members, and what its program started to track its workers, are as old as it at most.
    const std::set<std::uint32_t> self = {process.pid};
    for (const ListedProcess& other : all) {
      if (other.session != process.session || other.start_ticks > process.start_ticks) continue;
      if (earlier_s(other, process) >= kBirth_s ||
          (!is_below(other.pid, self) &&
           command_of(other.pid).find("multiprocessing.resource_tracker") != std::string::npos))
        return false;
    }
    // A process with a pid between those two is younger than the session.
    const ListedProcess* between = nullptr;
    for (const ListedProcess& other : all)
      if (is_between(process.session, other.pid, process.pid) && earlier_s(other, process) >= kBirth_s &&
          (between == nullptr || other.start_ticks > between->start_ticks))
        between = &other;
    // Unless all have been assigned once since.
    return between == nullptr || std::any_of(all.begin(), all.end(), [&](const ListedProcess& other) {
             return earlier_s(*between, other) > kClock_s && earlier_s(other, process) > kClock_s &&
                    !is_between(between->pid, other.pid, process.pid);
           });
  }

  /// The rank that a process is, or was started by, according to its environment.
  struct Rank {
    std::string job;  ///< its identity, and where its ranks meet; empty if it has none
    std::string number;
    std::uint16_t port = 0;
    bool is_met_here = false;  ///< at an address of this host
  };
  std::map<std::uint32_t, Rank> ranks;          ///< those requested
  std::map<std::uint32_t, std::string> starts;  ///< likewise: environment and command line

  /// Its environment, and the words that it was started with: each ends with a NUL.
  const std::string& started_with(std::uint32_t pid) {
    const auto [known, is_new] = starts.try_emplace(pid);
    if (is_new)
      for (const char* file : {"environ", "cmdline"})
        known->second += read_text_file(fmt::format("{}/{}/{}", proc_root, pid, file), kEnvironmentBytes).value_or("");
    return known->second;
  }

  const Rank& rank_of(const ListedProcess& process) {
    const auto [known, is_new] = ranks.try_emplace(process.pid);
    Rank& rank = known->second;
    // A process forked by a rank has everything that the rank has.
    if (!is_new || process.is_forked_only) return rank;
    const std::string& text = started_with(process.pid);
    const std::string_view run = variable(text, "TORCHELASTIC_RUN_ID");
    const std::string_view address = variable(text, "MASTER_ADDR");
    const auto port = parse_unsigned(variable(text, "MASTER_PORT"));
    if (run.empty() || !port || *port == 0 || *port > 0xffff ||
        variable(text, "TORCHELASTIC_USE_AGENT_STORE") != "True")
      return rank;
    rank.job = fmt::format("{} {} {}", run, address, *port);
    rank.number = variable(text, "RANK");
    rank.port = static_cast<std::uint16_t>(*port);
    const std::string name = read_text_file(proc_root + "/sys/kernel/hostname", 256).value_or("");
    const auto first_label = [](std::string_view host) { return host.substr(0, host.find('.')); };
    rank.is_met_here = address == "localhost" || address == "::1" || address.starts_with("127.") ||
                       (!trimmed(name).empty() && first_label(address) == first_label(trimmed(name)));
    return rank;
  }

  /// Whether it is the rank itself, not a process that the rank started.
  bool is_first_of_rank(const ListedProcess& process) {
    const Rank own = rank_of(process);
    return !own.job.empty() && std::none_of(all.begin(), all.end(), [&](const ListedProcess& other) {
      if (other.start_ticks >= process.start_ticks || other.state == 'Z') return false;
      const Rank& its = rank_of(other);
      return its.job == own.job && its.number == own.number;
    });
  }

  /// Whether it is connected to another rank of its job, or shares memory with one, as only ranks do.
  bool has_other_rank(const ListedProcess& process) {
    const Rank own = rank_of(process);
    std::vector<ProcessLink> its = links.of(process.pid);
    its.push_back(links.memory_of(process.pid));
    for (const ProcessLink& link : its)
      for (const std::uint32_t pid : link.others) {
        const ListedProcess& other = *find(pid);
        const Rank& there = rank_of(other);
        if (there.job == own.job && there.number != own.number && is_first_of_rank(other)) return true;
      }
    return false;
  }

  /// The port where the ranks of its job meet, if it is one of them that its launcher has left.
  std::optional<std::uint16_t> lost_rank(const ListedProcess& process) {
    if (links.ends_of(process.pid).sockets.empty()) return std::nullopt;
    const Rank rank = rank_of(process);
    if (!is_first_of_rank(process)) return std::nullopt;
    // The store of a job on this host is in its launcher, which has ended if it closed the connection. If it reset it,
    // no trace of it is left.
    const std::vector<ProcessLink> its = links.of(process.pid, rank.port);
    const bool has_closed =
        std::any_of(its.begin(), its.end(), [](const ProcessLink& link) { return link.is_meeting && link.has_ended; });
    const auto may_have_reset = [&] {
      const ProcessLink servers = links.servers_of(process.pid, rank.port);
      return rank.is_met_here && !servers.is_unknown &&
             std::all_of(servers.others.begin(), servers.others.end(),
                         [&](std::uint32_t pid) { return find(pid)->start_ticks > process.start_ticks; });
    };
    const bool is_left = has_closed || (may_have_reset() && has_other_rank(process));
    return is_left && !may_have_launcher(process) ? std::optional(rank.port) : std::nullopt;
  }

  /// Ray's workers have a title, and are connected to the process that started them.
  bool is_lost_of_ray(const ListedProcess& process) {
    if (process.is_forked_only || !process.name.starts_with("ray::")) return false;
    const std::vector<ProcessLink> its = links.of(process.pid);
    return !its.empty() && std::none_of(its.begin(), its.end(), [&](const ProcessLink& link) {
      return std::find(link.others.begin(), link.others.end(), process.parent_pid) != link.others.end();
    });
  }

  /// Processes that only serve workers, and end with the last of them; or that serve all programs of a GPU.
  [[nodiscard]] bool is_attendant(std::uint32_t pid) const {
    const ListedProcess* const process = find(pid);
    if (process == nullptr) return false;
    const std::string command = command_of(pid);
    for (const char* tracker : {"multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker"})
      if (command.find(tracker) != std::string::npos) return true;
    return nature_of(command, process->name, "").nature == ProcessNature::driver_service;
  }

  /// Whether it is connected to another of `lost`, or to itself, as the first rank is to the store that it serves.
  bool is_joined(std::uint32_t pid, const std::map<std::uint32_t, Worker>& lost) {
    const std::vector<ProcessLink> its = links.of(pid);
    return std::any_of(its.begin(), its.end(), [&](const ProcessLink& link) {
      return link.kind == ProcessLink::Kind::connection &&
             (link.is_with_itself || std::any_of(link.others.begin(), link.others.end(), [&](std::uint32_t other) {
                return lost.contains(other) || is_below(other, lost);
              }));
    });
  }

  /// Why somebody may find `pid` where it listens, other than `lost` and the processes they started, in one clause.
  std::string why_found(std::uint32_t pid, const Worker& worker, const std::map<std::uint32_t, Worker>& lost) {
    const auto at = sockets.addresses_of(pid);
    if (!at) return {};
    // Each worker of Ray listens once for the others; if it listens again, it may serve anybody.
    const bool listens_once = at->chosen.size() + at->assigned.size() == 1;
    for (const std::uint16_t port : at->chosen)
      if (port != worker.port && !(worker.is_of_ray && listens_once && port >= kFirstOfRay && port <= kLastOfRay))
        return fmt::format("it listens on port {}", port);
    // What a port or a socket is for by whose address nobody finds it: for the others of its set. If none of them is
    // connected to it, another program got the address in a way that is not visible: from a file, a directory of
    // services.
    if (!worker.is_of_ray || !listens_once)
      if (const bool has_secret = std::any_of(at->names.begin(), at->names.end(), is_secret);
          (!at->assigned.empty() || has_secret) && !is_joined(pid, lost))
        return at->assigned.empty() ? "it listens at an address that no other worker uses"
                                    : fmt::format("it listens on port {}, and no other worker is connected to it",
                                                  *at->assigned.begin());
    for (const std::uint16_t port : at->datagrams) return fmt::format("it receives datagrams on port {}", port);
    for (const std::string& name : at->names) {
      if (!is_secret(name)) return name.empty() ? "it listens for others" : "it listens at " + name;
      for (const ListedProcess& other : all)
        if (other.pid != pid && !lost.contains(other.pid) && !is_below(other.pid, lost) && other.state != 'Z' &&
            started_with(other.pid).find(name) != std::string::npos)
          return fmt::format("{} was given the address at which it listens", words(other.pid));
    }
    return {};
  }

  /// Why somebody may use `pid`, which one of `lost` started: it can be found, or somebody outside is connected to it.
  std::string why_used(std::uint32_t pid, const std::map<std::uint32_t, Worker>& lost) {
    if (std::string why = why_found(pid, Worker(), lost); !why.empty()) return why;
    for (const ProcessLink& link : links.of(pid)) {
      if (link.kind != ProcessLink::Kind::connection) continue;
      if (link.is_unknown) return "it is connected to a process that is not visible here";
      for (const std::uint32_t other : link.others)
        if (!lost.contains(other) && !is_below(other, lost)) return words(other) + " is connected to it";
    }
    return {};
  }

  /// Why somebody other than `lost` ones may wait for `pid`, in one clause; empty: nobody does.
  std::string why_kept(std::uint32_t pid, const Worker& worker, const std::map<std::uint32_t, Worker>& lost) {
    const ListedProcess& process = *find(pid);
    if (process.session == pid && worker.port == 0)
      return "it leads a session of its own, like a process that was left to run";
    if (find(process.parent_pid) == nullptr)
      return fmt::format("its parent, pid {}, is not visible here", process.parent_pid);
    if (!lost.contains(process.parent_pid) && may_have_its_starter(process))
      return fmt::format("{}, its parent, may have started it", words(process.parent_pid));
    if (process.state == 'T' || process.state == 't' || is_frozen(pid))
      return "it is stopped: somebody may continue it";
    if (const std::uint32_t tracer = tracer_of(pid); tracer != 0)
      return fmt::format("{} traces it, as a debugger does", words(tracer));
    if (worker.port == 0 && may_have_left(process))
      return "it may have left the session of its program to keep running: whoever led its session has ended";
    std::vector<ProcessLink> all_links = links.of(pid);
    all_links.push_back(links.memory_of(pid));
    for (const ProcessLink& link : all_links) {
      const char* const what = link.kind == ProcessLink::Kind::pipe         ? "holds the other end of one of its pipes"
                               : link.kind == ProcessLink::Kind::connection ? "is connected to it"
                                                                            : "shares memory with it";
      // Whoever is younger than the worker has an end of the worker's own pipes by inheritance only, unless it waits
      // for the end of the worker by it.
      const bool is_own = link.kind == ProcessLink::Kind::pipe && worker.born_with.contains(link.inode);
      for (const std::uint32_t other : link.others)
        if (!lost.contains(other) && !is_below(other, lost) && !is_attendant(other) &&
            !(is_own && find(other)->start_ticks > process.start_ticks && !waits_of(proc_root, other).is_for_any_file))
          return fmt::format("{} {}", words(other), what);
      if (link.is_unknown)
        return link.kind == ProcessLink::Kind::memory
                   ? "its memory in /dev/shm may be shared with another user, whose processes this user may not read"
                   : "it is connected to a process that is not visible here";
    }
    const std::set<std::uint32_t> self = {pid};
    for (const ListedProcess& other : all) {
      if (other.session != process.session || other.state == 'Z' || lost.contains(other.pid) ||
          !is_below(other.pid, self))
        continue;
      if (const std::string why = why_used(other.pid, lost); !why.empty())
        return fmt::format("{}, which it started, serves others: {}", words(other.pid), why);
    }
    // A program that forked it may have closed its pipes.
    if (process.parent_pid > 1 && !lost.contains(process.parent_pid) &&
        command_of(process.parent_pid) == command_of(pid))
      return "its parent runs the same command";
    if (std::string why = why_found(pid, worker, lost); !why.empty()) return why;
    if (const OpenEnds& ends = links.ends_of(pid); !ends.named_pipe.empty())
      return fmt::format("it has {} open, a named pipe that others can open", ends.named_pipe);
    else if (!ends.other_socket.empty())
      return fmt::format("it has a {} socket, and what that is for is unknown", ends.other_socket);
    else if (ends.watches_files)
      return "it watches files, through which it may receive work";
    for (const ListedProcess& other : all) {
      if (!lost.contains(other.pid) && !is_below(other.pid, lost) && links.ends_of(other.pid).awaited.contains(pid))
        return fmt::format("{} waits for its end", words(other.pid));
      const bool is_near = other.session == process.session || other.group == process.group;
      if (is_near && other.state != 'Z' && !links.ends_of(other.pid).were_read)
        return fmt::format("this user may not read the open files of {}, which may be waiting for it",
                           words(other.pid));
    }
    return {};
  }
};

LostWorkers::LostWorkers(const std::string& proc_root, const std::vector<ListedProcess>& all,
                         const std::map<std::uint32_t, std::string>& in_use) {
  Moment moment(proc_root, all);
  for (const ListedProcess& process : all) {
    if (process.state == 'Z' || process.parent_pid == 0 || process.group == 0) continue;
    const OpenEnds& ends = moment.links.ends_of(process.pid);
    if (!ends.were_read || (ends.pipes.empty() && ends.sockets.empty())) continue;
    if (const auto port = moment.lost_rank(process))
      workers_[process.pid].port = *port;
    else if (auto born_with = moment.born_with(process); !born_with.empty())
      workers_[process.pid].born_with = std::move(born_with);
    else if (moment.is_lost_of_ray(process))
      workers_[process.pid].is_of_ray = true;
    else if (moment.is_lost_forkserver(process))
      workers_.try_emplace(process.pid);
  }
  // Each one that is kept may keep others, so this repeats until none is found.
  std::map<std::uint32_t, Worker> lost = workers_;
  for (const auto& [pid, sign] : in_use)
    if (lost.erase(pid) != 0) workers_[pid].kept = sign;
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (auto& [pid, worker] : workers_) {
      if (!lost.contains(pid)) continue;
      worker.kept = moment.why_kept(pid, worker, lost);
      if (worker.kept.empty()) continue;
      lost.erase(pid);
      is_settled = false;
    }
  }
}

LostWorkers::Found LostWorkers::of(std::uint32_t pid) const {
  const auto found = workers_.find(pid);
  return found == workers_.end() ? Found() : Found{true, found->second.kept};
}

}  // namespace vramtrack
