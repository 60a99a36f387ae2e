// The two halves of the generator's table.
#pragma once

#include <span>

#include "families.hpp"

namespace vramtrack::accuracy {

std::span<const Family> leaking_families();
std::span<const Family> healthy_families();

}  // namespace vramtrack::accuracy
