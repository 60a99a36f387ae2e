// A double of NVIDIA's kernel module: ioctls on the file that is named are answered by a thread of this program
// (seccomp's user notification), as that module answers them. Commands: "h10" allocates 10 MiB by
// NV_ESC_RM_VID_HEAP_CONTROL, "r10" by NV_ESC_RM_ALLOC, "f" frees the last one, "v10" reserves addresses alone, "x10"
// is refused by the driver, "c" frees the client with all that it has, "k10" allocates 10 MiB by the driver's library,
// which asks the kernel for nothing here.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int cuMemAlloc_v2(unsigned long long* out, size_t bytes);

enum { FLAG_VIRTUAL = 0x80000, MIB = 1 << 20 };
static const uint32_t CLIENT = 0xc1d00001;
struct memory_parameters {
  uint32_t owner, type, flags, width, height, pitch, attributes, attributes2, format, compression, z_compression, pad;
  uint64_t range[2], size;
};
struct alloc_parameters {
  uint32_t client, parent, object, class;
  uint64_t parameters, rights;
  uint32_t parameter_bytes, flags, status, pad;
};
struct heap_parameters {
  uint32_t client, parent, function, addresses, heap, status;
  uint64_t total, free;
  uint32_t owner, memory, type, flags, attributes, unused[6];
  uint64_t size, more[12];
};
struct free_parameters {
  uint32_t client, parent, object, status;
};

static uint32_t last = 100;
static int is_refused;

static void* answer(void* listener) {
  const int fd = (int)(intptr_t)listener;
  for (;;) {
    struct seccomp_notif asked = {0};
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked)) return NULL;
    const unsigned call = asked.data.args[1] & 0xff;
    if (call == 0x4a) {
      struct heap_parameters* const heap = (void*)asked.data.args[2];
      heap->status = (uint32_t)is_refused;
      if (heap->function == 2) heap->memory = ++last;
    }
    if (call == 0x2b) {
      struct alloc_parameters* const alloc = (void*)asked.data.args[2];
      alloc->object = ++last;
    }
    struct seccomp_notif_resp answered = {.id = asked.id};
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answered);
  }
}

static int listen_to_ioctls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'F' << 8, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void heap_control(int fd, uint32_t function, uint32_t flags, uint64_t bytes) {
  struct heap_parameters heap = {.client = CLIENT, .function = function, .memory = last, .flags = flags, .size = bytes};
  ioctl(fd, _IOWR('F', 0x4a, struct heap_parameters), &heap);
}

static void allocate(int fd, uint64_t bytes) {
  struct memory_parameters memory = {.size = bytes};
  struct alloc_parameters alloc = {.client = CLIENT, .class = 0x40, .parameters = (uintptr_t)&memory};
  ioctl(fd, _IOWR('F', 0x2b, struct alloc_parameters), &alloc);
}

static void end(int fd, uint32_t object) {
  struct free_parameters free = {.client = CLIENT, .object = object};
  ioctl(fd, _IOWR('F', 0x29, struct free_parameters), &free);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const int device = open(arguments[1], O_RDWR), other = open("/dev/zero", O_RDWR);
  const int listener = listen_to_ioctls();
  pthread_t thread;
  if (device < 0 || listener < 0 || pthread_create(&thread, NULL, answer, (void*)(intptr_t)listener)) {
    perror("ioctl_keeper");
    return 77;
  }
  char line[64];
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    const uint64_t bytes = (uint64_t)atoi(line + 1) * MIB;
    unsigned long long address;
    if (*line == 'h') heap_control(device, 2, 0, bytes);
    if (*line == 'o') heap_control(other, 2, 0, bytes);  // another driver's
    if (*line == 'v') heap_control(device, 2, FLAG_VIRTUAL, bytes);
    if (*line == 'r') allocate(device, bytes);
    if (*line == 'f') end(device, last);
    if (*line == 'c') end(device, CLIENT);
    if (*line == 'k') cuMemAlloc_v2(&address, bytes);
    is_refused = *line == 'x' ? 0x51 : 0;
    if (*line == 'x') heap_control(device, 2, 0, bytes);
    puts("done");
    fflush(stdout);
  }
  return 0;
}
