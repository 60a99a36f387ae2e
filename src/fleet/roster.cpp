#include "fleet/roster.hpp"

#include <algorithm>

#include "fleet/identity.hpp"

namespace vramtrack::fleet {

void Roster::add(const Identity& seen) {
  const std::string& host = seen.device.host;
  if (host.empty()) return;
  add_host(host);
  if (!seen.has_uuid) return;
  const std::string& uuid = seen.device.parent_id.empty() ? seen.device.id : seen.device.parent_id;
  const auto [known, is_new] = host_of_gpu_.try_emplace(uuid, host);
  if (is_new || known->second == host) return;
  const std::string one = machine_of(known->second), other = machine_of(host);
  parents_[std::max(one, other)] = std::min(one, other);
}

std::string Roster::machine_of(const std::string& host) const {
  std::string name = host;
  for (auto known = parents_.find(name); known != parents_.end() && known->second != name; known = parents_.find(name))
    name = known->second;
  return name;
}

}  // namespace vramtrack::fleet
