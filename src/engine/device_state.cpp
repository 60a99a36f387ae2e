#include "engine/device_state.hpp"

namespace vramtrack {

void DeviceState::choose_stand_in() {
  const SeriesState* const before = stand_in;
  stand_in = nullptr;
  for (const auto& [id, s] : series) {
    if (!is_of_allocator(s->key.metric)) {
      if ((is_of_device(s->key.metric) && s != used) || is_of_host(s->key.metric)) continue;
      stand_in = nullptr;
      break;
    }
    if (stand_in != nullptr && process_key(stand_in->key) != process_key(s->key)) {
      stand_in = nullptr;  // if there are several programs, none represents the device
      break;
    }
    if (stand_in == nullptr || s->key.metric == Metric::allocator_allocated) stand_in = s;
  }
  if (before == nullptr || before == stand_in) return;
  runs = {};
  last_end.reset();
  reported_out_of_memory.reset();
  end_report.reset();
}

}  // namespace vramtrack
