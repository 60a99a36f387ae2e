// SnapshotSchema: finds segments, blocks, events, frames in a pickle, and fills a Snapshot while PickleMachine reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_input.hpp"
#include "trace/labels.hpp"
#include "trace/pickle_value.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"
#include "trace/torch_snapshot.hpp"

namespace vramtrack::trace {

class SnapshotSchema {
 public:
  enum Role : std::uint8_t {
    kNone,
    kRoot,
    kSegments,
    kSegment,
    kBlocks,
    kBlock,
    kHistory,
    kHistoryItem,
    kFrames,
    kFrame,
    kForward,
    kTraces,
    kTrace,
    kEvent,
    kSettings,
    kAnnotations,
    kAnnotation,
    kOomNote,
    kReports,
    kReportedBlock,
    kRoles
  };

  static constexpr std::size_t kMostFields = 12;

  struct Slot {
    std::uint8_t role = kNone;
    bool is_dict = false;
    bool is_host = false;  ///< belongs to host_segments or host_traces
    bool is_filled = false;
    std::uint16_t present = 0;   ///< bit i: field i was in the dict
    std::uint16_t negative = 0;  ///< bit i: field i is negative
    std::uint32_t index = 0;     ///< for a trace and its events: the number of the trace
    std::uint64_t memo = 0;
    std::size_t at = 0;
    std::size_t first_block = 0;  ///< for a segment and its list of blocks
    std::array<std::uint64_t, kMostFields> fields{};
    std::vector<FrameId> frames;  ///< for a list of frames, and the lines of a forward pass

    [[nodiscard]] bool has(unsigned field) const { return ((present >> field) & 1U) != 0; }
    [[nodiscard]] std::uint64_t get(unsigned field, std::uint64_t otherwise = 0) const {
      return has(field) ? fields[field] : otherwise;
    }
  };

  SnapshotSchema(Snapshot& snapshot, Symbols& symbols, const ReadOptions& options);

  [[nodiscard]] std::uint8_t root(bool is_dict) const { return is_dict ? kRoot : kSegments; }
  [[nodiscard]] std::uint8_t role_of(const Slot& parent, StringId key, bool is_dict) const;
  void opened(Slot& child, const Slot* parent, StringId key, std::uint64_t position);
  bool set(Slot& slot, StringId key, Value value);
  bool append(Slot& slot, Value value);
  bool seal(Slot& slot, Value& out);

  /// Call after STOP; false if the pickle contained no part of a snapshot.
  bool finish();

  std::string error;

 private:
  /// The strings with a meaning in the format; see kWords.
  enum Word : std::uint8_t;
  /// The type of value that a field takes.
  enum class Kind : std::uint8_t { skip, integer, boolean, real, string, label, stack, pool, record, item };
  struct Field {
    Kind kind = Kind::skip;
    std::uint8_t index = 0;
    bool signed_ok = false;
  };

  [[nodiscard]] std::uint8_t word(StringId id) const {
    return index_of(id) < words_.size() ? words_[index_of(id)] : std::uint8_t{0};
  }
  bool bad(std::string why) {
    error = std::move(why);
    return false;
  }
  bool wrong(const Slot& slot, StringId key, Value value, std::string_view expected);
  bool seal_event(Slot& slot);
  bool seal_block(Slot& slot);
  bool seal_segment(Slot& slot);
  void seal_settings(const Slot& slot);
  void seal_oom_note(const Slot& slot);
  Origin origin_of(const Slot& slot) const;
  /// Turns a line of Python's traceback such as "File "train.py", line 12, in forward" into "backward() of forward";
  /// nullopt for any other text.
  std::optional<FrameId> traceback_frame(std::string_view text);
  /// For an allocation in the backward pass: its own frames, then those that built its part of the graph.
  StackId stack_of(const Slot& slot, unsigned frames, unsigned forward);
  void annotate_spans(const AllocEvent& event, std::uint32_t device);
  void label_blocks();
  void categorize_blocks();
  DeviceTrace& trace_at(bool is_host, std::uint32_t index);

  Snapshot& snapshot_;
  Symbols& symbols_;
  bool keep_events_;
  std::vector<std::uint8_t> words_;  ///< by StringId
  std::array<std::array<Field, 96>, kRoles> fields_{};
  struct HistoryItem {
    std::uint64_t address = 0, real_bytes = 0;
    StackId stack = kNoStack;
  };
  std::vector<HistoryItem> history_;  ///< the history of the block being read
  struct BlockReport {
    std::uint64_t address = 0;
    Category category = Category::unknown;
    StringId name = kNoText;
  };
  std::vector<BlockReport> reported_;
  LiveLabels labels_;
  StringId no_compile_context_ = kNoText;
  bool host_events_are_flat_ = false;
  std::uint64_t trace_bytes_ = 0, segment_bytes_ = 0;
  std::uint64_t unknown_actions_ = 0, unknown_states_ = 0, odd_segments_ = 0, odd_blocks_ = 0;
  std::string unknown_action_, unknown_state_;
  bool has_snapshot_ = false;
};

/// Reads the whole pickle into `snapshot`. The machine and the schema are compiled together, for speed.
Status read_pickle(ByteInput& input, Symbols& symbols, const ReadOptions& options, Snapshot& snapshot);

}  // namespace vramtrack::trace
