#include "agent/server/pod_names.hpp"

#include <utility>

namespace vramtrack::agent {

PodNames::PodNames(Ask ask, std::function<Time()> now, std::function<void(const std::string&)> warn)
    : ask_(std::move(ask)), now_(std::move(now)), warn_(std::move(warn)), worker_([this] { work(); }) {}

PodNames::~PodNames() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

PodName PodNames::find(const std::string& pod_uid, const std::string& container_id) {
  const std::lock_guard lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  PodName name;
  if (pod != pods_.end()) {
    name = {pod->second.space, pod->second.name, {}};
    const auto container = pod->second.containers.find(container_id);
    if (container != pod->second.containers.end()) name.container = container->second;
  }
  // A restarted container has another id in the same pod.
  const bool is_known = !name.pod.empty() && (container_id.empty() || !name.container.empty());
  const Time now = now_();
  if (!is_known && (!asked_ || now - *asked_ >= kAgain)) {
    asked_ = now;
    wanted_ = true;
    changed_.notify_all();
  }
  return name;
}

void PodNames::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return wanted_ || ending_; });
    if (ending_) return;
    wanted_ = false;
    lock.unlock();
    auto pods = ask_();
    const std::string error = pods ? std::string() : pods.error().message;
    lock.lock();
    if (pods) {
      pods_.clear();
      for (act::KubernetesPod& pod : *pods) pods_[pod.uid] = std::move(pod);
    }
    if (std::exchange(last_error_, error) != error && !error.empty()) {
      lock.unlock();
      warn_(error);
      lock.lock();
    }
  }
}

}  // namespace vramtrack::agent
