#include "core/incident.hpp"

// A metric that is added must be placed here.
#pragma GCC diagnostic error "-Wswitch"

namespace vramtrack {

int speaking_rank(Metric metric) {
  switch (metric) {
    case Metric::device_used:
      return 0;
    case Metric::process_used:
      return 1;
    case Metric::allocator_allocated:
      return 2;
    case Metric::allocator_reserved:
      return 3;
    case Metric::device_reserved:
    case Metric::device_unattributed:
    case Metric::probe_live:
    case Metric::device_busy:  // facts are no memory: no alert is about one
    case Metric::device_received:
    case Metric::process_busy:
    case Metric::process_read:
    case Metric::process_clients:
    case Metric::host_resident:
    case Metric::host_pinned:
    case Metric::host_available:
    case Metric::host_anonymous:  // it speaks for itself
      break;
  }
  return 4;
}

bool speaks_for(const SeriesKey& whole, const SeriesKey& part) {
  if (is_of_host(whole.metric) || is_of_host(part.metric)) return false;
  if (speaking_rank(whole.metric) >= speaking_rank(part.metric) || device_key(whole) != device_key(part)) return false;
  return whole.metric == Metric::device_used || (!is_of_device(part.metric) && process_key(whole) == process_key(part));
}

}  // namespace vramtrack
