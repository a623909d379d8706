/* The example of docs/c.md. */
#include <larder.h>
#include <stdio.h>
#include <stdlib.h>

static void must(larder_status status) {
    if (status > LARDER_NONE) {
        fprintf(stderr, "%s: %s\n", larder_status_name(status), larder_message());
        exit(1);
    }
}

int main(void) {
    larder *world = larder_new();
    larder_options ordered = {.size = sizeof(larder_options), .kind = LARDER_ORDERED_SET};
    larder_table *stock;
    must(larder_table_new(world, "stock", &ordered, &stock));

    /* Rows are tuples: built piece by piece, or read from text. */
    larder_terms *row = larder_terms_new();
    must(larder_push_tuple(row, 3));
    must(larder_push_atom(row, "apple"));
    must(larder_push_int(row, 3));
    must(larder_push_binary(row, (const uint8_t *)"red", 3));
    must(larder_push_text(row, "{pear, 12, <<\"green\">>}"));
    must(larder_push_text(row, "{quince, 1, <<\"yellow\">>}"));
    must(larder_insert_all(stock, row)); /* all at once, or none */

    /* One key: a lookup, and a counter that many threads may add to. */
    larder_terms *key = larder_terms_new(), *found = larder_terms_new();
    must(larder_push_atom(key, "apple"));
    larder_view apple = larder_terms_get(key, 0);
    int64_t apples;
    must(larder_add(stock, apple, 2, 10, (larder_view){NULL, 0}, &apples));
    must(larder_lookup(stock, apple, found));
    larder_view colour = larder_view_element(larder_terms_get(found, 0), 2);
    const uint8_t *bytes;
    size_t length;
    if (apples != 13 || !larder_view_binary(colour, &bytes, &length) || length != 3) return 1;

    /* A query, a thousand results at a time. */
    larder_rows *few;
    must(larder_select(stock, "[{{'$1','$2','_'},[{'<','$2',13}],['$1']}]", false, &few));
    while (larder_rows_next(few, 1000, found) == LARDER_OK)
        for (size_t i = 0; i < larder_terms_count(found); i++) {
            char name[256];
            larder_view_text(larder_terms_get(found, i), name, sizeof name);
            printf("few: %s\n", name);
        }
    larder_rows_free(few);

    larder_terms_free(row);
    larder_terms_free(key);
    larder_terms_free(found);
    larder_table_free(stock);
    larder_free(world);
    puts("ok");
    return 0;
}
