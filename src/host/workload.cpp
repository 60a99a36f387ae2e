#include "host/workload.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/json.hpp"
#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostName = 256;
constexpr std::size_t kContainerId = 64;

/// Null if it cannot be read or is not JSON: it is another program's file and may be in any state.
Json json_file(const std::string& path) {
  const auto text = read_text_file(path, kMostBytes);
  return text ? Json::parse(*text).value_or(Json()) : Json();
}

/// The text `key` of the object `object` in the document; empty where there is none.
std::string text_at(const Json& document, const char* object, const char* key) {
  const Json* const inner = document.find(object);
  return inner != nullptr ? text_in(*inner, key) : std::string();
}

/// Podman's list: the name is in a JSON text within the JSON.
std::string podman_image(const Json& containers, std::string_view id) {
  for (const Json& each : containers)
    if (text_in(each, "id") == id)
      return text_in(Json::parse(text_in(each, "metadata")).value_or(Json()), "image-name");
  return {};
}

}  // namespace

std::string container_image(const std::string& root, std::string_view id) {
  const bool is_id = id.size() == kContainerId && std::all_of(id.begin(), id.end(), [](char c) {
                       return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                     });
  if (!is_id) return {};
  const std::string of(id);
  std::string image =
      text_at(json_file(root + "/var/lib/docker/containers/" + of + "/config.v2.json"), "Config", "Image");
  if (image.empty())
    image = text_at(json_file(root + "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + of + "/config.json"),
                    "annotations", "io.kubernetes.cri.image-name");
  if (image.empty())
    image = text_at(json_file(root + "/run/containers/storage/overlay-containers/" + of + "/userdata/config.json"),
                    "annotations", "io.kubernetes.cri-o.ImageName");
  if (image.empty())
    image = podman_image(json_file(root + "/var/lib/containers/storage/overlay-containers/containers.json"), of);
  return image.substr(0, kMostName);
}

std::string slurm_job_name(const std::string& proc_root, std::uint32_t pid) {
  const auto environment = read_text_file(proc_root + "/" + std::to_string(pid) + "/environ", kMostBytes);
  if (!environment) return {};
  constexpr std::string_view kKey = "SLURM_JOB_NAME=";
  for (std::string_view rest = *environment; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.substr(0, kKey.size()) == kKey) return std::string(entry.substr(kKey.size(), kMostName));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return {};
}

}  // namespace vramtrack
