# Writes OUTPUT, a C++ file with the files below FOLDER as src/agent/assets.hpp's table; without FOLDER/index.html a page that
# says that the dashboard was not built. Runs at build time: cmake -DFOLDER= -DOUTPUT= -P embed_assets.cmake
set(types_html "text/html; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_json "application/json")
set(types_webmanifest "application/manifest+json")
set(types_svg "image/svg+xml")
set(types_png "image/png")
set(types_ico "image/x-icon")
set(types_woff2 "font/woff2")
set(types_txt "text/plain; charset=utf-8")

set(files)
if(EXISTS ${FOLDER}/index.html)
  file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*)
  list(FILTER files EXCLUDE REGEX "\\.map$")
  list(SORT files)
else()
  set(FOLDER ${CMAKE_CURRENT_LIST_DIR})
  set(files dashboard_missing.html)
endif()

set(data)
set(table)
set(number 0)
foreach(file ${files})
  file(READ ${FOLDER}/${file} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR size "${length} / 2")
  file(SHA256 ${FOLDER}/${file} hash)
  string(SUBSTRING ${hash} 0 16 tag)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  string(REGEX MATCH "[^.]+$" extension ${file})
  set(type "${types_${extension}}")
  if(NOT type)
    set(type "application/octet-stream")
  endif()
  string(APPEND data "constexpr unsigned char kFile${number}[] = {\n${bytes}0};\n")
  set(paths "/${file}")
  if(file STREQUAL "index.html" OR file STREQUAL "dashboard_missing.html")
    set(paths "/" "/index.html")
  endif()
  foreach(path ${paths})
    string(APPEND table "    {\"${path}\", \"${type}\", text(kFile${number}, ${size}), \"\\\"${tag}\\\"\"},\n")
  endforeach()
  math(EXPR number "${number} + 1")
endforeach()

set(content "// Written by cmake/embed_assets.cmake; do not edit.
#include \"agent/assets.hpp\"

namespace vramtrack::agent {
namespace {
${data}
std::string_view text(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}
}  // namespace

std::span<const Asset> assets() {
  static const Asset all[] = {
${table}  };
  return all;
}

}  // namespace vramtrack::agent
")
set(before)
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
