#include "trace/memory_failure.hpp"

namespace vramtrack::trace {

MemoryFailure* MemoryFailures::take(const probe::Slot& slot) {
  const bool is_refused = probe::record_of(slot) == probe::Record::refused;
  ++(is_refused ? refused_ : failed_);
  const probe::CallInfo* info = probe::info_of(probe::call_of(slot));
  if (info == nullptr) return nullptr;
  std::optional<MemoryFailure>& failure = info->level == probe::Level::block ? block_ : driver_;
  if (failure) return nullptr;
  failure.emplace();
  failure->time_us = probe::time_us_of(slot);
  failure->asked_bytes = slot.bytes;
  failure->figure_bytes = slot.address;
  failure->is_refused = is_refused;
  // A framework's error comes after the refusal that caused it.
  if (info->level == probe::Level::block && driver_ && driver_->is_refused) {
    failure->is_refused = true;
    failure->figure_bytes = driver_->figure_bytes;
  }
  failure->limit_bytes = limit_bytes_;
  failure->device = probe::device_of(slot);
  failure->call = info->call;
  failure->stack = probe::number_of(slot);
  return &*failure;
}

}  // namespace vramtrack::trace
