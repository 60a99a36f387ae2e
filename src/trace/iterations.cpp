#include "trace/iterations.hpp"

#include <algorithm>
#include <string_view>

#include "trace/hash.hpp"
#include "trace/profile.hpp"

namespace vramtrack::trace {
namespace {

/// Whether a file of PyTorch only forwards calls: decorators (torch.no_grad) and code that runs compiled code.
bool passes_on(std::string_view file) {
  for (const std::string_view part :
       {"/utils/_contextlib.py", "/_dynamo/", "/_inductor/", "/_functorch/", "/_compile.py"})
    if (file.find(part) != std::string_view::npos) return true;
  return false;
}

bool names_a_step(std::string_view name) {
  return name.starts_with("Optimizer.step") || name.starts_with("ProfilerStep");
}

}  // namespace

Iterations::Iterations(const Snapshot& snapshot, std::uint32_t device, const Symbols& symbols, std::uint64_t first,
                       std::uint64_t last)
    : trace_(snapshot.trace_of(device)) {
  if (trace_ == nullptr || trace_->events.empty()) return;
  last = std::min<std::uint64_t>(last, trace_->events.size() - 1);
  std::uint32_t current = IdTable::kNone;
  for (std::uint64_t i = first; i <= last; ++i) {
    const AllocEvent& event = trace_->events[i];
    if (event.action != Action::alloc) continue;
    const std::uint32_t driver = driver_of(event.stack, symbols);
    if (driver == current) continue;
    current = driver;
    if (driver == returns_.size())
      returns_.emplace_back();
    else
      returns_[driver].push_back(i);
  }
  const std::int64_t from_us = trace_->events[std::min(first, last)].time_us;
  const std::int64_t to_us = trace_->events[last].time_us;
  if (from_us == kNoTime || to_us == kNoTime) return;
  for (const Annotation& annotation : snapshot.annotations)
    if (annotation.is_start && annotation.device == device && annotation.time_us >= from_us &&
        annotation.time_us <= to_us && names_a_step(symbols.text(annotation.name)))
      step_times_us_.push_back(annotation.time_us);
  std::sort(step_times_us_.begin(), step_times_us_.end());
}

std::size_t Iterations::rounds(StackId stack, std::uint64_t event) const {
  const auto driver = driver_by_stack_.find(index_of(stack));
  if (driver == driver_by_stack_.end()) return 0;
  const auto& returns = returns_[driver->second];
  return static_cast<std::size_t>(std::upper_bound(returns.begin(), returns.end(), event) - returns.begin());
}

std::size_t Iterations::annotated_steps(std::uint64_t event) const {
  if (step_times_us_.empty()) return 0;
  const std::int64_t time_us = trace_->events[std::min<std::uint64_t>(event, trace_->events.size() - 1)].time_us;
  return static_cast<std::size_t>(std::upper_bound(step_times_us_.begin(), step_times_us_.end(), time_us) -
                                  step_times_us_.begin());
}

std::uint32_t Iterations::driver_of(StackId stack, const Symbols& symbols) {
  const auto [known, is_new] = driver_by_stack_.try_emplace(index_of(stack), 0);
  if (!is_new) return known->second;
  const auto frames = symbols.stack(stack);
  std::uint64_t hash = hash_seed();
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (!is_python(symbols, frames[i])) continue;
    const bool is_inside = is_framework(symbols, frames[i]);
    if (is_inside && passes_on(symbols.file(frames[i]))) continue;
    hash = mixed((hash ^ index_of(frames[i])) * hash_seed());
    if (is_inside) break;
  }
  return known->second =
             driver_by_frames_.try_emplace(hash, static_cast<std::uint32_t>(driver_by_frames_.size())).first->second;
}

}  // namespace vramtrack::trace
