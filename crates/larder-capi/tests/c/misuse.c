/* Null pointers, views of nothing and nonsense: each is reported, and nothing is lost. */
#include "check.h"

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

int main(void) {
    CHECK(strcmp(larder_message(), "") == 0);
    larder *world = larder_new();
    larder_terms *t = larder_terms_new(), *out = larder_terms_new();
    larder_table *table = NULL, *no = NULL;
    larder_rows *rows = NULL;

    larder_options options = {.size = sizeof(larder_options), .kind = 17};
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    CHECK(told("17"));
    options = (larder_options){.size = sizeof(larder_options), .kind = LARDER_SET, .structure = "cupboard"};
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    CHECK(told("cupboard") && told("judysl"));
    options.structure = "btree(m=1000000)";
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "t", &options, &table));
    char longest[257];
    memset(longest, 'n', 256), longest[256] = 0;
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, longest, NULL, &table));
    ENDS(LARDER_BAD_TERM, larder_push_atom(t, longest));
    ENDS(LARDER_BAD_ARGUMENT, larder_table_new(world, "\xff", NULL, &table));
    CHECK(told("UTF-8"));
    ENDS(LARDER_BAD_ARGUMENT, larder_table_new(NULL, "t", NULL, &table));
    CHECK(told("world is a null pointer"));
    ENDS(LARDER_BAD_ARGUMENT, larder_table_new(world, NULL, NULL, &table));
    CHECK(told("name is a null pointer"));
    ENDS(LARDER_BAD_ARGUMENT, larder_table_new(world, "t", NULL, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_table_find(world, "t", NULL));
    CHECK(table == NULL);
    OK(larder_table_new(world, "t", NULL, &table));

    larder_view one = term(t, "1"), row;
    ENDS(LARDER_BAD_ARGUMENT, larder_insert(NULL, one));
    ENDS(LARDER_BAD_TERM, larder_insert(table, NOTHING));
    CHECK(told("row is a view of nothing"));
    ENDS(LARDER_BAD_ROW, larder_insert(table, one));
    CHECK(told("table t, row 1"));
    ENDS(LARDER_BAD_KEY, larder_add(table, one, 2, 1, NOTHING, NULL));
    CHECK(told("table t, key 1"));
    OK(larder_push_text(t, "{}"));
    ENDS(LARDER_BAD_ROW, larder_insert(table, larder_terms_get(t, 1)));
    OK(larder_push_text(t, "{1, 2}"));
    row = larder_terms_get(t, 2);
    OK(larder_insert(table, row));
    ENDS(LARDER_BAD_TERM, larder_lookup(table, NOTHING, out));
    ENDS(LARDER_BAD_ARGUMENT, larder_lookup(table, one, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_take(table, one, NULL));
    size_t first[] = {1};
    ENDS(LARDER_BAD_ARGUMENT, larder_lookup_elements(table, one, NULL, 1, out));
    CHECK(told("positions is a null pointer"));
    ENDS(LARDER_BAD_ARGUMENT, larder_lookup_elements(table, one, first, SIZE_MAX, out));
    ENDS(LARDER_BAD_ARGUMENT, larder_lookup_elements(table, one, first, 1, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_take(NULL, "[{'_',[],['$_']}]", out));
    ENDS(LARDER_BAD_ARGUMENT, larder_select_take(table, NULL, out));
    ENDS(LARDER_BAD_ARGUMENT, larder_first(table, NULL));
    ENDS(LARDER_BAD_TERM, larder_next(table, NOTHING, out));
    ENDS(LARDER_BAD_TERM, larder_update(table, one, 2, NOTHING));
    ENDS(LARDER_BAD_ARGUMENT, larder_insert_all(table, NULL));
    CHECK(larder_size(table) == 1);

    /* What is not whole is not inserted, and pushed on. */
    larder_terms_clear(t);
    OK(larder_push_text(t, "{2}"));
    OK(larder_push_tuple(t, 2));
    OK(larder_push_int(t, 3));
    ENDS(LARDER_BAD_TERM, larder_insert_all(table, t));
    CHECK(told("not whole") && larder_size(table) == 1);
    ENDS(LARDER_BAD_TERM, larder_push_view(t, NOTHING));
    ENDS(LARDER_BAD_TERM, larder_push_text(t, "{1,"));
    ENDS(LARDER_BAD_ARGUMENT, larder_push_text(t, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_push_binary(t, NULL, 3));
    ENDS(LARDER_BAD_ARGUMENT, larder_push_binary(t, (const uint8_t *)"", SIZE_MAX));
    ENDS(LARDER_BAD_ARGUMENT, larder_push_map(t, SIZE_MAX));
    ENDS(LARDER_BAD_ARGUMENT, larder_push_int(NULL, 1));
    OK(larder_push_int(t, 4));
    OK(larder_insert_all(table, t));
    CHECK(larder_size(table) == 3);
    OK(larder_push_tuple(t, SIZE_MAX));
    CHECK(larder_terms_count(t) == 2 && larder_terms_get(t, 2).bytes == NULL);

    ENDS(LARDER_BAD_ARGUMENT, larder_select(table, NULL, false, &rows));
    ENDS(LARDER_BAD_ARGUMENT, larder_select(table, "[{'_',[],['$_']}]", false, NULL));
    ENDS(LARDER_BAD_SPEC, larder_select(table, "", false, &rows));
    ENDS(LARDER_BAD_SPEC, larder_select(table, "[{'$1',[{foo,'$1'}],['$1']}]", false, &rows));
    CHECK(told("no function foo takes 1 argument") && !told("#"));
    ENDS(LARDER_BAD_ARGUMENT, larder_rows_next(NULL, 1, out));
    OK(larder_each(table, false, &rows));
    ENDS(LARDER_BAD_ARGUMENT, larder_rows_next(rows, 0, out));
    ENDS(LARDER_BAD_ARGUMENT, larder_rows_next(rows, 1, NULL));
    OK(larder_rows_next(rows, 10, out));
    CHECK(larder_terms_count(out) == 3);

    /* What answers without a status has an answer for nothing. */
    CHECK(larder_view_kind(NOTHING) == LARDER_KIND_NOTHING && larder_view_size(NOTHING) == 0);
    CHECK(larder_view_text(NOTHING, NULL, 0) == 0 && larder_view_etf(NOTHING, NULL, 0) == 0);
    CHECK(larder_view_element(NOTHING, 0).bytes == NULL && larder_view_tail(NOTHING).bytes == NULL);
    CHECK(larder_view_elements(row = term(t, "{1}"), NULL, 0) == 1 && larder_view_elements(row, NULL, 1) == 0);
    CHECK(!larder_view_int(NOTHING, NULL) && larder_view_int(term(t, "1"), NULL));
    CHECK(larder_size(NULL) == 0 && larder_memory(NULL) == 0 && larder_terms_count(NULL) == 0);
    CHECK(strcmp(larder_status_name(LARDER_BAD_KEY), "LARDER_BAD_KEY") == 0 && strcmp(larder_status_name(99), "?") == 0);
    CHECK(strlen(larder_version()) >= 5);

    larder_rows_free(rows), larder_rows_free(NULL);
    larder_table_free(table), larder_table_free(no);
    larder_terms_free(t), larder_terms_free(out), larder_terms_free(NULL);
    larder_free(world), larder_free(NULL);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
