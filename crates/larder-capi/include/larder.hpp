// Larder for C++17: a wrapper of larder.h with RAII, exceptions, ranges and std::optional.
//
// It is header-only. Link with -llarder. docs/c.md has an introduction. The namespace is larderpp,
// since `larder` is a type of larder.h. Unless a function says more here, larder.h describes the
// function that it calls: what it does, its errors, its cost.
//
// * Errors. If a function of larder.h fails, larderpp::error is thrown, with the status and the
//   message. LARDER_NONE is no error. The result is then false, std::nullopt or empty.
// * Texts. Names, paths, specifications and atoms are passed to larder.h as texts that end with a
//   NUL. One with a NUL inside is refused: LARDER_BAD_ARGUMENT. Keys and values may have NULs.
// * Ownership. world, table, terms, rows, prepared, feed, operations and transaction own a handle.
//   They can be moved, not copied, and the destructor frees the handle. view, key and table_ref own
//   nothing. What they refer to must outlive them.
// * Threads. The rules of larder.h for the type of the handle hold for the class, too.
// * Callbacks of transact and feed::each may throw. They are called by code of this header, so the
//   exception passes through no frame of the library.

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

// The results of a scan: a single-pass range. A view is valid until the iterator is incremented, or
// next is called. Nothing is locked between two results, so others may write meanwhile.
class rows {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = view;
        using difference_type = std::ptrdiff_t;
        using pointer = const view *;
        using reference = view;
        // The end iterator.
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
        // Fetches the next page when this one is used up. Becomes the end iterator if there is
        // none.
        void settle() {
            if (of_->at_ == of_->count_ && !of_->turn()) of_ = nullptr;
        }
        rows *of_;
    };

    explicit rows(larder_rows *own) : rows_(own) {}
    iterator begin() { return iterator(this); }
    iterator end() { return iterator(); }
    // The next results: `most` of them, or fewer at the end. Empty if there are no more. Results
    // that an iterator has already fetched, up to 256, are not among them.
    terms next(std::size_t most) {
        terms page;
        detail::check(larder_rows_next(rows_.get(), most, page.get()));
        return page;
    }

private:
    // Fetches the next page. Returns whether there is one.
    bool turn() {
        const bool more = detail::check(larder_rows_next(rows_.get(), page_size, page_.get()));
        at_ = 0;
        count_ = page_.size();
        return more;
    }

    // The number of results that are fetched by one call of the library.
    static constexpr std::size_t page_size = 256;
    detail::owned<larder_rows> rows_;
    terms page_;
    std::size_t at_ = 0;
    std::size_t count_ = 0;
};

// A compiled match specification with parameters, {bind, N}. It can be used by several threads.
class prepared {
public:
    explicit prepared(const std::string &spec) {
        larder_prepared *made = nullptr;
        detail::check(larder_prepare(detail::c_text(spec), &made));
        prepared_.reset(made);
    }
    // The number of parameters.
    std::size_t parameters() const { return larder_prepared_parameters(prepared_.get()); }
    const larder_prepared *get() const noexcept { return prepared_.get(); }

private:
    detail::owned<larder_prepared> prepared_;
};

// A change of a table. The views are valid until the next call of poll, next or each.
struct change {
    larder_event event;
    // Whether the next change belongs to the same commit.
    bool more;
    // The number of the commit.
    std::uint64_t seq;
    // The row before the change, and after it; views of nothing if there is none.
    view before;
    view after;
    // The number of changes that were lost, in an event that reports that.
    std::uint64_t lost;
};

// A subscription to the changes of a table.
class feed {
public:
    explicit feed(larder_feed *own) : feed_(own) {}
    // The next change, or std::nullopt if there is none yet. Doesn't wait.
    std::optional<change> poll() { return next_in(0); }
    // Waits for the next change. std::nullopt after LARDER_EVENT_GONE was returned, which says that
    // the table was dropped.
    std::optional<change> next() { return next_in(-1); }
    // Like next, but waits at most for this time.
    std::optional<change> next(std::chrono::milliseconds timeout) {
        return next_in(timeout.count() < 0 ? 0 : static_cast<std::int64_t>(timeout.count()));
    }
    // Waits for changes, and calls f with each, until f returns false or the table is dropped.
    template <class F> void each(F &&f) {
        while (const auto found = next())
            if (!f(*found)) return;
    }
    // Whether LARDER_EVENT_GONE was returned.
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

// A reference to a table. It doesn't own the handle.
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
    // The value under a key: the second element of its row. Throws LARDER_VALUE_TYPE if it can't be
    // converted to T.
    template <class T> std::optional<T> get(key k) const {
        static_assert(!std::is_same_v<T, std::string_view> && !std::is_same_v<T, view>,
                      "a value that is got is a copy: std::string, or get_term");
        terms found;
        if (!detail::check(larder_get(table_, k, found.get()))) return std::nullopt;
        if (auto value = found.front().template as<T>()) return value;
        throw error(LARDER_VALUE_TYPE, "the value " + found.front().text() + " is of another type");
    }
    // The value under a key as a term, whatever its type is. Empty if there is no such key.
    terms get_term(key k) const {
        return filled([&](larder_terms *out) { return larder_get(table_, k, out); });
    }
    // Adds to the integer under a key, and returns the sum. A counter that doesn't exist starts
    // from 0.
    std::int64_t add(key k, std::int64_t increment) const {
        std::int64_t sum = 0;
        detail::check(larder_add_i64(table_, k, increment, &sum));
        return sum;
    }
    // Whether there is a row under the key.
    bool has(key k) const { return detail::check(larder_has(table_, k)); }
    // Deletes the rows under the key. Returns whether there were any.
    bool remove(key k) const { return detail::check(larder_remove(table_, k)); }

    // --- rows ---

    // Inserts a row, or all rows of a sequence at one instant.
    void insert(view own) const { detail::check(larder_insert(table_, own)); }
    void insert(const terms &all) const { detail::check(larder_insert_all(table_, all.get())); }
    // Inserts a row, or all rows, if none of the keys exists. Returns whether it did.
    bool insert_new(view own) const { return detail::check(larder_insert_new(table_, own)); }
    bool insert_new(const terms &all) const {
        return detail::check(larder_insert_all_new(table_, all.get()));
    }
    // All rows under the key.
    terms lookup(view k) const {
        return filled([&](larder_terms *out) { return larder_lookup(table_, k, out); });
    }
    // The elements at these positions, counted from 1, of the rows under the key.
    terms lookup_elements(view k, const std::vector<std::size_t> &positions) const {
        return filled([&](larder_terms *out) {
            return larder_lookup_elements(table_, k, positions.data(), positions.size(), out);
        });
    }
    // Deletes all rows under the key, and returns them.
    terms take(view k) const {
        return filled([&](larder_terms *out) { return larder_take(table_, k, out); });
    }
    // Whether there is a row under the key.
    bool contains(view k) const { return detail::check(larder_contains(table_, k)); }
    // Deletes all rows under the key, or all rows that are equal to this one. Returns their number.
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
    // Replaces the element at a position, counted from 1, of the row under a key. Returns whether
    // the key exists.
    bool update(view k, std::size_t position, view element) const {
        return detail::check(larder_update(table_, k, position, element));
    }
    // Adds to the integer at a position of the row under a key, and returns the sum. If the key
    // doesn't exist, first inserts the row `otherwise`; without one, throws LARDER_BAD_KEY.
    std::int64_t add(view k, std::size_t position, std::int64_t increment,
                     view otherwise = view()) const {
        std::int64_t sum = 0;
        detail::check(larder_add(table_, k, position, increment, otherwise, &sum));
        return sum;
    }

    // --- maps in rows ---

    // Sets the value under a key of the map at a position of the row under a key, or removes it.
    // Returns whether the row exists.
    bool map_put(view k, std::size_t position, view map_key, view value) const {
        return detail::check(larder_map_put(table_, k, position, map_key, value));
    }
    bool map_remove(view k, std::size_t position, view map_key) const {
        return detail::check(larder_map_remove(table_, k, position, map_key));
    }
    // Adds to the integer under a key of a map, and returns the sum. If the map doesn't have the
    // key, begins with `initial`; without one, throws LARDER_BAD_KEY.
    std::int64_t map_add(view k, std::size_t position, view map_key, std::int64_t increment,
                         std::optional<std::int64_t> initial = std::nullopt) const {
        std::int64_t sum = 0;
        detail::check(larder_map_add(table_, k, position, map_key, increment,
                                     initial ? &*initial : nullptr, &sum));
        return sum;
    }

    // --- rows that expire, in a table with bounds ---

    // A time to live. std::nullopt means that the row doesn't expire.
    using time = std::optional<std::chrono::milliseconds>;
    void insert_for(view own, time ttl) const {
        detail::check(larder_insert_for(table_, own, ms(ttl)));
    }
    // Sets the time to live of the row under a key, from now on. Returns whether there is one.
    bool expire(view k, time ttl) const { return detail::check(larder_expire(table_, k, ms(ttl))); }
    // The time that the row under a key has left. std::nullopt if there is no such row.
    std::optional<time> time_left(view k) const {
        std::int64_t left = 0;
        if (!detail::check(larder_time_left(table_, k, &left))) return std::nullopt;
        return left < 0 ? time() : time(std::chrono::milliseconds(left));
    }

    // --- many rows ---

    // All rows. In an ordered_set they are in ascending order, or descending if `backward` is set.
    larderpp::rows each(bool backward = false) const {
        return scan([&](larder_rows **out) { return larder_each(table_, backward, out); });
    }
    // The rows of an ordered_set whose keys are at least low and less than high. std::nullopt is no
    // bound.
    larderpp::rows range(key low, key high, bool backward = false) const {
        return scan(
            [&](larder_rows **out) { return larder_range(table_, low, high, backward, out); });
    }
    // The results of a match specification.
    larderpp::rows select(const std::string &spec, bool backward = false) const {
        return scan([&](larder_rows **out) {
            return larder_select(table_, detail::c_text(spec), backward, out);
        });
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
        return filled([&](larder_terms *out) {
            return larder_select_take(table_, detail::c_text(spec), out);
        });
    }
    std::uint64_t select_count(const prepared &spec, const terms &values) const {
        return counted(larder_select_count_prepared, spec, values);
    }
    std::uint64_t select_delete(const prepared &spec, const terms &values) const {
        return counted(larder_select_delete_prepared, spec, values);
    }
    std::uint64_t select_replace(const prepared &spec, const terms &values) const {
        return counted(larder_select_replace_prepared, spec, values);
    }
    terms select_take(const prepared &spec, const terms &values) const {
        return filled([&](larder_terms *out) {
            return larder_select_take_prepared(table_, spec.get(), values.get(), out);
        });
    }
    // The first key, the last one, the one after k, and the one before k. Empty if there is none.
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
    // The rank of the row under a key of an ordered_set, which is 1 for the first row. std::nullopt
    // if there is no such row.
    std::optional<std::uint64_t> rank(view k) const {
        std::uint64_t found = 0;
        if (!detail::check(larder_rank(table_, k, &found))) return std::nullopt;
        return found;
    }
    // The row of this rank; -1 is the last one. Empty if there is none.
    terms nth(std::int64_t n) const {
        return filled([&](larder_terms *out) { return larder_nth(table_, n, out); });
    }
    // Up to `most` rows from this rank on.
    terms slice(std::int64_t n, std::size_t most) const {
        return filled([&](larder_terms *out) { return larder_slice(table_, n, most, out); });
    }
    // The number of rows whose keys are at least low and less than high.
    std::uint64_t count_range(view low, view high) const {
        std::uint64_t count = 0;
        detail::check(larder_count_range(table_, low, high, &count));
        return count;
    }

    // --- indexes ---

    // Adds an index of the element at a position. `flags` are larder_index_flags.
    void add_index(const std::string &name, std::size_t position, std::uint32_t flags = 0) const {
        detail::check(larder_add_index(table_, detail::c_text(name), position, flags));
    }
    // Adds an index of the result of an expression.
    void add_index(const std::string &name, const std::string &expression,
                   std::uint32_t flags = 0) const {
        detail::check(larder_add_index_on(table_, detail::c_text(name), detail::c_text(expression),
                                          flags));
    }
    void drop_index(const std::string &name) const {
        detail::check(larder_drop_index(table_, detail::c_text(name)));
    }
    // The rows that have a value in an index.
    terms index_lookup(const std::string &name, view value) const {
        return filled([&](larder_terms *out) {
            return larder_index_lookup(table_, detail::c_text(name), value, out);
        });
    }
    // The results of a match specification, in the order of the values in an index.
    terms index_select(const std::string &name, const std::string &spec) const {
        return filled([&](larder_terms *out) {
            return larder_index_select(table_, detail::c_text(name), detail::c_text(spec), out);
        });
    }

    // --- the table as a whole ---

    // The number of rows.
    std::size_t size() const { return larder_size(table_); }
    // The memory in bytes.
    std::size_t memory() const { return larder_memory(table_); }
    // Deletes all rows at one instant. Returns their number.
    std::size_t clear() const {
        std::size_t gone = 0;
        detail::check(larder_clear(table_, &gone));
        return gone;
    }
    void rename(const std::string &name) const {
        detail::check(larder_table_rename(table_, detail::c_text(name)));
    }
    void save(const std::string &path) const {
        detail::check(larder_table_save(table_, detail::c_text(path)));
    }
    // Drops the table. Further calls throw LARDER_NO_TABLE.
    void drop() const { detail::check(larder_table_drop(table_)); }
    // A map of the properties of the table.
    terms info() const {
        return filled([&](larder_terms *out) { return larder_info(table_, out); });
    }
    // Subscribes to the changes of the table from now on. `filter` is a match specification: the
    // feed only has changes of rows that match. `limit` is the number of changes by which the feed
    // may fall behind before the oldest ones are lost; 0 means 10,000.
    larderpp::feed subscribe(const std::optional<std::string> &filter = std::nullopt,
                             std::size_t limit = 0) const {
        larder_feed *made = nullptr;
        detail::check(larder_subscribe(table_, filter ? detail::c_text(*filter) : nullptr, limit,
                                       nullptr, &made));
        return larderpp::feed(made);
    }

protected:
    // larder.h takes a negative number for a row that doesn't expire.
    static std::int64_t ms(time of) {
        if (!of) return -1;
        return of->count() < 0 ? 0 : static_cast<std::int64_t>(of->count());
    }
    // The sequence that a function of larder.h fills.
    template <class F> static terms filled(F &&f) {
        terms out;
        detail::check(f(out.get()));
        return out;
    }
    // The scan that a function of larder.h begins.
    template <class F> static larderpp::rows scan(F &&f) {
        larder_rows *begun = nullptr;
        detail::check(f(&begun));
        return larderpp::rows(begun);
    }
    using counting = larder_status (*)(const larder_table *, const char *, std::uint64_t *);
    std::uint64_t counted(counting f, const std::string &spec) const {
        std::uint64_t count = 0;
        detail::check(f(table_, detail::c_text(spec), &count));
        return count;
    }
    using counting_prepared = larder_status (*)(const larder_table *, const larder_prepared *,
                                                const larder_terms *, std::uint64_t *);
    std::uint64_t counted(counting_prepared f, const prepared &spec, const terms &values) const {
        std::uint64_t count = 0;
        detail::check(f(table_, spec.get(), values.get(), &count));
        return count;
    }

    const larder_table *table_;
};

// A handle of a table or of a snapshot. When it is freed, a table stays, and a snapshot ends.
class table : public table_ref {
public:
    explicit table(larder_table *own) noexcept : table_ref(own), own_(own) {}
    table(table &&other) noexcept : table_ref(other.table_), own_(std::move(other.own_)) {
        other.table_ = nullptr;
    }
    table &operator=(table &&other) noexcept {
        own_ = std::move(other.own_);
        other.table_ = nullptr;
        // Last, so that a move to itself changes nothing.
        table_ = own_.get();
        return *this;
    }

    // A snapshot: a table with the rows of this moment, which never change.
    table snapshot() const {
        larder_table *made = nullptr;
        const larder_table *of = table_;
        detail::check(larder_snapshot(&of, 1, &made));
        return table(made);
    }
    // A snapshot, and a feed of all changes after it. Each change is in exactly one of the two, with
    // one exception: a row that had expired then, and was not removed yet, may be reported as
    // expired, or as deleted or replaced by a transaction that had seen it, though the snapshot
    // doesn't have it.
    std::pair<table, larderpp::feed>
    snapshot_and_subscribe(const std::optional<std::string> &filter = std::nullopt,
                           std::size_t limit = 0) const {
        larder_table *before = nullptr;
        larder_feed *made = nullptr;
        detail::check(larder_subscribe(table_, filter ? detail::c_text(*filter) : nullptr, limit,
                                       &before, &made));
        return {table(before), larderpp::feed(made)};
    }
    // The changes that turn the rows of this snapshot into those of a later one: {insert, New},
    // {replace, Old, New} and {delete, Old}, in no order.
    terms diff(const table &later) const {
        return filled([&](larder_terms *out) { return larder_diff(table_, later.table_, out); });
    }

private:
    detail::owned<larder_table> own_;
};

// Snapshots of several tables of one world, all of the same moment, in the order of the tables.
inline std::vector<table> snapshots(std::initializer_list<table_ref> tables) {
    std::vector<const larder_table *> all;
    for (const table_ref &each : tables) all.push_back(each.get());
    std::vector<larder_table *> made(all.size());
    detail::check(larder_snapshot(all.data(), all.size(), made.data()));
    return std::vector<table>(made.begin(), made.end());
}

// The options of a new table. By default it is a set, whose key is the first element of a row.
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
    // The options for larder.h. Valid as long as this object exists and isn't changed.
    larder_options get() const {
        larder_options all = options_;
        if (!structure_.empty()) all.structure = detail::c_text(structure_);
        return all;
    }

private:
    // In larder_options zero means that there is no bound. So a time of zero is an error here.
    static std::uint64_t above_zero(std::chrono::milliseconds time) {
        if (time.count() <= 0) throw error(LARDER_BAD_OPTION, "a time to live is above zero");
        return static_cast<std::uint64_t>(time.count());
    }

    larder_options options_{};
    std::string structure_;
};

// A world: a set of tables, whose names are unique among the named ones.
class world {
public:
    // Throws if the library that runs is of another version than the header, and may not do what
    // the header says.
    world() {
        detail::check_version(larder_version_number(), larder_version());
        world_.reset(larder_new());
    }
    larder *get() const noexcept { return world_.get(); }
    // Makes a table.
    larderpp::table table(const std::string &name, const options &how = options()) const {
        const larder_options all = how.get();
        larder_table *made = nullptr;
        detail::check(larder_table_new(get(), detail::c_text(name), &all, &made));
        return larderpp::table(made);
    }
    // The named table of this name.
    std::optional<larderpp::table> find(const std::string &name) const {
        larder_table *found = nullptr;
        if (!detail::check(larder_table_find(get(), detail::c_text(name), &found)))
            return std::nullopt;
        return larderpp::table(found);
    }
    // Loads a table from a file. Don't load files from untrusted sources: atoms are never freed.
    larderpp::table load(const std::string &path) const {
        larder_table *made = nullptr;
        detail::check(larder_table_load(get(), detail::c_text(path), &made));
        return larderpp::table(made);
    }

private:
    detail::owned<larder> world_;
};

// A list of operations and conditions on known keys. A commit performs all of them at one instant,
// or none. The list stays as it is, and can be committed again.
class operations {
public:
    operations() : operations_(larder_operations_new()) {}
    // The condition that the rows under a key are these.
    operations &check(table_ref t, view k, const terms &rows) {
        return did(larder_op_check(get(), t.get(), k, rows.get()));
    }
    operations &insert(table_ref t, view own) { return did(larder_op_insert(get(), t.get(), own)); }
    // Inserts a row, under the condition that its key doesn't exist.
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
    // Removes all operations from the list.
    void clear() { larder_operations_clear(get()); }
    // Commits the operations. Returns std::nullopt if they took effect. Otherwise the number,
    // counted from 1, of the first operation whose condition doesn't hold. Nothing has changed
    // then.
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

// A transaction: reads and writes of several tables that take effect at one instant. transact runs
// one in a loop. Without a commit, the destructor ends it without effect.
class transaction {
public:
    explicit transaction(std::initializer_list<table_ref> tables) {
        std::vector<const larder_table *> all;
        for (const table_ref &each : tables) all.push_back(each.get());
        larder_transaction *begun = nullptr;
        detail::check(larder_begin(all.data(), all.size(), &begun));
        transaction_.reset(begun);
    }
    // The table to use within the transaction in place of the one with this index, from 0.
    table_ref operator[](std::size_t index) const {
        return larder_transaction_table(transaction_.get(), index);
    }
    // Whether nobody has changed anything that the transaction has read or written so far. If not,
    // a commit would fail.
    bool validate() const {
        const larder_status status = larder_validate(transaction_.get());
        if (status == LARDER_CONFLICT) return false;
        return detail::check(status);
    }
    // Commits. Returns false if others have changed what the transaction has read. Then nothing has
    // changed, and the transaction has been restarted: read everything again.
    bool commit() {
        const larder_status status = larder_commit(transaction_.get());
        if (status == LARDER_CONFLICT) return false;
        return detail::check(status);
    }

private:
    detail::owned<larder_transaction> transaction_;
};

// Runs f in a transaction on these tables, and returns its result. f is called with the
// transaction, and called again if others have changed what it has read. So it must have no other
// effects. If f throws, the transaction ends without effect.
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

// Waits until all memory of deleted rows and dropped tables is freed, at most for this time.
// Returns whether it is.
inline bool quiesce(std::chrono::milliseconds timeout) {
    return detail::check(
        larder_quiesce(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count())));
}

} // namespace larderpp

#endif // LARDER_HPP
