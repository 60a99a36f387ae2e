// Profiles of time (XSpace) of TensorFlow, JAX and torch_xla, PLUGINS/profile/RUN/HOST.xplane.pb: reads only the
// allocators' allocations and frees. The format: xplane.proto (github.com/openxla/xla, third_party/tsl/tsl/profiler/
// protobuf); the names of events and their figures: xplane_schema.cc (xla/tsl/profiler/utils); the recorder: AddTraceMe
// of bfc_allocator.cc (xla/tsl/framework); XProf's reader: xplane_to_memory_profile.cc
// (github.com/openxla/xprof).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/protobuf.hpp"
#include "trace/allocator_events.hpp"
#include "trace/format.hpp"
#include "trace/whole_input.hpp"

namespace vramtrack::trace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kMostBytes = std::size_t{1} << 31;

/// DataType of TensorFlow (tensorflow/core/framework/types.proto), by number, as DataTypeString() writes it.
constexpr std::array kDataTypes = {""sv,           "float"sv,  "double"sv,    "int32"sv,   "uint8"sv,   "int16"sv,
                                   "int8"sv,       "string"sv, "complex64"sv, "int64"sv,   "bool"sv,    "qint8"sv,
                                   "quint8"sv,     "qint32"sv, "bfloat16"sv,  "qint16"sv,  "quint16"sv, "uint16"sv,
                                   "complex128"sv, "half"sv,   "resource"sv,  "variant"sv, "uint32"sv,  "uint64"sv};

/// The figures of an event that this reader uses.
enum class Figure : std::uint8_t {
  ordinal,
  allocator_name,
  bytes_allocated,
  peak_bytes_in_use,
  requested_bytes,
  allocation_bytes,
  address,
  op,
  region_type,
  data_type,
  shape,
};
constexpr std::array<std::pair<std::string_view, Figure>, 12> kFigures = {{
    {"index_on_host", Figure::ordinal},
    {"device_ordinal", Figure::ordinal},
    {"allocator_name", Figure::allocator_name},
    {"bytes_allocated", Figure::bytes_allocated},
    {"peak_bytes_in_use", Figure::peak_bytes_in_use},
    {"requested_bytes", Figure::requested_bytes},
    {"allocation_bytes", Figure::allocation_bytes},
    {"addr", Figure::address},
    {"tf_op", Figure::op},
    {"region_type", Figure::region_type},
    {"data_type", Figure::data_type},
    {"shape", Figure::shape},
}};
constexpr std::size_t kFigureCount = 11;

/// A number or a text, as written: a name consisting of digits is stored as a number.
struct Value {
  std::optional<std::int64_t> number;
  std::string_view text;
  [[nodiscard]] std::string words() const { return number ? fmt::format("{}", *number) : std::string(text); }
};
using Values = std::array<Value, kFigureCount>;

class XSpace {
 public:
  XSpace(std::string_view bytes, Symbols& symbols) : bytes_(bytes), symbols_(symbols) {}

  Result<Snapshot> read(bool keep_events) {
    ProtoFields fields(bytes_);
    std::size_t end = 0;
    for (std::size_t number = 1; fields.next();) {
      if (!fields.is_bytes()) continue;
      end = offset(fields.bytes()) + fields.bytes().size();
      if (fields.number() != 1) continue;
      if (Status plane = read_plane(fields.bytes(), number++); !plane) return fail(plane.error());
    }
    if (!fields.is_complete()) return fail(damaged(end, "the next plane"));
    if (events_.events.empty())
      return fail(
          "has no allocations (events MemoryAllocation and MemoryDeallocation): it shows where the time went. "
          "TensorFlow and JAX record them on GPUs, at host_tracer_level 2 (the default); in JAX, "
          "jax.profiler.save_device_memory_profile(FILE) writes what holds the memory");
    auto out = snapshot_of_events(std::move(events_), symbols_, keep_events);
    if (out && without_address_ > 0)
      out->notes.push_back(
          fmt::format("{} without an address or a size is left out", format_count(without_address_, "event")));
    return out;
  }

 private:
  [[nodiscard]] std::size_t offset(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - bytes_.data());
  }
  [[nodiscard]] static Error damaged(std::size_t offset, std::string_view what) {
    return Error{fmt::format("at byte {}: {} is cut off or damaged: is the file complete?", offset, what)};
  }

  struct Plane {
    std::size_t number = 0;
    std::string name;
    std::unordered_map<std::uint64_t, bool> is_alloc;             ///< for the events that are read, by id
    std::unordered_map<std::uint64_t, std::string_view> strings;  ///< names of figures, to which texts refer
    std::unordered_map<std::uint64_t, Figure> figures;
    [[nodiscard]] std::string words() const {
      return fmt::format("plane {}{}{}", number, name.empty() ? "" : " ", printable(name));
    }
  };

  /// Reads an entry of a map: its key, and the name of its value.
  static std::optional<std::pair<std::uint64_t, std::string_view>> named(std::string_view entry) {
    ProtoFields fields(entry);
    std::uint64_t key = 0;
    std::string_view name;
    bool is_whole = true;
    while (fields.next()) {
      if (fields.number() == 1) key = fields.value();
      if (fields.number() != 2) continue;
      ProtoFields value(fields.bytes());
      while (value.next())
        if (value.number() == 2) name = value.bytes();
      is_whole = value.is_complete();
    }
    if (!is_whole || !fields.is_complete()) return {};
    return std::pair(key, name);
  }

  Status read_plane(std::string_view bytes, std::size_t number) {
    Plane plane;
    plane.number = number;
    std::vector<std::string_view> lines;
    ProtoFields fields(bytes);
    while (fields.next()) {
      if (!fields.is_bytes()) continue;
      if (fields.number() == 2) plane.name = fields.bytes();
      if (fields.number() == 3) lines.push_back(fields.bytes());
      if (fields.number() != 4 && fields.number() != 5) continue;
      const auto entry = named(fields.bytes());
      if (!entry) return fail(damaged(offset(fields.bytes()), "a name in " + plane.words()));
      const auto& [id, name] = *entry;
      if (fields.number() == 4) {
        if (name == "MemoryAllocation"sv || name == "MemoryDeallocation"sv)
          plane.is_alloc[id] = name == "MemoryAllocation"sv;
        continue;
      }
      plane.strings[id] = name;
      for (const auto& [of_figure, figure] : kFigures)
        if (name == of_figure) plane.figures[id] = figure;
    }
    if (!fields.is_complete()) return fail(damaged(offset(bytes), plane.words()));
    if (plane.is_alloc.empty()) return {};
    for (const std::string_view line : lines)
      if (Status read = read_line(line, plane); !read) return read;
    return {};
  }

  Status read_line(std::string_view bytes, const Plane& plane) {
    std::int64_t begin_ns = 0;
    ProtoFields head(bytes);
    while (head.next())
      if (head.number() == 3) begin_ns = static_cast<std::int64_t>(head.value());
    if (!head.is_complete()) return fail(damaged(offset(bytes), "a line of " + plane.words()));
    if (begin_ns >> 62 != 0)
      return fail(fmt::format("at byte {}: a line of {} begins {} ns after 1970, which no clock shows", offset(bytes),
                              plane.words(), begin_ns));
    ProtoFields fields(bytes);
    while (fields.next()) {
      if (fields.number() != 4 || !fields.is_bytes()) continue;
      if (Status read = read_event(fields.bytes(), plane, begin_ns); !read) return read;
    }
    return {};
  }

  Status read_event(std::string_view bytes, const Plane& plane, std::int64_t begin_ns) {
    std::uint64_t id = 0;
    std::int64_t offset_ps = 0;
    figures_.clear();
    ProtoFields fields(bytes);
    while (fields.next()) {
      if (fields.number() == 1) id = fields.value();
      if (fields.number() == 2) offset_ps = static_cast<std::int64_t>(fields.value());
      if (fields.number() == 4) figures_.push_back(fields.bytes());
    }
    if (!fields.is_complete()) return fail(damaged(offset(bytes), "an event of " + plane.words()));
    const auto kind = plane.is_alloc.find(id);
    if (kind == plane.is_alloc.end()) return {};
    Values values;
    for (const std::string_view figure : figures_)
      if (!read_figure(figure, plane, values))
        return fail(damaged(offset(figure), "a figure of an event of " + plane.words()));
    return add(values, kind->second, begin_ns, offset_ps, offset(bytes));
  }

  static bool read_figure(std::string_view bytes, const Plane& plane, Values& into) {
    ProtoFields fields(bytes);
    std::uint64_t id = 0;
    Value value;
    while (fields.next()) switch (fields.number()) {
        case 1:
          id = fields.value();
          break;
        case 3:
        case 4:
          value.number = static_cast<std::int64_t>(fields.value());
          break;
        case 5:
          value.text = fields.bytes();
          break;
        case 7:
          if (const auto known = plane.strings.find(fields.value()); known != plane.strings.end())
            value.text = known->second;
          break;
        default:
          break;
      }
    if (const auto known = plane.figures.find(id); known != plane.figures.end())
      into[static_cast<std::size_t>(known->second)] = value;
    return fields.is_complete();
  }

  Status add(const Values& values, bool is_alloc, std::int64_t begin_ns, std::int64_t offset_ps, std::size_t at) {
    const auto of = [&values](Figure figure) -> const Value& { return values[static_cast<std::size_t>(figure)]; };
    AllocatorEvent event;
    event.is_alloc = is_alloc;
    const std::int64_t offset_ns = offset_ps / 1000 - (offset_ps % 1000 < 0 ? 1 : 0);
    event.time_ns = begin_ns + offset_ns;
    event.time_ps = static_cast<std::uint32_t>(offset_ps - offset_ns * 1000);
    const std::int64_t requested = of(Figure::requested_bytes).number.value_or(0);
    const std::int64_t allocated = of(Figure::allocation_bytes).number.value_or(0);
    if (requested < 0 || allocated < 0)
      return fail(
          fmt::format("at byte {}: an event of {} bytes; expected 0 or more", at, std::min(requested, allocated)));
    event.size_bytes = static_cast<std::uint64_t>(allocated > 0 ? allocated : requested);
    event.address = static_cast<std::uint64_t>(of(Figure::address).number.value_or(0));
    if (event.address == 0 || (is_alloc && event.size_bytes == 0)) return ++without_address_, Status{};
    if (const auto in_use = of(Figure::bytes_allocated).number; in_use && *in_use >= 0)
      event.in_use_bytes = static_cast<std::uint64_t>(*in_use);
    // Like XProf, use the name of the allocator, else the number of the device.
    const Value& named = of(Figure::allocator_name);
    const std::string name = named.number || !named.text.empty() ? named.words() : of(Figure::ordinal).words();
    const auto [place, is_new] = allocators_.try_emplace(name, static_cast<std::uint32_t>(events_.names.size()));
    if (is_new) {
      if (events_.names.size() == kMostAllocators)
        return fail(fmt::format("at byte {}: more than {} allocators: this is not a profile of a program", at,
                                kMostAllocators));
      events_.names.push_back(name.empty() ? "(no allocator named)" : printable(name));
      events_.lifetime_peaks.push_back(0);
    }
    event.allocator = place->second;
    std::uint64_t& peak = events_.lifetime_peaks[event.allocator];
    if (const auto its = of(Figure::peak_bytes_in_use).number; its && *its > 0)
      peak = std::max(peak, static_cast<std::uint64_t>(*its));
    if (is_alloc) {
      event.stack = allocation_stack(symbols_, of(Figure::op).words(), of(Figure::region_type).words(),
                                     events_.names[event.allocator]);
      event.label = allocation_label(symbols_, data_type(of(Figure::data_type)), of(Figure::shape).words());
    }
    events_.events.push_back(event);
    return {};
  }

  static std::string data_type(const Value& value) {
    if (!value.number || *value.number == 0) return std::string(value.text);
    if (*value.number > 0 && static_cast<std::uint64_t>(*value.number) < kDataTypes.size())
      return std::string(kDataTypes[static_cast<std::size_t>(*value.number)]);
    return fmt::format("type {}", *value.number);
  }

  std::string_view bytes_;
  Symbols& symbols_;
  AllocatorEvents events_;
  std::unordered_map<std::string, std::uint32_t> allocators_;
  std::vector<std::string_view> figures_;
  std::uint64_t without_address_ = 0;
};

/// A space begins with its first plane, and that with its id and its name.
int looks_like_xspace(std::string_view head, std::string_view name) {
  if (!head.starts_with('\n')) return 0;
  std::size_t at = 1;
  while (at < head.size() && (static_cast<unsigned char>(head[at]) & 0x80U) != 0) ++at;
  if (at + 1 >= head.size() || at > 10) return 0;
  ProtoFields plane(head.substr(at + 1));
  bool has_name = plane.next();
  if (has_name && plane.number() == 1 && !plane.is_bytes()) has_name = plane.next();
  if (has_name && plane.number() == 2)
    for (const std::string_view known :
         {"/host:"sv, "/device:"sv, "/virtualdevice:"sv, "#Chip"sv, "Task Environment"sv})
      if (plane.bytes().starts_with(known)) return 95;
  const std::string_view suffix = ".xplane.pb";
  return name.ends_with(suffix) || name.ends_with(".xplane.pb.gz"sv) ? 60 : 0;
}

Result<Snapshot> read(ByteInput input, Symbols& symbols, const ReadOptions& options) {
  const auto bytes = read_whole(input, kMostBytes, "2 GiB, the most that a message of Protocol Buffers has");
  if (!bytes) return fail(bytes.error());
  auto snapshot = XSpace(*bytes, symbols).read(options.keep_events);
  if (!snapshot) return fail(fmt::format("{}: {}", input.name(), snapshot.error().message));
  snapshot->file = input.name();
  snapshot->file_bytes = bytes->size();
  return snapshot;
}

}  // namespace

extern const TraceFormatInfo xplane_trace_format;
const TraceFormatInfo xplane_trace_format{
    "xplane",
    "profiles of XProf, as of jax.profiler.trace and tf.profiler (*.xplane.pb, docs/formats/xprof.md)",
    looks_like_xspace,
    read,
    nullptr,
    true};

}  // namespace vramtrack::trace
