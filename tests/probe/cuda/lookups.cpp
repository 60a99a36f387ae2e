// All that the CUDA runtime 13.0 asks the driver for at start, as it asks: lookups LIST. Prints what came back: code,
// status, and which symbol of which library it is.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

int main(int count, char** arguments) {
  if (count < 2) return 2;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
  if (library == nullptr) return 3;
  using Resolver = int (*)(const char*, void**, int, std::uint64_t, int*);
  const auto resolver = reinterpret_cast<Resolver>(dlsym(library, "cuGetProcAddress_v2"));
  void* nothing = &nothing;
  int status = -1;
  const int code_of_nothing = resolver("", &nothing, 0, 0, &status);
  std::printf("- 0 0 %d %d %s -\n", code_of_nothing, status, nothing == nullptr ? "nothing" : "something");
  std::ifstream list(arguments[1]);
  std::string name;
  int version = 0;
  std::uint64_t flags = 0;
  while (list >> name >> version >> flags) {
    void* found = nullptr;
    status = -1;
    const int code = resolver(name.c_str(), &found, version, flags, &status);
    Dl_info where{};
    if (found != nullptr) dladdr(found, &where);
    std::printf("%s %d %d %d %d %s %s\n", name.c_str(), version, static_cast<int>(flags), code, status,
                where.dli_sname != nullptr ? where.dli_sname : "-", where.dli_fname != nullptr ? where.dli_fname : "-");
  }
}
