// Parts of the report's document that are in separate files; report_document.cpp puts them together.
#pragma once

#include <vector>

#include "period/document.hpp"

namespace vramtrack {

/// "Lost in crashes": the work lost by the jobs that ran out of memory; no section if none did.
void crash_section(const PeriodReport& report, std::vector<Block>& blocks);
/// "At risk": the work that the predicted crashes would lose, job by job. Appends to `blocks`.
void risk_section(const PeriodReport& report, std::vector<Block>& blocks);
/// "Idle memory": memory that nobody used, and its cost.
void idle_section(const PeriodReport& report, std::vector<Block>& blocks);

}  // namespace vramtrack
