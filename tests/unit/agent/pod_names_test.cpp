#include "agent/server/pod_names.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace vramtrack::agent {
namespace {

using std::chrono::seconds;

/// An API server for which the test answers, one request at a time.
struct Server {
  std::mutex mutex;
  Result<std::vector<act::KubernetesPod>> next = std::vector<act::KubernetesPod>();
  std::counting_semaphore<> asked{0};
  std::vector<std::string> warnings;
  std::atomic<int> now_s = 0;

  void answer(Result<std::vector<act::KubernetesPod>> pods) {
    const std::lock_guard lock(mutex);
    next = std::move(pods);
  }
  std::unique_ptr<PodNames> names() {
    return std::make_unique<PodNames>(
        [this]() -> Result<std::vector<act::KubernetesPod>> {
          const std::lock_guard lock(mutex);
          asked.release();
          return next;
        },
        [this] { return PodNames::Time(seconds(now_s)); },
        [this](const std::string& words) {
          const std::lock_guard lock(mutex);
          warnings.push_back(words);
        });
  }
};

act::KubernetesPod pod(const std::string& uid, const std::string& name, const std::string& container) {
  act::KubernetesPod out;
  out.uid = uid;
  out.name = name;
  out.space = "train";
  out.containers = {{container, "main"}};
  return out;
}

/// The worker stores the answer some time after the request, so this repeats find() until it has.
template <class Done>
PodName find_until(PodNames& names, const std::string& uid, const std::string& id, Done done) {
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  PodName name = names.find(uid, id);
  while (!done(name) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    name = names.find(uid, id);
  }
  return name;
}

TEST(PodNames, AsksOnceForWhatIsNotKnownAndThenKnows) {
  Server server;
  server.answer(std::vector{pod("u1", "job-1", "c1"), pod("u2", "job-2", "c2")});
  const auto names = server.names();
  EXPECT_EQ(names->find("u1", "c1").pod, "") << "never waits";
  const PodName name = find_until(*names, "u1", "c1", [](const PodName& n) { return !n.pod.empty(); });
  EXPECT_EQ(name.space + "/" + name.pod + "/" + name.container, "train/job-1/main");
  EXPECT_EQ(names->find("u2", "c2").pod, "job-2");
  server.asked.acquire();
  EXPECT_FALSE(server.asked.try_acquire()) << "asked again for what was known";
}

TEST(PodNames, AsksAgainAfterAWhileOnly) {
  Server server;
  const auto names = server.names();
  EXPECT_EQ(names->find("u1", "c1").pod, "");
  server.asked.acquire();
  for (int i = 0; i < 1000; ++i) names->find("u1", "c1");
  EXPECT_FALSE(server.asked.try_acquire()) << "within kAgain";
  server.answer(std::vector{pod("u1", "job-1", "c1")});
  server.now_s = static_cast<int>(PodNames::kAgain.count());
  const PodName name = find_until(*names, "u1", "c1", [](const PodName& n) { return !n.pod.empty(); });
  EXPECT_EQ(name.pod, "job-1");
  // The container was restarted: the pod is known, and the container is queried.
  EXPECT_EQ(names->find("u1", "c9").pod, "job-1");
  EXPECT_EQ(names->find("u1", "c9").container, "");
}

TEST(PodNames, WarnsOnceOfARefusalAndKeepsWhatItKnew) {
  Server server;
  server.answer(std::vector{pod("u1", "job-1", "c1")});
  auto names = server.names();
  find_until(*names, "u1", "c1", [](const PodName& n) { return !n.pod.empty(); });
  server.answer(fail("the API server answered 403"));
  for (int i = 1; i <= 3; ++i) {
    server.now_s = i * static_cast<int>(PodNames::kAgain.count());
    names->find("u2", "");
    server.asked.acquire();
  }
  EXPECT_EQ(names->find("u1", "c1").pod, "job-1");
  names.reset();  // ends the thread
  EXPECT_EQ(server.warnings, std::vector<std::string>{"the API server answered 403"});
}

}  // namespace
}  // namespace vramtrack::agent
