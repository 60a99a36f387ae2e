// Reads the output of torch.cuda.memory._dump_snapshot and _memory_snapshot_pickled: docs/formats/torch-snapshot.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Reads a plain, gzip or zstd file of any size as a stream. PyTorch 2.0 to 2.15, pickle protocols 0 to 5; every field
/// except a segment's address and size is optional, and unknown ones are skipped. Nothing in the file is ever executed:
/// an opcode that would make Python do so is an error that names it and its offset. Memory: 4 bytes per object of the
/// pickle, 32 per kept event, and the names; at most 16 times the file size, whatever it contains, or for a compressed
/// file 16 times the larger of 64 MiB and 250 times its size. Time: some 5 ns per opcode.
[[nodiscard]] Result<Snapshot> read_torch_snapshot(const std::string& path, Symbols& symbols,
                                                   const ReadOptions& options = {});

/// The same for bytes in memory; `name` stands for the file in errors.
[[nodiscard]] Result<Snapshot> read_torch_snapshot(std::span<const std::uint8_t> bytes, const std::string& name,
                                                   Symbols& symbols, const ReadOptions& options = {});

}  // namespace vramtrack::trace
