/* A library to preload: the time of day is CLOCK_AHEAD_S seconds from the real one, and further by the number in the
 * file CLOCK_AHEAD_FILE, which may change while the program runs. Monotonic clocks, sleeps and the times of files stay
 * as they are. libfaketime changes the clocks that sleeps and waits are counted by, and Python's hang. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead_s(void) {
  const char* text = getenv("CLOCK_AHEAD_S");
  const char* path = getenv("CLOCK_AHEAD_FILE");
  time_t ahead = text != NULL ? (time_t)strtoll(text, NULL, 10) : 0;
  const int before = errno;
  const int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  char digits[24] = "";
  if (file >= 0 && read(file, digits, sizeof digits - 1) > 0) ahead += (time_t)strtoll(digits, NULL, 10);
  if (file >= 0) close(file);
  errno = before;
  return ahead;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const int status = (int)syscall(SYS_clock_gettime, clock, out);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += ahead_s();
  return status;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec* out, int base) {
  if (base != TIME_UTC) return 0;
  return clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}
