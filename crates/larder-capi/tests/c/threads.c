/* Many threads, one table: counters lose nothing, takers share nothing, and each thread has its own
 * message. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, KEYS = 64, ROUNDS = 20000 };
static larder_table *counters, *tickets;

static void *work(void *arg) {
    int64_t seed = (int64_t)(intptr_t)arg, taken = 0;
    larder_terms *row = larder_terms_new(), *key = larder_terms_new(), *out = larder_terms_new();
    OK(larder_push_text(row, "{any, 0}"));
    CHECK(strcmp(larder_message(), "") == 0);
    for (int64_t i = 0; i < ROUNDS; i++) {
        larder_terms_clear(key);
        OK(larder_push_int(key, (i * 7 + seed) % KEYS));
        OK(larder_add(counters, larder_terms_get(key, 0), 2, 1, larder_terms_get(row, 0), NULL));
        larder_terms_clear(key);
        OK(larder_push_int(key, i));
        taken += larder_take(tickets, larder_terms_get(key, 0), out) == LARDER_OK;
    }
    ENDS(LARDER_BAD_TERM, larder_push_text(row, "{"));
    CHECK(strcmp(larder_message(), "") != 0);
    larder_terms_free(row), larder_terms_free(key), larder_terms_free(out);
    return (void *)(intptr_t)taken;
}

int main(void) {
    larder *world = larder_new();
    larder_options options = {.size = sizeof(larder_options), .kind = LARDER_ORDERED_SET};
    OK(larder_table_new(world, "counters", NULL, &counters));
    OK(larder_table_new(world, "tickets", &options, &tickets));
    larder_terms *t = larder_terms_new();
    for (int64_t i = 0; i < ROUNDS; i++) {
        OK(larder_push_tuple(t, 1));
        OK(larder_push_int(t, i));
    }
    OK(larder_insert_all(tickets, t));

    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    int64_t taken = 0, sum = 0, n;
    for (int i = 0; i < THREADS; i++) {
        void *mine;
        CHECK(pthread_join(threads[i], &mine) == 0);
        taken += (intptr_t)mine;
    }
    CHECK(taken == ROUNDS && larder_size(tickets) == 0 && larder_size(counters) == KEYS);
    larder_rows *rows;
    OK(larder_each(counters, false, &rows));
    OK(larder_rows_next(rows, KEYS + 1, t));
    for (size_t i = 0; i < KEYS; i++) {
        CHECK(larder_view_int(larder_view_element(larder_terms_get(t, i), 1), &n));
        sum += n;
    }
    CHECK(sum == (int64_t)THREADS * ROUNDS);
    larder_rows_free(rows);
    larder_terms_free(t);
    larder_table_free(counters), larder_table_free(tickets);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
