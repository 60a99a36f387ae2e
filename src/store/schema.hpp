// The tables of the store's file, their version, and how older versions are brought up to date.
#pragma once

#include <string>

#include "core/result.hpp"
#include "store/sqlite.hpp"

namespace vramtrack {

inline constexpr int kSchemaVersion = 12;

/// For a writer: applies settings, creates an empty file's tables, and migrates an older schema (each step in one
/// transaction). Errors: not a store, damaged, a newer schema; the file is then left unchanged. `version` is the schema
/// to which the file is upgraded; tests use it to make older files.
Status prepare_schema(sql::Database& database, const std::string& path, int version = kSchemaVersion);

/// For a reader: checks that the file is a store that this program can read.
Status check_schema(sql::Database& database, const std::string& path);

}  // namespace vramtrack
