// Labels: the names that the program and its recorder gave to a site's memory: metadata, annotations, the frame that
// was compiled, and the memory pool if it is not the common one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/event.hpp"
#include "trace/origin.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

enum class LabelKind : std::uint8_t {
  metadata,    ///< set for the thread when the memory was allocated
  annotation,  ///< attached to the block later
  compile,     ///< the frame that torch.compile was compiling
  internal,    ///< the allocator's own tag
  pool,        ///< a private pool: that of a CUDA graph, or one of the program's own
};
std::string_view label_kind_name(LabelKind kind);

struct LabelBytes {
  LabelKind kind = LabelKind::metadata;
  StringId text = kNoText;  ///< none for a pool
  PoolId pool{};
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};
/// The label as text: "step 3", "pool of CUDA graph 1".
std::string label_words(const Symbols& symbols, const LabelBytes& label);
/// All labels of one origin except its pool: "step 3; compiling 0/1"; empty without labels.
std::string label_words(const Symbols& symbols, const Origin& origin);
/// The meaning of PyTorch's numbers: "common", "CUDA graph 1", "pool 0.2".
std::string pool_name(const PoolId& pool);

/// The labels of the live blocks of each stack, the most bytes first. A block counts once for each of its labels.
class Labels {
 public:
  void add(StackId stack, const LabelBytes& label);
  /// The combined labels of all stacks that `belongs` accepts.
  template <class Belongs>
  [[nodiscard]] std::vector<LabelBytes> of(Belongs belongs) const {
    Sums sums;
    for (const auto& [stack, its] : by_stack_)
      if (belongs(StackId{stack}))
        for (const auto& [key, held] : its) add_to(sums, key, held.first, held.second);
    return sorted(sums);
  }
  [[nodiscard]] std::vector<LabelBytes> of(StackId stack) const;
  [[nodiscard]] bool empty() const { return by_stack_.empty(); }

 private:
  using Key = std::pair<std::uint64_t, PoolId>;  ///< kind and text; pool
  using Sums = std::map<Key, std::pair<std::int64_t, std::int64_t>>;
  static void add_to(Sums& sums, const Key& key, std::int64_t bytes, std::int64_t blocks) {
    auto& held = sums[key];
    held.first += bytes;
    held.second += blocks;
  }
  static std::vector<LabelBytes> sorted(const Sums& sums);
  std::unordered_map<std::uint32_t, Sums> by_stack_;
};

/// The labels of the snapshot's live blocks.
Labels labels_of(const Snapshot& snapshot, std::optional<std::uint32_t> device = {});
/// Labels of memory live after entry `event` of the device's trace. One pass over the trace if it has any label.
Labels labels_at(const Snapshot& snapshot, std::uint32_t device, std::uint64_t event);

/// Tracks the live labelled blocks while a trace is read or replayed. Costs nothing until the first label; then some
/// 100 bytes for each labelled block.
class LiveLabels {
 public:
  static constexpr std::size_t kMostAnnotations = 8;  ///< per block; further ones are dropped

  struct Held {
    std::uint64_t bytes = 0;
    StackId stack = kNoStack;
    std::uint32_t origin = 0;
    std::vector<StringId> annotations;
  };
  using Address = std::pair<std::uint32_t, std::uint64_t>;  ///< device and address

  /// `all`: also track blocks without a label, so that bytes and stack are known if they are annotated later.
  explicit LiveLabels(bool all = false) : all_(all) {}

  /// `origin` is that of the event.
  void take(std::uint32_t device, const AllocEvent& event, const Origin& origin);
  [[nodiscard]] const std::map<Address, Held>& held() const { return held_; }

 private:
  bool all_;
  std::map<Address, Held> held_;
};

}  // namespace vramtrack::trace
