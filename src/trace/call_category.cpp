#include "trace/call_category.hpp"

namespace vramtrack::trace {

Category category_of(const probe::CallInfo* call, Category of_stack) {
  if (call == nullptr) return of_stack;
  switch (call->call) {
    case probe::Call::cu_context:
    case probe::Call::cu_primary_context:
      return Category::contexts;
    case probe::Call::cu_module:
    case probe::Call::cu_library:
    case probe::Call::hip_module:
      return Category::code;
    case probe::Call::cu_graph_exec:
    case probe::Call::hip_graph_exec:
    case probe::Call::cu_graph_memory:
      return Category::graphs;
    default:
      return call->memory == probe::Memory::managed && of_stack == Category::unknown ? Category::managed : of_stack;
  }
}

}  // namespace vramtrack::trace
