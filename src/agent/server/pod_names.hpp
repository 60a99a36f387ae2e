// PodNames: the names Kubernetes gives to the containers of this node, queried on a separate thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "act/kubernetes.hpp"
#include "report/metrics.hpp"

namespace vramtrack::agent {

/// find() may be called from any thread and never waits: a scrape must not block on the API server.
class PodNames {
 public:
  using Ask = std::function<Result<std::vector<act::KubernetesPod>>()>;
  using Time = std::chrono::steady_clock::time_point;

  /// `ask` is called on the thread of this object. `warn` receives an error once, and again when its text changes.
  PodNames(Ask ask, std::function<Time()> now, std::function<void(const std::string&)> warn);
  PodNames(const PodNames&) = delete;
  PodNames& operator=(const PodNames&) = delete;
  /// Waits for a query in progress: at most for the client's timeout of 15 s.
  ~PodNames();

  /// The names, as far as they are known. Unknown names are queried at most once per kAgain; a later call returns
  /// them.
  PodName find(const std::string& pod_uid, const std::string& container_id);

  static constexpr std::chrono::seconds kAgain{30};

 private:
  void work();

  const Ask ask_;
  const std::function<Time()> now_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  std::map<std::string, act::KubernetesPod> pods_;  ///< by UID, from the last answer
  std::optional<Time> asked_;
  std::string last_error_;
  bool wanted_ = false;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace vramtrack::agent
