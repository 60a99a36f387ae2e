// ProbeNames: the stacks of a trace with names: merges native and Python frames, and finds the line of interest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/own_code.hpp"
#include "trace/probe_trace.hpp"
#include "trace/profile.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// A function at a return address.
struct NativeName {
  std::string function;
  std::string file;  ///< empty if unknown
  std::uint32_t line = 0;
};

/// Looks up native frames. The implementation that reads debug information is in symbolize/.
class NativeNames {
 public:
  virtual ~NativeNames() = default;
  /// The names at the call before the return address at `file_offset` in the module: first the inlined functions, then
  /// the function itself. Empty: unknown. `build_id`: that of the file when it was recorded; empty if unknown.
  virtual std::vector<NativeName> look_up(const std::string& module, std::string_view build_id,
                                          std::uint64_t file_offset) = 0;
  /// Notes for the user: for example, files that have changed since.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
};

/// The frame that represents a stack.
struct SiteLine {
  FrameId frame{};
  bool is_known = false;  ///< false: the stack has no frame
  bool is_own = false;    ///< false: no frame is the user's own, so it is the outermost one of a library
};

/// Each stack is looked up once. Not thread-safe.
class ProbeNames {
 public:
  /// `native` may be null: then native frames are "libfoo.so+0x1234". Otherwise, frames without a name are "libfoo.so"
  /// in a library, and "program+0x1234" in the user's own code. All arguments must outlive this object.
  ProbeNames(const ProbeTrace& trace, Symbols& symbols, NativeNames* native, OwnCode own)
      : trace_(&trace), symbols_(&symbols), native_(native), own_(std::move(own)) {}

  /// The merged stack, innermost frame first. Native frames of the interpreter's loop are replaced by the Python frames
  /// that it ran, and those of the interpreter between Python frames are left out. The stacks of PyTorch's autograd
  /// threads end in "backward()", or "backward() of AddmmBackward0" if a frame shows the node of the graph.
  StackId stack(const ProcessTrace& process, std::uint32_t number);
  [[nodiscard]] SiteLine line(StackId stack) const;
  /// The frame of a stack's line(); this object must outlive the result.
  [[nodiscard]] LineOf line_of() const;
  /// Makes frames of another trace, read into the same Symbols, known here, too.
  void add_frames_of(const ProbeNames* other) {
    own_frames_.insert(other->own_frames_.begin(), other->own_frames_.end());
    python_.insert(other->python_.begin(), other->python_.end());
  }
  [[nodiscard]] bool is_own(FrameId frame) const { return own_frames_.count(index_of(frame)) != 0; }
  [[nodiscard]] bool is_python(FrameId frame) const { return python_.count(index_of(frame)) != 0; }
  [[nodiscard]] Symbols& symbols() { return *symbols_; }
  [[nodiscard]] const Symbols& symbols() const { return *symbols_; }

 private:
  const std::vector<FrameId>& native_frames(const ProcessTrace& process, std::uint64_t address);
  std::string_view thread_of(const ProcessTrace& process, std::uint32_t stack);
  FrameId python_frame(const ProcessTrace& process, const RawFrame& raw);

  const ProbeTrace* trace_;
  Symbols* symbols_;
  NativeNames* native_;
  OwnCode own_;
  std::unordered_map<const ProcessTrace*, std::unordered_map<std::uint32_t, StackId>> stacks_;
  std::unordered_map<const ProcessTrace*, std::unordered_map<std::uint64_t, std::vector<FrameId>>> natives_;
  std::unordered_map<const ProcessTrace*, std::unordered_map<std::uint32_t, std::uint16_t>> threads_;  ///< by stack
  std::unordered_set<std::uint32_t> own_frames_, python_;
};

}  // namespace vramtrack::trace
