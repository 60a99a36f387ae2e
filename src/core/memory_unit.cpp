#include "core/memory_unit.hpp"

#include <utility>

#include "core/units.hpp"

namespace vramtrack {

std::uint64_t memory_unit(std::string_view word) {
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"mib", kBytesPerMiB},
      {"mb", kBytesPerMiB},
      {"gib", kBytesPerGiB},
      {"gb", kBytesPerGiB},
      {"b", 1},
      {"bytes", 1},
      {"byte", 1},
      {"kib", kBytesPerKiB},
      {"kb", kBytesPerKiB},
      {"tib", kBytesPerTiB},
      {"tb", kBytesPerTiB},
      {"mbytes", kBytesPerMiB},
      {"gbytes", kBytesPerGiB},
      {"mebibytes", kBytesPerMiB},
      {"gibibytes", kBytesPerGiB},
      {"kilobytes", 1'000},
      {"megabytes", 1'000'000},
      {"gigabytes", 1'000'000'000},
  };
  const auto same = [&](std::string_view unit) {
    if (unit.size() != word.size()) return false;
    for (std::size_t i = 0; i < unit.size(); ++i) {
      const char c = word[i];
      if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != unit[i]) return false;
    }
    return true;
  };
  for (const auto& [unit, bytes] : kUnits)
    if (same(unit)) return bytes;
  return 0;
}

}  // namespace vramtrack
