// The category of memory as far as the allocating call shows it: a context, code, a graph, or managed memory. Pure.
#pragma once

#include "probe/wire.hpp"
#include "trace/category_name.hpp"

namespace vramtrack::trace {

/// `of_stack`: the category by the call's stack. A context, code and graphs are that whatever the stack shows; managed
/// memory is `managed` if it shows nothing. If `call` is null or for other memory, the result is `of_stack`.
Category category_of(const probe::CallInfo* call, Category of_stack);

}  // namespace vramtrack::trace
