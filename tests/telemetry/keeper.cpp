// Allocates as it is told on standard input, one command a line, and answers each with a line: what is traced is known
// exactly.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" {
int cuMemAlloc_v2(unsigned long long* out, std::size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuMemAllocPitch_v2(unsigned long long* out, std::size_t* pitch, std::size_t width, std::size_t rows,
                       unsigned element);
}

namespace {

std::vector<unsigned long long> kept;

[[gnu::noinline]] unsigned long long allocate(std::size_t bytes) {
  unsigned long long address = 0;
  cuMemAlloc_v2(&address, bytes);  // LINE allocate
  return address;
}

[[gnu::noinline]] void keep(int times) {
  for (int i = 0; i < times; ++i) kept.push_back(allocate(1 << 20));  // LINE keep
}

[[gnu::noinline]] void use(int times) {
  for (int i = 0; i < times; ++i) cuMemFree_v2(allocate(4 << 20));  // LINE use
}

[[gnu::noinline]] void deep(int depth) {
  if (depth > 0) return deep(depth - 1), static_cast<void>(std::strlen(""));
  keep(40);
}

}  // namespace

int main(int, char** arguments) {
  char line[64];
  std::puts("ready");
  std::fflush(stdout);
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const char command = line[0];
    const int number = std::atoi(line + 1);
    if (command == 'k') keep(number);
    if (command == 'u') use(number);
    if (command == 'd') deep(number);
    if (command == 't') std::thread([&] { keep(number); }).join();
    if (command == 'g') {  // give back
      for (const unsigned long long address : kept) cuMemFree_v2(address);
      kept.clear();
    }
    if (command == 'p') {
      unsigned long long address = 0;
      std::size_t pitch = 0;
      cuMemAllocPitch_v2(&address, &pitch, 1000, 1024, 4);
    }
    if (command == 'l') cuMemAlloc_v2(&kept.emplace_back(), std::size_t{1} << 41U);  // too large
    if (command == 'f') {
      if (const pid_t child = fork(); child == 0) {
        keep(number);
        _exit(0);
      } else {
        waitpid(child, nullptr, 0);
      }
    }
    if (command == 'x') execv("/proc/self/exe", arguments);
    std::puts("done");
    std::fflush(stdout);
  }
  return 0;
}
