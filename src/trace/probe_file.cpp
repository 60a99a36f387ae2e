#include "trace/probe_file.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/out_of_memory.hpp"
#include "core/printable.hpp"
#include "trace/format.hpp"
#include "trace/probe_chunk.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::string_view kRingMagicText = "VRTRING1";
/// 128 MiB; the probe's ring has 16 MiB.
constexpr std::uint64_t kMostRingSlots = 1U << 22U;
/// The largest number of processes in one run; each costs memory.
constexpr std::uint32_t kMostProcesses = 65536;

struct ZstdFree {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class Reader {
 public:
  Reader(ByteInput input, ProbeFileVisit& visit) : input_(std::move(input)), visit_(visit) {}

  Result<ProbeFileInfo> run() {
    const auto peeked = input_.peek(kHeadBytes);
    if (!peeked) return fail(peeked.error());
    const std::string_view head(reinterpret_cast<const char*>(peeked->data()), peeked->size());
    const std::string_view magic = head.substr(0, kProbeFileMagic.size());
    if (!is_probe_file(magic))
      return fail(input_.name() + " is neither a trace of 'vramtrack run' nor a ring of its probe" + what_it_is(head));
    const Status done = magic == kRingMagicText ? ring() : file();
    if (!done) return fail(done.error());
    return std::move(info_);
  }

 private:
  /// The hint "; it is ..."; empty if no other command reads it.
  [[nodiscard]] std::string what_it_is(std::string_view head) const {
    const TraceFormatInfo* const format = recognise_trace(head, input_.name(), kSure);
    if (format == nullptr) return "";
    return fmt::format("; it is one of {}: 'vramtrack snapshot summary' reads it", format->help);
  }

  /// Fills `into` as far as the input goes.
  Result<std::size_t> fill(void* into, std::size_t most) {
    std::size_t at = 0;
    while (at < most) {
      const auto n = input_.read({static_cast<std::uint8_t*>(into) + at, most - at});
      if (!n) return fail(n.error());
      if (*n == 0) break;
      at += *n;
    }
    return at;
  }

  Status file() {
    ProbeFileHeader header;
    const auto head = fill(&header, sizeof header);
    if (!head) return fail(head.error());
    if (*head < sizeof header) return fail(input_.name() + ": the trace ends within its header: nothing was recorded");
    if (header.version != kProbeFileVersion)
      return fail(fmt::format("{}: has version {} of the trace format; this vramtrack reads version {}", input_.name(),
                              header.version, kProbeFileVersion));
    if (header.command_bytes > kMostCommandBytes) return fail(input_.name() + ": the header of the trace is damaged");
    std::string bytes(sizeof header + header.command_bytes, '\0');
    const auto command = fill(bytes.data() + sizeof header, header.command_bytes);
    if (!command) return fail(command.error());
    const std::uint32_t crc = std::exchange(header.crc, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (*command < header.command_bytes || crc_of(bytes) != crc)
      return fail(input_.name() + ": the header of the trace is damaged");
    info_.command = printable(bytes.substr(sizeof header));
    info_.begin_realtime_us = header.begin_realtime_us;
    info_.bytes = bytes.size();
    zstd_.reset(ZSTD_createDCtx());
    if (zstd_ == nullptr) return fail(kOutOfMemory);
    for (;;) {
      const auto more = chunk();
      if (!more) return fail(more.error());
      if (!*more) break;
    }
    if (!is_ended_ && info_.loss.empty())
      info_.loss = fmt::format("{}: has no end (byte {}): 'vramtrack run' was killed while it recorded, or still runs",
                               input_.name(), info_.bytes);
    return {};
  }

  Result<bool> lost(std::string_view why) {
    info_.loss = fmt::format("{}: {} at byte {}: what follows is not read", input_.name(), why, info_.bytes);
    return false;
  }

  /// False if nothing follows, or nothing that can be read.
  Result<bool> chunk() {
    ProbeChunkHeader header;
    const auto head = fill(&header, sizeof header);
    if (!head) return fail(head.error());
    if (*head == 0) return false;
    if (*head < sizeof header) return lost("the trace is cut off within a chunk");
    if (header.magic != kProbeChunkMagic ||
        crc_of({reinterpret_cast<const char*>(&header), offsetof(ProbeChunkHeader, header_crc)}) != header.header_crc ||
        header.packed_bytes > ZSTD_compressBound(kMostProbeChunkBytes))
      return lost("the trace is damaged");
    packed_.resize(header.packed_bytes);
    const auto size = fill(packed_.data(), packed_.size());
    if (!size) return fail(size.error());
    if (*size < packed_.size()) return lost("the trace is cut off within a chunk");
    if (crc_of(packed_) != header.payload_crc || header.raw_bytes > kMostProbeChunkBytes)
      return lost("the trace is damaged");
    // Allocate words, so that records can be read in place.
    raw_.resize(header.raw_bytes / sizeof(probe::Slot) + 1);
    const std::size_t raw_bytes = ZSTD_decompressDCtx(zstd_.get(), raw_.data(), raw_.size() * sizeof(probe::Slot),
                                                      packed_.data(), packed_.size());
    if (ZSTD_isError(raw_bytes) != 0 || raw_bytes != header.raw_bytes) return lost("the trace is damaged");
    const auto understood = take(header);
    if (!understood) return fail(understood.error());
    if (!*understood) return lost("the trace has a chunk that contradicts those before it");
    info_.bytes += sizeof header + packed_.size();
    return true;
  }

  /// False if no writer produces this.
  Result<bool> take(const ProbeChunkHeader& header) {
    const auto kind = static_cast<ProbeChunk>(header.kind);
    PayloadReader payload({reinterpret_cast<const char*>(raw_.data()), header.raw_bytes});
    Status done;
    switch (kind) {
      case ProbeChunk::slots:
        if (header.process >= processes_ || header.raw_bytes % sizeof(probe::Slot) != 0) return false;
        done = visit_.slots(header.process, {raw_.data(), header.raw_bytes / sizeof(probe::Slot)});
        break;
      case ProbeChunk::process: {
        ProbeProcess process;
        process.pid = header.pid;
        process.start_ticks = payload.number();
        process.begin_realtime_us = static_cast<std::int64_t>(payload.number());
        process.command = printable(payload.text());
        if (!payload.is_whole() || header.process != processes_ || processes_ == kMostProcesses) return false;
        done = visit_.process(processes_++, process);
        break;
      }
      case ProbeChunk::module: {
        ProbeModule module;
        module.path = payload.text();
        module.build_id = printable(payload.text());
        if (!payload.is_whole() || header.process >= processes_) return false;
        done = visit_.module(header.process, module);
        break;
      }
      case ProbeChunk::reading: {
        ProbeReading reading;
        reading.realtime_us = static_cast<std::int64_t>(payload.number());
        const std::uint64_t process_bytes = payload.number();
        const std::uint64_t device_bytes = payload.number();
        if (process_bytes != kNotRead) reading.process_bytes = process_bytes;
        if (device_bytes != kNotRead) reading.device_bytes = device_bytes;
        reading.device_uuid = printable(payload.text());
        if (!payload.is_whole() || (header.process >= processes_ && header.process != kNoProbeProcess)) return false;
        done = visit_.reading(header.process, reading);
        break;
      }
      case ProbeChunk::holder: {
        ProbeHolder holder;
        holder.realtime_us = static_cast<std::int64_t>(payload.number());
        holder.pid = static_cast<std::uint32_t>(payload.number());
        holder.bytes = payload.number();
        holder.device_uuid = printable(payload.text());
        holder.command = printable(payload.text());
        if (!payload.is_whole()) return false;
        done = visit_.holder(holder);
        break;
      }
      case ProbeChunk::end: {
        ProbeEnd end;
        end.realtime_us = static_cast<std::int64_t>(payload.number());
        const std::uint64_t status = payload.number();
        end.exit_code = static_cast<std::int32_t>(status & 0xffff'ffffU);
        end.signal = static_cast<std::int32_t>(status >> 32U);
        if (!payload.is_whole() || (header.process >= processes_ && header.process != kNoProbeProcess)) return false;
        is_ended_ = is_ended_ || header.process == kNoProbeProcess;
        done = visit_.end(header.process, end);
        break;
      }
      default:
        ++info_.skipped_chunks;
    }
    if (!done) return fail(done.error());
    return true;
  }

  Status ring() {
    struct Head {  // the beginning of RingHeader, whose counters are atomic
      std::uint64_t magic;
      std::uint32_t version, pid;
      std::uint64_t start_ticks, capacity;
      std::int64_t begin_realtime_us;
    } head{};
    static_assert(offsetof(Head, begin_realtime_us) == offsetof(probe::RingHeader, begin_realtime_us));
    std::vector<std::uint8_t> page(probe::kRingHeaderBytes);
    const auto size = fill(page.data(), page.size());
    if (!size) return fail(size.error());
    if (*size < page.size()) return fail(input_.name() + ": the ring ends within its header: nothing was recorded");
    std::memcpy(&head, page.data(), sizeof head);
    const auto counter = [&page](std::size_t offset) {
      std::uint64_t value = 0;
      std::memcpy(&value, page.data() + offset, sizeof value);
      return value;
    };
    const std::uint64_t written = counter(offsetof(probe::RingHeader, written));
    const std::uint64_t read = counter(offsetof(probe::RingHeader, read));
    const std::uint64_t lost = counter(offsetof(probe::RingHeader, lost));
    if (head.version != probe::kWireVersion)
      return fail(fmt::format("{}: has version {} of the ring; this vramtrack reads version {}", input_.name(),
                              head.version, probe::kWireVersion));
    if (head.capacity == 0 || head.capacity > kMostRingSlots || (head.capacity & (head.capacity - 1)) != 0 ||
        written < read || written - read > head.capacity)
      return fail(input_.name() + ": the header of the ring is damaged");
    info_.is_ring = true;
    info_.begin_realtime_us = head.begin_realtime_us;
    std::vector<probe::Slot> slots(head.capacity);
    const auto there = fill(slots.data(), slots.size() * sizeof(probe::Slot));
    if (!there) return fail(there.error());
    info_.bytes = page.size() + *there;
    if (*there < slots.size() * sizeof(probe::Slot))
      info_.loss = fmt::format("{}: the ring is cut off at byte {}", input_.name(), info_.bytes);
    if (Status done = visit_.process(0, {head.pid, head.start_ticks, head.begin_realtime_us, {}}); !done) return done;
    std::vector<probe::Slot> ordered;
    std::uint64_t incomplete = 0;
    for (std::uint64_t at = read; at < written; ++at) {
      const probe::Slot& slot = slots[at & (head.capacity - 1)];
      if (probe::record_of(slot) != probe::Record::none)
        ordered.push_back(slot);
      else
        ++incomplete;  // its writer was killed while writing it
    }
    if (lost + incomplete > 0) {
      probe::Slot note;
      note.head = probe::head_of(probe::Record::lost, probe::Call::none, 0, 0, 0);
      note.a = lost + incomplete;
      ordered.push_back(note);
    }
    return visit_.slots(0, ordered);
  }

  ByteInput input_;
  ProbeFileVisit& visit_;
  ProbeFileInfo info_;
  std::unique_ptr<ZSTD_DCtx, ZstdFree> zstd_;
  std::string packed_;
  std::vector<probe::Slot> raw_;
  std::uint32_t processes_ = 0;
  bool is_ended_ = false;
};

}  // namespace

bool is_probe_file(std::string_view head) {
  return head.starts_with(kProbeFileMagic) || head.starts_with(kRingMagicText);
}

Result<ProbeFileInfo> read_probe_file(ByteInput input, ProbeFileVisit& visit) {
  return or_out_of_memory([&] { return Reader(std::move(input), visit).run(); });
}

}  // namespace vramtrack::trace
