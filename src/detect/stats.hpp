// Distributions, by Boost.Math: its headers are slow to compile, so they are included in stats.cpp alone.
#pragma once

namespace vramtrack {

/// P(T <= t) of Student's distribution with `degrees` > 0 (need not be whole) of freedom. Pure; under a microsecond.
double student_t_cdf(double t, double degrees);

}  // namespace vramtrack
