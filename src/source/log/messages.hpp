// Content of log lines and cells other than readings: a GPU ran out of memory or was lost, or a program
// ended.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vramtrack {

class FirstPairs {
 public:
  /// REQUIRES: each word has two characters.
  explicit FirstPairs(std::span<const std::string_view> words) : words_(words) {
    for (const std::string_view word : words) begins_.set(pair_at(word, 0));
  }

  /// Whether one of the words occurs in `line`, and `is_it(word, at)` accepts it.
  template <class IsIt>
  bool any_of(std::string_view line, IsIt is_it) const {
    for (std::size_t at = 0; at + 1 < line.size(); ++at) {
      if (!begins_.test(pair_at(line, at))) continue;
      for (const std::string_view word : words_)
        if (word[0] == line[at] && word[1] == line[at + 1] && line.substr(at).starts_with(word) && is_it(word, at))
          return true;
    }
    return false;
  }

 private:
  static std::size_t pair_at(std::string_view text, std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(text[at])) << 8U |
           static_cast<unsigned char>(text[at + 1]);
  }

  std::span<const std::string_view> words_;
  std::bitset<65536> begins_;
};

/// Whether `line` reports that a program ended abnormally: "worker died with signal 9, restarting", "Main process
/// exited, code=killed", "exited with code 137", "train.sh: line 3: 4711 Killed". A status of zero does not count:
/// helper programs exit all the time. It may not be the program that holds the memory, so it counts as an end only
/// together with a fall in memory. A line without such a message costs about a hundred nanoseconds.
bool reports_end(std::string_view line);

/// Whether `line` reports out of memory, according to the wordings of `explain` (explain/wordings.def). A line without
/// such a message costs a few dozen nanoseconds.
bool reports_out_of_memory(std::string_view line);

/// The reason, from the figures in the message: "1.12 GiB were requested while ...", "FRAGMENTATION: ..."; empty if it
/// gives none.
std::string why_out_of_memory(std::string_view line);

/// A limit on a program's memory set by someone else, as named in an out-of-memory message.
struct NamedLimit {
  std::uint64_t bytes = 0;
  std::uint64_t held_bytes = 0;  ///< memory that the program held then, as counted by the limit
  std::string name;              ///< who set it
};
/// The limit in "8.00 GiB allowed" (PyTorch) or "Device 0 OOM 3171158016 / 3145728000" (HAMi); nullopt if the message
/// names no limit on the program's total.
std::optional<NamedLimit> limit_of_message(std::string_view line);

/// The processes that an out-of-memory message names.
struct NamedProcesses {
  std::uint32_t own = 0;              ///< the process that failed, by its own pid namespace; 0: not reported
  std::vector<std::uint32_t> others;  ///< processes that held memory as well
};
NamedProcesses processes_of_message(std::string_view line);

/// Whether `line` reports that the kernel or a supervisor killed the program because the host's memory ran out: "Memory
/// cgroup out of memory: Killed process 4242", "OOMKilled". A status of 137 shows neither who did so nor why.
bool reports_host_kill(std::string_view line);
/// The process that such a line names; 0 if it names none.
std::uint32_t pid_killed(std::string_view line);

/// The GPU index in the message ("GPU 0 has a total capacity of"), as the program counts its GPUs.
std::optional<int> gpu_of_message(std::string_view line);

/// "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", "GPU is lost. Reboot the system to
/// recover this GPU", "GPU has fallen off the bus". Pure; quick for other lines.
bool reports_lost_gpu(std::string_view line);

enum class CellError : std::uint8_t {
  none,      ///< a reading, or a value that this GPU or driver does not support: "[N/A]", "[Not Supported]"
  failed,    ///< "[Unknown Error]", "ERR!", "[Insufficient Permissions]"
  gpu_lost,  ///< "[GPU is lost]", "[GPU requires reset]"
};

/// The error in a table cell in place of a reading. Pure.
CellError cell_error(std::string_view cell);

}  // namespace vramtrack
