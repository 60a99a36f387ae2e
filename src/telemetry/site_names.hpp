// SiteNames: the source line to show for a stack of a running program, as text, and the category of its memory.
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

/// For one process. A stack is looked up when it is first seen, and again after it has been forgotten. Not thread-safe.
/// Memory: at most about 3 MiB, plus libdw's for the files in which names were looked up.
class SiteNames {
 public:
  struct Place {
    std::uint32_t number = 0;  ///< of the line, from 1 in order; 0: all lines after kMostNames
    trace::Category category = trace::Category::unknown;
  };
  Place place_of(FollowedProcess& process, const FollowedStack& stack);
  /// "train.py:57 train_step".
  [[nodiscard]] const std::string& name(std::uint32_t number) const { return names_[number]; }

  static constexpr std::size_t kMostNames = 4096;
  static constexpr std::size_t kMostStacks = 8192;  ///< how many to remember; beyond that, all are forgotten

 private:
  /// The result of looking up a stack.
  struct Seen {
    std::string words;
    trace::Category category = trace::Category::unknown;
  };
  Seen look_at(FollowedProcess& process, const FollowedStack& stack);
  Seen look_at_native(const FollowedProcess& process, const std::vector<std::uint64_t>& addresses);

  trace::OwnCode own_;
  std::unique_ptr<trace::NativeNames> native_;
  std::unordered_map<std::uint64_t, Place> stacks_;  ///< by 64-bit hash
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_{"(other lines)"};
};

/// Whether a frame of the stack belongs to an allocator that is itself traced and divides the driver's memory into
/// blocks.
bool is_of_traced_allocator(const std::vector<MappedFile>& files, const std::vector<std::uint64_t>& addresses);

}  // namespace vramtrack::telemetry
