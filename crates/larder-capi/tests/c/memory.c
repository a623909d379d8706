/* The memory of rows is the system's again within ten seconds after they are gone, although another
 * thread frees it. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <time.h>
#include <unistd.h>

enum { ALL = 80000000, SLACK = 20 << 20 };

static long resident(void) {
    long size, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void fill(larder_table *table, larder_terms *t, size_t len) {
    uint8_t *bytes = malloc(len);
    memset(bytes, 7, len);
    for (int64_t i = 0; i < (int64_t)(ALL / len); i++) {
        larder_terms_clear(t);
        OK(larder_push_tuple(t, 2));
        OK(larder_push_int(t, i));
        OK(larder_push_binary(t, bytes, len));
        OK(larder_insert(table, larder_terms_get(t, 0)));
    }
    free(bytes);
}

int main(void) {
    static const size_t sizes[] = {100, 1000, 5000, 100000, 10000000};
    larder *world = larder_new();
    larder_terms *t = larder_terms_new();
    long before = resident();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        larder_table *table;
        OK(larder_table_new(world, "rows", NULL, &table));
        fill(table, t, sizes[i]);
        CHECK(resident() > before + 2 * SLACK);
        OK(larder_table_drop(table));
        larder_table_free(table);
        larder_terms_clear(t);
        int tries = 100;
        const struct timespec tenth = {.tv_nsec = 100000000};
        while (resident() > before + SLACK && --tries) nanosleep(&tenth, NULL);
        CHECK(tries);
    }
    larder_terms_free(t);
    larder_free(world);
    puts("ok");
    return 0;
}
