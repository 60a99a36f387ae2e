// A line on the terminal that shows the progress of a long command.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/console.hpp"

namespace vramtrack::cli {

/// While the object lives and more than two seconds have passed, a line on standard error shows the activity, its
/// duration, and how much of the files has been read: "reading gpu.csv: 34 %, 5s so far". Only if standard error is a
/// terminal. The line gives way to anything the console writes, and is erased at the end. `console` must outlive it.
class Progress {
 public:
  Progress(Console& console, std::string what);
  /// For a command that reads `files`.
  Progress(Console& console, const std::vector<std::string>& files);
  ~Progress();
  /// Shows `done` instead of the share of the files that was read: "12 of 80 machines judged". Cheap; any thread.
  void show(std::string done);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  Progress(Console& console, std::string what, std::vector<std::string> files);
  void run();

  Console& console_;
  const std::string what_;
  const std::vector<std::string> files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::string done_;
  std::thread thread_;  ///< not started if nobody would see the line
};

}  // namespace vramtrack::cli
