/* A program that does as it is told on standard input, one command per line, and answers each with a line: what is
   traced is known exactly. */
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

static void obey(char command, int number);

int main(void) {
  char line[64];
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    obey(line[0], atoi(line + 1));
    puts("done");
    fflush(stdout);
  }
  return 0;
}

__attribute__((unused)) static void give_up(const char* why) {
  puts(why);
  fflush(stdout);
  exit(77);
}
