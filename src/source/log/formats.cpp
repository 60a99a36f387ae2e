#include <array>

#include "source/log/recognise.hpp"
#include "source/log/recording.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

std::span<const LogFormatInfo* const> log_formats() {
  static const std::array formats = {
#define VRAMTRACK_LOG_FORMAT(name) &name##_log_format,
#include "source/log/formats.def"
#undef VRAMTRACK_LOG_FORMAT
  };
  return formats;
}

std::span<const LogFormatInfo* const> screen_formats() {
  static const std::array screens = {
#define VRAMTRACK_LOG_FORMAT(name)
#define VRAMTRACK_LOG_SCREEN(name) &name##_log_format,
#include "source/log/formats.def"
#undef VRAMTRACK_LOG_FORMAT
  };
  return screens;
}

const LogFormatInfo* find_log_format(std::string_view name) {
  std::string wanted = logtext::lower(name);
  for (char& c : wanted)
    if (c == '_') c = '-';
  for (const LogFormatInfo* format : log_formats())
    if (format->name == wanted) return format;
  return nullptr;
}

}  // namespace vramtrack
