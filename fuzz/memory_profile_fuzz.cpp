// A memory profile of XProf, as JSON or as a message, from any bytes: the reader must answer with a trace, with what
// was live at one moment, or with an error that names the file.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "trace/format.hpp"
#include "trace/timeline.hpp"
#include "trace/usage.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

TraceInput profile(std::span<const std::uint8_t> bytes) {
  auto input = ByteInput::over(bytes, "fuzz");
  if (!input) std::abort();
  for (const TraceFormatInfo* format : trace_formats())
    if (format->name == "memory-profile") return {format, std::move(*input)};
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Compressed input is the business of ByteInput, which has its own targets.
  if (size > 1 && (data[0] == 0x1f || data[0] == 0x28)) return 0;
  const std::span bytes(data, size);
  Symbols symbols;
  const auto snapshot = read_trace(profile(bytes), symbols);
  if (!snapshot) {
    if (snapshot.error().message.find("fuzz:") == std::string::npos) std::abort();
    return 0;
  }
  if (snapshot->is_heap_profile != snapshot->traces.empty() && !snapshot->segments.empty()) std::abort();
  for (const std::uint32_t device : traced_devices(*snapshot)) {
    const Timeline timeline = timeline_of(*snapshot, device, symbols);
    const auto live = static_cast<std::int64_t>(total_usage(*snapshot, device).requested_bytes);
    if (timeline.end.live_bytes != live || timeline.mismatch_count != 0) std::abort();
  }
  TimelineOptions few;
  few.points = 1;
  if (snapshot->samples.size() < 1000)
    for (const Timeline& timeline : timelines_of_samples(*snapshot, {}, few))
      if (timeline.points.size() != 1) std::abort();
  return 0;
}
