// A trace of the probe from any bytes: the reader must answer with a trace or an error that names the file, and every
// analysis of what it read must hold its sums. The checksums of chunks are put right first, so that what is in them is
// reached; a second look takes the bytes as records.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "trace/probe_chunk.hpp"
#include "trace/probe_names.hpp"
#include "trace/probe_trace.hpp"
#include "trace/render/trace_render.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::trace;

void look(ProbeTrace& trace) {
  trace.finish();
  Symbols symbols;
  ProbeNames names(trace, symbols, nullptr, {});
  const TraceReport report = report_of(trace, names);
  for (const auto& process : trace.processes()) {
    std::int64_t held = 0, counted = 0;
    for (const CallSite& site : process->sites()) held += site.live.bytes;
    for (std::size_t i = 0; i < kMemorySpaces; ++i) counted += process->live_bytes(static_cast<MemorySpace>(i));
    if (held != counted) std::abort();
  }
  (void)trace_report_text(report, names, 10);
  (void)trace_report_json(report, names);
  (void)trace_diff_text(profile_of(trace, names, MemorySpace::device), names, "a", "b", 10);
}

void put_right(std::string& bytes) {
  if (bytes.size() < sizeof(ProbeFileHeader)) return;
  ProbeFileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t at = sizeof header + header.command_bytes;
  if (header.command_bytes > bytes.size() || at > bytes.size()) return;
  header.crc = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  header.crc = crc_of(std::string_view(bytes).substr(0, at));
  std::memcpy(bytes.data(), &header, sizeof header);
  while (at + sizeof(ProbeChunkHeader) <= bytes.size()) {
    ProbeChunkHeader chunk;
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    const std::size_t payload = at + sizeof chunk;
    if (chunk.packed_bytes > bytes.size() - payload) return;
    chunk.payload_crc = crc_of(std::string_view(bytes).substr(payload, chunk.packed_bytes));
    chunk.header_crc = crc_of({reinterpret_cast<const char*>(&chunk), offsetof(ProbeChunkHeader, header_crc)});
    std::memcpy(bytes.data() + at, &chunk, sizeof chunk);
    at = payload + chunk.packed_bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  put_right(bytes);
  // Compressed input is the business of ByteInput, which has its own targets.
  if (size > 1 && (data[0] == 0x1f || data[0] == 0x28)) return 0;
  auto input = ByteInput::over({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "fuzz");
  if (!input) std::abort();
  ProbeTrace trace;
  trace.wants({{"a", 1, {}}, {"", 1, 100}});
  if (const Status read = trace.read(std::move(*input)); !read) {
    if (read.error().message.find("fuzz") == std::string::npos) std::abort();
  } else {
    look(trace);
  }
  std::vector<probe::Slot> slots(size / sizeof(probe::Slot));
  if (slots.empty()) return 0;
  std::memcpy(slots.data(), data, slots.size() * sizeof(probe::Slot));
  for (probe::Slot& slot : slots) {  // small numbers, so that records meet
    slot.head = (slot.head & ~std::uint64_t{0xff}) | (slot.head & 0xffU) % 19;
    slot.address &= 0xffff;
  }
  ProbeTrace records;
  if (!records.process(0, {1, 1, 0, "fuzz"}) || !records.slots(0, slots)) std::abort();
  look(records);
  return 0;
}
