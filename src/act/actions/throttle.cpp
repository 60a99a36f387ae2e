// throttle: gives the process's own cgroup less CPU time, so that it allocates more slowly.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "act/cgroup_control.hpp"
#include "act/proof.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"cpu-percent", ParameterKind::number, true, "CPU time it may use, in percent of one core", 1, 100000},
};

constexpr std::uint64_t kPeriod_us = 100'000;

std::string words(const Subject& subject, const StepArguments& arguments) {
  return fmt::format("limit {} to {:.4g} % of one core", subject_words(subject), arguments.number("cpu-percent", 100));
}

struct Control {
  std::string file;
  std::string value;  ///< to write
};

Result<Control> control_of(const ActRequest& request) {
  const auto cgroup = own_cgroup(request, "cpu", "cpu.cfs_quota_us", "cpu.max");
  if (!cgroup) return fail(cgroup.error());
  const double share = request.arguments.number("cpu-percent", 100) / 100;
  if (cgroup->is_v2) {
    const auto quota = static_cast<std::uint64_t>(share * static_cast<double>(kPeriod_us));
    return Control{cgroup->folder + "/cpu.max", fmt::format("{} {}", std::max<std::uint64_t>(quota, 1000), kPeriod_us)};
  }
  const auto period = read_number_file(cgroup->folder + "/cpu.cfs_period_us").value_or(kPeriod_us);
  const auto quota = static_cast<std::uint64_t>(share * static_cast<double>(period));
  return Control{cgroup->folder + "/cpu.cfs_quota_us", std::to_string(std::max<std::uint64_t>(quota, 1000))};
}

/// The data for undo(): the file, its previous content, and the content that this act writes.
Result<ActPlan> plan(const ActRequest& request) {
  if (const auto held = hold(request); !held) return fail(held.error());
  const auto control = control_of(request);
  if (!control) return fail(control.error());
  const auto before = read_control(control->file);
  if (!before) return fail(before.error());
  return ActPlan{fmt::format("{}: write '{}' into {} (now '{}')", words(request.subject, request.arguments),
                             control->value, printable(control->file), *before),
                 fmt::format("{}\n{}\n{}", control->file, *before, control->value)};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto held = hold(request);
  if (!held) return fail(held.error());
  const auto control = control_of(request);
  if (!control) return fail(control.error());
  if (const Status written = write_control(control->file, control->value); !written) return fail(written.error());
  return fmt::format("'{}' was written into {}", control->value, printable(control->file));
}

Result<std::string> undo(const ActRequest& /*request*/, const std::string& text) {
  std::string_view rest = text;
  const std::string file(next_line(rest));
  const std::string before(next_line(rest));
  const std::string ours(rest);
  if (::access(file.c_str(), F_OK) != 0) return "the cgroup is gone";
  const auto now = read_control(file);
  if (!now) return fail(now.error());
  if (*now == before) return "the limit is back to what it was";
  if (*now != ours) return "somebody else has changed the limit since: it was left alone";
  if (const Status written = write_control(file, before); !written) return fail(written.error());
  return fmt::format("'{}' was written back", before);
}

std::string by_hand(const Subject& /*subject*/, const std::string& text) {
  std::string_view rest = text;
  const std::string_view file = next_line(rest);
  return fmt::format("echo '{}' > '{}'", next_line(rest), printable(file));
}

}  // namespace

extern const ActionInfo throttle_action;
const ActionInfo throttle_action{
    .name = "throttle",
    .help = "Give the process less CPU time, through the quota of its own cgroup",
    .memory = "stays in use; it grows more slowly if the growth depends on CPU time",
    .parameters = kParameters,
    .traits = {.needs_process = true, .stops_growth = true, .is_repeatable = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .undo = undo,
    .state = "throttled",
    .by_hand = by_hand,
};

}  // namespace vramtrack::act
