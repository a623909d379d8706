/* Rows that expire, tables of so many rows at most. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <time.h>

static larder *world;
static larder_terms *t;

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); }

static void expiry(void) {
    larder_options options = {.size = sizeof options, .ttl_ms = 3600000};
    larder_table *table = NULL;
    larder_feed *feed = NULL;
    OK(larder_table_new(world, "sessions", &options, &table));
    OK(larder_subscribe(table, NULL, 0, NULL, &feed));
    OK(larder_insert(table, term(t, "{ann, 1}")));
    int64_t left = 7;
    OK(larder_time_left(table, term(t, "ann"), &left));
    CHECK(left > 3500000 && left <= 3600000);
    OK(larder_insert_for(table, term(t, "{bob, 1}"), -1));
    OK(larder_time_left(table, term(t, "bob"), &left));
    CHECK(left == -1);
    ENDS(LARDER_NONE, larder_time_left(table, term(t, "eve"), &left));
    OK(larder_expire(table, term(t, "ann"), 1));
    ENDS(LARDER_NONE, larder_expire(table, term(t, "eve"), 1));
    for (int tries = 0; larder_contains(table, term(t, "ann")) == LARDER_OK && tries < 4000; tries++) nap();
    ENDS(LARDER_NONE, larder_contains(table, term(t, "ann")));
    /* The library's thread removes it, which the feed tells. */
    const larder_change *change = NULL;
    do OK(larder_feed_next(feed, 20000, &change));
    while (change->event == LARDER_EVENT_INSERT);
    CHECK(change->event == LARDER_EVENT_EXPIRE && reads(change->before, "{ann,1}"));
    /* The event comes with the removal; the row is counted a moment later. */
    for (int tries = 0; larder_size(table) != 1 && tries < 4000; tries++) nap();
    CHECK(larder_size(table) == 1);
    larder_feed_free(feed);
    larder_table_free(table);
}

static void limits(void) {
    larder_options options = {.size = sizeof options, .max_size = 10};
    larder_table *table = NULL;
    OK(larder_table_new(world, "ten", &options, &table));
    for (int i = 0; i < 10; i++) OK(larder_put_i64(table, larder_key_i64(i), i));
    ENDS(LARDER_FULL, larder_put_i64(table, larder_key_i64(10), 10));
    CHECK(told("table ten") && larder_size(table) == 10);
    larder_table_free(table);

    for (int evict = LARDER_EVICT_LRU; evict <= LARDER_EVICT_SIEVE; evict++) {
        options.evict = evict;
        OK(larder_table_new(world, "cache", &options, &table));
        for (int i = 0; i < 1000; i++) OK(larder_put_i64(table, larder_key_i64(i), i));
        for (int tries = 0; larder_size(table) > 10 && tries < 4000; tries++) nap();
        CHECK(larder_size(table) <= 10);
        larder_table_free(table);
    }

    options = (larder_options){.size = sizeof options, .max_memory = 1 << 16, .evict = LARDER_EVICT_LRU};
    OK(larder_table_new(world, "bytes", &options, &table));
    for (int i = 0; i < 10000; i++) OK(larder_put_str(table, larder_key_i64(i), "a text of some length"));
    for (int tries = 0; larder_size(table) > 2000 && tries < 4000; tries++) nap();
    CHECK(larder_size(table) <= 2000);
    larder_table_free(table);
}

static void misused(void) {
    larder_table *table = NULL;
    larder_options options = {.size = sizeof options, .evict = LARDER_EVICT_LRU};
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    CHECK(told("max_size"));
    options = (larder_options){.size = sizeof options, .max_size = 1, .evict = 9};
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    CHECK(told("evict is 9"));
    options = (larder_options){.size = sizeof options, .kind = LARDER_BAG, .idle_ms = 1};
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    CHECK(told("bounds") && table == NULL);
    OK(larder_table_new(world, "t", NULL, &table));
    ENDS(LARDER_TABLE_TYPE, larder_insert_for(table, term(t, "{a, 1}"), 5));
    CHECK(told("no bounds") && larder_size(table) == 0);
    ENDS(LARDER_TABLE_TYPE, larder_expire(table, term(t, "a"), 5));
    ENDS(LARDER_TABLE_TYPE, larder_time_left(table, term(t, "a"), NULL));
    ENDS(LARDER_BAD_TERM, larder_insert_for(table, NOTHING, 5));
    ENDS(LARDER_BAD_ARGUMENT, larder_expire(NULL, term(t, "a"), 5));
    larder_table_free(table);
}

int main(void) {
    world = larder_new();
    t = larder_terms_new();
    expiry();
    limits();
    misused();
    larder_terms_free(t);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
