#include "agent/acknowledgements.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>

#include "../temp_folder.hpp"

namespace vramtrack::agent {
namespace {

using ::testing::HasSubstr;

class AcknowledgementsTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = acknowledgements_path(folder_.file("store.db")); }
  static Acknowledgement known(std::int64_t s) {
    return {Timestamp{std::chrono::seconds{s}}, "ada", "kn\"own\n\xc3\xa9"};
  }
  TempFolder folder_;
  std::string path_;
};

TEST_F(AcknowledgementsTest, OutliveTheProgram) {
  {
    Acknowledgements acks(path_);
    EXPECT_EQ(acks.find("a"), std::nullopt);
    ASSERT_TRUE(acks.set("a", known(1)));
    ASSERT_TRUE(acks.set("b", known(2)));
    ASSERT_TRUE(acks.remove("b"));
    ASSERT_TRUE(acks.remove("never"));
  }
  Acknowledgements again(path_);
  EXPECT_EQ(again.find("a"), known(1));
  EXPECT_EQ(again.find("b"), std::nullopt);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(AcknowledgementsTest, ProgramsSeeEachOthersChanges) {
  Acknowledgements one(path_);
  Acknowledgements two(path_);
  ASSERT_TRUE(one.set("a", known(1)));
  const auto revision = two.revision();
  EXPECT_EQ(two.find("a"), known(1));
  ASSERT_TRUE(two.set("b", known(2)));
  EXPECT_EQ(one.find("b"), known(2));
  EXPECT_EQ(one.find("a"), known(1)) << "nothing was lost";
  EXPECT_NE(two.revision(), revision);
}

TEST_F(AcknowledgementsTest, ProgramsThatWriteAtOnceLoseNothing) {
  std::vector<std::thread> programs;
  for (int program = 0; program < 4; ++program)
    programs.emplace_back([&, program] {
      Acknowledgements own(path_);
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(own.set(std::to_string(program) + "-" + std::to_string(i), {Timestamp{}, "ada", ""}));
    });
  for (std::thread& program : programs) program.join();
  Acknowledgements all(path_);
  for (int program = 0; program < 4; ++program)
    for (int i = 0; i < 25; ++i)
      EXPECT_TRUE(all.find(std::to_string(program) + "-" + std::to_string(i))) << program << "-" << i;
}

TEST_F(AcknowledgementsTest, AFileThatIsNoneIsLeftAlone) {
  for (const char* text :
       {"not json", "[]", R"({"schema": "other"})", R"({"schema": "vramtrack.acknowledged.v1", "alerts": 5})", ""}) {
    std::ofstream(path_) << text;
    Acknowledgements acks(path_);
    EXPECT_EQ(acks.find("a"), std::nullopt);
    const Status set = acks.set("a", known(1));
    ASSERT_FALSE(set) << text;
    EXPECT_THAT(set.error().message, HasSubstr("move it away"));
    std::string kept;
    std::getline(std::ifstream(path_), kept);
    EXPECT_EQ(kept, text);
  }
}

TEST_F(AcknowledgementsTest, AFullTableForgetsTheOldest) {
  Acknowledgements acks("");
  for (int i = 0; i < 4100; ++i) ASSERT_TRUE(acks.set(std::to_string(i), known(i)));
  EXPECT_EQ(acks.find("0"), std::nullopt);
  EXPECT_EQ(acks.find("3"), std::nullopt);
  EXPECT_TRUE(acks.find("4"));
  EXPECT_TRUE(acks.find("4099"));
}

TEST_F(AcknowledgementsTest, WithoutAPlaceTheErrorSaysSo) {
  Acknowledgements acks(folder_.file("no/such/folder"));
  EXPECT_THAT(acks.set("a", known(1)).error().message, HasSubstr("cannot write"));
  EXPECT_EQ(acks.find("a"), std::nullopt);
}

}  // namespace
}  // namespace vramtrack::agent
