// The owning context of each block, so that destroying a context frees its own memory, and nothing else. A program that
// uses the CUDA runtime has one context per device, its primary one; only its pinned host memory is tracked here.
#pragma once

#include <cstdint>

#include "probe/cuda/types.hpp"

namespace vramtrack::probe::cuda {

/// Call when cuCtxCreate has created `context`.
void context_began(CUcontext context);
/// Call when cuCtxAttach has added a reference to a context that cuCtxCreate created.
void context_attached(CUcontext context);
/// Call before cuCtxDetach releases one reference; the last reference frees everything in the context. Returns the
/// number of references; 0: cuCtxCreate did not create it.
std::uint64_t context_detaches(CUcontext context);
/// Call if the driver then refused cuCtxDetach.
void context_kept(CUcontext context, std::uint64_t references);
/// Call after an allocation in the current context. `device`: that of the context.
void own(std::uint64_t address, int device, bool is_host);
/// Call before a free. Returns the owner, for own_again() if the free fails; 0: none was recorded.
std::uint64_t disown(std::uint64_t address);
void own_again(std::uint64_t address, std::uint64_t owner);
/// Call when everything in the context has been freed.
void context_ended(CUcontext context);
/// Call when everything in the primary context of the device has been freed, including its pools if it was reset.
void primary_context_ended(int device, bool with_pools);
/// Call in a child after a fork.
void forget_owners();

}  // namespace vramtrack::probe::cuda
