/* Writes that fail: put before the C library by LD_PRELOAD, and told by fail_at() which call is to fail, and how. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, IO_ERROR, NO_SPACE, SHORT_WRITE };

static int calls_left = -1, how = NONE, n_failed = 0, for_ever = 0;
static char part_of_name[64];

/* The call that is to fail is the one after `calls` others; with `always`, all after it fail too. */
void fail_at(int calls, int kind, int always, const char *name) {
    calls_left = calls, how = kind, for_ever = always, n_failed = 0;
    strncpy(part_of_name, name, sizeof part_of_name - 1);
}

int count_failed(void) { return n_failed; }

static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, part_of_name) != NULL;
}

static int now(int fd) {
    if (how == NONE || !is_ours(fd)) return NONE;
    if (calls_left-- > 0) return NONE;
    if (for_ever) calls_left = 0;
    n_failed++;
    int kind = how;
    if (!for_ever) how = NONE;
    errno = kind == IO_ERROR ? EIO : ENOSPC;
    return kind;
}

#define REAL(name) static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    int kind = now(fd);
    if (kind == SHORT_WRITE) return real(fd, data, size / 2);
    return kind ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    int kind = now(fd);
    if (kind == SHORT_WRITE) return real(fd, data, size / 2, at);
    return kind ? -1 : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    int kind = now(fd);
    if (kind == SHORT_WRITE) return real(fd, data, size / 2, at);
    return kind ? -1 : real(fd, data, size, at);
}

int fsync(int fd) { REAL(fsync); return now(fd) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return now(fd) ? -1 : real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return now(fd) ? -1 : real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return now(fd) ? -1 : real(fd, size); }
