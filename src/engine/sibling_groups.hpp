// SiblingGroups: which series of processes are ranks or replicas of one job, and how the memory of each develops
// (docs/design/0017-siblings.md).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "detect/siblings.hpp"
#include "engine/series_table.hpp"
#include "engine/sibling_summary.hpp"

namespace vramtrack {

/// The siblings of a process's series are those of the same group on other devices or hosts. They reflect completed
/// ticks only, so that the order of the samples within a tick does not matter.
class SiblingGroups {
 public:
  /// Both must outlive this object.
  SiblingGroups(const Catalog& catalog, SeriesTable& table) : catalog_(catalog), table_(table) {}

  /// From here on, groups are named by the `hash` of their name: see Engine::share_siblings.
  void hash_with(std::function<std::string(const std::string&)> hash) { hash_ = std::move(hash); }
  /// More is known about the process of a series.
  void describe(const SeriesState& series);
  /// After a tick. O(touched), plus O(members) for groups that have changed.
  void complete_tick(const std::vector<SeriesId>& touched);
  /// The series has ended, is forgotten or starts over.
  void leave(SeriesId id);
  /// The series that other engines watch: replaces the earlier list.
  void set_remote_siblings(const std::vector<SiblingSummary>& theirs);
  [[nodiscard]] std::vector<SiblingSummary> summaries() const;

 private:
  /// Host, device, pid, start ticks: the order in which siblings are counted, whenever they joined.
  using Place = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t>;
  struct Member {
    std::string group;  ///< empty: unknown
    Place place;
    std::unique_ptr<FloorCurve> curve;  ///< only if another member reads it
    Siblings siblings;
  };
  struct Group {
    std::map<Place, SeriesId> here;
    std::map<Place, FloorCurve> elsewhere;
  };

  Member* find(SeriesId id) const { return index_of(id) < members_.size() ? members_[index_of(id)].get() : nullptr; }
  [[nodiscard]] std::string group_of(const SeriesState& series) const;
  void join(const SeriesState& series);
  void link(Group& group);
  void link_changed();

  const Catalog& catalog_;
  SeriesTable& table_;
  std::function<std::string(const std::string&)> hash_;
  std::vector<std::unique_ptr<Member>> members_;  ///< by SeriesId
  std::vector<std::unique_ptr<Member>> left_;     ///< those that left in this tick
  std::unordered_map<std::string, Group> groups_;
  std::set<std::string> changed_;  ///< groups
};

/// What the processes of one job have in common, on any host: user, command without the parts that differ from rank to
/// rank, container's image, Slurm job. Empty if too little is known, as for a bare "python". Pure.
std::string sibling_group(const ProcessInfo& process);

}  // namespace vramtrack
