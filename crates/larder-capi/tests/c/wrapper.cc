// larder.hpp: owners, ranges, optional, exceptions.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <larder.hpp>
#include <thread>

using namespace larderpp;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, larder_message()); \
            std::exit(1); \
        } \
    } while (0)

template <class F> static larder_status fails(F &&f) {
    try {
        f();
    } catch (const error &wrong) {
        CHECK(std::string(wrong.what()).size() > 5);
        return wrong.status();
    }
    return LARDER_OK;
}

static void values() {
    terms t;
    t.push(1).push(-2L).push(UINT64_MAX).push(0.5).push(true).push(atom("a")).push("text").push(std::string("b\0c", 3));
    t.push(std::vector<std::string>{"x", "y"}).push(std::map<int, double>{{1, 2.5}});
    t.push(std::tuple(1, "b", std::pair(atom("c"), std::vector<bool>{true, false})));
    t.push(t[0]).push(std::string_view("view"));
    CHECK(t.size() == 13 && t[13].kind() == LARDER_KIND_NOTHING && !t[13]);
    CHECK(t[0].as<int>() == 1 && t[1].as<long>() == -2 && t[2].as<std::uint64_t>() == UINT64_MAX);
    CHECK(!t[2].as<std::int64_t>() && !t[1].as<unsigned>() && !term(300).front().as<std::uint8_t>());
    CHECK(term(-129).front().as<std::int8_t>() == std::nullopt && term(-128).front().as<std::int8_t>() == -128);
    CHECK(t[3].as<double>() == 0.5 && !t[0].as<double>() && t[4].as<bool>() == true && !t[5].as<bool>());
    CHECK(t[5].as<atom>()->name == "a" && t[5].as_atom() == "a" && !t[6].as_atom());
    CHECK(t[6].as<std::string>() == "text" && t[7].as<std::string_view>()->size() == 3);
    CHECK(t[8].text() == "[<<\"x\">>,<<\"y\">>]" && t[8].size() == 2 && t[8][1].as<std::string>() == "y");
    CHECK(t[9].find(t[0]).as<double>() == 2.5 && !t[9].find(t[1]) && t[9].elements().size() == 2);
    CHECK(t[10].text() == "{1,<<\"b\">>,{c,[true,false]}}" && t[11] == t[0] && t[0] != t[1] && t[1] < t[0]);
    CHECK(!term(1e300).front().as<float>() && !term(-1e300).front().as<float>());
    CHECK(term(1e300).front().as<long double>() == 1e300 && t[3].as<float>() == 0.5F);
    std::size_t n = 0;
    for (view each : t) n += each.size() == 3;
    CHECK(n == 2);
    CHECK(terms::parsed("{a, [1]}").front()[1][0].as<int>() == 1);
    CHECK(fails([] { terms::parsed("{a,"); }) == LARDER_BAD_TERM);
    CHECK(fails([] { terms().front(); }) == LARDER_BAD_ARGUMENT);
    t.clear();
    CHECK(t.empty() && t.begin() == t.end());
    // The iterators are those of a range of C++20, too.
    static_assert(std::is_default_constructible_v<terms::iterator>);
    static_assert(!std::is_constructible_v<key, std::nullptr_t>);
    // What can't be pushed as a whole leaves nothing behind.
    const std::tuple good(1, atom("a"));
    const std::tuple bad(2, atom(std::string(256, 'a')));
    CHECK(fails([&] { t.push(std::pair(1, std::nan(""))); }) == LARDER_BAD_TERM);
    CHECK(fails([&] { t.push(std::vector{good, bad}); }) == LARDER_BAD_TERM);
    CHECK(fails([&] { t.push(std::map<int, double>{{1, 0.5}, {2, HUGE_VAL}}); }) == LARDER_BAD_TERM);
    t.push(std::pair(3, good));
    CHECK(t.size() == 1 && t[0].text() == "{3,{1,a}}");
}

static void tables(const world &w) {
    table stock = w.table("stock", options().ordered_set().named());
    stock.put("apple", 3);
    stock.put(std::string("pear"), std::string_view("green"));
    stock.put(7, 2.5);
    stock.put(8u, atom("x"));
    stock.put(term(std::pair(1, 2)).front(), true);
    CHECK(stock.get<int>("apple") == 3 && stock.get<std::string>("pear") == "green" && stock.get<double>(7) == 2.5);
    CHECK(stock.get<int>("none") == std::nullopt && stock.get_term(8).front().as_atom() == "x");
    CHECK(fails([&] { stock.get<int>("pear"); }) == LARDER_VALUE_TYPE);
    CHECK(stock.add("apple", 4) == 7 && stock.add("new", -1) == -1);
    CHECK(stock.has("new") && stock.remove("new") && !stock.remove("new") && stock.size() == 5);

    stock.insert(row(10, "ten", std::vector<int>{1, 2}));
    terms two = row(11, "eleven");
    two.push(std::tuple(12, "twelve"));
    CHECK(stock.insert_new(two) && !stock.insert_new(two) && !stock.insert_new(two[0]));
    CHECK(stock.lookup(term(10).front()).front()[1].as<std::string>() == "ten");
    CHECK(stock.lookup(term(99).front()).empty() && stock.contains(term(12).front()));
    CHECK(stock.update(term(12).front(), 2, term("dozen").front()) && stock.get<std::string>(12) == "dozen");
    CHECK(stock.take(term(12).front()).size() == 1 && stock.erase(term(11).front()) == 1 && stock.erase(term(11).front()) == 0);
    CHECK(stock.erase_row(row(10, "other").front()) == 0 && stock.memory() > 0);
    CHECK(stock.info().front().find(term(atom("type")).front()).as_atom() == "ordered_set");

    table again = std::move(*w.find("stock"));
    CHECK(!w.find("none") && again.size() == stock.size());
    CHECK(fails([&] { w.table("stock", options().named()); }) == LARDER_ALREADY_EXISTS);
    CHECK(fails([&] { w.table("odd", options().structure("cupboard")); }) == LARDER_BAD_OPTION);
    stock.save("stock.larder");
    again.drop();
    CHECK(fails([&] { stock.put(1, 1); }) == LARDER_NO_TABLE);
    again = w.load("stock.larder");
    CHECK(again.size() == 6 && again.clear() == 6);
}

static void ranges(const world &w) {
    table squares = w.table("squares", options().ordered_set());
    for (int i = 1; i <= 1000; i++) squares.put(i, i * i);
    std::int64_t sum = 0;
    for (view each : squares.each()) sum += each[1].as<std::int64_t>().value();
    CHECK(sum == 333833500);
    std::string keys;
    for (view each : squares.range(3, 6)) keys += each[0].text() + " ";
    for (view each : squares.range(998, std::nullopt, true)) keys += each[0].text() + " ";
    for (view each : squares.range(std::nullopt, 2)) keys += each[0].text() + " ";
    for (view each : squares.range("text", std::nullopt)) keys += each[0].text() + "!";
    CHECK(keys == "3 4 5 1000 999 998 1 ");
    for (view each : squares.select("[{{'$1','$2'},[{'>','$2',999000}],['$1']}]")) CHECK(each.as<int>() == 1000);
    const prepared below("[{{'$1','$2'},[{'<','$2',{bind,1}}],['$1']}]");
    rows few = squares.select(below, term(26));
    CHECK(below.parameters() == 1 && few.next(2).size() == 2 && few.next(9).size() == 3 && few.next(9).empty());
    CHECK(fails([&] { squares.select(below, terms()); }) == LARDER_BAD_SPEC);
    CHECK(squares.select_count("[{{'$1','_'},[{'<','$1',11}],[true]}]") == 10);
    CHECK(squares.select_delete("[{{'$1','_'},[{'<','$1',11}],[true]}]") == 10);
    CHECK(squares.select_replace("[{{11,'_'},[],[{{11,x}}]}]") == 1 && squares.get<atom>(11)->name == "x");
    CHECK(squares.select_take("[{{11,'$1'},[],['$1']}]").size() == 1);
    CHECK(squares.first().front().as<int>() == 12 && squares.last().front().as<int>() == 1000);
    CHECK(squares.next(term(12).front()).front().as<int>() == 13 && squares.prev(term(12).front()).empty());
    CHECK(squares.rank(term(20).front()) == 9u && !squares.rank(term(5).front()) && squares.nth(-1).front()[0].as<int>() == 1000);

    squares.add_index("square", 2, LARDER_INDEX_UNIQUE);
    squares.add_index("last", "{'rem', {element, 1, '$_'}, 10}");
    CHECK(squares.index_lookup("square", term(400).front()).front()[0].as<int>() == 20);
    CHECK(squares.index_lookup("last", term(7).front()).size() == 99);
    CHECK(fails([&] { squares.put(2000, 400); }) == LARDER_NOT_UNIQUE);
    squares.drop_index("square");
    CHECK(fails([&] { squares.index_lookup("square", term(400).front()); }) == LARDER_NO_INDEX);
    squares.rename("others");
}

static void together(const world &w) {
    table from = w.table("from"), to = w.table("to");
    from.put("alice", 10);
    const std::int64_t left = transact({from, to}, [](const transaction &own) {
        own[1].add("bob", 3);
        return own[0].add("alice", -3);
    });
    CHECK(left == 7 && to.get<int>("bob") == 3);
    int tries = 0;
    transact({from}, [&](const transaction &own) {
        own[0].add("alice", 1);
        CHECK(own.validate());
        if (++tries == 1) from.add("alice", 100);
        CHECK(own.validate() == (tries > 1));
    });
    CHECK(tries == 2 && from.get<int>("alice") == 108);
    try {
        transact({from}, [](const transaction &own) {
            own[0].clear();
            throw 5;
        });
        CHECK(false);
    } catch (int) {
        CHECK(from.size() == 1);
    }

    operations list;
    const terms alice = term("alice");
    list.check(from, alice.front(), row("alice", 108)).add(from, alice.front(), 2, 1);
    list.insert(to, row("carol", 1).front()).insert_new(to, row("dan", 1).front()).update(to, term("dan").front(), 2, alice.front());
    list.erase(to, term("bob").front()).erase_row(to, row("carol", 1).front());
    CHECK(!list.commit() && to.size() == 1 && from.get<int>("alice") == 109);
    CHECK(list.commit() == 1u);

    table before = from.snapshot();
    auto [then, changes] = from.snapshot_and_subscribe();
    CHECK(!changes.poll() && !changes.next(std::chrono::milliseconds(1)));
    from.add("alice", 1);
    const auto first = changes.next();
    CHECK(first && first->event == LARDER_EVENT_REPLACE && first->after[1].as<int>() == 110 && first->before[1].as<int>() == 109);
    CHECK(before.get<int>("alice") == 109 && then.get<int>("alice") == 109);
    CHECK(before.diff(from.snapshot()).size() == 1);
    CHECK(fails([&] { before.put(1, 1); }) == LARDER_READ_ONLY);
    // The scan keeps the snapshot, whose handle is freed before the loop begins.
    std::size_t rows_seen = 0;
    for (view each : from.snapshot().each()) rows_seen += each.size() == 2;
    CHECK(rows_seen == 1);
    feed filtered = from.subscribe("[{{'_','$1'},[{'>','$1',500}],['$_']}]");
    std::thread writer([&] {
        for (int i = 1; i <= 1000; i++) from.put(i, i);
        from.drop();
    });
    int seen = 0;
    filtered.each([&](const change &own) { return own.event == LARDER_EVENT_GONE || ++seen; });
    writer.join();
    CHECK(seen == 500 && filtered.is_over() && !filtered.next());
}

static void bounds(const world &w) {
    table few = w.table("few", options().max_size(10).evict(LARDER_EVICT_LRU).idle(std::chrono::hours(1)));
    for (int i = 0; i < 100; i++) few.put(i, i);
    table sessions = w.table("sessions", options().ttl(std::chrono::hours(1)).max_memory(1 << 20));
    sessions.insert_for(row("gone", 1).front(), std::chrono::milliseconds(0));
    sessions.insert_for(row("stays", 1).front(), std::nullopt);
    CHECK(!sessions.has("gone") && sessions.has("stays"));
    const terms stays = term("stays");
    CHECK(!sessions.time_left(term("gone").front()) && *sessions.time_left(stays.front()) == std::nullopt);
    CHECK(sessions.expire(stays.front(), std::chrono::seconds(60)) &&
          **sessions.time_left(stays.front()) <= std::chrono::seconds(60));
    CHECK(sessions.expire(stays.front(), std::chrono::milliseconds(-5)) && !sessions.has("stays"));
    CHECK(!sessions.expire(stays.front(), std::nullopt));
    CHECK(fails([&] { options().ttl(std::chrono::milliseconds(0)); }) == LARDER_BAD_OPTION);
    CHECK(few.size() <= 100 && fails([&] { w.table("odd", options().evict(LARDER_EVICT_LRU)); }) == LARDER_BAD_OPTION);
}

// A text that larder.h takes up to its NUL is refused if it goes on after one.
static void texts_with_nuls(const world &w) {
    const std::string cut("a\0b", 3), spec("[{'_',[],[true]}]\0junk", 22);
    table t = w.table("texts", options().ordered_set());
    // Keys and values are passed with their lengths.
    t.put(cut, cut);
    CHECK(t.get<std::string>(cut) == cut && !t.has("a") && t.size() == 1);
    const std::vector<std::pair<const char *, std::function<void()>>> refused = {
        {"atom", [&] { term(atom(cut)); }},
        {"parsed", [&] { terms::parsed(cut); }},
        {"table", [&] { w.table(cut, options().named()); }},
        {"structure", [&] { w.table("s", options().structure(std::string("btree\0x", 7))); }},
        {"find", [&] { w.find(cut); }},
        {"load", [&] { w.load(cut); }},
        {"save", [&] { t.save(cut); }},
        {"rename", [&] { t.rename(cut); }},
        {"prepared", [&] { prepared own(spec); }},
        {"select", [&] { t.select(spec); }},
        {"select_count", [&] { t.select_count(spec); }},
        {"select_delete", [&] { t.select_delete(spec); }},
        {"select_replace", [&] { t.select_replace(spec); }},
        {"select_take", [&] { t.select_take(spec); }},
        {"subscribe", [&] { t.subscribe(spec); }},
        {"snapshot_and_subscribe", [&] { t.snapshot_and_subscribe(spec); }},
        {"add_index", [&] { t.add_index(cut, 2); }},
        {"expression", [&] { t.add_index("i", std::string("{element, 1, '$_'}\0x", 20)); }},
        {"drop_index", [&] { t.drop_index(cut); }},
        {"index_lookup", [&] { t.index_lookup(cut, term(1).front()); }},
    };
    for (const auto &[name, call] : refused) {
        try {
            call();
            std::fprintf(stderr, "%s took a text with a NUL\n", name);
            std::exit(1);
        } catch (const error &wrong) {
            const std::string text = wrong.what();
            CHECK(wrong.status() == LARDER_BAD_ARGUMENT && text.find("NUL at offset") != text.npos);
        }
    }
    CHECK(t.size() == 1 && !w.find("a"));
}

// What owns a handle is unchanged by a move to itself.
static void moved_to_itself(const world &w) {
    table t = w.table("moved", options().ordered_set());
    t.put(1, 2);
    table &same = t;
    t = std::move(same);
    CHECK(t.get() != nullptr && t.get<int>(1) == 2);
    terms all = row(1, 2), &same_terms = all;
    all = std::move(same_terms);
    CHECK(all.size() == 1);
    rows scan = t.each(), &same_rows = scan;
    scan = std::move(same_rows);
    CHECK(scan.next(9).size() == 1);
    feed changes = t.subscribe(), &same_feed = changes;
    changes = std::move(same_feed);
    t.put(1, 3);
    CHECK(changes.poll()->event == LARDER_EVENT_REPLACE);
    table other = w.table("other");
    t = std::move(other);
    CHECK(other.get() == nullptr && t.size() == 0);
}

// Rows of more than a key and a value: elements, maps, ranks, prepared specifications, indexes.
static void rows_with_more(const world &w) {
    table t = w.table("more", options().ordered_set());
    const auto counts = std::map<std::string, int>{{"a", 1}};
    for (int k = 1; k <= 9; k++) t.insert(row(k, k * 10, 10 - k, counts));
    const terms one = term(1), none = term(99), a = term("a"), b = term("b");
    CHECK(t.lookup_elements(one.front(), {3, 1}).size() == 2 && t.lookup_elements(none.front(), {1}).empty());
    CHECK(fails([&] { t.lookup_elements(one.front(), {9}); }) == LARDER_BAD_ROW);
    CHECK(t.add(one.front(), 2, 5) == 15 && t.add(none.front(), 2, 5, row(0, 7).front()) == 12);
    CHECK(fails([&] { t.add(term(98).front(), 2, 5); }) == LARDER_BAD_KEY && t.erase(none.front()) == 1);
    CHECK(t.map_put(one.front(), 4, b.front(), term(7).front()) && !t.map_put(none.front(), 4, b.front(), b.front()));
    CHECK(t.map_add(one.front(), 4, b.front(), 3) == 10 && t.map_add(one.front(), 4, none.front(), 1, 5) == 6);
    CHECK(fails([&] { t.map_add(one.front(), 4, one.front(), 1); }) == LARDER_BAD_KEY);
    CHECK(t.map_remove(one.front(), 4, a.front()) && t.lookup(one.front()).front()[3].size() == 2);
    CHECK(t.slice(-2, 9).size() == 2 && t.slice(3, 4)[3][0].as<int>() == 6 && t.slice(10, 1).empty());
    CHECK(t.count_range(term(3).front(), term(7).front()) == 4);
    const prepared below("[{{'$1','_','_','_'},[{'<','$1',{bind,1}}],[true]}]");
    const prepared raised("[{{'$1','$2','$3','$4'},[],[{{'$1',{'+','$2',{bind,1}},'$3','$4'}}]}]");
    CHECK(t.select_count(below, term(4)) == 3 && t.select_replace(raised, term(1)) == 9);
    CHECK(t.select_delete(below, term(2)) == 1 && t.select_take(below, term(4)).size() == 2 && t.size() == 6);
    t.add_index("third", 3);
    const terms sorted = t.index_select("third", "[{{'$1','_','_','_'},[],['$1']}]");
    CHECK(sorted.size() == 6 && sorted[0].as<int>() == 9 && sorted[5].as<int>() == 4);
    table other = w.table("other");
    const std::vector<table> both = snapshots({t, other});
    t.clear();
    CHECK(both.size() == 2 && both[0].size() == 6 && both[1].size() == 0);
    operations list;
    list.insert(other, row(1, 2).front()).clear();
    CHECK(!list.commit() && other.size() == 0);
    const terms pair = terms::parsed("{[1|x], \"ab\"}");
    CHECK(pair.front()[0].tail().as_atom() == "x" && !pair.front().tail());
    CHECK(terms::from_etf(pair.front().etf()).front() == pair.front());
    CHECK(fails([] { terms::from_etf({131, 119, 3, 'n', 'e', 'w'}); }) == LARDER_BAD_TERM);
    CHECK(terms::from_etf({131, 119, 3, 'n', 'e', 'w'}, true).front().as_atom() == "new");
}

// Libraries older than the header, and those of another minor version, are refused.
static void versions() {
    detail::check_version(LARDER_VERSION_NUMBER, "this one");
    detail::check_version(LARDER_VERSION_NUMBER + 1, "a later patch");
    for (const int other : {LARDER_VERSION_NUMBER - 1, LARDER_VERSION_NUMBER + 100,
                            LARDER_VERSION_NUMBER + 10000}) {
        CHECK(fails([&] { detail::check_version(other, "0.0.9"); }) == LARDER_BAD_ARGUMENT);
        try {
            detail::check_version(other, "0.0.9");
        } catch (const error &wrong) {
            const std::string text = wrong.what();
            CHECK(text.find("0.0.9") != text.npos && text.find(LARDER_VERSION) != text.npos);
        }
    }
}

int main() {
    versions();
    {
        const world w;
        values();
        texts_with_nuls(w);
        moved_to_itself(w);
        tables(w);
        ranges(w);
        together(w);
        bounds(w);
        rows_with_more(w);
    }
    CHECK(quiesce(std::chrono::seconds(20)));
    std::puts("ok");
}
