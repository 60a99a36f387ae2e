#include "trace/torch_snapshot.hpp"

#include <utility>

#include "core/byte_input.hpp"
#include "core/out_of_memory.hpp"
#include "trace/format.hpp"
#include "trace/snapshot_schema.hpp"

namespace vramtrack::trace {
namespace {

constexpr ByteInputOptions kInput = {
    .contents = "snapshots",
    .is_damage_an_error = true,  // a pickle is read completely or not at all
    // Real snapshots shrink 12 to 60 times, even with zstd's strongest setting.
    .most_ratio = 250,
};

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions& options) {
  Snapshot snapshot;
  snapshot.file = input.name();
  if (const Status done = read_pickle(input, symbols, options, snapshot); !done) return fail(done.error());
  return snapshot;
}

/// Protocols 2 and newer of Python's pickle begin with 0x80 and their number; older ones with any opcode.
int looks_like_pickle(std::string_view head, std::string_view name) {
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return 90;
  for (const std::string_view packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  if (name.ends_with(".pickle") || name.ends_with(".pkl")) return 50;
  return !head.empty() && std::string_view("(]}").find(head[0]) != std::string_view::npos ? 20 : 0;
}

}  // namespace

extern const TraceFormatInfo torch_snapshot_trace_format;
const TraceFormatInfo torch_snapshot_trace_format{"torch-snapshot",
                                                  "PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot)",
                                                  looks_like_pickle, read, nullptr};

Result<Snapshot> read_torch_snapshot(const std::string& path, Symbols& symbols, const ReadOptions& options) {
  return or_out_of_memory([&]() -> Result<Snapshot> {
    auto input = ByteInput::open(path, kInput);
    if (!input) return fail(input.error());
    return read(std::move(*input), symbols, options);
  });
}

Result<Snapshot> read_torch_snapshot(std::span<const std::uint8_t> bytes, const std::string& name, Symbols& symbols,
                                     const ReadOptions& options) {
  return or_out_of_memory([&]() -> Result<Snapshot> {
    auto input = ByteInput::over(bytes, name, kInput);
    if (!input) return fail(input.error());
    return read(std::move(*input), symbols, options);
  });
}

}  // namespace vramtrack::trace
