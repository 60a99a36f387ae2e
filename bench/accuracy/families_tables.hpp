// The parts of the generator's table.
#pragma once

#include <span>

#include "families.hpp"

namespace vramtrack::accuracy {

std::span<const Family> leaking_families();
std::span<const Family> healthy_families();
std::span<const Family> work_families();           ///< both
std::span<const Family> day_families();            ///< both
std::span<const Family> other_leaking_families();  ///< by other hands
std::span<const Family> other_healthy_families();

}  // namespace vramtrack::accuracy
