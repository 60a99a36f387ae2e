// The work that crashes lose.
#pragma once

#include "period/period.hpp"

namespace vramtrack {

/// Fills the jobs at risk and the crashes in `money`, whose price is set, from `report`. Pure; O(series squared) for
/// the series of the jobs concerned.
void reckon_lost_work(const PeriodReport& report, Money& money);

}  // namespace vramtrack
