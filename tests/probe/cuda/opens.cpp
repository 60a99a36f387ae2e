// Names that the driver can be opened by: opens DRIVER NAME... Prints whose cuMemAlloc_v2 each gives.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    void* library = dlopen(arguments[i], RTLD_LAZY | RTLD_LOCAL);
    Dl_info where{};
    void* found = library != nullptr ? dlsym(library, "cuMemAlloc_v2") : nullptr;
    if (found != nullptr) dladdr(found, &where);
    std::printf("%s %s\n", arguments[i], where.dli_fname != nullptr ? where.dli_fname : "-");
  }
}
