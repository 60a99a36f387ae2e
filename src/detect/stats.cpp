#include "detect/stats.hpp"

#include <boost/math/distributions/students_t.hpp>

namespace vramtrack {

double student_t_cdf(double t, double degrees) {
  using namespace boost::math::policies;
  // Return values instead of exceptions: an overflow is a probability of 0 or 1.
  using Policy = policy<domain_error<ignore_error>, overflow_error<ignore_error>, evaluation_error<ignore_error>>;
  return boost::math::cdf(boost::math::students_t_distribution<double, Policy>(degrees), t);
}

}  // namespace vramtrack
