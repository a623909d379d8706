// Larder for C++17: larder.h with owners that free, ranges, std::optional and std::string_view.
//
// Header-only; link with -llarder. docs/c.md has an introduction. Everything is in the namespace
// larderpp, as `larder` is a type of larder.h.
//
// * A function of larder.h that fails becomes an exception, larderpp::error, with its status and
//   its words. LARDER_NONE is no failure: it becomes false, std::nullopt, or something empty.
// * world, table, terms, rows, prepared, feed, operations and transaction own what they have: they
//   are moved, not copied, and free it when they go. view, key and table_ref own nothing.
// * Threads: as larder.h says of the types behind these.
// * Functions that are called back (transact, feed::each) may throw: no frame of the library lies
//   between them and the caller.

#ifndef LARDER_HPP
#define LARDER_HPP

#include <larder.h>
#include <larder_terms.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace larderpp {

// What a scan finds: a range that can be gone through once. Views are valid until the iterator that
// gave them goes on.
class rows {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = view;
        using difference_type = std::ptrdiff_t;
        using pointer = const view *;
        using reference = view;
        // The end.
        iterator() noexcept : of_(nullptr) {}
        explicit iterator(rows *of) : of_(of) { settle(); }
        view operator*() const { return of_->page_[of_->at_]; }
        iterator &operator++() {
            ++of_->at_;
            settle();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(iterator a, iterator b) { return a.of_ == b.of_; }
        friend bool operator!=(iterator a, iterator b) { return a.of_ != b.of_; }

    private:
        void settle() {
            if (of_->at_ == of_->count_ && !of_->turn()) of_ = nullptr;
        }
        rows *of_;
    };

    explicit rows(larder_rows *own) : rows_(own) {}
    iterator begin() { return iterator(this); }
    iterator end() { return iterator(); }
    // The next results, `most` or, at the end, fewer; empty at the end.
    terms next(std::size_t most) {
        terms page;
        detail::check(larder_rows_next(rows_.get(), most, page.get()));
        return page;
    }

private:
    // Fetches the next page; whether there is one.
    bool turn() {
        const bool more = detail::check(larder_rows_next(rows_.get(), page_size, page_.get()));
        at_ = 0;
        count_ = page_.size();
        return more;
    }

    static constexpr std::size_t page_size = 256;
    detail::owned<larder_rows> rows_;
    terms page_;
    std::size_t at_ = 0;
    std::size_t count_ = 0;
};

// A match specification with parameters, compiled.
class prepared {
public:
    explicit prepared(const std::string &spec) {
        larder_prepared *made = nullptr;
        detail::check(larder_prepare(spec.c_str(), &made));
        prepared_.reset(made);
    }
    std::size_t parameters() const { return larder_prepared_parameters(prepared_.get()); }
    const larder_prepared *get() const noexcept { return prepared_.get(); }

private:
    detail::owned<larder_prepared> prepared_;
};

// What changed. Views are valid until the feed is asked for the next change.
struct change {
    larder_event event;
    // Whether the next change is of the same commit.
    bool more;
    std::uint64_t seq;
    view before;
    view after;
    std::uint64_t lost;
};

// A subscription to a table.
class feed {
public:
    explicit feed(larder_feed *own) : feed_(own) {}
    // The next change, if one has come.
    std::optional<change> poll() { return next_in(0); }
    // The next change; waits for it. None after the table was dropped.
    std::optional<change> next() { return next_in(-1); }
    // As next, but waits no longer than so.
    std::optional<change> next(std::chrono::milliseconds timeout) {
        return next_in(timeout.count() < 0 ? 0 : static_cast<std::int64_t>(timeout.count()));
    }
    // Calls f with each change, as it comes, until it answers false or the table is dropped.
    template <class F> void each(F &&f) {
        while (const auto found = next())
            if (!f(*found)) return;
    }
    // Whether the table was dropped, and that was told.
    bool is_over() const noexcept { return is_over_; }

private:
    std::optional<change> next_in(std::int64_t timeout_ms) {
        if (is_over_) return std::nullopt;
        const larder_change *found = nullptr;
        if (!detail::check(larder_feed_next(feed_.get(), timeout_ms, &found))) return std::nullopt;
        is_over_ = found->event == LARDER_EVENT_GONE;
        return change{found->event,  found->more,  found->seq,
                      found->before, found->after, found->lost};
    }

    detail::owned<larder_feed> feed_;
    bool is_over_ = false;
};

// A table, without owning its handle.
class table_ref {
public:
    table_ref(const larder_table *of) noexcept : table_(of) {}
    const larder_table *get() const noexcept { return table_; }

    // --- rows of a key and a value ---

    // Inserts the row {key, value}.
    template <class T> void put(key k, const T &value) const {
        if constexpr (std::is_convertible_v<const T &, larder_view>)
            detail::check(larder_put(table_, k, value));
        else
            detail::check(larder_put(table_, k, term(value).front()));
    }
    // The value under a key: the second element of its row. Throws LARDER_VALUE_TYPE if it is of
    // another type.
    template <class T> std::optional<T> get(key k) const {
        static_assert(!std::is_same_v<T, std::string_view> && !std::is_same_v<T, view>,
                      "a value that is got is a copy: std::string, or get_term");
        terms found;
        if (!detail::check(larder_get(table_, k, found.get()))) return std::nullopt;
        if (auto value = found.front().template as<T>()) return value;
        throw error(LARDER_VALUE_TYPE, "the value " + found.front().text() + " is of another type");
    }
    // The same, whatever it is: empty if there is none.
    terms get_term(key k) const {
        return filled([&](larder_terms *out) { return larder_get(table_, k, out); });
    }
    // Adds to the integer under a key; the sum. A counter that is not there begins with 0.
    std::int64_t add(key k, std::int64_t increment) const {
        std::int64_t sum = 0;
        detail::check(larder_add_i64(table_, k, increment, &sum));
        return sum;
    }
    bool has(key k) const { return detail::check(larder_has(table_, k)); }
    bool remove(key k) const { return detail::check(larder_remove(table_, k)); }

    // --- rows ---

    // Inserts a row, or all rows of a sequence at once.
    void insert(view own) const { detail::check(larder_insert(table_, own)); }
    void insert(const terms &all) const { detail::check(larder_insert_all(table_, all.get())); }
    // Inserts if none of the keys is there; whether it did.
    bool insert_new(view own) const { return detail::check(larder_insert_new(table_, own)); }
    bool insert_new(const terms &all) const {
        return detail::check(larder_insert_all_new(table_, all.get()));
    }
    terms lookup(view k) const {
        return filled([&](larder_terms *out) { return larder_lookup(table_, k, out); });
    }
    terms take(view k) const {
        return filled([&](larder_terms *out) { return larder_take(table_, k, out); });
    }
    bool contains(view k) const { return detail::check(larder_contains(table_, k)); }
    // How many rows went.
    std::size_t erase(view k) const {
        std::size_t gone = 0;
        detail::check(larder_delete(table_, k, &gone));
        return gone;
    }
    std::size_t erase_row(view own) const {
        std::size_t gone = 0;
        detail::check(larder_delete_row(table_, own, &gone));
        return gone;
    }
    // Replaces the element at a position, from 1; whether there is such a key.
    bool update(view k, std::size_t position, view element) const {
        return detail::check(larder_update(table_, k, position, element));
    }

    // --- rows that expire: a table with bounds; std::nullopt is for ever ---

    using time = std::optional<std::chrono::milliseconds>;
    void insert_for(view own, time ttl) const {
        detail::check(larder_insert_for(table_, own, ms(ttl)));
    }
    bool expire(view k, time ttl) const { return detail::check(larder_expire(table_, k, ms(ttl))); }

    // --- many rows ---

    // Every row: in key order, or the other way, for an ordered_set.
    larderpp::rows each(bool backward = false) const {
        return scan([&](larder_rows **out) { return larder_each(table_, backward, out); });
    }
    // The rows of an ordered_set with keys from low on and before high; std::nullopt is no bound.
    larderpp::rows range(key low, key high, bool backward = false) const {
        return scan(
            [&](larder_rows **out) { return larder_range(table_, low, high, backward, out); });
    }
    // What a match specification gives.
    larderpp::rows select(const std::string &spec, bool backward = false) const {
        return scan(
            [&](larder_rows **out) { return larder_select(table_, spec.c_str(), backward, out); });
    }
    larderpp::rows select(const prepared &spec, const terms &values, bool backward = false) const {
        return scan([&](larder_rows **out) {
            return larder_select_prepared(table_, spec.get(), values.get(), backward, out);
        });
    }
    std::uint64_t select_count(const std::string &spec) const {
        return counted(larder_select_count, spec);
    }
    std::uint64_t select_delete(const std::string &spec) const {
        return counted(larder_select_delete, spec);
    }
    std::uint64_t select_replace(const std::string &spec) const {
        return counted(larder_select_replace, spec);
    }
    terms select_take(const std::string &spec) const {
        return filled(
            [&](larder_terms *out) { return larder_select_take(table_, spec.c_str(), out); });
    }
    // The first key, the last, the one after, the one before; empty if there is none.
    terms first() const {
        return filled([&](larder_terms *out) { return larder_first(table_, out); });
    }
    terms last() const {
        return filled([&](larder_terms *out) { return larder_last(table_, out); });
    }
    terms next(view k) const {
        return filled([&](larder_terms *out) { return larder_next(table_, k, out); });
    }
    terms prev(view k) const {
        return filled([&](larder_terms *out) { return larder_prev(table_, k, out); });
    }
    // The rank of a key of an ordered_set, from 1, and the row of a rank.
    std::optional<std::uint64_t> rank(view k) const {
        std::uint64_t found = 0;
        if (!detail::check(larder_rank(table_, k, &found))) return std::nullopt;
        return found;
    }
    terms nth(std::int64_t n) const {
        return filled([&](larder_terms *out) { return larder_nth(table_, n, out); });
    }

    // --- indexes ---

    // flags: larder_index_flags.
    void add_index(const std::string &name, std::size_t position, std::uint32_t flags = 0) const {
        detail::check(larder_add_index(table_, name.c_str(), position, flags));
    }
    void add_index(const std::string &name, const std::string &expression,
                   std::uint32_t flags = 0) const {
        detail::check(larder_add_index_on(table_, name.c_str(), expression.c_str(), flags));
    }
    void drop_index(const std::string &name) const {
        detail::check(larder_drop_index(table_, name.c_str()));
    }
    terms index_lookup(const std::string &name, view value) const {
        return filled([&](larder_terms *out) {
            return larder_index_lookup(table_, name.c_str(), value, out);
        });
    }

    // --- the table as a whole ---

    std::size_t size() const { return larder_size(table_); }
    std::size_t memory() const { return larder_memory(table_); }
    std::size_t clear() const {
        std::size_t gone = 0;
        detail::check(larder_clear(table_, &gone));
        return gone;
    }
    void rename(const std::string &name) const {
        detail::check(larder_table_rename(table_, name.c_str()));
    }
    void save(const std::string &path) const {
        detail::check(larder_table_save(table_, path.c_str()));
    }
    void drop() const { detail::check(larder_table_drop(table_)); }
    // A map of its properties.
    terms info() const {
        return filled([&](larder_terms *out) { return larder_info(table_, out); });
    }
    // What changes from here on; limit 0 stands for 10,000.
    larderpp::feed subscribe(const std::optional<std::string> &filter = std::nullopt,
                             std::size_t limit = 0) const {
        larder_feed *made = nullptr;
        detail::check(
            larder_subscribe(table_, filter ? filter->c_str() : nullptr, limit, nullptr, &made));
        return larderpp::feed(made);
    }

protected:
    static std::int64_t ms(time of) {
        if (!of) return -1;
        return of->count() < 0 ? 0 : static_cast<std::int64_t>(of->count());
    }
    template <class F> static terms filled(F &&f) {
        terms out;
        detail::check(f(out.get()));
        return out;
    }
    template <class F> static larderpp::rows scan(F &&f) {
        larder_rows *begun = nullptr;
        detail::check(f(&begun));
        return larderpp::rows(begun);
    }
    using counting = larder_status (*)(const larder_table *, const char *, std::uint64_t *);
    std::uint64_t counted(counting f, const std::string &spec) const {
        std::uint64_t count = 0;
        detail::check(f(table_, spec.c_str(), &count));
        return count;
    }

    const larder_table *table_;
};

// A handle of a table, or of a snapshot. The table lives on without it.
class table : public table_ref {
public:
    explicit table(larder_table *own) noexcept : table_ref(own), own_(own) {}
    table(table &&other) noexcept : table_ref(other.table_), own_(std::move(other.own_)) {
        other.table_ = nullptr;
    }
    table &operator=(table &&other) noexcept {
        own_ = std::move(other.own_);
        table_ = own_.get();
        other.table_ = nullptr;
        return *this;
    }

    // The table as of this moment.
    table snapshot() const {
        larder_table *made = nullptr;
        const larder_table *of = table_;
        detail::check(larder_snapshot(&of, 1, &made));
        return table(made);
    }
    // A snapshot, and a feed of what changes after it.
    std::pair<table, larderpp::feed>
    snapshot_and_subscribe(const std::optional<std::string> &filter = std::nullopt,
                           std::size_t limit = 0) const {
        larder_table *before = nullptr;
        larder_feed *made = nullptr;
        detail::check(
            larder_subscribe(table_, filter ? filter->c_str() : nullptr, limit, &before, &made));
        return {table(before), larderpp::feed(made)};
    }
    // What has to be done to this snapshot's rows to get another's.
    terms diff(const table &later) const {
        return filled([&](larder_terms *out) { return larder_diff(table_, later.table_, out); });
    }

private:
    detail::owned<larder_table> own_;
};

// How a table is made: a set with the key in front, unless something else is said.
class options {
public:
    options() noexcept { options_.size = sizeof(larder_options); }
    options &type(larder_type own) {
        options_.kind = own;
        return *this;
    }
    options &ordered_set() { return type(LARDER_ORDERED_SET); }
    options &bag() { return type(LARDER_BAG); }
    options &duplicate_bag() { return type(LARDER_DUPLICATE_BAG); }
    options &keypos(std::size_t position) {
        options_.keypos = position;
        return *this;
    }
    options &named(bool own = true) {
        options_.named = own;
        return *this;
    }
    options &compressed(bool own = true) {
        options_.compressed = own;
        return *this;
    }
    options &decentralized_counters(bool own = true) {
        options_.decentralized_counters = own;
        return *this;
    }
    options &ttl(std::chrono::milliseconds time) {
        options_.ttl_ms = above_zero(time);
        return *this;
    }
    options &idle(std::chrono::milliseconds time) {
        options_.idle_ms = above_zero(time);
        return *this;
    }
    options &max_size(std::size_t rows) {
        options_.max_size = rows;
        return *this;
    }
    options &max_memory(std::size_t bytes) {
        options_.max_memory = bytes;
        return *this;
    }
    options &evict(larder_evict own) {
        options_.evict = own;
        return *this;
    }
    options &structure(std::string own) {
        structure_ = std::move(own);
        return *this;
    }
    larder_options get() const {
        larder_options all = options_;
        if (!structure_.empty()) all.structure = structure_.c_str();
        return all;
    }

private:
    // Zero is no time to larder.h, but no bound.
    static std::uint64_t above_zero(std::chrono::milliseconds time) {
        if (time.count() <= 0) throw error(LARDER_BAD_OPTION, "a time to live is above zero");
        return static_cast<std::uint64_t>(time.count());
    }

    larder_options options_{};
    std::string structure_;
};

// A world of tables.
class world {
public:
    world() : world_(larder_new()) {}
    larder *get() const noexcept { return world_.get(); }
    larderpp::table table(const std::string &name, const options &how = options()) const {
        const larder_options all = how.get();
        larder_table *made = nullptr;
        detail::check(larder_table_new(get(), name.c_str(), &all, &made));
        return larderpp::table(made);
    }
    std::optional<larderpp::table> find(const std::string &name) const {
        larder_table *found = nullptr;
        if (!detail::check(larder_table_find(get(), name.c_str(), &found))) return std::nullopt;
        return larderpp::table(found);
    }
    larderpp::table load(const std::string &path) const {
        larder_table *made = nullptr;
        detail::check(larder_table_load(get(), path.c_str(), &made));
        return larderpp::table(made);
    }

private:
    detail::owned<larder> world_;
};

// Operations on known keys, which take effect together or not at all.
class operations {
public:
    operations() : operations_(larder_operations_new()) {}
    operations &check(table_ref t, view k, const terms &rows) {
        return did(larder_op_check(get(), t.get(), k, rows.get()));
    }
    operations &insert(table_ref t, view own) { return did(larder_op_insert(get(), t.get(), own)); }
    operations &insert_new(table_ref t, view own) {
        return did(larder_op_insert_new(get(), t.get(), own));
    }
    operations &erase(table_ref t, view k) { return did(larder_op_delete(get(), t.get(), k)); }
    operations &erase_row(table_ref t, view own) {
        return did(larder_op_delete_row(get(), t.get(), own));
    }
    operations &add(table_ref t, view k, std::size_t position, std::int64_t increment) {
        return did(larder_op_add(get(), t.get(), k, position, increment));
    }
    operations &update(table_ref t, view k, std::size_t position, view element) {
        return did(larder_op_update(get(), t.get(), k, position, element));
    }
    // None if they took effect; else the number, from 1, of the first that doesn't hold.
    std::optional<std::size_t> commit() const {
        std::size_t first = 0;
        if (detail::check(larder_operations_commit(get(), &first))) return std::nullopt;
        return first;
    }

private:
    larder_operations *get() const noexcept { return operations_.get(); }
    operations &did(larder_status status) {
        detail::check(status);
        return *this;
    }
    detail::owned<larder_operations> operations_;
};

// Reads and writes at one instant, ended by hand; see transact.
class transaction {
public:
    explicit transaction(std::initializer_list<table_ref> tables) {
        std::vector<const larder_table *> all;
        for (const table_ref &each : tables) all.push_back(each.get());
        larder_transaction *begun = nullptr;
        detail::check(larder_begin(all.data(), all.size(), &begun));
        transaction_.reset(begun);
    }
    // The table to use in place of the one at this place, from 0.
    table_ref operator[](std::size_t index) const {
        return larder_transaction_table(transaction_.get(), index);
    }
    // Whether nobody has changed what was read or written so far.
    bool validate() const {
        const larder_status status = larder_validate(transaction_.get());
        if (status == LARDER_CONFLICT) return false;
        return detail::check(status);
    }
    // False if others have changed what was read: then it has begun anew.
    bool commit() {
        const larder_status status = larder_commit(transaction_.get());
        if (status == LARDER_CONFLICT) return false;
        return detail::check(status);
    }

private:
    detail::owned<larder_transaction> transaction_;
};

// Calls f with a transaction on some tables until nobody has changed what it read, and gives what
// it answers. What f throws ends the transaction without effect.
template <class F> auto transact(std::initializer_list<table_ref> tables, F &&f) {
    transaction own(tables);
    while (true) {
        if constexpr (std::is_void_v<std::invoke_result_t<F &, const transaction &>>) {
            f(static_cast<const transaction &>(own));
            if (own.commit()) return;
        } else {
            auto result = f(static_cast<const transaction &>(own));
            if (own.commit()) return result;
        }
    }
}

// Waits until all that was deleted is freed, at most so long; whether that came about.
inline bool quiesce(std::chrono::milliseconds timeout) {
    return detail::check(
        larder_quiesce(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count())));
}

} // namespace larderpp

#endif // LARDER_HPP
