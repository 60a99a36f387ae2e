// SiteNames: the line of a stack of a running program that a person looks at, as words, and what its memory is for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "telemetry/follower.hpp"
#include "trace/category_name.hpp"
#include "trace/own_code.hpp"
#include "trace/probe_names.hpp"

namespace vramtrack::telemetry {

/// Of one process. A stack is looked up when it is first seen, and again when it has been forgotten. Not thread-safe.
/// Memory: at most some 3 MiB, and libdw's, of the files whose names were looked up.
class SiteNames {
 public:
  struct Place {
    std::uint32_t number = 0;  ///< the line's here; in order from 1; 0: all lines after kMostNames
    trace::Category category = trace::Category::unknown;
  };
  Place place_of(FollowedProcess& process, const FollowedStack& stack);
  /// "train.py:57 train_step".
  [[nodiscard]] const std::string& name(std::uint32_t number) const { return names_[number]; }

  static constexpr std::size_t kMostNames = 4096;
  static constexpr std::size_t kMostStacks = 8192;  ///< remembered; with more, all are forgotten

 private:
  /// What was found out about a stack.
  struct Seen {
    std::string words;
    trace::Category category = trace::Category::unknown;
  };
  Seen look_at(FollowedProcess& process, const FollowedStack& stack);
  Seen look_at_native(const FollowedProcess& process, const std::vector<std::uint64_t>& addresses);

  trace::OwnCode own_;
  std::unique_ptr<trace::NativeNames> native_;
  std::unordered_map<std::uint64_t, Place> stacks_;  ///< by a hash of 64 bits
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_{"(other lines)"};
};

/// Whether a frame of the stack belongs to an allocator that hands out blocks of what it takes from the driver, and
/// that is traced itself.
bool is_of_traced_allocator(const std::vector<MappedFile>& files, const std::vector<std::uint64_t>& addresses);

}  // namespace vramtrack::telemetry
