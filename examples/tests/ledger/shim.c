/* A library that is loaded before the C library of a child process. It simulates power cuts, kills
 * the process at a chosen call, and shifts the wall clock that the process sees.
 *
 * SHIM_FILE   The calls on files whose path contains this text are counted.
 * SHIM_KILL   "write:N", "sync:N" or "synced:N" kills the process before its Nth write, before its Nth
 *             sync, or after it. "fail:N" lets its Nth sync fail.
 * SHIM_POWER  Turns the kill into a power cut. "all" undoes every write since the last sync of its file.
 *             A number is a seed, and undoes each of these writes or keeps it.
 * SHIM_CLOCK  A file of 8 bytes with the number of microseconds to add to the wall clock. The parent may
 *             change it at any time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 1024 };

/* A write since the last sync of its file: the bytes that it has replaced, with zeros behind the end of
 * the file, and the length of the file before it. */
struct change {
    struct change *earlier;
    off_t at, length;
    size_t count;
    char bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct change *changes[FILES];
static char counted[FILES];
static long writes, syncs;
static int64_t *clock_shift;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void map_clock(void) {
    const char *path = getenv("SHIM_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        void *map = mmap(NULL, sizeof *clock_shift, PROT_READ, MAP_SHARED, file, 0);
        clock_shift = map == MAP_FAILED ? NULL : map;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int result = real(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && clock_shift) {
        int64_t nanos = time->tv_sec * 1000000000LL + time->tv_nsec + *clock_shift * 1000;
        time->tv_sec = nanos / 1000000000;
        time->tv_nsec = nanos % 1000000000;
    }
    return result;
}

static int is_chosen(const char *kind, long number) {
    const char *kill = getenv("SHIM_KILL");
    size_t length = strlen(kind);
    return kill && !strncmp(kill, kind, length) && kill[length] == ':' && atol(kill + length + 1) == number;
}

/* Undoes what was not synced, as a power cut may do. */
static void cut_power(const char *power) {
    int all = !strcmp(power, "all");
    unsigned seed = atoi(power);
    for (int file = 0; file < FILES; file++) {
        for (struct change *change = changes[file]; change; change = change->earlier) {
            if (!all && rand_r(&seed) & 1) continue;
            REAL(pwrite)(file, change->bytes, change->count, change->at);
            if (all) REAL(ftruncate)(file, change->length);
        }
    }
}

static void die(void) {
    const char *power = getenv("SHIM_POWER");
    if (power) cut_power(power);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Remembers the bytes that a write of `count` bytes replaces. The caller holds the lock. */
static void remember(int file, off_t at, size_t count) {
    struct stat stat;
    struct change *change = calloc(1, sizeof *change + count);
    if (!change || fstat(file, &stat)) abort();
    if (count) REAL(pread)(file, change->bytes, count, at);
    change->earlier = changes[file];
    change->at = at;
    change->length = stat.st_size;
    change->count = count;
    changes[file] = change;
}

static int counts(int file) {
    return file >= 0 && file < FILES && counted[file];
}

static void before_write(int file, off_t at, size_t count) {
    if (is_chosen("write", ++writes)) die();
    if (getenv("SHIM_POWER")) remember(file, at, count);
}

static ssize_t write_at(int file, const void *bytes, size_t count, off_t at) {
    static __typeof__(&pwrite) real;
    if (!real) real = REAL(pwrite);
    if (!counts(file)) return real(file, bytes, count, at);
    pthread_mutex_lock(&lock);
    before_write(file, at, count);
    ssize_t result = real(file, bytes, count, at);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) { return write_at(file, bytes, count, at); }
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) { return write_at(file, bytes, count, at); }

ssize_t write(int file, const void *bytes, size_t count) {
    static __typeof__(&write) real;
    if (!real) real = REAL(write);
    if (!counts(file)) return real(file, bytes, count);
    pthread_mutex_lock(&lock);
    before_write(file, lseek(file, 0, SEEK_CUR), count);
    ssize_t result = real(file, bytes, count);
    pthread_mutex_unlock(&lock);
    return result;
}

static int truncate_to(int file, off_t length) {
    static __typeof__(&ftruncate) real;
    if (!real) real = REAL(ftruncate);
    if (!counts(file)) return real(file, length);
    pthread_mutex_lock(&lock);
    struct stat stat;
    off_t cut = fstat(file, &stat) == 0 && stat.st_size > length ? stat.st_size - length : 0;
    before_write(file, length, cut);
    int result = real(file, length);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int file, off_t length) { return truncate_to(file, length); }
int ftruncate64(int file, off64_t length) { return truncate_to(file, length); }

static int sync_file(int file, __typeof__(&fsync) real) {
    if (!counts(file)) return real(file);
    pthread_mutex_lock(&lock);
    if (is_chosen("sync", ++syncs)) die();
    int fails = is_chosen("fail", syncs);
    int result = fails ? -1 : real(file);
    if (fails) errno = EIO;
    while (changes[file] && result == 0) {
        struct change *change = changes[file];
        changes[file] = change->earlier;
        free(change);
    }
    if (is_chosen("synced", syncs)) die();
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int file) { return sync_file(file, REAL(fsync)); }
int fdatasync(int file) { return sync_file(file, REAL(fdatasync)); }

static int note_open(int file, const char *path) {
    const char *part = getenv("SHIM_FILE");
    if (file >= 0 && file < FILES) {
        counted[file] = part && strstr(path, part) != NULL;
        changes[file] = NULL;
    }
    return file;
}

/* A shift of the arguments that all forms of open have in common. */
#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...) {                       \
        va_list arguments;                                              \
        va_start(arguments, flags);                                     \
        mode_t mode = va_arg(arguments, mode_t);                        \
        va_end(arguments);                                              \
        return note_open(REAL(name)(path, flags, mode), path);          \
    }
OPEN(open)
OPEN(open64)
