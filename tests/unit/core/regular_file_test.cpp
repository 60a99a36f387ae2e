#include "core/regular_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

class RegularFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string problem(const std::string& path, Links links = Links::refused) {
    const auto read = read_regular_file(path, 1024, links);
    return read ? "" : read.error().message;
  }
  TempFolder folder_;
  std::string file_ = folder_.file("file");
  std::string link_ = folder_.file("link");
};

TEST_F(RegularFileTest, ItsTextIsRead) {
  EXPECT_EQ(read_regular_file(file_, 10, Links::refused).value(), std::nullopt);
  std::ofstream(file_) << "0123456789";
  EXPECT_EQ(read_regular_file(file_, 10, Links::refused).value(), "0123456789");
  EXPECT_THAT(read_regular_file(file_, 9, Links::refused).error().message, HasSubstr("too large"));
}

TEST_F(RegularFileTest, LinksAreFollowedWhereTheyAreOnesOwn) {
  std::ofstream(file_) << "text";
  std::filesystem::create_symlink("file", link_);
  EXPECT_THAT(problem(link_), HasSubstr("symbolic link"));
  EXPECT_EQ(read_regular_file(link_, 10, Links::of_owner).value(), "text");
  std::filesystem::create_symlink(link_, folder_.file("second"));
  EXPECT_EQ(read_regular_file(folder_.file("second"), 10, Links::of_owner).value(), "text");
  std::filesystem::create_symlink("round", folder_.file("round"));
  EXPECT_THAT(problem(folder_.file("round"), Links::of_owner), HasSubstr("symbolic link"));
  std::filesystem::create_symlink("nowhere", folder_.file("dangling"));
  EXPECT_EQ(read_regular_file(folder_.file("dangling"), 10, Links::of_owner).value(), std::nullopt);
}

TEST_F(RegularFileTest, ALinkOfAnotherUserIsNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  std::ofstream(file_) << "text";
  std::filesystem::create_symlink("file", link_);
  ASSERT_EQ(::lchown(link_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(problem(link_, Links::of_owner), HasSubstr("of another user"));
}

TEST_F(RegularFileTest, NothingIsWaitedForAtAFifo) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(problem(file_), HasSubstr("not a regular file"));
  EXPECT_THAT(problem("/dev/zero"), HasSubstr("not a regular file"));
  EXPECT_THAT(problem(folder_.path()), HasSubstr("is a directory"));
}

TEST_F(RegularFileTest, AFileIsReplacedWhateverLiesInTheWay) {
  const std::string victim = folder_.file("victim");
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, file_ + ".new");
  ASSERT_TRUE(replace_file(file_, "text"));
  EXPECT_EQ(read_regular_file(victim, 100, Links::refused).value(), "precious");
  EXPECT_EQ(read_regular_file(file_, 100, Links::refused).value(), "text");
  ASSERT_EQ(::mkfifo((file_ + ".new").c_str(), 0600), 0);
  ASSERT_TRUE(replace_file(file_, "more"));
  EXPECT_EQ(read_regular_file(file_, 100, Links::refused).value(), "more");
  EXPECT_EQ(std::filesystem::status(file_).permissions(), std::filesystem::perms{0600});
  EXPECT_FALSE(replace_file(folder_.file("none/file"), "text"));
}

TEST_F(RegularFileTest, ALockIsNoLink) {
  ASSERT_TRUE(FileLock::take(file_));
  std::filesystem::create_symlink(file_, link_);
  EXPECT_FALSE(FileLock::take(link_));
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(FileLock::take(folder_.file("fifo")));
}

}  // namespace
}  // namespace vramtrack
