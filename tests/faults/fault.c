/* Let the k-th write or flush of a file in one folder fail, come short, or kill the process.
   Loaded before the C library (LD_PRELOAD); armed from Python by fault_arm(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NOTHING, EIO_, ENOSPC_, SHORT, KILL_BEFORE, KILL_AFTER, TORN };
enum { WRITE, FLUSH };

static char folder[4096];
static int armed, kind, mode, sticky;
static long at, seen;

void fault_arm(const char *where, int what, long which, int how, int stays) {
    strncpy(folder, where, sizeof folder - 1);
    kind = what, at = which, mode = how, sticky = stays, seen = 0, armed = 1;
}

long fault_disarm(void) {
    armed = 0;
    return seen;
}

/* Return what is to happen to this call. */
static int fault(int what, int file) {
    char link[64], name[4096];
    if (!armed || what != kind) return NOTHING;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, name, sizeof name - 1);
    if (size < 0) return NOTHING;
    name[size] = 0;
    if (strncmp(name, folder, strlen(folder))) return NOTHING;
    seen++;
    return seen == at || (sticky && at && seen > at) ? mode : NOTHING;
}

static void die(void) { kill(getpid(), SIGKILL); }

#define CHANGING(name, call, half)                                   \
    int how = fault(WRITE, file);                                    \
    if (how == EIO_ || how == ENOSPC_) {                             \
        errno = how == EIO_ ? EIO : ENOSPC;                          \
        return -1;                                                   \
    }                                                                \
    if (how == KILL_BEFORE) die();                                   \
    if (how == SHORT) return half;                                   \
    if (how == TORN) {                                               \
        (void)!half;                                                 \
        die();                                                       \
    }                                                                \
    if (how == KILL_AFTER) {                                         \
        (void)!call;                                                 \
        die();                                                       \
    }                                                                \
    return call;

#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, name)

ssize_t write(int file, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    CHANGING("write", real(file, data, size), real(file, data, size / 2))
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    CHANGING("pwrite", real(file, data, size, place), real(file, data, size / 2, place))
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    CHANGING("pwrite64", real(file, data, size, place), real(file, data, size / 2, place))
}

#define FLUSHING(name)                          \
    REAL(int, name, int);                       \
    int how = fault(FLUSH, file);               \
    if (how == EIO_ || how == ENOSPC_) {        \
        errno = how == EIO_ ? EIO : ENOSPC;     \
        return -1;                              \
    }                                           \
    if (how == KILL_BEFORE) die();              \
    int result = real(file);                    \
    if (how == KILL_AFTER) die();               \
    return result;

int fsync(int file) { FLUSHING("fsync") }

int fdatasync(int file) { FLUSHING("fdatasync") }
