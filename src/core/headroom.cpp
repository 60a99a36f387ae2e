#include "core/headroom.hpp"

#include <fmt/format.h>

namespace vramtrack {

std::string headroom_words(const Headroom& h, std::optional<std::uint64_t> capacity_bytes, const Scale& scale) {
  const auto peak = static_cast<double>(h.peak_bytes);
  std::string out = fmt::format(
      "peaks at {}", capacity_bytes ? scale.bytes_of(peak, static_cast<double>(*capacity_bytes)) : scale.bytes(peak));
  if (h.earlier_runs > 0)
    out += fmt::format("; {}{} needed up to {} more than this run does now",
                       h.earlier_runs == 1 ? "the last run" : fmt::format("the last {} runs", h.earlier_runs),
                       h.pid != 0 ? fmt::format(" of the program of pid {}", h.pid) : "",
                       scale.bytes(static_cast<double>(h.more_bytes)));
  const auto left = static_cast<double>(h.left_bytes);
  if (h.fits()) return out + fmt::format("; {} would be left", scale.bytes(left));
  return out + fmt::format(": does not fit{}, {} short",
                           h.beside_pid != 0 ? fmt::format(" beside pid {}", h.beside_pid) : "", scale.bytes(-left));
}

}  // namespace vramtrack
