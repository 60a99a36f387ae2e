// HealthHistory: reports when the health of a GPU changes, so that it is recorded like everything else that happens.
#pragma once

#include <map>
#include <string>

#include "core/sample.hpp"
#include "core/series.hpp"
#include "report/health.hpp"

namespace vramtrack {

/// Not thread-safe. O(readings with health).
class HealthHistory {
 public:
  /// Adds an event (a note of its device) to `batch` for each device whose condition has changed: a failing one at
  /// once, others when all readings of a minute agree, since clocks are lowered for moments by design. A device is
  /// assumed to be healthy until its first reading. XID errors are events of their own and are not repeated.
  void add(const Catalog& catalog, Batch& batch);

 private:
  struct Known {
    Condition reported = Condition::healthy;
    Condition seen = Condition::healthy;
    Timestamp since;  ///< of `seen`
  };
  std::map<std::string, Known> devices_;  ///< by id
};

}  // namespace vramtrack
