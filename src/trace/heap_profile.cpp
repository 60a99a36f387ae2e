// Heap profiles in pprof's format, which list live memory by stack: those of jax.profiler.save_device_memory_profile,
// and any other with a sample type in bytes. docs/formats/heap-profile.md lists the fields that are read.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/format.hpp"
#include "core/protobuf.hpp"
#include "trace/event_stream.hpp"
#include "trace/format.hpp"
#include "trace/whole_input.hpp"

namespace vramtrack::trace {
namespace {

/// Far more than such profiles need, because each location and each stack is listed once.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
/// Stacks of deeper recursion are cut: the innermost frames show what holds the memory.
constexpr std::size_t kMostFrames = 1024;
/// If there would be more blocks than this, each sample becomes one block.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 20;
/// Blocks in a profile have no addresses, so each gets one, at this distance from the next.
constexpr std::uint64_t kBlockGap = 512;

/// Field numbers of profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto).
namespace field {
enum : unsigned { sample_type = 1, sample = 2, location = 4, function = 5, string_table = 6 };
}

struct Line {
  std::uint64_t function = 0;
  std::uint64_t number = 0;
};
struct Location {
  std::uint64_t address = 0;
  std::vector<Line> lines;  ///< the innermost first; several for inlined calls
};
struct Function {
  std::uint64_t name = 0;
  std::uint64_t file = 0;
};

/// The numbers of a repeated field, packed or not.
bool add_numbers(const ProtoFields& fields, std::vector<std::uint64_t>& out) {
  if (!fields.is_bytes()) {
    out.push_back(fields.value());
    return true;
  }
  // Packed numbers are the wire's own varints, without tags.
  std::string_view rest = fields.bytes();
  while (!rest.empty()) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (bool goes_on = true; goes_on; shift += 7) {
      if (rest.empty() || shift >= 64) return false;
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      goes_on = (byte & 0x80U) != 0;
    }
    out.push_back(value);
  }
  return true;
}

/// The device in a label: "cuda:0", "TFRT_CPU_0", "TPU_2(process=0,(0,0,0,0))".
std::uint32_t device_of(std::string_view label) {
  const std::size_t begin = label.find_first_of("0123456789");
  std::uint32_t number = 0;
  for (std::size_t at = begin; at < label.size() && label[at] >= '0' && label[at] <= '9' && number < 100'000; ++at)
    number = number * 10 + static_cast<std::uint32_t>(label[at] - '0');
  return number;
}

class HeapProfile {
 public:
  HeapProfile(std::string_view bytes, Symbols& symbols) : bytes_(bytes), symbols_(symbols) {}

  Result<Snapshot> read() {
    if (Status tables = read_tables(); !tables) return fail(tables.error());
    if (Status types = choose_types(); !types) return fail(types.error());
    Snapshot out;
    out.is_event_stream = true;
    out.is_heap_profile = true;
    if (Status samples = read_samples(out); !samples) return fail(samples.error());
    // Order the segments by device, as an allocator does.
    std::stable_sort(out.segments.begin(), out.segments.end(),
                     [](const Segment& a, const Segment& b) { return a.device < b.device; });
    return out;
  }

 private:
  [[nodiscard]] static tl::unexpected<Error> damaged(std::string_view what) {
    return fail(fmt::format("{} is damaged: is the profile complete?", what));
  }

  Status read_tables() {
    ProtoFields fields(bytes_);
    while (fields.next()) {
      if (!fields.is_bytes()) continue;
      switch (fields.number()) {
        case field::sample_type:
          types_.push_back(fields.bytes());
          break;
        case field::sample:
          samples_.push_back(fields.bytes());
          break;
        case field::location:
          if (!read_location(fields.bytes())) return damaged(fmt::format("location {}", locations_.size()));
          break;
        case field::function:
          if (!read_function(fields.bytes())) return damaged(fmt::format("function {}", functions_.size()));
          break;
        case field::string_table:
          strings_.push_back(fields.bytes());
          break;
        default:
          break;
      }
    }
    if (!fields.is_complete()) return damaged("its last field");
    return {};
  }

  bool read_location(std::string_view bytes) {
    ProtoFields fields(bytes);
    std::uint64_t id = 0;
    Location location;
    while (fields.next()) {
      if (fields.number() == 1) id = fields.value();
      if (fields.number() == 3) location.address = fields.value();
      if (fields.number() != 4) continue;
      ProtoFields line(fields.bytes());
      Line& its = location.lines.emplace_back();
      while (line.next()) {
        if (line.number() == 1) its.function = line.value();
        if (line.number() == 2) its.number = line.value();
      }
      if (!line.is_complete()) return false;
    }
    locations_[id] = std::move(location);
    return fields.is_complete();
  }

  bool read_function(std::string_view bytes) {
    ProtoFields fields(bytes);
    std::uint64_t id = 0;
    Function function;
    while (fields.next()) {
      if (fields.number() == 1) id = fields.value();
      if (fields.number() == 2) function.name = fields.value();
      if (fields.number() == 4) function.file = fields.value();
    }
    functions_[id] = function;
    return fields.is_complete();
  }

  [[nodiscard]] std::string_view text(std::uint64_t index) const {
    return index < strings_.size() ? strings_[static_cast<std::size_t>(index)] : std::string_view();
  }

  /// Finds which of a sample's values are the live bytes and the number of blocks. JAX calls them "space" and
  /// "allocations", other programs "inuse_space" and "inuse_objects".
  Status choose_types() {
    std::string names;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      std::uint64_t type = 0;
      std::uint64_t unit = 0;
      ProtoFields fields(types_[i]);
      while (fields.next()) (fields.number() == 1 ? type : unit) = fields.value();
      const std::string_view name = text(type);
      names += fmt::format("{}{}/{}", i == 0 ? "" : ", ", printable(name), printable(text(unit)));
      if (name.starts_with("alloc_")) continue;  // everything ever allocated
      if (text(unit) == "bytes" && (!bytes_at_ || name == "inuse_space")) bytes_at_ = i;
      if (text(unit) == "count" && (!count_at_ || name == "inuse_objects")) count_at_ = i;
    }
    if (bytes_at_) return {};
    return fail(
        fmt::format("has no sample type in bytes, which a heap profile has (it has: {}): is it a profile of "
                    "time? jax.profiler.save_device_memory_profile(FILE) writes one of memory",
                    names.empty() ? "none" : names));
  }

  FrameId frame(std::uint64_t function, std::uint64_t line, std::uint64_t address) {
    Frame out;
    const auto known = functions_.find(function);
    if (known != functions_.end()) {
      out.name = symbols_.intern(text(known->second.name));
      out.file = symbols_.intern(text(known->second.file));
    } else {
      out.name = symbols_.intern(fmt::format("0x{:x}", address));
    }
    out.line = static_cast<std::uint32_t>(std::min<std::uint64_t>(line, UINT32_MAX));
    return symbols_.intern(out);
  }

  StackId stack(const std::vector<std::uint64_t>& locations, bool is_executable) {
    std::vector<FrameId> frames;
    if (is_executable) frames.push_back(symbols_.intern(Frame{symbols_.intern("(compiled code)"), {}, 0}));
    for (const std::uint64_t id : locations) {
      const auto known = locations_.find(id);
      if (known == locations_.end() || frames.size() >= kMostFrames) continue;
      const Location& location = known->second;
      if (location.lines.empty()) frames.push_back(frame(0, 0, location.address));
      for (const Line& line : location.lines) frames.push_back(frame(line.function, line.number, location.address));
    }
    return symbols_.intern(frames);
  }

  struct Sample {
    StackId stack = kNoStack;
    std::uint32_t device = 0;
    std::uint64_t bytes = 0;
    std::uint64_t count = 1;
  };

  Result<Sample> read_sample(std::string_view bytes, std::size_t number) {
    ProtoFields fields(bytes);
    std::vector<std::uint64_t> locations;
    std::vector<std::uint64_t> values;
    Sample out;
    bool is_executable = false;
    bool is_whole = true;
    while (fields.next()) {
      if (fields.number() == 1) is_whole = is_whole && add_numbers(fields, locations);
      if (fields.number() == 2) is_whole = is_whole && add_numbers(fields, values);
      if (fields.number() != 3) continue;
      ProtoFields label(fields.bytes());
      std::uint64_t key = 0;
      std::uint64_t value = 0;
      while (label.next()) {
        if (label.number() == 1) key = label.value();
        if (label.number() == 2) value = label.value();
      }
      if (text(key) == "device") out.device = device_of(text(value));
      if (text(key) == "kind") is_executable = text(value) == "executable";
    }
    if (!is_whole || !fields.is_complete()) return damaged(fmt::format("sample {}", number));
    if (*bytes_at_ >= values.size()) return fail(fmt::format("sample {} has no value in bytes", number));
    out.bytes = values[*bytes_at_];
    if (count_at_ && *count_at_ < values.size()) out.count = std::max<std::uint64_t>(values[*count_at_], 1);
    // No device has more memory, and sums of sizes must not overflow.
    if (out.bytes >> 56 != 0)
      return fail(fmt::format("sample {} holds {} bytes, more than any device has", number, out.bytes));
    out.stack = stack(locations, is_executable);
    return out;
  }

  Status read_samples(Snapshot& out) {
    std::vector<Sample> samples;
    std::uint64_t blocks = 0;
    std::uint64_t all_bytes = 0;
    for (const std::string_view bytes : samples_) {
      auto sample = read_sample(bytes, samples.size() + 1);
      if (!sample) return fail(sample.error());
      if (sample->bytes == 0) continue;
      sample->count = std::min(sample->count, sample->bytes);
      blocks = std::min(blocks + sample->count, 2 * kMostBlocks);
      all_bytes += sample->bytes;
      if (all_bytes >> 61 != 0) return fail("its samples add up to more than any device has");
      samples.push_back(*sample);
    }
    const bool is_counted = blocks <= kMostBlocks;
    if (!is_counted)
      out.notes.push_back(fmt::format("it has more than {} blocks: each of its {} is shown as one",
                                      format_number(kMostBlocks), format_count(samples.size(), "stack")));
    std::uint64_t address = kBlockGap;
    for (const Sample& sample : samples) {
      const std::uint64_t count = is_counted ? sample.count : 1;
      for (std::uint64_t i = 0; i < count; ++i) {
        // The first blocks share the remainder.
        const std::uint64_t size = sample.bytes / count + (i < sample.bytes % count ? 1 : 0);
        Segment segment;
        segment.device = sample.device;
        segment.address = address;
        segment.size_bytes = size;
        segment.stack = sample.stack;
        segment.first_block = out.blocks.size();
        segment.block_count = 1;
        out.segments.push_back(segment);
        out.blocks.push_back({address, size, size, sample.stack, BlockState::active});
        address += size + kBlockGap;
      }
    }
    return {};
  }

  std::string_view bytes_;
  Symbols& symbols_;
  std::vector<std::string_view> types_, samples_, strings_;
  std::unordered_map<std::uint64_t, Location> locations_;
  std::unordered_map<std::uint64_t, Function> functions_;
  std::optional<std::size_t> bytes_at_, count_at_;
};

/// A profile begins with its sample types: messages of two numbers.
int looks_like_profile(std::string_view head, std::string_view) {
  if (head.size() < 4 || head[0] != '\n' || head[1] < 2 || head[1] > 12) return 0;
  ProtoFields type(head.substr(2, static_cast<std::size_t>(head[1])));
  bool has_type = false;
  while (type.next()) {
    if (type.is_bytes() || type.number() < 1 || type.number() > 2) return 0;
    has_type = has_type || type.number() == 1;
  }
  const std::size_t next = 2 + static_cast<std::size_t>(head[1]);
  // The next sample type, or the first sample.
  const bool goes_on = next >= head.size() || head[next] == '\n' || head[next] == '\x12';
  return has_type && type.is_complete() && goes_on ? 90 : 0;
}

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions&) {
  const auto bytes = read_whole(input, kMostBytes, "1 GiB, which no heap profile is");
  if (!bytes) return fail(bytes.error());
  auto snapshot = HeapProfile(*bytes, symbols).read();
  if (!snapshot) return fail(fmt::format("{}: {}", input.name(), snapshot.error().message));
  snapshot->file = input.name();
  snapshot->file_bytes = bytes->size();
  return snapshot;
}

}  // namespace

extern const TraceFormatInfo heap_profile_trace_format;
const TraceFormatInfo heap_profile_trace_format{
    "heap-profile",
    "heap profiles in pprof's format, as of jax.profiler.save_device_memory_profile (docs/formats/heap-profile.md)",
    looks_like_profile, read, nullptr};

}  // namespace vramtrack::trace
