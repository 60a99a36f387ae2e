// Roles: the sizes around a failure, by the words beside them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "explain/figure.hpp"

namespace vramtrack::explain {

/// Sets those sizes of `figures` that the line of [begin, end) tells and that are missing, then those of the lines
/// around it: what is asked for on lines that go on with it ("[requestedSpace: 343146496 B]"), what is free, in use and
/// there in all on each. Roles come from the word beside a size, before it or behind it.
/// Returns how many the line itself tells.
/// `may_go_on`: what the program holds may stand on the lines around it, too.
std::size_t read_figures(std::string_view text, std::size_t begin, std::size_t end, bool may_go_on, Figures& figures);

/// What the text around a failure says of it; each may be empty.
struct Remarks {
  std::string grew;    ///< by which words it had run for long, or what it holds grew: "after 6 hours", "always growing"
  std::string shared;  ///< by which words others use the device: "when gaming"
  double capacity = 0;     ///< of the device, as people and kernels say it; 0: nobody does, or they differ
  std::string less_works;  ///< by which words a smaller input fits: "works perfectly with smaller files"
  std::string settings;    ///< of memory, that the text shows: "device_memory_GB=9"
  double set_aside = 0;    ///< bytes of the largest of them that names a size
  std::string other_code;  ///< of a failure that is no lack of memory, beside it: "cudaErrorNotSupported"
  double free_before = 0;  ///< on the device, by a line above; 0: none tells, or less than was asked for
  std::string advised;     ///< what the program itself advises: "try reducing the timeline resolution"
};
/// Reads them, and sets what people and plans say, where no figure of the failure tells more: the size of the card ("on
/// the 6 GB RTX 3050") and what the program needs in all ("Generating DAG : 3.77 GB").
Remarks read_remarks(std::string_view text, std::size_t begin, std::size_t end, Figures& figures);

/// Whether `begin` stands in a row of a Markdown table that lists terms: it has less than two sizes of its own, and,
/// where it is no `is_statement`, a rule above it ("|---|").
bool is_row_of_terms(std::string_view text, std::size_t begin, bool is_statement);

}  // namespace vramtrack::explain
