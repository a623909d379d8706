/* Keys and values without terms, and ranges without specifications. */
#include "check.h"

static larder *world;
static larder_terms *t, *out;

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

static void values(int kind) {
    larder_options options = {.size = sizeof options, .kind = kind};
    larder_table *table = NULL;
    OK(larder_table_new(world, "values", &options, &table));
    larder_key name = larder_key_str("name"), one = larder_key_i64(1), zero = larder_key_bytes((const uint8_t *)"a\0b", 3);
    int64_t n = 77;
    double x = 7.5;
    char text[8];
    size_t len = 0;
    ENDS(LARDER_NONE, larder_get_i64(table, name, &n));
    ENDS(LARDER_NONE, larder_get_str(table, name, text, sizeof text, &len));
    CHECK(n == 77 && len == 0);
    OK(larder_put_str(table, name, "Ann"));
    OK(larder_put_i64(table, one, INT64_MIN));
    OK(larder_put_f64(table, zero, -0.5));
    OK(larder_get_str(table, name, text, sizeof text, &len));
    CHECK(len == 3 && strcmp(text, "Ann") == 0);
    OK(larder_get_i64(table, one, &n));
    OK(larder_get_f64(table, zero, &x));
    CHECK(n == INT64_MIN && x == -0.5 && larder_size(table) == 3);
    /* They are rows as others are. */
    OK(larder_lookup(table, term(t, "<<\"name\">>"), out));
    CHECK(reads(larder_terms_get(out, 0), "{<<\"name\">>,<<\"Ann\">>}"));
    OK(larder_get(table, larder_key_view(term(t, "1")), out));
    CHECK(reads(larder_terms_get(out, 0), "-9223372036854775808"));

    OK(larder_put_bytes(table, larder_key_str("bytes"), (const uint8_t *)"\0\1abcdefghij", 12));
    OK(larder_get_str(table, larder_key_str("bytes"), text, sizeof text, &len));
    CHECK(len == 12 && memcmp(text, "\0\1abcde", 7) == 0 && text[7] == 0);
    OK(larder_get_str(table, larder_key_str("bytes"), NULL, 0, &len));
    ENDS(LARDER_BAD_ARGUMENT, larder_get_str(table, larder_key_str("bytes"), NULL, 1, &len));
    ENDS(LARDER_VALUE_TYPE, larder_get_i64(table, name, &n));
    CHECK(told("<<\"name\">>") && told("integer") && n == INT64_MIN);
    ENDS(LARDER_VALUE_TYPE, larder_get_f64(table, one, &x));
    ENDS(LARDER_VALUE_TYPE, larder_get_str(table, one, text, sizeof text, &len));
    CHECK(told("binary"));
    OK(larder_put(table, larder_key_str("term"), term(t, "{a, [b]}")));
    OK(larder_get(table, larder_key_str("term"), t));
    CHECK(reads(larder_terms_get(t, 0), "{a,[b]}"));
    ENDS(LARDER_NONE, larder_get(table, larder_key_str("none"), t));
    CHECK(larder_terms_count(t) == 0);
    OK(larder_insert(table, term(t, "{17179869184000000000000, 18446744073709551616, more}")));
    ENDS(LARDER_VALUE_TYPE, larder_get_i64(table, larder_key_view(term(t, "17179869184000000000000")), &n));
    OK(larder_insert(table, term(t, "{short}")));
    ENDS(LARDER_BAD_ROW, larder_get_i64(table, larder_key_view(term(t, "short")), &n));

    OK(larder_has(table, name));
    OK(larder_remove(table, name));
    ENDS(LARDER_NONE, larder_has(table, name));
    ENDS(LARDER_NONE, larder_remove(table, name));
    if (kind == LARDER_BAG) {
        ENDS(LARDER_TABLE_TYPE, larder_add_i64(table, larder_key_str("hits"), 1, &n));
    } else {
        OK(larder_add_i64(table, larder_key_str("hits"), 40, &n));
        OK(larder_add_i64(table, larder_key_str("hits"), 2, &n));
        CHECK(n == 42);
        ENDS(LARDER_NOT_INTEGER, larder_add_i64(table, zero, 2, NULL));
    }
    larder_table_free(table);
}

static void misused(void) {
    larder_table *table = NULL, *second = NULL;
    OK(larder_table_new(world, "t", NULL, &table));
    larder_options options = {.size = sizeof options, .keypos = 2};
    OK(larder_table_new(world, "second", &options, &second));
    ENDS(LARDER_TABLE_TYPE, larder_put_i64(second, larder_key_i64(1), 2));
    CHECK(told("position 2") && larder_size(second) == 0);
    ENDS(LARDER_TABLE_TYPE, larder_has(second, larder_key_i64(1)));
    larder_key nothing = {0}, odd = {.form = 99};
    ENDS(LARDER_BAD_TERM, larder_put_i64(table, nothing, 2));
    ENDS(LARDER_BAD_TERM, larder_put_i64(table, larder_key_str(NULL), 2));
    ENDS(LARDER_BAD_TERM, larder_put_i64(table, larder_key_view(NOTHING), 2));
    ENDS(LARDER_BAD_ARGUMENT, larder_put_i64(table, odd, 2));
    CHECK(told("99"));
    ENDS(LARDER_BAD_ARGUMENT, larder_put_i64(table, larder_key_bytes(NULL, 1), 2));
    OK(larder_put_i64(table, larder_key_bytes(NULL, 0), 2));
    OK(larder_has(table, larder_key_str("")));
    ENDS(LARDER_BAD_ARGUMENT, larder_put_i64(NULL, larder_key_i64(1), 2));
    ENDS(LARDER_BAD_ARGUMENT, larder_put_str(table, larder_key_i64(1), NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_put_bytes(table, larder_key_i64(1), NULL, 1));
    ENDS(LARDER_BAD_TERM, larder_put(table, larder_key_i64(1), NOTHING));
    ENDS(LARDER_BAD_TERM, larder_put_f64(table, larder_key_i64(1), 1e308 * 10));
    ENDS(LARDER_BAD_ARGUMENT, larder_get(table, larder_key_str(""), NULL));
    CHECK(larder_size(table) == 1);
    larder_rows *rows = NULL;
    ENDS(LARDER_TABLE_TYPE, larder_range(table, nothing, nothing, false, &rows));
    CHECK(rows == NULL);
    larder_table_free(table), larder_table_free(second);
}

/* The keys of a range, each after a blank. */
static void range(const larder_table *table, larder_key low, larder_key high, bool backward, const char *keys) {
    larder_rows *rows = NULL;
    char found[100] = "";
    OK(larder_range(table, low, high, backward, &rows));
    while (larder_rows_next(rows, 2, out) == LARDER_OK)
        for (size_t i = 0; i < larder_terms_count(out); i++) {
            size_t used = strlen(found);
            found[used] = ' ';
            larder_view_text(larder_view_element(larder_terms_get(out, i), 0), found + used + 1, sizeof found - used - 1);
        }
    larder_rows_free(rows);
    if (strcmp(found, keys) != 0) fprintf(stderr, "%s, and not %s\n", found, keys);
    CHECK(strcmp(found, keys) == 0);
}

static void ranges(const char *structure) {
    larder_options options = {.size = sizeof options, .kind = LARDER_ORDERED_SET, .structure = structure};
    larder_table *table = NULL;
    OK(larder_table_new(world, "ordered", &options, &table));
    for (int i = 1; i <= 7; i++) OK(larder_put_i64(table, larder_key_i64(i), i * i));
    OK(larder_put_i64(table, larder_key_str("x"), 0));
    larder_key nothing = {0};
    range(table, larder_key_i64(2), larder_key_i64(5), false, " 2 3 4");
    range(table, larder_key_i64(2), larder_key_i64(5), true, " 4 3 2");
    range(table, nothing, larder_key_i64(3), false, " 1 2");
    range(table, larder_key_i64(6), nothing, false, " 6 7 <<\"x\">>");
    range(table, larder_key_i64(6), larder_key_str("x"), false, " 6 7");
    range(table, larder_key_view(term(t, "2.5")), larder_key_view(term(out, "4.0")), false, " 3");
    range(table, nothing, nothing, true, " <<\"x\">> 7 6 5 4 3 2 1");
    range(table, larder_key_i64(5), larder_key_i64(5), false, "");
    range(table, larder_key_i64(5), larder_key_i64(2), false, "");
    range(table, larder_key_i64(5), larder_key_i64(2), true, "");
    larder_table_free(table);
}

int main(void) {
    world = larder_new();
    t = larder_terms_new(), out = larder_terms_new();
    values(LARDER_SET);
    values(LARDER_ORDERED_SET);
    values(LARDER_BAG);
    misused();
    ranges(NULL);
    ranges("catree");
    larder_terms_free(t), larder_terms_free(out);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
