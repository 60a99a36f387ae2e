// Who holds the other ends of the pipes and connections of a process, by its open files; who shares memory with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/process_tree.hpp"

namespace vramtrack {

/// One end of an unnamed pipe that a process has open.
struct PipeEnd {
  std::uint64_t inode = 0;
  bool reads = false;
  bool writes = false;
  bool was_opened_here = false;  ///< it closes on exec: this program made it itself, and was not started with it
  /// When somebody last wrote into it, or it was made, in seconds since 1970; nullopt: not readable.
  std::optional<double> changed_s;
};

/// The means by which a process may be connected.
struct OpenEnds {
  bool were_read = false;       ///< false: this user may not look, it has ended, or there are too many
  bool has_null_input = false;  ///< it has itself opened /dev/null for reading, as Python's workers do at their start
  std::vector<PipeEnd> pipes;   ///< each once, except those of its standard input and output
  std::set<std::uint64_t> sockets;           ///< their inodes, likewise
  std::set<std::uint64_t> standard_sockets;  ///< those of its standard input and output
  std::string other_socket;                  ///< the protocol of one whose other side cannot be found
  std::string named_pipe;                    ///< one of them, where others find it
  bool watches_files = false;                ///< by inotify: it may receive its work in files
  bool has_timer = false;                    ///< a timerfd, which may wake it
  std::set<std::uint32_t> awaited;           ///< processes for whose end it can wait, by a pidfd
};

/// Needs the same user or CAP_SYS_PTRACE. Any thread. Cost: a readlink per descriptor (at most 65,536) and two small
/// reads per pipe.
OpenEnds read_open_ends(const std::string& proc_root, std::uint32_t pid);

/// Whether `parent` has the other end of a pipe of `pid` open; nullopt if either may not be read, or `pid` has no pipe
/// of which it holds only one end. Cost: as read_open_ends() for both.
std::optional<bool> holds_other_end(const std::string& proc_root, std::uint32_t pid, std::uint32_t parent);

/// The processes that a process is connected to by one pipe or socket, or by all its shared memory.
struct ProcessLink {
  enum class Kind : std::uint8_t { pipe, connection, memory };
  Kind kind = Kind::pipe;
  std::uint64_t inode = 0;            ///< of a pipe
  std::vector<std::uint32_t> others;  ///< who has the other end, or the memory; without the process itself
  bool is_with_itself = false;        ///< it has both ends of a connection
  bool is_unknown = false;            ///< an invisible process may have it: of another host, of another user
  bool is_meeting = false;            ///< the port of one of its two ends is the one asked about
  bool has_ended = false;             ///< the other side was on this host, and has closed it
};

/// The ends of all processes of a machine at one moment. Not thread-safe. Cost: as read_open_ends() for each process;
/// then three small files per network namespace, and one request to the kernel for the peers of Unix sockets.
class ProcessLinks {
 public:
  ProcessLinks(std::string proc_root, const std::vector<ListedProcess>& all);

  [[nodiscard]] const OpenEnds& ends_of(std::uint32_t pid) const;
  /// The processes that have the other end of `end` open.
  [[nodiscard]] std::set<std::uint32_t> at_other_end(const PipeEnd& end) const;
  /// For each pipe and connection of `pid`, and for those waiting to be accepted by it. `port`: see
  /// ProcessLink::is_meeting.
  std::vector<ProcessLink> of(std::uint32_t pid, std::uint16_t port = 0);
  /// The processes that listen on that TCP port where `pid` is.
  ProcessLink servers_of(std::uint32_t pid, std::uint16_t port);
  /// The processes that can write into memory that `pid` can write into. The first call reads all processes' mappings.
  ProcessLink memory_of(std::uint32_t pid);

 private:
  struct Connection {
    std::string local, remote;  ///< address and port in hexadecimal, IPv4 even if it is mapped into IPv6
    bool is_open = false;       ///< false: the other side has closed it
  };
  struct Tables {
    std::map<std::uint64_t, Connection> tcp;          ///< by inode
    std::map<std::string, std::uint64_t> by_address;  ///< inode of "local remote"
    std::set<std::string> half;     ///< "local remote" of those that remain after they closed their own side
    std::set<std::uint64_t> local;  ///< connected Unix sockets
    std::set<std::uint64_t> datagrams, unnamed;        ///< Unix sockets of datagrams; those without a name
    std::set<std::uint64_t> unix_servers;              ///< Unix sockets on which somebody listens
    std::map<std::uint64_t, std::uint64_t> servers;    ///< TCP ports on which somebody listens, by inode
    std::multimap<std::uint64_t, Connection> waiting;  ///< to such a port, by it: nobody has accepted them yet
    bool are_whole = true;                             ///< false: one may not be read, or is too long
  };
  const Tables& tables_of(std::uint32_t pid);
  void read_unix_peers();
  /// Whether a process whose mappings this user may not read may have that file, which `pid` shares, in memory.
  [[nodiscard]] bool may_be_shared_unseen(std::uint32_t pid, const std::string& path) const;

  std::string proc_root_;
  std::map<std::uint32_t, OpenEnds> ends_;
  std::map<std::uint64_t, std::set<std::uint32_t>> readers_, writers_, sockets_;  ///< pids by inode
  std::optional<std::map<std::string, std::set<std::uint32_t>>> memory_;          ///< pids by device and inode
  std::map<std::string, Tables> tables_;                                          ///< by network namespace
  std::optional<std::map<std::uint64_t, std::uint64_t>> unix_peers_;              ///< 0: the other side has ended
  std::map<std::uint64_t, std::vector<std::uint64_t>> unix_waiting_;  ///< clients not accepted yet, by server
};

}  // namespace vramtrack
