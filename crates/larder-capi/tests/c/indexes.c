/* Secondary indexes. */
#include "check.h"

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

int main(void) {
    larder *world = larder_new();
    larder_terms *t = larder_terms_new(), *out = larder_terms_new();
    larder_table *users = NULL;
    OK(larder_table_new(world, "users", NULL, &users));
    for (int i = 0; i < 1000; i++) {
        char row[100];
        snprintf(row, sizeof row, "{%d, %d, [t%d, all], #{zip => %d}}", i, 10000 + i, i % 10, i % 100);
        OK(larder_insert(users, term(t, row)));
    }
    ENDS(LARDER_NO_INDEX, larder_index_lookup(users, "mail", term(t, "10007"), out));
    CHECK(told("mail") && !told("#"));
    OK(larder_add_index(users, "mail", 2, LARDER_INDEX_UNIQUE));
    OK(larder_add_index(users, "tags", 3, LARDER_INDEX_EACH));
    OK(larder_add_index_on(users, "zip", "{map_get, zip, {element, 4, '$_'}}", 0));
    ENDS(LARDER_BAD_OPTION, larder_add_index(users, "mail", 3, 0));
    ENDS(LARDER_BAD_OPTION, larder_add_index(users, "none", 0, 0));
    ENDS(LARDER_BAD_OPTION, larder_add_index(users, "flags", 2, 4));
    CHECK(told("flags") && told("4"));
    ENDS(LARDER_BAD_OPTION, larder_add_index_on(users, "text", "{map_get,", 0));
    CHECK(told("text"));
    ENDS(LARDER_BAD_ARGUMENT, larder_add_index_on(users, "text", NULL, 0));
    ENDS(LARDER_BAD_ARGUMENT, larder_add_index(users, NULL, 2, 0));
    ENDS(LARDER_NOT_UNIQUE, larder_add_index_on(users, "again", "{map_get, zip, {element, 4, '$_'}}", LARDER_INDEX_UNIQUE));

    OK(larder_index_lookup(users, "mail", term(t, "10007"), out));
    CHECK(larder_terms_count(out) == 1 && reads(larder_terms_get(out, 0), "{7,10007,[t7,all],#{zip => 7}}"));
    OK(larder_index_lookup(users, "tags", term(t, "all"), out));
    CHECK(larder_terms_count(out) == 1000);
    /* The result may come in place of the value. */
    OK(larder_index_lookup(users, "tags", term(t, "t3"), t));
    CHECK(larder_terms_count(t) == 100);
    OK(larder_index_lookup(users, "zip", term(t, "42"), out));
    CHECK(larder_terms_count(out) == 10);
    ENDS(LARDER_NONE, larder_index_lookup(users, "zip", term(t, "100"), out));
    CHECK(larder_terms_count(out) == 0);
    OK(larder_index_select(users, "mail", "[{{'$1','$2','_','_'},[{'<','$1',3}],['$2']}]", out));
    CHECK(larder_terms_count(out) == 3 && reads(larder_terms_get(out, 2), "10002"));
    ENDS(LARDER_NONE, larder_index_select(users, "mail", "[{{x,'_','_','_'},[],['$_']}]", out));
    ENDS(LARDER_BAD_SPEC, larder_index_select(users, "mail", "nonsense", out));

    ENDS(LARDER_NOT_UNIQUE, larder_insert(users, term(t, "{new, 10007, [], #{}}")));
    CHECK(told("mail") && larder_size(users) == 1000);
    ENDS(LARDER_NONE, larder_insert_new(users, term(t, "{new, 10007, [], #{}}")));
    const larder_table *all[] = {users};
    larder_table *before = NULL;
    OK(larder_snapshot(all, 1, &before));
    ENDS(LARDER_READ_ONLY, larder_add_index(before, "late", 2, 0));
    ENDS(LARDER_READ_ONLY, larder_drop_index(before, "mail"));
    larder_table_free(before);
    ENDS(LARDER_NONE, larder_insert_all_new(users, t));
    CHECK(larder_size(users) == 1000);
    OK(larder_delete(users, term(t, "7"), NULL));
    OK(larder_insert(users, term(t, "{new, 10007, [], #{}}")));
    OK(larder_index_lookup(users, "mail", term(t, "10007"), out));
    CHECK(reads(larder_terms_get(out, 0), "{new,10007,[],#{}}"));

    OK(larder_drop_index(users, "mail"));
    ENDS(LARDER_NO_INDEX, larder_drop_index(users, "mail"));
    ENDS(LARDER_NO_INDEX, larder_index_lookup(users, "mail", term(t, "10007"), out));
    OK(larder_insert(users, term(t, "{newer, 10007, [], #{}}")));
    ENDS(LARDER_BAD_TERM, larder_index_lookup(users, "zip", NOTHING, out));
    ENDS(LARDER_BAD_ARGUMENT, larder_index_lookup(users, "zip", term(t, "1"), NULL));

    larder_table_free(users);
    larder_terms_free(t), larder_terms_free(out);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
