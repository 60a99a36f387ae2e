// Origin: what a recorder noted about an event besides its stack: stream, memory pool, and the labels set by the
// program.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// PyTorch's memory pool: {0, 0} is the common one, {n, 0} was created by capturing a CUDA graph, {0, n} by MemPool()
/// or graph_pool_handle().
using PoolId = std::pair<std::uint64_t, std::uint64_t>;

struct Origin {
  std::int64_t stream = 0;
  PoolId pool{};
  StringId metadata = kNoText;  ///< as given to torch.cuda.memory._set_memory_metadata; for an annotation, its words
  StringId compile_context = kNoText;  ///< the frame that torch.compile was compiling
  StringId internal = kNoText;         ///< the allocator's own tag
  bool operator==(const Origin&) const = default;

  [[nodiscard]] bool is_labelled() const {
    return metadata != kNoText || compile_context != kNoText || internal != kNoText;
  }
};

/// Each distinct origin once, in order of appearance; events refer to them with 24 bits. Some 60 bytes per origin.
class Origins {
 public:
  /// Further origins are not distinguished: the last one stands for all of them.
  static constexpr std::size_t kMost = 1U << 20;

  std::uint32_t intern(const Origin& origin);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  const Origin& operator[](std::size_t index) const { return all_[index]; }

 private:
  std::vector<Origin> all_;
  IdTable ids_;
  std::uint32_t last_ = 0;
};

}  // namespace vramtrack::trace
