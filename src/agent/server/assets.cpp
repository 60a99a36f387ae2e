#include "agent/assets.hpp"

namespace vramtrack::agent {

const Asset* find_asset(std::string_view path) {
  for (const Asset& asset : assets())
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace vramtrack::agent
