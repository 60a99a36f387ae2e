// A heap profile from any bytes: the reader must answer with a snapshot whose blocks add up, or with an error that
// names the file.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "trace/format.hpp"
#include "trace/usage.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

TraceInput profile(std::span<const std::uint8_t> bytes) {
  auto input = ByteInput::over(bytes, "fuzz");
  if (!input) std::abort();
  for (const TraceFormatInfo* format : trace_formats())
    if (format->name == "heap-profile") return {format, std::move(*input)};
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
  std::uint64_t held = 0;
  for (const Block& block : snapshot->blocks) held += block.size_bytes;
  const Usage usage = total_usage(*snapshot);
  if (usage.requested_bytes != held || usage.reserved_bytes != held || usage.unaccounted_bytes != 0) std::abort();
  return 0;
}
