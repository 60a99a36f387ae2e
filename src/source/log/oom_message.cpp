#include "source/log/oom_message.hpp"

#include <array>
#include <charconv>

#include "explain/judge.hpp"
#include "explain/render.hpp"
#include "source/log/first_pairs.hpp"

namespace vramtrack {
namespace {

/// Each message has one of these, so that most other lines are ruled out quickly.
constexpr std::string_view kMemory = "memory";  // behind "of "
constexpr std::array<std::string_view, 8> kMarks = {kMemory,
                                                    "OfMemory",
                                                    "OF_MEMORY",
                                                    "MemoryAllocation",
                                                    "ALLOC_FAILED",
                                                    "No available memory",
                                                    "Not enough memory",
                                                    "Device memory allocation"};

bool may_be_message(std::string_view line) {
  static const FirstPairs marks(kMarks);
  return marks.any_of(line, [&](std::string_view mark, std::size_t at) {
    return mark != kMemory || (at >= 3 && line[at - 3] == 'o' && line[at - 2] == 'f');
  });
}

}  // namespace

bool tells_out_of_memory(std::string_view line) {
  if (!may_be_message(line)) return false;
  for (const explain::Message& message : explain::read_messages(line))
    // A line that does not say whose memory it was tells nothing of a GPU.
    if (message.wording->role == explain::Role::device && message.wording->name != "statement") return true;
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
