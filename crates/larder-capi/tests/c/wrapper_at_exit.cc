// Functions of atexit and destructors of static objects use tables. The thread-local variables of
// the main thread are gone by then.
#include <cstdio>
#include <cstdlib>
#include <larder.hpp>
#include <memory>

using namespace larderpp;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::_Exit(1); \
        } \
    } while (0)

static void work(const world &w, const table &counts) {
    CHECK(counts.add("calls", 1) > 0 && counts.get<int>("calls") && !counts.has("none"));
    counts.insert(row("row", 1, 2));
    terms two = row("x", 1);
    two.push(std::pair("y", 2));
    counts.insert(two);
    std::size_t seen = 0;
    for (view each : counts.each()) seen += each.size() > 1;
    for (view each : counts.select("[{{'$1','$2'},[{'>','$2',1}],['$1']}]"))
        seen += each.size() > 9;
    CHECK(seen == 4 && counts.select_count("[{'_',[],[true]}]") == 4 && counts.nth(-1).size() == 1);
    transact({counts}, [](const transaction &own) { own[0].add("x", 1); });
    auto [before, changes] = counts.snapshot_and_subscribe();
    const terms x = term("x");
    operations list;
    list.add(counts, x.front(), 2, 1).insert(counts, row("y", 3).front());
    CHECK(!list.commit() && changes.poll() && changes.poll() && before.get<int>("x") == 2);
    const table unique = w.table("unique");
    unique.add_index("second", 2, LARDER_INDEX_UNIQUE);
    CHECK(unique.insert_new(row(1, "a").front()) && !unique.insert_new(row(2, "a").front()));
    counts.save("counts.larder");
    CHECK(w.load("counts.larder").size() == counts.size());
    CHECK(counts.remove("x") && counts.remove("y"));
}

struct holder {
    std::unique_ptr<world> own{new world};
    table counts = own->table("counts", options().ordered_set());
    ~holder() {
        try {
            work(*own, counts);
            {
                const table ended = std::move(counts);
            }
            own.reset();
            CHECK(quiesce(std::chrono::seconds(20)));
            std::puts("ok");
        } catch (const error &wrong) {
            std::fprintf(stderr, "%s\n", wrong.what());
            std::_Exit(1);
        }
    }
};

static holder all;

static void at_end() {
    work(*all.own, all.counts);
}

int main() {
    work(*all.own, all.counts);
    CHECK(std::atexit(at_end) == 0);
}
