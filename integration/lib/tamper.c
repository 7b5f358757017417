/* Preloaded into a server under test: puts its wall clock forward or back, makes its disk slow, and kills it between the
 * steps of writing a file.
 *
 * TAMPER_CONTROL names a file of five 64-bit integers that is mapped, so that the test changes them while the server
 * runs: offset of CLOCK_REALTIME in ms, delay of every sync in ms, number of syncs so far, delay of every look into a
 * directory in ms, and after how many steps the process dies: of opening to write, syncing and renaming a file with
 * TAMPER_FILES in its path, before the last of them; 0 for never. See tamper.py.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t offset_ms;
    volatile int64_t sync_delay_ms;
    int64_t syncs;
    volatile int64_t look_delay_ms;
    int64_t steps_left;
};

static struct control *control;

__attribute__((constructor)) static void map_control(void) {
    const char *path = getenv("TAMPER_CONTROL");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void *found = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED) {
        control = found;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanoseconds = now->tv_nsec + control->offset_ms % 1000 * 1000000;
        now->tv_sec += control->offset_ms / 1000 + (nanoseconds >= 1000000000) - (nanoseconds < 0);
        now->tv_nsec = (nanoseconds + 1000000000) % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) {
        *result = now.tv_sec;
    }
    return now.tv_sec;
}

static void sleep_ms(int64_t delay) {
    if (delay > 0) {
        struct timespec wait = {delay / 1000, delay % 1000 * 1000000};
        nanosleep(&wait, NULL);
    }
}

static void linger(void) {
    if (!control) {
        return;
    }
    __atomic_fetch_add(&control->syncs, 1, __ATOMIC_RELAXED);
    sleep_ms(control->sync_delay_ms);
}

/* What the system says about processes is on no disk. */
DIR *opendir(const char *name) {
    static DIR *(*next)(const char *);
    if (!next) {
        next = (DIR *(*)(const char *))dlsym(RTLD_NEXT, "opendir");
    }
    if (control && strncmp(name, "/proc/", 6) != 0) {
        sleep_ms(control->look_delay_ms);
    }
    return next(name);
}

static void step(const char *path) {
    const char *watched = getenv("TAMPER_FILES");
    if (!control || control->steps_left <= 0 || !watched || !strstr(path, watched)) {
        return;
    }
    if (__atomic_sub_fetch(&control->steps_left, 1, __ATOMIC_RELAXED) == 0) {
        kill(getpid(), SIGKILL);
    }
}

static void step_of(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = control && control->steps_left > 0 ? readlink(link, path, sizeof path - 1) : -1;
    if (length > 0) {
        path[length] = 0;
        step(path);
    }
}

static int open_with(const char *path, int flags, mode_t mode) {
    if ((flags & O_ACCMODE) != O_RDONLY) {
        step(path);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with(path, flags, mode);
}

int rename(const char *from, const char *to) {
    step(from);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int fsync(int file) {
    step_of(file);
    linger();
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    linger();
    return (int)syscall(SYS_fdatasync, file);
}
