#include "act/kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "act/http_exchange.hpp"
#include "core/json.hpp"
#include "core/printable.hpp"
#include "core/time.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostBody = std::size_t{32} << 20;
constexpr std::size_t kMostToken = std::size_t{64} << 10;
constexpr double kTimeout_s = 15;
/// How long to wait for the result of a change when the process is asked to end, so that the record can contain it.
constexpr double kGrace_s = 2;
constexpr double kRetry_s = 5;
constexpr int kMostConflicts = 5;
constexpr const char* kAnnotation = "vramtrack.io/cordoned-by";
constexpr const char* kCondition = "GpuMemoryLeak";

Result<Url> server_of(const KubernetesAccess& access) {
  std::string server = access.server;
  if (server.empty()) {
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");  // NOLINT(concurrency-mt-unsafe)
    if (host == nullptr || port == nullptr)
      return fail(
          "vramtrack is not running in a Kubernetes pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
          "set");
    const bool is_v6 = std::string_view(host).find(':') != std::string_view::npos;
    server = fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
  }
  auto url = parse_url(server);
  if (url && !url->https) return fail("the API server's address must begin with https://");
  return url;
}

using Path = std::initializer_list<std::string_view>;

/// A member of a member, and so on, in an untrusted document; null if there is none.
const Json& at(const Json& document, Path path) {
  static const Json none;
  const Json* found = &document;
  for (const std::string_view name : path)
    if (found = found->find(name); found == nullptr) return none;
  return *found;
}

std::string text_at(const Json& document, Path path) {
  const Json& value = at(document, path);
  return value.is_string() ? value.text() : std::string();
}

bool is_true(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}

/// PATCHes the node with the result of `change` for its current state, and again after a conflict; if `change` returns
/// null, the node is left unchanged and the result is false.
template <class Change>
Result<bool> patch_node(const KubernetesAccess& access, const std::string& node, const std::string& suffix,
                        Change change) {
  for (int tries = 0;; ++tries) {
    const auto known = kubernetes_node(access, node);
    if (!known) return fail(known.error());
    Json patch = change(*known);
    if (patch.is_null()) return false;
    patch["metadata"]["resourceVersion"] = known->version;
    const auto answer = ask_kubernetes(access, "PATCH", "/api/v1/nodes/" + node + suffix, json_text(patch));
    if (!answer) return fail(answer.error());
    if (answer->is_ok()) return true;
    if (answer->status != 409 || tries == kMostConflicts) return fail(refusal_words(*answer));
  }
}

/// Requests the eviction once. Servers before 1.22 support only policy/v1beta1, and answer policy/v1 with 400: 'no kind
/// "Eviction" is registered for version "policy/v1"'.
Result<KubernetesAnswer> ask_eviction(const KubernetesAccess& access, const KubernetesPod& pod) {
  Json body = {{"apiVersion", "policy/v1"},
               {"kind", "Eviction"},
               {"metadata", {{"name", pod.name}, {"namespace", pod.space}}},
               {"deleteOptions", {{"preconditions", {{"uid", pod.uid}}}}}};
  const std::string path = fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", pod.space, pod.name);
  auto answer = ask_kubernetes(access, "POST", path, json_text(body));
  if (!answer || answer->status != 400 || answer->body.find("no kind \\\"Eviction\\\"") == std::string::npos)
    return answer;
  body["apiVersion"] = "policy/v1beta1";
  return ask_kubernetes(access, "POST", path, json_text(body));
}

KubernetesPod parse_pod(const Json& item) {
  KubernetesPod pod;
  pod.uid = text_at(item, {"metadata", "uid"});
  pod.name = text_at(item, {"metadata", "name"});
  pod.space = text_at(item, {"metadata", "namespace"});
  for (const Json& owner : at(item, {"metadata", "ownerReferences"})) {
    if (!is_true(at(owner, {"controller"}))) continue;
    pod.is_controlled = true;
    pod.is_of_daemon_set = text_at(owner, {"kind"}) == "DaemonSet";
  }
  for (const char* kind : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const Json& container : at(item, {"status", kind})) {
      const std::string id = text_at(container, {"containerID"});  // "containerd://<64 hex>"; empty before it starts
      const std::size_t scheme = id.find("://");
      if (const std::string name = text_at(container, {"name"});
          scheme != std::string::npos && is_kubernetes_name(name))
        pod.containers[id.substr(scheme + 3)] = name;
    }
  }
  return pod;
}

}  // namespace

bool is_kubernetes_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 && name.front() != '.' && name.find("..") == std::string::npos &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
}

Result<KubernetesAnswer> ask_kubernetes(const KubernetesAccess& access, const std::string& method,
                                        const std::string& path, const std::string& body) {
  if (access.ask) return access.ask(method, path);
  const auto url = server_of(access);
  if (!url) return fail(url.error());
  const auto token = read_text_file(access.folder + "/token", kMostToken);
  if (!token || trimmed(*token).empty())
    return fail(
        fmt::format("{}/token cannot be read; the pod needs a service account (contrib/kubernetes)", access.folder));
  HttpCall call;
  call.url = *url;
  call.url.path = path;
  call.method = method;
  call.headers = {{"Authorization", "Bearer " + std::string(trimmed(*token))}, {"Accept", "application/json"}};
  if (method == "PATCH") call.headers.emplace_back("Content-Type", "application/strategic-merge-patch+json");
  if (method == "POST") call.headers.emplace_back("Content-Type", "application/json");
  call.body = body;
  call.ca_file = access.folder + "/ca.crt";
  call.timeout_s = kTimeout_s;
  call.most_answer_bytes = kMostBody;
  if (method != "GET") call.grace_s = kGrace_s;
  HttpAnswer got = http_exchange(call, "check " + call.ca_file);
  if (got.end != HttpEnd::complete) return fail(fmt::format("{} cannot be asked: {}", url->origin(), got.why));
  KubernetesAnswer answer;
  answer.body = std::move(got.body);
  answer.status = got.head.status;
  answer.retry_after_s = std::min(got.head.retry_after_s, 3600.0);
  return answer;
}

std::string refusal_words(const KubernetesAnswer& answer) {
  const Json document = Json::parse(answer.body).value_or(Json());
  std::string message = text_at(document, {"message"}).substr(0, 300);
  // The cause names the budget and how many pods it needs.
  const Json& causes = at(document, {"details", "causes"});
  const Json first = causes.is_array() && causes.size() > 0 ? causes[std::size_t{0}] : Json();
  const std::string cause = text_in(first, "message").substr(0, 300);
  if (answer.status == 429 && !cause.empty()) message += " " + cause;
  // 403 is also the response while a namespace is being deleted; then no role helps.
  const bool lacks_role = answer.status == 403 && text_in(first, "reason") != "NamespaceTerminating";
  return fmt::format("the API server answered {}{}{}{}", answer.status, message.empty() ? "" : ": ", printable(message),
                     lacks_role ? "; give the service account the role from contrib/kubernetes" : "");
}

Result<std::vector<KubernetesPod>> parse_pods(std::string_view list) {
  const Json document = Json::parse(list).value_or(Json());
  const Json& items = at(document, {"items"});
  if (!items.is_array()) return fail("the API server's answer is not a list of pods: it has no array 'items'");
  std::vector<KubernetesPod> pods;
  for (const Json& item : items)
    if (KubernetesPod pod = parse_pod(item); is_kubernetes_name(pod.name) && is_kubernetes_name(pod.space))
      pods.push_back(std::move(pod));
  return pods;
}

Result<std::vector<KubernetesPod>> pods_of_node(const KubernetesAccess& access, const std::string& node) {
  if (!is_kubernetes_name(node)) return fail(fmt::format("'{}' is not the name of a Kubernetes node", printable(node)));
  const auto answer = ask_kubernetes(access, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node);
  if (!answer) return fail(answer.error());
  if (!answer->is_ok()) return fail(refusal_words(*answer));
  return parse_pods(answer->body);
}

Result<KubernetesPod> find_pod(const KubernetesAccess& access, const std::string& node, const std::string& uid) {
  auto pods = pods_of_node(access, node);
  if (!pods) return fail(pods.error());
  for (KubernetesPod& pod : *pods)
    if (pod.uid == uid) return std::move(pod);
  return fail(fmt::format("no pod on node {} has the UID {}", node, printable(uid)));
}

Result<KubernetesPod> pod_of(const ActRequest& request) {
  if (request.subject.pod.empty()) return fail("the process is not running in a pod: its cgroup names none");
  auto pod = find_pod(request.tools.kubernetes, request.node(), request.subject.pod);
  // Only the kubelet writes the status of a pod; no other program on the node may.
  if (pod && !pod->containers.contains(request.subject.container))
    return fail(fmt::format(
        "the kubelet of {} runs no container {} in the pod {}/{}: the process does not belong to that pod",
        printable(request.node()),
        request.subject.container.empty() ? "of the process" : printable(request.subject.container.substr(0, 12)),
        pod->space, pod->name));
  return pod;
}

Result<std::string> evict_pod(const KubernetesAccess& access, const KubernetesPod& pod,
                              std::optional<double>& again_in_s) {
  const auto answer = ask_eviction(access, pod);
  if (!answer) return fail(answer.error());
  if (answer->is_ok()) return fmt::format("the pod {}/{} is evicted", pod.space, pod.name);
  if (answer->status == 404) return fmt::format("the pod {}/{} was gone already", pod.space, pod.name);
  if (answer->status == 429) again_in_s = answer->retry_after_s > 0 ? answer->retry_after_s : kRetry_s;
  return fail(refusal_words(*answer));
}

Result<KubernetesNode> kubernetes_node(const KubernetesAccess& access, const std::string& node) {
  if (!is_kubernetes_name(node)) return fail(fmt::format("'{}' is not the name of a Kubernetes node", printable(node)));
  const auto answer = ask_kubernetes(access, "GET", "/api/v1/nodes/" + node);
  if (!answer) return fail(answer.error());
  if (!answer->is_ok()) return fail(refusal_words(*answer));
  const Json document = Json::parse(answer->body).value_or(Json());
  KubernetesNode known;
  known.version = text_at(document, {"metadata", "resourceVersion"});
  known.is_unschedulable = is_true(at(document, {"spec", "unschedulable"}));
  known.cordoned_by = text_at(document, {"metadata", "annotations", "vramtrack.io/cordoned-by"});
  if (known.version.empty()) return fail("the API server's answer is not a node: it has no resourceVersion");
  return known;
}

Result<bool> set_cordon(const KubernetesAccess& access, const std::string& node, const std::string& act_id, bool is_on,
                        const std::string& message, Timestamp time) {
  const auto is_ours = [&](const KubernetesNode& known) {
    return known.cordoned_by == act_id || (is_on && !known.is_unschedulable);
  };
  const auto cordon = [&](const KubernetesNode& known) {
    if (!is_ours(known)) return Json();
    return Json{{"metadata", {{"annotations", {{kAnnotation, is_on ? Json(act_id) : Json()}}}}},
                {"spec", {{"unschedulable", is_on ? Json(true) : Json()}}}};
  };
  const std::string now = iso8601(std::chrono::floor<std::chrono::seconds>(time));
  const auto condition = [&](const KubernetesNode& known) {
    if (!is_ours(known)) return Json();
    Json conditions = Json::array();
    conditions.push_back({{"type", kCondition},
                          {"status", is_on ? "True" : "False"},
                          {"lastHeartbeatTime", now},
                          {"lastTransitionTime", now},
                          {"reason", is_on ? "MemoryLeak" : "NoMemoryLeak"},
                          {"message", printable(message)}});
    return Json{{"status", {{"conditions", std::move(conditions)}}}};
  };
  // The annotation is set first and removed last: as long as it exists, an interrupted change can be undone.
  if (is_on) {
    const auto done = patch_node(access, node, "", cordon);
    return done && *done ? patch_node(access, node, "/status", condition) : done;
  }
  const auto done = patch_node(access, node, "/status", condition);
  return done && *done ? patch_node(access, node, "", cordon) : done;
}

}  // namespace vramtrack::act
