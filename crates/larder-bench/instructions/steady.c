/* Preloaded by scripts/instructions.sh, so that what is counted is the same each time:
 *
 *  - the seeds of hashes, which the system's random numbers give, are always the same ones;
 *  - for Larder the clock goes at a hundredth of its speed, because callgrind runs programs at
 *    about that: otherwise the time slices of long operations would end earlier than they do,
 *    at a place that depends on what else the machine does. Its background thread, which takes
 *    work off the callers that are counted, sleeps so much longer. The emulator's clock stays. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define SLOWER 100

ssize_t getrandom(void *place, size_t size, unsigned flags)
{
    (void)flags;
    memset(place, 0x5a, size);
    return size;
}

static int is_larder(void *code)
{
    Dl_info info;
    return dladdr(code, &info) && info.dli_fname &&
           (strstr(info.dli_fname, "larder_nif.so") || strstr(info.dli_fname, "/instructions"));
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int result = syscall(SYS_clock_gettime, clock, at);
    if (result == 0 && is_larder(__builtin_return_address(0))) {
        long long slow = (at->tv_sec * 1000000000LL + at->tv_nsec) / SLOWER;
        at->tv_sec = slow / 1000000000LL;
        at->tv_nsec = slow % 1000000000LL;
    }
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
    struct timespec time = *wanted;
    if (!(flags & TIMER_ABSTIME) && is_larder(__builtin_return_address(0))) {
        long long slow = (wanted->tv_sec * 1000000000LL + wanted->tv_nsec) * SLOWER;
        time.tv_sec = slow / 1000000000LL;
        time.tv_nsec = slow % 1000000000LL;
    }
    return syscall(SYS_clock_nanosleep, clock, flags, &time, left) == 0 ? 0 : errno;
}
