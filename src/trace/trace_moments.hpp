// TraceMoments: what a process held at its program's marks and at moments named by a caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"
#include "trace/call_site.hpp"

namespace vramtrack::trace {

struct TraceMark {
  std::string name;
  std::uint64_t time_us = 0;
  std::int64_t live_bytes = 0;
  std::vector<Held> sites;  ///< per call site, if the moment was requested
};

/// A moment that a caller names: a mark ("epoch", "epoch#3": the third of that name), or a time ("12.5s").
struct MomentName {
  std::string mark;
  std::uint64_t number = 1;
  std::optional<std::uint64_t> time_us;
};
/// Errors: `text` is neither a time nor a name.
Result<MomentName> parse_moment(const std::string& text);

/// What each call site holds now.
std::vector<Held> held_by(const std::vector<CallSite>& sites);

class TraceMoments {
 public:
  void want(std::vector<MomentName> moments) {
    wanted_ = std::move(moments);
    moments_.resize(wanted_.size());
  }
  /// Call before the event at `now_us`.
  void pass(std::uint64_t now_us, const std::vector<CallSite>& sites, std::int64_t live_bytes) {
    if (!wanted_.empty()) take_until(now_us, sites, live_bytes);
  }
  void mark(const std::string& name, std::uint64_t time_us, const std::vector<CallSite>& sites,
            std::int64_t live_bytes);

  [[nodiscard]] const std::vector<TraceMark>& marks() const { return marks_; }
  /// The requested moments, in the order of the request; nullopt: the process has no such moment.
  [[nodiscard]] const std::vector<std::optional<TraceMark>>& all() const { return moments_; }

 private:
  void take_until(std::uint64_t now_us, const std::vector<CallSite>& sites, std::int64_t live_bytes);

  std::vector<MomentName> wanted_;
  std::vector<std::optional<TraceMark>> moments_;  ///< in the order of wanted_
  std::vector<TraceMark> marks_;
  std::unordered_map<std::string, std::uint64_t> mark_counts_;
};

}  // namespace vramtrack::trace
