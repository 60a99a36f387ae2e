#include "source/tick_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "../at.hpp"

namespace vramtrack {
namespace {

Event event(int s, Event::Kind kind, bool went_on = false) {
  Event e;
  e.time = at(s);
  e.kind = kind;
  e.went_on = went_on;
  return e;
}

/// Hands over its stretches one after the other, and then fails or ends.
class Stretches : public Source {
 public:
  explicit Stretches(std::vector<Batch> stretches, std::string broken = {})
      : stretches_(std::move(stretches)), broken_(std::move(broken)) {}
  Result<Progress> poll(Timestamp /*now*/, Batch& out) override {
    if (next_ < stretches_.size()) out = stretches_[next_++];
    if (next_ < stretches_.size()) return Progress::more;
    if (!broken_.empty()) return fail(broken_);
    return Progress::end;
  }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  std::vector<Batch> stretches_;
  std::string broken_;
  std::size_t next_ = 0;
  SourceNotes notes_;
};

Batch samples(std::vector<int> seconds) {
  Batch batch;
  for (const int s : seconds) batch.samples.push_back({at(s), SeriesId{0}, 1});
  return batch;
}

/// "1+" is a tick at second 1 with which another watch begins.
std::string read_all(TickReader& reader) {
  std::string out;
  while (const Tick* const tick = reader.next())
    out +=
        std::to_string(static_cast<int>(seconds_between(Timestamp{}, tick->time))) + (tick->starts_anew ? "+ " : " ");
  return out;
}

TEST(TickReader, HandsOverTickByTickHoweverTheStretchesAreCut) {
  Stretches source({samples({1, 1, 2}), samples({2, 3})});
  TickReader reader(source);
  EXPECT_EQ(read_all(reader), "1 2 3 ");
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_FALSE(reader.broken());
}

TEST(TickReader, WhatWasReadBeforeAFailureIsHandedOver) {
  Stretches source({samples({1, 2})}, "line 7: no number");
  TickReader reader(source);
  EXPECT_EQ(read_all(reader), "1 2 ");
  ASSERT_TRUE(reader.broken());
  EXPECT_EQ(reader.broken()->message, "line 7: no number");
}

TEST(TickReader, AWatchThatDidNotGoOnStartsAnew) {
  Batch batch = samples({1, 5, 9});
  batch.events = {event(1, Event::Kind::watch_started), event(4, Event::Kind::process_ended),
                  event(5, Event::Kind::watch_started), event(9, Event::Kind::watch_started, true)};
  Stretches source({batch});
  TickReader reader(source);
  // The first begins nothing again; what happened before the second is of the first; the third continues.
  EXPECT_EQ(read_all(reader), "1 4 5+ 9 ");
}

std::vector<int> seconds_of(const TicksRead& read) {
  return {static_cast<int>(seconds_between(Timestamp{}, *read.first)),
          static_cast<int>(seconds_between(Timestamp{}, *read.last))};
}

TEST(ReadTicks, BeginsAnewBeforeTheTickThatDoes) {
  Batch batch = samples({1, 5, 9});
  batch.events = {event(1, Event::Kind::watch_started), event(5, Event::Kind::watch_started)};
  Stretches source({batch});
  std::string told;
  TickTaker taker;
  taker.wait = [&](const Tick&) { return told += "wait ", true; };
  taker.begin_anew = [&](const Tick&) { told += "anew "; };
  taker.take = [&](const Tick&) { return told += "take ", true; };
  const TicksRead read = read_ticks(source, taker);
  EXPECT_EQ(told, "wait take wait anew take wait take ");
  EXPECT_EQ(seconds_of(read), (std::vector{1, 9}));
  EXPECT_FALSE(read.broken);
}

TEST(ReadTicks, TakesTheRangeAndSaysWhatItRead) {
  Batch batch = samples({1, 5, 6, 9, 12});
  batch.events = {event(1, Event::Kind::watch_started), event(9, Event::Kind::watch_started)};
  Stretches source({batch});
  int taken = 0;
  TickTaker taker;
  taker.begin_anew = [](const Tick&) { FAIL() << "what lies outside begins nothing"; };
  taker.take = [&](const Tick&) { return ++taken, true; };
  const TicksRead read = read_ticks(source, taker, {at(5), at(9)});
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(seconds_of(read), (std::vector{1, 9})) << "that there is more is known, not how much";
}

TEST(ReadTicks, EndsWhenItIsToldToOrBreaks) {
  for (const bool waits : {false, true}) {
    Stretches source({samples({1, 2, 3})});
    int taken = 0;
    TickTaker taker;
    if (waits) taker.wait = [&](const Tick&) { return taken < 2; };
    taker.begin_anew = [](const Tick&) {};
    taker.take = [&](const Tick&) { return ++taken < 2 || waits; };
    EXPECT_FALSE(read_ticks(source, taker).broken);
    EXPECT_EQ(taken, 2);
  }
  Stretches source({samples({1, 2})}, "line 7: no number");
  const TicksRead read = read_ticks(source, {{}, [](const Tick&) {}, [](const Tick&) { return true; }});
  ASSERT_TRUE(read.broken);
  EXPECT_EQ(read.broken->message, "line 7: no number");
}

TEST(ReadTicks, WhatASourceNotedIsForPeople) {
  SourceNotes notes;
  notes.warnings = {"two clocks"};
  notes.first_skipped = {"line 7: no number"};
  EXPECT_EQ(warnings_of(notes), (std::vector<std::string>{"two clocks", "skipped line 7: no number"}));
}

}  // namespace
}  // namespace vramtrack
