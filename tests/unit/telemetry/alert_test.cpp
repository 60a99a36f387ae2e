// The tracer's result for a program that leaks, down to the notification and the policy's record: the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../temp_folder.hpp"
#include "act/audit.hpp"
#include "live/containment.hpp"
#include "live/pipeline.hpp"
#include "probe/wire.hpp"
#include "telemetry/process_account.hpp"

/// The line that leaks.
extern "C" __attribute__((noinline, used)) int cache_of_a_test(int of) {
  return of + 2;
}

namespace vramtrack::telemetry {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr std::uint64_t kMib = 1 << 20, kGib = 1 << 30;
constexpr int kBegin_s = 900;  ///< of the leak, at 4 MiB/s

Timestamp at(int second) {
  return Timestamp{} + std::chrono::hours(24) + std::chrono::seconds(second);
}

/// This program in the role of the one that leaks: its names are found like those of another.
class TracedLeak : public testing::Test {
 protected:
  TracedLeak() {
    process_.known.pid = static_cast<std::uint32_t>(::getpid());
    process_.known.start_ticks = 7;
    process_.unwinder = std::make_shared<Unwinder>(process_.known.pid);
    const auto taken = std::make_unique<telemetry_stack_event>();
    taken->registers[16] = reinterpret_cast<std::uint64_t>(&cache_of_a_test) + 1;
    stack_ = {process_.unwinder->unwind(*taken, false).front()};
    DeviceInfo gpu;
    gpu.id = "GPU-a";
    gpu.capacity_bytes = 24 * kGib;
    catalog_.describe(gpu);
    catalog_.processes_are_listed = true;
    ProcessInfo info;
    info.pid = process_.known.pid;
    info.start_ticks = process_.known.start_ticks;
    info.command = "server";
    info.user = "alice";
    catalog_.describe(info);
    device_ = catalog_.intern({Metric::device_used, "GPU-a", 0, 0});
    memory_ = catalog_.intern({Metric::process_used, "GPU-a", info.pid, info.start_ticks});
  }

  /// One second: the driver's report, and the tracer's data.
  void tick(Pipeline& pipeline, int second) {
    if (second > kBegin_s) {
      telemetry_event event{};
      event.time_ns = static_cast<std::uint64_t>(second) * 1'000'000'000U;
      event.address = static_cast<std::uint64_t>(second) * 64 * kMib;
      event.bytes = 4 * kMib;
      event.call = static_cast<std::uint32_t>(probe::Call::cu_mem_alloc);
      account_.allocated(process_, event, {stack_});
      held_bytes_ += event.bytes;
    }
    Batch batch;
    batch.samples = {{at(second), device_, held_bytes_ + kGib}, {at(second), memory_, held_bytes_}};
    if (auto sites = account_.report(second))
      batch.events.push_back(
          trace::event_of({process_.known.pid, process_.known.start_ticks, std::move(*sites)}, at(second)));
    pipeline.take(batch);
  }

  Catalog catalog_;
  SeriesId device_{}, memory_{};
  FollowedProcess process_;
  std::vector<std::uint64_t> stack_;
  ProcessAccount account_;
  std::uint64_t held_bytes_ = 4 * kGib;
};

TEST_F(TracedLeak, TheAlertAndThePoliciesRecordNameTheLine) {
  const TempFolder folder;
  Config config;
  config.act.enabled = true;
  config.act.dry_run = true;
  config.policies.toml =
      "[[policy]]\nname = \"leaks\"\nwhen = { user = \"alice\" }\nsteps = [{ do = \"terminate\" }]\n";
  Pipeline pipeline(config, catalog_);
  const auto runner = open_containment(
      config, folder.file("store.db"), false, nullptr, {}, [] { return at(0); },
      [](const std::string& text) { ADD_FAILURE() << text; });
  ASSERT_NE(runner, nullptr);
  std::optional<std::string> told;
  Listener people;
  people.alert = [&](const AlertNotice& news) {
    if (news.alert.series == memory_ && !told) told = news.alert.finding.because;
  };
  pipeline.listen(std::move(people));
  pipeline.listen(containing(*runner, pipeline, [](const std::string&) {}));
  int second = 0;
  for (; second < kBegin_s + 900 && !told; ++second) tick(pipeline, second);
  ASSERT_TRUE(told) << "no alert within a quarter of an hour";
  EXPECT_THAT(*told, HasSubstr("cache_of_a_test allocated"));
  EXPECT_THAT(*told, HasSubstr("100 % is still live"));
  for (const int until = second + 60; second < until; ++second) {
    tick(pipeline, second);
    ASSERT_TRUE(runner->wait_for_orders(60));
  }
  const auto record = act::read_audit(act::audit_path(folder.file("store.db")));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_THAT(*record,
              Contains(testing::AllOf(Field(&act::AuditEntry::event, "would"), Field(&act::AuditEntry::dry_run, true),
                                      Field(&act::AuditEntry::subject,
                                            Field(&act::Subject::because, HasSubstr("cache_of_a_test allocated"))))));
}

}  // namespace
}  // namespace vramtrack::telemetry
