#include <array>

#include "report/report.hpp"

namespace vramtrack {

#define VRAMTRACK_REPORT(name) extern const ReportInfo name##_report;
#include "report/reports.def"
#undef VRAMTRACK_REPORT

std::span<const ReportInfo* const> reports() {
  static const std::array all = {
#define VRAMTRACK_REPORT(name) &name##_report,
#include "report/reports.def"
#undef VRAMTRACK_REPORT
  };
  return all;
}

const ReportInfo* find_report(std::string_view name) {
  for (const ReportInfo* info : reports())
    if (info->name == name) return info;
  return nullptr;
}

}  // namespace vramtrack
