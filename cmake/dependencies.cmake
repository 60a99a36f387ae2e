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
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Wide-character curses by its libraries: FindCurses does not find the archives that the portable build wants.
find_library(NCURSESW_LIBRARY ncursesw REQUIRED)
find_library(TINFO_LIBRARY tinfo REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
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

# The agent's HTTP server and the writer of Prometheus' format come without archives: the portable build has no agent.
# cpp-httplib's classes change with its build's options, so pkg-config's definitions are needed, not the header alone.
if(NOT VRAMTRACK_PORTABLE)
  pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
  pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
endif()
