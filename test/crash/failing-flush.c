/* A disk that cannot flush: loaded before the C library (LD_PRELOAD), flushes of the database fail while the file $FAILING_FLUSH is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
  const char *flag = getenv("FAILING_FLUSH");
  char link[64], path[4096];
  if (flag == NULL || access(flag, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, "trivet.db") != NULL;
}

static int flush(const char *name, int file) {
  if (!fails(file)) return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
  errno = EIO;
  return -1;
}

int fdatasync(int file) { return flush("fdatasync", file); }

int fsync(int file) { return flush("fsync", file); }
