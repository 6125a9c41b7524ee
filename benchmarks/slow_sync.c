/* A disk whose flush takes SYNC_MICROSECONDS, by LD_PRELOAD: nothing is flushed. */

#include <stdlib.h>
#include <unistd.h>

static int wait_for_disk(void) {
    const char *microseconds = getenv("SYNC_MICROSECONDS");
    usleep(microseconds ? (useconds_t)atol(microseconds) : 5000);
    return 0;
}

int fsync(int file) {
    (void)file;
    return wait_for_disk();
}

int fdatasync(int file) {
    (void)file;
    return wait_for_disk();
}
