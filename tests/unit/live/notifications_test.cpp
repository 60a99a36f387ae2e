#include "live/notifications.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "../manual_clock.hpp"
#include "../report/sample_view.hpp"
#include "../temp_folder.hpp"
#include "host/host_name.hpp"
#include "report/json.hpp"
#include "report/status.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const Timestamp kNow = at(100'000);

/// The device's alert in the sample view, and that view.
struct Raised {
  View view = sample_view();
  SeriesView& series = view.series[0];
  Alert& alert = series.alerts[0];
  mutable IncidentChange incident = {"0123456789abcdef", {}, {}};

  [[nodiscard]] act::Note note(AlertNews news) const { return note_of(told(news), kNow); }
  /// The notice of it as a separate incident.
  [[nodiscard]] AlertNotice told(AlertNews news) const {
    incident.news = news;
    return {view, series, alert, news, incident};
  }
};

TEST(NoteOf, ARaisedAlertTellsWhoAndSinceWhen) {
  Raised sample;
  sample.alert.severity = Severity::warning;
  const act::Note note = sample.note(AlertNews::raised);
  EXPECT_EQ(note.news, AlertNews::raised);
  EXPECT_EQ(note.key, sample.series.key);
  EXPECT_EQ(note.suspect_pid, 4242U);
  EXPECT_EQ(note.severity, Severity::warning) << "of the alert, not of the verdict now";
  EXPECT_EQ(note.time, at(1500));
}

TEST(NoteOf, WithoutASuspectThereIsNoPid) {
  Raised sample;
  sample.series.verdict.suspect.reset();
  const act::Note note = sample.note(AlertNews::raised);
  EXPECT_EQ(note.suspect_pid, 0U);
}

TEST(NoteOf, AnAlertThatIsOverHasTheTimeOfItsEnd) {
  Raised sample;
  sample.alert.cleared = at(1700);
  sample.alert.ended = AlertEnd::released;
  const act::Note note = sample.note(AlertNews::cleared);
  EXPECT_EQ(note.news, AlertNews::cleared);
  EXPECT_EQ(note.time, at(1700));
}

TEST(NoteOf, AnEscalationHasTheTimeOfTheView) {
  Raised sample;
  const act::Note note = sample.note(AlertNews::escalated);
  EXPECT_EQ(note.news, AlertNews::escalated);
  EXPECT_EQ(note.time, sample.view.time);
}

TEST(NoteOf, TimesWithoutADateBecomeTheTimeOfDay) {
  Raised sample;
  sample.view.clock_is_relative = true;
  sample.alert.cleared = at(1700);
  for (const AlertNews news : {AlertNews::raised, AlertNews::escalated, AlertNews::cleared})
    EXPECT_EQ(sample.note(news).time, kNow) << to_string(news);
}

TEST(NoteOf, TextAndJsonAreThoseOfTheReportsWithoutTheLastNewline) {
  Raised sample;
  sample.alert.cleared = at(1700);
  for (const AlertNews news : {AlertNews::raised, AlertNews::escalated, AlertNews::cleared}) {
    const act::Note note = sample.note(news);
    ASSERT_FALSE(note.text.empty());
    ASSERT_FALSE(note.json.empty());
    EXPECT_NE(note.text.back(), '\n') << note.text;
    EXPECT_NE(note.json.back(), '\n') << note.json;
    EXPECT_EQ(note.text + '\n', alert_lines(sample.view, sample.series, sample.alert, news, {}));
    EXPECT_EQ(note.json + '\n', alert_json(sample.view, sample.series, sample.alert, news));
  }
  const std::string text = sample.note(AlertNews::raised).text;
  EXPECT_THAT(text.substr(0, text.find('\n')), AllOf(HasSubstr("CRITICAL"), HasSubstr("GPU 0"))) << "the headline";
  EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "no colours";
}

/// The needs of a watch that sends notifications: settings, the time of day, and a receiver for its warnings.
struct Watch {
  TempFolder folder;
  Config config;
  std::vector<std::string> warnings;
  Warn warn = [this](const std::string& text) { warnings.push_back(text); };

  [[nodiscard]] std::string received() const { return folder.file("received"); }
  [[nodiscard]] std::string store() const { return folder.file("state/watch.db"); }

  /// Sends to a program that appends its input, one line per message.
  void to_a_file() { config.notify.exec = {"sh", "-c", "cat >>\"$1\"", "sh", received()}; }
  void to_one_that_fails() { config.notify.exec = {"sh", "-c", "echo no mail server >&2; exit 3"}; }

  std::unique_ptr<act::Notifier> open(const std::string& store_path, const std::string& simulated = {}) {
    return open_notifier(
        config, store_path, simulated, [] { return kNow; }, warn);
  }

  /// The lines that the program received, in order.
  [[nodiscard]] std::vector<std::string> messages() const {
    std::vector<std::string> lines;
    std::ifstream in(received());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  static act::Note note() { return Raised().note(AlertNews::raised); }
};

/// On a machine under load, starting a program takes longer than a watch waits at its end.
constexpr double kPatience_s = 120;

TEST(OpenNotifier, IsNobodyWhereNothingIsConfigured) {
  Watch watch;
  EXPECT_EQ(watch.open(watch.store()), nullptr);
  EXPECT_THAT(watch.warnings, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(watch.folder.path())) << "not even a queue's folder";
  watch.to_a_file();
  EXPECT_NE(watch.open(watch.store()), nullptr);
  EXPECT_THAT(watch.warnings, IsEmpty());
}

TEST(OpenNotifier, AQueueThatCannotBeWrittenIsAWarning) {
  Watch watch;
  watch.to_a_file();
  std::ofstream(watch.folder.file("state")) << "a file where a folder should be";
  EXPECT_EQ(watch.open(watch.store()), nullptr);
  ASSERT_EQ(watch.warnings.size(), 1U);
  EXPECT_THAT(watch.warnings[0],
              AllOf(StartsWith("no notifications: "), HasSubstr(act::notify_queue_path(watch.store())),
                    HasSubstr("watching continues without them")));
}

TEST(OpenNotifier, ASecondWatchOfTheSameStoreNotifiesNobody) {
  Watch watch;
  watch.to_a_file();
  auto first = watch.open(watch.store());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(watch.open(watch.store()), nullptr);
  EXPECT_THAT(watch.warnings, ElementsAre(StartsWith("no notifications: ")));
  first.reset();
  EXPECT_NE(watch.open(watch.store()), nullptr) << "the queue is free again";
}

TEST(OpenNotifier, WithoutAStoreThereIsNoQueueToHold) {
  Watch watch;
  watch.to_a_file();
  const auto first = watch.open("");
  const auto second = watch.open("");
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(watch.folder.path()));
}

TEST(OpenNotifier, AnAddressThatIsNoneIsAWarning) {
  Watch watch;
  watch.config.notify.webhook = "gopher://example.org/";
  EXPECT_EQ(watch.open(""), nullptr);
  EXPECT_THAT(watch.warnings, ElementsAre(AllOf(StartsWith("no notifications: "), HasSubstr("notify.webhook"))));
}

TEST(OpenNotifier, MessagesNameTheHostTheScenarioAndTheTimeOfDay) {
  Watch watch;
  watch.to_a_file();
  const auto notifier = watch.open("", "leaking_training");
  ASSERT_NE(notifier, nullptr);
  EXPECT_EQ(notifier->now(), kNow);
  notifier->notify(Watch::note());
  ASSERT_EQ(notifier->flush(kPatience_s), 0U);
  EXPECT_THAT(watch.messages(), ElementsAre(AllOf(HasSubstr("\"host\":\"" + host_name() + '"'),
                                                  HasSubstr(R"("simulated":"leaking_training")"))));
}

Silence silence_of_gpu(const std::string& gpu, double seconds) {
  Silence silence;
  silence.gpu = gpu;
  silence.ends = kNow + from_seconds(seconds);
  return silence;
}

/// A watch that notifies a program of one alert, which may be silenced.
class Notifying : public testing::Test, protected Watch {
 protected:
  void change(AlertNews news) { listener.alert(sample.told(news)); }
  void deliver() { notifier->flush(kPatience_s); }
  void tick() {
    listener.tick({});
    deliver();
  }
  void begin_silence() {
    const auto made = silences.add(silence_of_gpu(sample.series.key.device_id, 3600), kNow);
    ASSERT_TRUE(made) << made.error().message;
    silence = made->id;
  }
  void end_silence() {
    ASSERT_TRUE(silences.end(silence, kNow).value());
    tick();
  }

  std::unique_ptr<act::Notifier> notifier = (to_a_file(), open(""));
  Silences silences{""};
  const Raised sample{};
  Listener listener = notifying(*notifier, silences, warn);
  std::string silence;
};

TEST_F(Notifying, ASilencedAlertIsToldWhenItStandsAtTheEndOfTheSilence) {
  begin_silence();
  change(AlertNews::raised);
  tick();
  EXPECT_THAT(messages(), IsEmpty());
  end_silence();
  EXPECT_THAT(messages(), ElementsAre(HasSubstr(R"("event":"raised")")));
  tick();
  EXPECT_EQ(messages().size(), 1U) << "once";
}

TEST_F(Notifying, WhatEndsInSilenceIsToldAfterItOnlyWhereItsBeginningWas) {
  change(AlertNews::raised);
  deliver();
  begin_silence();
  change(AlertNews::cleared);
  tick();
  EXPECT_THAT(messages(), ElementsAre(HasSubstr(R"("event":"raised")")));
  change(AlertNews::raised);
  change(AlertNews::cleared);
  end_silence();
  EXPECT_EQ(notifier->counts().incidents, 0U);
}

/// Whatever happens during the silence: everybody who was notified of the beginning is notified of the end.
class ToldBeforeTheSilence : public Notifying, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(AndAgainInIt, ToldBeforeTheSilence, testing::Bool());

TEST_P(ToldBeforeTheSilence, IsResolvedAfterIt) {
  change(AlertNews::raised);
  deliver();
  begin_silence();
  change(AlertNews::escalated);
  change(AlertNews::cleared);
  if (GetParam()) {
    change(AlertNews::raised);
    change(AlertNews::cleared);
  }
  end_silence();
  EXPECT_THAT(messages(), ElementsAre(HasSubstr(R"("event":"raised")"), HasSubstr(R"("event":"resolved")")));
}

/// Plays a leak of two hours through a pipeline that this notifier listens to, and `told` after it.
void play_a_leak(act::Notifier& notifier, const Warn& warn, bool with_dates, std::vector<act::Note>& told) {
  auto scenario = sim::parse_scenario(sim::find_builtin_scenario("leaking_training")->toml, "builtin");
  ASSERT_TRUE(scenario) << scenario.error().message;
  if (!with_dates) scenario->start.reset();
  Catalog catalog;
  const auto source = sim::make_simulation(*scenario, catalog);
  Pipeline pipeline({}, catalog);
  Silences silences("");
  pipeline.listen(notifying(notifier, silences, warn));
  Listener second;
  second.alert = [&told](const AlertNotice& alert) { told.push_back(note_of(alert, kNow)); };
  pipeline.listen(second);
  for (Progress progress = Progress::more; progress == Progress::more;) {
    Batch batch;
    const auto polled = source->poll({}, batch);
    ASSERT_TRUE(polled);
    progress = *polled;
    pipeline.take(batch);
  }
}

/// The time as written in a message.
std::string time_of(const act::Note& note) {
  return "\"time\":\"" + iso8601(note.time) + '"';
}

TEST(NotifyingWatch, AProgramGetsTheAlertOfASimulatedLeak) {
  Watch watch;
  watch.to_a_file();
  const auto notifier = watch.open(watch.store(), "leaking_training");
  ASSERT_NE(notifier, nullptr);
  std::vector<act::Note> told;
  play_a_leak(*notifier, watch.warn, true, told);
  ASSERT_FALSE(told.empty());
  ASSERT_EQ(told[0].news, AlertNews::raised);
  notifier->flush(kPatience_s);
  EXPECT_TRUE(finish_notifications(*notifier, true, watch.warn));
  EXPECT_THAT(watch.warnings, IsEmpty());
  const auto messages = watch.messages();
  ASSERT_FALSE(messages.empty());
  EXPECT_THAT(messages[0], AllOf(StartsWith(R"({"schema":"vramtrack.notification.v1")"),
                                 HasSubstr(R"("event":"raised")"), HasSubstr(time_of(told[0])),
                                 HasSubstr("NVIDIA GeForce RTX 4090"), HasSubstr(R"("schema":"vramtrack.alert.v1")")));
  EXPECT_THAT(messages[0], HasSubstr(R"("time":"2026-01-05T08:)")) << "by the samples' clock";
  EXPECT_THAT(messages, Contains(HasSubstr(R"("event":"resolved")"))) << "the job runs out of memory and ends";
  EXPECT_EQ(notifier->counts().delivered, messages.size());
}

TEST(NotifyingWatch, ALeakWithoutDatesIsToldWithTheTimeOfDay) {
  Watch watch;
  watch.to_a_file();
  const auto notifier = watch.open("");
  ASSERT_NE(notifier, nullptr);
  std::vector<act::Note> told;
  play_a_leak(*notifier, watch.warn, false, told);
  ASSERT_FALSE(told.empty());
  notifier->flush(kPatience_s);
  EXPECT_TRUE(finish_notifications(*notifier, false, watch.warn));
  const auto messages = watch.messages();
  ASSERT_FALSE(messages.empty());
  EXPECT_THAT(messages, testing::Each(HasSubstr("\"time\":\"" + iso8601(kNow) + '"')));
}

TEST(NotifyingWatch, AProgramThatFailsIsAWarningAtTheNextTick) {
  Watch watch;
  watch.to_one_that_fails();
  const auto notifier = watch.open("");
  ASSERT_NE(notifier, nullptr);
  Silences silences("");
  const Listener listener = notifying(*notifier, silences, watch.warn);
  const Raised sample;
  listener.alert(sample.told(AlertNews::raised));
  ASSERT_EQ(notifier->flush(kPatience_s), 1U);
  EXPECT_THAT(watch.warnings, IsEmpty());
  listener.tick({});
  EXPECT_THAT(watch.warnings, ElementsAre(AllOf(HasSubstr("notification to exec failed"), HasSubstr("exit status 3"),
                                                HasSubstr("no mail server"))));
  listener.tick({});
  EXPECT_EQ(watch.warnings.size(), 1U) << "each is said once";
}

TEST(FinishNotifications, NothingToTellIsAllDelivered) {
  Watch watch;
  watch.to_one_that_fails();
  const auto notifier = watch.open("");
  ASSERT_NE(notifier, nullptr);
  EXPECT_TRUE(finish_notifications(*notifier, false, watch.warn));
  EXPECT_THAT(watch.warnings, IsEmpty());
}

TEST(FinishNotifications, SaysHowManyWereNotDelivered) {
  Watch watch;
  watch.to_one_that_fails();
  const auto notifier = watch.open("");
  ASSERT_NE(notifier, nullptr);
  notifier->notify(Watch::note());
  notifier->flush(kPatience_s);
  EXPECT_FALSE(finish_notifications(*notifier, false, watch.warn));
  EXPECT_THAT(watch.warnings,
              ElementsAre(HasSubstr("notification to exec failed"), "1 notification was not delivered"));
  act::Note another = Watch::note();
  another.key.device_id = "GPU-2";
  another.incident = "another";
  another.suspect_pid = 0;
  notifier->notify(another);
  watch.warnings.clear();
  EXPECT_FALSE(finish_notifications(*notifier, false, watch.warn));
  EXPECT_THAT(watch.warnings, ElementsAre("2 notifications were not delivered"));
}

TEST(FinishNotifications, WhatWasGivenUpWasNotDelivered) {
  Watch watch;
  watch.to_one_that_fails();
  watch.config.notify.keep_hours = 1;
  const auto time = std::make_shared<std::atomic<Timestamp>>(kNow);
  const auto notifier = open_notifier(
      watch.config, "", {}, [time] { return time->load(); }, watch.warn);
  ASSERT_NE(notifier, nullptr);
  notifier->notify(Watch::note());
  notifier->flush(kPatience_s);
  *time = kNow + std::chrono::hours{3};
  while (notifier->counts().waiting > 0) notifier->flush(0.1);
  EXPECT_FALSE(finish_notifications(*notifier, false, watch.warn));
  EXPECT_THAT(watch.warnings, Contains(HasSubstr("dropped after 1 h")));
}

TEST(FinishNotifications, WhatIsKeptGoesOutWithTheNextWatch) {
  Watch watch;
  watch.to_one_that_fails();
  auto notifier = watch.open(watch.store());
  ASSERT_NE(notifier, nullptr);
  notifier->notify(Watch::note());
  notifier->flush(kPatience_s);
  EXPECT_FALSE(finish_notifications(*notifier, true, watch.warn));
  EXPECT_THAT(watch.warnings, Contains("1 notification was not delivered, kept for the next watch"));
  notifier.reset();
  EXPECT_TRUE(std::filesystem::exists(act::notify_queue_path(watch.store())));

  watch.to_a_file();
  watch.warnings.clear();
  notifier = watch.open(watch.store());
  ASSERT_NE(notifier, nullptr);
  notifier->flush(kPatience_s);
  EXPECT_TRUE(finish_notifications(*notifier, true, watch.warn));
  EXPECT_THAT(watch.warnings, IsEmpty());
  EXPECT_THAT(watch.messages(), ElementsAre(AllOf(HasSubstr(R"("event":"raised")"), HasSubstr("NVIDIA A10"))));
}

}  // namespace
}  // namespace vramtrack
