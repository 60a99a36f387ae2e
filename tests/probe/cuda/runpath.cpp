// Opens a library that only this program's own RUNPATH leads to: dlopen has to know who asks.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* library = dlopen("libprobe_hidden.so", RTLD_NOW);
  std::printf("%s\n", library != nullptr ? "found" : dlerror());
  std::printf("%s\n", dlopen("libno-such-thing.so", RTLD_NOW) == nullptr ? "no such thing" : "?");
  return library != nullptr ? 0 : 1;
}
