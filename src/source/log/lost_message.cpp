#include "source/log/lost_message.hpp"

#include <algorithm>
#include <array>

#include "source/log/text.hpp"

namespace vramtrack {

bool tells_lost_gpu(std::string_view line) {
  if (line.find("GPU") == std::string_view::npos) return false;
  constexpr std::array<std::string_view, 3> kMessages = {"Unable to determine the device handle for ", "GPU is lost",
                                                         "fallen off the bus"};
  return std::any_of(kMessages.begin(), kMessages.end(),
                     [&](std::string_view message) { return line.find(message) != std::string_view::npos; });
}

CellError cell_error(std::string_view cell) {
  if (cell.size() > 1 && cell.front() == '[' && cell.back() == ']') cell = cell.substr(1, cell.size() - 2);
  if (cell.empty() || logtext::is_digit(cell.front())) return CellError::none;
  const auto is = [&](std::string_view words) { return logtext::same_letters(cell, words); };
  if (is("GPU is lost") || is("GPU requires reset") || is("Reset required")) return CellError::gpu_lost;
  return is("Unknown Error") || is("ERR!") || is("Insufficient Permissions") ? CellError::failed : CellError::none;
}

}  // namespace vramtrack
