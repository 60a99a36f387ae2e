// Which sockets listen or are connected: the kernel's socket tables, joined with a process's descriptors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/progress.hpp"

namespace vramtrack {

/// One line of /proc/net/tcp or tcp6.
struct TcpSocket {
  std::uint64_t inode = 0;
  std::uint16_t local_port = 0;
  bool listens = false;       ///< otherwise it is an established connection
  std::uint64_t waiting = 0;  ///< bytes that nobody has read; if it listens, connections that nobody has accepted
};

/// Appends the sockets that listen or are connected. A line that is not understood is skipped. Pure.
void parse_tcp(std::string_view text, std::vector<TcpSocket>& out);

/// A Unix socket that listens.
struct UnixListener {
  std::uint64_t inode = 0;
  std::string name;  ///< its path, or "@name"; empty if it has none
};

/// Those in the text of /proc/net/unix, except those of the CUDA driver and those by which Python's multiprocessing
/// passes descriptors. Pure.
std::vector<UnixListener> listening_unix(std::string_view text);

/// Named Unix datagram sockets, to which others send. Pure.
std::vector<UnixListener> named_datagrams(std::string_view text);

/// Whether only programs that were given the name can find a Unix socket with it: it is a UUID, or a name that
/// Python's tempfile makes ("tmp" and eight characters). Pure.
bool is_secret(std::string_view name);

/// The addresses at which others can find a process.
struct Addresses {
  std::set<std::uint16_t> assigned;   ///< TCP ports assigned by the system: known only to programs that got them
  std::set<std::uint16_t> chosen;     ///< the other TCP ports
  std::set<std::uint16_t> datagrams;  ///< UDP ports that it has bound, except those that the system assigns
  std::set<std::string> names;        ///< the names of Unix sockets, as UnixListener::name
};

/// The ports that the system assigns if a program does not request one; [low, high].
struct EphemeralPorts {
  std::uint16_t low = 32768;
  std::uint16_t high = 60999;
  [[nodiscard]] bool has(std::uint16_t port) const { return port >= low && port <= high; }
  /// Whether Linux may have assigned `port` to a listener: listeners get the parity that `low` does not have
  /// (inet_csk_find_open_port), as long as one is free. gRPC's examples and servers listen on 50051.
  [[nodiscard]] bool may_be_given_to_listener(std::uint16_t port) const {
    return has(port) && (port - low) % 2 != 0 && port != 50051;
  }
};

/// The tables of one round: each network namespace is read only once. Not thread-safe.
class SocketTables {
 public:
  explicit SocketTables(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  /// The listening sockets of `pid` and their connections; nullopt if its descriptors may not be read (another user's
  /// process without CAP_SYS_PTRACE). Ports in `ignored` do not count, nor, with `services_only`, those that the system
  /// assigned. Cost: a readlink per descriptor (at most 4096), and three files per namespace (at most 9 MiB).
  std::optional<ListeningSockets> of(std::uint32_t pid, bool services_only, const std::set<std::uint16_t>& ignored);

  /// The addresses at which `pid` listens; nullopt and cost as above.
  std::optional<Addresses> addresses_of(std::uint32_t pid);

 private:
  struct Tables {
    std::vector<TcpSocket> tcp;
    std::map<std::uint64_t, std::string> local;      ///< names by inode
    std::map<std::uint64_t, std::uint16_t> udp;      ///< ports by inode
    std::map<std::uint64_t, std::string> datagrams;  ///< names of Unix sockets by inode
    EphemeralPorts ephemeral;
  };
  const Tables& tables_of(std::uint32_t pid);

  std::string proc_root_;
  std::map<std::string, Tables> tables_;  ///< by network namespace
};

}  // namespace vramtrack
