// FairQuota: how much of something scarce (connections, streams, bytes) each client may take, so that none locks the
// others out.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace vramtrack::agent {

/// The peer that a connection counts for: a user of this machine, or the address of another machine.
struct Peer {
  std::string name;      ///< "user 1000", "192.0.2.7", "2001:db8:0:1::/64"
  bool trusted = false;  ///< root, or the agent's own user
  friend bool operator==(const Peer&, const Peer&) = default;
};

/// The rule: after taking, a peer may hold no more than was free before. A single peer gets half, two get a third each,
/// and n peers leave 1/(n+1) for the next one; no limit per peer has to be guessed (the dynamic threshold of Choudhury
/// and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Trans. Networking 6(2),
/// 1998, with a factor of 1). A trusted peer may take all that is free, and then the reserve. Pure; not
/// thread-safe.
class FairQuota {
 public:
  enum class Answer : std::uint8_t {
    granted,
    share_used,  ///< the peer has its share; others may still get theirs
    full,        ///< nothing is left for peers of this kind
  };

  FairQuota(std::uint64_t most, std::uint64_t reserve) : most_(most), reserve_(reserve) {}

  /// Takes `amount` for `peer` if it is granted. REQUIRES: amount >= 1.
  Answer take(const Peer& peer, std::uint64_t amount);
  /// Returns what take() would return.
  [[nodiscard]] Answer ask(const Peer& peer, std::uint64_t amount) const;
  /// REQUIRES: `peer` has taken at least `amount`.
  void give_back(const Peer& peer, std::uint64_t amount);

  /// Applies from now on; amounts already taken above it stay taken.
  void set_most(std::uint64_t most) { most_ = most; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t taken_by(const Peer& peer) const;

 private:
  std::uint64_t most_;
  std::uint64_t reserve_;
  std::uint64_t taken_ = 0;
  std::map<std::string, std::uint64_t> by_peer_;  ///< only peers that hold something
};

}  // namespace vramtrack::agent
