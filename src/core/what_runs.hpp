// What a command line runs: the names by which a program is recognised, regardless of its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace vramtrack {

/// Refers to the texts that it was made from.
class WhatRuns {
 public:
  /// `command`: the command line, arguments joined by spaces, or only a path, as in logs; `name`: the short name
  /// (comm). Either may be empty. Pure; O(command).
  WhatRuns(std::string_view command, std::string_view name);

  /// Whether one of its names matches one of the '|'-separated `patterns`. A name is that of an executable or script
  /// (without path, .py, .exe), the module of `python -m`, its package under site-packages, or the part of a process
  /// title before "::". A '*' at an end of a pattern stands for any rest; "llama-*" does not match "llama-" alone. Case
  /// is ignored. Anything that a program only mentions in its arguments (a data set's path, a flag) matches nothing.
  [[nodiscard]] bool fits(std::string_view patterns) const;

 private:
  void add(std::string_view name);

  std::array<std::string_view, 6> names_;
  std::size_t count_ = 0;
};

/// The part that distinguishes programs, for places too narrow for the whole command line: without the folders and
/// the interpreter, "train.py --config resnet50" for "/opt/conda/bin/python -u /home/ada/train.py --config resnet50"
/// and "torch.distributed.run pretrain.py" for "python -m torch.distributed.run pretrain.py". Pure; O(command).
std::string short_command(std::string_view command);

/// Calls `use` with each part of the '|'-separated `list` until it returns true; returns whether one did.
template <class Use>
bool any_part(std::string_view list, Use use) {
  while (!list.empty()) {
    const std::size_t bar = list.find('|');
    if (use(list.substr(0, bar))) return true;
    if (bar == std::string_view::npos) break;
    list.remove_prefix(bar + 1);
  }
  return false;
}

}  // namespace vramtrack
