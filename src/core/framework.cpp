#include "core/framework.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/what_runs.hpp"

namespace vramtrack {
namespace {

enum class Purpose : std::uint8_t { any, inference };

struct Framework {
  std::string_view name;
  Purpose purpose;
  std::string_view programs;
  std::string_view libraries;
  std::string_view causes;
  std::string_view next;
};

constexpr std::array kFrameworks = {
#define VRAMTRACK_FRAMEWORK(name, purpose, programs, libraries, causes, next) \
  Framework{name, Purpose::purpose, programs, libraries, causes, next},
#include "core/framework.def"
#undef VRAMTRACK_FRAMEWORK
};

constexpr std::string_view kAnyCauses =
    "memory allocated on every iteration or request and kept: buffers, streams, events, graphs or contexts that are "
    "never freed|a cache without a bound|failed requests whose memory is not released on the error path";
constexpr std::string_view kAnyNext =
    "run one iteration or request many times with the same input: a cache stops growing, a leak does not|"
    "compute-sanitizer --tool memcheck --leak-check full names CUDA allocations that are never freed|"
    "restart the process as a stop-gap before memory is predicted to run out";

/// The lines of the list that apply to programs of that kind.
std::vector<std::string> lines_of(std::string_view list, ProgramKind kind) {
  constexpr std::string_view kServing = "serving:";
  constexpr std::string_view kTraining = "training:";
  const bool serves = kind == ProgramKind::serving;
  std::vector<std::string> lines;
  any_part(list, [&](std::string_view part) {
    const bool of_serving = part.substr(0, kServing.size()) == kServing;
    const bool of_training = part.substr(0, kTraining.size()) == kTraining;
    if (of_serving ? serves : !(of_training && serves))
      lines.emplace_back(part.substr(of_serving ? kServing.size() : of_training ? kTraining.size() : 0));
    return false;
  });
  return lines;
}

/// nullptr if nothing specific is known about it.
const Framework* find_framework(std::string_view name) {
  for (const Framework& entry : kFrameworks)
    if (entry.name == name && !entry.causes.empty()) return &entry;
  return nullptr;
}

}  // namespace

std::string_view recognise_framework(std::string_view command, std::string_view name,
                                     std::span<const std::string> mapped_library_names) {
  const WhatRuns runs(command, name);
  for (const Framework& framework : kFrameworks) {
    const bool maps = any_part(framework.libraries, [&](std::string_view pattern) {
      return std::any_of(mapped_library_names.begin(), mapped_library_names.end(), [&](const std::string& library) {
        return std::string_view(library).substr(0, pattern.size()) == pattern;
      });
    });
    if (maps || runs.fits(framework.programs)) return framework.name;
  }
  return {};
}

bool is_for_inference(std::string_view framework) {
  const Framework* const known = find_framework(framework);
  return known != nullptr && known->purpose == Purpose::inference;
}

std::vector<std::string> framework_causes(std::string_view framework, ProgramKind kind) {
  const Framework* const known = find_framework(framework);
  return lines_of(known != nullptr ? known->causes : kAnyCauses, kind);
}

std::vector<std::string> framework_advice(std::string_view framework, ProgramKind kind) {
  const Framework* const known = find_framework(framework);
  return lines_of(known != nullptr ? known->next : kAnyNext, kind);
}

}  // namespace vramtrack
