// Roles: the meaning of the sizes around a failure, from the words next to them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/figure.hpp"
#include "explain/statement.hpp"

namespace vramtrack::explain {

/// Sets missing sizes of `figures` from the line of [begin, end), then from the lines around it: the
/// request from lines that continue it ("[requestedSpace: 343146496 B]"), free, used and total
/// memory from each. Roles come from the word next to a size, before it or after it. Returns how
/// many the line itself contains. `may_go_on`: the program's own memory may be on the lines around
/// it, too.
std::size_t read_figures(std::string_view text, std::size_t begin, std::size_t end, bool may_go_on, Figures& figures);

/// A need on `line`, in lower case, and a smaller bound that the words set against it: "requires 4.08 GB but device has
/// 4.00 GB", "grows to 1683968 B, which is beyond the maximum of 1572864 B", "too much shared memory used
/// (36860/32768)". Decided by the two amounts and by what each is, whatever the program. O(line).
std::optional<Range> excess_of(std::string_view line);

/// What the text around a failure says about it; each may be empty.
struct Remarks {
  std::string grew;         ///< words for a long run, or for growth: "after 6 hours", "always growing"
  std::string shared;       ///< words for others using the device: "when gaming"
  double capacity = 0;      ///< of the device, as users and kernels report it; 0: not reported, or contradictory
  std::string in_pieces;    ///< words for what is free in pieces: "sort of memory fragmentation"
  std::string less_works;   ///< words for a smaller input that fits: "works perfectly with smaller files"
  std::string settings;     ///< memory settings in the text: "device_memory_GB=9"
  double set_aside = 0;     ///< bytes of the largest of them with a size
  double free_before = 0;   ///< on the device, from a line above; 0: none, or less than requested
  std::string advised;      ///< the program's own advice: "try reducing the timeline resolution"
  std::string failed_part;  ///< the part that could not be created: "KV cache"
  bool is_gtt = false;      ///< the memory is GTT, a part of the host's that the driver lets the GPU use
};
/// Reads them, and sets what users and plans report, if the figures of the failure show no more: the size of the card
/// ("on the 6 GB RTX 3050") and the total need of the program ("Generating DAG : 3.77 GB").
Remarks read_remarks(std::string_view text, std::size_t begin, std::size_t end, Figures& figures);

/// The processes that the lines around [begin, end) name, with what each holds of the device: "pid 900 (blender) uses
/// 7000 MB", "blender (pid 900) holds 6.8 GiB", "process 900 (blender): 7000 MB". Only those with a name; at most 8.
std::vector<OtherProcess> named_processes(std::string_view text, std::size_t begin, std::size_t end);

/// Whether `begin` is in a row of a Markdown table that lists terms: it has less than two sizes of its own and, unless
/// it `is_statement`, a rule above it ("|---|").
bool is_row_of_terms(std::string_view text, std::size_t begin, bool is_statement);

}  // namespace vramtrack::explain
