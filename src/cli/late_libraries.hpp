// The libraries that this program loads on first use (cmake/late_libraries.cpp).
#pragma once

namespace vramtrack::cli {

/// Loads them now, for a long-running command: the delivery of an alert must not depend on the memory and the files
/// that are left by then. Cost: two milliseconds. Does nothing in a program that was linked with them.
void load_late_libraries();

}  // namespace vramtrack::cli
