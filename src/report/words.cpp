#include "report/words.hpp"

#include <fmt/format.h>

#include "core/command.hpp"
#include "core/format.hpp"
#include "core/printable.hpp"
#include "report/total.hpp"

namespace vramtrack {

namespace {

/// " [allocated to tensors]": the measure of a series, if it is a part of its device's or its process's memory.
std::string metric_label(const SeriesView& series) {
  const Metric metric = series.key.metric;
  if (is_of_device(metric) || metric == Metric::process_used) return {};
  return fmt::format(" [{}]", metric_words(metric));
}

/// Whether the label follows the device, else after the process.
bool names_metric_with_device(const SeriesView& series) {
  return series.key.pid == 0 || replaces_device_total(series);
}

}  // namespace

std::string_view pattern_words(Pattern pattern) {
  switch (pattern) {
    case Pattern::none:
      return "no pattern";
    case Pattern::gradual_leak:
      return "gradual leak";
    case Pattern::sudden_spike:
      return "sudden spike";
    case Pattern::cyclic:
      return "cyclic growth";
    case Pattern::step_increase:
      return "step increase";
    case Pattern::unknown:
      break;
  }
  return "no known pattern";
}

std::string_view metric_words(Metric metric) {
  switch (metric) {
    case Metric::device_used:
      return "memory in use";
    case Metric::device_reserved:
      return "reserved by the driver";
    case Metric::process_used:
      return "memory of the process";
    case Metric::allocator_allocated:
      return "allocated to tensors";
    case Metric::allocator_reserved:
      return "held by the framework's allocator";
    case Metric::probe_live:
      return "outstanding, seen by the probe";
    case Metric::device_unattributed:
      return "held by no visible process";
    case Metric::device_busy:
    case Metric::process_busy:
      return "share of time in which it is busy";
    case Metric::device_received:
      return "bytes received over the bus";
    case Metric::process_read:
      return "bytes read from files";
    case Metric::process_clients:
      return "connections of clients";
    case Metric::process_age:
      return "age of the process";
    case Metric::host_anonymous:
      return "host memory";
    case Metric::host_resident:
      return "resident in the host's memory";
    case Metric::host_pinned:
      return "pinned in the host's memory";
    case Metric::host_available:
      return "host memory that is left";
  }
  return "unknown";
}

std::string still_holds_words(const View& view, const SeriesView& series) {
  std::string out = fmt::format("ran out at {} and still holds {}", view.moment(series.still_holds->ran_out),
                                view.scale.bytes(series.used_bytes));
  if (const auto unused = series.still_holds->unused_bytes)
    out += fmt::format(", {} of them unused by its allocator", view.scale.bytes(*unused));
  return out;
}

std::string stall_words(const Stall& stall, const Scale& scale) {
  const std::string for_so_long = scale.duration(stall.stalled_for_s);
  switch (stall.judgement) {
    case StallJudgement::stalled:
      return fmt::format("stalled for {} (confidence {})", for_so_long, format_percent(stall.confidence));
    case StallJudgement::idle:
      return fmt::format("idle for {}{}", for_so_long,
                         stall.what.empty() ? std::string() : " (" + printable(stall.what) + ')');
    case StallJudgement::unclear:
      break;
  }
  return fmt::format("no progress for {}, unclear why", for_so_long);
}

std::string unreleased_next_step() {
  return command_hint("sudo vramtrack holders") +
         " names the processes that have the GPU open; if there is none, a reset of the GPU (nvidia-smi --gpu-reset) "
         "frees the memory";
}

std::string stall_next_step(const Stall& stall, std::uint32_t pid) {
  if (stall.judgement == StallJudgement::idle) return {};
  std::string look = fmt::format("'py-spy dump --pid {}' (Python) or 'gdb -p {}' shows where it waits", pid, pid);
  switch (stall.cause) {
    case StallCause::stopped:
      return fmt::format("ask who stopped it; 'kill -CONT {}' resumes it, 'kill {}' and then 'kill -CONT {}' ends it",
                         pid, pid, pid);
    case StallCause::uninterruptible:
      return "read the kernel log for the driver's messages; the memory is freed when the driver responds again or the "
             "GPU is reset";
    case StallCause::exited:
      return "end its parent, which has not reaped it; the kernel then removes it";
    case StallCause::orphaned:
      return fmt::format("if nobody needs it any more, 'kill {}' frees its memory", pid);
    case StallCause::collective:
      return look +
             "; compare the ranks: the one that waits in a different place is the cause. Set "
             "TORCH_NCCL_TRACE_BUFFER_SIZE "
             "and NCCL_DEBUG=INFO for the next run";
    case StallCause::unread_requests:
      return look + "; restart the server if it does not recover";
    default:
      return look;
  }
}

std::string state_words(const Finding& f) {
  switch (f.state) {
    case State::steady:
      return "steady";
    case State::warming_up:
      return "warming up";
    case State::cycling:
      return "cycling";
    case State::growing:
      return "growing, not yet decidable";
    case State::leaking:
      return "rising like a leak, not enough evidence";
    case State::slow_growth:
      return "slow growth";
    case State::spiked:
      if (f.spike == SpikeOutcome::stabilised) return "spiked, then stabilised";
      return f.spike == SpikeOutcome::still_growing ? "spiked, still growing" : "spiked";
    case State::falling:
      return "falling";
    case State::too_short:
      return "too short to tell";
    case State::loading:
      return "loading";
  }
  return "unknown";
}

std::string short_device_words(const SeriesView& series) {
  const DeviceInfo& d = series.device;
  const std::string id = d.index ? std::to_string(*d.index) : series.key.device_id;
  // A log of several hosts or runs has several devices named GPU 0: their ids identify them, as in "node2/0".
  std::string prefix = series.key.host;
  if (const std::string tail = '/' + id; prefix.empty() && d.index && series.key.device_id.ends_with(tail))
    prefix = series.key.device_id.substr(0, series.key.device_id.size() - tail.size());
  return printable(prefix + (prefix.empty() ? "" : " ") + (d.parent_id.empty() ? "GPU " : "MIG ") + id);
}

std::string device_words(const SeriesView& series) {
  const std::string& name = series.device.name;
  return short_device_words(series) + (name.empty() ? "" : ' ' + printable(name)) +
         (names_metric_with_device(series) ? metric_label(series) : "");
}

std::string process_words(const SeriesView& series) {
  std::string words = fmt::format("pid {}", series.key.pid);
  const std::string label = names_metric_with_device(series) ? "" : metric_label(series);
  if (!series.process) return words + label;
  const ProcessInfo& p = *series.process;
  const std::string& command = p.command.empty() ? p.name : p.command;
  if (!command.empty()) words += ' ' + printable(command);
  if (!p.user.empty()) words += " (" + printable(p.user) + ')';
  return words + label;
}

std::string series_words(const SeriesView& series) {
  if (series.key.metric == Metric::device_unattributed)
    return device_words(series) + ", memory that no visible process holds";
  return device_words(series) + (series.key.pid == 0 ? "" : ", " + process_words(series));
}

}  // namespace vramtrack
