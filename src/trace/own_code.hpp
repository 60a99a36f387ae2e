// The owner of a frame's code: the user, or a library, a framework, the language or the driver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramtrack::trace {

/// Not the user's own: files in site-packages or dist-packages, Python's standard library and frozen modules; native
/// code of the driver, the frameworks, the C and C++ libraries and the interpreter, libraries in /usr and /opt, and
/// code inlined from headers there. A program is the user's own wherever it is installed.
class OwnCode {
 public:
  OwnCode() = default;
  /// Paths that begin with one of `libraries` are not the user's own either; those that begin with one of `own` always
  /// are.
  OwnCode(std::vector<std::string> libraries, std::vector<std::string> own)
      : libraries_(std::move(libraries)), own_(std::move(own)) {}

  [[nodiscard]] bool is_own_python(std::string_view file) const;
  /// `file`: the source file; empty if unknown.
  [[nodiscard]] bool is_own_native(std::string_view module, std::string_view file) const;

 private:
  std::vector<std::string> libraries_, own_;
};

/// Whether the module is libpython or the program python itself.
constexpr bool is_interpreter(std::string_view module) {
  const std::string_view name = module.substr(module.rfind('/') + 1);  // npos + 1 is 0
  if (name.ends_with(".py")) return false;
  return name.starts_with("libpython") || name.starts_with("python3") || name == "python";
}
/// The same, or a native module of the standard library.
bool is_cpython(std::string_view module);

}  // namespace vramtrack::trace
