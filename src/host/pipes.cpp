#include "host/pipes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostDescriptors = 65536;
/// More than the maximum number of mappings of a process by default, and some 100,000 connections.
constexpr std::size_t kTableBytes = std::size_t{16} << 20U;
constexpr std::uint64_t kErrorOutput = 2;

/// 7 of "pipe:[7]"; nullopt for anything else.
std::optional<std::uint64_t> inode_of(std::string_view target, std::string_view kind) {
  if (!target.starts_with(kind) || !target.ends_with(']')) return std::nullopt;
  return parse_unsigned(target.substr(kind.size(), target.size() - kind.size() - 1));
}

/// O_RDONLY, O_WRONLY or O_RDWR, and O_CLOEXEC, of "flags:\t02100000" in the text of a file below fdinfo.
std::optional<std::uint64_t> access_of(const std::string& path) {
  std::array<char, 512> buffer;
  const auto text = read_small_file(path.c_str(), buffer);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    if (!line.starts_with("flags:")) continue;
    const auto flags = parse_unsigned(trimmed(line.substr(6)), 8);
    return flags ? std::optional(*flags & (O_ACCMODE | O_CLOEXEC)) : std::nullopt;
  }
  return std::nullopt;
}

/// The process that "Pid:\t42" names in the text of a pidfd's file below fdinfo.
std::optional<std::uint32_t> awaited_by(const std::string& path) {
  std::array<char, 512> buffer;
  const auto text = read_small_file(path.c_str(), buffer);
  std::string_view rest = text ? *text : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    if (!line.starts_with("Pid:")) continue;
    const auto pid = parse_unsigned(trimmed(line.substr(4)));
    return pid && *pid > 0 ? std::optional(static_cast<std::uint32_t>(*pid)) : std::nullopt;
  }
  return std::nullopt;
}

/// The protocol of a socket whose connections this program does not read, such as VSOCK or SCTP; otherwise empty.
std::string unread_protocol(const std::string& path) {
  std::array<char, 64> buffer;
  const ssize_t length = ::getxattr(path.c_str(), "system.sockprotoname", buffer.data(), buffer.size());
  const std::string_view name(buffer.data(), length <= 0 ? 0 : static_cast<std::size_t>(length) - 1);
  for (const char* known :
       {"", "TCP", "TCPv6", "MPTCP", "MPTCPv6", "UDP", "UDPv6", "UNIX", "UNIX-STREAM", "NETLINK", "PING", "PINGv6"})
    if (name == known) return {};
  return std::string(name);
}

std::optional<double> changed_s(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return static_cast<double>(found.st_mtim.tv_sec) + static_cast<double>(found.st_mtim.tv_nsec) / 1e9;
}

/// "0100007F:1F90" of that, and of an IPv4 address in IPv6: "0000000000000000FFFF00000100007F:1F90".
std::string plain_address(std::string_view address) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  return std::string(address.starts_with(kMapped) ? address.substr(kMapped.size()) : address);
}

std::optional<std::uint64_t> port_of(std::string_view address) {
  return parse_unsigned(address.substr(std::min(address.size(), address.rfind(':') + 1)), 16);
}

/// The memory that a process shares, by device and inode, with its path, from the text of its maps. A file only if it
/// is mapped for writing; no devices, since the driver's are shared by all its users.
std::map<std::string, std::string> shared_memory(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    // "7f0000-7f1000 rw-s 00000000 00:1a 42      /dev/shm/sem.mp-x (deleted)"
    std::string_view line = next_line(text);
    take_word(line);
    const std::string_view access = take_word(line);
    if (access.size() < 4 || access[3] != 's') continue;
    const bool writes = access[1] == 'w';
    take_word(line);
    const std::string_view device = take_word(line);
    const std::string_view inode = take_word(line);
    const std::string_view path = trimmed(line);
    if (path.starts_with("/dev/shm/cuda.shm.")) continue;  // of all clients of MPS
    const auto is_in = [path](const char* memory) { return path.starts_with(memory); };
    constexpr std::array<const char*, 4> kMemory = {"/dev/shm/", "/dev/zero", "/memfd:", "/SYSV"};
    const bool is_memory = std::any_of(kMemory.begin(), kMemory.end(), is_in);
    if (is_memory || (writes && path.starts_with('/') && !path.starts_with("/dev/")))
      out.emplace(std::string(device) + ' ' + std::string(inode), path);
  }
  return out;
}

std::string_view host_of(std::string_view address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

OpenEnds read_open_ends(const std::string& proc_root, std::uint32_t pid) {
  OpenEnds out;
  const std::string folder = proc_root + '/' + std::to_string(pid);
  DIR* const open = ::opendir((folder + "/fd").c_str());
  if (open == nullptr) return out;
  out.were_read = true;
  std::map<std::uint64_t, PipeEnd> pipes;
  std::set<std::uint64_t> standard;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(open)) {
    const auto fd = parse_unsigned(entry->d_name);
    if (!fd) continue;
    if (++seen > kMostDescriptors) {
      out.were_read = false;
      break;
    }
    const std::string path = folder + "/fd/" + entry->d_name;
    const std::string target = link_target(path);
    if (target == "/dev/null" && access_of(folder + "/fdinfo/" + entry->d_name) == (O_RDONLY | O_CLOEXEC))
      out.has_null_input = true;
    if (target.starts_with('/') && !target.starts_with("/dev/") && *fd > kErrorOutput && out.named_pipe.empty()) {
      struct stat found {};
      if (::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode)) out.named_pipe = target;
    }
    out.watches_files = out.watches_files || target == "anon_inode:inotify";
    out.has_timer = out.has_timer || target == "anon_inode:[timerfd]";
    if (target == "anon_inode:[pidfd]" || target.starts_with("pidfd:"))
      if (const auto awaited = awaited_by(folder + "/fdinfo/" + entry->d_name)) out.awaited.insert(*awaited);
    const auto pipe = inode_of(target, "pipe:[");
    const auto socket = pipe ? std::nullopt : inode_of(target, "socket:[");
    if (!pipe && !socket) continue;
    if (socket && out.other_socket.empty()) out.other_socket = unread_protocol(path);
    if (*fd <= kErrorOutput) standard.insert(pipe ? *pipe : *socket);
    if (socket) out.sockets.insert(*socket);
    if (!pipe) continue;
    const auto flags = access_of(folder + "/fdinfo/" + entry->d_name);
    if (!flags) continue;  // closed meanwhile
    const auto access = *flags & O_ACCMODE;
    PipeEnd& end = pipes[*pipe];
    end.inode = *pipe;
    end.reads = end.reads || access != O_WRONLY;
    end.writes = end.writes || access != O_RDONLY;
    end.was_opened_here = end.was_opened_here || (*flags & O_CLOEXEC) != 0;
    if (!end.changed_s) end.changed_s = changed_s(path);
  }
  ::closedir(open);
  for (const auto& [inode, end] : pipes)
    if (!standard.contains(inode)) out.pipes.push_back(end);
  for (const std::uint64_t inode : standard)
    if (out.sockets.erase(inode) > 0) out.standard_sockets.insert(inode);
  return out;
}

std::optional<bool> holds_other_end(const std::string& proc_root, std::uint32_t pid, std::uint32_t parent) {
  const OpenEnds own = read_open_ends(proc_root, pid);
  const OpenEnds its = read_open_ends(proc_root, parent);
  if (!own.were_read || !its.were_read) return std::nullopt;
  std::optional<bool> out;
  for (const PipeEnd& end : own.pipes) {
    if (end.reads && end.writes) continue;
    const bool holds = std::any_of(its.pipes.begin(), its.pipes.end(), [&end](const PipeEnd& other) {
      return other.inode == end.inode && (end.reads ? other.writes : other.reads);
    });
    out = out.value_or(false) || holds;
  }
  return out;
}

ProcessLinks::ProcessLinks(std::string proc_root, const std::vector<ListedProcess>& all)
    : proc_root_(std::move(proc_root)) {
  for (const ListedProcess& process : all) {
    const OpenEnds& ends = ends_.emplace(process.pid, read_open_ends(proc_root_, process.pid)).first->second;
    for (const PipeEnd& end : ends.pipes) {
      if (end.reads) readers_[end.inode].insert(process.pid);
      if (end.writes) writers_[end.inode].insert(process.pid);
    }
    for (const std::uint64_t inode : ends.sockets) sockets_[inode].insert(process.pid);
    for (const std::uint64_t inode : ends.standard_sockets) sockets_[inode].insert(process.pid);
  }
}

const OpenEnds& ProcessLinks::ends_of(std::uint32_t pid) const {
  static const OpenEnds kNone;
  const auto found = ends_.find(pid);
  return found == ends_.end() ? kNone : found->second;
}

std::set<std::uint32_t> ProcessLinks::at_other_end(const PipeEnd& end) const {
  std::set<std::uint32_t> out;
  for (const auto* side : {end.reads ? &writers_ : nullptr, end.writes ? &readers_ : nullptr})
    if (side != nullptr)
      if (const auto found = side->find(end.inode); found != side->end())
        out.insert(found->second.begin(), found->second.end());
  return out;
}

std::vector<ProcessLink> ProcessLinks::of(std::uint32_t pid, std::uint16_t port) {
  std::vector<ProcessLink> out;
  const auto add = [&](ProcessLink::Kind kind, const std::set<std::uint32_t>& holders) {
    ProcessLink& link = out.emplace_back();
    link.kind = kind;
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(link.others),
                 [pid](std::uint32_t other) { return other != pid; });
  };
  const OpenEnds& ends = ends_of(pid);
  for (const PipeEnd& end : ends.pipes) {
    add(ProcessLink::Kind::pipe, at_other_end(end));
    out.back().inode = end.inode;
  }
  if (ends.sockets.empty() && ends.standard_sockets.empty()) return out;
  const Tables& tables = tables_of(pid);
  if (!tables.are_whole) {
    add(ProcessLink::Kind::connection, {});
    out.back().is_unknown = true;
  }
  const auto add_peer = [&](std::uint64_t peer) {
    const auto holders = sockets_.find(peer);
    if (peer == 0 || holders != sockets_.end())
      add(ProcessLink::Kind::connection, peer == 0 ? std::set<std::uint32_t>() : holders->second);
    else
      add(ProcessLink::Kind::connection, {});
    out.back().is_unknown = peer != 0 && holders == sockets_.end();
    out.back().is_with_itself = peer != 0 && holders != sockets_.end() && holders->second.contains(pid);
  };
  std::set<std::uint64_t> asked = ends.sockets;
  for (const std::uint64_t inode : ends.standard_sockets)
    if (tables.tcp.contains(inode)) asked.insert(inode);  // a client's, as inetd passes it on; a log has a Unix socket
  for (const std::uint64_t inode : asked) {
    if (tables.datagrams.contains(inode)) {
      read_unix_peers();
      if (const auto peer = unix_peers_->find(inode);
          peer != unix_peers_->end() && tables.unnamed.contains(peer->second))
        add_peer(peer->second);
    }
    if (tables.local.contains(inode)) {
      read_unix_peers();
      const auto peer = unix_peers_->find(inode);
      add_peer(peer == unix_peers_->end() ? 0 : peer->second);
      if (peer == unix_peers_->end()) out.back().is_unknown = true;  // of another network namespace
    }
    if (tables.unix_servers.contains(inode)) {
      read_unix_peers();
      if (const auto waiting = unix_waiting_.find(inode); waiting != unix_waiting_.end())
        for (const std::uint64_t client : waiting->second) add_peer(client);
    }
    if (const auto server = tables.servers.find(inode); server != tables.servers.end()) {
      const auto [first, last] = tables.waiting.equal_range(server->second);
      for (auto at = first; at != last; ++at) {
        const auto client = tables.by_address.find(at->second.remote + ' ' + at->second.local);
        add_peer(client == tables.by_address.end() ? 0 : client->second);
        if (client == tables.by_address.end()) out.back().is_unknown = true;  // of another host
      }
    }
    const auto tcp = tables.tcp.find(inode);
    if (tcp == tables.tcp.end()) continue;
    const Connection& its = tcp->second;
    const auto peer = tables.by_address.find(its.remote + ' ' + its.local);
    const bool is_half_closed_by_peer = !its.is_open && tables.half.contains(its.remote + ' ' + its.local);
    add_peer(peer == tables.by_address.end() || (!its.is_open && !is_half_closed_by_peer) ? 0 : peer->second);
    if (its.is_open && peer == tables.by_address.end()) out.back().is_unknown = true;  // of another host
    out.back().is_meeting = port != 0 && (port_of(its.local) == port || port_of(its.remote) == port);
    out.back().has_ended = !its.is_open && !is_half_closed_by_peer && host_of(its.local) == host_of(its.remote);
  }
  return out;
}

ProcessLink ProcessLinks::servers_of(std::uint32_t pid, std::uint16_t port) {
  const Tables& tables = tables_of(pid);
  ProcessLink out;
  out.kind = ProcessLink::Kind::connection;
  out.is_unknown = !tables.are_whole;
  for (const auto& [inode, of_port] : tables.servers) {
    if (of_port != port) continue;
    const auto holders = sockets_.find(inode);
    if (holders == sockets_.end())
      out.is_unknown = true;
    else
      out.others.insert(out.others.end(), holders->second.begin(), holders->second.end());
  }
  return out;
}

ProcessLink ProcessLinks::memory_of(std::uint32_t pid) {
  const auto own = [&](std::uint32_t of) {
    const auto text = read_text_file(proc_root_ + '/' + std::to_string(of) + "/maps", kTableBytes);
    return text ? shared_memory(*text) : std::map<std::string, std::string>();
  };
  if (!memory_) {
    memory_.emplace();
    for (const auto& [other, ends] : ends_)
      if (ends.were_read)
        for (const auto& [memory, path] : own(other)) (*memory_)[memory].insert(other);
  }
  ProcessLink out;
  out.kind = ProcessLink::Kind::memory;
  for (const auto& [memory, path] : own(pid)) {
    const std::set<std::uint32_t>& pids = (*memory_)[memory];
    std::copy_if(pids.begin(), pids.end(), std::back_inserter(out.others),
                 [pid](std::uint32_t other) { return other != pid; });
    out.is_unknown = out.is_unknown || may_be_shared_unseen(pid, path);
  }
  return out;
}

/// Root's processes always may, and always run: that they may shows nothing.
bool ProcessLinks::may_be_shared_unseen(std::uint32_t pid, const std::string& path) const {
  struct stat file {};
  if (!path.starts_with("/dev/shm/") || path.ends_with(" (deleted)") ||
      ::stat((proc_root_ + '/' + std::to_string(pid) + "/root" + path).c_str(), &file) != 0)
    return false;
  return std::any_of(ends_.begin(), ends_.end(), [&](const auto& one) {
    struct stat process {};
    return !one.second.were_read && ::stat((proc_root_ + '/' + std::to_string(one.first)).c_str(), &process) == 0 &&
           process.st_uid != 0 && (process.st_uid == file.st_uid || (file.st_mode & (S_IRWXG | S_IRWXO)) != 0);
  });
}

const ProcessLinks::Tables& ProcessLinks::tables_of(std::uint32_t pid) {
  const std::string folder = proc_root_ + '/' + std::to_string(pid);
  std::string name = link_target(folder + "/ns/net");
  if (name.empty()) name = folder;
  const auto [known, is_new] = tables_.try_emplace(name);
  Tables& tables = known->second;
  if (!is_new) return tables;
  constexpr std::string_view kFirst = "/net/tcp";
  for (const std::string_view file : {kFirst, std::string_view("/net/tcp6")}) {
    const auto text = read_text_file(folder + std::string(file), kTableBytes);
    // A kernel without IPv6 has no second one.
    if (text ? text->size() >= kTableBytes : file == kFirst) tables.are_whole = false;
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      // "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 ..."
      std::string_view line = next_line(rest);
      take_word(line);
      const std::string local = plain_address(take_word(line));
      const std::string remote = plain_address(take_word(line));
      const std::string_view state = take_word(line);
      for (int i = 0; i < 5; ++i) take_word(line);
      const auto inode = parse_unsigned(take_word(line));
      constexpr std::string_view kOpen = "01";
      constexpr std::string_view kClosedByPeer = "08";
      constexpr std::string_view kListens = "0A";
      // Half closed by its own side, but still held (else it has no inode): it waits for what the other side sends.
      const bool is_half = (state == "04" || state == "05") && inode && *inode != 0;
      const bool is_asking = state == "02";  // for a connection that the other side has not yet accepted
      if (inode && state == kListens) tables.servers[*inode] = port_of(local).value_or(0);
      if (inode == 0U && state == kOpen)
        tables.waiting.emplace(port_of(local).value_or(0), Connection{local, remote, true});
      if (!inode || (state != kOpen && state != kClosedByPeer && !is_half && !is_asking)) continue;
      tables.by_address[local + ' ' + remote] = *inode;
      if (*inode != 0) tables.tcp[*inode] = {local, remote, state == kOpen || is_half || is_asking};
      if (is_half) tables.half.insert(local + ' ' + remote);
    }
  }
  const auto text = read_text_file(folder + "/net/unix", kTableBytes);
  if (text && text->size() >= kTableBytes) tables.are_whole = false;
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    // "0000000000000000: 00000003 00000000 00000000 0001 03 22 /run/x.sock"
    std::string_view line = next_line(rest);
    for (int i = 0; i < 3; ++i) take_word(line);
    const auto flags = parse_unsigned(take_word(line), 16);
    const std::string_view type = take_word(line);
    const std::string_view state = take_word(line);
    const auto inode = parse_unsigned(take_word(line));
    constexpr std::uint64_t kAccepts = 0x10000;
    if (inode && type == "0002") tables.datagrams.insert(*inode);
    if (inode && trimmed(line).empty()) tables.unnamed.insert(*inode);          // that of a log has a name
    if (inode && type != "0002" && state == "03") tables.local.insert(*inode);  // no datagrams: to a log
    if (inode && flags && (*flags & kAccepts) != 0) tables.unix_servers.insert(*inode);
  }
  return tables;
}

/// /proc does not show who is at the other end of a Unix socket; the kernel reports it on request, to everybody.
void ProcessLinks::read_unix_peers() {
  if (unix_peers_) return;
  unix_peers_.emplace();
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return;
  struct {
    nlmsghdr header{};
    unix_diag_req request{};
  } asked;
  asked.header.nlmsg_len = sizeof asked;
  asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  asked.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  asked.request.sdiag_family = AF_UNIX;
  asked.request.udiag_states = ~0U;
  asked.request.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS;
  bool goes_on = ::send(fd, &asked, sizeof asked, 0) == static_cast<ssize_t>(sizeof asked);
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  while (goes_on) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) break;
    auto left = static_cast<unsigned>(got);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) goes_on = false;
      if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) continue;
      const auto* message = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
      std::uint64_t& peer = (*unix_peers_)[message->udiag_ino];
      // RTA_OK and RTA_NEXT mix signed and unsigned lengths.
      std::size_t rest = header->nlmsg_len - NLMSG_LENGTH(sizeof *message);
      const auto* at = reinterpret_cast<const char*>(message + 1);
      while (rest >= sizeof(rtattr)) {
        const auto* attribute = reinterpret_cast<const rtattr*>(at);
        if (attribute->rta_len < sizeof(rtattr) || attribute->rta_len > rest) break;
        std::uint32_t inode = 0;
        if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) >= sizeof inode) {
          std::memcpy(&inode, RTA_DATA(attribute), sizeof inode);
          peer = inode;
        }
        if (attribute->rta_type == UNIX_DIAG_ICONS)
          for (std::size_t i = 0; (i + 1) * sizeof inode <= RTA_PAYLOAD(attribute); ++i) {
            std::memcpy(&inode, reinterpret_cast<const char*>(RTA_DATA(attribute)) + i * sizeof inode, sizeof inode);
            unix_waiting_[message->udiag_ino].push_back(inode);
          }
        const std::size_t step = RTA_ALIGN(attribute->rta_len);
        rest -= std::min(rest, step);
        at += step;
      }
    }
  }
  ::close(fd);
}

}  // namespace vramtrack
