#include "core/file_way.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"
#include "core/regular_file.hpp"

namespace vramtrack {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kMallory = 65534;

class FileWayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(in("etc/vramtrack"));
    fs::create_directories(in("shared"));
    ASSERT_EQ(::chmod(in("shared").c_str(), 01777), 0);
    std::ofstream(in("etc/vramtrack/config.toml")) << "text";
  }
  [[nodiscard]] std::string in(const std::string& name) const { return folder_.file(name); }
  static void give_away(const std::string& path) { ASSERT_EQ(::lchown(path.c_str(), kMallory, kMallory), 0); }
  [[nodiscard]] std::string writer(const std::string& name) const { return others_who_write(in(name)); }

  const TempFolder folder_;
  const std::string config_ = "etc/vramtrack/config.toml";
};

TEST_F(FileWayTest, AFileOfOursInFoldersOfOursHasNoOtherWriter) {
  EXPECT_EQ(writer(config_), "");
  EXPECT_EQ(writer("etc/../etc/./vramtrack//config.toml"), "");
  EXPECT_EQ(writer("none"), "");
  EXPECT_EQ(writer("none/none"), "");
  fs::create_symlink("../etc/vramtrack/config.toml", in("shared/link"));
  EXPECT_EQ(writer("shared/link"), "") << "a link of ours in a sticky folder stays ours";
  fs::create_symlink(in("etc"), in("absolute"));
  EXPECT_EQ(writer("absolute/vramtrack/config.toml"), "");
}

TEST_F(FileWayTest, WhatOthersMayWriteIsNamedWithWhatToDo) {
  ASSERT_EQ(::chmod(in(config_).c_str(), 0666), 0);
  EXPECT_EQ(writer(config_), fmt::format("{0} can be written by other users; run 'chmod go-w {0}'", in(config_)));
  ASSERT_EQ(::chmod(in(config_).c_str(), 0644), 0);
  // A folder above the file is as good as the file, because another one can be put in its place.
  for (const char* folder : {"etc/vramtrack", "etc"}) {
    ASSERT_EQ(::chmod(in(folder).c_str(), 0777), 0);
    EXPECT_THAT(writer(config_), HasSubstr(in(folder) + " can be written by other users"));
    fs::create_symlink(in(config_), in("way"));
    EXPECT_THAT(writer("way"), HasSubstr(in(folder) + " can be")) << "through a link, too";
    fs::remove(in("way"));
    ASSERT_EQ(::chmod(in(folder).c_str(), 0755), 0);
  }
  EXPECT_THAT(others_who_write(in("shared")), HasSubstr("can be written")) << "the bit protects what is in it";
}

TEST_F(FileWayTest, AGroupMayWriteIfItIsOursAlone) {
  ASSERT_EQ(::chmod(in(config_).c_str(), 0664), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to choose a group";
  ASSERT_EQ(::chown(in(config_).c_str(), 0, kMallory), 0);
  EXPECT_THAT(writer(config_), HasSubstr("can be written by other users"));
  ASSERT_EQ(::chown(in(config_).c_str(), 0, 54321), 0);
  EXPECT_THAT(writer(config_), HasSubstr("can be written by other users")) << "nobody knows who is in it";
}

TEST_F(FileWayTest, WhatBelongsToAnotherUserIsHis) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  give_away(in(config_));
  EXPECT_THAT(writer(config_), HasSubstr(in(config_) + " belongs to the user"));
  give_away(in("etc"));
  EXPECT_THAT(writer(config_), HasSubstr(in("etc") + " belongs to the user")) << "the first on the way";
  // In a sticky folder the other user made it first, under the name that vramtrack would have used.
  fs::create_directories(in("shared/vramtrack"));
  std::ofstream(in("shared/vramtrack/config.toml")) << "text";
  EXPECT_EQ(writer("shared/vramtrack/config.toml"), "");
  give_away(in("shared/vramtrack"));
  EXPECT_THAT(writer("shared/vramtrack/config.toml"), HasSubstr(in("shared/vramtrack") + " belongs to the user"));
}

TEST_F(FileWayTest, FoldersAboveTheWorkingFolderCount) {
  const fs::path before = fs::current_path();
  fs::current_path(in("etc/vramtrack"));
  EXPECT_EQ(others_who_write("config.toml"), "");
  ASSERT_EQ(::chmod(in("etc").c_str(), 0777), 0);
  EXPECT_THAT(others_who_write("config.toml"), HasSubstr("etc can be written"));
  EXPECT_THAT(others_who_write("./../vramtrack/config.toml"), HasSubstr("etc can be written"));
  fs::current_path(before);
}

TEST_F(FileWayTest, StateDoesNotGoThroughALinkOfSomebodyElse) {
  EXPECT_TRUE(check_links(in("shared/none/state.json")));
  fs::create_directory_symlink(in("etc"), in("shared/ours"));
  EXPECT_TRUE(check_links(in("shared/ours/state.json")));
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  fs::create_directory_symlink(in("etc"), in("shared/vramtrack"));
  give_away(in("shared/vramtrack"));
  const std::string state = in("shared/vramtrack/state.json");
  EXPECT_THAT(check_links(state).error().message,
              HasSubstr(in("shared/vramtrack") + " is a symbolic link of another user"));
  EXPECT_FALSE(replace_file(state, "text"));
  EXPECT_FALSE(FileLock::take(state));
  EXPECT_FALSE(read_regular_file(in("shared/vramtrack/vramtrack/config.toml"), 100, Links::of_owner));
  EXPECT_FALSE(fs::exists(in("etc/state.json")));
  // A link of our own that leads to the other user's folder, and one in a folder that the other user has made there.
  fs::create_directory_symlink("vramtrack", in("shared/second"));
  EXPECT_FALSE(check_links(in("shared/second/state.json")));
  fs::create_directories(in("shared/his"));
  fs::create_directory_symlink(in("etc"), in("shared/his/state"));
  give_away(in("shared/his"));
  give_away(in("shared/his/state"));
  EXPECT_FALSE(check_links(in("shared/his/state/state.json")));
  // If only the other user can make one, the files are that user's own.
  fs::create_directories(in("home"));
  fs::create_directory_symlink(in("etc"), in("home/state"));
  give_away(in("home"));
  give_away(in("home/state"));
  EXPECT_TRUE(check_links(in("home/state/state.json")));
}

TEST_F(FileWayTest, AWayThatLeadsInACircleEnds) {
  fs::create_symlink("b", in("a"));
  fs::create_symlink("a", in("b"));
  const FileWay way(in("a/file"), FileWay::LastLink::followed, FileWay::Writers::wanted);
  EXPECT_EQ(way.folder(), -1);
  EXPECT_EQ(way.error(), ELOOP);
}

}  // namespace
}  // namespace vramtrack
