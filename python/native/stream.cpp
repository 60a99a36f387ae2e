#include "stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/settings.hpp"
#include "report/report.hpp"

namespace vramtrack::python {
namespace {

constexpr std::size_t kChunk = 8192;  // samples a batch: they stay in the cache
constexpr double kFirstDate_s = 1e8;  // 1973: times below are seconds since some beginning
constexpr double kMost_s = 9e9;       // what nanoseconds in 64 bits hold
constexpr double kMostBytes = 1.8e19;

Result<Config> configure(const std::vector<std::string>& settings) {
  LayeredConfig layers;
  // A program is called about its own leak, not woken for it: it decides by itself how long to wait (before_oom).
  std::vector<std::string> all = {"alert.lead-time-minutes=0"};
  all.insert(all.end(), settings.begin(), settings.end());
  for (const std::string& assignment : all)
    if (auto ok = layers.apply_assignment(assignment, "settings"); !ok) return fail(ok.error());
  if (auto ok = layers.check(); !ok) return fail(ok.error());
  return layers.config();
}

}  // namespace

void Outline::observe(double time_s, double bytes) {
  if (stretches_.empty()) first_s_ = time_s;
  const auto slot = static_cast<std::int64_t>((time_s - first_s_) / width_s_);
  if (!stretches_.empty() && stretches_.back().slot == slot) {
    Stretch& s = stretches_.back();
    s.low_bytes = std::min(s.low_bytes, bytes);
    s.high_bytes = std::max(s.high_bytes, bytes);
    s.sum_bytes += bytes;
    ++s.samples;
    return;
  }
  stretches_.push_back({slot, time_s, bytes, bytes, bytes, 1});
  while (stretches_.size() > kMost) halve();
}

void Outline::halve() {
  width_s_ *= 2;
  std::size_t kept = 0;
  for (Stretch s : stretches_) {
    s.slot /= 2;
    if (kept == 0 || stretches_[kept - 1].slot != s.slot) {
      stretches_[kept++] = s;
      continue;
    }
    Stretch& before = stretches_[kept - 1];
    before.low_bytes = std::min(before.low_bytes, s.low_bytes);
    before.high_bytes = std::max(before.high_bytes, s.high_bytes);
    before.sum_bytes += s.sum_bytes;
    before.samples += s.samples;
  }
  stretches_.resize(kept);
}

void Outline::write(Analysis& out) const {
  for (const Stretch& s : stretches_) {
    out.times_s.push_back(s.first_s);
    out.low_bytes.push_back(s.low_bytes);
    out.mean_bytes.push_back(s.sum_bytes / s.samples);
    out.high_bytes.push_back(s.high_bytes);
  }
}

Result<Stream> Stream::open(const std::string& metric, const std::vector<std::string>& settings, unsigned device_id) {
  const auto config = configure(settings);
  Stream stream;
  stream.catalog_ = std::make_unique<Catalog>();
  stream.catalog_->clock_is_relative = true;
  DeviceInfo device;
  device.id = stream.device_id_ = std::to_string(device_id);
  stream.catalog_->describe(device);
  // Only one of its processes is reported: what the others hold is not known.
  stream.catalog_->devices_withholding.insert(device.id);
  const auto main = stream.find(metric);
  if (!main) return fail(main.error());
  if (!config) return fail(config.error());
  stream.main_ = *main;
  stream.engine_ = std::make_unique<Engine>(*config, *stream.catalog_);
  return stream;
}

Result<Stream::One*> Stream::find(const std::string& metric) {
  const auto kind = parse_metric(metric);
  if (!kind)
    return fail(
        fmt::format("unknown metric '{}'; expected device_used, process_used, allocator_allocated, "
                    "allocator_reserved, device_reserved or probe_live",
                    metric));
  const auto [it, is_new] = series_.try_emplace(*kind);
  if (is_new) it->second.id = catalog_->intern({*kind, device_id_, 0, 0});
  return &it->second;
}

Status Stream::set_capacity(double capacity_bytes) {
  if (!(capacity_bytes > 0 && capacity_bytes <= kMostBytes))
    return fail(
        fmt::format("capacity_bytes is {}: it must be greater than zero, or None where it is unknown", capacity_bytes));
  DeviceInfo device;
  device.id = device_id_;
  device.capacity_bytes = static_cast<std::uint64_t>(capacity_bytes);
  catalog_->describe(device);
  return {};
}

Status Stream::set_ceiling(const std::string& metric, double bytes) {
  const auto one = find(metric);
  if (!one) return fail(one.error());
  if (!(bytes > 0 && bytes <= kMostBytes))
    return fail(fmt::format("the ceiling is {}: it must be greater than zero", bytes));
  engine_->set_ceiling((*one)->id, bytes);
  return {};
}

Status Stream::check(const double* times_s, const double* used_bytes, std::size_t n) const {
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::abs(times_s[i]) <= kMost_s))
      return fail(
          fmt::format("times_s[{}] is {}: expected seconds, since 1970 or since the first sample", i, times_s[i]));
    const std::optional<double> before = i > 0 ? std::optional(times_s[i - 1]) : last_s_;
    if (before && times_s[i] < *before)
      return fail(fmt::format("times_s[{}] is {}, earlier than the one before it ({}): sort the samples by time", i,
                              times_s[i], *before));
    if (used_bytes[i] < 0 || used_bytes[i] > kMostBytes)
      return fail(fmt::format("used_bytes[{}] is {}: expected bytes, 0 or more; NaN where there is no value", i,
                              used_bytes[i]));
  }
  return {};
}

Status Stream::observe(const double* times_s, const double* used_bytes, std::size_t n) {
  return observe(*main_, times_s, used_bytes, n);
}

Status Stream::observe_beside(const std::string& metric, double time_s, double used_bytes) {
  const auto one = find(metric);
  if (!one) return fail(one.error());
  return observe(**one, &time_s, &used_bytes, 1);
}

Status Stream::observe(One& one, const double* times_s, const double* used_bytes, std::size_t n) {
  if (auto ok = check(times_s, used_bytes, n); !ok) return ok;
  if (n == 0) return {};
  if (!last_s_) catalog_->clock_is_relative = times_s[0] < kFirstDate_s;
  last_s_ = times_s[n - 1];
  for (std::size_t begin = 0; begin < n; begin += kChunk) {
    batch_.clear();
    for (std::size_t i = begin; i < std::min(n, begin + kChunk); ++i) {
      if (std::isnan(used_bytes[i])) continue;
      batch_.samples.push_back(
          {Timestamp(from_seconds(times_s[i])), one.id, static_cast<std::uint64_t>(used_bytes[i])});
      one.outline.observe(times_s[i], used_bytes[i]);
    }
    engine_->ingest(batch_);
  }
  return {};
}

Status Stream::works(double time_s) {
  const double none = 0;
  if (auto ok = check(&time_s, &none, 1); !ok) return ok;
  last_s_ = time_s;
  for (auto& [metric, one] : series_) engine_->set_busy(one.id, Timestamp(from_seconds(time_s)), 1);
  return {};
}

Analysis Stream::final_analysis(bool explain) {
  engine_->end_of_recording();
  return analysis(explain);
}

Result<Analysis> Stream::analysis_beside(const std::string& metric, bool explain) {
  const auto one = find(metric);
  if (!one) return fail(one.error());
  return analysis_of(**one, explain);
}

Analysis Stream::analysis_of(const One& one, bool explain) {
  engine_->finish();
  View view = *engine_->view(explain);
  std::erase_if(view.series, [&](const SeriesView& s) { return s.id != one.id; });
  Analysis analysis;
  analysis.line = find_report("json")->render(view, {});
  analysis.text = find_report("text")->render(view, {});
  one.outline.write(analysis);
  return analysis;
}

}  // namespace vramtrack::python
