# Writes OUTPUT, a C++ file with the modules of the Python package that run in programs that have no package: those of `vramtrack attach`, and
# those of the probe's looks (src/probe/kept.hpp). Each is one source of its modules, without their imports of each other. Runs at build
# time: cmake -DFOLDER= -DOUTPUT= -P embed_attach.cmake
function(one_source into)  # modules, each after those that it imports
  set(script "from __future__ import annotations\n")
  foreach(module ${ARGN})
    file(READ ${FOLDER}/${module}.py text)
    string(REGEX REPLACE "\n(from __future__|from vramtrack\\.)[^\n]*" "\n" text "\n${text}")
    string(APPEND script "${text}")
  endforeach()
  string(HEX "${script}" hex)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  set(${into} "${bytes}" PARENT_SCOPE)
endfunction()
one_source(attach recorder referrers safe_point door)
one_source(kept referrers traced_look)
set(content "// Written by cmake/embed_attach.cmake; do not edit.
#include \"run/attach.hpp\"
#include \"run/probe_library.hpp\"

namespace vramtrack::run {
namespace {
constexpr unsigned char kAttach[] = {
${attach}0};
constexpr unsigned char kKept[] = {
${kept}0};
}  // namespace

std::string_view attach_script() {
  return {reinterpret_cast<const char*>(kAttach), sizeof kAttach - 1};
}
std::string_view kept_script() {
  return {reinterpret_cast<const char*>(kKept), sizeof kKept - 1};
}

}  // namespace vramtrack::run
")
file(WRITE ${OUTPUT} "${content}")
