// PodNames: how Kubernetes names the containers of this node, asked for on its own thread.
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

/// find() may be called from any thread and never waits: a scrape must not hang on the API server.
class PodNames {
 public:
  using Ask = std::function<Result<std::vector<act::KubernetesPod>>()>;
  using Time = std::chrono::steady_clock::time_point;

  /// `ask` is called on the thread of this object. `warn` receives an error once, and again when the words change.
  PodNames(Ask ask, std::function<Time()> now, std::function<void(const std::string&)> warn);
  PodNames(const PodNames&) = delete;
  PodNames& operator=(const PodNames&) = delete;
  /// Waits for an exchange that is under way: at most the time limit of the client, 15 s.
  ~PodNames();

  /// The names, as far as they are known. What is not known is asked for, at most once in kAgain; a later call finds
  /// it.
  PodName find(const std::string& pod_uid, const std::string& container_id);

  static constexpr std::chrono::seconds kAgain{30};

 private:
  void work();

  const Ask ask_;
  const std::function<Time()> now_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  std::map<std::string, act::KubernetesPod> pods_;  ///< by UID: those of the last answer
  std::optional<Time> asked_;
  std::string last_error_;
  bool wanted_ = false;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace vramtrack::agent
