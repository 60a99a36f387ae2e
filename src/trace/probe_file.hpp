// The trace file of `vramtrack run`: chunks of the probe's records, each of one process and self-contained.
// docs/formats/trace.md describes every byte.
//
//   | header | chunk | chunk | ... | chunk (end) |      a truncated file is read to its last whole chunk
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_input.hpp"
#include "core/result.hpp"
#include "probe/wire.hpp"

namespace vramtrack::trace {

inline constexpr std::string_view kProbeFileMagic = "VRAMTRC1";
inline constexpr std::uint32_t kProbeFileVersion = 1;
/// No chunk unpacks to more, so a reader's buffer has this size.
inline constexpr std::size_t kMostProbeChunkBytes = 4U << 20U;
inline constexpr std::uint32_t kNoProbeProcess = 0xffffffff;

enum class ProbeChunk : std::uint16_t { slots = 1, process = 2, module = 3, reading = 4, end = 5, holder = 6 };

/// A process of the program, as described at the beginning of its ring.
struct ProbeProcess {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;       ///< field 22 of /proc/PID/stat
  std::int64_t begin_realtime_us = 0;  ///< RingHeader::begin_realtime_us: times of its records count from here
  std::string command;                 ///< empty: the records contain it
};

/// A library or program that contains stack frames.
struct ProbeModule {
  std::string path;
  std::string build_id;  ///< lower-case hexadecimal; empty: the file has none
};

/// A figure that the driver reported while the program ran.
struct ProbeReading {
  std::int64_t realtime_us = 0;
  std::string device_uuid;
  std::optional<std::uint64_t> process_bytes;  ///< used by the process that the chunk names
  std::optional<std::uint64_t> device_bytes;   ///< used by all processes
};

/// A process that held memory on a device when an allocation failed, as the driver reported: one of ours or another.
struct ProbeHolder {
  std::int64_t realtime_us = 0;
  std::string device_uuid;
  std::uint32_t pid = 0;
  std::uint64_t bytes = 0;
  std::string command;  ///< empty if not visible
};

/// How the program or one of its processes ended.
struct ProbeEnd {
  std::int64_t realtime_us = 0;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;  ///< 0: it exited
};

/// Writes a trace file. Not thread-safe; never throws, even if memory runs out. It collects records, about 1 MiB per
/// process, and writes each chunk with one write(). Call flush() about once a second, so that SIGKILL of this process
/// loses no more than a second. After an error, every call returns that error.
class ProbeFileWriter {
 public:
  /// Creates or empties the file, mode 0600: a trace contains its user's file names and commands.
  static Result<ProbeFileWriter> open(const std::string& path, std::string_view command,
                                      std::int64_t begin_realtime_us);
  ProbeFileWriter(ProbeFileWriter&&) noexcept;
  ProbeFileWriter& operator=(ProbeFileWriter&&) noexcept;
  /// Flushes without an end record: the file then reads as truncated after a whole chunk.
  ~ProbeFileWriter();

  /// Returns the index for the calls below: 0, 1, ...
  Result<std::uint32_t> begin_process(const ProbeProcess& process);
  /// Writes the records of one ring in order. For records that a ring lost, the caller adds a Record::lost.
  Status write_slots(std::uint32_t process, std::span<const probe::Slot> slots);
  Status write_module(std::uint32_t process, const ProbeModule& module);
  /// Write the records up to this moment first, because readers compare the two.
  Status write_reading(std::uint32_t process, const ProbeReading& reading);
  Status write_holder(const ProbeHolder& holder);
  /// Writes the end of one process; finish() writes that of the program.
  Status end_process(std::uint32_t process, const ProbeEnd& end);
  /// Writes the collected records.
  Status flush();
  /// Flushes, writes the program's end and closes the file.
  Status finish(const ProbeEnd& end);
  [[nodiscard]] std::uint64_t written_bytes() const;

 private:
  struct State;
  explicit ProbeFileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Receives what a reader finds, in file order. An Error ends the reading.
class ProbeFileVisit {
 public:
  virtual ~ProbeFileVisit() = default;
  /// Called once per index, ascending, before anything else about it.
  virtual Status process(std::uint32_t index, const ProbeProcess& process) = 0;
  virtual Status slots(std::uint32_t process, std::span<const probe::Slot> slots) = 0;
  virtual Status module(std::uint32_t process, const ProbeModule& module) = 0;
  virtual Status reading(std::uint32_t process, const ProbeReading& reading) = 0;
  virtual Status holder(const ProbeHolder& holder) = 0;
  /// kNoProbeProcess stands for the program.
  virtual Status end(std::uint32_t process, const ProbeEnd& end) = 0;
};

/// Facts about the whole file that was read.
struct ProbeFileInfo {
  std::string command;  ///< empty for a bare ring
  std::int64_t begin_realtime_us = 0;
  std::uint64_t bytes = 0;           ///< bytes read and understood
  std::uint64_t skipped_chunks = 0;  ///< chunks of kinds newer than this reader
  bool is_ring = false;              ///< it is the ring of one process, not a trace file
  std::string loss;                  ///< what is missing at the end, with the offset; empty: nothing
};

/// Whether `head` is the beginning of a trace file or a ring.
bool is_probe_file(std::string_view head);

/// Reads a trace file, or a ring file alone (left when `vramtrack run` is killed). Memory: one chunk, or a whole
/// ring. Damage and a truncated end are not errors but ProbeFileInfo::loss; a file that is not a trace is an Error.
Result<ProbeFileInfo> read_probe_file(ByteInput input, ProbeFileVisit& visit);

}  // namespace vramtrack::trace
