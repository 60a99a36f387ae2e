// Any bytes as a log of any format: the parser reads them without fault, and the same however they are cut into
// stretches. The first byte chooses the format; 255, which the committed inputs of most formats have: by content; 254:
// the first line is a --line-pattern.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/zone.hpp"
#include "source/log/format_choice.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace {

using namespace vramtrack;

/// Reads `text` in stretches of about `stretch` bytes, whole lines each.
struct Reading {
  Catalog catalog;
  DeviceRoster roster;
  LogRows rows{catalog, roster, "log", std::nullopt};

  Reading(const LogFormatInfo& format, const LogHead& head, std::string_view text, std::size_t stretch) {
    auto parser = format.make(head);
    if (!parser) std::abort();  // it was made from the same head before
    std::uint64_t line = 1;
    while (!text.empty()) {
      std::size_t newline = text.find('\n', stretch < text.size() ? stretch : text.size() - 1);
      if (newline == std::string_view::npos) newline = text.rfind('\n');
      const bool complete = newline != std::string_view::npos;
      const std::string_view part = complete ? text.substr(0, newline + 1) : text;
      line = (*parser)->parse(part, line, complete, rows);
      text.remove_prefix(part.size());
    }
    (*parser)->finish(rows);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t choice = data[0];
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  LogOptions options;
  options.timezone = "UTC";
  static const Zone zone = *Zone::open("UTC");
  constexpr std::size_t kLinePattern = 254;
  if (choice < log_formats().size()) options.format = log_formats()[choice]->name;
  if (choice == kLinePattern) options.line_pattern = logtext::take_line(text);
  // A name from which MLflow's format takes what the values are; to the others it is no more than a name.
  const LogHead head{text, "metrics/gpu_0_mem_used_mib", &options, &zone};
  const auto found = choose_format(head);
  if (!found) return 0;
  const Reading whole(**found, head, text, text.size());
  const Reading cut(**found, head, text, 64);
  if (whole.rows.samples.size() != cut.rows.samples.size() || whole.rows.events.size() != cut.rows.events.size() ||
      whole.rows.notes().skipped_lines != cut.rows.notes().skipped_lines)
    std::abort();
  for (std::size_t i = 0; i < whole.rows.samples.size(); ++i)
    if (whole.rows.samples[i].time != cut.rows.samples[i].time ||
        whole.rows.samples[i].bytes != cut.rows.samples[i].bytes)
      std::abort();
  return 0;
}
