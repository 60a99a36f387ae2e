#include "trace/site_table.hpp"

#include <array>
#include <utility>

#include "trace/hash.hpp"

namespace vramtrack::trace {

const probe::CallInfo* call_info(probe::Call call) {
  static const auto table = [] {
    std::array<const probe::CallInfo*, 256> out{};
    for (const probe::CallInfo& info : probe::kCalls) out[static_cast<std::size_t>(info.call)] = &info;
    return out;
  }();
  return table[static_cast<std::size_t>(call)];
}

std::uint32_t SiteTable::find_or_add(std::uint64_t key, const probe::Slot& slot) {
  const auto hash = static_cast<std::uint32_t>(mixed(key * hash_seed()));
  const std::uint32_t found = ids_.find(hash, [&](std::uint32_t known) {
    const CallSite& site = all_[known];
    return probe::head_of(probe::Record::none, site.call, site.device, 0, site.stack) == key;
  });
  if (found != IdTable::kNone) return found;
  const auto id = static_cast<std::uint32_t>(all_.size());
  const probe::CallInfo& info = *call_info(probe::call_of(slot));
  CallSite site;
  site.stack = probe::number_of(slot);
  site.call = info.call;
  site.level = info.level;
  site.space = space_of(info.memory);
  site.device = static_cast<std::int8_t>(probe::device_of(slot));
  site.thread = probe::thread_of(slot);
  all_.push_back(std::move(site));
  ids_.insert(hash, id);
  return id;
}

}  // namespace vramtrack::trace
