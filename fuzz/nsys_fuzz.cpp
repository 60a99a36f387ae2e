// An nsys export from any bytes that begin as a SQLite file: the reader must answer with a trace or an error that names
// the file, and agree with the replay in bounded memory.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "nsys/export.hpp"
#include "trace/usage.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

TraceInput input_of(std::span<const std::uint8_t> bytes) {
  auto input = ByteInput::over(bytes, "fuzz");
  if (!input) std::abort();
  return {&nsys::export_trace_format, std::move(*input)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  std::vector<std::uint8_t> bytes(kMagic.begin(), kMagic.end());
  if (size > bytes.size()) bytes.insert(bytes.end(), data + bytes.size(), data + size);
  Symbols symbols;
  const auto snapshot = read_trace(input_of(bytes), symbols, {false});
  const auto replays = replay_stream(input_of(bytes), symbols, {});
  if (!snapshot) {
    if (snapshot.error().message.find("fuzz:") == std::string::npos) std::abort();
    return 0;
  }
  if (!replays) return 0;  // a timeline refuses sizes that a sum does not
  for (const StreamReplay& replay : *replays)
    if (replay.timeline(symbols).end.live_bytes !=
        static_cast<std::int64_t>(total_usage(*snapshot, replay.device()).requested_bytes))
      std::abort();
  return 0;
}
