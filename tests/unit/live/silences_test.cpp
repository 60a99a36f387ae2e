#include "live/silences.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "../report/sample_view.hpp"
#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const Timestamp kNow = Timestamp{std::chrono::sys_days{std::chrono::year{2026} / 1 / 5}};

Silence silence(double for_s = 3600) {
  Silence out;
  out.gpu = "0";
  out.begins = kNow;
  out.ends = kNow + from_seconds(for_s);
  out.by = "ada";
  out.comment = "driver update";
  return out;
}

SilenceSubject subject() {
  return {"GPU-8f2c", 0, "python train.py --warm", "ada", 4242};
}

bool covered(const Silence& s, const SilenceSubject& what = subject()) {
  Silences silences("");
  EXPECT_TRUE(silences.add(s, kNow));
  return silences.covering(what, kNow).has_value();
}

TEST(Silences, AllMatchersMustMatch) {
  Silence s = silence();
  EXPECT_TRUE(covered(s));
  s.gpu = "GPU-8f2c";
  EXPECT_TRUE(covered(s));
  s.command = "train.*warm";
  EXPECT_TRUE(covered(s));
  s.user = "ada";
  s.pid = 4242;
  EXPECT_TRUE(covered(s));
  s.pid = 4243;
  EXPECT_FALSE(covered(s));
  s = silence();
  s.gpu = "GPU-8f2";
  EXPECT_FALSE(covered(s)) << "an id is not cut";
  s.gpu.clear();
  s.all = true;
  EXPECT_TRUE(covered(s));
  SilenceSubject nameless = subject();
  nameless.device_index.reset();
  EXPECT_FALSE(covered(silence(), nameless));
}

TEST(Silences, OneBeginsAndEndsByItself) {
  Silences silences("");
  Silence s = silence(60);
  s.begins = kNow + from_seconds(10);
  ASSERT_TRUE(silences.add(s, kNow));
  const std::string before = silences.state(kNow);
  EXPECT_FALSE(silences.covering(subject(), kNow));
  EXPECT_TRUE(silences.covering(subject(), kNow + from_seconds(10)));
  EXPECT_NE(silences.state(kNow + from_seconds(10)), before);
  EXPECT_FALSE(silences.covering(subject(), s.ends));
  EXPECT_EQ(silences.list(kNow).size(), 1U);
  EXPECT_THAT(silences.list(s.ends), IsEmpty());
}

TEST(Silences, TheOneThatEndsLastIsTold) {
  Silences silences("");
  ASSERT_TRUE(silences.add(silence(600), kNow));
  ASSERT_TRUE(silences.add(silence(6000), kNow));
  EXPECT_EQ(silences.covering(subject(), kNow)->ends, kNow + from_seconds(6000));
}

TEST(Silences, WhatIsIncompleteIsRefused) {
  Silences silences("");
  const auto problem = [&](auto change) {
    Silence s = silence();
    change(s);
    const auto made = silences.add(s, kNow);
    return made ? std::string() : made.error().message;
  };
  EXPECT_THAT(problem([](Silence& s) { s.gpu.clear(); }), HasSubstr("choose what to silence"));
  EXPECT_THAT(problem([](Silence& s) { s.all = true; }), HasSubstr("leave out either"));
  EXPECT_THAT(problem([](Silence& s) { s.ends = s.begins; }), HasSubstr("after it begins"));
  EXPECT_THAT(problem([](Silence& s) { s.begins -= std::chrono::hours{5}, s.ends -= std::chrono::hours{5}; }),
              HasSubstr("in the future"));
  EXPECT_THAT(problem([](Silence& s) { s.ends += std::chrono::hours{24 * 400}; }), HasSubstr("at most a year"));
  EXPECT_THAT(problem([](Silence& s) { s.command = "("; }), HasSubstr("not a regular expression"));
  EXPECT_THAT(silences.list(kNow), IsEmpty());
}

TEST(Silences, WhatCannotBeMeantIsRefused) {
  for (const char* text : {"a\x1b[31mb", "x\n", "\xe2\x80\xae", "\xff"}) {
    Silence s = silence();
    s.command = text;
    EXPECT_THAT(check_silence(s, kNow).error().message, HasSubstr("'command' must not contain control characters"));
  }
  Silence s = silence();
  s.begins = Timestamp{std::chrono::sys_days{std::chrono::year{1800} / 1 / 1}};
  EXPECT_TRUE(check_silence(s, kNow)) << "it began long ago";
  s.ends = Timestamp{std::chrono::sys_days{std::chrono::year{2199} / 1 / 1}};
  EXPECT_THAT(check_silence(s, kNow).error().message, HasSubstr("last at most a year"));
}

TEST(Silences, ARequestHasNoUnknownFieldAndAnEnd) {
  EXPECT_THAT(asked_silence(R"({"gpu": "0", "for": "2h"})").error().message, HasSubstr("unknown field 'for'"));
  EXPECT_THAT(asked_silence(R"({"gpu": "0"})").error().message, HasSubstr("'ends' is missing"));
  const auto made = asked_silence(R"({"gpu": 3, "ends": "2026-01-05T01:00:00Z"})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->gpu, "3");
}

TEST(Silences, AGpuIsNamedByItsIndexItsIdOrTheBeginningOfOne) {
  const View view = sample_view();
  std::string id, index;
  for (const SeriesView& s : view.series)
    if (s.key.metric == Metric::device_used && s.device.index) {
      id = s.key.device_id;
      index = std::to_string(*s.device.index);
    }
  EXPECT_EQ(*gpu_of(view, id), id);
  EXPECT_EQ(*gpu_of(view, index), index);
  EXPECT_EQ(*gpu_of(view, id.substr(0, id.size() - 1)), id);
  EXPECT_THAT(gpu_of(view, "0,1").error().message, HasSubstr("there is no GPU '0,1' here; give one of: "));
}

TEST(Silences, ThereIsABound) {
  Silences silences("");
  for (std::size_t n = 0; n < Silences::kMost; ++n) ASSERT_TRUE(silences.add(silence(), kNow));
  EXPECT_FALSE(silences.add(silence(), kNow));
  EXPECT_TRUE(silences.add(silence(7200), kNow + from_seconds(3600))) << "those that have ended make room";
}

TEST(Silences, TheyOutliveTheProgramAndAreSharedByAFile) {
  const TempFolder folder;
  const std::string path = silences_path(folder.file("a.db"));
  Silences one(path);
  Silences other(path);
  const auto made = one.add(silence(), kNow);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(other.list(kNow).size(), 1U);
  EXPECT_EQ(other.list(kNow).front(), *made);
  EXPECT_TRUE(other.covering(subject(), kNow));
  EXPECT_TRUE(other.end(made->id, kNow).value());
  EXPECT_FALSE(one.covering(subject(), kNow));
  EXPECT_FALSE(one.end(made->id, kNow).value());
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
}

TEST(Silences, AFileThatIsNoneOfThemIsNotOverwritten) {
  const TempFolder folder;
  const std::string path = folder.file("x.silences.json");
  std::ofstream(path) << "something else";
  Silences silences(path);
  EXPECT_THAT(silences.add(silence(), kNow).error().message, HasSubstr("move it away"));
  EXPECT_FALSE(silences.covering(subject(), kNow));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  EXPECT_THAT(silences.add(silence(), kNow).error().message, HasSubstr("symbolic link"));
}

TEST(Silences, ThoseOfTheConfigurationDoNotEnd) {
  Silences silences("");
  NotifyConfig config;
  config.silenced_gpus = {"0"};
  config.silenced_commands = {"jupyter"};
  silences.configure(config);
  const auto found = silences.covering(subject(), kNow + std::chrono::hours{24 * 1000});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->endless());
  EXPECT_THAT(silence_json(*found), HasSubstr("\"ends\":null"));
  EXPECT_THAT(silences.end("notify.silenced-gpus", kNow).error().message, HasSubstr("configuration"));
  EXPECT_EQ(silences.list(kNow).size(), 2U);
}

TEST(Silences, ADevicesAlertIsAboutItsSuspect) {
  View view = sample_view();
  SeriesView& device = view.series[0];
  SilenceSubject found = silence_subject(view, device);
  EXPECT_EQ(found.device_id, device.key.device_id);
  ASSERT_TRUE(device.verdict.suspect);
  EXPECT_EQ(found.pid, device.verdict.suspect->pid);
  EXPECT_EQ(found.command, device.verdict.suspect->command);
}

TEST(Silences, JsonThereAndBack) {
  Silence s = silence();
  s.id = "0123abcd";
  s.pid = 7;
  s.command = "a\\.b";
  EXPECT_EQ(parse_silence(silence_json(s)).value(), s);
  for (const char* wrong : {"", "[]", "{\"gpu\": -5}", "{\"pid\": -1}", "{\"ends\": \"soon\"}", "{\"all\": 1}"})
    EXPECT_FALSE(parse_silence(wrong)) << wrong;
  EXPECT_FALSE(parse_silence("{\"comment\": \"" + std::string(600, 'x') + "\"}"));
}

}  // namespace
}  // namespace vramtrack
