#include "recorded/recorded.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Timestamp at(std::int64_t s) {
  return Timestamp{std::chrono::seconds{1'767'225'600 + s}};
}

class Recorded : public ::testing::Test {
 protected:
  std::string log(const std::string& name) {
    const std::string path = folder.file(name);
    std::ofstream out(path);
    out << "timestamp, index, memory.used [MiB]\n";
    for (int s = 0; s < 5; ++s) out << "2026/01/01 00:00:0" << s << ".000, 0, " << 1000 + s << " MiB\n";
    return path;
  }
  std::string store(const std::string& name) {
    StoreConfig config;
    config.path = folder.file(name);
    Catalog catalog;
    auto store = Store::open(config, catalog, at(0));
    EXPECT_TRUE(store) << store.error().message;
    Batch batch;
    for (int s = 0; s < 5; ++s)
      batch.samples.push_back({at(s), catalog.intern({Metric::device_used, "GPU-a", 0, 0}), 1000U + unsigned(s)});
    EXPECT_TRUE((*store)->append(batch));
    return config.path;
  }
  static std::vector<std::int64_t> seconds(const RecordedPart& part) {
    Catalog catalog;
    auto source = part.open(catalog);
    EXPECT_TRUE(source) << source.error().message;
    std::vector<std::int64_t> out;
    Batch batch;
    for (auto progress = (*source)->poll({}, batch); progress && *progress == Progress::more;)
      progress = (*source)->poll({}, batch);
    for (const Sample& sample : batch.samples)
      out.push_back(std::chrono::duration_cast<std::chrono::seconds>(sample.time - at(0)).count());
    return out;
  }
  static RecordedOptions options() {
    RecordedOptions out;
    out.logs.timezone = "UTC";
    return out;
  }

  TempFolder folder;
};

TEST_F(Recorded, EveryKindHasAnotherNameAndSaysWhatItIs) {
  std::set<std::string_view> names;
  for (const RecordedInfo* kind : recorded_sources()) {
    EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
    EXPECT_EQ(find_recorded(kind->name), kind);
  }
  EXPECT_EQ(find_recorded("nothing"), nullptr);
}

TEST_F(Recorded, RecognisedByContentWhateverTheName) {
  EXPECT_EQ(recorded_at(store("gpu.csv")).name, "store");
  EXPECT_EQ(recorded_at(log("vramtrack.db")).name, "log");
  EXPECT_EQ(recorded_at(folder.file("missing")).name, "log") << "whose reader says that it is missing";
}

TEST_F(Recorded, EachOpensFromItsBeginningAsOftenAsWanted) {
  for (const std::string& path : {log("gpu.csv"), store("s.db")}) {
    const auto part = plan_one_recorded(recorded_at(path), {path}, options());
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_THAT(part->files, ElementsAre(path));
    EXPECT_THAT(seconds(*part), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(seconds(*part), ElementsAre(0, 1, 2, 3, 4));
  }
}

TEST_F(Recorded, AStoreLeavesOutWhatLiesOutsideTheRange) {
  const std::string path = store("s.db");
  RecordedOptions range = options();
  range.range = {at(1), at(3)};
  const auto part = plan_one_recorded(recorded_at(path), {path}, range);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->store_path, path);
  EXPECT_THAT(seconds(*part), ElementsAre(1, 2));
}

TEST_F(Recorded, OnlyWhatBelongsTogetherIsReadTogether) {
  const std::string first = store("s.db");
  const auto both = plan_recorded(recorded_at(first), {first, log("gpu.csv")}, options());
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("a store cannot be combined with other files"));
  const auto two = plan_one_recorded(*find_recorded("log"), {log("a.csv"), log("b.csv")}, options());
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("2 recordings that do not belong together"));
}

}  // namespace
}  // namespace vramtrack
