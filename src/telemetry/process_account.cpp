#include "telemetry/process_account.hpp"

#include <fmt/format.h>

#include <cmath>

#include "probe/wire.hpp"
#include "trace/call_category.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::telemetry {
namespace {

double time_s(const telemetry_event& event) {
  return static_cast<double>(event.time_ns) / 1e9;
}

/// An allocator's first block starts at the address of the driver's allocation that contains it.
std::uint64_t key_of(const telemetry_event& event) {
  const bool is_block = static_cast<probe::Call>(event.call) == probe::Call::torch_block;
  return event.address ^ (is_block ? 1ULL << 63U : 0);
}

}  // namespace

void ProcessAccount::allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack) {
  const probe::CallInfo* const call = probe::info_of(static_cast<probe::Call>(event.call));
  if (call == nullptr || trace::space_of(call->memory) != trace::MemorySpace::device || event.bytes == 0) return;
  if (call->level == probe::Level::driver)
    of_driver_.allocate(event.address, event.bytes, {}, time_s(event), event.threshold);
  if (call->level == probe::Level::driver && is_of_traced_allocator(process.unwinder->files(), stack.native)) return;
  const SiteNames::Place place = names_.place_of(process, stack);
  account_.allocate(key_of(event), event.bytes, place.number, time_s(event), event.threshold);
  by_category_.allocate(key_of(event), event.bytes,
                        static_cast<trace::SiteNumber>(trace::category_of(call, place.category)), time_s(event),
                        event.threshold);
}

void ProcessAccount::freed(const telemetry_event& event) {
  account_.free(key_of(event), time_s(event));
  by_category_.free(key_of(event));
  if (key_of(event) == event.address) of_driver_.free(event.address);
}

std::optional<std::vector<SiteLifetimes>> ProcessAccount::report(double now_s, const std::optional<KernelHeld>& held) {
  auto lines = account_.report(now_s, [this](trace::SiteNumber site) { return names_.name(site); });
  if (!lines || !held) return lines;
  const std::int64_t below = below_the_libraries(*held, std::llround(of_driver_.live_bytes()));
  if (below <= 0) return lines;
  SiteLifetimes& line = lines->emplace_back();
  line.site = fmt::format("below the libraries (by {})", held->by);
  line.live_bytes = static_cast<double>(below);
  return lines;
}

std::vector<std::pair<std::string, double>> ProcessAccount::categories() const {
  std::vector<std::pair<std::string, double>> out;
  for (const trace::SiteAccount& one : by_category_.accounts())
    if (one.live_bytes > 0)
      out.emplace_back(trace::category_name(static_cast<trace::Category>(one.site)), one.live_bytes);
  return out;
}

}  // namespace vramtrack::telemetry
