#include "run/library_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace vramtrack::run {
namespace {

namespace fs = std::filesystem;

class LibraryPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("place." + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string in(const std::string& name) const { return (folder_ / name).string(); }
  static std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

  fs::path folder_;
};

TEST_F(LibraryPlace, TheFirstThatWillDoIsMade) {
  const auto place = usable_library_folder({in("a blank"), in("new/vramtrack"), in("other")});
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(*place, in("new/vramtrack"));
  struct stat status {};
  ASSERT_EQ(::stat(place->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  EXPECT_FALSE(fs::exists(in("other")));
}

TEST_F(LibraryPlace, EachObstacleIsSaid) {
  write(in("file"), "");
  fs::create_directory(in("shared"));
  fs::permissions(in("shared"), fs::perms::all);
  fs::create_directory_symlink(folder_, in("link"));
  const auto why = [&](const std::string& place) { return usable_library_folder({place}).error().message; };
  EXPECT_EQ(why(in("a:colon")),
            in("a:colon") + ": its path contains a space, a colon or '$', which LD_PRELOAD cannot hold");
  for (const char* name : {"file", "shared", "link", "shared/inner"})
    EXPECT_EQ(why(in(name)), in(name) + ": it is not a folder that only you can write to") << name;
  EXPECT_EQ(why(in("file/inner")), in("file/inner") + ": Not a directory");
  EXPECT_EQ(usable_library_folder({in("file"), in("link")}).error().message, why(in("file")) + "; " + why(in("link")));
}

TEST_F(LibraryPlace, NothingIsLoadedFromAMountWithoutExecution) {
  const std::string own = "/proc/self/fd";  // belongs to this user alone
  struct statvfs mount {};
  if (::statvfs(own.c_str(), &mount) != 0 || (mount.f_flag & ST_NOEXEC) == 0)
    GTEST_SKIP() << "/proc is not mounted noexec here";
  EXPECT_EQ(usable_library_folder({own}).error().message, own + ": it is mounted noexec");
}

TEST_F(LibraryPlace, TheCopyHasItsManifestsAndIsUsedAgain) {
  fs::create_directories(in("lib/cuda"));
  write(in("lib/cuda/layer.json"), "{}");
  const auto first = copy_library("bytes", in("lib/libprobe.so"), in(""));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(text_of(*first), "bytes");
  EXPECT_EQ(fs::path(*first).filename(), "libprobe.so");
  EXPECT_EQ(text_of(fs::path(*first).parent_path() / "cuda/layer.json"), "{}");
  const auto written = fs::last_write_time(*first);
  EXPECT_EQ(*copy_library("bytes", in("lib/libprobe.so"), in("")), *first);
  EXPECT_EQ(fs::last_write_time(*first), written);
  EXPECT_NE(*copy_library("other bytes", in("lib/libprobe.so"), in("")), *first);
}

TEST_F(LibraryPlace, ADamagedCopyIsReplaced) {
  const auto first = copy_library("bytes", in("libprobe.so"), in(""));
  ASSERT_TRUE(first);
  write(*first, "byt");
  EXPECT_EQ(*copy_library("bytes", in("libprobe.so"), in("")), *first);
  EXPECT_EQ(text_of(*first), "bytes");
}

TEST_F(LibraryPlace, ACopyThatCannotBeWrittenIsAnError) {
  const auto copy = copy_library("bytes", in("libprobe.so"), "/proc");
  ASSERT_FALSE(copy);
  EXPECT_NE(copy.error().message.find("/proc/"), std::string::npos);
}

TEST_F(LibraryPlace, ALinkLeadsToTheFolderThatItIsMadeForNow) {
  fs::create_directory(in("a blank"));
  write(in("a blank/libprobe.so"), "one");
  for (int i = 0; i < 2; ++i) {
    const auto path = link_library(in("a blank/libprobe.so"), in(""));
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_TRUE(can_be_preloaded(*path));
    EXPECT_EQ(text_of(*path), "one");
    fs::remove(fs::path(*path).parent_path());  // whatever it is then, it is made again
    fs::create_directory_symlink("/nowhere", fs::path(*path).parent_path());
  }
}

}  // namespace
}  // namespace vramtrack::run
