/* Programs that leak GPU memory on purpose through the CUDA driver interface, and their repaired twins. Needs no
 * toolkit: cc -O2 -o leak_cuda leak_cuda.c -ldl -lm
 * Options, files and exit codes are those of job.py (--list, --probe, --kind, --out, --cap-mib, --until,
 * --life-share, --step-s, --dry-run; and --made-up-clock S: begin at S and pass at once, for a test). The cap is the
 * program's own budget; a dry run counts and touches no driver. The driver has no cache: allocated, reserved and live
 * are the same number. One thread; single pass through a kind's steps, each of which asks step() how much to take and
 * to release. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kUnavailable = 77, kMostBlocks = 1 << 16 };
static const double kTruthPeriodS = 0.1;

typedef int CUresult;
typedef int CUdevice;
typedef void* CUcontext;
typedef unsigned long long CUdeviceptr;

static CUresult (*driver_alloc)(CUdeviceptr*, size_t);
static CUresult (*driver_free)(CUdeviceptr);
static CUresult (*driver_fill)(CUdeviceptr, unsigned char, size_t);
static int driver_version;

/* What is held, oldest first: a block is freed from either end only. */
static struct {
  CUdeviceptr at;
  size_t bytes;
} blocks[kMostBlocks];
static int first_block, end_block;
static size_t live_bytes;

static struct {
  const char* kind;
  const char* out;
  double until, life_share, step_s;
  size_t cap_bytes;
  int list, probe, dry_run;
} options = {NULL, NULL, 0, 0.7, 0, (size_t)1024 << 20, 0, 0, 0};

static FILE* truth;
static FILE* events;

static double made_up_s; /* a test's clock, when it is not 0: waiting passes at once */

static double clock_s(clockid_t clock) {
  if (made_up_s > 0) return made_up_s;
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void event(const char* name, const char* detail) {
  fprintf(events, "%.3f,%s,%s\n", clock_s(CLOCK_REALTIME), name, detail);
  fflush(events);
}

static void finish(void) {
  event("end", "");
  fclose(events);
  fclose(truth);
}

static FILE* open_output(const char* suffix, const char* header) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s%s", options.out, suffix) >= (int)sizeof path) exit(2);
  FILE* file = fopen(path, "w");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  fputs(header, file);
  return file;
}

/* Waits until `due` on the monotonic clock, writing the truth ten times a second meanwhile. */
static void wait_until(double due) {
  static double next_truth;
  for (;;) {
    const double now = clock_s(CLOCK_MONOTONIC);
    if (now >= next_truth) {
      fprintf(truth, "%.3f,%zu,%zu,%zu\n", clock_s(CLOCK_REALTIME), live_bytes, live_bytes, live_bytes);
      fflush(truth);
      next_truth = (now > next_truth + kTruthPeriodS ? now : next_truth) + kTruthPeriodS;
    }
    if (now >= due) return;
    const double wait = (due < next_truth ? due : next_truth) - now;
    if (made_up_s > 0) {
      made_up_s += wait > 1e-6 ? wait : 1e-6;
      continue;
    }
    const struct timespec t = {(time_t)wait, (long)((wait - floor(wait)) * 1e9)};
    nanosleep(&t, NULL);
  }
}

static void out_of_memory(const char* why) {
  event("oom", why);
  finish();
  exit(0);
}

static void check(CUresult code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "leak_cuda: %s: CUDA error %d\n", what, code);
  exit(1);
}

static void take(double amount_bytes) {
  const size_t bytes = amount_bytes < 4096 ? 4096 : (size_t)amount_bytes;
  if (live_bytes + bytes > options.cap_bytes) out_of_memory("the program's own budget is exhausted");
  if (end_block == kMostBlocks) out_of_memory("more blocks than the program can count");
  CUdeviceptr at = 0;
  if (!options.dry_run) {
    const CUresult code = driver_alloc(&at, bytes);
    if (code == 2) out_of_memory("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    check(code, "cuMemAlloc");
    check(driver_fill(at, 1, bytes), "cuMemsetD8");
  }
  blocks[end_block].at = at;
  blocks[end_block++].bytes = bytes;
  live_bytes += bytes;
}

static void give_back(int block) {
  if (!options.dry_run) check(driver_free(blocks[block].at), "cuMemFree");
  live_bytes -= blocks[block].bytes;
}
static void free_oldest(void) {
  give_back(first_block++);
}
static void free_newest(void) {
  give_back(--end_block);
}

static double uniform(void) { /* SplitMix64: the same on every machine */
  static unsigned long long state = 20260101;
  unsigned long long z = state += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* The plan of a run, and each kind's step: it takes and frees, and says whether it lost something. */
struct plan {
  double leak_bytes, free_bytes;
  long life_steps, epoch_steps;
};

static int kept(long step, const struct plan* p) {
  (void)step;
  take(p->leak_bytes);
  return 1;
}
static int freed(long step, const struct plan* p) {
  (void)step;
  if (end_block > first_block) free_newest();
  take(p->leak_bytes * (8 + 8 * uniform()));
  return 0;
}
static int stairs(long step, const struct plan* p) {
  if (step % p->epoch_steps != p->epoch_steps - 1) return 0;
  take(p->leak_bytes * (double)p->epoch_steps);
  return 1;
}
static int stairs_freed(long step, const struct plan* p) {
  if (step % p->epoch_steps != p->epoch_steps - 1) return 0;
  if (end_block > first_block) free_oldest();
  take(p->leak_bytes * (double)p->epoch_steps);
  return 0;
}
static int saw(long step, const struct plan* p, double stays) {
  static int floor_block;
  const long cycle = p->life_steps / 12 > 4 ? p->life_steps / 12 : 4;
  take(0.35 * p->free_bytes / (double)cycle);
  if (step % cycle != cycle - 1) return 0;
  const int remain = floor_block + (int)ceil(stays * (double)cycle);
  while (end_block > remain) free_newest();
  floor_block = remain;
  return stays > 0;
}
static int saw_rising(long step, const struct plan* p) {
  return saw(step, p, 0.15);
}
static int saw_stable(long step, const struct plan* p) {
  return saw(step, p, 0);
}
static int late(long step, const struct plan* p) {
  if (step < p->life_steps * 45 / 100) return freed(step, p);
  take(p->leak_bytes / 0.55);
  return 1;
}
static int accelerating(long step, const struct plan* p) {
  take(2 * p->leak_bytes * ((double)step + 0.5) / (double)p->life_steps);
  return 1;
}
static int lost_requests(long step, const struct plan* p) { /* a compound Poisson process */
  (void)step;
  if (uniform() >= 0.05) return 0;
  take(p->leak_bytes * 20 * -log(1 - uniform()));
  return 1;
}
static int cache_limited(long step, const struct plan* p) {
  (void)step;
  const double size = p->leak_bytes * (0.5 + uniform());
  while (end_block > first_block && (double)live_bytes + size > 0.6 * p->free_bytes) free_oldest();
  take(size);
  return 0;
}

static const struct {
  const char* name;
  int (*step)(long, const struct plan*);
  int leak;
  const char* pattern;
  const char* twin;
} kinds[] = {
    {"memory_kept", kept, 1, "gradual_leak", "memory_freed"},
    {"memory_freed", freed, 0, "none", "memory_kept"},
    {"stairs_kept", stairs, 1, "step_increase", "stairs_freed"},
    {"stairs_freed", stairs_freed, 0, "none", "stairs_kept"},
    {"sawtooth_rising", saw_rising, 1, "cyclic", "sawtooth"},
    {"sawtooth", saw_stable, 0, "none", "sawtooth_rising"},
    {"late_onset", late, 1, "gradual_leak", "memory_freed"},
    {"accelerating", accelerating, 1, "gradual_leak", "memory_freed"},
    {"requests_lost", lost_requests, 1, "gradual_leak", "memory_freed"},
    {"cache_limited", cache_limited, 0, "none", "memory_kept"},
};
enum { kKinds = sizeof kinds / sizeof kinds[0] };

static void usage(const char* what) {
  fprintf(stderr,
          "leak_cuda: %s\nusage: leak_cuda --list | --probe | --kind KIND --out PREFIX [--cap-mib N] [--until S] "
          "[--life-share X] [--step-s S] [--dry-run]\n",
          what);
  exit(2);
}

static double number(const char* text) {
  char* end = NULL;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0)) usage(text);
  return value;
}

static void parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    if (strcmp(name, "--list") == 0) {
      options.list = 1;
      continue;
    }
    if (strcmp(name, "--probe") == 0) {
      options.probe = 1;
      continue;
    }
    if (strcmp(name, "--dry-run") == 0) {
      options.dry_run = 1;
      continue;
    }
    if (++i == argc) usage(name);
    if (strcmp(name, "--kind") == 0)
      options.kind = argv[i];
    else if (strcmp(name, "--out") == 0)
      options.out = argv[i];
    else if (strcmp(name, "--cap-mib") == 0)
      options.cap_bytes = (size_t)number(argv[i]) << 20;
    else if (strcmp(name, "--until") == 0)
      options.until = number(argv[i]);
    else if (strcmp(name, "--life-share") == 0)
      options.life_share = number(argv[i]);
    else if (strcmp(name, "--step-s") == 0)
      options.step_s = number(argv[i]);
    else if (strcmp(name, "--made-up-clock") == 0)
      made_up_s = number(argv[i]);
    else
      usage(name);
  }
  if (options.until == 0) options.until = clock_s(CLOCK_REALTIME) + 200;
  if (options.step_s == 0) options.step_s = options.dry_run ? 0.02 : 0.2;
  if (!options.list && !options.probe && (options.kind == NULL || options.out == NULL))
    usage("give --list, --probe, or --kind and --out");
}

static void* entry(void* driver, const char* name) {
  void* symbol = dlsym(driver, name);
  if (symbol == NULL) {
    fprintf(stderr, "leak_cuda: libcuda.so.1 has no %s\n", name);
    exit(kUnavailable);
  }
  return symbol;
}

static void open_driver(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) {
    fprintf(stderr, "leak_cuda: %s\n", dlerror());
    exit(kUnavailable);
  }
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))entry(driver, "cuInit");
  CUresult (*version)(int*) = (CUresult(*)(int*))entry(driver, "cuDriverGetVersion");
  CUresult (*get)(CUdevice*, int) = (CUresult(*)(CUdevice*, int))entry(driver, "cuDeviceGet");
  CUresult (*retain)(CUcontext*, CUdevice) =
      (CUresult(*)(CUcontext*, CUdevice))entry(driver, "cuDevicePrimaryCtxRetain");
  CUresult (*current)(CUcontext) = (CUresult(*)(CUcontext))entry(driver, "cuCtxSetCurrent");
  driver_alloc = (CUresult(*)(CUdeviceptr*, size_t))entry(driver, "cuMemAlloc_v2");
  driver_free = (CUresult(*)(CUdeviceptr))entry(driver, "cuMemFree_v2");
  driver_fill = (CUresult(*)(CUdeviceptr, unsigned char, size_t))entry(driver, "cuMemsetD8_v2");
  CUdevice device;
  CUcontext context;
  if (init(0) != 0 || get(&device, 0) != 0) {
    fprintf(stderr, "leak_cuda: the driver sees no GPU\n");
    exit(kUnavailable);
  }
  check(version(&driver_version), "cuDriverGetVersion");
  check(retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(current(context), "cuCtxSetCurrent");
}

int main(int argc, char** argv) {
  parse(argc, argv);
  if (options.list) {
    puts("kind,leak,pattern,twin,expandable");
    for (int i = 0; i < kKinds; ++i)
      printf("%s,%d,%s,%s,0\n", kinds[i].name, kinds[i].leak, kinds[i].pattern, kinds[i].twin);
    return 0;
  }
  int chosen = 0;
  while (!options.probe && chosen < kKinds && strcmp(kinds[chosen].name, options.kind) != 0) ++chosen;
  if (chosen == kKinds) usage(options.kind);
  if (!options.dry_run) open_driver();
  char version[64];
  snprintf(version, sizeof version, "CUDA %d.%d", driver_version / 1000, driver_version % 1000 / 10);
  if (options.probe) {
    puts(version);
    return 0;
  }

  truth = open_output(".truth.csv", "time_s,allocated_bytes,reserved_bytes,live_bytes\n");
  events = open_output(".events.csv", "time_s,event,detail\n");
  event("framework", version);
  struct plan plan;
  const double left_s = options.until - clock_s(CLOCK_REALTIME);
  plan.life_steps = (long)(left_s * options.life_share / options.step_s);
  if (plan.life_steps < 10) plan.life_steps = 10;
  plan.epoch_steps = plan.life_steps / 12 > 2 ? plan.life_steps / 12 : 2;
  plan.free_bytes = (double)options.cap_bytes;
  plan.leak_bytes = plan.free_bytes / (double)plan.life_steps;
  event("start", "");
  int has_onset = 0;
  double due = clock_s(CLOCK_MONOTONIC);
  for (long step = 0; clock_s(CLOCK_REALTIME) < options.until; ++step) {
    const double t = clock_s(CLOCK_REALTIME);
    if (kinds[chosen].step(step, &plan) && !has_onset) {
      has_onset = 1;
      fprintf(events, "%.3f,onset,\n", t);
      fflush(events);
    }
    due += options.step_s;
    wait_until(due);
  }
  finish();
  return 0;
}
