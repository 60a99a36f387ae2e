// AgentHosts: which servers are agents. The labels of an alert only choose among them: otherwise, anyone who can cause
// an alert could name a server that then receives the agents' token and is trusted. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actuate/webhook.hpp"
#include "core/result.hpp"

namespace vramtrack::actuate {

class AgentHosts {
 public:
  /// The port for an entry that names none: the agent's default.
  static constexpr std::uint16_t kPort = 9474;

  /// Entries of actuate.agent-hosts:
  ///   gn1=https://10.0.0.1:9474   the agent of the node gn1 is there, regardless of the alert
  ///   gn*.example.org:9474        hosts with these names; * stands for any part of a name without a dot
  ///   10.1.0.0/16, [fd00::1]      hosts with these addresses, if the alert names an address
  /// Errors name the entry.
  static Result<AgentHosts> parse(const std::vector<std::string>& entries);

  struct Address {
    std::string url;
    bool is_of_node = false;   ///< it is listed for that node; otherwise labels may have chosen another node's agent
    std::string refusal = {};  ///< why it must not be queried: its host or port is not listed; empty: it may be
  };
  /// The address of the agent of `node`: the one listed for it, otherwise `agents` filled with the alert's labels
  /// (template.hpp). A template without labels in its host is trusted as the administrator's. Errors: as for filled().
  [[nodiscard]] Result<Address> address(const std::string& agents, const Labels& labels, const std::string& node) const;
  [[nodiscard]] bool is_empty() const { return nodes_.empty() && hosts_.empty(); }

  /// Whether alerts choose the host of the template `agents`.
  static bool is_chosen_by_labels(const std::string& agents);

 private:
  struct Hosts {
    std::string name;                    ///< a pattern in lower case; empty: addresses
    std::vector<unsigned char> network;  ///< 4 or 16 bytes
    unsigned prefix_bits = 0;
    std::uint16_t port = kPort;
  };
  std::map<std::string, std::string> nodes_;  ///< URL by node name
  std::vector<Hosts> hosts_;
};

}  // namespace vramtrack::actuate
