// Reads a library's build id, by which names are looked up later and elsewhere, but never for another build.
#pragma once

#include <string>

namespace vramtrack::run {

/// The hexadecimal build id; empty if `path` is not a 64-bit ELF file in our byte order, or has none. Reads a few kB.
std::string build_id_of(const std::string& path);

}  // namespace vramtrack::run
