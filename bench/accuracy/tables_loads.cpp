// The table of loads: how many are paged, by how long they take and by what is known.
#include <array>

#include "families.hpp"
#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {

std::string loads_table(const std::vector<Run>& runs) {
  constexpr std::array<double, 5> kMinutes{0, 4, 8, 16, 1e9};
  std::string out =
      "| load | under 4 min | 4 to 8 min | 8 to 16 min | 16 to 30 min | paged | suspected "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const Family& family : load_families()) {
    std::array<int, 4> loads{};
    std::array<int, 4> paged{};
    int suspected = 0;
    for (const Run& run : runs) {
      if (run.trace.family != family.name) continue;
      std::size_t length = 0;
      while (run.trace.label.life_s >= 60 * kMinutes[length + 1]) ++length;
      ++loads[length];
      paged[length] += run.played.ours.alarms.empty() ? 0 : 1;
      suspected += run.played.ours.suspicions.empty() ? 0 : 1;
    }
    int all = 0;
    int all_paged = 0;
    out += fmt::format("| {} |", family.name);
    for (std::size_t i = 0; i < loads.size(); ++i) {
      out += fmt::format(" {} of {} |", paged[i], loads[i]);
      all += loads[i];
      all_paged += paged[i];
    }
    out +=
        fmt::format(" {} % | {} % |\n", number(100 * share(all_paged, all), 1), number(100 * share(suspected, all), 1));
  }
  return out;
}

}  // namespace vramtrack::accuracy
