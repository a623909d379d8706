/* Preloaded by scripts/instructions.sh, so that what is counted is the same each time:
 *
 *  - The seeds of hashes, which the system's random numbers give, are always the same ones.
 *  - Larder's own threads, the reaper and the one that touches pages ahead, are started and do
 *    nothing. Otherwise they would free and allocate at moments that depend on what else the
 *    machine does, take work off the callers that are counted, and leave the allocators in
 *    another state each time. A counted round takes about a millisecond of the real program:
 *    hardly longer than the reaper's naps.
 *  - For Larder the clock goes on by a fixed step with each look at it: the time slices of long
 *    operations end by the work that was done. The emulator's clock stays. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Larder looks at the clock every 32 rows of a scan, which take about so long. */
#define NANOSECONDS_A_LOOK 5000

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
    static long long looks;
    if (!is_larder(__builtin_return_address(0)))
        return syscall(SYS_clock_gettime, clock, at);
    long long now = 1000000000LL + NANOSECONDS_A_LOOK * __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
    at->tv_sec = now / 1000000000LL;
    at->tv_nsec = now % 1000000000LL;
    return 0;
}

static void *idle(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, is_larder(__builtin_return_address(0)) ? idle : run, argument);
}
