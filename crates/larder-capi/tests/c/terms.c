/* Terms: pushed, read, printed, and read again. */
#include "check.h"
#include <math.h>
#include <stdint.h>

static void numbers(larder_terms *t) {
    larder_terms_clear(t);
    int64_t ints[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1 << 28};
    for (size_t i = 0; i < 6; i++) OK(larder_push_int(t, ints[i]));
    for (size_t i = 0; i < 6; i++) {
        int64_t n = 7;
        CHECK(larder_view_kind(larder_terms_get(t, i)) == LARDER_KIND_INTEGER);
        CHECK(larder_view_int(larder_terms_get(t, i), &n) && n == ints[i]);
    }
    OK(larder_push_uint(t, UINT64_MAX));
    OK(larder_push_float(t, -2.5));
    larder_view big = larder_terms_get(t, 6), half = larder_terms_get(t, 7);
    int64_t n = 7;
    uint64_t u = 7;
    double x = 0;
    CHECK(!larder_view_int(big, &n) && n == 7);
    CHECK(larder_view_uint(big, &u) && u == UINT64_MAX);
    CHECK(!larder_view_uint(larder_terms_get(t, 2), &u) && u == UINT64_MAX);
    CHECK(reads(big, "18446744073709551615"));
    CHECK(larder_view_float(half, &x) && x == -2.5 && !larder_view_float(big, &x));
    ENDS(LARDER_BAD_TERM, larder_push_float(t, NAN));
    ENDS(LARDER_BAD_TERM, larder_push_float(t, INFINITY));
    CHECK(larder_terms_count(t) == 8);
}

static void containers(larder_terms *t) {
    larder_terms_clear(t);
    /* {a, [1, {}], #{<<"k">> => [], b => #{}}} */
    OK(larder_push_tuple(t, 3));
    OK(larder_push_atom(t, "a"));
    OK(larder_push_list(t, 2));
    OK(larder_push_int(t, 1));
    OK(larder_push_tuple(t, 0));
    OK(larder_push_map(t, 2));
    OK(larder_push_binary(t, (const uint8_t *)"k", 1));
    OK(larder_push_list(t, 0));
    OK(larder_push_atom(t, "b"));
    CHECK(larder_terms_count(t) == 0);
    OK(larder_push_map(t, 0));
    CHECK(larder_terms_count(t) == 1);
    larder_view all = larder_terms_get(t, 0);
    CHECK(reads(all, "{a,[1,{}],#{b => #{},<<\"k\">> => []}}"));
    CHECK(larder_view_kind(all) == LARDER_KIND_TUPLE && larder_view_size(all) == 3);

    larder_view parts[4] = {NOTHING, NOTHING, NOTHING, NOTHING};
    CHECK(larder_view_elements(all, parts, 2) == 3);
    CHECK(parts[1].bytes != NULL && parts[2].bytes == NULL);
    CHECK(larder_view_elements(all, parts, 4) == 3);
    CHECK(larder_view_kind(parts[1]) == LARDER_KIND_LIST && larder_view_size(parts[1]) == 2);
    CHECK(reads(larder_view_element(parts[1], 1), "{}"));
    CHECK(larder_view_kind(larder_view_element(parts[1], 2)) == LARDER_KIND_NOTHING);
    CHECK(larder_view_kind(larder_view_tail(parts[1])) == LARDER_KIND_NIL);
    CHECK(larder_view_kind(larder_view_tail(all)) == LARDER_KIND_NOTHING);

    larder_view pairs[4];
    CHECK(larder_view_elements(parts[2], pairs, 3) == 4);
    CHECK(larder_view_elements(parts[2], pairs, 4) == 4);
    for (size_t i = 0; i < 4; i += 2) CHECK(larder_view_same(larder_view_find(parts[2], pairs[i]), pairs[i + 1]));
    CHECK(larder_view_kind(larder_view_find(parts[2], parts[0])) == LARDER_KIND_NOTHING);
    CHECK(larder_view_kind(larder_view_find(all, parts[0])) == LARDER_KIND_NOTHING);

    /* A copy of a part of the same sequence, which moves nothing that is there. */
    OK(larder_push_view(t, parts[2]));
    CHECK(larder_view_same(larder_terms_get(t, 1), parts[2]) && reads(parts[0], "a"));

    /* Two identical keys: the term is given up, the others stay. */
    OK(larder_push_list(t, 1));
    OK(larder_push_map(t, 2));
    for (int i = 0; i < 3; i++) OK(larder_push_int(t, 5));
    ENDS(LARDER_BAD_TERM, larder_push_int(t, 5));
    CHECK(strstr(larder_message(), "identical keys") != NULL && larder_terms_count(t) == 2);
    OK(larder_push_int(t, 9));
    CHECK(larder_terms_count(t) == 3);
}

static void order(larder_terms *t) {
    larder_terms_clear(t);
    const char *rising[] = {"-1", "1", "1.5", "a", "{}", "{1}", "#{}", "[]", "[1]", "<<>>", "<<1:3>>"};
    size_t n = sizeof rising / sizeof *rising;
    for (size_t i = 0; i < n; i++) OK(larder_push_text(t, rising[i]));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int sign = (i > j) - (i < j);
            CHECK(larder_view_compare(larder_terms_get(t, i), larder_terms_get(t, j)) == sign);
            CHECK(larder_view_same(larder_terms_get(t, i), larder_terms_get(t, j)) == (i == j));
        }
    CHECK(larder_view_compare(NOTHING, larder_terms_get(t, 0)) == -1 && larder_view_same(NOTHING, NOTHING));
    CHECK(larder_view_kind(larder_terms_get(t, n - 1)) == LARDER_KIND_BITSTRING);
    OK(larder_push_text(t, "1.0"));
    CHECK(larder_view_compare(larder_terms_get(t, n), larder_terms_get(t, 1)) == 0);
    CHECK(!larder_view_same(larder_terms_get(t, n), larder_terms_get(t, 1)));
}

static void there_and_back(larder_terms *t) {
    const char *texts[] = {"[1,2|a]", "{x,<<\"\\x{e9}\">>,-3.25}", "#{[] => 1}", "123456789012345678901234567890"};
    for (size_t i = 0; i < 4; i++) {
        char text[256];
        uint8_t etf[256];
        larder_view first = term(t, texts[i]);
        CHECK(larder_view_text(first, text, sizeof text) < sizeof text);
        OK(larder_push_text(t, text));
        size_t n = larder_view_etf(first, etf, sizeof etf);
        CHECK(n > 0 && n < sizeof etf && etf[0] == 131);
        OK(larder_push_etf(t, etf, n, false));
        CHECK(larder_view_same(larder_terms_get(t, 1), first) && larder_view_same(larder_terms_get(t, 2), first));
        for (size_t cut = 0; cut < n; cut++) ENDS(LARDER_BAD_TERM, larder_push_etf(t, etf, cut, true));
        etf[n] = 0;
        ENDS(LARDER_BAD_TERM, larder_push_etf(t, etf, n + 1, true));
    }
    /* An atom that nobody has made is made for those who are trusted alone. */
    const uint8_t fresh[] = {131, 119, 5, 'q', 'z', 'x', 'v', 'k'};
    ENDS(LARDER_BAD_TERM, larder_push_etf(t, fresh, sizeof fresh, false));
    OK(larder_push_etf(t, fresh, sizeof fresh, true));
    OK(larder_push_etf(t, fresh, sizeof fresh, false));
    /* As much as fits, and how much there is. */
    char little[4] = "zzz";
    CHECK(larder_view_text(term(t, "abcdef"), little, sizeof little) == 6 && strcmp(little, "abc") == 0);
    CHECK(larder_view_text(larder_terms_get(t, 0), NULL, 0) == 6);
}

static void bytes(larder_terms *t) {
    larder_terms_clear(t);
    uint8_t *large = malloc(1 << 20);
    memset(large, 0xff, 1 << 20);
    OK(larder_push_binary(t, large, 1 << 20));
    OK(larder_push_binary(t, NULL, 0));
    free(large);
    const uint8_t *found;
    size_t length;
    CHECK(larder_view_binary(larder_terms_get(t, 0), &found, &length) && length == 1 << 20 && found[length - 1] == 0xff);
    CHECK(larder_view_size(larder_terms_get(t, 0)) == 1 << 20);
    CHECK(larder_view_binary(larder_terms_get(t, 1), &found, &length) && length == 0);
    const char *name;
    OK(larder_push_atom(t, "h\xc3\xa9"));
    CHECK(larder_view_atom(larder_terms_get(t, 2), &name, &length) && length == 3 && memcmp(name, "h\xc3\xa9", 3) == 0);
    CHECK(!larder_view_atom(larder_terms_get(t, 1), &name, &length) && length == 3);
}

/* A million lists, one in another, and no call of one function by another for each. */
static void deep(larder_terms *t) {
    larder_terms_clear(t);
    for (int i = 0; i < 1000000; i++) OK(larder_push_list(t, 1));
    CHECK(larder_terms_count(t) == 0);
    OK(larder_push_int(t, 1));
    CHECK(larder_terms_count(t) == 1 && larder_view_size(larder_terms_get(t, 0)) == 1);
    OK(larder_push_view(t, larder_terms_get(t, 0)));
    CHECK(larder_view_same(larder_terms_get(t, 0), larder_terms_get(t, 1)));
}

int main(void) {
    larder_terms *t = larder_terms_new();
    numbers(t);
    containers(t);
    order(t);
    there_and_back(t);
    bytes(t);
    deep(t);
    larder_terms_free(t);
    puts("ok");
    return 0;
}
