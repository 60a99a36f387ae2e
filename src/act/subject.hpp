// Subject: one process (or device) with a problem, as a policy sees it. A plain value, made only from a View: a
// replayed View gives the same subjects as the live one did.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/view.hpp"

namespace vramtrack::act {

/// Why it is a subject: which of its alerts is active. If both are, the leak.
enum class Trouble : std::uint8_t { leak, stalled };
inline constexpr std::array<std::string_view, 2> kTroubleWords = {"leak", "stalled"};
std::string_view to_string(Trouble trouble);

/// Texts are untrusted: whatever writes them must make them printable.
struct Subject {
  Trouble trouble = Trouble::leak;
  ProcessKey process;  ///< pid 0: no process, only the device
  std::string user;    ///< name, or the uid as text
  std::string command;
  std::string container;  ///< its id, or the runtime's name for it
  std::string pod;        ///< Kubernetes pod UID
  std::string job;        ///< Slurm job id, "1234" or "1234.0"
  std::string job_name;
  /// Further properties that a rule may use: image, framework, cgroup, name (the short name of the process), host.
  std::map<std::string, std::string> labels;
  /// The machine, by its scheduler's name, if it is not this one; process.host is then set too.
  std::string node;
  std::string device_id;  ///< the device with the problem; if there are several, the worst
  std::optional<int> device_index;
  std::string device_name;
  Severity severity = Severity::watch;
  Pattern pattern = Pattern::none;  ///< for a leak, like growth and end
  double confidence = 0;            ///< 0..1, that it leaks or is stalled
  Interval growth_bytes_per_s;
  std::optional<Interval> ends_in_s;  ///< until memory runs out, if that can be predicted
  std::uint64_t used_bytes = 0;       ///< the memory used by the process, on this device
  double held_s = 0;                  ///< how long the evidence has existed: since the alert was raised
  bool has_saved = false;             ///< the work itself has reported that it has written its checkpoint
  /// Memory on its device that no process held when an act that ends the process was due. Any excess afterwards was not
  /// returned.
  std::optional<double> unattributed_bytes;
  std::string because;   ///< the evidence in words, with its figures
  std::string incident;  ///< of the alert (core/incident.hpp); empty if unnamed
  std::string claim;     ///< the claim that it confirms: Claim::id(); empty: it was detected without one
  friend bool operator==(const Subject&, const Subject&) = default;
};

/// The number of a Slurm job: "1234" for "1234.batch".
inline std::string job_number(const std::string& job) {
  return job.substr(0, job.find('.'));
}

/// Identifies a subject: the process, or the device if there is none. The text stays the same as long as the process
/// lives and is never reused for another.
std::string subject_key(const Subject& subject);

/// "pid 4242 (python train.py, alice)"; "GPU 0" for a subject without a process; followed by " on gn1" if it is on
/// another machine. Printable.
std::string subject_words(const Subject& subject);

/// The subjects of `view`, at most one per process and one per device: the worst of several series of one process. A
/// series that is ignored, has ended, or whose device does not answer gives no subject; nor does a process that has
/// ended but has not been reaped, because no act reaches it. A device is a subject itself only if no visible process
/// explains its growth. Pure; O(series).
std::vector<Subject> subjects_of(const View& view);

}  // namespace vramtrack::act
