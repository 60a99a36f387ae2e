#include "host/sockets.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kTableBytes = std::size_t{4} << 20;
constexpr std::size_t kUnixBytes = std::size_t{1} << 20;
constexpr std::size_t kMostDescriptors = 4096;
constexpr std::uint64_t kListens = 0x0a;
constexpr std::uint64_t kEstablished = 0x01;

std::string_view after_last(std::string_view text, char c) {
  return text.substr(text.rfind(c) + 1);
}

/// The inodes of the sockets that `pid` has open; nullopt if they may not be read.
std::optional<std::set<std::uint64_t>> sockets_of(const std::string& proc_root, std::uint32_t pid) {
  const std::string folder = proc_root + '/' + std::to_string(pid) + "/fd";
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr) return std::nullopt;
  std::set<std::uint64_t> out;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(open)) {
    if (entry->d_name[0] == '.' || ++seen > kMostDescriptors) continue;
    const std::string target = link_target(folder + '/' + entry->d_name);
    constexpr std::string_view kSocket = "socket:[";
    if (target.compare(0, kSocket.size(), kSocket) != 0) continue;
    const auto inode = parse_unsigned(std::string_view(target).substr(
        kSocket.size(), target.size() > kSocket.size() ? target.size() - kSocket.size() - 1 : 0));
    if (inode) out.insert(*inode);
  }
  ::closedir(open);
  return out;
}

}  // namespace

void parse_tcp(std::string_view text, std::vector<TcpSocket>& out) {
  while (!text.empty()) {
    // "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 ..."
    std::string_view line = next_line(text);
    take_word(line);
    const auto port = parse_unsigned(after_last(take_word(line), ':'), 16);
    take_word(line);
    const auto state = parse_unsigned(take_word(line), 16);
    const auto unread = parse_unsigned(after_last(take_word(line), ':'), 16);
    for (int i = 0; i < 4; ++i) take_word(line);
    const auto inode = parse_unsigned(take_word(line));
    if (!port || *port > 0xffff || !state || !unread || !inode) continue;
    if (*state != kListens && *state != kEstablished) continue;
    out.push_back({*inode, static_cast<std::uint16_t>(*port), *state == kListens, *unread});
  }
}

std::vector<UnixListener> listening_unix(std::string_view text) {
  std::vector<UnixListener> out;
  while (!text.empty()) {
    // "0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/server.sock"
    std::string_view line = next_line(text);
    for (int i = 0; i < 3; ++i) take_word(line);
    const auto flags = parse_unsigned(take_word(line), 16);
    take_word(line);
    take_word(line);
    const auto inode = parse_unsigned(take_word(line));
    constexpr std::uint64_t kAccepts = 0x10000;
    if (!flags || (*flags & kAccepts) == 0 || !inode) continue;
    // The CUDA driver listens in every program that uses it ("@cuda-uvmfd-4026531836-4242").
    const std::string_view name = trimmed(line);
    if (name.find("/pymp-") == std::string_view::npos && !name.starts_with("@cuda-"))
      out.push_back({*inode, std::string(name)});
  }
  return out;
}

std::vector<UnixListener> named_datagrams(std::string_view text) {
  std::vector<UnixListener> out;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    for (int i = 0; i < 4; ++i) take_word(line);
    const std::string_view type = take_word(line);
    take_word(line);
    const auto inode = parse_unsigned(take_word(line));
    const std::string_view name = trimmed(line);
    constexpr std::size_t kAssignedLength = 6;  // "@0a1b2", which the kernel gives to one that asks for any
    if (!inode || type != "0002" || name.empty() || (name.starts_with('@') && name.size() <= kAssignedLength)) continue;
    out.push_back({*inode, std::string(name)});
  }
  return out;
}

bool is_secret(std::string_view name) {
  const std::string_view last = after_last(name.substr(name.starts_with('@') ? 1 : 0), '/');
  constexpr std::string_view kUuid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kTemporary = "tmp";
  constexpr std::size_t kTemporaryLength = 11;
  if (last.size() == kUuid.size())
    return std::equal(last.begin(), last.end(), kUuid.begin(), [kHex](char c, char as) {
      return as == '-' ? c == '-' : kHex.find(c) != std::string_view::npos;
    });
  return last.size() == kTemporaryLength && last.starts_with(kTemporary) &&
         last.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", kTemporary.size()) == std::string_view::npos;
}

const SocketTables::Tables& SocketTables::tables_of(std::uint32_t pid) {
  const std::string folder = proc_root_ + '/' + std::to_string(pid);
  // Where the namespace cannot be read, its sockets are taken for its own.
  std::string name = link_target(folder + "/ns/net");
  if (name.empty()) name = folder;
  const auto known = tables_.find(name);
  if (known != tables_.end()) return known->second;
  Tables& tables = tables_[name];
  for (const char* file : {"/net/tcp", "/net/tcp6"})
    if (const auto text = read_text_file(folder + file, kTableBytes)) parse_tcp(*text, tables.tcp);
  // The kernel lists one socket several times where others come and go while the table is read.
  std::sort(tables.tcp.begin(), tables.tcp.end(), [](auto& a, auto& b) { return a.inode < b.inode; });
  const auto is_same = [](auto& a, auto& b) { return a.inode == b.inode; };
  tables.tcp.erase(std::unique(tables.tcp.begin(), tables.tcp.end(), is_same), tables.tcp.end());
  if (const auto text = read_text_file(folder + "/net/unix", kUnixBytes))
    for (UnixListener& one : listening_unix(*text)) tables.local[one.inode] = std::move(one.name);
  for (const char* file : {"/net/udp", "/net/udp6"}) {
    const auto text = read_text_file(folder + file, kTableBytes);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      std::string_view line = next_line(rest);
      take_word(line);
      const auto port = parse_unsigned(after_last(take_word(line), ':'), 16);
      for (int i = 0; i < 7; ++i) take_word(line);
      const auto inode = parse_unsigned(take_word(line));
      if (port && *port <= 0xffff && inode) tables.udp[*inode] = static_cast<std::uint16_t>(*port);
    }
  }
  if (const auto text = read_text_file(folder + "/net/unix", kUnixBytes))
    for (UnixListener& one : named_datagrams(*text)) tables.datagrams[one.inode] = std::move(one.name);
  std::array<char, 64> buffer;
  if (const auto range = read_small_file((proc_root_ + "/sys/net/ipv4/ip_local_port_range").c_str(), buffer)) {
    std::string_view rest = trimmed(*range);
    const auto low = parse_unsigned(take_word(rest));
    const auto high = parse_unsigned(take_word(rest));
    if (low && high && *low <= *high && *high <= 0xffff)
      tables.ephemeral = {static_cast<std::uint16_t>(*low), static_cast<std::uint16_t>(*high)};
  }
  return tables;
}

std::optional<ListeningSockets> SocketTables::of(std::uint32_t pid, bool services_only,
                                                 const std::set<std::uint16_t>& ignored) {
  const auto own = sockets_of(proc_root_, pid);
  if (!own) return std::nullopt;
  ListeningSockets out;
  if (own->empty()) return out;
  const Tables& tables = tables_of(pid);
  std::set<std::uint16_t> ports;
  for (const TcpSocket& s : tables.tcp) {
    if (!s.listens || !own->contains(s.inode) || ignored.contains(s.local_port)) continue;
    if (services_only && tables.ephemeral.has(s.local_port)) continue;
    ports.insert(s.local_port);
    out.waiting += static_cast<std::uint32_t>(std::min<std::uint64_t>(s.waiting, 1U << 16U));
  }
  for (const TcpSocket& s : tables.tcp) {
    if (s.listens || !own->contains(s.inode) || !ports.contains(s.local_port)) continue;
    ++out.clients;
    if (s.waiting > 0) ++out.waiting;
  }
  out.ports.assign(ports.begin(), ports.end());
  for (const std::uint64_t inode : *own) out.local += tables.local.contains(inode) ? 1U : 0U;
  return out;
}

std::optional<Addresses> SocketTables::addresses_of(std::uint32_t pid) {
  const auto own = sockets_of(proc_root_, pid);
  if (!own) return std::nullopt;
  Addresses out;
  if (own->empty()) return out;
  const Tables& tables = tables_of(pid);
  for (const TcpSocket& s : tables.tcp)
    if (s.listens && own->contains(s.inode))
      (tables.ephemeral.may_be_given_to_listener(s.local_port) ? out.assigned : out.chosen).insert(s.local_port);
  for (const auto& [inode, name] : tables.local)
    if (own->contains(inode)) out.names.insert(name);
  for (const auto& [inode, port] : tables.udp)
    if (own->contains(inode) && !tables.ephemeral.has(port)) out.datagrams.insert(port);
  for (const auto& [inode, name] : tables.datagrams)
    if (own->contains(inode)) out.names.insert(name);
  return out;
}

}  // namespace vramtrack
