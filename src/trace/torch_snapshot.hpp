// Reads what torch.cuda.memory._dump_snapshot and _memory_snapshot_pickled write: docs/formats/torch-snapshot.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/result.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Reads a file, plain, gzip or zstd, as a stream: any size. PyTorch 2.0 to 2.15, pickle protocols 0 to 5; every field
/// but address and size of a segment is optional and unknown ones are skipped. Nothing in the file is ever executed: an
/// opcode that would make Python do so is an error that names it and its offset. Memory: 4 bytes for each object of the
/// pickle, 32 an event kept, and the names; at most 16 times the file, whatever is in it, and of a compressed one 16
/// times the larger of 64 MiB and 250 times what is on the disk. Time: some 5 ns an opcode.
[[nodiscard]] Result<Snapshot> read_torch_snapshot(const std::string& path, Symbols& symbols,
                                                   const ReadOptions& options = {});

/// The same of bytes in memory; `name` stands for the file in errors.
[[nodiscard]] Result<Snapshot> read_torch_snapshot(std::span<const std::uint8_t> bytes, const std::string& name,
                                                   Symbols& symbols, const ReadOptions& options = {});

}  // namespace vramtrack::trace
