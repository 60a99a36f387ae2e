#include "gate/run/evidence_files.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/format.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kMostLines = 10;
constexpr std::size_t kMostChars = 64 * 1024;

}  // namespace

EvidenceFolder::EvidenceFolder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) return;
  std::string path = (parent / "vramtrack-test-XXXXXX").string();
  if (::mkdtemp(path.data()) != nullptr) path_ = path;
}

EvidenceFolder::~EvidenceFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

GrownLines read_grown_lines(const std::string& folder, std::string_view key) {
  // The key comes from the pipe, so it must not be able to name a file elsewhere.
  if (folder.empty() || key.find('/') != std::string_view::npos) return {};
  const std::filesystem::path path =
      std::filesystem::path(folder) / fmt::format("{}.sites", key.empty() ? "main" : key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostChars, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::istringstream in(text);
  GrownLines out;
  if (!(in >> out.mark >> out.begin >> out.end)) return {};
  double bytes = 0;
  std::string line;
  while (out.lines.size() < kMostLines && in >> bytes >> std::ws && std::getline(in, line))
    if (bytes > 0) out.lines.emplace_back(bytes, line);
  return out;
}

std::vector<std::string> grown_words(const GrownLines& grown) {
  if (grown.lines.empty()) return {};
  std::vector<std::string> words{
      fmt::format("grew most from {0} {1} to {0} {2}:", printable(grown.mark), grown.begin, grown.end)};
  for (const auto& [bytes, line] : grown.lines)
    words.push_back(fmt::format("  {}: +{}", printable(line), format_bytes(bytes)));
  return words;
}

}  // namespace vramtrack::gate
