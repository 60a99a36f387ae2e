// AgentView: asks the agent of a machine what it sees now.
#pragma once

#include <string>

#include "actuate/evidence.hpp"
#include "core/result.hpp"

namespace vramtrack::actuate {

struct AgentAccess {
  std::string token;    ///< sent over TLS and on loopback; empty: none is sent
  std::string ca_file;  ///< empty: the system's certificates
};

/// What the agent at `url` ("http://gn1:9474") says of its machine. Blocks for 10 s at most while bytes come, 5 s
/// without any. Any thread. Errors name the address; the token is in none. REQUIRES: `url` is of AgentHosts::address().
Result<Witness> ask_agent(const std::string& url, const AgentAccess& access);

}  // namespace vramtrack::actuate
