# Libraries, all from the distribution's packages (see scripts/setup.sh for their names).
#
# VRAMTRACK_PORTABLE links everything but the C library statically. glibc stays dynamic: NVML is loaded with dlopen,
# which a static glibc cannot do. So does libgcc_s, which every glibc system has: its archive wants glibc 2.35.
if(VRAMTRACK_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)  # SQLite3, zlib, zstd: their archives, where find_library looks for them
  add_compile_options(-ffunction-sections -fdata-sections)
  # Unused sections go: one of libstdc++'s would otherwise want glibc 2.36.
  add_link_options(-static-libstdc++ -Wl,--gc-sections)
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
# Wide-character curses by its libraries: FindCurses does not find the archives that the portable build wants.
find_library(NCURSESW_LIBRARY ncursesw REQUIRED)
find_library(TINFO_LIBRARY tinfo REQUIRED)
find_library(SNAPPY_LIBRARY snappy REQUIRED)  # Debian's has no file for pkg-config
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(RE2 REQUIRED re2)
# Without pkg-config's -pthread, which the precompiled header is not compiled with.
add_library(vramtrack_re2 INTERFACE)
target_include_directories(vramtrack_re2 SYSTEM INTERFACE ${RE2_INCLUDE_DIRS})
if(NOT VRAMTRACK_PORTABLE)  # compiled below
  target_link_libraries(vramtrack_re2 INTERFACE ${RE2_LINK_LIBRARIES})
endif()
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)

add_library(vramtrack_fmt INTERFACE)
add_library(vramtrack_toml INTERFACE)
if(VRAMTRACK_PORTABLE)
  # Debian has no archive of fmt and toml++: their header-only forms.
  target_link_libraries(vramtrack_fmt INTERFACE fmt::fmt-header-only)
  target_compile_definitions(vramtrack_toml INTERFACE TOML_HEADER_ONLY=1)
  target_include_directories(vramtrack_toml SYSTEM INTERFACE ${TOMLPP_INCLUDE_DIRS})
  target_link_libraries(SQLite::SQLite3 INTERFACE m)
else()
  # toml++ as the packaged shared library: its header-only form takes seconds a file to compile.
  target_link_libraries(vramtrack_fmt INTERFACE fmt::fmt)
  target_link_libraries(vramtrack_toml INTERFACE PkgConfig::TOMLPP)
endif()

# The HTTP server and client, and the writer of Prometheus' format. Debian has no archives of them: for the portable build they are
# compiled from its source packages, in the versions whose headers are installed (scripts/library_sources.sh). So is RE2, whose archive is
# for programs only.
# cpp-httplib's classes change with its build's options, so pkg-config's definitions are needed, not the header alone.
if(VRAMTRACK_PORTABLE)
  set(library_sources ${CMAKE_SOURCE_DIR}/build/library-sources)
  if(NOT EXISTS ${library_sources}/complete)
    message(FATAL_ERROR "The portable build compiles three libraries from their Debian source packages: run scripts/library_sources.sh first")
  endif()
  set(OPENSSL_USE_STATIC_LIBS ON)
  find_package(OpenSSL REQUIRED)
  file(GLOB prometheus_sources ${library_sources}/prometheus-cpp/core/src/*.cc ${library_sources}/prometheus-cpp/core/src/detail/*.cc)
  add_library(httplib_archive STATIC ${library_sources}/cpp-httplib/out/httplib.cc)
  target_compile_definitions(httplib_archive PUBLIC CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT)
  target_link_libraries(httplib_archive PUBLIC OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
  add_library(prometheus_archive STATIC ${prometheus_sources})
  target_include_directories(prometheus_archive PRIVATE ${library_sources}/prometheus-cpp/core/include)
  file(GLOB re2_sources ${library_sources}/re2/re2/*.cc ${library_sources}/re2/util/rune.cc ${library_sources}/re2/util/strutil.cc)
  add_library(re2_archive STATIC ${re2_sources})
  target_include_directories(re2_archive PRIVATE ${library_sources}/re2)
  target_link_libraries(vramtrack_re2 INTERFACE re2_archive Threads::Threads)
  foreach(library httplib prometheus re2)
    target_compile_options(${library}_archive PRIVATE -w -O2)
  endforeach()
  add_library(PkgConfig::HTTPLIB ALIAS httplib_archive)
  add_library(PkgConfig::PROMETHEUS ALIAS prometheus_archive)
else()
  pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
  find_package(OpenSSL REQUIRED)  # which cpp-httplib's header includes; the agent's own TLS uses it without httplib
  pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
endif()

# Debug information of native frames (elfutils' libdw). A build without it shows them as offsets in their modules.
option(VRAMTRACK_SYMBOLS "Look up the functions and source lines of native frames with libdw" ON)
if(VRAMTRACK_SYMBOLS)
  find_path(LIBDW_INCLUDE_DIR elfutils/libdwfl.h)
  find_library(LIBDW_LIBRARY dw)
  find_library(LIBELF_LIBRARY elf)
  if(LIBDW_INCLUDE_DIR AND LIBDW_LIBRARY AND LIBELF_LIBRARY)
    add_library(vramtrack_libdw INTERFACE)
    target_include_directories(vramtrack_libdw SYSTEM INTERFACE ${LIBDW_INCLUDE_DIR})
    if(VRAMTRACK_PORTABLE)  # what the archive needs, which must follow it; the shared library knows it itself
      find_library(LZMA_LIBRARY lzma REQUIRED)
      find_library(BZ2_LIBRARY bz2 REQUIRED)
      add_library(libdw_archive STATIC IMPORTED GLOBAL)
      set_target_properties(libdw_archive PROPERTIES IMPORTED_LOCATION ${LIBDW_LIBRARY})
      target_link_libraries(libdw_archive INTERFACE ${LIBELF_LIBRARY} ${LZMA_LIBRARY} ${BZ2_LIBRARY} ZLIB::ZLIB PkgConfig::ZSTD ${CMAKE_DL_LIBS}
                            Threads::Threads)
      target_link_libraries(vramtrack_libdw INTERFACE libdw_archive)
    else()
      target_link_libraries(vramtrack_libdw INTERFACE ${LIBDW_LIBRARY} ${LIBELF_LIBRARY})
    endif()
  elseif(CMAKE_CROSSCOMPILING)
    message(STATUS "libdw is not there for ${CMAKE_SYSTEM_PROCESSOR}: native frames are shown as offsets in their modules")
  else()
    message(FATAL_ERROR "libdw is missing: install libdw-dev (scripts/setup.sh), or configure with -DVRAMTRACK_SYMBOLS=OFF")
  endif()
endif()

# The kernel's side of `vramtrack trace live`: libbpf loads what clang's BPF target compiles.
option(VRAMTRACK_TELEMETRY "Build the tracer of running programs (clang's BPF target, libbpf), where both are there" ON)
if(VRAMTRACK_TELEMETRY AND NOT VRAMTRACK_PORTABLE AND NOT CMAKE_CROSSCOMPILING
   AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  find_program(VRAMTRACK_BPF_CLANG clang)
  pkg_check_modules(LIBBPF libbpf>=1.0)
  if(LIBBPF_FOUND)
    add_library(vramtrack_bpf INTERFACE)
    target_include_directories(vramtrack_bpf SYSTEM INTERFACE ${LIBBPF_INCLUDE_DIRS})
    target_link_libraries(vramtrack_bpf INTERFACE ${LIBBPF_LINK_LIBRARIES})
  endif()
  if(NOT VRAMTRACK_BPF_CLANG OR NOT LIBBPF_FOUND)
    message(STATUS "Built without `vramtrack trace live`: clang or libbpf is missing (clang, libbpf-dev)")
  endif()
endif()
