// "GPU Memory: 8123 / 24576 MB": pairs of used and total memory in text for people.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace vramtrack {

/// One pair, with the text that says which GPU it belongs to.
struct MemoryPair {
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
  int gpu = -1;            ///< the number in "GPU 1", "cuda:1"; -1: none
  bool bare = false;       ///< no word says that it is memory, only its units do ("7998MiB / 12053MiB")
  bool names_gpu = false;  ///< the words before it mention a GPU
};

/// The pairs of used and total GPU memory in `line`: two amounts with a slash or "of" between them, a unit after at
/// least the second, and words before them that mention memory or a GPU, or MiB or GiB after both. Excluded are rates
/// (MB/s), the host's memory, disks, transfers, peaks, and pairs in which the first amount is larger.
void find_memory_pairs(std::string_view line, std::vector<MemoryPair>& pairs);

}  // namespace vramtrack
