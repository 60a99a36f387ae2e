// The build id that the linker gave a library: names are looked up by it, later and elsewhere, never for another build.
#pragma once

#include <string>

namespace vramtrack::run {

/// In hexadecimal; empty if `path` is not a 64-bit ELF file of this machine's byte order, or has none. Reads a few kB.
std::string build_id_of(const std::string& path);

}  // namespace vramtrack::run
