#include "core/option.hpp"

#include <atomic>

namespace vramtrack {
namespace {

struct Words {
  std::string_view name;
  std::string_view example;
};

struct Named {
  Words command_line;
  Words python;
};

constexpr Named kNamed[] = {
#define VRAMTRACK_OPTION(option, name, example, python_name, python_example) \
  {{name, example}, {python_name, python_example}},
#define VRAMTRACK_COMMAND_OPTION(option, name) {{name, name}, {"the command line's " name, "the command line's " name}},
#include "core/option.def"
#undef VRAMTRACK_COMMAND_OPTION
#undef VRAMTRACK_OPTION
};

std::atomic<Surface> g_surface = Surface::command_line;

const Words& words_of(Option option) {
  const Named& named = kNamed[static_cast<std::size_t>(option)];
  return g_surface.load(std::memory_order_relaxed) == Surface::python ? named.python : named.command_line;
}

}  // namespace

std::string_view name_of(Option option) {
  return words_of(option).name;
}

std::string_view example_of(Option option) {
  return words_of(option).example;
}

void set_surface(Surface surface) {
  g_surface.store(surface, std::memory_order_relaxed);
}

}  // namespace vramtrack
