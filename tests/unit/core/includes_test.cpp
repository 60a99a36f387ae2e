// Enforces the one-way dependencies of docs/ARCHITECTURE.md by reading every #include line under src/.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "paths.hpp"

namespace {

namespace fs = std::filesystem;

/// The modules that each module may include, besides itself.
const std::map<std::string, std::set<std::string>>& allowed_modules() {
  static const std::map<std::string, std::set<std::string>> allowed = {
      {"core", {}},
      {"host", {"core"}},
      {"source", {"core", "host", "explain"}},
      {"act", {"core", "host"}},
      {"store", {"core"}},
      {"detect", {"core"}},
      {"gate", {"core"}},
      {"gate/run", {"core", "host", "source", "live", "gate"}},  // the statistics do not depend on sources
      {"probe", {}},
      {"trace", {"core", "probe"}},
      {"symbolize", {"core", "trace"}},
      {"telemetry", {"core", "host", "source", "trace", "probe", "symbolize"}},
      {"explain", {"core"}},
      {"sizing", {"core"}},
      {"nsys", {"core", "trace", "store"}},  // a database, which the Python extension does not use
      {"report", {"core"}},
      {"recorded", {"core", "source", "store"}},
      {"engine", {"core", "detect"}},
      {"live", {"core", "host", "source", "store", "engine", "report", "act"}},
      {"run/client", {"core", "host"}},  // it queries a run, for which no probe is needed
      {"run", {"core", "host", "source", "live", "engine", "trace", "probe", "run/client"}},
      {"period", {"core", "source", "store", "recorded", "engine", "report"}},
      {"health", {"core", "host", "source", "report", "live"}},
      {"agent", {"core", "host", "source", "store", "engine", "report", "act", "live", "run/client"}},
      {"top", {"core", "host", "source", "store", "engine", "report", "live", "agent", "run/client"}},
      {"fleet", {"core", "host", "engine", "report", "act"}},
      {"actuate", {"core", "host", "report", "act", "live", "agent", "fleet"}},
      {"fleet/serve", {"core", "fleet", "agent"}},
      {"cli", {"actuate", "fleet", "fleet/serve", "core",      "host",   "source", "store",   "recorded",  "detect",
               "trace",   "gate",  "gate/run",    "report",    "engine", "act",    "live",    "period",    "agent",
               "top",     "run",   "run/client",  "symbolize", "nsys",   "health", "explain", "telemetry", "sizing"}},
  };
  return allowed;
}

/// A third-party header, and the places where it may be included.
struct Confined {
  std::string prefix;                 ///< of the included path
  std::set<std::string> modules;      ///< empty: any module
  bool sources_only = false;          ///< never in a header: it is slow to compile
  std::size_t most_files = SIZE_MAX;  ///< the largest number of files that may include it
};

const std::vector<Confined>& confined_headers() {
  static const std::vector<Confined> confined = {
      {"sqlite3.h", {"store"}, false, SIZE_MAX},
      {"nlohmann/", {"core"}, true, 1},
      {"httplib.h", {"act"}, true, 1},
      {"prometheus/", {"report"}, true, 1},
      {"curses.h", {"top"}, true, 1},
      {"CLI/", {"cli"}, true, 1},
      {"boost/math/", {"core"}, true, 1},
      {"boost/beast/", {"agent"}, true, 1},
      {"elfutils/", {"symbolize", "telemetry"}, true, 2},
      {"bpf/", {"telemetry"}, true, 2},
      {"snappy.h", {"fleet"}, true, 1},
      {"toml++/", {"core", "source", "act", "cli", "fleet"}, true, 6},
  };
  return confined;
}

/// Headers that include slow headers, and are themselves for .cpp files only.
const std::set<std::string>& private_headers() {
  static const std::set<std::string> headers = {"source/sim/table_reader.hpp", "report/metric_family.hpp"};
  return headers;
}

struct Include {
  std::string module;  ///< of the including file
  std::string file;    ///< relative to src/
  std::size_t line = 0;
  std::string path;  ///< as written between the quotes or brackets
  bool in_header = false;
};

/// The module of a path under src/: its first folder, or the first two if the table has those.
std::string module_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  const std::size_t second = slash == std::string::npos ? slash : path.find('/', slash + 1);
  const std::string two = path.substr(0, second);
  return second != std::string::npos && allowed_modules().count(two) != 0 ? two : path.substr(0, slash);
}

/// The included path in a line; empty if the line is not an #include.
std::string included_path(const std::string& line) {
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return {};
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return {};
  const std::size_t open = line.find_first_of("\"<", at);
  if (open == std::string::npos) return {};
  const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
  return close == std::string::npos ? std::string{} : line.substr(open + 1, close - open - 1);
}

std::vector<Include> read_includes(const fs::path& root) {
  std::vector<Include> includes;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".hpp" && extension != ".cpp" && extension != ".def") continue;
    const fs::path relative = fs::relative(entry.path(), root);
    std::ifstream in(entry.path());
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      const std::string path = included_path(line);
      if (!path.empty()) {
        includes.push_back({module_of(relative.string()), relative.string(), number, path, extension != ".cpp"});
      }
    }
  }
  return includes;
}

/// The violations of the rules, one per line.
std::vector<std::string> violations(const std::vector<Include>& includes) {
  std::vector<std::string> found;
  std::map<std::string, std::set<std::string>> files_of;
  const auto say = [&found](const Include& include, const std::string& why) {
    std::ostringstream out;
    out << "src/" << include.file << ':' << include.line << ": includes " << include.path << ": " << why;
    found.push_back(out.str());
  };
  for (const Include& include : includes) {
    if (include.file == "pch.hpp" || include.file == "pch.cpp") continue;  // the standard library and fmt
    const auto module = allowed_modules().find(include.module);
    if (module == allowed_modules().end()) {
      say(include, "module '" + include.module + "' is not in this test's table: say there what it may depend on");
      continue;
    }
    const std::string target = module_of(include.path);
    if (allowed_modules().count(target) != 0 && target != include.module && module->second.count(target) == 0) {
      say(include, include.module + " must not depend on " + target);
    }
    if (include.in_header && private_headers().count(include.path) != 0) say(include, "for .cpp files only");
    for (const Confined& header : confined_headers()) {
      if (include.path.rfind(header.prefix, 0) != 0) continue;
      files_of[header.prefix].insert(include.file);
      if (!header.modules.empty() && header.modules.count(include.module) == 0) {
        say(include, "not allowed in module " + include.module);
      }
      if (header.sources_only && include.in_header && private_headers().count(include.file) == 0)
        say(include, "slow to compile: in .cpp files only");
      if (files_of[header.prefix].size() > header.most_files) {
        say(include, "already in " + std::to_string(header.most_files) + " other files: put this beside one of them");
      }
    }
  }
  return found;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Includes, DependenciesRunOneWay) {
  const std::vector<Include> includes = read_includes(fs::path(vramtrack::source_dir()) / "src");
  ASSERT_GT(includes.size(), 50U) << "the sources were not found";
  EXPECT_EQ(joined(violations(includes)), "");
}

TEST(Includes, TheProbeSharesOneHeader) {
  for (const Include& include : read_includes(fs::path(vramtrack::source_dir()) / "src"))
    if (include.module != "probe" && module_of(include.path) == "probe") {
      // The tracer of running programs reads Python's objects like the probe, but from outside.
      if (include.module == "telemetry" &&
          (include.path.starts_with("probe/python_") || include.path.ends_with("_bytes.hpp") ||
           include.path == "probe/cuda_context_calls.hpp"))
        continue;
      EXPECT_EQ(include.path, "probe/wire.hpp")
          << include.file << ": a crash of the analysis never touches the program";
    }
}

TEST(Includes, GraphHasNoCycle) {
  // A module may include only modules that precede it in some order: remove leaves until none is left.
  auto left = allowed_modules();
  while (!left.empty()) {
    const auto leaf = std::find_if(left.begin(), left.end(), [&left](const auto& module) {
      return std::none_of(module.second.begin(), module.second.end(),
                          [&left](const std::string& other) { return left.count(other) != 0; });
    });
    ASSERT_NE(leaf, left.end()) << "a cycle through " << left.begin()->first;
    left.erase(leaf);
  }
}

TEST(Includes, ReadsEveryWayToWriteTheLine) {
  EXPECT_EQ(included_path("#include \"core/time.hpp\""), "core/time.hpp");
  EXPECT_EQ(included_path("  #  include <sqlite3.h>  // why"), "sqlite3.h");
  EXPECT_EQ(included_path("// #include <sqlite3.h>"), "");
  EXPECT_EQ(included_path("#define include \"x\""), "");
}

TEST(Includes, BreachesAreNamed) {
  const auto breach = [](const char* module, const char* path, bool in_header) {
    return joined(violations({{module, std::string(module) + "/a.cpp", 7, path, in_header}}));
  };
  EXPECT_EQ(breach("detect", "store/store.hpp", false),
            "src/detect/a.cpp:7: includes store/store.hpp: detect must not depend on store\n");
  EXPECT_NE(breach("core", "engine/engine.hpp", false), "");
  EXPECT_NE(breach("engine", "cli/commands.hpp", false), "");
  EXPECT_NE(breach("engine", "store/store.hpp", false), "");
  EXPECT_NE(breach("source", "store/store.hpp", false), "");
  EXPECT_NE(breach("source", "sqlite3.h", false), "");
  EXPECT_NE(breach("source", "nlohmann/json.hpp", true), "");
  EXPECT_NE(breach("report", "nlohmann/json.hpp", false), "");
  EXPECT_NE(breach("nobody", "vector", false), "");
  EXPECT_NE(breach("source", "source/sim/table_reader.hpp", true), "");
  EXPECT_EQ(breach("core", "nlohmann/json.hpp", false), "");
  EXPECT_EQ(breach("detect", "detect/judge.hpp", true), "");
  EXPECT_EQ(breach("cli", "engine/engine.hpp", false), "");
}

}  // namespace
