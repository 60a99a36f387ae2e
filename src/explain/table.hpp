// TableReader: the tables near an out-of-memory message: of JAX, XLA and TensorFlow the largest allocations and the
// state of the BFC allocator, of nvidia-smi the processes on the devices (smi_table.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "explain/message.hpp"
#include "explain/smi_table.hpp"

namespace vramtrack::explain {

/// The values read from a dump of the BFC allocator.
struct BfcDump {
  std::uint64_t line = 0;
  std::uint64_t last_line = 0;
  double used_bytes = 0;  ///< of the bins
  double free_bytes = 0;  ///< of the bins
  std::uint64_t free_chunks = 0;
  std::optional<double> bin_piece_bytes;  ///< the largest free chunk that the bins show
  double listed_used_bytes = 0;
  double listed_free_bytes = 0;
  std::uint64_t listed_free_chunks = 0;
  double largest_listed_bytes = 0;
  bool lists_chunks = false;
  bool is_summarised = false;                       ///< the sizes come from the summary, not from the list
  std::map<double, std::uint64_t> sizes;            ///< chunks in use of each size
  std::map<std::string, Holding, std::less<>> ops;  ///< memory held by each operation
};

/// The values read from a list of the largest allocations.
struct HoldingList {
  const Wording* wording = nullptr;
  std::uint64_t line = 0;
  std::uint64_t last_line = 0;
  double unit_bytes = 1;  ///< of numbers without a unit
  std::vector<Holding> all;
  std::unordered_map<std::string, std::size_t> positions;  ///< of tensors in `all`, by name
};

/// Takes a text piece by piece, and holds at most 4 KiB of it. Any bytes are accepted. The cost is linear in the text.
/// Not thread-safe. What it reads:
///
///   Largest program allocations in hbm:          Peak buffers:
///     1. Size: 32.00G                              Buffer 1:
///        Operator: op_name="update/FloorMod"           Size: 6.00MiB
///        Shape: s32[8388608,8,4]{2,1,0:T(8,128)}       Operator: op_name="jit(f)/concatenate" source_file=...
///        Extra memory due to padding: 31.00G           Shape: f32[4096,128,3]
///
///   ...bfc_allocator.cc:982] Bin (256): Total Chunks: 64, Chunks in use: 64. 16.0KiB allocated for chunks. ...
///   ...bfc_allocator.cc:1060] InUse at 43846 of size 4723968 by op MatMul action_count 1 step 0 next 105
///   ...bfc_allocator.cc:1060] Free  at 43846 of size 604651520 next 100
///   ...bfc_allocator.cc:1069] 124 Chunks of size 3964928 totalling 468.88MiB
///
///   Current usage from device: ...:GPU:0, allocator: GPU_0_bfc
///     250.78MiB from network/conv2d_5/Conv2D
///
///   Previously created components and free GPU memory before/after creation (GiB):
///     Model: 139.55 / 110.70
class TableReader {
 public:
  void feed(std::string_view piece);
  /// One message per table, without a failure. Call once, after the last feed().
  std::vector<Message> finish();

 private:
  void take_line(std::string_view line);
  bool take_dump_line(std::string_view text);
  void take_bin(std::string_view text);
  void take_chunk(std::string_view text, bool is_free);
  void begin_list(const Wording& wording);
  bool take_buffer_line(std::string_view line);
  bool take_tensor_line(std::string_view line);
  bool take_step_line(std::string_view line);
  void end_dump();
  void end_list();
  void end_smi();

  std::string rest_;  ///< the beginning of a line
  std::uint64_t line_ = 0;
  std::optional<BfcDump> dump_;
  std::optional<HoldingList> list_;
  SmiTable smi_;
  std::uint64_t smi_line_ = 0;  ///< the last of smi_
  std::vector<Message> tables_;
};

/// "the largest: 32.00 GiB s32[8388608,8,4] of FloorMod, 31.00 GiB of it padding; 4.00 GiB ...": the first of each
/// table, with its name if there are several.
std::string holdings_words(const std::vector<Holding>& largest);
/// "XLA's arrays": the kind of a table's entries.
std::string_view table_words(std::string_view table);
/// The number of tables they come from.
std::size_t table_count(const std::vector<Holding>& largest);
/// One of them, without its size.
std::string holding_words(const Holding& holding);
/// Calls `show(holding, begins_table)` for at most `most` holdings of each table, in their order.
template <class Show>
void for_each_largest(const std::vector<Holding>& largest, std::size_t most, Show show) {
  std::string_view table;
  std::size_t shown = 0;
  for (const Holding& holding : largest) {
    const bool begins_table = std::exchange(table, holding.table) != holding.table;
    shown = begins_table ? 1 : shown + 1;
    if (shown <= most) show(holding, begins_table);
  }
}

}  // namespace vramtrack::explain
