// Every way to device memory, one after the other: what the program sees goes to standard output, and what the probe
// counts is compared with what the program holds. program SCENARIO [ptsz]
#include "program.hpp"

#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace {

Properties on(int type, int device) {
  Properties properties{};
  properties.type = 1;
  properties.location_type = type;
  properties.location = device;
  return properties;
}
const Properties kDevice0 = on(1, 0), kDevice1 = on(1, 1), kNuma = on(3, 0);

void use(int device) {
  void* context = nullptr;
  saw("retain", cuDevicePrimaryCtxRetain(&context, device));
  saw("current", cuCtxSetCurrent(context));
}

void plain() {
  Address a = 0, b = 0, c = 0;
  std::size_t pitch = 0;
  saw("alloc", cuMemAlloc(&a, 3 * kMib));
  holds("alloc", 3 * kMib);
  saw("pitch", cuMemAllocPitch(&b, &pitch, 1000, 4096, 4));
  holds("pitch", 3 * kMib + 1024 * 4096);
  saw("managed", cuMemAllocManaged(&c, 2 * kMib, 1));
  holds("managed", 3 * kMib + 1024 * 4096 + 2 * kMib);
  saw("copy", cuMemcpyDtoD(a, c, 16));
  saw("free", cuMemFree(b));
  saw("free", cuMemFree(b));  // not known any more
  saw("free nothing", cuMemFree(0));
  holds("freed", 5 * kMib);
  void* pinned = nullptr;
  saw("host", cuMemHostAlloc(&pinned, kMib, 0));
  saw("a free that fails", cuMemFree(reinterpret_cast<Address>(pinned)));
  saw("free", cuMemFree(a));
  saw("too much", cuMemAlloc(&a, 1ULL << 40U));
  holds("too much", 2 * kMib);
  saw("on device 1", cuDevicePrimaryCtxRetain(&pinned, 1));
  cuCtxSetCurrent(pinned);
  saw("alloc", cuMemAlloc(&a, 7 * kMib));
  holds("device 1", 7 * kMib, 1);
  holds("device 0", 2 * kMib);
}

void ordered() {
  Address a = 0, b = 0, c = 0, d = 0;
  void *stream = nullptr, *pool = nullptr, *of_device1 = nullptr, *graph = nullptr;
  saw("stream", cuStreamCreate(&stream, 0));
  saw("async", cuMemAllocAsync(&a, 5 * kMib, stream));
  holds("async", 5 * kMib);
  saw("pool", cuMemPoolCreate(&pool, &kDevice1));
  saw("from pool", cuMemAllocFromPoolAsync(&b, 6 * kMib, pool, stream));
  holds("from pool", 6 * kMib, 1);
  saw("default pool", cuDeviceGetDefaultMemPool(&of_device1, 1));
  saw("from default pool", cuMemAllocFromPoolAsync(&c, kMib, of_device1, nullptr));
  holds("from default pool", 7 * kMib, 1);
  saw("capture", cuStreamBeginCapture(stream, 0));
  saw("captured", cuMemAllocAsync(&d, 9 * kMib, stream));
  holds("captured", 5 * kMib);
  saw("captured free", cuMemFreeAsync(d, stream));
  saw("end", cuStreamEndCapture(stream, &graph));
  holds("captured free", 5 * kMib);
  saw("a pool goes before its memory", cuMemPoolDestroy(pool));
  holds("a pool goes before its memory", 7 * kMib, 1);
  saw("free async", cuMemFreeAsync(b, stream));
  holds("free async", kMib, 1);
  saw("plain free", cuMemFree(a));
  holds("plain free", 0);
  saw("default pool", cuDeviceGetDefaultMemPool(&pool, 0));
  saw("trim", cuMemPoolTrimTo(pool, 0));
  holds("trim", 0);
  void* imported = nullptr;
  saw("pool", cuMemPoolCreate(&imported, &kDevice0));
  saw("import", cuMemPoolImportPointer(&a, imported, nullptr));
  holds("not owned", 0);
  saw("free async", cuMemFreeAsync(a, stream));
  saw("nothing", cuMemAllocAsync(&a, 0, stream));
  holds("nothing", 0);
}

void virtual_memory() {
  constexpr std::size_t kPiece = 2 * kMib;
  Address at = 0, a = 0, b = 0, c = 0, again = 0;
  saw("reserve", cuMemAddressReserve(&at, 8 * kPiece, 0, 0, 0));
  saw("create", cuMemCreate(&a, kPiece, &kDevice0, 0));
  holds("create", kPiece);
  saw("create on device 1", cuMemCreate(&b, 2 * kPiece, &kDevice1, 0));
  holds("create on device 1", 2 * kPiece, 1);
  saw("create on the host", cuMemCreate(&c, kPiece, &kNuma, 0));
  holds("create on the host", kPiece);
  saw("map", cuMemMap(at, kPiece, 0, a, 0));
  saw("map", cuMemMap(at + kPiece, 2 * kPiece, 0, b, 0));
  saw("release", cuMemRelease(a));
  saw("release", cuMemRelease(c));
  holds("mapped and released", kPiece);
  saw("retain", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)));
  saw("unmap both", cuMemUnmap(at, 3 * kPiece));
  holds("retained", kPiece);
  holds("unmapped, not released", 2 * kPiece, 1);
  saw("map elsewhere", cuMemMap(at + 4 * kPiece, kPiece, 0, again, 0));
  saw("map twice", cuMemMap(at + 5 * kPiece, kPiece, 0, again, 0));
  saw("release", cuMemRelease(again));
  saw("unmap the first", cuMemUnmap(at + 4 * kPiece, kPiece));
  holds("mapped still", kPiece);
  saw("unmap", cuMemUnmap(at + 5 * kPiece, kPiece));
  holds("gone", 0);
  saw("release", cuMemRelease(b));
  holds("gone", 0, 1);
  saw("unmap nothing", cuMemUnmap(at, kPiece));
  Address foreign = 0, group = 0;
  const Multicast properties{2, 4 * kMib, 0, 0};
  saw("import", cuMemImportFromShareableHandle(&foreign, nullptr, 1));
  saw("map the import", cuMemMap(at, kPiece, 0, foreign, 0));
  saw("multicast", cuMulticastCreate(&group, &properties));
  holds("not owned", 0);
  saw("create", cuMemCreate(&a, kPiece, &kDevice0, 0));
  saw("create", cuMemCreate(&b, kPiece, &kDevice0, 0));
  saw("create on device 1", cuMemCreate(&c, kPiece, &kDevice1, 0));
  saw("map", cuMemMap(at + 2 * kPiece, kPiece, 0, b, 0));
  saw("bind", cuMulticastBindMem(group, 0, a, 0, kPiece, 0));
  saw("bind what is mapped", cuMulticastBindAddr(group, kPiece, at + 2 * kPiece, kPiece, 0));
  saw("bind on device 1", cuMulticastBindMem(group, 0, c, 0, kPiece, 0));
  for (const Address handle : {a, b, c}) saw("release", cuMemRelease(handle));
  saw("unmap", cuMemUnmap(at + 2 * kPiece, kPiece));
  holds("bound", 2 * kPiece);
  holds("bound on device 1", kPiece, 1);
  saw("unbind", cuMulticastUnbind(group, 0, 0, kPiece));
  holds("the other is bound", kPiece);
  holds("another device's is bound", kPiece, 1);
  saw("release the multicast", cuMemRelease(group));
  holds("what was bound goes with it", 0);
  holds("what was bound goes with it", 0, 1);
}

void arrays() {
  void *flat = nullptr, *deep = nullptr, *levels = nullptr;
  const Flat shape{1024, 512, 0x20, 2};
  const Deep volume{100, 100, 100, 0x20, 1, 0}, mipmap{512, 512, 0, 0x01, 4, 0};
  saw("array", cuArrayCreate(&flat, &shape));
  holds("array", 4 * kMib);
  saw("volume", cuArray3DCreate(&deep, &volume));  // 4,000,000 bytes; the driver says 4 MiB
  holds("volume", 8 * kMib);
  saw("mipmap", cuMipmappedArrayCreate(&levels, &mipmap, 2));
  holds("mipmap", 8 * kMib + kMib + kMib / 4);
  saw("destroy", cuArrayDestroy(flat));
  saw("destroy twice", cuArrayDestroy(flat));
  saw("destroy", cuMipmappedArrayDestroy(levels));
  holds("the volume is left", 4 * kMib);
  saw("destroy", cuArrayDestroy(deep));
  holds("none", 0);
}

void host() {
  void *a = nullptr, *b = nullptr;
  static char mine[8192];
  saw("alloc host", cuMemAllocHost(&a, 3 * kMib));
  saw("host alloc", cuMemHostAlloc(&b, kMib, 1));
  saw("register", cuMemHostRegister(mine, sizeof mine, 0));
  saw("free", cuMemFreeHost(a));
  saw("free twice", cuMemFreeHost(a));
  saw("unregister", cuMemHostUnregister(mine));
  saw("unregister twice", cuMemHostUnregister(mine));
  holds("no device", 0);
}

void imports() {
  Address a = 0, opened = 0;
  Ipc handle{};
  saw("alloc", cuMemAlloc(&a, 4 * kMib));
  saw("handle", cuIpcGetMemHandle(&handle, a));
  saw("open", cuIpcOpenMemHandle(&opened, handle, 1));
  holds("not owned", 4 * kMib);
  saw("close", cuIpcCloseMemHandle(opened));
  saw("open", cuIpcOpenMemHandle(&opened, handle, 1));
  const External external{1, {nullptr, nullptr}, 3 * kMib, 0};
  void *first = nullptr, *second = nullptr;
  saw("import", cuImportExternalMemory(&first, &external));
  saw("import", cuImportExternalMemory(&second, &external));
  saw("destroy", cuDestroyExternalMemory(first));
  holds("not owned", 4 * kMib);
}

/// What a context takes; the first one of a device is not measured: nobody could be asked before.
constexpr std::size_t kContext = 300 * kMib;

void contexts() {
  Address kept = 0, lost = 0, pooled = 0;
  void *mine = nullptr, *array = nullptr, *pinned = nullptr, *primary = nullptr, *primary1 = nullptr;
  const Flat shape{1024, 1024, 0x20, 1};
  cuDevicePrimaryCtxRetain(&primary, 0);
  saw("alloc", cuMemAlloc(&kept, 2 * kMib));
  saw("create", cuCtxCreate(&mine, 0, 0));
  saw("alloc", cuMemAlloc(&lost, 8 * kMib));
  saw("array", cuArrayCreate(&array, &shape));
  saw("pinned", cuMemHostAlloc(&pinned, kMib, 0));
  saw("pooled", cuMemAllocAsync(&pooled, 16 * kMib, nullptr));
  holds("two contexts", 30 * kMib + kContext);
  saw("destroy", cuCtxDestroy(mine));
  holds("one context", 18 * kMib);
  saw("destroy twice", cuCtxDestroy(mine));
  void *shared = nullptr, *same = nullptr;
  saw("create", cuCtxCreate(&shared, 0, 0));
  saw("alloc", cuMemAlloc(&lost, 4 * kMib));
  saw("attach", cuCtxAttach(&same, 0));
  saw("detach", cuCtxDetach(same));
  holds("attached still", 22 * kMib);  // no context was current before it
  saw("detach the last", cuCtxDetach(shared));
  holds("detached", 18 * kMib);
  saw("detach twice", cuCtxDetach(shared));
  cuDevicePrimaryCtxRetain(&primary1, 1);
  saw("current", cuCtxSetCurrent(primary1));
  saw("alloc", cuMemAlloc(&lost, kMib));
  saw("pinned", cuMemHostAlloc(&pinned, kMib, 0));
  saw("release", cuDevicePrimaryCtxRelease(0));
  holds("retained by another", 18 * kMib);
  saw("release", cuDevicePrimaryCtxRelease(0));
  holds("released: the pool's is left", 16 * kMib);
  saw("free", cuMemFreeAsync(pooled, nullptr));
  holds("nothing", 0);
  holds("device 1", kMib, 1);
  saw("reset", cuDevicePrimaryCtxReset(1));
  holds("reset", 0, 1);
}

void graphs() {
  void *node = nullptr, *graph = nullptr;
  Node allocation{};
  allocation.pool = kDevice0;
  allocation.bytes = 6 * kMib;
  saw("launch", cuGraphLaunch(nullptr, nullptr));
  saw("node", cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation));
  holds("a node holds nothing", 0);
  saw("launch", cuGraphLaunch(nullptr, nullptr));
  holds("launched", 6 * kMib);
  saw("launch", cuGraphLaunch(nullptr, nullptr));
  holds("launched twice", 6 * kMib);
  saw("trim", cuDeviceGraphMemTrim(0));
  holds("trimmed", 0);
}

/// Sizes that no call reports, by what the driver has free: 5 MiB a module, 3 MiB a graph (cuda.py).
void code() {
  Address a = 0;
  void *module = nullptr, *other = nullptr, *executable = nullptr, *mine = nullptr;
  saw("load", cuModuleLoadData(&module, nullptr));
  holds("a module", 5 * kMib);
  saw("alloc", cuMemAlloc(&a, 2 * kMib));
  saw("load", cuModuleLoadData(&other, nullptr));
  holds("two modules", 12 * kMib);
  saw("unload", cuModuleUnload(module));
  holds("one module", 7 * kMib);
  saw("unload nothing", cuModuleUnload(nullptr));
  saw("instantiate", cuGraphInstantiateWithFlags(&executable, nullptr, 0));
  holds("a graph", 10 * kMib);
  saw("destroy", cuGraphExecDestroy(executable));
  holds("destroyed", 7 * kMib);
  saw("create", cuCtxCreate(&mine, 0, 0));
  saw("load", cuModuleLoadData(&module, nullptr));
  holds("in a context", 12 * kMib + kContext);
  saw("destroy", cuCtxDestroy(mine));
  holds("goes with its context", 7 * kMib);
}

/// Not run without the probe: only here the program sees another world.
void limit() {
  Address a = 0, b = 0;
  std::size_t free = 0, total = 0;
  saw("alloc", cuMemAlloc(&a, 10 * kMib));
  ring_of_this_process()->limit_bytes = 64 * kMib;
  saw("info", cuMemGetInfo(&free, &total));
  std::printf("free %zu of %zu\n", free / kMib, total / kMib);
  saw("info without room for it", cuMemGetInfo(nullptr, nullptr));
  saw("within", cuMemAlloc(&b, 40 * kMib));
  saw("beyond", cuMemAlloc(&a, 20 * kMib));
  saw("beyond", cuMemAllocAsync(&a, 20 * kMib, nullptr));
  saw("beyond", cuMemAllocManaged(&a, 20 * kMib, 1));
  saw("beyond", cuMemCreate(&a, 20 * kMib, &kDevice0, 0));
  void* array = nullptr;
  const Flat shape{4096, 2048, 0x20, 1};
  saw("beyond", cuArrayCreate(&array, &shape));
  void* pinned = nullptr;
  saw("the host is not limited", cuMemHostAlloc(&pinned, 100 * kMib, 0));
  saw("another device has a limit of its own", cuMemCreate(&a, 60 * kMib, &kDevice1, 0));
  holds("within", 50 * kMib);
  saw("free", cuMemFree(b));
  saw("fits again", cuMemAlloc(&a, 20 * kMib));
  holds("fits again", 30 * kMib);
  ring_of_this_process()->limit_bytes = 0;
  saw("no limit", cuMemAlloc(&a, 100 * kMib));
}

void threads() {
  std::vector<std::thread> all;
  std::atomic<std::size_t> kept{0};
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  for (unsigned i = 0; i < 8; ++i)
    all.emplace_back([&, i] {
      cuCtxSetCurrent(context);
      std::vector<Address> mine;
      for (unsigned n = 0; n < 400; ++n) {
        Address a = 0;
        if (((n + i) % 3 == 0 ? cuMemAllocAsync(&a, 4096, nullptr) : cuMemAlloc(&a, 4096)) != 0) std::abort();
        mine.push_back(a);
        if (n % 4 == 3)
          for (int k = 0; k < 3; ++k, mine.pop_back())
            if (cuMemFree(mine.back()) != 0) std::abort();
      }
      kept += mine.size() * 4096;
    });
  for (std::thread& thread : all) thread.join();
  holds("threads", kept);
}

void forks() {
  Address a = 0;
  saw("alloc", cuMemAlloc(&a, 3 * kMib));
  holds("parent", 3 * kMib);
  const pid_t child = fork();
  if (child == 0) {
    saw("init", cuInit(0));
    use(0);
    saw("alloc", cuMemAlloc(&a, 5 * kMib));
    holds("child", 5 * kMib);
    std::fflush(stdout);
    _exit(mismatches);
  }
  int status = 0;
  waitpid(child, &status, 0);
  saw("child", WEXITSTATUS(status));
  mismatches += WEXITSTATUS(status);
  saw("free", cuMemFree(a));
  holds("parent", 0);
}

struct Scenario {
  const char* name;
  void (*run)();
};
constexpr Scenario kScenarios[] = {{"plain", plain},       {"ordered", ordered}, {"virtual", virtual_memory},
                                   {"arrays", arrays},     {"host", host},       {"imports", imports},
                                   {"contexts", contexts}, {"graphs", graphs},   {"code", code},
                                   {"limit", limit},       {"threads", threads}, {"forks", forks}};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  find_driver(count > 2 && std::strcmp(arguments[2], "ptsz") == 0);
  saw("init", cuInit(0));
  use(0);
  for (const Scenario& scenario : kScenarios)
    if (std::strcmp(scenario.name, arguments[1]) == 0) {
      scenario.run();
      return mismatches == 0 ? 0 : 1;
    }
  return 2;
}
