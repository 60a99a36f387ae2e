# Writes OUTPUT, a C++ file with the modules of the Python package that `vramtrack attach` runs in a program that has no package: one
# source of them all, without their imports of each other. Runs at build time: cmake -DFOLDER= -DOUTPUT= -P embed_attach.cmake
set(script "from __future__ import annotations\n")
foreach(module recorder referrers safe_point door)  # each after those that it imports
  file(READ ${FOLDER}/${module}.py text)
  string(REGEX REPLACE "\n(from __future__|from vramtrack\\.)[^\n]*" "\n" text "\n${text}")
  string(APPEND script "${text}")
endforeach()
string(HEX "${script}" hex)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
string(LENGTH "${script}" size)
set(content "// Written by cmake/embed_attach.cmake; do not edit.
#include \"run/attach.hpp\"

namespace vramtrack::run {
namespace {
constexpr unsigned char kScript[] = {
${bytes}0};
}  // namespace

std::string_view attach_script() {
  return {reinterpret_cast<const char*>(kScript), sizeof kScript - 1};
}

}  // namespace vramtrack::run
")
file(WRITE ${OUTPUT} "${content}")
