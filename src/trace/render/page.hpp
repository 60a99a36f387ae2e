// The data of a timeline page: what was live over a recording, of each device, by site and by category. The page's
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

/// Points of a page at its finest level of detail, and of its coarsest, which is drawn at first. A level has four times
/// the points of the one above it, in pieces that a browser reads when they are zoomed into.
inline constexpr std::size_t kPageParts = 65536;
inline constexpr std::size_t kCoarseParts = 4096;
/// All finer levels of a page together; one that does not fit is left out with those below it.
inline constexpr std::size_t kMostLevelBytes = std::size_t{24} << 20U;

/// A moment to show: a step, an epoch, an allocation that failed.
struct PageMark {
  std::int64_t time_us = kNoTime;
  std::optional<std::uint64_t> event;  ///< where it is known
  std::string words;
  bool is_failure = false;
};

/// What a page shows of one device of one process.
struct PagePart {
  std::string name;
  Activity activity{kPageParts};
  bool has_trace = true;  ///< false: `activity` has what is live at the end, and no history
  std::vector<PageMark> marks;
  /// The stack of a holder; it may be looked up only now.
  std::function<StackId(Holder)> stack_of;
  LineOf line_of;  ///< empty: site_of()
  /// What a holder's memory is for, if that of its stack is the second one; empty: that.
  std::function<Category(Holder, Category)> category_of;
  /// Whose segments are drawn: those of `device`; null: the recording has none.
  const Snapshot* snapshot = nullptr;
  std::uint32_t device = 0;
};

/// The devices of a snapshot that have a trace or segments. The snapshot must outlive it.
std::vector<PagePart> page_parts(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device = {});

/// "vramtrack.timeline_page.v1"; every '<' is escaped, so that it may be within a script element.
/// `most_level_bytes`: of the finer levels.
std::string page_json(std::string_view title, std::span<const PagePart> parts, const Symbols& symbols,
                      std::size_t most_level_bytes = kMostLevelBytes);

}  // namespace vramtrack::trace
