// AgentView: queries a machine's agent for its current view.
#pragma once

#include <string>

#include "actuate/evidence.hpp"
#include "core/result.hpp"

namespace vramtrack::actuate {

struct AgentAccess {
  std::string token;    ///< sent over TLS and on loopback; empty: none is sent
  std::string ca_file;  ///< empty: the system's certificates
};

/// The current view of the agent at `url` ("http://gn1:9474"). Blocks for at most 10 s while bytes arrive, 5 s without
/// any. Any thread. Errors name the address, never the token. REQUIRES: `url` is from AgentHosts::address().
Result<Witness> ask_agent(const std::string& url, const AgentAccess& access);

}  // namespace vramtrack::actuate
