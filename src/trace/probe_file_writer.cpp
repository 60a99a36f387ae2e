#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/errno_words.hpp"
#include "core/out_of_memory.hpp"
#include "core/output_file.hpp"
#include "trace/probe_chunk.hpp"
#include "trace/probe_file.hpp"

namespace vramtrack::trace {
namespace {

/// Records per process that make a chunk; larger chunks hardly compress better.
constexpr std::size_t kCollectedSlots = 32768;
/// At this level, a busy program's records compress by a factor of five or more, at 500 MB/s.
constexpr int kLevel = 1;

struct ZstdFree {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

struct ProbeFileWriter::State {
  struct Process {
    std::uint32_t pid = 0;
    std::vector<probe::Slot> slots;
  };

  std::string path;
  int fd = -1;
  std::uint64_t written_bytes = 0;
  std::string failure;  ///< the first failure
  std::vector<Process> processes;
  std::unique_ptr<ZSTD_CCtx, ZstdFree> zstd;
  std::string packed;  ///< a chunk on its way to the file

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (fd >= 0) ::close(fd);
  }

  /// Once a call fails, all later calls fail, because a reader would not notice a hole in the file.
  template <class Body>
  Status guarded(Body body) {
    if (!failure.empty()) return fail(failure);
    Status done = or_out_of_memory(body);
    if (!done) failure = done.error().message;
    return done;
  }

  Status write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(fmt::format("cannot write the trace {}: {}", path, errno_words(errno)));
      written_bytes += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  Status write_chunk(ProbeChunk kind, std::uint32_t process, std::string_view raw) {
    packed.resize(sizeof(ProbeChunkHeader) + ZSTD_compressBound(raw.size()));
    const std::size_t size =
        ZSTD_compressCCtx(zstd.get(), packed.data() + sizeof(ProbeChunkHeader),
                          packed.size() - sizeof(ProbeChunkHeader), raw.data(), raw.size(), kLevel);
    if (ZSTD_isError(size) != 0) return fail(std::string("cannot compress the trace: ") + ZSTD_getErrorName(size));
    packed.resize(sizeof(ProbeChunkHeader) + size);
    ProbeChunkHeader header;
    header.kind = static_cast<std::uint16_t>(kind);
    header.process = process;
    header.pid = process < processes.size() ? processes[process].pid : 0;
    header.raw_bytes = static_cast<std::uint32_t>(raw.size());
    header.packed_bytes = static_cast<std::uint32_t>(size);
    header.payload_crc = crc_of({packed.data() + sizeof header, size});
    header.header_crc = crc_of({reinterpret_cast<const char*>(&header), offsetof(ProbeChunkHeader, header_crc)});
    std::memcpy(packed.data(), &header, sizeof header);
    return write(packed);
  }

  Status flush(std::uint32_t process) {
    std::vector<probe::Slot>& slots = processes[process].slots;
    if (slots.empty()) return {};
    Status done = write_chunk(ProbeChunk::slots, process,
                              {reinterpret_cast<const char*>(slots.data()), slots.size() * sizeof(probe::Slot)});
    slots.clear();
    return done;
  }

  Status flush() {
    for (std::uint32_t i = 0; i < processes.size(); ++i)
      if (Status done = flush(i); !done) return done;
    return {};
  }

  [[nodiscard]] Status known(std::uint32_t process) const {
    if (process < processes.size()) return {};
    return fail(fmt::format("cannot write the trace {}: it has no process {}", path, process));
  }
};

ProbeFileWriter::ProbeFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProbeFileWriter::ProbeFileWriter(ProbeFileWriter&&) noexcept = default;
ProbeFileWriter& ProbeFileWriter::operator=(ProbeFileWriter&&) noexcept = default;
ProbeFileWriter::~ProbeFileWriter() {
  if (state_ != nullptr && state_->fd >= 0) (void)flush();
}

Result<ProbeFileWriter> ProbeFileWriter::open(const std::string& path, std::string_view command,
                                              std::int64_t begin_realtime_us) {
  return or_out_of_memory([&]() -> Result<ProbeFileWriter> {
    auto state = std::make_unique<State>();
    state->path = path;
    state->zstd.reset(ZSTD_createCCtx());
    if (state->zstd == nullptr) return fail(kOutOfMemory);
    const auto fd = open_output(path, 0600);
    if (!fd) return fail(fd.error());
    state->fd = *fd;
    command = command.substr(0, kMostCommandBytes);
    ProbeFileHeader header;
    std::memcpy(header.magic.data(), kProbeFileMagic.data(), kProbeFileMagic.size());
    header.begin_realtime_us = begin_realtime_us;
    header.command_bytes = static_cast<std::uint32_t>(command.size());
    std::string bytes(sizeof header, '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += command;
    header.crc = crc_of(bytes);  // with the field itself zero
    std::memcpy(bytes.data(), &header, sizeof header);
    if (Status done = state->write(bytes); !done) return fail(done.error());
    return ProbeFileWriter(std::move(state));
  });
}

Result<std::uint32_t> ProbeFileWriter::begin_process(const ProbeProcess& process) {
  const auto index = static_cast<std::uint32_t>(state_->processes.size());
  const Status done = state_->guarded([&]() -> Status {
    state_->processes.push_back({process.pid, {}});
    PayloadWriter payload;
    payload.number(process.start_ticks).number(static_cast<std::uint64_t>(process.begin_realtime_us));
    payload.text(process.command);
    return state_->write_chunk(ProbeChunk::process, index, payload.bytes());
  });
  if (!done) return fail(done.error());
  return index;
}

Status ProbeFileWriter::write_slots(std::uint32_t process, std::span<const probe::Slot> slots) {
  return state_->guarded([&]() -> Status {
    if (Status known = state_->known(process); !known) return known;
    std::vector<probe::Slot>& collected = state_->processes[process].slots;
    if (collected.capacity() < kCollectedSlots) collected.reserve(kCollectedSlots);
    while (!slots.empty()) {
      const std::size_t n = std::min(slots.size(), kCollectedSlots - collected.size());
      collected.insert(collected.end(), slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(n));
      slots = slots.subspan(n);
      if (collected.size() < kCollectedSlots) break;
      if (Status done = state_->flush(process); !done) return done;
    }
    return {};
  });
}

Status ProbeFileWriter::write_module(std::uint32_t process, const ProbeModule& module) {
  return state_->guarded([&]() -> Status {
    if (Status known = state_->known(process); !known) return known;
    PayloadWriter payload;
    payload.text(module.path).text(module.build_id);
    return state_->write_chunk(ProbeChunk::module, process, payload.bytes());
  });
}

Status ProbeFileWriter::write_reading(std::uint32_t process, const ProbeReading& reading) {
  return state_->guarded([&]() -> Status {
    if (process != kNoProbeProcess)
      if (Status ready = state_->known(process).and_then([&] { return state_->flush(process); }); !ready) return ready;
    PayloadWriter payload;
    payload.number(static_cast<std::uint64_t>(reading.realtime_us));
    payload.number(reading.process_bytes.value_or(kNotRead)).number(reading.device_bytes.value_or(kNotRead));
    payload.text(reading.device_uuid);
    return state_->write_chunk(ProbeChunk::reading, process, payload.bytes());
  });
}

Status ProbeFileWriter::write_holder(const ProbeHolder& holder) {
  return state_->guarded([&]() -> Status {
    PayloadWriter payload;
    payload.number(static_cast<std::uint64_t>(holder.realtime_us)).number(holder.pid).number(holder.bytes);
    payload.text(holder.device_uuid).text(holder.command.substr(0, kMostCommandBytes));
    return state_->write_chunk(ProbeChunk::holder, kNoProbeProcess, payload.bytes());
  });
}

Status ProbeFileWriter::end_process(std::uint32_t process, const ProbeEnd& end) {
  return state_->guarded([&]() -> Status {
    if (process != kNoProbeProcess) {
      if (Status known = state_->known(process); !known) return known;
      if (Status done = state_->flush(process); !done) return done;
    }
    PayloadWriter payload;
    payload.number(static_cast<std::uint64_t>(end.realtime_us));
    payload.number(static_cast<std::uint32_t>(end.exit_code) |
                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(end.signal)) << 32U);
    return state_->write_chunk(ProbeChunk::end, process, payload.bytes());
  });
}

Status ProbeFileWriter::flush() {
  return state_->guarded([&] { return state_->flush(); });
}

Status ProbeFileWriter::finish(const ProbeEnd& end) {
  if (Status done = flush(); !done) return done;
  if (Status done = end_process(kNoProbeProcess, end); !done) return done;
  return state_->guarded([&]() -> Status {
    const int fd = std::exchange(state_->fd, -1);
    if (::close(fd) != 0) return fail(fmt::format("cannot write the trace {}: {}", state_->path, errno_words(errno)));
    state_->failure = "the trace is finished";
    return {};
  });
}

std::uint64_t ProbeFileWriter::written_bytes() const {
  return state_->written_bytes;
}

}  // namespace vramtrack::trace
