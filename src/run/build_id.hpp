// The build id that the linker gave a library: by it names are found later and elsewhere, and never of another build.
#pragma once

#include <string>

namespace vramtrack::run {

/// In hexadecimal; empty where `path` is no 64-bit ELF file of this machine's byte order, or has none. Reads a few kB.
std::string build_id_of(const std::string& path);

}  // namespace vramtrack::run
