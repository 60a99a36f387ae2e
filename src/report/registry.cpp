#include "core/registry.hpp"

#include <array>

#include "report/report.hpp"

namespace vramtrack {

#define VRAMTRACK_REPORT(name) extern const ReportInfo name##_report;
#include "report/reports.def"

std::span<const ReportInfo* const> reports() {
  static const std::array all = {
#define VRAMTRACK_REPORT(name) &name##_report,
#include "report/reports.def"
  };
  return all;
}

const ReportInfo* find_report(std::string_view name) {
  return find_named(reports(), name);
}

}  // namespace vramtrack
