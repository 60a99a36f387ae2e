// What lines and cells of a log say besides readings: that a GPU ran out of memory, that one was lost, that a program
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

  /// Whether one of the words stands in `line`, and `is_it(word, at)`.
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

/// Whether `line` reports that a program ended and did not do so by itself: "worker died with signal 9, restarting",
/// "Main process exited, code=killed", "exited with code 137", "train.sh: line 3: 4711 Killed". A status of zero does
/// not count: helpers end so all the time. It need not be the program that holds the memory, so this is evidence of an
/// end only together with a fall. A line without such a message costs about a hundred nanoseconds.
bool tells_end(std::string_view line);

/// Whether `line` has such a message, according to the wordings of `explain` (explain/wordings.def). A line without
/// one costs a few dozen nanoseconds.
bool tells_out_of_memory(std::string_view line);

/// The reason, from the figures of the message: "1.12 GiB were requested while ...", "FRAGMENTATION: ..."; empty when
/// it gives none.
std::string why_out_of_memory(std::string_view line);

/// A limit that others have set for the memory of a program, as its message of out of memory names it.
struct NamedLimit {
  std::uint64_t bytes = 0;
  std::uint64_t held_bytes = 0;  ///< by the program then, of what the limit counts
  std::string name;              ///< who set it
};
/// nullopt: the message names none of what the program may hold in all. "8.00 GiB allowed" of PyTorch,
/// "Device 0 OOM 3171158016 / 3145728000" of HAMi.
std::optional<NamedLimit> limit_of_message(std::string_view line);

/// Whom a message of out of memory is about.
struct NamedProcesses {
  std::uint32_t own = 0;              ///< that failed, as it sees itself; 0: not told
  std::vector<std::uint32_t> others;  ///< that held memory beside it
};
NamedProcesses processes_of_message(std::string_view line);

/// Whether `line` reports that the kernel, or who runs the program, ended it because the host's memory ran out: "Memory
/// cgroup out of memory: Killed process 4242", "OOMKilled". A status of 137 alone leaves open who did, and why.
bool tells_host_killed(std::string_view line);
/// The process that such a line names; 0: none.
std::uint32_t pid_killed(std::string_view line);

/// The index of the GPU that the message names ("GPU 0 has a total capacity of"), as the program counts its GPUs.
std::optional<int> gpu_of_message(std::string_view line);

/// "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", "GPU is lost. Reboot the system to
/// recover this GPU", "GPU has fallen off the bus". Pure; quick for other lines.
bool tells_lost_gpu(std::string_view line);

enum class CellError : std::uint8_t {
  none,      ///< a reading, or a value that this GPU or driver does not have: "[N/A]", "[Not Supported]"
  failed,    ///< "[Unknown Error]", "ERR!", "[Insufficient Permissions]"
  gpu_lost,  ///< "[GPU is lost]", "[GPU requires reset]"
};

/// What the cell of a table says in place of a reading. Pure.
CellError cell_error(std::string_view cell);

}  // namespace vramtrack
