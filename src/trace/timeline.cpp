#include "trace/timeline.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>

namespace vramtrack::trace {
namespace {

constexpr std::size_t kEnoughValleys = 3;

/// Finds the turning points of a series: a rise or fall counts once `threshold` of it is undone (a zigzag).
class Zigzag {
 public:
  explicit Zigzag(std::int64_t threshold) : threshold_(std::max<std::int64_t>(threshold, 1)) {}
  void add(const Moment& now) {
    if (!begun_ || now.live_bytes > high_.live_bytes) high_ = now;
    if (!begun_ || now.live_bytes < low_.live_bytes) low_ = now;
    begun_ = true;
    if (rising_ && now.live_bytes <= high_.live_bytes - threshold_) {
      peaks.push_back(high_);
      low_ = now;
      rising_ = false;
    } else if (!rising_ && now.live_bytes >= low_.live_bytes + threshold_) {
      add_valley();
      high_ = now;
      rising_ = true;
    }
  }
  void end() {
    if (begun_ && rising_) peaks.push_back(high_);
    if (begun_ && !rising_) add_valley();
  }
  std::vector<Moment> peaks, valleys;
  std::vector<std::int64_t> falls;  ///< the fall before each valley

 private:
  void add_valley() {
    valleys.push_back(low_);
    falls.push_back(peaks.empty() ? 0 : peaks.back().live_bytes - low_.live_bytes);
  }
  std::int64_t threshold_;
  bool begun_ = false, rising_ = true;
  Moment high_, low_;
};

std::vector<std::string> annotations_at(const Snapshot& snapshot, const Symbols& symbols, std::uint32_t device,
                                        std::int64_t time_us) {
  std::vector<std::string> open;
  if (time_us == kNoTime) return open;
  for (const Annotation& annotation : snapshot.annotations) {
    if (annotation.device != device || annotation.time_us > time_us) continue;
    const std::string name(symbols.text(annotation.name));
    if (annotation.is_start) {
      open.push_back(name);
    } else if (const auto known = std::find(open.rbegin(), open.rend(), name); known != open.rend()) {
      open.erase(std::next(known).base());
    }
  }
  return open;
}

/// REQUIRES: the device has a sample.
Timeline timeline_of_samples(const Snapshot& snapshot, std::uint32_t device, const TimelineOptions& options) {
  Timeline out;
  out.device = device;
  std::vector<Moment> moments;
  for (const UsageSample& sample : snapshot.samples)
    if (sample.device == device)
      moments.push_back({moments.size(), sample.time_us, sample.live_bytes, 0, sample.live_bytes});
  out.event_count = moments.size();
  out.begin = moments.front();
  out.end = moments.back();
  const auto is_lower = [](const Moment& a, const Moment& b) { return a.live_bytes < b.live_bytes; };
  const std::size_t points = std::max<std::size_t>(options.points, 1);
  const std::size_t stretch = (moments.size() + points - 1) / points;
  for (std::size_t at = 0; at < moments.size(); at += stretch) {
    const auto from = moments.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = moments.begin() + static_cast<std::ptrdiff_t>(std::min(at + stretch, moments.size()));
    out.points.push_back(*std::max_element(from, to, is_lower));
  }
  out.site_bytes.resize(out.points.size());
  out.categories.resize(out.points.size());
  out.peaks.push_back(
      {*std::max_element(moments.begin(), moments.end(), is_lower), live_profile(snapshot, device), {}});
  return out;
}

}  // namespace

std::vector<std::uint32_t> traced_devices(const Snapshot& snapshot, std::optional<std::uint32_t> device) {
  std::vector<std::uint32_t> out;
  for (const DeviceTrace& trace : snapshot.traces)
    if (trace.event_count > 0 && (!device || trace.device == *device)) out.push_back(trace.device);
  return out;
}

std::vector<Timeline> timelines_of_samples(const Snapshot& snapshot, std::optional<std::uint32_t> device,
                                           const TimelineOptions& options) {
  std::set<std::uint32_t> devices;
  for (const UsageSample& sample : snapshot.samples)
    if (!device || sample.device == *device) devices.insert(sample.device);
  std::vector<Timeline> out;
  for (const std::uint32_t each : devices) out.push_back(timeline_of_samples(snapshot, each, options));
  return out;
}

Timeline timeline_of(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols, const TimelineOptions& options) {
  Timeline out;
  out.device = device;
  const Replay replay(snapshot, device, symbols);
  out.event_count = replay.event_count();
  out.begin = replay.begin();
  out.end = out.begin;
  out.mismatch_count = replay.mismatch_count();
  out.before_trace = replay.before_trace();
  if (out.event_count == 0) return out;

  // First find the largest fall, which is what an iteration releases. The range is unsuitable: with a strong leak, it
  // is many times as large.
  std::int64_t highest = out.begin.live_bytes;
  std::int64_t largest_fall = 0;
  const std::uint64_t stretch =
      std::max<std::uint64_t>(1, (out.event_count + options.points - 1) / std::max<std::size_t>(options.points, 1));
  replay.run([&](const AllocEvent&, const Change&, const Moment& now) {
    if (now.event % stretch == 0)
      out.points.push_back(now);
    else if (now.live_bytes > out.points.back().live_bytes)
      out.points.back() = now;
    highest = std::max(highest, now.live_bytes);
    largest_fall = std::max(largest_fall, highest - now.live_bytes);
    out.end = now;
  });
  // Use half of it, so that movements within an iteration do not count; less if one fall was of another kind (an
  // evaluation) and too few remain.
  std::array<Zigzag, 3> zigzags{Zigzag(largest_fall / 2), Zigzag(largest_fall / 4), Zigzag(largest_fall / 8)};
  replay.run([&](const AllocEvent&, const Change&, const Moment& now) {
    for (Zigzag& each : zigzags) each.add(now);
  });
  for (Zigzag& each : zigzags) each.end();
  Zigzag& zigzag = *std::find_if(zigzags.begin(), zigzags.end() - 1,
                                 [](const Zigzag& each) { return each.valleys.size() >= kEnoughValleys; });
  out.valleys = std::move(zigzag.valleys);
  out.fall_bytes = std::move(zigzag.falls);
  std::stable_sort(zigzag.peaks.begin(), zigzag.peaks.end(),
                   [](const Moment& a, const Moment& b) { return a.live_bytes > b.live_bytes; });
  if (zigzag.peaks.size() > options.peaks) zigzag.peaks.resize(options.peaks);

  std::vector<std::uint64_t> moments;
  for (const Moment& point : out.points) moments.push_back(point.event);
  for (const Moment& peak : zigzag.peaks) moments.push_back(peak.event);
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  const std::vector<Profile> profiles = profiles_at(replay, moments);
  const auto profile_at = [&](std::uint64_t event) -> const Profile& {
    return profiles[static_cast<std::size_t>(std::lower_bound(moments.begin(), moments.end(), event) -
                                             moments.begin())];
  };
  for (const Moment& peak : zigzag.peaks)
    out.peaks.push_back({peak, profile_at(peak.event), annotations_at(snapshot, symbols, device, peak.time_us)});

  // The sites that held the most at any point.
  std::unordered_map<std::uint32_t, std::int64_t> most;
  for (const Profile& profile : profiles)
    for (const StackBytes& held : profile) {
      std::int64_t& bytes = most[index_of(held.stack)];
      bytes = std::max(bytes, held.bytes);
    }
  std::vector<std::pair<std::int64_t, std::uint32_t>> ranked;
  for (const auto& [stack, bytes] : most) ranked.emplace_back(-bytes, stack);
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = 0; i < ranked.size() && i < options.sites; ++i) out.sites.push_back(StackId{ranked[i].second});
  StackCategories stacks(symbols);
  for (const Moment& point : out.points) {
    out.categories.push_back(categorize(profile_at(point.event), {}, stacks));
    std::vector<std::int64_t> row(out.sites.size());
    for (const StackBytes& held : profile_at(point.event))
      if (const auto known = std::find(out.sites.begin(), out.sites.end(), held.stack); known != out.sites.end())
        row[static_cast<std::size_t>(known - out.sites.begin())] = held.bytes;
    out.site_bytes.push_back(std::move(row));
  }
  return out;
}

}  // namespace vramtrack::trace
