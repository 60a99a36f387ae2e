#include "source/tick_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace vramtrack {
namespace {

Timestamp at(int s) {
  return Timestamp{std::chrono::seconds{s}};
}

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
  // The first begins nothing anew; what happened before the second is of the first; the third goes on.
  EXPECT_EQ(read_all(reader), "1 4 5+ 9 ");
}

}  // namespace
}  // namespace vramtrack
