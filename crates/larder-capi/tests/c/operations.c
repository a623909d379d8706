/* Every operation on tables, of every kind of table. */
#include "check.h"

static larder *world;
static larder_terms *t, *u, *out;

static larder_table *made(const char *name, int kind, const char *structure) {
    larder_options options = {.size = sizeof(larder_options), .kind = kind, .structure = structure};
    larder_table *table = NULL;
    OK(larder_table_new(world, name, &options, &table));
    CHECK(table != NULL && larder_size(table) == 0);
    return table;
}

static void ended(larder_table *table) {
    OK(larder_table_drop(table));
    ENDS(LARDER_NO_TABLE, larder_insert(table, term(t, "{1, 2}")));
    ENDS(LARDER_NO_TABLE, larder_table_drop(table));
    CHECK(larder_size(table) == 0 && larder_memory(table) == 0);
    larder_table_free(table);
}

static void by_key(int kind, const char *structure) {
    int many = kind == LARDER_BAG || kind == LARDER_DUPLICATE_BAG;
    larder_table *table = made("by_key", kind, structure);
    OK(larder_insert(table, term(t, "{a, 1}")));
    OK(larder_insert(table, term(t, "{a, 2}")));
    OK(larder_insert(table, term(t, "{a, 2}")));
    size_t rows = kind == LARDER_DUPLICATE_BAG ? 3 : many ? 2 : 1;
    CHECK(larder_size(table) == rows && larder_memory(table) > 0);
    ENDS(LARDER_NONE, larder_insert_new(table, term(t, "{a, 3}")));
    OK(larder_insert_new(table, term(t, "{b, 3}")));

    OK(larder_lookup(table, term(t, "a"), out));
    CHECK(larder_terms_count(out) == rows && reads(larder_terms_get(out, rows - 1), "{a,2}"));
    ENDS(LARDER_NONE, larder_lookup(table, term(t, "c"), out));
    CHECK(larder_terms_count(out) == 0);
    size_t both[] = {2, 1}, beyond[] = {1, 3}, zero[] = {0};
    OK(larder_lookup_elements(table, term(t, "a"), both, 2, out));
    CHECK(larder_terms_count(out) == 2 * rows);
    CHECK(reads(larder_terms_get(out, 2 * rows - 2), "2") && reads(larder_terms_get(out, 1), "a"));
    ENDS(LARDER_NONE, larder_lookup_elements(table, term(t, "c"), both, 2, out));
    CHECK(larder_terms_count(out) == 0);
    OK(larder_lookup_elements(table, term(t, "a"), NULL, 0, out));
    CHECK(larder_terms_count(out) == 0);
    ENDS(LARDER_NONE, larder_lookup_elements(table, term(t, "c"), NULL, 0, out));
    ENDS(LARDER_BAD_ROW, larder_lookup_elements(table, term(t, "a"), beyond, 2, out));
    ENDS(LARDER_BAD_ROW, larder_lookup_elements(table, term(t, "a"), zero, 1, out));
    OK(larder_contains(table, term(t, "b")));
    ENDS(LARDER_NONE, larder_contains(table, term(t, "c")));

    size_t gone = 77;
    ENDS(LARDER_NONE, larder_delete_row(table, term(t, "{a, 9}"), &gone));
    CHECK(gone == 0);
    OK(larder_delete_row(table, term(t, "{a, 2}"), &gone));
    CHECK(gone == (kind == LARDER_DUPLICATE_BAG ? 2 : 1));
    OK(larder_delete(table, term(t, "b"), NULL));
    ENDS(LARDER_NONE, larder_delete(table, term(t, "b"), &gone));
    OK(larder_insert(table, term(t, "{c, [x], #{}}")));
    /* What is taken may come in place of the key. */
    OK(larder_take(table, term(t, "c"), t));
    CHECK(larder_terms_count(t) == 1 && reads(larder_terms_get(t, 0), "{c,[x],#{}}"));
    ENDS(LARDER_NONE, larder_take(table, term(t, "c"), out));

    larder_terms_clear(u);
    for (int i = 0; i < 1000; i++) {
        OK(larder_push_tuple(u, 2));
        OK(larder_push_int(u, i));
        OK(larder_push_int(u, i * i));
    }
    OK(larder_insert_all(table, u));
    ENDS(LARDER_NONE, larder_insert_all_new(table, u));
    OK(larder_push_text(u, "no_row"));
    OK(larder_delete(table, term(t, "77"), NULL));
    size_t before = larder_size(table);
    ENDS(LARDER_BAD_ROW, larder_insert_all(table, u));
    CHECK(larder_size(table) == before);
    OK(larder_clear(table, &gone));
    CHECK(gone == before && larder_size(table) == 0);
    ended(table);
}

static void counters(void) {
    larder_table *table = made("counters", LARDER_SET, NULL);
    int64_t sum = 0;
    larder_view hits = term(t, "hits");
    ENDS(LARDER_BAD_KEY, larder_add(table, hits, 2, 1, NOTHING, &sum));
    larder_terms_clear(u);
    OK(larder_push_text(u, "{any, 40, x}"));
    OK(larder_add(table, hits, 2, 2, larder_terms_get(u, 0), &sum));
    CHECK(sum == 42);
    OK(larder_add(table, hits, 2, -50, NOTHING, NULL));
    OK(larder_lookup(table, hits, out));
    CHECK(reads(larder_terms_get(out, 0), "{hits,-8,x}"));
    ENDS(LARDER_NOT_INTEGER, larder_add(table, hits, 3, 1, NOTHING, &sum));
    ENDS(LARDER_BAD_ROW, larder_add(table, hits, 4, 1, NOTHING, &sum));
    ENDS(LARDER_BAD_ROW, larder_add(table, hits, 1, 1, NOTHING, &sum));
    OK(larder_add(table, hits, 2, INT64_MAX, NOTHING, &sum));
    CHECK(sum == INT64_MAX - 8);
    ENDS(LARDER_BIG_SUM, larder_add(table, hits, 2, INT64_MAX, NOTHING, &sum));
    CHECK(sum == INT64_MAX - 8 && strstr(larder_message(), "18446744073709551606") != NULL);
    OK(larder_update(table, hits, 2, term(u, "{now, <<\"a tuple\">>}")));
    OK(larder_lookup(table, hits, out));
    CHECK(reads(larder_terms_get(out, 0), "{hits,{now,<<\"a tuple\">>},x}"));
    ENDS(LARDER_BAD_ROW, larder_update(table, hits, 1, hits));
    ENDS(LARDER_NONE, larder_update(table, larder_terms_get(u, 0), 2, hits));
    ended(table);

    table = made("bag", LARDER_BAG, NULL);
    OK(larder_insert(table, term(t, "{1, 1}")));
    ENDS(LARDER_TABLE_TYPE, larder_add(table, term(t, "1"), 2, 1, NOTHING, &sum));
    ended(table);
}

static void steps(int kind, const char *structure) {
    larder_table *table = made("steps", kind, structure);
    ENDS(LARDER_NONE, larder_first(table, out));
    ENDS(LARDER_NONE, larder_last(table, out));
    for (int i = 0; i < 500; i++) {
        larder_terms_clear(t);
        OK(larder_push_tuple(t, 1));
        OK(larder_push_int(t, 3 * i));
        OK(larder_insert(table, larder_terms_get(t, 0)));
    }
    /* The key and what comes after it share a sequence. */
    int64_t n = 0, count = 0, total = 0, previous = -1;
    for (larder_status s = larder_first(table, t); s == LARDER_OK; s = larder_next(table, larder_terms_get(t, 0), t)) {
        CHECK(larder_view_int(larder_terms_get(t, 0), &n));
        CHECK(kind != LARDER_ORDERED_SET || n > previous);
        previous = n, total += n, count += 1;
    }
    CHECK(count == 500 && total == 3 * 500 * 499 / 2);
    if (kind == LARDER_ORDERED_SET) {
        OK(larder_next(table, term(t, "-5"), t));
        CHECK(reads(larder_terms_get(t, 0), "0"));
        OK(larder_prev(table, term(t, "100.5"), t));
        CHECK(reads(larder_terms_get(t, 0), "99"));
        OK(larder_last(table, t));
        CHECK(reads(larder_terms_get(t, 0), "1497"));
    } else {
        ENDS(LARDER_BAD_KEY, larder_next(table, term(t, "-5"), out));
    }
    ended(table);
}

static int64_t paged(larder_rows *rows, size_t most, int64_t *sum) {
    int64_t n, count = 0;
    *sum = 0;
    while (larder_rows_next(rows, most, out) == LARDER_OK) {
        CHECK(larder_terms_count(out) <= most);
        for (size_t i = 0; i < larder_terms_count(out); i++, count++) {
            CHECK(larder_view_int(larder_terms_get(out, i), &n));
            *sum += n;
        }
    }
    CHECK(larder_terms_count(out) == 0);
    ENDS(LARDER_NONE, larder_rows_next(rows, most, out));
    larder_rows_free(rows);
    return count;
}

static void queries(void) {
    larder_table *table = made("queries", LARDER_ORDERED_SET, NULL);
    larder_terms_clear(u);
    for (int i = 0; i < 1000; i++) {
        OK(larder_push_tuple(u, 2));
        OK(larder_push_int(u, i));
        OK(larder_push_int(u, i % 10));
    }
    OK(larder_insert_all(table, u));
    larder_rows *rows;
    int64_t sum;
    const char *sevens = "[{{'$1', 7}, [], ['$1']}]";
    for (size_t most = 1; most < 200; most += 33) {
        OK(larder_select(table, sevens, most % 2, &rows));
        CHECK(paged(rows, most, &sum) == 100 && sum == 7 * 100 + 10 * 99 * 100 / 2);
    }
    OK(larder_select(table, "[{{'$1','_'},[{'>','$1',100}],['$1']}]", true, &rows));
    OK(larder_rows_next(rows, 2, out));
    CHECK(reads(larder_terms_get(out, 0), "999") && reads(larder_terms_get(out, 1), "998"));
    OK(larder_rows_next(rows, 1, out));
    CHECK(reads(larder_terms_get(out, 0), "997"));
    larder_rows_free(rows);

    OK(larder_each(table, false, &rows));
    OK(larder_rows_next(rows, 5000, out));
    CHECK(larder_terms_count(out) == 1000 && reads(larder_terms_get(out, 999), "{999,9}"));
    /* A scan outlives the handle and notices that the table is gone. */
    larder_table *other = NULL;
    larder_rows *late;
    OK(larder_each(table, false, &late));

    uint64_t count = 0;
    OK(larder_select_count(table, "[{{'_',3},[],[true]}]", &count));
    CHECK(count == 100);
    OK(larder_select_replace(table, "[{{'$1',3},[],[{{'$1',three}}]}]", &count));
    CHECK(count == 100);
    OK(larder_select_delete(table, "[{{'_',three},[],[true]}]", &count));
    CHECK(count == 100 && larder_size(table) == 900);
    OK(larder_select_take(table, "[{{'$1',4},[{'<','$1',20}],[{{taken,'$1'}}]}]", out));
    CHECK(larder_terms_count(out) == 2 && larder_size(table) == 898);
    CHECK(reads(larder_terms_get(out, 0), "{taken,4}"));
    CHECK(reads(larder_terms_get(out, 1), "{taken,14}"));
    ENDS(LARDER_NONE, larder_select_take(table, "[{{4,4},[],['$_']}]", out));
    CHECK(larder_terms_count(out) == 0);
    ENDS(LARDER_BAD_SPEC, larder_select_take(table, "[{{4,4},[],['$_']}", out));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_take(table, "[{'_',[],['$_']}]", NULL));
    CHECK(larder_size(table) == 898);
    OK(larder_select_count(table, "[{{'_',3},[],[true]}]", &count));
    CHECK(count == 0);
    ENDS(LARDER_TABLE_TYPE, larder_select_replace(table, "[{{'$1','_'},[],[{{9,'$1'}}]}]", &count));
    ENDS(LARDER_BAD_SPEC, larder_select_count(table, "[{{'_',3},[],[true]}", &count));
    ENDS(LARDER_BAD_SPEC, larder_select(table, "[{'$1',[{nonsense,1}],['$1']}]", false, &rows));

    OK(larder_table_drop(table));
    larder_table_free(table);
    ENDS(LARDER_NO_TABLE, larder_rows_next(late, 1, out));
    larder_rows_free(late);
    larder_rows_free(rows);
    CHECK(other == NULL);
}

static void names(void) {
    larder_options named = {.size = sizeof(larder_options), .kind = LARDER_SET, .named = true, .keypos = 2, .compressed = true};
    larder_table *table, *again;
    OK(larder_table_new(world, "first", &named, &table));
    ENDS(LARDER_ALREADY_EXISTS, larder_table_new(world, "first", &named, &again));
    OK(larder_table_find(world, "first", &again));
    OK(larder_insert(again, term(t, "{value, key}")));
    OK(larder_contains(table, term(t, "key")));
    OK(larder_table_rename(table, "second"));
    larder_table_free(again);
    ENDS(LARDER_NONE, larder_table_find(world, "first", &again));
    OK(larder_table_find(world, "second", &again));
    OK(larder_info(again, out));
    larder_view info = larder_terms_get(out, 0);
    CHECK(reads(larder_view_find(info, term(t, "name")), "second"));
    CHECK(reads(larder_view_find(info, term(t, "type")), "set"));
    CHECK(reads(larder_view_find(info, term(t, "keypos")), "2"));
    CHECK(reads(larder_view_find(info, term(t, "compressed")), "true"));
    CHECK(reads(larder_view_find(info, term(t, "structure")), "default"));
    CHECK(larder_view_kind(larder_view_find(info, term(t, "stats"))) == LARDER_KIND_MAP);
    larder_table_free(again);
    ended(table);
}

static void files(void) {
    larder_table *table = made("files", LARDER_DUPLICATE_BAG, NULL), *back = NULL;
    larder_terms_clear(u);
    OK(larder_push_text(u, "{1, [a, 2.5]}"));
    OK(larder_push_text(u, "{1, [a, 2.5]}"));
    OK(larder_push_text(u, "{2, #{k => <<1,2,3>>}}"));
    OK(larder_insert_all(table, u));
    OK(larder_table_save(table, "table.larder"));
    OK(larder_table_load(world, "table.larder", &back));
    CHECK(larder_size(back) == 3);
    OK(larder_lookup(back, term(t, "2"), out));
    CHECK(reads(larder_terms_get(out, 0), "{2,#{k => <<1,2,3>>}}"));
    ended(back);
    back = NULL;
    ENDS(LARDER_FILE, larder_table_load(world, "no such file", &back));
    FILE *file = fopen("table.larder", "r+b");
    CHECK(file != NULL && fseek(file, -3, SEEK_END) == 0 && fputc('!', file) == '!' && fclose(file) == 0);
    ENDS(LARDER_FILE, larder_table_load(world, "table.larder", &back));
    CHECK(back == NULL && strstr(larder_message(), "damaged") != NULL);
    ENDS(LARDER_FILE, larder_table_save(table, "no/such/folder"));
    ended(table);
}

static void snapshots(int kind) {
    larder_table *one = made("one", kind, NULL), *other = made("other", kind, NULL);
    OK(larder_insert(one, term(t, "{a, 1}")));
    OK(larder_insert(other, term(t, "{a, 2}")));
    const larder_table *both[2] = {one, other};
    larder_table *before[2], *later;
    OK(larder_snapshot(both, 2, before));
    OK(larder_delete(one, term(t, "a"), NULL));
    OK(larder_insert(one, term(t, "{b, 3}")));
    OK(larder_clear(other, NULL));
    CHECK(larder_size(before[0]) == 1 && larder_size(before[1]) == 1);
    OK(larder_lookup(before[0], term(t, "a"), out));
    CHECK(reads(larder_terms_get(out, 0), "{a,1}"));
    OK(larder_lookup(before[1], term(t, "a"), out));
    CHECK(reads(larder_terms_get(out, 0), "{a,2}"));
    ENDS(LARDER_NONE, larder_lookup(before[0], term(t, "b"), out));

    ENDS(LARDER_READ_ONLY, larder_insert(before[0], term(t, "{c, 4}")));
    CHECK(strstr(larder_message(), "snapshot") != NULL);
    ENDS(LARDER_READ_ONLY, larder_delete(before[0], term(t, "a"), NULL));
    ENDS(LARDER_READ_ONLY, larder_clear(before[0], NULL));
    ENDS(LARDER_READ_ONLY, larder_table_drop(before[0]));
    const larder_table *again = before[0];
    ENDS(LARDER_TABLE_TYPE, larder_snapshot(&again, 1, &later));
    ENDS(LARDER_BAD_ARGUMENT, larder_snapshot(NULL, 1, &later));
    ENDS(LARDER_BAD_ARGUMENT, larder_snapshot(both, 1, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_snapshot(both, SIZE_MAX, &later));
    OK(larder_snapshot(both, 0, &later));
    OK(larder_snapshot(NULL, 0, NULL));

    OK(larder_snapshot(both, 1, &later));
    OK(larder_diff(before[0], later, out));
    CHECK(larder_terms_count(out) == 2);
    OK(larder_diff(later, before[0], out));
    CHECK(larder_terms_count(out) == 2);
    ENDS(LARDER_NONE, larder_diff(later, later, out));
    CHECK(larder_terms_count(out) == 0);
    ENDS(LARDER_TABLE_TYPE, larder_diff(before[1], later, out));
    ENDS(LARDER_TABLE_TYPE, larder_diff(before[0], one, out));
    ended(one), ended(other);
    CHECK(larder_size(before[0]) == 1 && larder_size(later) == 1);
    /* A scan doesn't need the handle of its snapshot. */
    larder_rows *rows;
    OK(larder_each(before[1], false, &rows));
    larder_table_free(before[0]), larder_table_free(before[1]), larder_table_free(later);
    OK(larder_rows_next(rows, 9, out));
    CHECK(larder_terms_count(out) == 1 && reads(larder_terms_get(out, 0), "{a,2}"));
    larder_rows_free(rows);
}

/* Ranks of the even numbers from 2 to 2000. */
static void ranks(void) {
    larder_table *table = made("ranks", LARDER_ORDERED_SET, NULL), *before = NULL;
    uint64_t n = 77;
    ENDS(LARDER_NONE, larder_rank(table, term(t, "2"), &n));
    CHECK(n == 77);
    ENDS(LARDER_NONE, larder_nth(table, 1, out));
    ENDS(LARDER_NONE, larder_slice(table, 1, 10, out));
    larder_terms_clear(u);
    for (int i = 1; i <= 1000; i++) {
        OK(larder_push_tuple(u, 2));
        OK(larder_push_int(u, 2 * i));
        OK(larder_push_int(u, i));
    }
    OK(larder_insert_all(table, u));
    OK(larder_rank(table, term(t, "700"), &n));
    CHECK(n == 350);
    OK(larder_rank(table, term(t, "700.0"), NULL));
    ENDS(LARDER_NONE, larder_rank(table, term(t, "701"), &n));
    OK(larder_nth(table, 350, out));
    CHECK(larder_terms_count(out) == 1 && reads(larder_terms_get(out, 0), "{700,350}"));
    OK(larder_nth(table, -1000, out));
    CHECK(reads(larder_terms_get(out, 0), "{2,1}"));
    ENDS(LARDER_NONE, larder_nth(table, 0, out));
    ENDS(LARDER_NONE, larder_nth(table, 1001, out));
    ENDS(LARDER_NONE, larder_nth(table, INT64_MIN, out));
    CHECK(larder_terms_count(out) == 0);
    OK(larder_slice(table, 997, 10, out));
    CHECK(larder_terms_count(out) == 4 && reads(larder_terms_get(out, 3), "{2000,1000}"));
    OK(larder_slice(table, -3, 2, out));
    CHECK(larder_terms_count(out) == 2 && reads(larder_terms_get(out, 1), "{1998,999}"));
    ENDS(LARDER_NONE, larder_slice(table, 1, 0, out));
    larder_terms_clear(t);
    OK(larder_push_text(t, "700"));
    OK(larder_push_text(t, "720"));
    OK(larder_count_range(table, larder_terms_get(t, 0), larder_terms_get(t, 1), &n));
    CHECK(n == 10);
    OK(larder_count_range(table, larder_terms_get(t, 1), larder_terms_get(t, 0), &n));
    CHECK(n == 0);

    const larder_table *this = table;
    OK(larder_snapshot(&this, 1, &before));
    OK(larder_delete(table, term(t, "2"), NULL));
    OK(larder_rank(table, term(t, "700"), &n));
    CHECK(n == 349);
    OK(larder_rank(before, term(t, "700"), &n));
    CHECK(n == 350);
    larder_table_free(before);

    ENDS(LARDER_BAD_TERM, larder_rank(table, NOTHING, &n));
    ENDS(LARDER_BAD_TERM, larder_count_range(table, term(t, "1"), NOTHING, &n));
    CHECK(strstr(larder_message(), "high is a view of nothing") != NULL);
    ENDS(LARDER_BAD_ARGUMENT, larder_nth(table, 1, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_slice(NULL, 1, 1, out));
    ended(table);
    table = made("set", LARDER_SET, NULL);
    ENDS(LARDER_TABLE_TYPE, larder_nth(table, 1, out));
    CHECK(strstr(larder_message(), "ordered_set") != NULL);
    ended(table);
}

static void prepared(int kind) {
    larder_table *table = made("prepared", kind, NULL);
    for (int i = 0; i < 100; i++) {
        char row[64];
        snprintf(row, sizeof row, "{{user,%d},%d,a}", i, i % 10);
        OK(larder_insert(table, term(t, row)));
    }
    larder_prepared *by_key, *by_value, *some, *no = NULL;
    OK(larder_prepare("[{{{user,{bind,1}},'$1','_'},[],['$1']}]", &by_key));
    OK(larder_prepare("[{{'_',{bind,1},{bind,2}},[],[true]}]", &by_value));
    OK(larder_prepare("[{{'_',{bind,1},'$1'},[],[{{{bind,2},'$1'}}]}]", &some));
    CHECK(larder_prepared_parameters(by_key) == 1 && larder_prepared_parameters(some) == 2);

    for (int i = 0; i < 100; i += 33) {
        larder_rows *rows;
        larder_terms_clear(u);
        OK(larder_push_int(u, i));
        OK(larder_select_prepared(table, by_key, u, false, &rows));
        OK(larder_rows_next(rows, 10, out));
        CHECK(larder_terms_count(out) == 1);
        int64_t found;
        CHECK(larder_view_int(larder_terms_get(out, 0), &found) && found == i % 10);
        ENDS(LARDER_NONE, larder_rows_next(rows, 10, out));
        larder_rows_free(rows);
    }
    /* A value is itself: '_' is an atom. */
    uint64_t count = 0;
    larder_terms_clear(u);
    OK(larder_push_int(u, 3));
    OK(larder_push_text(u, "'_'"));
    OK(larder_select_count_prepared(table, by_value, u, &count));
    CHECK(count == 0);
    larder_terms_clear(u);
    OK(larder_push_int(u, 3));
    OK(larder_push_text(u, "a"));
    OK(larder_select_count_prepared(table, by_value, u, &count));
    CHECK(count == 10);
    OK(larder_select_delete_prepared(table, by_value, u, &count));
    CHECK(count == 10 && larder_size(table) == 90);
    larder_terms_clear(u);
    OK(larder_push_int(u, 4));
    OK(larder_push_text(u, "{taken,'$1'}"));
    OK(larder_select_take_prepared(table, some, u, u));
    CHECK(larder_terms_count(u) == 10 && reads(larder_terms_get(u, 9), "{{taken,'$1'},a}"));
    CHECK(larder_size(table) == 80);

    larder_prepared *change;
    OK(larder_prepare("[{{'$1',5,'_'},[],[{{'$1',5,{bind,1}}}]}]", &change));
    larder_terms_clear(u);
    OK(larder_push_text(u, "b"));
    larder_status status = larder_select_replace_prepared(table, change, u, &count);
    if (kind == LARDER_BAG)
        CHECK(status == LARDER_TABLE_TYPE);
    else
        CHECK(status == LARDER_OK && count == 10);

    ENDS(LARDER_BAD_SPEC, larder_select_count_prepared(table, by_value, u, &count));
    CHECK(strstr(larder_message(), "{bind, 2} has no value"));
    ENDS(LARDER_BAD_SPEC, larder_select_count_prepared(table, by_value, NULL, &count));
    ENDS(LARDER_BAD_SPEC, larder_prepare("[{{{bind,0}},[],[true]}]", &no));
    CHECK(strstr(larder_message(), "numbered from 1 to 255"));
    ENDS(LARDER_BAD_ARGUMENT, larder_prepare(NULL, &no));
    ENDS(LARDER_BAD_ARGUMENT, larder_prepare("[{'_',[],[true]}]", NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_count_prepared(table, NULL, u, &count));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_take_prepared(table, some, u, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_prepared(table, some, u, false, NULL));
    CHECK(no == NULL && larder_prepared_parameters(NULL) == 0);
    larder_prepared_free(by_key), larder_prepared_free(by_value), larder_prepared_free(some);
    larder_prepared_free(change), larder_prepared_free(NULL);
    ended(table);
}

static void maps(int kind) {
    larder_table *table = made("maps", kind, NULL);
    larder_view nothing = {NULL, 0};
    OK(larder_insert(table, term(t, "{k, #{n => 1}, 7}")));
    larder_terms_clear(u);
    OK(larder_push_text(u, "k"));
    OK(larder_push_text(u, "n"));
    OK(larder_push_text(u, "[new]"));
    OK(larder_push_text(u, "none"));
    larder_view k = larder_terms_get(u, 0), n = larder_terms_get(u, 1);
    larder_view new = larder_terms_get(u, 2), none = larder_terms_get(u, 3);
    int64_t sum = 0, ten = 10, most = INT64_MAX;
    if (kind == LARDER_BAG || kind == LARDER_DUPLICATE_BAG) {
        ENDS(LARDER_TABLE_TYPE, larder_map_put(table, k, 2, n, new));
        ENDS(LARDER_TABLE_TYPE, larder_map_add(table, k, 2, n, 1, NULL, &sum));
        ended(table);
        return;
    }
    OK(larder_map_put(table, k, 2, new, none));
    OK(larder_map_add(table, k, 2, n, 4, NULL, &sum));
    CHECK(sum == 5);
    OK(larder_lookup(table, k, out));
    CHECK(reads(larder_terms_get(out, 0), "{k,#{n => 5,[new] => none},7}"));
    OK(larder_map_remove(table, k, 2, new));
    OK(larder_map_remove(table, k, 2, new));
    ENDS(LARDER_BAD_KEY, larder_map_add(table, k, 2, new, 4, NULL, &sum));
    OK(larder_map_add(table, k, 2, new, 4, &ten, &sum));
    CHECK(sum == 14);
    ENDS(LARDER_BIG_SUM, larder_map_add(table, k, 2, none, 1, &most, &sum));
    OK(larder_map_remove(table, k, 2, none));
    OK(larder_lookup(table, k, out));
    CHECK(reads(larder_terms_get(out, 0), "{k,#{n => 5,[new] => 14},7}"));
    /* A map that becomes large, and small again. */
    for (int i = 0; i < 100; i++) {
        larder_terms *key = larder_terms_new();
        OK(larder_push_int(key, i));
        OK(larder_map_put(table, k, 2, larder_terms_get(key, 0), n));
        if (i >= 3) {
            larder_terms_clear(key);
            OK(larder_push_int(key, i - 3));
            OK(larder_map_remove(table, k, 2, larder_terms_get(key, 0)));
        }
        larder_terms_free(key);
    }
    OK(larder_lookup(table, k, out));
    CHECK(reads(larder_terms_get(out, 0), "{k,#{97 => n,98 => n,99 => n,n => 5,[new] => 14},7}"));
    ENDS(LARDER_NONE, larder_map_put(table, none, 2, n, new));
    ENDS(LARDER_NONE, larder_map_remove(table, none, 2, n));
    ENDS(LARDER_BAD_KEY, larder_map_add(table, none, 2, n, 1, &ten, &sum));
    ENDS(LARDER_NOT_MAP, larder_map_put(table, k, 3, n, new));
    ENDS(LARDER_NOT_MAP, larder_map_add(table, k, 3, n, 1, NULL, &sum));
    ENDS(LARDER_BAD_ROW, larder_map_put(table, k, 1, n, new));
    ENDS(LARDER_BAD_ROW, larder_map_put(table, k, 9, n, new));
    ENDS(LARDER_BAD_TERM, larder_map_put(table, k, 2, nothing, new));
    ENDS(LARDER_BAD_TERM, larder_map_put(table, k, 2, n, nothing));
    ended(table);
}

int main(void) {
    world = larder_new();
    t = larder_terms_new(), u = larder_terms_new(), out = larder_terms_new();
    for (int kind = LARDER_SET; kind <= LARDER_DUPLICATE_BAG; kind++) by_key(kind, NULL), steps(kind, NULL), snapshots(kind);
    by_key(LARDER_ORDERED_SET, "catree(over=btree,m=8)"), steps(LARDER_ORDERED_SET, "btree");
    by_key(LARDER_SET, "linear_hash"), steps(LARDER_SET, "judyl_hash");
    for (int kind = LARDER_SET; kind <= LARDER_DUPLICATE_BAG; kind++) prepared(kind), maps(kind);
    counters();
    queries();
    ranks();
    names();
    files();
    larder_terms_free(t), larder_terms_free(u), larder_terms_free(out);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
