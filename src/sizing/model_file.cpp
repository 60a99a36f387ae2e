#include "sizing/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/printable.hpp"
#include "sizing/gguf.hpp"
#include "sizing/hugging_face.hpp"

namespace vramtrack::sizing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstRead = std::size_t{1} << 20U;

Result<std::string> read_first(const std::string& path, std::uint64_t most_bytes, std::uint64_t from = 0) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return fail(printable(path) + ": there is no such file");
  std::ifstream file(path, std::ios::binary);
  if (!file || !file.seekg(static_cast<std::streamoff>(from)))
    return fail(printable(path) + ": the file cannot be read");
  std::string bytes;
  bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most_bytes, fs::file_size(path, error))));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

Error in_file(const Error& error, const std::string& path) {
  return error.during(printable(path));
}

Result<GgufHeader> read_gguf(const std::string& path, double& data_bytes) {
  for (std::size_t most = kFirstRead;; most *= 4) {
    const auto bytes = read_first(path, std::min(most, kMostGgufHeaderBytes));
    if (!bytes) return tl::unexpected(bytes.error());
    auto read = parse_gguf(*bytes);
    if (!read) return fail(in_file(read.error(), path));
    if (!read->is_cut) {
      std::error_code error;
      const auto size = static_cast<double>(fs::file_size(path, error));
      data_bytes += std::max(0.0, size - static_cast<double>(read->header.end));
      return std::move(read->header);
    }
    if (bytes->size() < std::min(most, kMostGgufHeaderBytes))
      return fail(fmt::format("{}: offset {}: the file ends within its header; was it downloaded completely?",
                              printable(path), bytes->size()));
    if (most >= kMostGgufHeaderBytes)
      return fail(fmt::format("{}: the header is longer than {} bytes", printable(path), kMostGgufHeaderBytes));
  }
}

/// The path of another part, such as "model-00002-of-00003.gguf"; empty if the first part's name has no such numbers.
std::string part_path(const std::string& first, std::size_t part, std::size_t parts) {
  const std::string end = fmt::format("-{:05}-of-{:05}.gguf", 1, parts);
  if (!first.ends_with(end)) return {};
  return first.substr(0, first.size() - end.size()) + fmt::format("-{:05}-of-{:05}.gguf", part, parts);
}

Result<ModelFacts> gguf_model(const std::string& path) {
  double data_bytes = 0;
  auto header = read_gguf(path, data_bytes);
  if (!header) return tl::unexpected(header.error());
  const std::size_t parts = parts_of(*header);
  for (std::size_t part = 2; part <= parts; ++part) {
    const std::string other = part_path(path, part, parts);
    if (other.empty())
      return fail(
          fmt::format("{}: the model was split into {} files; name the first, which ends in -00001-of-{:05}.gguf",
                      printable(path), parts, parts));
    const auto more = read_gguf(other, data_bytes);
    if (!more) return tl::unexpected(more.error());
    header->tensors.insert(header->tensors.end(), more->tensors.begin(), more->tensors.end());
  }
  auto facts = facts_of(*header, data_bytes);
  if (!facts) return fail(in_file(facts.error(), path));
  return facts;
}

Status add_file(const std::string& path, ModelFacts& out) {
  const auto first = read_first(path, sizeof(std::uint64_t));
  if (!first) return tl::unexpected(first.error());
  const auto length = safetensors_header_bytes(*first);
  if (!length) return fail(in_file(length.error(), path));
  const auto header = read_first(path, *length, sizeof(std::uint64_t));
  if (!header) return tl::unexpected(header.error());
  if (header->size() < *length)
    return fail(fmt::format("{}: offset {}: the file ends within its header of {} bytes; was it downloaded completely?",
                            printable(path), sizeof(std::uint64_t) + header->size(), *length));
  if (const Status added = add_safetensors(*header, out); !added) return fail(in_file(added.error(), path));
  return {};
}

/// The safetensors files of a folder: those in the index or, without one, all.
Result<std::vector<std::string>> weight_files(const std::string& folder) {
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code error;
  std::vector<std::string> files;
  if (fs::exists(index, error)) {
    const auto text = read_first(index, kMostSafetensorsHeaderBytes);
    if (!text) return tl::unexpected(text.error());
    auto names = indexed_files(*text);
    if (!names) return fail(in_file(names.error(), index));
    for (const std::string& name : *names) {
      const std::string path = folder + '/' + name;
      if (!fs::exists(path, error)) return std::vector<std::string>();  // only the small files were downloaded
      files.push_back(path);
    }
    return files;
  }
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

Result<ModelFacts> folder_model(const std::string& folder) {
  const std::string path = folder + "/config.json";
  const auto config = read_first(path, kMostConfigBytes + 1);
  if (!config)
    return fail(
        fmt::format("{}: there is no config.json in this folder; name a GGUF file, or the folder of a model of "
                    "Hugging Face",
                    printable(folder)));
  const auto files = weight_files(folder);
  if (!files) return tl::unexpected(files.error());
  ModelFacts counted;
  for (const std::string& file : *files)
    if (const Status added = add_file(file, counted); !added) return tl::unexpected(added.error());
  auto facts = files->empty() ? facts_of_config(*config) : facts_of_config(*config, counted);
  if (!facts) return fail(in_file(facts.error(), path));
  return facts;
}

}  // namespace

Result<ModelFacts> read_model(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return folder_model(path);
  if (path.ends_with(".safetensors")) {
    const std::string folder = fs::path(path).parent_path().string();
    return folder_model(folder.empty() ? "." : folder);
  }
  if (path.ends_with(".json")) {
    const auto config = read_first(path, kMostConfigBytes + 1);
    if (!config) return tl::unexpected(config.error());
    auto facts = facts_of_config(*config);
    if (!facts) return fail(in_file(facts.error(), path));
    return facts;
  }
  if (!fs::exists(path, error))
    return fail(
        fmt::format("{}: there is no such file or folder; models are read from disk, not fetched", printable(path)));
  return gguf_model(path);
}

}  // namespace vramtrack::sizing
