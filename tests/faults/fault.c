/* Let the k-th read, write, flush or change of the files in one folder fail, come short, or kill
   the process. A change makes a file, cuts it off, renames or removes it.
   Loaded before the C library (LD_PRELOAD); armed from Python by fault_arm(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { NOTHING, EIO_, ENOSPC_, SHORT, KILL_BEFORE, KILL_AFTER, TORN };
enum { READ, WRITE, FLUSH, CHANGE };

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

/* Return what is to happen to this call about a file of that name. */
static int fault_named(int what, const char *name) {
    if (!armed || what != kind || strncmp(name, folder, strlen(folder))) return NOTHING;
    seen++;
    return seen == at || (sticky && at && seen > at) ? mode : NOTHING;
}

/* Return what is to happen to this call about an open file. */
static int fault(int what, int file) {
    char link[64], name[4096];
    if (!armed || what != kind) return NOTHING;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, name, sizeof name - 1);
    if (size < 0) return NOTHING;
    name[size] = 0;
    return fault_named(what, name);
}

static void die(void) { kill(getpid(), SIGKILL); }

#define FAILING(way)                            \
    int how = way;                              \
    if (how == EIO_ || how == ENOSPC_) {        \
        errno = how == EIO_ ? EIO : ENOSPC;     \
        return -1;                              \
    }

#define WRITING(call, half)                                          \
    FAILING(fault(WRITE, file))                                      \
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
    WRITING(real(file, data, size), real(file, data, size / 2))
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    WRITING(real(file, data, size, place), real(file, data, size / 2, place))
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    WRITING(real(file, data, size, place), real(file, data, size / 2, place))
}

#define READING(call)           \
    FAILING(fault(READ, file))  \
    return call;

ssize_t read(int file, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    READING(real(file, data, size))
}

ssize_t pread(int file, void *data, size_t size, off_t place) {
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    READING(real(file, data, size, place))
}

ssize_t pread64(int file, void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pread64", int, void *, size_t, off64_t);
    READING(real(file, data, size, place))
}

#define ENDING(way, call)           \
    FAILING(way)                    \
    if (how == KILL_BEFORE) die();  \
    int result = call;              \
    if (how == KILL_AFTER) die();   \
    return result;

#define FLUSHING(name)                          \
    REAL(int, name, int);                       \
    ENDING(fault(FLUSH, file), real(file))

int fsync(int file) { FLUSHING("fsync") }

int fdatasync(int file) { FLUSHING("fdatasync") }

int ftruncate(int file, off_t size) {
    REAL(int, "ftruncate", int, off_t);
    ENDING(fault(CHANGE, file), real(file, size))
}

int ftruncate64(int file, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t);
    ENDING(fault(CHANGE, file), real(file, size))
}

int unlink(const char *name) {
    REAL(int, "unlink", const char *);
    ENDING(fault_named(CHANGE, name), real(name))
}

int rename(const char *name, const char *other) {
    REAL(int, "rename", const char *, const char *);
    ENDING(fault_named(CHANGE, name), real(name, other))
}

int link(const char *name, const char *other) {
    REAL(int, "link", const char *, const char *);
    ENDING(fault_named(CHANGE, other), real(name, other))
}

/* Only what may make a file is a change of files. */
#define OPENING(name)                                                        \
    REAL(int, name, const char *, int, ...);                                 \
    mode_t access = 0;                                                       \
    if (flags & O_CREAT) {                                                   \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        access = va_arg(rest, mode_t);                                       \
        va_end(rest);                                                        \
    }                                                                        \
    ENDING(flags & O_CREAT ? fault_named(CHANGE, file) : NOTHING, real(file, flags, access))

int open(const char *file, int flags, ...) { OPENING("open") }

int open64(const char *file, int flags, ...) { OPENING("open64") }
