#include "act/outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>
#include <map>
#include <set>

#include "core/series_text.hpp"

namespace vramtrack::act {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Timestamp kStart{std::chrono::hours{24 * 365 * 56}};

Timestamp at(double seconds) {
  return kStart + from_seconds(seconds);
}

SeriesKey device(const std::string& id = "GPU-0") {
  return {Metric::device_used, id, 0, 0};
}

SeriesKey process(std::uint32_t pid, const std::string& id = "GPU-0") {
  return {Metric::process_used, id, pid, pid * 10ULL};
}

/// The incident of a leak that no other series shows.
std::string incident_of(const SeriesKey& key) {
  return alert_id(key, kStart);
}

Note note(AlertNews news, const SeriesKey& key, Severity severity = Severity::watch, std::uint32_t suspect = 0) {
  Note n;
  n.news = news;
  n.key = key;
  n.incident = incident_of(key);
  n.suspect_pid = suspect;
  n.severity = severity;
  n.time = kStart;
  n.text = "headline\n    because it grows";
  n.json = R"({"schema":"vramtrack.alert.v1"})";
  return n;
}

std::vector<std::string> events(const Outbox& outbox) {
  std::vector<std::string> out;
  for (const Message& m : outbox.messages()) out.push_back(m.event);
  return out;
}

Outbox outbox(OutboxRules rules = {}, std::vector<std::string> channels = {"webhook"}) {
  rules.host = "host";
  return Outbox(rules, std::move(channels));
}

const Outcome kDelivered{Outcome::Kind::delivered, {}, {}};
const Outcome kRetry{Outcome::Kind::retry, "status 503", {}};
const Outcome kRefused{Outcome::Kind::refused, "status 400", {}};

Note silenced(Note n) {
  n.silenced = true;
  return n;
}

TEST(Outbox, WhatIsSilencedIsToldWhenTheSilenceHasEnded) {
  Outbox o = outbox();
  o.take(silenced(note(AlertNews::raised, device())), at(0));
  o.take(silenced(note(AlertNews::escalated, device(), Severity::critical)), at(1));
  EXPECT_THAT(events(o), IsEmpty());
  EXPECT_EQ(o.incidents(), 1U);
  o.take(note(AlertNews::escalated, device(), Severity::critical), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised"));
  EXPECT_EQ(o.messages().back().severity, Severity::critical);
  o.take(note(AlertNews::cleared, device()), at(3));
  EXPECT_THAT(events(o), ElementsAre("raised", "resolved"));
}

TEST(Outbox, WhatBeganAndEndedInSilenceIsNeverTold) {
  Outbox o = outbox();
  o.take(silenced(note(AlertNews::raised, device())), at(0));
  o.take(silenced(note(AlertNews::cleared, device())), at(1));
  EXPECT_THAT(events(o), IsEmpty());
  EXPECT_EQ(o.incidents(), 0U);
}

TEST(Outbox, WhatGotWorseInSilenceIsToldAsWorse) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device()), at(0));
  o.take(silenced(note(AlertNews::escalated, device(), Severity::critical)), at(1));
  EXPECT_THAT(events(o), ElementsAre("raised"));
  o.take(note(AlertNews::escalated, device(), Severity::critical), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised", "escalated"));
}

TEST(Outbox, ASilenceOutlivesARestart) {
  Outbox before = outbox();
  before.take(silenced(note(AlertNews::raised, device())), at(0));
  Outbox after = outbox();
  ASSERT_TRUE(after.load(before.save(), at(10)));
  after.take(silenced(note(AlertNews::raised, device())), at(11));
  EXPECT_THAT(events(after), IsEmpty());
  after.take(note(AlertNews::raised, device()), at(12));
  EXPECT_THAT(events(after), ElementsAre("raised"));
}

TEST(Outbox, RaisedEscalatedResolved) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device()), at(0));
  o.take(note(AlertNews::escalated, device(), Severity::critical), at(1));
  o.take(note(AlertNews::cleared, device(), Severity::critical), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised", "escalated", "resolved"));
  const std::string incident = o.messages()[0].incident;
  std::set<std::string> ids;
  for (const Message& m : o.messages()) {
    EXPECT_EQ(m.incident, incident);
    ids.insert(m.id);
  }
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_EQ(o.incidents(), 0U);
}

/// The same, in the incident of `first`, to which those of `also` have proved to belong; `is_over`: no other alert of
/// the incident is active.
Note of(Note n, const SeriesKey& first, const std::vector<SeriesKey>& also = {}, bool is_over = true) {
  n.incident = incident_of(first);
  for (const SeriesKey& key : also) n.also.push_back(incident_of(key));
  n.incident_is_over = is_over;
  return n;
}

TEST(Outbox, OneLeakIsToldOnceHoweverManySeriesShowIt) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, process(7)), at(0));
  o.take(note(AlertNews::raised, process(7)), at(1));
  o.take(of(note(AlertNews::raised, device()), process(7)), at(2));
  o.take(of(note(AlertNews::raised, process(8)), process(7)), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised"));
  o.take(of(note(AlertNews::cleared, process(7)), process(7), {}, false), at(3));
  o.take(of(note(AlertNews::cleared, process(8)), process(7), {}, false), at(3));
  EXPECT_THAT(events(o), ElementsAre("raised"));
  o.take(of(note(AlertNews::cleared, device()), process(7)), at(4));
  EXPECT_THAT(events(o), ElementsAre("raised", "resolved"));
  EXPECT_EQ(o.incidents(), 0U);
}

TEST(Outbox, TwoLeaksThatProveToBeOneAreResolvedTogether) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, process(7)), at(0));
  o.take(note(AlertNews::raised, process(8)), at(0));
  const std::vector<SeriesKey> other = {process(8)};
  o.take(of(note(AlertNews::raised, device()), process(7), other), at(1));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised"));
  o.take(of(note(AlertNews::escalated, process(8), Severity::critical), process(7), other), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "escalated")) << "one of them speaks for both";
  EXPECT_EQ(o.messages()[2].incident, o.messages()[0].incident);
  o.take(of(note(AlertNews::cleared, process(8)), process(7), other, false), at(3));
  o.take(of(note(AlertNews::cleared, device()), process(7), other), at(4));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "escalated", "resolved", "resolved"));
  EXPECT_NE(o.messages()[3].incident, o.messages()[4].incident);
  EXPECT_EQ(o.incidents(), 0U);
}

TEST(Outbox, DifferentLeaksAreToldApart) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, process(7)), at(0));
  o.take(note(AlertNews::raised, process(8)), at(0));
  o.take(note(AlertNews::raised, process(7, "GPU-1")), at(0));
  o.take(note(AlertNews::raised, device(), Severity::watch, 0), at(0));  // by no visible process
  SeriesKey elsewhere = process(7);
  elsewhere.host = "node7";
  o.take(note(AlertNews::raised, elsewhere), at(0));
  EXPECT_EQ(o.messages().size(), 5U);
  EXPECT_EQ(o.incidents(), 5U);
}

TEST(Outbox, ThatAProcessStallsIsNotItsLeak) {
  Outbox o = outbox();
  const auto stall = [](AlertNews news) {
    Note n = note(news, process(7));
    n.kind = AlertKind::stall;
    n.incident = "stall";
    return n;
  };
  o.take(stall(AlertNews::raised), at(0));
  o.take(note(AlertNews::raised, process(7)), at(1));
  o.take(of(note(AlertNews::raised, device()), process(7)), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised"));
  o.take(stall(AlertNews::cleared), at(3));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "resolved"));
  EXPECT_EQ(o.incidents(), 1U);
}

TEST(Outbox, MemoryThatEachProcessLeftIsAnIncidentOfItsOwn) {
  Outbox o = outbox();
  const auto left = [](AlertNews news, std::uint32_t pid) {
    Note n = note(news, process(pid));
    n.kind = AlertKind::unreleased;
    n.incident += " left";
    return n;
  };
  o.take(left(AlertNews::raised, 7), at(0));
  o.take(left(AlertNews::raised, 8), at(1));
  o.take(note(AlertNews::raised, device(), Severity::watch, 7), at(2));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "raised"));
  o.take(left(AlertNews::cleared, 7), at(3));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "raised", "resolved"));
  EXPECT_EQ(o.incidents(), 2U);
}

TEST(Outbox, AClearOfWhatWasNeverRaisedSaysNothing) {
  Outbox o = outbox();
  o.take(note(AlertNews::cleared, device()), at(0));
  EXPECT_THAT(events(o), IsEmpty());
}

TEST(Outbox, BelowTheLeastSeverityNothingIsToldUntilItEscalates) {
  OutboxRules rules;
  rules.min_severity = Severity::warning;
  Outbox o = outbox(rules);
  o.take(note(AlertNews::raised, device()), at(0));
  EXPECT_THAT(events(o), IsEmpty());
  o.take(note(AlertNews::escalated, device(), Severity::critical), at(1));
  EXPECT_THAT(events(o), ElementsAre("raised"));
  o.take(note(AlertNews::raised, device("GPU-1")), at(2));
  o.take(note(AlertNews::cleared, device("GPU-1")), at(3));
  EXPECT_THAT(events(o), ElementsAre("raised"));
}

TEST(Outbox, ResolvedCanBeTurnedOff) {
  OutboxRules rules;
  rules.resolved = false;
  Outbox o = outbox(rules);
  o.take(note(AlertNews::raised, device()), at(0));
  o.take(note(AlertNews::cleared, device()), at(1));
  EXPECT_THAT(events(o), ElementsAre("raised"));
}

TEST(Outbox, WhatIsOverTheRateIsCountedAndToldOnce) {
  OutboxRules rules;
  rules.max_per_hour = 2;
  Outbox o = outbox(rules);
  for (std::uint32_t pid = 1; pid <= 20; ++pid) o.take(note(AlertNews::raised, process(pid)), at(pid));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised"));
  o.tick(at(1700));
  EXPECT_EQ(o.messages().size(), 2U);
  ASSERT_TRUE(o.wake());
  o.tick(at(1900));  // one token per 1800 s
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "held_back"));
  EXPECT_THAT(o.messages().back().text, HasSubstr("18 more alerts were held back"));
  EXPECT_THAT(o.messages().back().text, HasSubstr("and 8 more"));
  // Nobody was notified of its beginning, so nobody is notified of its end. The first one's end was sent.
  o.take(note(AlertNews::cleared, process(20)), at(1901));
  EXPECT_EQ(o.messages().size(), 3U);
  o.take(note(AlertNews::cleared, process(1)), at(1902));
  EXPECT_EQ(o.messages().back().event, "resolved");
}

Note act(const std::string& id, bool is_always_sent) {
  Note n = note(AlertNews::raised, process(7));
  n.act_id = id;
  n.is_always_sent = is_always_sent;
  return n;
}

TEST(Outbox, AnActIsToldOnceHoweverOftenItIsReported) {
  Outbox box = outbox();
  box.take(act("freeze", true), at(0));
  box.take_outcome("webhook", box.messages().front().id, kDelivered, at(1));
  Outbox next = outbox();
  ASSERT_TRUE(next.load(box.save(), at(2)));
  next.take(act("freeze", true), at(3));
  EXPECT_TRUE(next.messages().empty()) << "an earlier run has delivered it";
  next.take(act("thaw", true), at(4));
  EXPECT_EQ(next.messages().size(), 1U);
}

TEST(Outbox, WhatWasDoneIsNotHeldBack) {
  OutboxRules rules;
  rules.max_per_hour = 1;
  Outbox box = outbox(rules);
  box.take(act("refused 1", false), at(0));
  box.take(act("refused 2", false), at(0));
  box.take(act("done 1", true), at(0));
  box.take(act("done 2", true), at(0));
  std::vector<std::string> ids;
  for (const Message& m : box.messages()) ids.push_back(m.id);
  EXPECT_THAT(ids, ElementsAre("refused 1", "done 1", "done 2"));
}

TEST(Outbox, FailuresAreTriedAgainEverLater) {
  OutboxRules rules;
  rules.retry_s = 5;
  Outbox o = outbox(rules);
  o.take(note(AlertNews::raised, device()), at(0));
  double now = 0;
  for (const double wait : {5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 900.0, 900.0}) {
    const Message* m = o.due("webhook", at(now));
    ASSERT_NE(m, nullptr) << now;
    o.take_outcome("webhook", m->id, kRetry, at(now));
    EXPECT_EQ(o.due("webhook", at(now + wait - 0.01)), nullptr) << wait;
    EXPECT_EQ(o.wake(), at(now + wait));
    now += wait;
  }
  EXPECT_THAT(o.take_warnings(), ElementsAre(HasSubstr("503")));  // once, not ten times
  o.take_outcome("webhook", o.due("webhook", at(now))->id, kDelivered, at(now));
  EXPECT_THAT(o.take_warnings(), ElementsAre(HasSubstr("delivered again")));
  EXPECT_TRUE(o.messages().empty());
}

TEST(Outbox, AReceiverMaySayWhenToComeAgain) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device()), at(0));
  o.take_outcome("webhook", o.messages()[0].id, {Outcome::Kind::retry, "status 429", 120.0}, at(0));
  EXPECT_EQ(o.due("webhook", at(119)), nullptr);
  EXPECT_NE(o.due("webhook", at(120)), nullptr);
}

TEST(Outbox, AClockSetBackDoesNotHoldTheQueue) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device()), at(0));
  o.take_outcome("webhook", o.messages()[0].id, kRetry, at(0));
  EXPECT_NE(o.due("webhook", at(-86400)), nullptr);
}

TEST(Outbox, ARefusedMessageDoesNotStandInTheWay) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device()), at(0));
  o.take(note(AlertNews::raised, device("GPU-1")), at(0));
  o.take_outcome("webhook", o.due("webhook", at(0))->id, kRefused, at(0));
  EXPECT_EQ(o.dropped(), 1U);
  ASSERT_NE(o.due("webhook", at(0)), nullptr);
  EXPECT_EQ(o.due("webhook", at(0))->device, "GPU-1");
  EXPECT_THAT(o.take_warnings(), ElementsAre(HasSubstr("status 400")));
}

TEST(Outbox, ChannelsDoNotWaitForEachOther) {
  Outbox o = outbox({}, {"webhook", "exec"});
  o.take(note(AlertNews::raised, device()), at(0));
  const std::string id = o.messages()[0].id;
  o.take_outcome("webhook", id, kRetry, at(0));
  ASSERT_NE(o.due("exec", at(0)), nullptr);
  o.take_outcome("exec", id, kDelivered, at(0));
  EXPECT_EQ(o.due("exec", at(0)), nullptr);
  EXPECT_EQ(o.messages().size(), 1U);
  o.take_outcome("webhook", id, kDelivered, at(5));
  EXPECT_TRUE(o.messages().empty());
}

TEST(Outbox, WhatNobodyTakesIsGivenUp) {
  OutboxRules rules;
  rules.keep_s = 100;
  Outbox o = outbox(rules);
  o.take(note(AlertNews::raised, device()), at(0));
  o.tick(at(99));
  EXPECT_EQ(o.messages().size(), 1U);
  EXPECT_EQ(o.dropped(), 0U);
  o.tick(at(100));
  EXPECT_TRUE(o.messages().empty());
  EXPECT_EQ(o.dropped(), 1U);
  EXPECT_THAT(o.take_warnings(), ElementsAre(HasSubstr("dropped")));
}

TEST(Outbox, TheQueueIsBounded) {
  OutboxRules rules;
  rules.max_per_hour = 100000;
  Outbox o = outbox(rules);
  for (std::uint32_t pid = 1; pid <= 2000; ++pid) o.take(note(AlertNews::raised, process(pid)), at(0));
  EXPECT_EQ(o.messages().size(), Outbox::kMaxMessages);
  EXPECT_EQ(o.incidents(), Outbox::kMaxIncidents);
  EXPECT_EQ(o.messages().back().pid, 2000U);
  EXPECT_THAT(o.take_warnings(), ElementsAre(HasSubstr("1744 notifications dropped")));
  EXPECT_EQ(o.dropped(), 1744U);
}

TEST(Outbox, ARestartLosesNothingAndTellsNothingTwice) {
  Outbox before = outbox();
  before.take(note(AlertNews::raised, device(), Severity::watch, 7), at(0));
  before.take_outcome("webhook", before.messages()[0].id, kRetry, at(0));
  Outbox o = outbox();
  ASSERT_TRUE(o.load(before.save(), at(10)));
  ASSERT_EQ(o.messages().size(), 1U);
  EXPECT_EQ(o.messages()[0], before.messages()[0]);
  EXPECT_NE(o.due("webhook", at(10)), nullptr);  // at once
  // The new run raises the same leak again, at a different time.
  o.take(of(note(AlertNews::raised, process(7)), device()), at(300));
  o.take(note(AlertNews::raised, device(), Severity::watch, 7), at(301));
  o.take(note(AlertNews::raised, process(7, "GPU-1")), at(302));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised")) << "what another GPU shows is another leak";
  o.take(note(AlertNews::cleared, process(7, "GPU-1")), at(303));
  o.tick(at(10 + 2 * Outbox::kForget_s));
  EXPECT_EQ(o.incidents(), 1U);
  o.take(of(note(AlertNews::cleared, process(7)), device(), {}, false), at(400));
  o.take(note(AlertNews::cleared, device()), at(401));
  EXPECT_THAT(events(o), ElementsAre("raised", "raised", "resolved", "resolved"));
}

TEST(Outbox, WhatIsNotRaisedAgainAfterARestartIsOver) {
  Outbox before = outbox();
  before.take(note(AlertNews::raised, device()), at(0));
  before.take_outcome("webhook", before.messages()[0].id, kDelivered, at(0));
  Outbox o = outbox();
  ASSERT_TRUE(o.load(before.save(), at(10)));
  o.tick(at(10 + Outbox::kForget_s - 1));
  EXPECT_THAT(events(o), IsEmpty());
  EXPECT_EQ(o.wake(), at(10 + Outbox::kForget_s));
  o.tick(at(10 + Outbox::kForget_s));
  EXPECT_THAT(events(o), ElementsAre("resolved"));
  EXPECT_THAT(o.messages()[0].text, HasSubstr("headline"));
}

TEST(Outbox, AChannelThatIsNoMoreTakesItsMessagesWithIt) {
  Outbox before = outbox({}, {"webhook", "exec"});
  before.take(note(AlertNews::raised, device()), at(0));
  Outbox o = outbox({}, {"exec"});
  ASSERT_TRUE(o.load(before.save(), at(1)));
  EXPECT_THAT(o.messages()[0].channels, ElementsAre("exec"));
  Outbox none = outbox({}, {"slack"});
  ASSERT_TRUE(none.load(before.save(), at(1)));
  EXPECT_TRUE(none.messages().empty());
  EXPECT_THAT(none.take_warnings(), ElementsAre(HasSubstr("dropped")));
}

TEST(Outbox, ADamagedFileIsNamedAndChangesNothing) {
  Outbox before = outbox();
  before.take(note(AlertNews::raised, device()), at(0));
  const std::string whole = before.save();
  Outbox o = outbox();
  o.take(note(AlertNews::raised, device("GPU-5")), at(0));
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[1]"), whole.substr(0, whole.size() / 2),
        std::string(whole).replace(whole.find("outbox.v1"), 9, "outbox.v9")}) {
    const Status read = o.load(bad, at(1));
    ASSERT_FALSE(read) << bad;
    EXPECT_FALSE(read.error().message.empty());
  }
  ASSERT_EQ(o.messages().size(), 1U);
  EXPECT_EQ(o.messages()[0].device, "GPU-5");
}

TEST(OutboxProperty, WhateverIsCutOrChangedInTheFileIsReadWithoutFault) {
  Outbox before = outbox();
  before.take(note(AlertNews::raised, device()), at(0));
  const std::string whole = before.save();
  EXPECT_TRUE(rc::check([&whole](std::vector<std::pair<std::uint16_t, char>> edits, std::uint16_t cut) {
    std::string text = whole.substr(0, whole.size() - cut % 7);
    for (const auto& [where, what] : edits) text[where % text.size()] = what;
    Outbox o = outbox();
    const Status read = o.load(text, at(1));
    if (read) {
      Outbox again = outbox();
      RC_ASSERT(static_cast<bool>(again.load(o.save(), at(2))));
    }
  }));
}

/// Whatever happens, in any order, with restarts in between: each message is delivered to each channel in order and
/// once, unless its delivery was interrupted between the receiver's answer and the saving.
TEST(OutboxProperty, EveryMessageIsDeliveredInOrderThroughFailuresAndRestarts) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& steps) {
    OutboxRules rules;
    rules.max_per_hour = 1e5;
    Outbox o = outbox(rules, {"webhook", "exec"});
    std::map<std::string, std::vector<std::string>> got;
    std::vector<std::string> open;
    double now = 0;
    std::uint64_t seen = 0;
    const auto notice = [&] {
      for (const Message& m : o.messages()) {
        const auto number = std::stoull(m.id.substr(m.id.find('-') + 1));
        if (number <= seen) continue;
        seen = number;
        open.push_back(m.id);
      }
    };
    for (const std::uint8_t step : steps) {
      now += step % 50;
      const std::string name = (step & 8U) != 0 ? "webhook" : "exec";
      const SeriesKey key = process(1 + (step >> 4U) % 4);
      switch (step % 5) {
        case 0:
          o.take(note(AlertNews::raised, key), at(now));
          break;
        case 1:
          o.take(note(AlertNews::cleared, key), at(now));
          break;
        case 2:
          if (const Message* m = o.due(name, at(now))) o.take_outcome(name, m->id, kRetry, at(now));
          break;
        case 3:
          if (const Message* m = o.due(name, at(now))) {
            got[name].push_back(m->id);
            o.take_outcome(name, std::string(m->id), kDelivered, at(now));
          }
          break;
        default: {
          Outbox next = outbox(rules, {"webhook", "exec"});
          RC_ASSERT(static_cast<bool>(next.load(o.save(), at(now))));
          o = std::move(next);
        }
      }
      notice();
    }
    now += 1e4;
    for (const char* name : {"webhook", "exec"})
      while (const Message* m = o.due(name, at(now))) {
        got[name].push_back(m->id);
        o.take_outcome(name, std::string(m->id), kDelivered, at(now));
      }
    RC_ASSERT(o.messages().empty());
    RC_ASSERT(got["webhook"] == open);
    RC_ASSERT(got["exec"] == open);
  }));
}

TEST(Bodies, WebhookIsWholeAndKeepsTheAlert) {
  Outbox o = outbox();
  Note n = note(AlertNews::raised, process(7), Severity::critical);
  n.text = "pid 7 \xff\"\\ <b>\n    because";
  o.take(n, at(0));
  OutboxRules rules;
  rules.host = "host";
  const std::string body = webhook_body(o.messages()[0], rules);
  EXPECT_THAT(body, HasSubstr(R"("schema":"vramtrack.notification.v1")"));
  EXPECT_THAT(body, HasSubstr(R"("event":"raised")"));
  EXPECT_THAT(body, HasSubstr(R"("severity":"critical")"));
  EXPECT_THAT(body, HasSubstr(R"("pid":7)"));
  EXPECT_THAT(body, HasSubstr(R"("alert":{"schema":"vramtrack.alert.v1"})"));
  EXPECT_THAT(body, HasSubstr("\xef\xbf\xbd"));  // bytes that are not UTF-8
  EXPECT_THAT(body, HasSubstr(R"("simulated":null)"));
}

TEST(Bodies, SlackCallsNobodyAndLinksNowhere) {
  Outbox o = outbox();
  Note n = note(AlertNews::raised, process(7));
  n.text = "pid 7 <!channel> & <http://x|y>";
  o.take(n, at(0));
  const std::string body = slack_body(o.messages()[0], {});
  EXPECT_EQ(body.find('<'), std::string::npos);
  EXPECT_THAT(body, HasSubstr("&lt;!channel&gt; &amp; "));
}

TEST(Bodies, SlackShowsNoCheckMarkForAProgramThatRanOutOfMemory) {
  Outbox o = outbox();
  o.take(note(AlertNews::raised, process(7)), at(0));
  Note end = note(AlertNews::cleared, process(7));
  end.ran_out = true;
  o.take(end, at(1));
  EXPECT_THAT(slack_body(o.messages()[1], {}), HasSubstr(":x: "));
  Outbox again = outbox();
  ASSERT_TRUE(again.load(o.save(), at(2)));
  EXPECT_THAT(slack_body(again.messages()[1], {}), HasSubstr(":x: "));
  o.take(note(AlertNews::raised, process(8)), at(3));
  o.take(note(AlertNews::cleared, process(8)), at(4));
  EXPECT_THAT(slack_body(o.messages()[3], {}), HasSubstr(":white_check_mark: "));
}

}  // namespace
}  // namespace vramtrack::act
