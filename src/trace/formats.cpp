#include <array>
#include <filesystem>
#include <utility>

#include "core/out_of_memory.hpp"
#include "core/registry.hpp"
#include "trace/format.hpp"

namespace vramtrack::trace {

#define VRAMTRACK_TRACE_FORMAT(name) extern const TraceFormatInfo name##_trace_format;
#include "trace/formats.def"

namespace {

/// A trace is read completely or not at all. Real ones compress 12 to 60 times, even with zstd's strongest setting.
constexpr ByteInputOptions kInput = {.contents = "snapshots", .is_damage_an_error = true, .most_ratio = 250};

Result<TraceInput> recognised(ByteInput bytes, MoreFormats more) {
  const auto head = bytes.peek(kHeadBytes);
  if (!head) return fail(head.error());
  const TraceFormatInfo* format =
      recognise_trace({reinterpret_cast<const char*>(head->data()), head->size()}, bytes.name(), 1, more);
  return TraceInput{format != nullptr ? format : trace_formats().front(), std::move(bytes)};
}

}  // namespace

std::span<const TraceFormatInfo* const> trace_formats() {
  static const std::array formats = {
#define VRAMTRACK_TRACE_FORMAT(name) &name##_trace_format,
#include "trace/formats.def"
  };
  return formats;
}

const TraceFormatInfo* recognise_trace(std::string_view head, std::string_view name, int least, MoreFormats more) {
  const auto sureness = [&](const TraceFormatInfo& format) { return format.recognise(head, name); };
  return surest<TraceFormatInfo>({trace_formats(), more}, sureness, least);
}

const TraceFormatInfo* recognise_trace_file(const std::string& path, int least) {
  const auto format = or_out_of_memory([&]() -> Result<const TraceFormatInfo*> {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return nullptr;
    auto bytes = ByteInput::open(path, kInput);
    if (!bytes) return nullptr;
    const auto head = bytes->peek(kHeadBytes);
    if (!head) return nullptr;
    return recognise_trace({reinterpret_cast<const char*>(head->data()), head->size()}, path, least);
  });
  return format ? *format : nullptr;
}

Result<TraceInput> open_trace(const std::string& path, MoreFormats more) {
  return or_out_of_memory([&]() -> Result<TraceInput> {
    auto bytes = ByteInput::open(path, kInput);
    if (!bytes) return fail(bytes.error());
    return recognised(std::move(*bytes), more);
  });
}

Result<TraceInput> open_trace(std::span<const std::uint8_t> bytes, std::string name, MoreFormats more) {
  return or_out_of_memory([&]() -> Result<TraceInput> {
    auto input = ByteInput::over(bytes, std::move(name), kInput);
    if (!input) return fail(input.error());
    return recognised(std::move(*input), more);
  });
}

Result<Snapshot> read_trace(TraceInput input, Symbols& symbols, const ReadOptions& options) {
  return or_out_of_memory([&]() -> Result<Snapshot> {
    const TraceFormatInfo& format = *input.format;
    if (format.stream == nullptr) return format.read(std::move(input.bytes), symbols, options);
    std::string file = input.bytes.name();
    const std::uint64_t file_bytes = input.bytes.size_bytes().value_or(0);
    StreamSnapshot snapshot(options.keep_events);
    const Status done = format.stream(std::move(input.bytes), symbols,
                                      [&](std::uint32_t device, std::int64_t stream, const AllocEvent& event) {
                                        return snapshot.take(device, stream, event);
                                      });
    if (!done) return fail(done.error());
    Snapshot out = snapshot.finish();
    out.file = std::move(file);
    out.file_bytes = file_bytes;
    return out;
  });
}

Result<std::vector<StreamReplay>> replay_stream(TraceInput input, Symbols& symbols, const TimelineOptions& options) {
  return or_out_of_memory([&]() -> Result<std::vector<StreamReplay>> {
    std::map<std::uint32_t, StreamReplay> devices;
    const Status done = input.format->stream(
        std::move(input.bytes), symbols, [&](std::uint32_t device, std::int64_t, const AllocEvent& event) -> Status {
          const auto [it, is_new] = devices.try_emplace(device, device, options);
          if (Status few = is_new ? refuse_devices(devices.size()) : Status{}; !few) return few;
          return it->second.take(event);
        });
    if (!done) return fail(done.error());
    std::vector<StreamReplay> out;
    for (auto& [device, replay] : devices) out.push_back(std::move(replay));
    return out;
  });
}

}  // namespace vramtrack::trace
