// The reader's end of a ring, for tests.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "probe/wire.hpp"

namespace vramtrack::probe {

/// The records of this process's ring in `directory`, oldest first. They stay in the ring.
inline std::vector<Slot> read_ring(const std::filesystem::path& directory) {
  std::ifstream in(directory / ("ring." + std::to_string(getpid()) + ".1"), std::ios::binary);
  std::array<char, kRingHeaderBytes> header{};
  std::vector<Slot> slots;
  if (!in.read(header.data(), header.size())) return slots;
  std::uint64_t written = 0;
  std::memcpy(&written, header.data() + offsetof(RingHeader, written), sizeof written);
  slots.resize(written);
  in.read(reinterpret_cast<char*>(slots.data()), static_cast<std::streamsize>(written * sizeof(Slot)));
  return slots;
}

inline std::vector<Slot> only(const std::vector<Slot>& slots, Record record) {
  std::vector<Slot> found;
  for (const Slot& slot : slots)
    if (record_of(slot) == record) found.push_back(slot);
  return found;
}

}  // namespace vramtrack::probe
