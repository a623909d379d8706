/* What the tests share. */
#ifndef CHECK_H
#define CHECK_H

#include <larder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, larder_message()); \
            exit(1); \
        } \
    } while (0)

/* That a call ends so. */
#define ENDS(status, call) \
    do { \
        larder_status ended_ = (call); \
        if (ended_ != (status)) { \
            fprintf(stderr, "%s:%d: %s: %s instead of %s; %s\n", __FILE__, __LINE__, #call, larder_status_name(ended_), \
                    larder_status_name(status), larder_message()); \
            exit(1); \
        } \
    } while (0)

#define OK(call) ENDS(LARDER_OK, call)

static const larder_view NOTHING = {NULL, 0};

/* Replaces what `terms` has by the term that the text is; a view of it. */
static inline larder_view term(larder_terms *terms, const char *text) {
    larder_terms_clear(terms);
    OK(larder_push_text(terms, text));
    return larder_terms_get(terms, 0);
}

/* Whether a term is printed so. */
static inline int reads(larder_view view, const char *text) {
    char printed[1024];
    size_t length = larder_view_text(view, printed, sizeof printed);
    if (length == strlen(text) && strcmp(printed, text) == 0) return 1;
    fprintf(stderr, "%s, and not %s\n", printed, text);
    return 0;
}

#endif
