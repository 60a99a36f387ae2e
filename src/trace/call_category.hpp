// What memory is for as far as the call that took it shows: a context, code, a graph, or managed memory. Pure.
#pragma once

#include "probe/wire.hpp"
#include "trace/category_name.hpp"

namespace vramtrack::trace {

/// `of_stack`: what the stack of the call shows. A context, code and graphs are that whatever the stack shows; managed
/// memory is `managed` where it shows nothing. `call`: may be null, or of no such memory; then it is `of_stack`.
Category category_of(const probe::CallInfo* call, Category of_stack);

}  // namespace vramtrack::trace
