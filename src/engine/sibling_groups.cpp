#include "engine/sibling_groups.hpp"

#include <utility>

#include "core/program.hpp"

namespace vramtrack {
namespace {

/// More siblings add hardly any information, and looking at them costs time.
constexpr std::size_t kMostSiblings = 64;

/// The curve of what is already known of the series.
FloorCurve curve_of(const History& history) {
  FloorCurve curve;
  for (const History::Span& span : history.spans())
    curve.observe(history.start_of(span), static_cast<double>(span.min_bytes));
  return curve;
}

}  // namespace

std::string sibling_group(const ProcessInfo& process) {
  ProcessInfo anywhere = process;
  anywhere.host.clear();
  const ProgramIdentity program = program_identity(anywhere);
  if (program.text.empty() || program.is_bare) return {};
  return program.text + '\n' + process.slurm_job.substr(0, process.slurm_job.find('.'));
}

std::string SiblingGroups::group_of(const SeriesState& s) const {
  const ProcessInfo* const process = catalog_.process(process_key(s.key));
  if (process == nullptr) return {};
  std::string name = sibling_group(*process);
  return hash_ && !name.empty() ? hash_(name) : name;
}

void SiblingGroups::join(const SeriesState& s) {
  Member& member = *members_[index_of(s.id)];
  member.group = group_of(s);
  if (member.group.empty()) return;
  groups_[member.group].here.emplace(member.place, s.id);
  changed_.insert(member.group);
}

void SiblingGroups::describe(const SeriesState& s) {
  const Member* const member = find(s.id);
  if (member == nullptr || member->group == group_of(s)) return;
  leave(s.id);
  // It rejoins with its next sample.
}

void SiblingGroups::leave(SeriesId id) {
  Member* const member = find(id);
  if (member == nullptr) return;
  if (SeriesState* const s = table_.find(id); s != nullptr && s->detector) s->detector->set_siblings(nullptr);
  if (const auto group = groups_.find(member->group); group != groups_.end()) {
    group->second.here.erase(member->place);
    changed_.insert(member->group);
  }
  // The others read its curve until the tick is over: one that is fed later in the tick must not see fewer siblings.
  left_.push_back(std::move(members_[index_of(id)]));
}

void SiblingGroups::set_remote_siblings(const std::vector<SiblingSummary>& theirs) {
  for (auto& [name, group] : groups_) {
    if (group.elsewhere.empty()) continue;
    group.elsewhere.clear();
    changed_.insert(name);
  }
  for (const SiblingSummary& one : theirs) {
    if (one.group.empty()) continue;
    groups_[one.group].elsewhere.insert_or_assign(Place{one.host, one.device_id, one.pid, one.pid_start_ticks},
                                                  one.curve);
    changed_.insert(one.group);
  }
  link_changed();
}

/// Makes the curves that are needed, and gives each member those of its siblings.
void SiblingGroups::link(Group& group) {
  std::map<Place, const FloorCurve*> curves;
  if (group.here.size() + group.elsewhere.size() > 1) {
    for (const auto& [place, id] : group.here) {
      Member& member = *members_[index_of(id)];
      const SeriesState* const s = table_.find(id);
      if (!member.curve && s != nullptr) member.curve = std::make_unique<FloorCurve>(curve_of(s->history));
      curves.emplace(place, member.curve.get());
    }
    for (const auto& [place, curve] : group.elsewhere) curves.emplace(place, &curve);
  }
  for (const auto& [own, id] : group.here) {
    Member& member = *members_[index_of(id)];
    std::vector<const FloorCurve*> siblings;
    // Starts after its own place, so that in a very large group each member has different siblings.
    auto it = curves.upper_bound(own);
    for (std::size_t i = 0; i < curves.size() && siblings.size() < kMostSiblings; ++i, ++it) {
      if (it == curves.end()) it = curves.begin();
      const bool same_device = std::get<0>(it->first) == std::get<0>(own) && std::get<1>(it->first) == std::get<1>(own);
      if (!same_device) siblings.push_back(it->second);
    }
    SeriesState* const s = table_.find(id);
    const bool alone = siblings.empty();
    member.siblings.set(std::move(siblings));
    if (s != nullptr && s->detector) s->detector->set_siblings(alone ? nullptr : &member.siblings);
  }
}

void SiblingGroups::link_changed() {
  for (const std::string& name : changed_) {
    const auto group = groups_.find(name);
    if (group == groups_.end()) continue;
    link(group->second);
    if (group->second.here.empty() && group->second.elsewhere.empty()) groups_.erase(group);
  }
  changed_.clear();
}

void SiblingGroups::complete_tick(const std::vector<SeriesId>& touched) {
  for (const SeriesId id : touched) {
    const SeriesState* const s = table_.find(id);
    if (s == nullptr || s->ended || !s->is_process() || find(id) != nullptr) continue;
    if (index_of(id) >= members_.size()) members_.resize(index_of(id) + 1);
    members_[index_of(id)] = std::make_unique<Member>();
    members_[index_of(id)]->place = {s->key.host, s->key.device_id, s->key.pid, s->key.pid_start_ticks};
    join(*s);
  }
  link_changed();
  left_.clear();
  for (const SeriesId id : touched)
    if (const Member* const member = find(id); member != nullptr && member->curve)
      if (const SeriesState* const s = table_.find(id))
        member->curve->observe(s->last_time, static_cast<double>(s->last_bytes));
}

std::vector<SiblingSummary> SiblingGroups::summaries() const {
  std::vector<SiblingSummary> all;
  for (const auto& member : members_) {
    if (!member || member->group.empty()) continue;
    const auto& [host, device_id, pid, start_ticks] = member->place;
    SiblingSummary one{member->group, host, device_id, pid, start_ticks, {}};
    if (member->curve) {
      one.curve = *member->curve;
    } else if (const auto id = catalog_.find({Metric::process_used, device_id, pid, start_ticks, host})) {
      if (const SeriesState* const s = table_.find(*id)) one.curve = curve_of(s->history);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace vramtrack
