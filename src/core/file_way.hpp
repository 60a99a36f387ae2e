// The way to a file: folder by folder and link by link from "/", and who else than root and this user has a say in
// where it ends. sshd, sudo and cron ask the same of the files that they trust.
//
//   foreign_link   somebody else has made a link on it where he could put one: a file is not read or written through it
//   writer         somebody else can change the file, or put another in its place: it may not name programs for us
//
// Each step is opened relative to the one before, so nobody can move a folder between the question and its answer.
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
  /// A link at the very end is followed, or it is the end.
  enum class LastLink : std::uint8_t { followed, kept };
  /// Whether writer() is asked for; it looks at the folders above the working folder, too, and at the members of
  /// groups.
  enum class Writers : std::uint8_t { ignored, wanted };
  /// Never waits, and opens no file for reading.
  FileWay(const std::string& path, LastLink last, Writers writers);
  FileWay(const FileWay&) = delete;
  FileWay& operator=(const FileWay&) = delete;
  ~FileWay();

  /// The last folder, open (O_PATH), and the file's name in it; -1 where the way ends before: error() is its errno.
  [[nodiscard]] int folder() const { return folder_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int error() const { return error_; }
  /// The link of another user in a folder where others may make one, or at the end of the way; empty: none. The way
  /// ends there with ELOOP.
  [[nodiscard]] const std::string& foreign_link() const { return foreign_link_; }
  /// "FOLDER can be written by other users; run 'chmod go-w FOLDER'": the first place on the way, the file included,
  /// that somebody else may change; empty: none. A folder above with the sticky bit is none, since what is ours in it
  /// is not replaced by others; neither is what is mounted read-only, as a ConfigMap is, nor what only a group of this
  /// user's own may write.
  [[nodiscard]] const std::string& writer() const { return writer_; }

 private:
  void walk(const std::string& path, LastLink last);
  void start(const char* folder);
  void push(std::string_view path);
  /// False: the way ends at this link.
  bool judge(int entry, const struct stat& info, const std::string& shown, bool is_last);
  void end(int error);

  int folder_ = -1;
  struct stat folder_info_ {};
  Writers writers_;
  std::string at_;                    ///< of the folder, as it is reached, for messages
  std::vector<std::string> pending_;  ///< components still to go, the next one last
  std::string name_;
  int error_ = 0;
  bool is_strangers_ = false;  ///< a folder on the way was made by somebody else where others may make entries
  std::string foreign_link_;
  std::string writer_;
};

/// For state that is written where nobody but us writes: an error if the way to `path` leads through a link of another
/// user. Folders and the file need not exist yet.
Status check_links(const std::string& path);

/// The absolute path that this variable of the environment holds; empty: none.
std::string absolute_variable(const char* name);

/// FileWay::writer() of `path`; empty as well where there is no such file.
std::string others_who_write(const std::string& path);

}  // namespace vramtrack
