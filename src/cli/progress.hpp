// A line on the terminal that says what a long command is doing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/console.hpp"

namespace vramtrack::cli {

/// While it lives and takes more than two seconds, a line on standard error says what is done, for how long, and how
/// much of the files has been read: "reading gpu.csv: 34 %, 5s so far". Only where standard error is a terminal. The
/// line gives way to whatever the console writes, and is gone at the end. `console` must outlive it.
class Progress {
 public:
  Progress(Console& console, std::string what);
  /// For a command that reads these files.
  Progress(Console& console, const std::vector<std::string>& files);
  ~Progress();
  /// What has been done, instead of how much of the files was read: "12 of 80 machines judged". Cheap; any thread.
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
  std::thread thread_;  ///< none where nobody would see the line
};

}  // namespace vramtrack::cli
