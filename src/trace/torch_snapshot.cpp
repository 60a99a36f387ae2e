#include "trace/torch_snapshot.hpp"

#include <fmt/format.h>

#include "trace/byte_input.hpp"
#include "trace/pickle_machine.hpp"
#include "trace/snapshot_schema.hpp"

namespace vramtrack::trace {
namespace {

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions& options) {
  Snapshot snapshot;
  snapshot.file = input.name();
  SnapshotSchema schema(snapshot, symbols, options);
  PickleMachine<SnapshotSchema> machine(input, symbols, schema);
  if (const Status ran = machine.run(); !ran) return fail(ran.error());
  if (!schema.finish()) return fail(fmt::format("{}: {}", input.name(), schema.error));
  snapshot.file_bytes = machine.offset();
  if (machine.trailing_bytes() != 0)
    snapshot.notes.push_back(
        fmt::format("what follows the snapshot from byte {} on was not read", machine.trailing_bytes()));
  return snapshot;
}

}  // namespace

Result<Snapshot> read_torch_snapshot(const std::string& path, Symbols& symbols, const ReadOptions& options) {
  auto input = ByteInput::open(path);
  if (!input) return fail(input.error());
  return read(std::move(*input), symbols, options);
}

Result<Snapshot> read_torch_snapshot(std::span<const std::uint8_t> bytes, const std::string& name, Symbols& symbols,
                                     const ReadOptions& options) {
  auto input = ByteInput::over(bytes, name);
  if (!input) return fail(input.error());
  return read(std::move(*input), symbols, options);
}

}  // namespace vramtrack::trace
