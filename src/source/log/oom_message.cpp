#include "source/log/oom_message.hpp"

#include <charconv>

#include "explain/judge.hpp"
#include "explain/render.hpp"

namespace vramtrack {
namespace {

/// What every message contains, so that most other lines are ruled out quickly.
bool may_be_message(std::string_view line) {
  constexpr std::string_view kMemory = "memory";
  constexpr std::string_view kBefore = "of ";
  for (std::size_t at = line.find(kMemory); at != std::string_view::npos; at = line.find(kMemory, at + 1))
    if (at >= kBefore.size() && line[at - 3] == 'o' && line[at - 2] == 'f') return true;
  for (const std::string_view mark : {"OfMemory", "OF_MEMORY", "MemoryAllocation", "ALLOC_FAILED",
                                      "No available memory", "Not enough memory", "Device memory allocation"})
    if (line.find(mark) != std::string_view::npos) return true;
  return false;
}

}  // namespace

bool tells_out_of_memory(std::string_view line) {
  if (!may_be_message(line)) return false;
  for (const explain::Message& message : explain::read_messages(line))
    if (message.wording->role == explain::Role::device) return true;
  return false;
}

std::string why_out_of_memory(std::string_view line) {
  const auto explanation = explain::explain(explain::read_messages(line));
  if (!explanation || explanation->cause == explain::Cause::unknown) return "";
  // Whether what was too big had grown shows in the readings, not in the message alone.
  const bool is_own_need = explanation->cause == explain::Cause::too_big || explanation->cause == explain::Cause::full;
  return is_own_need ? explanation->because : explain::headline(*explanation, "");
}

std::optional<int> gpu_of_message(std::string_view line) {
  constexpr std::string_view kGpu = "GPU ";
  for (std::size_t at = line.find(kGpu); at != std::string_view::npos; at = line.find(kGpu, at + 1)) {
    const std::string_view rest = line.substr(at + kGpu.size());
    int index = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), index);
    if (error == std::errc{} && index >= 0) return index;
  }
  return std::nullopt;
}

}  // namespace vramtrack
