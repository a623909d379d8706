// The header in C++: what is freed is freed by unique_ptr.
#include <cstdio>
#include <larder.h>
#include <memory>

struct Free {
    void operator()(larder *world) const { larder_free(world); }
    void operator()(larder_table *table) const { larder_table_free(table); }
    void operator()(larder_terms *terms) const { larder_terms_free(terms); }
};

static int run() {
    std::unique_ptr<larder, Free> world(larder_new());
    larder_table *made = nullptr;
    if (larder_table_new(world.get(), "t", nullptr, &made) != LARDER_OK) return 1;
    std::unique_ptr<larder_table, Free> table(made);
    std::unique_ptr<larder_terms, Free> rows(larder_terms_new());
    if (larder_push_text(rows.get(), "{1, [a, b]}") != LARDER_OK) return 1;
    if (larder_insert_all(table.get(), rows.get()) != LARDER_OK) return 1;
    return larder_size(table.get()) == 1 ? 0 : 1;
}

int main() {
    if (run() != 0 || larder_quiesce(60000) != LARDER_OK) return 1;
    std::puts("ok");
}
