/* Options of programs that were built with an older or a newer header; versions. */
#include "check.h"

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

/* The options of a later version. */
typedef struct newer {
    larder_options known;
    uint64_t later;
} newer;

int main(void) {
    larder *world = larder_new();
    larder_table *table = NULL;

    newer options = {.known = {.size = sizeof options, .kind = LARDER_BAG, .named = true}};
    OK(larder_table_new(world, "newer", &options.known, &table));
    larder_table_free(table);
    OK(larder_table_find(world, "newer", &table));
    larder_table_free(table);
    table = NULL;
    options.later = 1;
    ENDS(LARDER_BAD_OPTION, larder_table_new(world, "asks for more", &options.known, &table));
    CHECK(told("field") && told(larder_version()));

    size_t wrong[] = {0, 1, sizeof(larder_options) - 1, 5000, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        larder_options bad = {.size = wrong[i], .kind = LARDER_BAG};
        ENDS(LARDER_BAD_OPTION, larder_table_new(world, "bad", &bad, &table));
        CHECK(told("options.size") && told("sizeof(larder_options)") && table == NULL);
    }

    /* The library is the header's. */
    CHECK(larder_version_number() == LARDER_VERSION_NUMBER && LARDER_VERSION_NUMBER >= 100);
    CHECK(strcmp(larder_version(), LARDER_VERSION) == 0);
    char printed[32];
    snprintf(printed, sizeof printed, "%d.%d.%d", LARDER_VERSION_MAJOR, LARDER_VERSION_MINOR, LARDER_VERSION_PATCH);
    CHECK(strcmp(printed, LARDER_VERSION) == 0);
#if LARDER_VERSION_NUMBER < 10000 * LARDER_VERSION_MAJOR
#error "the version is a constant of the preprocessor"
#endif

    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
