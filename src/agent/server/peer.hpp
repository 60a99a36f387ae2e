// Peer: who is at the other end of a connection, as the kernel reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/server/shares.hpp"

namespace vramtrack::agent {

/// What a client may do.
struct Rights {
  bool all_commands = false;  ///< sees every process's command line
  bool change = false;        ///< may acknowledge
  std::string user;           ///< else sees those of this user's processes; empty: of none
  friend bool operator==(const Rights&, const Rights&) = default;
};

/// Who has connected.
struct Client {
  std::optional<std::uint32_t> uid;  ///< nullopt: on another machine, or it cannot be determined
  Peer peer;                         ///< the client that the connection counts for
  /// On a Unix socket: the client's pid namespace, where that is another than ours, as a container's is ("?": it is
  /// gone). Such a client gets its own processes and nothing of others, whoever its user is.
  std::optional<std::string> pid_namespace{};
};

/// The client of a connected socket. Its user: SO_PEERCRED of a Unix socket, the owner of the client's socket where
/// both ends are on this machine's loopback. The peer is that user, else the address: of IPv6 its /64, which one
/// machine may have all of. `own_uid`: the agent's. Cost: some microseconds; over TCP on a kernel without sock_diag(7)
/// a read of /proc/net/tcp.
Client client_of(int fd, std::uint32_t own_uid);

/// For client_of over TCP and its tests. `table` is the text of /proc/net/tcp or tcp6, `local` and `remote` the
/// addresses as in it ("0100007F:1F90"), seen from the socket whose owner is asked. Pure.
std::optional<std::uint32_t> socket_owner(std::string_view table, std::string_view local, std::string_view remote);

/// The rights of a client without a token. `own_uid`: the agent's. Root and the agent's own user see what the agent
/// sees; others see what is theirs; an unknown peer sees nothing.
Rights rights_of(std::optional<std::uint32_t> uid, std::uint32_t own_uid);

/// The user's name, or the uid as text where it has none: as ProcessInfo::user.
std::string user_name(std::uint32_t uid);

}  // namespace vramtrack::agent
