// Objects of a tool's JSON, one for each GPU, read by the names of their members.
#pragma once

#include <memory>
#include <string_view>

#include "source/log/format.hpp"

namespace vramtrack {

/// The names of the members in a tool's JSON; empty: it has no such member.
struct GpuObjectKeys {
  std::string_view gpus;  ///< the list of the GPUs of one reading; empty: the objects are in arrays
  std::string_view time;  ///< a sibling of that list
  std::string_view name, uuid, index, used, total, free, busy;
  std::string_view percent;                               ///< used memory in per cent, if there is no amount
  std::string_view process, user, command, process_used;  ///< of the list "processes"
  double unit_bytes = 1;
};

Result<std::unique_ptr<LogParser>> make_gpu_objects(const LogHead& head, const GpuObjectKeys& keys);

}  // namespace vramtrack
