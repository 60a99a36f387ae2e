// TempFolder: a folder for one test, deleted with the object.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace vramtrack {

class TempFolder {
 public:
  TempFolder() {
    // In memory if there is such a place: the store's tests make hundreds of files, and a disk syncs at each close.
    // scripts/run_tests.sh names one, and checks whether anything is left there.
    const char* const of_run = ::getenv("VRAMTRACK_TEST_MEMORY");
    const std::string base = of_run != nullptr                 ? of_run
                             : ::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                               : std::filesystem::temp_directory_path().string();
    std::string name = base + "/vramtrack-test-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
    EXPECT_FALSE(path_.empty()) << "no folder could be made in " << base;
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace vramtrack
