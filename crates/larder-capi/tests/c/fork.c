/* After larder_quiesce a child of fork goes on with its copy of the tables. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 20000 };

/* What has the library begin its threads. */
static void work(larder *world, int64_t more) {
    larder_table *table = NULL;
    OK(larder_table_new(world, "work", NULL, &table));
    for (int64_t i = 0; i < ROWS; i++) OK(larder_put_i64(table, larder_key_i64(i), i + more));
    OK(larder_table_drop(table));
    larder_table_free(table);
}

int main(void) {
    larder *world = larder_new();
    larder_table *kept = NULL;
    OK(larder_table_new(world, "kept", NULL, &kept));
    OK(larder_put_i64(kept, larder_key_str("n"), 1));
    for (int round = 0; round < 3; round++) {
        work(world, round);
        OK(larder_quiesce(60000));
        pid_t child = fork();
        CHECK(child >= 0);
        work(world, 1000);
        int64_t n = 0;
        OK(larder_add_i64(kept, larder_key_str("n"), 1, &n));
        CHECK(n == round + 2);
        if (child == 0) {
            larder_table_free(kept);
            larder_free(world);
            OK(larder_quiesce(60000));
            _exit(0);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    larder_table_free(kept);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
