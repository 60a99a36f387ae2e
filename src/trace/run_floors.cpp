#include "trace/run_floors.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace vramtrack::trace {
namespace {

/// A leak is judged by fewer stretches than this, each made of whole fine stretches.
constexpr std::size_t kMostStretches = 48;
/// The resolution of the search for a late rise: 4 of 96 stretches are the last 8 % of a loop that was balanced before.
constexpr std::size_t kMostFineStretches = 192;
/// With more sites than this, the stretches are no finer than a leak needs.
constexpr std::size_t kMostFineSites = 16'384;
constexpr std::size_t kMostEpochs = 96;

/// Appends the floor of stretch `index`; leading zeros are only counted.
void push_floor(std::vector<Floor>& floors, std::uint32_t& first, std::size_t index, const Held& low) {
  if (floors.empty()) {
    if (low.bytes <= 0 && low.blocks <= 0) return;
    first = static_cast<std::uint32_t>(index);
  }
  floors.push_back({low.bytes, low.blocks});
}

/// Joins pairs of neighbours. A pair that began before the first floor was zero.
void join_pairs(std::vector<Floor>& floors, std::uint32_t& first) {
  if (floors.empty()) return;
  std::vector<Floor> joined;
  std::size_t at = first % 2;
  for (; at + 1 < floors.size(); at += 2)
    joined.push_back(
        {std::min(floors[at].bytes, floors[at + 1].bytes), std::min(floors[at].blocks, floors[at + 1].blocks)});
  first = (first + 1) / 2;
  floors = std::move(joined);
}

template <class T>
std::vector<T> every_second(const std::vector<T>& all, std::size_t from) {
  std::vector<T> out;
  for (std::size_t i = from; i < all.size(); i += 2) out.push_back(all[i]);
  return out;
}

Floor floor_at(const std::vector<Floor>& floors, std::uint32_t first, std::size_t index) {
  return index < first || index - first >= floors.size() ? Floor{} : floors[index - first];
}

/// Removes digits, so that "epoch 12" and "epoch 13" have one name.
std::string without_digits(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c < '0' || c > '9') out += c;
  return out;
}

}  // namespace

void RunFloors::close_stretch(std::vector<CallSite>& sites, std::uint64_t now_us) {
  const std::size_t index = stretch_ends_us_.size();
  for (CallSite& site : sites) {
    push_floor(site.stretches, site.first_stretch, index, site.low);
    site.low = site.live;
  }
  stretch_ends_us_.push_back(now_us);
  open_events_ = 0;
  while (stretch_ends_us_.size() >= (sites.size() > kMostFineSites ? kMostStretches : kMostFineStretches)) {
    for (CallSite& site : sites) join_pairs(site.stretches, site.first_stretch);
    stretch_ends_us_ = every_second(stretch_ends_us_, 1);
    stretch_events_ *= 2;
    ++joins_;
  }
}

void RunFloors::mark(std::vector<CallSite>& sites, std::string_view name, std::uint64_t time_us) {
  if (is_in_epoch_ && ++open_marks_ < epoch_marks_) return;
  if (is_in_epoch_) close_epoch(sites);
  is_in_epoch_ = true;
  open_marks_ = 0;
  epoch_begin_us_ = time_us;
  epoch_names_.push_back(without_digits(name));
  for (CallSite& site : sites) site.epoch = site.live;
}

void RunFloors::close_epoch(std::vector<CallSite>& sites) {
  const std::size_t index = epoch_names_.size() - 1;
  for (CallSite& site : sites) push_floor(site.epochs, site.first_epoch, index, site.epoch);
  if (epoch_names_.size() < kMostEpochs) return;
  for (CallSite& site : sites) join_pairs(site.epochs, site.first_epoch);
  epoch_names_ = every_second(epoch_names_, 0);
  epoch_marks_ *= 2;  // later epochs are as long
}

void RunFloors::finish(std::vector<CallSite>& sites, const std::optional<Place>& exit) {
  while (stretch_ends_us_.size() / fine_in_stretch_ >= kMostStretches) fine_in_stretch_ *= 2;
  fine_stretches_ = stretch_ends_us_.size();
  if (exit) {
    fine_stretches_ = std::min(fine_stretches_, exit->stretches >> (joins_ - exit->joins));
    // The exit ended the last epoch.
    if (is_in_epoch_ && exit->time_us >= epoch_begin_us_)
      for (CallSite& site : sites) site.epoch = site.live;
  }
  if (is_in_epoch_) close_epoch(sites);
  // The most frequent name defines the epochs.
  std::map<std::string, std::size_t> counts;
  for (const std::string& name : epoch_names_) ++counts[name];
  std::size_t most = 0;
  for (const auto& [name, count] : counts)
    if (count > most) {
      most = count;
      epoch_name_ = name;
    }
  if (most < kLeastEpochs) return;
  for (std::size_t i = 0; i < epoch_names_.size(); ++i) {
    if (epoch_names_[i] == epoch_name_) epoch_bounds_.emplace_back(i, i + 1);
    if (!epoch_bounds_.empty()) epoch_bounds_.back().second = i + 1;
  }
}

std::vector<Floor> RunFloors::fine_stretches(const CallSite& site) const {
  std::vector<Floor> out;
  for (std::size_t i = 0; i < fine_stretches_; ++i) out.push_back(floor_at(site.stretches, site.first_stretch, i));
  return out;
}

std::vector<Floor> RunFloors::stretches(const CallSite& site) const {
  const std::vector<Floor> fine = fine_stretches(site);
  const std::size_t count = stretch_count();
  return joined_floors(std::span(fine).first(count * fine_in_stretch_), count);
}

double RunFloors::judged_s() const {
  const std::size_t count = stretch_count();
  if (count < 2) return 0;
  const std::size_t parts = std::min(kRunParts, count);
  const std::size_t first = count * (parts / 6 + 1) / parts - 1;
  const auto end_us = [this](std::size_t stretch) { return stretch_ends_us_[(stretch + 1) * fine_in_stretch_ - 1]; };
  return static_cast<double>(end_us(count - 1) - end_us(first)) * 1e-6;
}

std::vector<Floor> RunFloors::epochs(const CallSite& site) const {
  std::vector<Floor> out;
  for (const auto& [from, to] : epoch_bounds_) {
    Floor least = floor_at(site.epochs, site.first_epoch, from);
    for (std::size_t i = from; i < to; ++i) {
      const Floor floor = floor_at(site.epochs, site.first_epoch, i);
      least = {std::min(least.bytes, floor.bytes), std::min(least.blocks, floor.blocks)};
    }
    out.push_back(least);
  }
  if (out.size() > kMostStretches) out = joined_floors(out, kMostStretches / 2);
  return out;
}

}  // namespace vramtrack::trace
