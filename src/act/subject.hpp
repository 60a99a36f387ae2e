// Subject: what a policy sees of one process (or of a device) that is in trouble. A plain value, made of a View alone:
// a replayed View gives the same subjects as the live one did.
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

/// Why it is a subject: which alert of it stands. Of a process with both it is the leak.
enum class Trouble : std::uint8_t { leak, stalled };
inline constexpr std::array<std::string_view, 2> kTroubleWords = {"leak", "stalled"};
std::string_view to_string(Trouble trouble);

/// Texts are foreign: whoever writes them somewhere makes them printable.
struct Subject {
  Trouble trouble = Trouble::leak;
  ProcessKey process;  ///< pid 0: no process, the device alone
  std::string user;    ///< name, or the uid as text
  std::string command;
  std::string container;  ///< its id, or its runtime's name for it
  std::string pod;        ///< Kubernetes pod UID
  std::string job;        ///< Slurm job id, "1234" or "1234.0"
  std::string job_name;
  /// More of what a rule may ask for: image, framework, cgroup, name (the short name of the process), host.
  std::map<std::string, std::string> labels;
  /// The machine as its scheduler knows it, where that is not this one; process.host is set then, too.
  std::string node;
  std::string device_id;  ///< where it is in trouble; of several devices, where it is worst
  std::optional<int> device_index;
  std::string device_name;
  Severity severity = Severity::watch;
  Pattern pattern = Pattern::none;  ///< of a leak, as are growth and end
  double confidence = 0;            ///< 0..1, that it leaks, or that it is stalled
  Interval growth_bytes_per_s;
  std::optional<Interval> ends_in_s;  ///< until memory runs out, where an end can be told
  std::uint64_t used_bytes = 0;       ///< of the process, on this device
  double held_s = 0;                  ///< for how long the evidence has stood: since the alert was raised
  bool has_saved = false;             ///< the work itself has told that it has written its checkpoint
  /// Of its device: what no process held when an act that ends the process was due. What is more afterwards did not
  /// come back.
  std::optional<double> unattributed_bytes;
  std::string because;  ///< the evidence in words, with its figures
  friend bool operator==(const Subject&, const Subject&) = default;
};

/// What tells one subject from another: the process, or the device where there is none. The same text for the same
/// process as long as it lives, and never again for another.
std::string subject_key(const Subject& subject);

/// "pid 4242 (python train.py, alice)"; "GPU 0" of a subject without a process; of one on another machine with
/// " on gn1". Printable.
std::string subject_words(const Subject& subject);

/// The subjects of `view`, at most one a process and one a device: of several series of one process the worst. An
/// ignored series, one that has ended and one whose device does not answer make none. A device is a subject of its own
/// only where no visible process explains what it shows. Pure; O(series).
std::vector<Subject> subjects_of(const View& view);

}  // namespace vramtrack::act
