// A space of planes of XProf from any bytes: the reader must answer with a trace or an error that names the file. The
// trace, its replay and its snapshot without the events must agree.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "trace/compare.hpp"
#include "trace/format.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

TraceInput space(std::span<const std::uint8_t> bytes) {
  auto input = ByteInput::over(bytes, "fuzz");
  if (!input) std::abort();
  for (const TraceFormatInfo* format : trace_formats())
    if (format->name == "xplane") return {format, std::move(*input)};
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Compressed input is the business of ByteInput, which has its own targets.
  if (size > 1 && (data[0] == 0x1f || data[0] == 0x28)) return 0;
  const std::span bytes(data, size);
  Symbols symbols;
  const auto snapshot = read_trace(space(bytes), symbols);
  const auto counted = read_trace(space(bytes), symbols, {false});
  if (snapshot.has_value() != counted.has_value()) std::abort();
  if (!snapshot) {
    if (snapshot.error().message.find("fuzz:") == std::string::npos) std::abort();
    return 0;
  }
  if (total_usage(*counted).requested_bytes != total_usage(*snapshot).requested_bytes) std::abort();
  for (const StreamReplay& replay : replay_events(*snapshot, symbols)) {
    const std::uint32_t device = replay.device();
    const auto live = static_cast<std::int64_t>(total_usage(*snapshot, device).requested_bytes);
    std::int64_t held = 0;
    for (const StackBytes& site : replay.sites()) held += site.bytes;
    if (held != live || replay.live().unknown_frees() != 0) std::abort();
    const Timeline timeline = timeline_of(*snapshot, device, symbols);
    if (timeline.end.live_bytes != live || timeline.mismatch_count != 0) std::abort();
    if (timeline.begin.live_bytes != live - snapshot->trace_of(device)->net_bytes) std::abort();
    (void)replay.growth();
  }
  return 0;
}
