#include "core/scale.hpp"

namespace vramtrack {
namespace {

Scale& current() {
  thread_local Scale scale;
  return scale;
}

}  // namespace

const Scale& scale() {
  return current();
}

ScaleScope::ScaleScope(Scale next) : before_(std::exchange(current(), std::move(next))) {}

ScaleScope::~ScaleScope() {
  current() = std::move(before_);
}

}  // namespace vramtrack
