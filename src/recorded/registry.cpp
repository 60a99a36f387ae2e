#include "core/registry.hpp"

#include <fmt/format.h>

#include <array>

#include "recorded/recorded.hpp"

namespace vramtrack {

#define VRAMTRACK_RECORDED(name) extern const RecordedInfo name##_recorded;
#include "recorded/recorded.def"

std::span<const RecordedInfo* const> recorded_sources() {
  static const std::array kinds = {
#define VRAMTRACK_RECORDED(name) &name##_recorded,
#include "recorded/recorded.def"
  };
  return kinds;
}

const RecordedInfo* find_recorded(std::string_view name) {
  return find_named(recorded_sources(), name);
}

const RecordedInfo& recorded_at(const std::string& path) {
  const auto* found =
      surest<RecordedInfo>({recorded_sources()}, [&](const RecordedInfo& kind) { return kind.recognise(path); });
  return found != nullptr ? *found : *recorded_sources().front();
}

Result<std::vector<RecordedPart>> plan_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                                const RecordedOptions& options) {
  if (paths.size() > kind.most_files)
    return fail(fmt::format("a {0} cannot be combined with other files; name one {0}, or logs only", kind.name));
  return kind.plan(paths, options);
}

Result<RecordedPart> plan_one_recorded(const RecordedInfo& kind, const std::vector<std::string>& paths,
                                       const RecordedOptions& options) {
  auto parts = plan_recorded(kind, paths, options);
  if (!parts) return fail(std::move(parts.error()));
  if (parts->size() != 1)
    return fail(fmt::format("these are {} recordings that do not belong together; name one", parts->size()));
  return std::move(parts->front());
}

}  // namespace vramtrack
