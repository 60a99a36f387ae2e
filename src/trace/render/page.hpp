// The data of a timeline page: live memory over a recording, for each device, by site and by category. The page's
// script (page/src/timeline.ts) draws it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/activity.hpp"
#include "trace/category_name.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// The points of a page at its finest level of detail, and at its coarsest, which is drawn first. A level has four
/// times as many points as the one above, in pieces that a browser reads when the user zooms into them.
inline constexpr std::size_t kPageParts = 65536;
inline constexpr std::size_t kCoarseParts = 4096;
/// The size of all finer levels of a page; one that does not fit is left out with those below it.
inline constexpr std::size_t kMostLevelBytes = std::size_t{24} << 20U;

/// A moment to show: a step, an epoch, an allocation that failed.
struct PageMark {
  std::int64_t time_us = kNoTime;
  std::optional<std::uint64_t> event;  ///< if known
  std::string words;
  bool is_failure = false;
};

/// What a page shows about one device of one process.
struct PagePart {
  std::string name;
  Activity activity{kPageParts};
  bool has_trace = true;  ///< false: `activity` has only the live memory at the end
  std::vector<PageMark> marks;
  /// The stack of a holder, which may be looked up only when needed.
  std::function<StackId(Holder)> stack_of;
  LineOf line_of;  ///< empty: site_of()
  /// The category of a holder, given that of its stack; if empty, that of its stack is used.
  std::function<Category(Holder, Category)> category_of;
  /// The segments of `device` in this snapshot are drawn; null: the recording has none.
  const Snapshot* snapshot = nullptr;
  std::uint32_t device = 0;
};

/// The devices of a snapshot that have a trace or segments. The snapshot must outlive it.
std::vector<PagePart> page_parts(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device = {});

/// "vramtrack.timeline_page.v1"; every '<' is escaped, so that it may be within a script element.
/// `most_level_bytes`: the limit on the finer levels.
std::string page_json(std::string_view title, std::span<const PagePart> parts, const Symbols& symbols,
                      std::size_t most_level_bytes = kMostLevelBytes);

}  // namespace vramtrack::trace
