#include "trace/torch_snapshot.hpp"

#include "core/byte_input.hpp"
#include "trace/snapshot_schema.hpp"

namespace vramtrack::trace {
namespace {

constexpr ByteInputOptions kInput = {
    .contents = "snapshots",
    .is_damage_an_error = true,  // a pickle is read to its end or not at all
    // Real snapshots shrink 12 to 60 times, under zstd's strongest setting too.
    .most_ratio = 250,
};

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions& options) {
  Snapshot snapshot;
  snapshot.file = input.name();
  if (const Status done = read_pickle(input, symbols, options, snapshot); !done) return fail(done.error());
  return snapshot;
}

}  // namespace

Result<Snapshot> read_torch_snapshot(const std::string& path, Symbols& symbols, const ReadOptions& options) {
  auto input = ByteInput::open(path, kInput);
  if (!input) return fail(input.error());
  return read(std::move(*input), symbols, options);
}

Result<Snapshot> read_torch_snapshot(std::span<const std::uint8_t> bytes, const std::string& name, Symbols& symbols,
                                     const ReadOptions& options) {
  auto input = ByteInput::over(bytes, name, kInput);
  if (!input) return fail(input.error());
  return read(std::move(*input), symbols, options);
}

}  // namespace vramtrack::trace
