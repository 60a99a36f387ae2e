// Profile: bytes and blocks by stack, from any recorder. Every diff, flame graph and export starts from it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

struct StackBytes {
  StackId stack = kNoStack;
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// One entry per stack, the most bytes first (then by stack, so that equal input gives equal output).
using Profile = std::vector<StackBytes>;

/// Sums up bytes and blocks by stack.
class ProfileBuilder {
 public:
  void add(StackId stack, std::int64_t bytes, std::int64_t blocks);
  [[nodiscard]] Profile profile() const;

 private:
  std::unordered_map<std::uint32_t, StackBytes> by_stack_;
};

/// Requested bytes of the live blocks of one device, or of all; of the pinned host memory after Snapshot::swap_host().
Profile live_profile(const Snapshot& snapshot, std::optional<std::uint32_t> device = {});

/// The frame that a person would look at first: the innermost in their own code; else the innermost in a library other
/// than the framework and Python's own; else the innermost Python frame; else the innermost outside the recorder.
/// nullopt for kNoStack.
std::optional<FrameId> site_of(const Symbols& symbols, StackId stack);

/// The frame that represents a stack: site_of(), or ProbeNames::line() for a trace, which knows the modules. nullopt if
/// it has none.
using LineOf = std::function<std::optional<FrameId>(StackId)>;

/// The totals of all stacks of one line.
struct LineBytes {
  std::optional<FrameId> frame;
  StackId stack = kNoStack;  ///< the stack of the line with the most bytes
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::uint64_t stacks = 0;
};
/// Groups `profile` by line, the most bytes first.
std::vector<LineBytes> by_line(const Profile& profile, const LineOf& line_of);
/// The same, grouped by site_of().
std::vector<LineBytes> by_line(const Profile& profile, const Symbols& symbols);

/// False for frames of no use to a person: the recorder's own and the interpreter's calls.
bool is_informative(const Symbols& symbols, FrameId frame);

/// Whether the frame is a line of PyTorch's own Python code.
bool is_framework(const Symbols& symbols, FrameId frame);

/// Whether the frame is a line of a Python file.
bool is_python(const Symbols& symbols, FrameId frame);

/// The frame as text, "model.py:54 forward", with the last folders of the path that matter; C++ frames by name only.
std::string frame_words(const Symbols& symbols, FrameId frame);
/// frame_words() of site_of(); "(no stack recorded)" for kNoStack.
std::string site_words(const Symbols& symbols, StackId stack);
/// The same for a known frame.
std::string site_words(const Symbols& symbols, std::optional<FrameId> frame);

}  // namespace vramtrack::trace
