# Writes OUTPUT, a C++ file that defines FUNCTION (declared in HEADER, in NAMESPACE) to return modules of the Python package, for a Python
# that has no package: one source of them all, without their imports of each other. MODULES: their names with commas, each after those that
# it imports. Runs at build time: cmake -DFOLDER= -DMODULES= -DHEADER= -DNAMESPACE= -DFUNCTION= -DOUTPUT= -P embed_python.cmake
set(script "from __future__ import annotations\n")
string(REPLACE "," ";" MODULES "${MODULES}")
foreach(module ${MODULES})
  file(READ ${FOLDER}/${module}.py text)
  string(REGEX REPLACE "\n(from __future__|from vramtrack\\.)[^\n]*" "\n" text "\n${text}")
  string(APPEND script "${text}")
endforeach()
string(HEX "${script}" hex)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
string(LENGTH "${script}" size)
set(content "// Written by cmake/embed_python.cmake; do not edit.
#include \"${HEADER}\"

namespace ${NAMESPACE} {
namespace {
constexpr unsigned char kScript[] = {
${bytes}0};
}  // namespace

std::string_view ${FUNCTION}() {
  return {reinterpret_cast<const char*>(kScript), sizeof kScript - 1};
}

}  // namespace ${NAMESPACE}
")
file(WRITE ${OUTPUT} "${content}")
