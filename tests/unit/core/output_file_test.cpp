#include "core/output_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "../temp_folder.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OutputFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string problem(const Status& written) {
    return written ? std::string() : written.error().message;
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  /// Like /tmp.
  void make_sticky() const { ASSERT_EQ(::chmod(folder_.path().c_str(), 01777), 0); }

  TempFolder folder_;
  std::string file_ = folder_.file("file");
  std::string link_ = folder_.file("link");
};

TEST_F(OutputFileTest, AWholeFileReplacesWhatIsThereAtItsEnd) {
  std::ofstream(file_) << "before";
  {
    auto file = OutputFile::open(file_);
    ASSERT_TRUE(file);
    file->write("part");
    EXPECT_EQ(text_of(file_), "before");
  }
  EXPECT_EQ(text_of(file_), "before") << "it was not finished";
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(problem(write_output(file_, std::string(200'000, 'x'))), "");
  EXPECT_EQ(text_of(file_), std::string(200'000, 'x'));
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputFileTest, OnesOwnLinkIsFollowed) {
  std::filesystem::create_symlink("file", link_);
  EXPECT_EQ(problem(write_output(link_, "text")), "");
  EXPECT_EQ(text_of(file_), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(link_));
}

TEST_F(OutputFileTest, WhatIsNoFileIsWrittenAsItIs) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const int reader = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_EQ(problem(write_output(file_, "text")), "");
  std::string read(4, ' ');
  EXPECT_EQ(::read(reader, read.data(), read.size()), 4);
  EXPECT_EQ(read, "text");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
  EXPECT_EQ(problem(write_output("/dev/null", "text")), "");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(problem(write_output("/dev/full", "text")), HasSubstr("cannot write all of /dev/full"));
}

TEST_F(OutputFileTest, AnOpenFileHasNoNameOfItsOwn) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(problem(write_output("/proc/self/fd/" + std::to_string(ends[1]), "text")), "") << "as /dev/stdout";
  std::string read(4, ' ');
  EXPECT_EQ(::read(ends[0], read.data(), read.size()), 4);
  EXPECT_EQ(read, "text");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(OutputFileTest, ErrorsNameThePath) {
  EXPECT_THAT(problem(write_output(folder_.path(), "text")), HasSubstr("cannot write " + folder_.path()));
  const std::string missing = folder_.file("none/file");
  EXPECT_THAT(problem(write_output(missing, "text")), HasSubstr("cannot write " + missing));
}

TEST_F(OutputFileTest, ALinkOfAnotherUserIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  make_sticky();
  const std::string victim = folder_.file("victim");
  std::ofstream(victim) << "secret";
  for (const std::string& name : {file_, file_ + ".new"}) {
    std::filesystem::create_symlink(victim, name);
    ASSERT_EQ(::lchown(name.c_str(), 65534, 65534), 0);
    const auto at_once = OutputFile::open(file_, OutputFile::Writes::at_once);
    const Status whole = write_output(file_, "text");
    if (name == file_) {
      EXPECT_THAT(problem(whole), HasSubstr("symbolic link of another user"));
      ASSERT_FALSE(at_once);
      EXPECT_THAT(at_once.error().message, HasSubstr("symbolic link of another user"));
      EXPECT_FALSE(open_output(file_, 0600));
    }
    EXPECT_EQ(text_of(victim), "secret");
    std::filesystem::remove(name);
  }
}

TEST_F(OutputFileTest, AFileOfAnotherUserInAStickyFolderIsNotWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a file of another user";
  std::ofstream(file_) << "bait";
  ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(OutputFile::open(file_, OutputFile::Writes::at_once)) << "where nobody else makes files";
  std::ofstream(file_) << "bait";
  make_sticky();
  const auto at_once = OutputFile::open(file_, OutputFile::Writes::at_once);
  ASSERT_FALSE(at_once);
  EXPECT_THAT(at_once.error().message, HasSubstr("another user created it"));
  EXPECT_EQ(text_of(file_), "bait");
}

}  // namespace
}  // namespace vramtrack
