/* Everything is made, used and given up: then nothing is left. `scripts/memcheck.sh` and the test
 * of the packages run it under valgrind with --leak-check=full. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROWS = 2000 };

static larder *world;
static larder_table *shared;

static bool count(void *data, const larder_change *change) {
    if (change->event != LARDER_EVENT_GONE) ++*(int *)data;
    return true;
}

static void *follow(void *data) {
    int seen = 0;
    OK(larder_feed_each(data, count, &seen));
    CHECK(seen > 0);
    return NULL;
}

static void *work(void *data) {
    int64_t first = (int64_t)(intptr_t)data * ROWS;
    larder_terms *t = larder_terms_new(), *out = larder_terms_new();
    for (int64_t i = 0; i < ROWS; i++) {
        char text[300];
        snprintf(text, sizeof text, "%0*d", i % 5 ? 20 : 250, (int)i);
        OK(larder_put_str(shared, larder_key_i64(first + i), text));
        if (i % 3 == 0) OK(larder_remove(shared, larder_key_i64(first + i / 2)) > LARDER_NONE ? LARDER_PANIC : LARDER_OK);
        OK(larder_add_i64(shared, larder_key_str("hits"), 1, NULL));
    }
    ENDS(LARDER_BAD_TERM, larder_push_text(t, "{a, 1"));
    OK(larder_push_tuple(t, 3)); /* Freed while it is half pushed. */
    larder_terms_free(t), larder_terms_free(out);
    return NULL;
}

static void tables(int kind, const char *structure) {
    larder_options options = {.size = sizeof options, .kind = kind, .structure = structure, .named = true};
    larder_table *table = NULL, *again = NULL, *loaded = NULL;
    OK(larder_table_new(world, "named", &options, &table));
    OK(larder_table_find(world, "named", &again));
    larder_terms *t = larder_terms_new(), *out = larder_terms_new();
    for (int i = 0; i < ROWS; i++) {
        char text[400];
        snprintf(text, sizeof text, "{{key, %d}, <<\"%0*d\">>, [a, #{b => %d}], 123456789012345678901234567890}", i, i % 7 ? 9 : 300, i, i);
        OK(larder_insert(table, term(t, text)));
    }
    larder_rows *rows = NULL;
    OK(larder_each(table, false, &rows));
    OK(larder_rows_next(rows, 10, out)); /* Given up before its end. */
    OK(larder_select_delete(table, "[{{{key,'$1'},'_','_','_'},[{'<','$1',1000}],[true]}]", NULL));
    OK(larder_take(table, term(t, "{key, 1500}"), out));
    OK(larder_info(table, out));
    OK(larder_table_save(table, "named.larder"));
    OK(larder_table_drop(table));
    OK(larder_table_load(world, "named.larder", &loaded));
    larder_rows_free(rows);
    larder_table_free(table), larder_table_free(again), larder_table_free(loaded);
    OK(larder_table_find(world, "named", &again));
    OK(larder_table_drop(again));
    larder_table_free(again);
    larder_terms_free(t), larder_terms_free(out);
}

static void versions(void) {
    larder_table *table = NULL, *before = NULL, *after = NULL;
    larder_feed *feed = NULL, *followed = NULL;
    larder_prepared *prepared = NULL;
    larder_transaction *transaction = NULL;
    larder_terms *t = larder_terms_new(), *out = larder_terms_new();
    OK(larder_table_new(world, "versions", NULL, &table));
    OK(larder_add_index(table, "value", 2, 0));
    OK(larder_subscribe(table, NULL, 100, &before, &feed));
    OK(larder_subscribe(table, NULL, 0, NULL, &followed));
    pthread_t follower;
    CHECK(pthread_create(&follower, NULL, follow, followed) == 0);
    for (int i = 0; i < ROWS; i++) OK(larder_put_i64(table, larder_key_i64(i % 100), i));
    const larder_change *change = NULL;
    OK(larder_feed_next(feed, 1000, &change)); /* The rest is never asked for. */
    const larder_table *of = table;
    OK(larder_snapshot(&of, 1, &after));
    OK(larder_diff(before, after, out));
    OK(larder_index_lookup(table, "value", term(t, "1999"), out));
    OK(larder_prepare("[{{'$1',{bind,1}},[],['$1']}]", &prepared));
    larder_rows *rows = NULL;
    OK(larder_select_prepared(table, prepared, t, false, &rows));
    OK(larder_begin(&of, 1, &transaction));
    OK(larder_put_i64(larder_transaction_table(transaction, 0), larder_key_i64(1), 2));
    larder_transaction_free(transaction); /* Without a commit. */
    OK(larder_begin(&of, 1, &transaction));
    OK(larder_put_i64(larder_transaction_table(transaction, 0), larder_key_i64(1), 2));
    OK(larder_commit(transaction));
    larder_operations *list = larder_operations_new();
    OK(larder_op_insert(list, table, term(t, "{a, b}")));
    OK(larder_operations_commit(list, NULL));
    larder_operations_free(list);
    larder_transaction_free(transaction);
    larder_prepared_free(prepared);
    larder_rows_free(rows);
    OK(larder_table_drop(table));
    CHECK(pthread_join(follower, NULL) == 0);
    larder_feed_free(feed), larder_feed_free(followed);
    larder_table_free(before), larder_table_free(after), larder_table_free(table);
    larder_terms_free(t), larder_terms_free(out);
}

int main(void) {
    world = larder_new();
    OK(larder_table_new(world, "shared", NULL, &shared));
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    tables(LARDER_SET, NULL);
    tables(LARDER_ORDERED_SET, NULL);
    tables(LARDER_DUPLICATE_BAG, NULL);
    tables(LARDER_ORDERED_SET, "catree");
    versions();
    larder_table_free(shared);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
