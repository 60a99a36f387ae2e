// Memory profiles of XProf (MemoryProfile), which its tool memory_profile derives from an *.xplane.pb: the message, or
// its JSON. The format: memory_profile.proto (github.com/openxla/xprof, plugin/xprof/protobuf; before that
// github.com/tensorflow/tensorflow, tensorflow/core/profiler/protobuf); the code that writes it, and so defines its
// fields: xplane_to_memory_profile.cc (xprof/convert). docs/formats/xprof.md lists what is read.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/ascii.hpp"
#include "core/json.hpp"
#include "core/number_text.hpp"
#include "core/printable.hpp"
#include "core/protobuf.hpp"
#include "trace/allocator_events.hpp"
#include "trace/format.hpp"
#include "trace/whole_input.hpp"

namespace vramtrack::trace {
namespace {

using namespace std::string_view_literals;

/// If an allocator has more events, XProf keeps this many.
constexpr std::size_t kMostMoments = 1000;
/// Far more than the moments of a few allocators.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::string_view kLimit = "64 MiB, which no memory profile is";

enum class Kind : std::uint8_t { other = 0, allocation = 1, deallocation = 2 };

/// MemoryActivityMetadata. Its texts are views into the file or its JSON.
struct MemoryActivity {
  Kind kind = Kind::other;
  std::int64_t requested_bytes = 0;
  std::int64_t allocation_bytes = 0;
  std::uint64_t address = 0;
  std::string_view op, region, data_type, shape;
  [[nodiscard]] std::uint64_t size_bytes() const {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(allocation_bytes > 0 ? allocation_bytes : requested_bytes, 0));
  }
};
/// MemoryProfileSnapshot: one event, and what the allocator holds after it.
struct Sample {
  std::int64_t time_ps = 0;
  std::int64_t stack_bytes = 0;
  std::int64_t heap_bytes = 0;
  std::int64_t lifetime_peak_bytes = 0;
  MemoryActivity activity;
};
/// ActiveAllocation: blocks that are live at the peak, as an index into `samples`, or into `special` if negative.
struct Row {
  std::int64_t sample = 0;
  std::int64_t special = 0;
  std::int64_t count = 0;
};
/// PerAllocatorMemoryProfile
struct Allocator {
  std::string name;
  std::vector<Sample> samples;
  std::vector<Sample> timeline;  ///< since version 1; before, `samples` is the timeline
  std::vector<Row> rows;
  std::vector<MemoryActivity> special;
};
struct MemoryProfile {
  std::vector<Allocator> allocators;
  std::int64_t version = 0;
};

/// Reads the message.
class ProtoProfile {
 public:
  explicit ProtoProfile(std::string_view bytes) : bytes_(bytes) {}

  Result<MemoryProfile> read() {
    MemoryProfile out;
    ProtoFields fields(bytes_);
    std::size_t end = 0;
    while (fields.next()) {
      if (fields.is_bytes()) end = offset(fields.bytes()) + fields.bytes().size();
      if (fields.number() == 5) out.version = number(fields);
      if (fields.number() != 1 || !fields.is_bytes()) continue;
      if (out.allocators.size() == kMostAllocators)
        return fail(fmt::format("at byte {}: more than {} allocators: this is not a profile of a program",
                                offset(fields.bytes()), kMostAllocators));
      if (!entry(fields.bytes(), out.allocators.emplace_back()))
        return fail(fmt::format("at byte {}: {} is cut off or damaged: is the file complete?", damaged_at_, damaged_));
    }
    if (!fields.is_complete())
      return fail(fmt::format("at byte {}: the next allocator is cut off or damaged: is the file complete?", end));
    return out;
  }

 private:
  [[nodiscard]] std::size_t offset(std::string_view part) const {
    return part.data() == nullptr ? 0 : static_cast<std::size_t>(part.data() - bytes_.data());
  }
  static std::int64_t number(const ProtoFields& fields) { return static_cast<std::int64_t>(fields.value()); }

  /// Calls visit(fields) for each field; returns false, and notes where, if the bytes end within one.
  template <class Visit>
  bool each(std::string_view bytes, std::string_view what, Visit visit) {
    ProtoFields fields(bytes);
    while (fields.next())
      if (!visit(fields)) return false;
    if (fields.is_complete()) return true;
    damaged_at_ = offset(bytes);
    damaged_ = what;
    return false;
  }

  bool entry(std::string_view bytes, Allocator& into) {
    return each(bytes, "an allocator", [&](const ProtoFields& fields) {
      if (fields.number() == 1) into.name = fields.bytes();
      return fields.number() != 2 || allocator(fields.bytes(), into);
    });
  }
  bool allocator(std::string_view bytes, Allocator& into) {
    return each(bytes, "an allocator", [&](const ProtoFields& fields) {
      switch (fields.number()) {
        case 1:
          return sample(fields.bytes(), into.samples.emplace_back());
        case 3:
          return row(fields.bytes(), into.rows.emplace_back());
        case 4:
          return activity(fields.bytes(), into.special.emplace_back());
        case 5:
          return sample(fields.bytes(), into.timeline.emplace_back());
        default:
          return true;
      }
    });
  }
  bool sample(std::string_view bytes, Sample& into) {
    return each(bytes, "a moment", [&](const ProtoFields& fields) {
      if (fields.number() == 1) into.time_ps = number(fields);
      if (fields.number() == 3) return activity(fields.bytes(), into.activity);
      return fields.number() != 2 || each(fields.bytes(), "a moment's totals", [&](const ProtoFields& total) {
               if (total.number() == 1) into.stack_bytes = number(total);
               if (total.number() == 2) into.heap_bytes = number(total);
               if (total.number() == 5) into.lifetime_peak_bytes = number(total);
               return true;
             });
    });
  }
  bool row(std::string_view bytes, Row& into) {
    return each(bytes, "a row of active allocations", [&](const ProtoFields& fields) {
      if (fields.number() == 1) into.sample = number(fields);
      if (fields.number() == 2) into.special = number(fields);
      if (fields.number() == 3) into.count = number(fields);
      return true;
    });
  }
  bool activity(std::string_view bytes, MemoryActivity& into) {
    return each(bytes, "an allocation", [&](const ProtoFields& fields) {
      switch (fields.number()) {
        case 1:
          into.kind = fields.value() == 1 ? Kind::allocation : fields.value() == 2 ? Kind::deallocation : Kind::other;
          break;
        case 2:
          into.requested_bytes = number(fields);
          break;
        case 3:
          into.allocation_bytes = number(fields);
          break;
        case 4:
          into.address = fields.value();
          break;
        case 5:
          into.op = fields.bytes();
          break;
        case 7:
          into.region = fields.bytes();
          break;
        case 8:
          into.data_type = fields.bytes();
          break;
        case 9:
          into.shape = fields.bytes();
          break;
        default:
          break;
      }
      return true;
    });
  }

  std::string_view bytes_;
  std::size_t damaged_at_ = 0;
  std::string_view damaged_;
};

/// Reads its JSON: names as in Protocol Buffers' JSON ("heapAllocatedBytes") or as in the .proto, 64-bit numbers as
/// strings. The views in the result point into `json`.
class JsonProfile {
 public:
  Result<MemoryProfile> read(const Json& json) {
    MemoryProfile out;
    out.version = number(json, "version", "version");
    const Json* const all = member(json, "memoryProfilePerAllocator", "memory_profile_per_allocator");
    if (all == nullptr || !all->is_object())
      return fail("expected an object \"memoryProfilePerAllocator\", which a memory profile has");
    if (all->items().size() > kMostAllocators)
      return fail(fmt::format("has more than {} allocators: this is not a profile of a program", kMostAllocators));
    for (const auto& [name, its] : all->items()) {
      where_ = name;
      Allocator& into = out.allocators.emplace_back();
      into.name = name;
      samples(its, "memoryProfileSnapshots", "memory_profile_snapshots", into.samples);
      samples(its, "sampledTimelineSnapshots", "sampled_timeline_snapshots", into.timeline);
      for (const Json& row : list(its, "activeAllocations", "active_allocations"))
        into.rows.push_back({number(row, "snapshotIndex", "snapshot_index"),
                             number(row, "specialIndex", "special_index"),
                             number(row, "numOccurrences", "num_occurrences")});
      for (const Json& special : list(its, "specialAllocations", "special_allocations"))
        into.special.push_back(activity(special));
    }
    if (!wrong_.empty()) return fail(wrong_);
    return out;
  }

 private:
  static const Json* member(const Json& of, std::string_view name, std::string_view in_proto) {
    const Json* const its = of.find(name);
    return its != nullptr ? its : of.find(in_proto);
  }
  static const Json& list(const Json& of, std::string_view name, std::string_view in_proto) {
    static const Json none;
    const Json* const its = member(of, name, in_proto);
    return its != nullptr ? *its : none;
  }
  void samples(const Json& of, std::string_view name, std::string_view in_proto, std::vector<Sample>& into) {
    for (const Json& each : list(of, name, in_proto)) {
      Sample& sample = into.emplace_back();
      sample.time_ps = number(each, "timeOffsetPs", "time_offset_ps");
      if (const Json* const totals = member(each, "aggregationStats", "aggregation_stats")) {
        sample.stack_bytes = number(*totals, "stackReservedBytes", "stack_reserved_bytes");
        sample.heap_bytes = number(*totals, "heapAllocatedBytes", "heap_allocated_bytes");
        sample.lifetime_peak_bytes = number(*totals, "peakBytesInUse", "peak_bytes_in_use");
      }
      if (const Json* const its = member(each, "activityMetadata", "activity_metadata"))
        sample.activity = activity(*its);
    }
  }
  MemoryActivity activity(const Json& of) {
    MemoryActivity out;
    if (const Json* const kind = member(of, "memoryActivity", "memory_activity")) {
      if (kind->is_string())
        out.kind = kind->text() == "ALLOCATION"     ? Kind::allocation
                   : kind->text() == "DEALLOCATION" ? Kind::deallocation
                                                    : Kind::other;
      else if (const std::int64_t its = number(of, "memoryActivity", "memory_activity"); its == 1 || its == 2)
        out.kind = static_cast<Kind>(its);
    }
    out.requested_bytes = number(of, "requestedBytes", "requested_bytes");
    out.allocation_bytes = number(of, "allocationBytes", "allocation_bytes");
    out.address = address(of);
    out.op = text(of, "tfOpName", "tf_op_name");
    out.region = text(of, "regionType", "region_type");
    out.data_type = text(of, "dataType", "data_type");
    out.shape = text(of, "tensorShape", "tensor_shape");
    return out;
  }
  std::uint64_t address(const Json& of) {
    const Json* const its = of.find("address");
    if (its != nullptr && its->is_number_unsigned()) return its->get<std::uint64_t>();
    if (its != nullptr && its->is_string())
      if (const auto parsed = parse_number<std::uint64_t>(its->text())) return *parsed;
    return static_cast<std::uint64_t>(number(of, "address", "address"));
  }
  std::int64_t number(const Json& of, std::string_view name, std::string_view in_proto) {
    const Json* const its = member(of, name, in_proto);
    if (its == nullptr || its->is_null()) return 0;
    if (its->is_number_unsigned()) {
      if (const auto value = its->get<std::uint64_t>(); value >> 63 == 0) return static_cast<std::int64_t>(value);
    } else if (its->is_number_integer()) {
      return its->get<std::int64_t>();
    } else if (its->is_string()) {
      if (const auto parsed = parse_number<std::int64_t>(its->text())) return *parsed;
    }
    if (wrong_.empty()) wrong_ = fmt::format("{}: \"{}\": expected a whole number of 64 bits", printable(where_), name);
    return 0;
  }
  std::string_view text(const Json& of, std::string_view name, std::string_view in_proto) {
    const Json* const its = member(of, name, in_proto);
    if (its == nullptr || its->is_null()) return {};
    if (its->is_string()) return its->text();
    if (wrong_.empty()) wrong_ = fmt::format("{}: \"{}\": expected a text", printable(where_), name);
    return {};
  }

  std::string where_;  ///< the allocator
  std::string wrong_;  ///< the first invalid item
};

/// Whether the moments are all events in order, so that live memory follows from them. XProf keeps all if there are
/// few, and otherwise the highest of each stretch. Events that a profiler lost leave a few gaps.
bool are_all_events(const std::vector<Sample>& samples) {
  std::size_t steps = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const MemoryActivity& activity = samples[i].activity;
    const auto size = static_cast<std::int64_t>(activity.size_bytes() & ~(std::uint64_t{1} << 63));
    const std::int64_t change = activity.kind == Kind::deallocation ? -size : size;
    const auto wanted = static_cast<std::uint64_t>(samples[i - 1].heap_bytes) + static_cast<std::uint64_t>(change);
    if (wanted == static_cast<std::uint64_t>(samples[i].heap_bytes) && samples[i].time_ps >= samples[i - 1].time_ps)
      ++steps;
  }
  if (samples.size() >= kMostMoments) return false;
  return samples.size() < 2 || steps * 10 >= (samples.size() - 1) * 9;
}

bool is_in_order(const std::vector<Sample>& samples) {
  return std::is_sorted(samples.begin(), samples.end(),
                        [](const Sample& a, const Sample& b) { return a.time_ps < b.time_ps; });
}

Result<Snapshot> events_of(const MemoryProfile& profile, Symbols& symbols, bool keep_events) {
  AllocatorEvents out;
  for (const Allocator& allocator : profile.allocators) {
    const auto number = static_cast<std::uint32_t>(out.names.size());
    out.names.push_back(printable(allocator.name));
    out.lifetime_peaks.push_back(0);
    for (const Sample& sample : allocator.timeline.empty() ? allocator.samples : allocator.timeline) {
      const MemoryActivity& activity = sample.activity;
      out.lifetime_peaks.back() = std::max(
          out.lifetime_peaks.back(), static_cast<std::uint64_t>(std::max<std::int64_t>(sample.lifetime_peak_bytes, 0)));
      if (activity.kind == Kind::other || activity.address == 0) continue;
      AllocatorEvent event;
      event.time_ns = sample.time_ps / 1000;
      event.time_ps = static_cast<std::uint32_t>(std::max<std::int64_t>(sample.time_ps % 1000, 0));
      event.allocator = number;
      event.is_alloc = activity.kind == Kind::allocation;
      event.address = activity.address;
      event.size_bytes = activity.size_bytes();
      if (event.is_alloc && event.size_bytes == 0) continue;
      if (sample.heap_bytes >= 0) event.in_use_bytes = static_cast<std::uint64_t>(sample.heap_bytes);
      if (event.is_alloc) {
        event.stack = allocation_stack(symbols, activity.op, activity.region, out.names.back());
        event.label = allocation_label(symbols, activity.data_type, activity.shape);
      }
      out.events.push_back(event);
    }
  }
  return snapshot_of_events(std::move(out), symbols, keep_events);
}

/// Adds the totals of the devices' allocators, each at its last moment.
void add_samples(const MemoryProfile& profile, Snapshot& into) {
  const bool has_device = std::any_of(profile.allocators.begin(), profile.allocators.end(),
                                      [](const Allocator& each) { return !allocator_place(each.name).is_host; });
  struct Total {
    std::int64_t time_ps = 0;
    std::size_t allocator = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Total> totals;
  for (std::size_t i = 0; i < profile.allocators.size(); ++i) {
    const Allocator& its = profile.allocators[i];
    if (has_device && allocator_place(its.name).is_host) continue;
    for (const Sample& sample : its.timeline.empty() ? its.samples : its.timeline)
      if (sample.heap_bytes >= 0 && sample.stack_bytes >= 0 && (sample.heap_bytes | sample.stack_bytes) >> 48 == 0)
        totals.push_back({sample.time_ps, i, sample.heap_bytes + sample.stack_bytes});
  }
  std::stable_sort(totals.begin(), totals.end(), [](const Total& a, const Total& b) { return a.time_ps < b.time_ps; });
  std::vector<std::int64_t> held(profile.allocators.size());
  std::map<std::uint32_t, std::int64_t> by_device;
  for (const Total& total : totals) {
    const std::uint32_t device = has_device ? allocator_place(profile.allocators[total.allocator].name).device : 0;
    std::int64_t& sum = by_device[device];
    sum += total.bytes - std::exchange(held[total.allocator], total.bytes);
    into.samples.push_back({device, total.time_ps / 1'000'000, sum});
  }
}

/// What was live at the peak of each allocator.
Result<Snapshot> peak_of(const MemoryProfile& profile, Symbols& symbols) {
  std::vector<std::string> names;
  std::vector<HeldBlocks> held;
  for (const Allocator& allocator : profile.allocators) {
    const auto number = static_cast<std::uint32_t>(names.size());
    names.push_back(printable(allocator.name));
    if (profile.version == 0 && !is_in_order(allocator.samples))
      return fail(
          fmt::format("{}: its moments are not in the order of time, as older versions of XProf left them when there "
                      "were more than it shows: "
                      "the rows of active allocations cannot be named. Name the *.xplane.pb that it was made of",
                      names.back()));
    for (std::size_t i = 0; i < allocator.rows.size(); ++i) {
      const Row& row = allocator.rows[i];
      const bool is_special = row.sample < 0;
      const std::int64_t index = is_special ? row.special : row.sample;
      const std::size_t count = is_special ? allocator.special.size() : allocator.samples.size();
      if (index < 0 || static_cast<std::uint64_t>(index) >= count)
        return fail(fmt::format("{}: row {} of its active allocations names {} {}; expected one below {}", names.back(),
                                i + 1, is_special ? "special allocation" : "moment", index, count));
      if (row.count < 0)
        return fail(fmt::format("{}: row {} of its active allocations has {} occurrences; expected 0 or more",
                                names.back(), i + 1, row.count));
      const auto place = static_cast<std::size_t>(index);
      const MemoryActivity& activity = is_special ? allocator.special[place] : allocator.samples[place].activity;
      held.push_back({number, activity.size_bytes(), static_cast<std::uint64_t>(row.count),
                      allocation_stack(symbols, activity.op, activity.region, names.back()),
                      allocation_label(symbols, activity.data_type, activity.shape)});
    }
  }
  auto out = snapshot_of_blocks(names, held);
  if (!out) return out;
  out->notes.push_back(
      "it has samples of the events, and not all of them: what is shown is what was live at the peak, where "
      "'unused preallocated device memory' is also what earlier steps hold. The *.xplane.pb names that");
  add_samples(profile, *out);
  return out;
}

Result<Snapshot> snapshot_of(const MemoryProfile& profile, Symbols& symbols, bool keep_events) {
  bool has_rows = false;
  bool has_moments = false;
  bool has_all_events = true;
  for (const Allocator& allocator : profile.allocators) {
    const auto& moments = allocator.timeline.empty() ? allocator.samples : allocator.timeline;
    has_rows = has_rows || !allocator.rows.empty();
    has_moments = has_moments || !moments.empty();
    has_all_events = has_all_events && are_all_events(moments);
  }
  if (!has_rows && !has_moments)
    return fail(
        "has no allocations: nor has the profile that it was made of. TensorFlow and JAX record them on GPUs; in JAX, "
        "jax.profiler.save_device_memory_profile(FILE) writes what holds the memory");
  if (!has_all_events && !has_rows)
    return fail("has neither all events nor a table of active allocations, which a memory profile has");
  return has_all_events ? events_of(profile, symbols, keep_events) : peak_of(profile, symbols);
}

/// The message begins with an entry of its map: a name and a message.
bool is_message(std::string_view head) {
  constexpr std::size_t kLongestName = 127;
  if (!head.starts_with('\n')) return false;
  std::size_t at = 1;
  while (at < head.size() && (static_cast<unsigned char>(head[at]) & 0x80U) != 0) ++at;
  if (at + 2 >= head.size() || at > 10 || head[at + 1] != '\n') return false;
  ProtoFields entry(head.substr(at + 1));
  if (!entry.next() || entry.number() != 1 || entry.bytes().empty() || entry.bytes().size() > kLongestName)
    return false;
  return std::all_of(entry.bytes().begin(), entry.bytes().end(), [](char c) { return c > ' ' && c < 0x7f; }) &&
         head.substr(at + 3 + entry.bytes().size()).starts_with('\x12');
}

/// Its JSON names the map.
int looks_like_memory_profile(std::string_view head, std::string_view) {
  if (is_message(head)) return 85;
  for (const std::string_view name : {"\"memoryProfilePerAllocator\""sv, "\"memory_profile_per_allocator\""sv})
    if (trimmed(head).starts_with('{') && head.find(name) != std::string_view::npos) return 100;
  return 0;
}

Result<Snapshot> read_bytes(std::string_view bytes, Symbols& symbols, bool keep_events) {
  if (is_message(bytes.substr(0, kHeadBytes)) || !trimmed(bytes).starts_with('{')) {
    const auto profile = ProtoProfile(bytes).read();
    return profile ? snapshot_of(*profile, symbols, keep_events) : Result<Snapshot>(fail(profile.error()));
  }
  const auto json = Json::parse(bytes);
  if (!json) return fail(json.error());
  const auto profile = JsonProfile().read(*json);
  return profile ? snapshot_of(*profile, symbols, keep_events) : Result<Snapshot>(fail(profile.error()));
}

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions& options) {
  const auto bytes = read_whole(input, kMostBytes, kLimit);
  if (!bytes) return fail(bytes.error());
  auto snapshot = read_bytes(*bytes, symbols, options.keep_events);
  if (!snapshot) return fail(fmt::format("{}: {}", input.name(), snapshot.error().message));
  snapshot->file = input.name();
  snapshot->file_bytes = bytes->size();
  return snapshot;
}

}  // namespace

extern const TraceFormatInfo memory_profile_trace_format;
const TraceFormatInfo memory_profile_trace_format{
    "memory-profile",
    "memory profiles of XProf, as of its tool memory_profile, JSON or message (docs/formats/xprof.md)",
    looks_like_memory_profile,
    read,
    nullptr,
    true};

}  // namespace vramtrack::trace
