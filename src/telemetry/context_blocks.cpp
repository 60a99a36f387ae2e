#include "telemetry/context_blocks.hpp"

#include <algorithm>

#include "probe/cuda_context_calls.hpp"

namespace vramtrack::telemetry {
namespace {

using probe::Call;

enum class Home : std::uint8_t {
  context,    ///< freed with the context that made it
  pool,       ///< freed with the device's pools, which a reset destroys
  elsewhere,  ///< not freed: CUDA's physical and HIP's pinned memory outlive contexts; others have no contexts
};

Home home_of(Call call) {
  if (probe::is_of_cuda_context(call)) return Home::context;
  switch (call) {
    case Call::cu_primary_context:
      return Home::context;
    case Call::cu_mem_alloc_async:
    case Call::cu_mem_alloc_from_pool_async:
    case Call::cu_mem_pool_import_pointer:
    case Call::hip_malloc:
    case Call::hip_malloc_managed:
    case Call::hip_malloc_async:
    case Call::hip_mem_create:
    case Call::hip_array_create:
    case Call::hip_mem_import:
    case Call::hip_import_external_memory:
    case Call::hip_ipc_open_mem_handle:
    case Call::hip_module:
    case Call::hip_graph_exec:
      return Home::pool;
    default:
      return Home::elsewhere;
  }
}

std::uint8_t device_of(const telemetry_event& event) {
  return static_cast<std::uint8_t>(event.device >> 8U);
}

/// An allocator's first block starts at the address of the driver's allocation that contains it.
bool is_of_driver(const telemetry_event& event) {
  const probe::CallInfo* const call = probe::info_of(static_cast<Call>(event.call));
  return call != nullptr && call->level == probe::Level::driver;
}

}  // namespace

ContextBlocks::Arrival ContextBlocks::allocated(const telemetry_event& event) {
  if (!is_of_driver(event)) return Arrival::fresh;
  const auto before = blocks_.find(event.address);
  if (static_cast<Call>(event.call) == Call::cu_primary_context &&
      (!knows_owners_ || (before != blocks_.end() && before->second.call == event.call)))
    return Arrival::known;
  const bool was_live = before != blocks_.end();
  if (was_live) blocks_.erase(before);
  const Home home = home_of(static_cast<Call>(event.call));
  // No thread was seen making a context current, so its creator may own a primary context, too.
  if (home == Home::context && event.context == 0) knows_owners_ = false;
  if (blocks_.size() < kMostBlocks)
    blocks_[event.address] = {event.context, event.time_ns, device_of(event), static_cast<std::uint8_t>(event.call)};
  return was_live ? Arrival::replaces : Arrival::fresh;
}

bool ContextBlocks::freed(const telemetry_event& event) {
  if (!is_of_driver(event)) return true;
  const auto block = blocks_.find(event.address);
  if (block == blocks_.end()) return true;
  if (event.began_ns != 0 && block->second.time_ns > event.began_ns) return false;
  blocks_.erase(block);
  return true;
}

template <class Ends>
std::vector<std::uint64_t> ContextBlocks::end(Ends ends) {
  std::vector<std::uint64_t> ended;
  for (const auto& [address, block] : blocks_)
    if (ends(block, home_of(static_cast<Call>(block.call)))) ended.push_back(address);
  for (const std::uint64_t address : ended) blocks_.erase(address);
  std::sort(ended.begin(), ended.end());
  return ended;
}

std::vector<std::uint64_t> ContextBlocks::changed(const telemetry_event& event) {
  const std::uint8_t device = device_of(event);
  if (event.result == TELEMETRY_NEW_CONTEXT) {
    Primary& primary = primaries_[device];
    primary.context = event.address;
    const auto lives_in_it = [&](const auto& each) { return each.second.context == event.address; };
    if (primary.owners == 0 && std::any_of(blocks_.begin(), blocks_.end(), lives_in_it)) knows_owners_ = false;
    ++primary.owners;
    return {};
  }
  if (event.result == TELEMETRY_END_CONTEXT)
    return end([&](const Block& block, Home home) { return home == Home::context && block.context == event.address; });
  Primary& primary = primaries_[device];
  const bool is_reset = event.result == TELEMETRY_END_DEVICE;
  if (!is_reset && (!knows_owners_ || primary.owners == 0 || --primary.owners > 0)) return {};
  return end([&](const Block& block, Home home) {
    const bool is_in = block.context == 0 ? block.device == device : block.context == primary.context;
    return home == Home::context ? is_in : home == Home::pool && is_reset && block.device == device;
  });
}

}  // namespace vramtrack::telemetry
