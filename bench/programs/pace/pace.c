/* Stretches the second half of a program over time: it sleeps a little at each call of its own function
   (-finstrument-functions). run.py does so for Python. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define UNSEEN __attribute__((no_instrument_function))
static long events, first;
static double pause_s;
static const char* told;
static pid_t origin;

UNSEEN void __cyg_profile_func_enter(void* function, void* caller) {
  (void)function, (void)caller;
  static double debt_s;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const long number = __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
  if (number < first) return;
  if (told && number == first && getpid() == origin) {
    char path[4096];
    snprintf(path, sizeof path, "%s.begun", told);
    FILE* const file = fopen(path, "w");
    if (file) fclose(file);
    snprintf(path, sizeof path, "%s.go", told);
    while (access(path, F_OK)) usleep(50000);
  }
  pthread_mutex_lock(&lock);  // threads wait for each other: the program is stretched by all that it owes
  debt_s += pause_s;
  if (debt_s > 0.001) {
    const struct timespec pause = {(time_t)debt_s, (long)((debt_s - (double)(time_t)debt_s) * 1e9)};
    debt_s = 0;
    nanosleep(&pause, NULL);
  }
  pthread_mutex_unlock(&lock);
}

UNSEEN void __cyg_profile_func_exit(void* function, void* caller) {
  (void)function, (void)caller;
}

UNSEEN __attribute__((constructor)) static void begin(void) {
  const char *const pause = getenv("PACE_PAUSE_S"), *const at = getenv("PACE_BEGIN");
  told = getenv("PACE_TOLD");
  if (pause) pause_s = atof(pause);
  if (at) first = atol(at);
  origin = getpid();
}

UNSEEN __attribute__((destructor)) static void tell(void) {
  FILE* const file = told && getpid() == origin ? fopen(told, "w") : NULL;
  if (!file) return;
  fprintf(file, "%ld", events);
  fclose(file);
}
