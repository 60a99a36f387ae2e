// SmiTable: what a table of nvidia-smi in a text shows for each device: the memory in use, and its
// processes.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "explain/message.hpp"

namespace vramtrack::explain {

/// Takes a text line by line. Any bytes are accepted. What it reads:
///
///   |   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |
///   |  0%   41C    P8             16W /  450W |   22528MiB /  23028MiB |      0%      Default |
///   |    0   N/A  N/A      4711      C   python serve.py                            22500MiB |
///   14992    C+G   .../kit/kit                  6817MiB
///   [6] NVIDIA A100 80GB PCIe | 52'C, 100 % | 10151 / 81920 MB | alice(8123M)
///
/// A process row without its table is reported as Figure::outside. The last form is gpustat's.
///
/// Lists of processes and their memory of the host are read too, by their titles: of Ray, ps, top and of the kernel:
///
///   PID     MEM     COMMAND
///   28442   5.0GB   ray_X:alloc()
///   [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
class SmiTable {
 public:
  /// False: the line is not part of such a table, or is its first.
  bool take(std::string_view line, std::uint64_t number);
  /// Appends a message for each device of the table, without a failure, and starts over. A message names its device if
  /// there are several.
  void end(std::vector<Message>& out);

 private:
  bool take_row_alone(std::string_view line, std::uint64_t number);
  bool take_titles(std::string_view line, std::uint64_t number);
  bool take_list_row(std::string_view line);

  std::map<double, Message> devices_;          ///< by index
  Message rows_;                               ///< the processes without a table
  double next_ = 0;                            ///< the index whose memory comes next
  Message list_;                               ///< of the host's processes
  std::size_t pid_ = 0, size_ = 0, name_ = 0;  ///< its columns
  bool list_is_of_device_ = false;
  double unit_bytes_ = 0;  ///< of its sizes, where they have none
};

}  // namespace vramtrack::explain
