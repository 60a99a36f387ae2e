// Looks up loaded libraries without dlsym: that takes the loader's lock, which a thread holds while it runs a library's
// constructor, so a hook that waits for it under a lock of the program could deadlock. It is also in different
// libraries, or has different versions, in different versions of glibc.
#pragma once

#include <link.h>

#include <cstddef>
#include <string_view>

namespace vramtrack::probe {

/// The function `name` defined by the object at `base` with this dynamic section, in its default version; nullptr if
/// not defined.
void* symbol_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name);
void* symbol_of(const dl_phdr_info& object, const char* name);

/// The exported name of `address`; nullptr if there is none, or no System V hash table, which contains the number of
/// symbols. Searches all of them.
const char* name_at(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const void* address);

/// Whether the code at `address` belongs to the object.
bool holds(const dl_phdr_info& object, const void* address);
/// The part of `path` after the last slash; empty for the program itself.
std::string_view file_name(const char* path);
/// Whether the code at `address` belongs to an object other than this library, with a file name that begins like this.
bool lies_in_library(const void* address, std::string_view file_name_begins);

/// The loader's name for this library.
const char* own_path();

/// Marks that the calling thread reads the loader's list. In a child, glibc keeps that list's lock taken if a thread
/// held it when the parent forked, so a fork waits until none of our threads holds it, at most half a second.
class ReadingList {
 public:
  ReadingList();
  ~ReadingList();
  ReadingList(const ReadingList&) = delete;
  ReadingList& operator=(const ReadingList&) = delete;
};
/// Called by recorder.cpp around a fork.
void hold_list_before_fork();
void release_list_in_parent();
void release_list_in_child();

/// Calls `visit(dl_phdr_info&)` for each loaded object until it returns true. The list cannot change meanwhile, and no
/// constructor runs under the lock that ensures this.
template <class Visit>
void each_object(Visit visit) {
  const ReadingList reading;
  dl_iterate_phdr([](dl_phdr_info* object, std::size_t,
                     void* data) -> int { return (*static_cast<Visit*>(data))(*object) ? 1 : 0; },
                  &visit);
}

}  // namespace vramtrack::probe
