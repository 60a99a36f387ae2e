// Hashing of file contents: seeded, so that no file can be crafted to make all keys collide.
#pragma once

#include <cstdint>

namespace vramtrack::trace {

/// Fibonacci-like mixing of 64 bits; the tables need well-spread low bits, not strength.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9e3779b97f4a7c15ULL;
  return value ^ (value >> 29);
}

/// A random odd number, different in each process. The result of reading does not depend on it. Thread-safe.
std::uint64_t hash_seed();

}  // namespace vramtrack::trace
