# Libraries, all from the distribution's packages (see scripts/setup.sh for their names).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(date REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)

# toml++ as the packaged shared library: its header-only form takes seconds a file to compile.
add_library(vramtrack_toml INTERFACE)
target_link_libraries(vramtrack_toml INTERFACE PkgConfig::TOMLPP)
