#include "web/assets.hpp"

namespace vramtrack::web {

const Asset* find_asset(std::string_view path) {
  for (const Asset& asset : assets())
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace vramtrack::web
