// An allocation event log from any bytes: the reader must answer with a trace or an error that names a line, and the
// snapshot of it, with and without its events, and the replay in bounded memory must agree.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "trace/format.hpp"
#include "trace/oom.hpp"
#include "trace/usage.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

TraceInput events(std::span<const std::uint8_t> bytes) {
  auto input = ByteInput::over(bytes, "fuzz");
  if (!input) std::abort();
  for (const TraceFormatInfo* format : trace_formats())
    if (format->name == "allocation-events") return {format, std::move(*input)};
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Compressed input is the business of ByteInput, which has its own targets.
  if (size > 1 && (data[0] == 0x1f || data[0] == 0x28)) return 0;
  const std::span bytes(data, size);
  if (!open_trace(bytes, "fuzz")) std::abort();  // any text is of some format
  Symbols symbols;
  const auto snapshot = read_trace(events(bytes), symbols);
  const auto counted = read_trace(events(bytes), symbols, {false});
  TimelineOptions few;
  few.points = 1;
  const auto replays = replay_stream(events(bytes), symbols, few);
  if (snapshot.has_value() != counted.has_value() || snapshot.has_value() != replays.has_value()) std::abort();
  if (!snapshot) {
    if (snapshot.error().message.find("fuzz:") == std::string::npos) std::abort();
    return 0;
  }
  for (const StreamReplay& replay : *replays) {
    const std::uint32_t device = replay.device();
    std::int64_t held = 0;
    for (const StackBytes& site : replay.sites()) held += site.bytes;
    if (held != static_cast<std::int64_t>(total_usage(*snapshot, device).requested_bytes)) std::abort();
    const Timeline streamed = replay.timeline(symbols);
    if (streamed.end.live_bytes != held) std::abort();
    const Timeline whole = timeline_of(*snapshot, device, symbols);
    if (whole.event_count > 0 && whole.end.live_bytes != held) std::abort();
    if (whole.mismatch_count != 0) std::abort();
    (void)replay.growth();
    (void)oom_of(*snapshot, device, symbols, 1ULL << 34);
  }
  if (total_usage(*counted).requested_bytes != total_usage(*snapshot).requested_bytes) std::abort();
  return 0;
}
