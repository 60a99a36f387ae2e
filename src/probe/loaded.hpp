// Loaded libraries, without the loader: dlsym takes its lock, which a thread holds while it runs a library's
// constructor, so that a hook that waits for it under a lock of the program could deadlock. It is also in another
// library, or has another version, in each glibc.
#pragma once

#include <link.h>

#include <cstddef>
#include <string_view>

namespace vramtrack::probe {

/// The function `name` defined by the object at `base` with this dynamic section, in its default version; nullptr: not
/// defined.
void* symbol_of(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name);
void* symbol_of(const dl_phdr_info& object, const char* name);

/// The exported name of `address`; nullptr: none, or it has no System V hash table, which gives the number of symbols.
/// Searches all of them.
const char* name_at(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const void* address);

/// Whether the code at `address` is the object's.
bool holds(const dl_phdr_info& object, const void* address);
/// After the last slash; empty for the program itself.
std::string_view file_name(const char* path);
/// Whether the code at `address` belongs to another object than this library whose file name begins so.
bool lies_in_library(const void* address, std::string_view file_name_begins);

/// The loader's name for this library.
const char* own_path();

/// Marks that the calling thread reads the loader's list. glibc keeps that list's lock taken in a child if a thread had
/// it when its parent forked: a fork waits until none of our threads has it, for half a second at most.
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
/// constructor runs under the lock that ensures it.
template <class Visit>
void each_object(Visit visit) {
  const ReadingList reading;
  dl_iterate_phdr([](dl_phdr_info* object, std::size_t,
                     void* data) -> int { return (*static_cast<Visit*>(data))(*object) ? 1 : 0; },
                  &visit);
}

}  // namespace vramtrack::probe
