// Allocates by commands on standard input, one per line, and answers each with a line: what is traced is
// known exactly.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
void refuse_frees(int code);
int cuMemAllocPitch_v2(unsigned long long* out, std::size_t* pitch, std::size_t width, std::size_t rows,
                       unsigned element);
int cuArrayCreate_v2(unsigned long long* out, const void* shape);
int cuArray3DCreate_v2(unsigned long long* out, const void* shape);
int cuMipmappedArrayCreate(unsigned long long* out, const void* shape, unsigned levels);
int cuArrayDestroy(unsigned long long array);
int cuMemCreate(unsigned long long* out, std::size_t bytes, const void* where, unsigned long long flags);
int cuMemRelease(unsigned long long handle);
int cuMemMap(unsigned long long address, std::size_t bytes, std::size_t offset, unsigned long long handle,
             unsigned long long flags);
int cuMemUnmap(unsigned long long address, std::size_t bytes);
int cuMemRetainAllocationHandle(unsigned long long* out, const void* address);
int cuMemImportFromShareableHandle(unsigned long long* out, void* shared, int kind);
int cuImportExternalMemory(unsigned long long* out, const void* description);
struct ipc_handle {
  char bytes[64];
};
int cuIpcOpenMemHandle_v2(unsigned long long* out, ipc_handle handle, unsigned flags);
int cuIpcCloseMemHandle(unsigned long long address);
int cuModuleLoadData(unsigned long long* out, const void* image);
int cuModuleUnload(unsigned long long module);
int cuLibraryLoadData(unsigned long long* out, const void* code, void* options, void** values, unsigned count,
                      void* more, void** more_values, unsigned more_count);
int cuGraphInstantiateWithFlags(unsigned long long* out, void* graph, unsigned long long flags);
int cuGraphExecDestroy(unsigned long long exec);
int cuCtxCreate_v2(unsigned long long* out, unsigned flags, int device);
int cuDevicePrimaryCtxRetain(unsigned long long* out, int device);
int cuCtxDestroy_v2(unsigned long long context);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxSetCurrent(unsigned long long context);
int cuCtxPushCurrent_v2(unsigned long long context);
int cuCtxPopCurrent_v2(unsigned long long* out);
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

[[gnu::noinline]] void make_arrays() {
  constexpr int kFloat = 0x20, kByte = 0x01;
  const struct {
    std::size_t width, height;
    int format;
    unsigned channels;
  } flat{1024, 512, kFloat, 2};  // 4 MiB
  const struct {
    std::size_t width, height, depth;
    int format;
    unsigned channels, flags;
  } solid{128, 128, 64, kByte, 1, 0}, pyramid{1024, 1024, 0, kFloat, 1, 0};  // 1 MiB; 4 MiB, 1 MiB, 256 KiB
  unsigned long long array = 0;
  cuArrayCreate_v2(&array, &flat);
  cuArray3DCreate_v2(&array, &solid);
  cuMipmappedArrayCreate(&array, &pyramid, 3);
  cuArrayCreate_v2(&array, &flat);
  cuArrayDestroy(array);
}

void allocate_on_devices() {
  unsigned long long own = 0, primary = 0, popped = 0, address = 0;
  cuDevicePrimaryCtxRetain(&primary, 3);
  allocate(1 << 20);  // not known: device 0
  cuCtxCreate_v2(&own, 0, 2);
  allocate(2 << 20);
  cuCtxPushCurrent_v2(primary);
  allocate(3 << 20);
  cuCtxPopCurrent_v2(&popped);
  allocate(4 << 20);
  cuCtxSetCurrent(primary);
  allocate(5 << 20);
  const int where[5] = {1, 0, 1, 5, 0};  // CUmemAllocationProp: device 5
  cuMemCreate(&address, 6 << 20, where, 0);
}

/// What is live at the end: 1 MiB of the device, 32 MiB of physical memory; and as many MiB as `owned` is in a primary
/// context that was released twice of three times.
void end_contexts(int owned) {
  unsigned long long own = 0, primary = 0, address = 0;
  const int where[5] = {1, 0, 1, 1, 0};  // CUmemAllocationProp: device 1
  cuDevicePrimaryCtxRetain(&primary, 1);
  cuCtxSetCurrent(primary);
  allocate(2 << 20);
  cuCtxCreate_v2(&own, 0, 0);
  allocate(4 << 20);
  allocate(8 << 20);
  cuMemCreate(&address, 32 << 20, where, 0);
  cuCtxDestroy_v2(own);
  allocate(16 << 20);  // of the primary context again
  cuDevicePrimaryCtxReset_v2(1);
  cuCtxCreate_v2(&own, 0, 0);
  allocate(1 << 20);
  for (int i = 0; i < 3; ++i) cuDevicePrimaryCtxRetain(&primary, 2);
  cuCtxSetCurrent(primary);
  allocate(static_cast<std::size_t>(owned) << 20);
  for (int i = 0; i < 2; ++i) cuDevicePrimaryCtxRelease_v2(2);
}

[[gnu::noinline]] unsigned long long create(std::size_t mib) {
  const int where[5] = {1, 0, 1, 0, 0};  // CUmemAllocationProp: device 0
  unsigned long long handle = 0;
  cuMemCreate(&handle, mib << 20U, where, 0);
  return handle;
}

/// Pieces of 1, 2, 4, ... MiB: 1, 8, 32 and 128 are live at the end, and 256 of another process are mapped.
void map_physical_memory() {
  constexpr unsigned long long kSpace = 0x7000'0000'0000;
  const auto at = [](std::size_t mib) { return kSpace + (mib << 24U); };
  const auto map = [&](std::size_t mib, unsigned long long handle) { cuMemMap(at(mib), mib << 20U, 0, handle, 0); };
  unsigned long long handle = create(1);
  map(1, handle);  // as llama.cpp does
  cuMemRelease(handle);
  cuMemRelease(create(2));
  handle = create(4);
  map(4, handle);
  cuMemRelease(handle);
  cuMemUnmap(at(4), 4 << 20);
  handle = create(8);
  map(8, handle);
  cuMemUnmap(at(8), 8 << 20);
  handle = create(16);
  map(16, handle);
  cuMemUnmap(at(16), 16 << 20);  // as PyTorch does
  cuMemRelease(handle);
  handle = create(32);
  map(32, handle);
  unsigned long long other = 0;
  cuMemRetainAllocationHandle(&other, reinterpret_cast<void*>(at(32) + 4096));
  cuMemRelease(handle);
  cuMemUnmap(at(32), 32 << 20);  // `other` is left
  handle = create(64);
  map(64, handle);
  map(1024, handle);  // mapped twice
  cuMemRelease(handle);
  cuMemUnmap(at(64), 64 << 20);
  cuMemUnmap(at(1024), 64 << 20);
  cuMemMap(0, 128 << 20, 0, create(128), 0);  // fails
  cuMemImportFromShareableHandle(&handle, nullptr, 1);
  map(256, handle);
}

/// Two modules, a library and two graphs stay, an opening of another process's memory, and 4 MiB of another API.
void load_code() {
  unsigned long long made = 0;
  cuModuleLoadData(&made, nullptr);
  for (int i = 0; i < 3; ++i) cuModuleLoadData(&made, "code");  // LINE load
  cuModuleUnload(made);
  cuLibraryLoadData(&made, "code", nullptr, nullptr, 0, nullptr, nullptr, 0);
  for (int i = 0; i < 3; ++i) cuGraphInstantiateWithFlags(&made, nullptr, 0);
  cuGraphExecDestroy(made);
  for (int i = 0; i < 2; ++i) cuIpcOpenMemHandle_v2(&made, {}, 1);
  cuIpcCloseMemHandle(made);
  const struct {
    int kind;
    void* handle[2];
    unsigned long long bytes;
    unsigned flags;
  } external{1, {}, 4 << 20, 0};
  cuImportExternalMemory(&made, &external);
}

/// Any system call but those that it makes itself kills it, one that somebody else makes it execute, too.
bool allow_no_other_system_calls() {
  constexpr unsigned kAllowed[] = {SYS_read, SYS_write,  SYS_fstat, SYS_newfstatat, SYS_brk,
                                   SYS_mmap, SYS_munmap, SYS_lseek, SYS_exit_group};
  std::vector<sock_filter> filter{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned each : kAllowed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, each, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool restrict_itself(const char* how) {
  if (std::strcmp(how, "seccomp") == 0) return allow_no_other_system_calls();
  return std::strcmp(how, "undumpable") == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
}

void serve(char** arguments) {
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const char command = line[0];
    const int number = std::atoi(line + 1);
    if (command == 'k') keep(number);
    if (command == 'u') use(number);
    if (command == 'd') deep(number);
    if (command == 't') std::thread([&] { keep(number); }).join();
    if (command == 'g') {  // release
      for (const unsigned long long address : kept) cuMemFree_v2(address);
      kept.clear();
    }
    if (command == 'n') refuse_frees(number);
    if (command == 'o')
      for (const unsigned long long address : kept) cuMemFree_v2(address);
    if (command == 'p') {
      unsigned long long address = 0;
      std::size_t pitch = 0;
      cuMemAllocPitch_v2(&address, &pitch, 1000, 1024, 4);
    }
    if (command == 'l') cuMemAlloc_v2(&kept.emplace_back(), std::size_t{1} << 41U);  // too large
    if (command == 'a') make_arrays();
    if (command == 'c') allocate_on_devices();
    if (command == 'v') map_physical_memory();
    if (command == 'i') load_code();
    if (command == 'e') end_contexts(number);
    if (command == 'r') cuDevicePrimaryCtxRelease_v2(2);
    if (command == 'f') {
      if (const pid_t child = fork(); child == 0) {
        keep(number);
        _exit(0);
      } else {
        waitpid(child, nullptr, 0);
      }
    }
    if (command == 'y') std::thread([&] { execv("/proc/self/exe", arguments); }).join();
    if (command == 'x') execv("/proc/self/exe", arguments);
    if (command == 'm') {  // its first thread ends, and another one continues
      std::thread([arguments] {
        std::puts("done");
        std::fflush(stdout);
        serve(arguments);
        std::exit(0);
      }).detach();
      pthread_exit(nullptr);
    }
    std::puts("done");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && !restrict_itself(arguments[1])) return 1;
  std::puts("ready");
  std::fflush(stdout);
  serve(arguments);
  return 0;
}
