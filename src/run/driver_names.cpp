#include "run/driver_names.hpp"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>
#include <vector>

#include "run/elf_symbols.hpp"
#include "run/library_folder.hpp"

namespace vramtrack::run {
namespace {

constexpr std::string_view kSpare = "vramtrack_spare_";

struct Renaming {
  std::vector<std::pair<std::string, std::string>> names;  ///< a spare function and its new name
  std::vector<std::string> left_over;                      ///< names that are too long, or exceed the spares
};

Renaming plan(const ElfSymbols& probe, const ElfSymbols& driver) {
  Renaming plan;
  std::unordered_set<std::string_view> known;
  std::vector<std::string_view> spares;
  for (const std::string_view name : probe.functions()) {
    if (name.starts_with(kSpare)) spares.push_back(name);
    known.insert(name);
  }
  for (const std::string_view name : driver.functions()) {
    if (!name.starts_with("cu") || !known.insert(name).second) continue;
    if (plan.names.size() < spares.size() && name.size() <= spares[plan.names.size()].size())
      plan.names.emplace_back(spares[plan.names.size()], name);
    else
      plan.left_over.emplace_back(name);
  }
  return plan;
}

std::string functions(std::size_t count) {
  return count == 1 ? "1 function" : fmt::format("{} functions", count);
}

}  // namespace

ProbeLibrary with_names_of_driver(const ProbeLibrary& library, const std::vector<std::string>& directories,
                                  const Warn& warn) {
  if (library.cuda_driver.empty()) return library;
  auto probe = ElfSymbols::read(library.path);
  const auto driver = ElfSymbols::read(library.cuda_driver);
  if (!probe || !driver) {
    warn(fmt::format("{}; functions that are new in this CUDA driver may not be found by name",
                     (!probe ? probe.error() : driver.error()).message));
    return library;
  }
  const Renaming renaming = plan(*probe, *driver);
  const auto give_up = [&](std::string_view reason, std::string_view example, std::size_t count) {
    warn(fmt::format(
        "the CUDA driver exports {} that this version of vramtrack does not know ({}), and {}. A program that "
        "looks such a function up by name does not find it. Use a newer vramtrack",
        functions(count), example, reason));
  };
  if (!renaming.left_over.empty())
    give_up("the probe has no room for them", renaming.left_over.front(), renaming.left_over.size());
  if (renaming.names.empty()) return library;
  const auto give_all_up = [&](std::string_view reason) {
    give_up(reason, renaming.names.front().second, renaming.names.size());
    return library;
  };
  const auto directory = usable_library_folder(directories);
  if (!directory)
    return give_all_up(
        fmt::format("no folder can hold a copy of the probe that has them ({})", directory.error().message));
  if (!probe->rename(renaming.names)) return give_all_up("the probe was linked without spare functions");
  const auto copy = copy_library(probe->bytes(), library.path, *directory);
  if (!copy) return give_all_up(fmt::format("the probe cannot be copied: {}", copy.error().message));
  return {*copy, library.cuda_driver};
}

}  // namespace vramtrack::run
