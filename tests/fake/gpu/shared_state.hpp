// How many bytes each process holds on each fake device: a file that the processes on the same GPUs map, or memory of
// this process and its children where VRAMTRACK_FAKE_GPU_STATE names no file.
//
//   driver (process 1) --charge--.                      .--> driver (process 2): what is free
//                                +--> the mapped file --+
//   driver (process 2) --charge--'                      '--> NVML (vramtrack): used memory, processes
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "settings.hpp"

namespace fake_gpu {

struct ProcessUse {
  int pid = 0;  ///< 0: a free row
  std::array<std::uint64_t, kMaxDevices> bytes{};
};

/// Each function locks the file against other threads, processes and libraries. A process that ended holds nothing; one
/// that was killed keeps its row until somebody waits for it.
class SharedState {
 public:
  static SharedState& get();
  /// The state in a file named by a scenario; never freed.
  static SharedState& at(const std::string& path);

  /// Adds to what this process holds on the device. False: that is more than the device has, and nothing is changed.
  bool charge(int device, std::uint64_t bytes);
  void give_back(int device, std::uint64_t bytes);
  /// What all processes hold.
  std::uint64_t used_bytes(int device);
  /// The processes that hold memory on the device.
  std::vector<ProcessUse> processes(int device);
  /// This process holds nothing any more.
  void leave();

 private:
  explicit SharedState(std::string path);
  class Lock;
  void open_file();
  void drop_ended();
  ProcessUse* mine();

  static constexpr int kRows = 256;
  std::string path_;
  int file_ = -1;
  int opened_by_ = 0;  ///< a child needs its own file: a lock belongs to the open file
  std::array<ProcessUse, kRows>* rows_ = nullptr;
};

}  // namespace fake_gpu
