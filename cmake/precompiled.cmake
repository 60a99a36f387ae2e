# CMake also has clang include the header itself, by its absolute path, after the precompiled one: it adds nothing, and another clone would miss
# ccache in every file.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)
endif()

# vramtrack_precompile(TARGET HEADER...): precompiles the headers for TARGET and for whoever reuses them, and writes the checksum
# that ccache knows them by: of the headers' text, the compiler, its flags and the packages that the headers are from.
function(vramtrack_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  get_directory_property(options COMPILE_OPTIONS)
  get_target_property(level ${target} COMPILE_OPTIONS)
  get_target_property(kind ${target} TYPE)  # a library's header is compiled for other code than an executable's
  set(text "${kind} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${options} ${level}"
           " ${CMAKE_POSITION_INDEPENDENT_CODE} ${VRAMTRACK_PORTABLE} ${fmt_VERSION} ${GTest_VERSION} ${ARGN}")
  file(READ ${CMAKE_SOURCE_DIR}/src/pch.hpp header)
  string(REPLACE "${CMAKE_SOURCE_DIR}" "" sum_text "${text}${header}")
  string(SHA256 sum "${sum_text}")
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/pch.hpp)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum "${sum}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum "${sum}")
endfunction()
