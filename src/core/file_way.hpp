// The way to a file: folder by folder and link by link from "/", and who other than root and this user can change
// where it ends. sshd, sudo and cron make the same checks on the files that they trust.
//
//   foreign_link   another user has made a link on it where others may: no file is read or written through it
//   writer         another user can change or replace the file: it may not name programs for us to run
//
// Each step is opened relative to the one before, so nobody can move a folder between the check and the use.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

class FileWay {
 public:
  /// Whether a link at the very end is followed, or is itself the end.
  enum class LastLink : std::uint8_t { followed, kept };
  /// Whether writer() is wanted; it also checks the folders above the working folder, and the members of
  /// groups.
  enum class Writers : std::uint8_t { ignored, wanted };
  /// Never blocks, and opens no file for reading.
  FileWay(const std::string& path, LastLink last, Writers writers);
  FileWay(const FileWay&) = delete;
  FileWay& operator=(const FileWay&) = delete;
  ~FileWay();

  /// The last folder, open (O_PATH), and the file's name in it; -1 if the way ends before: error() is its errno.
  [[nodiscard]] int folder() const { return folder_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int error() const { return error_; }
  /// Another user's link in a folder where others may create one, or at the end of the way; empty: none. The way
  /// ends there with ELOOP.
  [[nodiscard]] const std::string& foreign_link() const { return foreign_link_; }
  /// "FOLDER can be written by other users; run 'chmod go-w FOLDER'": for the first place on the way, file included,
  /// that another user may change; empty: none. A parent folder with the sticky bit does not count, as others cannot
  /// replace our entries in it; nor does anything mounted read-only, such as a ConfigMap, or anything that only a group
  /// of this user's own may write.
  [[nodiscard]] const std::string& writer() const { return writer_; }

 private:
  void walk(const std::string& path, LastLink last);
  void start(const char* folder);
  void push(std::string_view path);
  /// False if the way ends at this link.
  bool judge(int entry, const struct stat& info, const std::string& shown, bool is_last);
  void end(int error);

  int folder_ = -1;
  struct stat folder_info_ {};
  Writers writers_;
  std::string at_;                    ///< the path of the folder, as it is reached, for messages
  std::vector<std::string> pending_;  ///< components still to visit, the next one last
  std::string name_;
  int error_ = 0;
  bool is_strangers_ = false;  ///< another user made a folder on the way in a place where others may create entries
  std::string foreign_link_;
  std::string writer_;
};

/// For state in a place that nobody but us should write: an error if the way to `path` leads through another user's
/// link. Folders and the file need not exist yet.
Status check_links(const std::string& path);

/// The absolute path in this environment variable; empty if there is none.
std::string absolute_variable(const char* name);

/// FileWay::writer() of `path`; also empty if there is no such file.
std::string others_who_write(const std::string& path);

}  // namespace vramtrack
