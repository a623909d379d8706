/* Feeds: polled, waited for, and by a function. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <time.h>

static larder *world;
static larder_terms *t;

static const larder_change *next(larder_feed *feed, larder_event event) {
    /* The library writes to it, and doesn't read it. Nor is a change lost that has no place. */
    const larder_change *change;
    ENDS(LARDER_BAD_ARGUMENT, larder_feed_next(feed, 0, NULL));
    OK(larder_feed_next(feed, 10000, &change));
    CHECK(change != NULL && change->event == event);
    return change;
}

static void polled(void) {
    larder_table *stock = NULL, *before = NULL;
    larder_feed *feed = NULL, *late = NULL;
    OK(larder_table_new(world, "stock", NULL, &stock));
    OK(larder_insert(stock, term(t, "{apple, 3}")));
    OK(larder_subscribe(stock, NULL, 0, &before, &feed));
    const larder_change *change = (const larder_change *)t;
    ENDS(LARDER_NONE, larder_feed_next(feed, 0, &change));
    CHECK(change == NULL);
    ENDS(LARDER_NONE, larder_feed_next(feed, 5, &change));

    OK(larder_add(stock, term(t, "apple"), 2, 4, NOTHING, NULL));
    OK(larder_delete(stock, term(t, "apple"), NULL));
    larder_terms_clear(t);
    OK(larder_push_text(t, "{pear, 1}"));
    OK(larder_push_text(t, "{plum, 2}"));
    OK(larder_insert_all(stock, t));
    OK(larder_clear(stock, NULL));

    change = next(feed, LARDER_EVENT_REPLACE);
    uint64_t seq = change->seq;
    CHECK(reads(change->before, "{apple,3}") && reads(change->after, "{apple,7}") && !change->more);
    change = next(feed, LARDER_EVENT_DELETE);
    CHECK(reads(change->before, "{apple,7}") && change->after.bytes == NULL && change->seq > seq);
    /* Two rows of one commit, in some order. */
    change = next(feed, LARDER_EVENT_INSERT);
    CHECK(change->more && change->before.bytes == NULL && change->after.bytes != NULL);
    seq = change->seq;
    change = next(feed, LARDER_EVENT_INSERT);
    CHECK(!change->more && change->seq == seq);
    next(feed, LARDER_EVENT_CLEAR);
    CHECK(larder_size(before) == 1 && larder_size(stock) == 0);

    /* A filter, and a limit. */
    OK(larder_subscribe(stock, "[{{'_','$1'},[{'>','$1',10}],['$_']}]", 3, NULL, &late));
    OK(larder_insert(stock, term(t, "{few, 1}")));
    OK(larder_insert(stock, term(t, "{many, 100}")));
    change = next(late, LARDER_EVENT_INSERT);
    CHECK(reads(change->after, "{many,100}"));
    for (int i = 0; i < 100; i++) OK(larder_insert(stock, term(t, i % 2 ? "{many, 11}" : "{many, 12}")));
    uint64_t lost = 0, got = 0;
    while (larder_feed_next(late, 0, &change) == LARDER_OK) {
        lost += change->event == LARDER_EVENT_OVERFLOW ? change->lost : 0;
        got += change->event == LARDER_EVENT_REPLACE;
    }
    CHECK(lost > 0 && got <= 3 && lost + got == 100);

    /* The feed stays when its handles and its snapshot are given up, and ends with the table. */
    larder_table_free(before);
    OK(larder_table_drop(stock));
    larder_table_free(stock);
    do OK(larder_feed_next(feed, 10000, &change));
    while (change->event != LARDER_EVENT_GONE);
    ENDS(LARDER_NO_TABLE, larder_feed_next(feed, 0, &change));
    CHECK(change == NULL);
    larder_feed_free(feed);
    larder_feed_free(late);
}

struct follower {
    larder_feed *feed;
    int64_t sum;
    int seen;
    int most;
};

static bool follow(void *data, const larder_change *change) {
    struct follower *own = data;
    int64_t n = 0;
    if (change->event == LARDER_EVENT_GONE) return true;
    CHECK(larder_view_int(larder_view_element(change->after, 1), &n));
    own->sum += n;
    return ++own->seen < own->most;
}

static void *follows(void *data) {
    struct follower *own = data;
    OK(larder_feed_each(own->feed, follow, own));
    return NULL;
}

static void by_a_function(void) {
    larder_table *table = NULL;
    OK(larder_table_new(world, "followed", NULL, &table));
    struct follower few = {.most = 10}, all = {.most = 1000000};
    OK(larder_subscribe(table, NULL, 0, NULL, &few.feed));
    OK(larder_subscribe(table, NULL, 0, NULL, &all.feed));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, follows, &all) == 0);
    for (int i = 0; i < 1000; i++) {
        OK(larder_put_i64(table, larder_key_i64(i), i));
        if (i % 100 == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    OK(larder_feed_each(few.feed, follow, &few));
    CHECK(few.seen == 10 && few.sum == 45);
    OK(larder_table_drop(table));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(all.seen == 1000 && all.sum == 499500);
    ENDS(LARDER_NO_TABLE, larder_feed_each(all.feed, follow, &all));
    larder_feed_free(few.feed), larder_feed_free(all.feed), larder_feed_free(NULL);
    larder_table_free(table);
}

static void *frees_soon(void *own) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    larder_table_free(own);
    return NULL;
}

// A feed doesn't keep its table: it ends with the last handle of the table and of its world.
static void ends_with_the_handles(void) {
    larder *own = larder_new();
    larder_table *table = NULL, *snapshot = NULL;
    larder_feed *feed = NULL, *late = NULL;
    const larder_change *change = NULL;
    OK(larder_table_new(own, "followed", NULL, &table));
    OK(larder_subscribe(table, NULL, 0, NULL, &feed));
    OK(larder_subscribe(table, NULL, 0, &snapshot, &late));
    OK(larder_put_i64(table, larder_key_i64(1), 1));
    larder_free(own);
    larder_table_free(snapshot);
    OK(larder_feed_next(feed, 0, &change));
    CHECK(change->event == LARDER_EVENT_INSERT);
    ENDS(LARDER_NONE, larder_feed_next(feed, 0, &change));
    // One reader waits while the last handle is freed. The other one reads what was left to it.
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, frees_soon, table) == 0);
    OK(larder_feed_next(feed, 60000, &change));
    CHECK(change->event == LARDER_EVENT_GONE);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(larder_feed_next(late, 0, &change));
    CHECK(change->event == LARDER_EVENT_INSERT);
    CHECK(larder_view_size(change->after) == 2);
    OK(larder_feed_next(late, 0, &change));
    CHECK(change->event == LARDER_EVENT_GONE);
    ENDS(LARDER_NO_TABLE, larder_feed_next(late, -1, &change));
    larder_feed_free(feed), larder_feed_free(late);
}

static void misused(void) {
    larder_table *table = NULL, *of_study = NULL;
    larder_feed *feed = NULL;
    const larder_change *change;
    OK(larder_table_new(world, "t", NULL, &table));
    larder_options study = {.size = sizeof study, .kind = LARDER_ORDERED_SET, .structure = "catree"};
    OK(larder_table_new(world, "study", &study, &of_study));
    ENDS(LARDER_TABLE_TYPE, larder_subscribe(of_study, NULL, 0, NULL, &feed));
    ENDS(LARDER_BAD_SPEC, larder_subscribe(table, "[", 0, NULL, &feed));
    ENDS(LARDER_BAD_ARGUMENT, larder_subscribe(table, NULL, 0, NULL, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_subscribe(NULL, NULL, 0, NULL, &feed));
    ENDS(LARDER_BAD_ARGUMENT, larder_feed_next(NULL, 0, &change));
    CHECK(feed == NULL);
    OK(larder_subscribe(table, NULL, 0, NULL, &feed));
    ENDS(LARDER_BAD_ARGUMENT, larder_feed_next(feed, 0, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_feed_each(feed, NULL, NULL));
    larder_feed_free(feed);
    larder_table_free(table), larder_table_free(of_study);
}

int main(void) {
    world = larder_new();
    t = larder_terms_new();
    polled();
    by_a_function();
    ends_with_the_handles();
    misused();
    larder_terms_free(t);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
