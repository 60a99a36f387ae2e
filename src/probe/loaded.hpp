// Libraries that are loaded, without the loader: dlsym takes its lock, which a thread holds while it runs a library's
// constructor, so that a hook that waits for it under a lock of the program could wait for ever. It is also of another
// library, or another version, in each glibc.
#pragma once

#include <link.h>

#include <cstddef>
#include <string_view>

namespace vramtrack::probe {

/// The function `name` that the object at `base` with this dynamic section defines, the default one of its versions;
/// nullptr: it does not.
void* symbol_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name);
void* symbol_of(const dl_phdr_info& object, const char* name);

/// The name under which it exports what is at `address`; nullptr: under none, or it has no System V hash table, which
/// says how many symbols there are. Goes through all of them.
const char* name_at(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const void* address);

/// Whether the code at `address` is the object's.
bool holds(const dl_phdr_info& object, const void* address);
/// Behind the last slash; empty for the program itself.
std::string_view file_name(const char* path);
/// Whether the code at `address` is of another object than this library whose file name begins so.
bool lies_in_library(const void* address, std::string_view file_name_begins);

/// Under which the loader knows this library.
const char* own_path();

/// The calling thread reads the loader's list. glibc keeps that list's lock taken in a child if a thread had it when
/// its parent forked: a fork waits until none of ours has, for half a second at most.
class ReadingList {
 public:
  ReadingList();
  ~ReadingList();
  ReadingList(const ReadingList&) = delete;
  ReadingList& operator=(const ReadingList&) = delete;
};
/// Around a fork, by recorder.cpp.
void hold_list_before_fork();
void release_list_in_parent();
void release_list_in_child();

/// Calls `visit(dl_phdr_info&)` for each loaded object until it returns true. The list cannot change meanwhile, and no
/// constructor runs under the lock that sees to it.
template <class Visit>
void each_object(Visit visit) {
  const ReadingList reading;
  dl_iterate_phdr([](dl_phdr_info* object, std::size_t,
                     void* data) -> int { return (*static_cast<Visit*>(data))(*object) ? 1 : 0; },
                  &visit);
}

}  // namespace vramtrack::probe
