// Which CUDA allocations end with the context that made them, for the probe and for the tracer of running programs.
#pragma once

#include "probe/wire.hpp"

namespace vramtrack::probe {

constexpr bool is_of_cuda_context(Call call) {
  switch (call) {
    case Call::cu_mem_alloc:
    case Call::cu_mem_alloc_pitch:
    case Call::cu_mem_alloc_managed:
    case Call::cu_array_create:
    case Call::cu_mipmapped_array_create:
    case Call::cu_mem_alloc_host:
    case Call::cu_mem_host_alloc:
    case Call::cu_mem_host_register:
    case Call::cu_ipc_open_mem_handle:
    case Call::cu_import_external_memory:
    case Call::cu_context:
    case Call::cu_module:
    case Call::cu_graph_exec:
      return true;
    default:
      return false;
  }
}

}  // namespace vramtrack::probe
