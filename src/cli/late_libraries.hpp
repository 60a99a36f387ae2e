// The libraries that this program loads when it first calls them (cmake/late_libraries.cpp).
#pragma once

namespace vramtrack::cli {

/// Loads them now, for a command that lasts: whether an alert arrives must not depend on the memory and the files that
/// are left then. Costs two milliseconds. A program that was linked with them loads nothing.
void load_late_libraries();

}  // namespace vramtrack::cli
