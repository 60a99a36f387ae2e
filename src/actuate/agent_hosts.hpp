// AgentHosts: which servers are agents. The labels of an alert only choose among them: whoever can bring about an alert
// could otherwise name a server that gets the agents' token and is believed. Pure.
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
  /// The port of an entry that names none: the agent's usual one.
  static constexpr std::uint16_t kPort = 9474;

  /// Entries of actuate.agent-hosts:
  ///   gn1=https://10.0.0.1:9474   the agent of the node gn1 is there, whatever the alert says
  ///   gn*.example.org:9474        hosts of these names; * stands for any part of a name, but for no dot
  ///   10.1.0.0/16, [fd00::1]      hosts of these addresses, where the alert names an address
  /// Errors name the entry.
  static Result<AgentHosts> parse(const std::vector<std::string>& entries);

  struct Address {
    std::string url;
    bool is_of_node = false;   ///< it is listed for that node; else labels may have chosen an agent of another one
    std::string refusal = {};  ///< why it must not be asked: its host or port is not listed; empty: it may be
  };
  /// Where the agent of `node` is asked: at the address listed for it, else at `agents` filled with the alert's labels
  /// (template.hpp). A template without labels in its host is the administrator's own word. Errors: as filled().
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
  std::map<std::string, std::string> nodes_;  ///< URL by name of a node
  std::vector<Hosts> hosts_;
};

}  // namespace vramtrack::actuate
