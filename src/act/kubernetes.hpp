// Kubernetes: the actions' requests to the API server, in JSON over HTTPS, with the token of a service account.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "act/action.hpp"
#include "core/result.hpp"
#include "core/time.hpp"

namespace vramtrack::act {

struct KubernetesAnswer {
  int status = 0;
  std::string body;          ///< at most 32 MiB: the pods of one node
  double retry_after_s = 0;  ///< 0: not given
  [[nodiscard]] bool is_ok() const { return status >= 200 && status < 300; }
};

/// Sends one request. The token is read each time, because it is renewed. `path` begins with a slash. GET has no body;
/// that of POST is JSON, that of PATCH a strategic merge patch. Any status counts as an answer; errors: no access, no
/// connection, no trusted certificate.
Result<KubernetesAnswer> ask_kubernetes(const KubernetesAccess& access, const std::string& method,
                                        const std::string& path, const std::string& body = {});

/// "the API server answered 403: nodes "n1" is forbidden ...": printable, with the disruption budget for 429 and a
/// remedy for 403.
std::string refusal_words(const KubernetesAnswer& answer);

struct KubernetesPod {
  std::string name;
  std::string space;  ///< the pod's namespace
  std::string uid;
  bool is_controlled = false;  ///< a controller restarts it elsewhere
  bool is_of_daemon_set = false;
  std::map<std::string, std::string> containers;  ///< id (64 hex) -> name, of those that have started
};

/// The pods in a PodList from the API server. Pods with names that Kubernetes does not allow are left out.
Result<std::vector<KubernetesPod>> parse_pods(std::string_view list);

/// All pods on `node`.
Result<std::vector<KubernetesPod>> pods_of_node(const KubernetesAccess& access, const std::string& node);

/// The pod with this UID on `node`. Errors: there is none (any more), or the request is not permitted.
Result<KubernetesPod> find_pod(const KubernetesAccess& access, const std::string& node, const std::string& uid);

/// The pod of the subject's process, on the node of `request`. Errors: the process is in no pod; that node's kubelet
/// does not confirm that its container belongs to the pod; those of find_pod().
Result<KubernetesPod> pod_of(const ActRequest& request);

/// Evicts the pod, and only the one with this UID. If a PodDisruptionBudget forbids it (status 429), sets `again_in_s`:
/// the server's delay, or 5 s. A pod that is already gone is not an error.
Result<std::string> evict_pod(const KubernetesAccess& access, const KubernetesPod& pod,
                              std::optional<double>& again_in_s);

struct KubernetesNode {
  std::string version;  ///< metadata.resourceVersion
  bool is_unschedulable = false;
  std::string cordoned_by;  ///< the id of the act of ours that cordoned it
};
Result<KubernetesNode> kubernetes_node(const KubernetesAccess& access, const std::string& node);

/// Marks the node unschedulable, with `act_id` as the reason (an annotation), and sets its condition
/// GpuMemoryLeak as of `time`; if `is_on` is false, reverts both. False: somebody else has cordoned the node or
/// changed our marks, and it was left unchanged. Concurrent changes are not overwritten: the change is retried on
/// top of them.
Result<bool> set_cordon(const KubernetesAccess& access, const std::string& node, const std::string& act_id, bool is_on,
                        const std::string& message, Timestamp time);

/// Whether Kubernetes allows the name: lower-case letters, digits, '-' and '.'.
bool is_kubernetes_name(const std::string& name);

}  // namespace vramtrack::act
