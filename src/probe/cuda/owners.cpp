#include "probe/cuda/owners.hpp"

#include <atomic>

#include "probe/cuda/cuda.hpp"
#include "probe/cuda_context_calls.hpp"
#include "probe/holding_table.hpp"

VRAMTRACK_CUDA_EXPORT CUresult cuCtxGetCurrent(CUcontext* context);

namespace vramtrack::probe::cuda {
namespace {

/// Separate tables, which count nothing.
HoldingTable contexts;  ///< `bytes`: number of references
HoldingTable owners;    ///< `bytes`: the owner
std::atomic<bool> has_contexts{false}, has_owners{false};

Holding row(std::uint64_t key, std::uint64_t value) {
  return {key, value, 0, Call::none, 0, Level::driver, false};
}

bool dies_with_context(Call call) {
  return is_of_cuda_context(call) || call == Call::cu_graph_memory;
}

bool is_of_pool(Call call) {
  return call == Call::cu_mem_alloc_async || call == Call::cu_mem_alloc_from_pool_async ||
         call == Call::cu_mem_pool_import_pointer;
}

/// The owner number for a primary context; no pointer is this small.
std::uint64_t primary_owner(int device) {
  return static_cast<std::uint64_t>(device) + 1;
}

void take_owned(std::uint64_t owner) {
  owners.take_all([&](const Holding& owned) { return owned.bytes == owner; },
                  [](const Holding& owned) { gave_back(Level::driver, owned.address); });
}

}  // namespace

void context_began(CUcontext context) {
  if (context == nullptr) return;
  contexts.put(row(reinterpret_cast<std::uint64_t>(context), 1));
  has_contexts.store(true, std::memory_order_release);
}

void context_attached(CUcontext context) {
  const Holding known = contexts.take(Level::driver, reinterpret_cast<std::uint64_t>(context));
  if (known.address != 0) contexts.put(row(known.address, known.bytes + 1));
}

std::uint64_t context_detaches(CUcontext context) {
  const Holding known = contexts.take(Level::driver, reinterpret_cast<std::uint64_t>(context));
  if (known.address == 0) return 0;
  if (known.bytes > 1)
    contexts.put(row(known.address, known.bytes - 1));
  else
    take_owned(known.address);
  return known.bytes;
}

void context_kept(CUcontext context, std::uint64_t references) {
  contexts.put(row(reinterpret_cast<std::uint64_t>(context), references));
}

void own(std::uint64_t address, int device, bool is_host) {
  std::uint64_t owner = is_host && device >= 0 ? primary_owner(device) : 0;
  if (has_contexts.load(std::memory_order_acquire)) {
    CUcontext context = nullptr;
    const bool has_one = REAL(cuCtxGetCurrent)(&context) == kSuccess && context != nullptr;
    const auto key = reinterpret_cast<std::uint64_t>(context);
    if (has_one && contexts.find(Level::driver, key).address != 0) owner = key;
  }
  if (owner == 0) return;
  has_owners.store(true, std::memory_order_release);
  owners.put(row(address, owner));
}

std::uint64_t disown(std::uint64_t address) {
  return has_owners.load(std::memory_order_acquire) ? owners.take(Level::driver, address).bytes : 0;
}

void own_again(std::uint64_t address, std::uint64_t owner) {
  if (owner != 0) owners.put(row(address, owner));
}

void forget_owners() {
  contexts.reset();
  owners.reset();
  has_contexts.store(false, std::memory_order_relaxed);
  has_owners.store(false, std::memory_order_relaxed);
}

void context_ended(CUcontext context) {
  const auto owner = reinterpret_cast<std::uint64_t>(context);
  if (contexts.take(Level::driver, owner).address != 0) take_owned(owner);
}

void primary_context_ended(int device, bool with_pools) {
  take_owned(primary_owner(device));
  gave_back_all([&](const Holding& held) {
    if (held.level != Level::driver || held.device != device) return false;
    if (with_pools && is_of_pool(held.call)) return true;
    return dies_with_context(held.call) && owners.find(Level::driver, held.address).address == 0;
  });
}

}  // namespace vramtrack::probe::cuda
