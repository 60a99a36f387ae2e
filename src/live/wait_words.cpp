// The output of a wait: text for people, and JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/ascii.hpp"
#include "core/format.hpp"
#include "core/json_text.hpp"
#include "live/wait.hpp"

namespace vramtrack {
namespace {

/// "pid 1", "pids 1, 2 and 3".
template <class T>
std::string counted(std::string_view noun, const std::vector<T>& names, std::string_view last = "and") {
  if (names.size() == 1) return fmt::format("{} {}", noun, names.front());
  return fmt::format("{}s {} {} {}", noun, fmt::join(names.begin(), names.end() - 1, ", "), last, names.back());
}

/// "the processes of user ada in container 0123": those that match everything that is named.
std::string subject_words(const WaitFor& what) {
  std::string out = what.pids.empty() ? "the processes" : counted("pid", what.pids);
  if (!what.users.empty()) out += " of " + counted("user", what.users, "or");
  if (!what.containers.empty()) out += " in " + counted("container", what.containers, "or");
  return out;
}

/// "GPUs 0 and 1", "MIG-4a5b"; empty: all GPUs.
std::string gpus_words(const std::vector<std::string>& gpus) {
  if (std::all_of(gpus.begin(), gpus.end(), is_all_digits)) return gpus.empty() ? std::string() : counted("GPU", gpus);
  std::vector<std::string> each;
  for (const std::string& gpu : gpus) each.push_back(is_all_digits(gpu) ? "GPU " + gpu : gpu);
  if (each.size() == 1) return each.front();
  return fmt::format("{} and {}", fmt::join(each.begin(), each.end() - 1, ", "), each.back());
}

std::string holder_line(const WaitHolder& one) {
  const ProcessInfo& info = one.holder.info;
  const std::string command = info.command.empty() ? info.name : info.command;
  std::string out = fmt::format("pid {}{}{}", info.pid, command.empty() ? "" : " " + command,
                                info.user.empty() ? "" : fmt::format(" ({})", info.user));
  if (one.bytes)
    out += fmt::format(" holds {} of {}", format_bytes(static_cast<double>(*one.bytes)), device_words(one.device));
  else if (!one.device.id.empty())
    out += one.holder.files.empty() ? fmt::format(" is on {}", device_words(one.device))
                                    : fmt::format(" has {} open", device_words(one.device));
  if (one.holder.age_s) out += fmt::format(", for {}", format_duration(*one.holder.age_s));
  return out + fmt::format(": {}; {}", to_string(one.holder.state), one.holder.why);
}

template <class T>
void add(JsonText& out, std::string_view name, const std::optional<T>& number) {
  out.key(name);
  if (number)
    out.value(*number);
  else
    out.null();
}

void add_device(const WaitDevice& one, JsonText& out) {
  out.begin_object().field("id", one.device.id);
  add(out, "index", one.device.index);
  add(out, "used_bytes", one.used_bytes);
  add(out, "free_bytes", one.free_bytes);
  out.field("unattributed_bytes", one.unattributed_bytes).end_object();
}

void add_holder(const WaitHolder& one, JsonText& out) {
  const ProcessInfo& info = one.holder.info;
  out.begin_object().field("pid", info.pid).field("start_ticks", info.start_ticks).field("user", info.user);
  out.field("command", info.command).field("container", info.container).field("device_id", one.device.id);
  add(out, "bytes", one.bytes);
  add(out, "age_s", one.holder.age_s);
  out.field("state", to_string(one.holder.state)).field("why", one.holder.why);
  out.field("in_the_way", one.is_in_the_way).end_object();
}

}  // namespace

std::string device_words(const DeviceInfo& device) {
  if (device.id.empty()) return "no GPU";
  const std::string number = device.index ? std::to_string(*device.index) : device.id;
  return fmt::format("{} {}", device.parent_id.empty() ? "GPU" : "MIG instance", number);
}

std::string wait_words(const WaitFor& what) {
  const bool are_several = what.gpus.size() > 1;
  const std::string named = gpus_words(what.gpus);
  std::vector<std::string> out;
  if (what.free_bytes)
    out.push_back(fmt::format("{} free on {}{}", format_bytes(static_cast<double>(*what.free_bytes)),
                              are_several ? "each of " : "", named.empty() ? "every GPU" : named));
  if (what.is_empty && what.names_processes())
    out.push_back(fmt::format("{} to hold no memory on {}", subject_words(what), named.empty() ? "any GPU" : named));
  else if (what.is_empty)
    out.push_back(fmt::format("{} to be empty", named.empty() ? "every GPU" : named));
  if (what.is_gone) out.push_back(counted("pid", what.pids) + " to end");
  return fmt::format("{}", fmt::join(out, " and "));
}

std::string wait_text(const WaitLook& look) {
  std::string out;
  for (const std::string& each : look.unmet) out += "  " + each + '\n';
  for (const WaitHolder& one : look.holders)
    if (one.is_in_the_way) out += "  " + holder_line(one) + '\n';
  return printable_lines(out);
}

std::string wait_json(const WaitLook& look, std::string_view state, double waited_s) {
  JsonText out;
  out.begin_object().field("schema", std::string_view("vramtrack.wait.v1")).field("state", state);
  out.field("waited_s", waited_s).key("unmet").begin_array();
  for (const std::string& one : look.unmet) out.value(one);
  out.end_array().key("devices").begin_array();
  for (const WaitDevice& one : look.devices) add_device(one, out);
  out.end_array().key("holders").begin_array();
  for (const WaitHolder& one : look.holders) add_holder(one, out);
  out.end_array().end_object();
  return printable_json(out.text()) + '\n';
}

std::string wait_signature(const WaitLook& look) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 30U;
  std::string out;
  for (const WaitDevice& one : look.devices)
    out += fmt::format("{} {};", one.device.id, one.free_bytes ? std::to_string(*one.free_bytes / kStep) : "-");
  for (const WaitHolder& one : look.holders)
    out += fmt::format("{} {} {} {} {};", one.holder.info.pid, one.holder.info.start_ticks, one.device.id,
                       to_string(one.holder.state), one.is_in_the_way);
  return out;
}

}  // namespace vramtrack
