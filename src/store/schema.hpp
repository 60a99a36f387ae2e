// The tables of the store's file, their version, and how older versions are brought up to date.
#pragma once

#include <string>

#include "core/result.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

inline constexpr int kSchemaVersion = 6;

/// For a writer: settings, an empty file's tables, migrations from an older schema (each in one
/// transaction). Errors: not a store, damaged, a newer schema; the file is then left as it is. `version` is what the
/// file is brought up to; tests make older files with it.
Status prepare_schema(sql::Database& database, const std::string& path, int version = kSchemaVersion);

/// For a reader: that the file is a store this program can read.
Status check_schema(sql::Database& database, const std::string& path);

}  // namespace vramtrack
