// What the readers of binary run files share; for run_file.cpp and its kinds only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "source/log/run_file.hpp"

namespace vramtrack::runfile {

constexpr std::size_t kMostRecordBytes = 16 * kBytesPerMiB;

inline std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

/// Appends the line that gives the kind of the file.
void put_mark(std::string_view kind, std::string& lines);

/// True when `start` begins an event file of TensorBoard.
bool is_event_file(std::string_view start);
std::unique_ptr<RunFile> open_event_file();

/// True when `start` begins a .wandb file, of any version.
bool is_wandb_file(std::string_view start);
/// The version; only 0 is known.
int wandb_version(std::string_view start);
std::unique_ptr<RunFile> open_wandb_file();

}  // namespace vramtrack::runfile
