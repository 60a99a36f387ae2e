// Which context owns what, so that a context that goes takes its own memory along, and no other. A program that uses
// the CUDA runtime has one context a device, its primary one; nothing is kept for that but its pinned host memory.
#pragma once

#include <cstdint>

#include "probe/cuda/types.hpp"

namespace vramtrack::probe::cuda {

/// cuCtxCreate made it.
void context_began(CUcontext context);
/// cuCtxAttach: one more reference to a context that cuCtxCreate made.
void context_attached(CUcontext context);
/// Before cuCtxDetach gives one back: all that lives in the context is gone with its last reference. How many there
/// were; 0: cuCtxCreate did not make it.
std::uint64_t context_detaches(CUcontext context);
/// The driver refused that.
void context_kept(CUcontext context, std::uint64_t references);
/// After an allocation that lives in the current context. `device`: the context's.
void own(std::uint64_t address, int device, bool is_host);
/// Before a free. The owner, for own_again() if it fails; 0: none was kept.
std::uint64_t disown(std::uint64_t address);
void own_again(std::uint64_t address, std::uint64_t owner);
/// All that lives in the context is gone.
void context_ended(CUcontext context);
/// All that lives in the primary context of the device is gone; with its pools, where it was reset.
void primary_context_ended(int device, bool with_pools);
/// In a child after a fork.
void forget_owners();

}  // namespace vramtrack::probe::cuda
