// Peer: who is at the other end of a connection, as the kernel reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/server/fair_quota.hpp"

namespace vramtrack::agent {

/// What a client may do.
struct Rights {
  bool all_commands = false;  ///< sees every process's command line
  bool change = false;        ///< may acknowledge alerts
  std::string user;           ///< otherwise sees those of this user's processes; empty: none
  friend bool operator==(const Rights&, const Rights&) = default;
};

/// Who has connected.
struct Client {
  std::optional<std::uint32_t> uid;  ///< nullopt: on another machine, or it cannot be determined
  Peer peer;                         ///< the client that the connection counts for
  /// On a Unix socket: the client's pid namespace if it is not ours, as for a container ("?": it has ended). Such a
  /// client sees its own processes and nothing about others, whoever its user is.
  std::optional<std::string> pid_namespace{};
};

/// The client of a connected socket. Its user is SO_PEERCRED of a Unix socket, or the owner of the client's socket if
/// both ends are on this machine's loopback. The peer is that user, else the address (for IPv6 its /64, because one
/// machine may have all of it). `own_uid`: the agent's. Cost: some microseconds; a read of /proc/net/tcp on a kernel
/// without sock_diag(7).
Client client_of(int fd, std::uint32_t own_uid);

/// The owner of a socket, for client_of over TCP and its tests. `table` is the text of /proc/net/tcp or tcp6, `local`
/// and `remote` the addresses in its form ("0100007F:1F90"), as seen from the socket to look up. Pure.
std::optional<std::uint32_t> socket_owner(std::string_view table, std::string_view local, std::string_view remote);

/// The rights of a client without a token. `own_uid`: the agent's. Root and the agent's own user see what the agent
/// sees, others see only their own, an unknown peer sees nothing.
Rights rights_of(std::optional<std::uint32_t> uid, std::uint32_t own_uid);

/// The user's name, or the uid as text if it has none, as in ProcessInfo::user.
std::string user_name(std::uint32_t uid);

}  // namespace vramtrack::agent
