// Errors, terms and keys. This is a part of larder.hpp. Include that.

#ifndef LARDER_TERMS_HPP
#define LARDER_TERMS_HPP

#include <larder.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace larderpp {

// The exception that is thrown if a function of larder.h fails.
class error : public std::runtime_error {
public:
    error(larder_status status, const std::string &text)
        : std::runtime_error(text), status_(status) {}
    larder_status status() const noexcept { return status_; }

private:
    larder_status status_;
};

namespace detail {

// Converts a status: true for LARDER_OK, false for LARDER_NONE. Throws for an error.
inline bool check(larder_status status) {
    if (status > LARDER_NONE)
        throw error(status, std::string(larder_status_name(status)) + ": " + larder_message());
    return status == LARDER_OK;
}

// Throws if the library that runs may differ from this header: if it is older, or of another major
// version. A minor version may change an interface, too, while the major one is 0.
inline void check_version(int number, const std::string &version) {
    const int series = LARDER_VERSION_MAJOR == 0 ? 100 : 10000;
    if (number < LARDER_VERSION_NUMBER || number / series != LARDER_VERSION_NUMBER / series)
        throw error(LARDER_BAD_ARGUMENT, "the version of the library that runs is " + version +
                                             ", that of the header " LARDER_VERSION
                                             "; compile the program again, or install the library"
                                             " that belongs to the header");
}

// Frees a handle of any type.
struct freed {
    void operator()(larder *it) const noexcept { larder_free(it); }
    void operator()(larder_table *it) const noexcept { larder_table_free(it); }
    void operator()(larder_terms *it) const noexcept { larder_terms_free(it); }
    void operator()(larder_rows *it) const noexcept { larder_rows_free(it); }
    void operator()(larder_prepared *it) const noexcept { larder_prepared_free(it); }
    void operator()(larder_feed *it) const noexcept { larder_feed_free(it); }
    void operator()(larder_operations *it) const noexcept { larder_operations_free(it); }
    void operator()(larder_transaction *it) const noexcept { larder_transaction_free(it); }
};

template <class T> using owned = std::unique_ptr<T, freed>;

inline const std::uint8_t *bytes(std::string_view text) {
    return reinterpret_cast<const std::uint8_t *>(text.data());
}

// The text for a parameter of larder.h that ends with a NUL. It would end at a NUL inside.
inline const char *c_text(const std::string &text) {
    const std::size_t at = text.find('\0');
    if (at != std::string::npos)
        throw error(LARDER_BAD_ARGUMENT, "the text has a NUL at offset " + std::to_string(at) +
                                             ": " + text.substr(0, at));
    return text.c_str();
}

// The integer types of at most 64 bits, except bool and char. GNU's dialects have longer ones, of
// which larder.h would take the lower half.
template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && sizeof(T) <= sizeof(std::int64_t) &&
                                   !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

template <class T>
inline constexpr bool is_text = std::is_convertible_v<const T &, std::string_view>;

} // namespace detail

// An atom, to build terms with. Atoms are never freed, so use texts for data.
struct atom {
    explicit atom(std::string_view text) : name(text) {}
    std::string name;
};

// A view of a term in a larderpp::terms. It is valid until that is changed or destroyed.
class view {
public:
    view() noexcept : view_{nullptr, 0} {}
    view(larder_view of) noexcept : view_(of) {}
    operator larder_view() const noexcept { return view_; }

    // Whether there is a term. If not, it is a view of nothing.
    explicit operator bool() const noexcept { return view_.bytes != nullptr; }
    larder_kind kind() const { return larder_view_kind(view_); }

    // Converts the term to a type of C++: an integer type, a floating-point one, bool,
    // larderpp::atom, larderpp::view; a binary to std::string or std::string_view. std::nullopt if
    // the term is of another type, or if the number is out of range. A float is rounded.
    template <class T> std::optional<T> as() const {
        if constexpr (std::is_same_v<T, bool>) {
            const auto text = as_atom();
            if (text == "true") return true;
            if (text == "false") return false;
            return std::nullopt;
        } else if constexpr (detail::is_integer<T>) {
            return integer<T>();
        } else if constexpr (std::is_floating_point_v<T>) {
            double value = 0;
            if (!larder_view_float(view_, &value)) return std::nullopt;
            using range = std::numeric_limits<T>;
            if (value < range::lowest() || value > range::max()) return std::nullopt;
            return static_cast<T>(value);
        } else if constexpr (std::is_same_v<T, atom>) {
            const auto text = as_atom();
            return text ? std::optional<atom>(*text) : std::nullopt;
        } else if constexpr (std::is_same_v<T, view>) {
            return *this ? std::optional<view>(*this) : std::nullopt;
        } else {
            static_assert(std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>,
                          "a term is no value of this type");
            const std::uint8_t *all = nullptr;
            std::size_t size = 0;
            if (!larder_view_binary(view_, &all, &size)) return std::nullopt;
            return T(reinterpret_cast<const char *>(all), size);
        }
    }

    // The text of an atom. It stays valid, as atoms are never freed.
    std::optional<std::string_view> as_atom() const {
        const char *text = nullptr;
        std::size_t size = 0;
        if (!larder_view_atom(view_, &text, &size)) return std::nullopt;
        return std::string_view(text, size);
    }

    // The number of elements of a tuple or list, of pairs of a map, of bytes of a binary.
    std::size_t size() const { return larder_view_size(view_); }
    // The element of a tuple or list with this index, from 0. A view of nothing if there is none.
    view operator[](std::size_t index) const { return larder_view_element(view_, index); }
    // All elements of a tuple or list. Of a map, each key followed by its value.
    std::vector<view> elements() const {
        std::vector<larder_view> all(larder_view_elements(view_, nullptr, 0));
        larder_view_elements(view_, all.data(), all.size());
        return std::vector<view>(all.begin(), all.end());
    }
    // The value under a key of a map. A view of nothing if there is none.
    view find(view key) const { return larder_view_find(view_, key); }
    // The tail of a list. A view of nothing if the term isn't one.
    view tail() const { return larder_view_tail(view_); }
    // The term in Erlang's external term format.
    std::vector<std::uint8_t> etf() const {
        std::vector<std::uint8_t> out(larder_view_etf(view_, nullptr, 0));
        larder_view_etf(view_, out.data(), out.size());
        return out;
    }
    // The term as Erlang prints it.
    std::string text() const {
        std::string out(larder_view_text(view_, nullptr, 0), '\0');
        if (!out.empty()) larder_view_text(view_, out.data(), out.size() + 1);
        return out;
    }

    // Equality is Erlang's =:=, and the order is that of Erlang's terms.
    friend bool operator==(view a, view b) { return larder_view_same(a, b); }
    friend bool operator!=(view a, view b) { return !(a == b); }
    friend bool operator<(view a, view b) { return larder_view_compare(a, b) < 0; }

private:
    template <class T> std::optional<T> integer() const {
        if constexpr (std::is_signed_v<T>) {
            std::int64_t value = 0;
            if (!larder_view_int(view_, &value)) return std::nullopt;
            const T own = static_cast<T>(value);
            return own == value ? std::optional<T>(own) : std::nullopt;
        } else {
            std::uint64_t value = 0;
            if (!larder_view_uint(view_, &value)) return std::nullopt;
            const T own = static_cast<T>(value);
            return own == value ? std::optional<T>(own) : std::nullopt;
        }
    }

    larder_view view_;
};

// A sequence of terms. As a range, its elements are views.
class terms {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = view;
        using difference_type = std::ptrdiff_t;
        using pointer = const view *;
        using reference = view;
        iterator() noexcept : of_(nullptr), at_(0) {}
        iterator(const larder_terms *of, std::size_t at) : of_(of), at_(at) {}
        view operator*() const { return larder_terms_get(of_, at_); }
        iterator &operator++() {
            ++at_;
            return *this;
        }
        iterator operator++(int) {
            iterator before = *this;
            ++at_;
            return before;
        }
        friend bool operator==(iterator a, iterator b) { return a.at_ == b.at_; }
        friend bool operator!=(iterator a, iterator b) { return a.at_ != b.at_; }

    private:
        const larder_terms *of_;
        std::size_t at_;
    };

    terms() : terms_(larder_terms_new()) {}
    // Parses a term in Erlang's syntax. Don't parse texts from untrusted sources: atoms are never
    // freed.
    static terms parsed(const std::string &text) {
        terms own;
        detail::check(larder_push_text(own.get(), detail::c_text(text)));
        return own;
    }

    // Reads a term in Erlang's external term format. Only if the bytes are trusted may they make
    // new atoms.
    static terms from_etf(const std::vector<std::uint8_t> &bytes, bool trusted = false) {
        terms own;
        detail::check(larder_push_etf(own.get(), bytes.data(), bytes.size(), trusted));
        return own;
    }

    larder_terms *get() const noexcept { return terms_.get(); }
    std::size_t size() const { return larder_terms_count(get()); }
    bool empty() const { return size() == 0; }
    view operator[](std::size_t index) const { return larder_terms_get(get(), index); }
    // The first term. Throws LARDER_BAD_ARGUMENT if there is none.
    view front() const {
        if (empty()) throw error(LARDER_BAD_ARGUMENT, "there is no first of no terms");
        return (*this)[0];
    }
    iterator begin() const { return iterator(get(), 0); }
    iterator end() const { return iterator(get(), size()); }
    void clear() { larder_terms_clear(get()); }

    // Appends a term that is made of a value:
    //   integers, floating-point numbers   numbers
    //   bool, larderpp::atom               atoms
    //   texts                              binaries
    //   std::pair, std::tuple              tuples
    //   std::vector                        lists
    //   std::map                           maps
    //   larderpp::view                     a copy of the term
    // If this throws, nothing is appended.
    template <class T> terms &push(const T &value) {
        if constexpr (std::is_same_v<T, bool>) {
            return did(larder_push_atom(get(), value ? "true" : "false"));
        } else if constexpr (detail::is_integer<T> && std::is_signed_v<T>) {
            return did(larder_push_int(get(), value));
        } else if constexpr (detail::is_integer<T>) {
            return did(larder_push_uint(get(), value));
        } else if constexpr (std::is_floating_point_v<T>) {
            return did(larder_push_float(get(), static_cast<double>(value)));
        } else if constexpr (std::is_same_v<T, atom>) {
            return did(larder_push_atom(get(), detail::c_text(value.name)));
        } else if constexpr (detail::is_text<T>) {
            const std::string_view text = value;
            return did(larder_push_binary(get(), detail::bytes(text), text.size()));
        } else {
            static_assert(std::is_convertible_v<const T &, larder_view>,
                          "this is no value of a term");
            return did(larder_push_view(get(), value));
        }
    }
    template <class... Ts> terms &push(const std::tuple<Ts...> &elements) {
        return push_whole(elements);
    }
    template <class A, class B> terms &push(const std::pair<A, B> &both) {
        return push_whole(both);
    }
    template <class T> terms &push(const std::vector<T> &elements) { return push_whole(elements); }
    template <class K, class V> terms &push(const std::map<K, V> &pairs) {
        return push_whole(pairs);
    }
    // Begin a tuple, a list or a map of this size. The terms that are pushed next are its elements;
    // of a map, each key is followed by its value.
    terms &begin_tuple(std::size_t size) { return did(larder_push_tuple(get(), size)); }
    terms &begin_list(std::size_t size) { return did(larder_push_list(get(), size)); }
    terms &begin_map(std::size_t pairs) { return did(larder_push_map(get(), pairs)); }

private:
    template <class T> friend terms term(const T &value);
    template <class... Ts> friend terms row(const Ts &...elements);

    // Pushes a container that is made elsewhere: one of whose elements is no term would stay open
    // here, and take what is pushed next for its elements.
    template <class T> terms &push_whole(const T &container) {
        terms own;
        own.append(container);
        return push(own.front());
    }
    // As push, but what throws may leave a container open.
    template <class T> terms &append(const T &value) { return push(value); }
    template <class... Ts> terms &append(const std::tuple<Ts...> &elements) {
        begin_tuple(sizeof...(Ts));
        std::apply([this](const Ts &...each) { (append(each), ...); }, elements);
        return *this;
    }
    template <class A, class B> terms &append(const std::pair<A, B> &both) {
        return begin_tuple(2).append(both.first).append(both.second);
    }
    template <class T> terms &append(const std::vector<T> &elements) {
        begin_list(elements.size());
        for (const auto &each : elements) append(static_cast<const T &>(each));
        return *this;
    }
    template <class K, class V> terms &append(const std::map<K, V> &pairs) {
        begin_map(pairs.size());
        for (const auto &[key, value] : pairs) append(key).append(value);
        return *this;
    }
    terms &did(larder_status status) {
        detail::check(status);
        return *this;
    }

    detail::owned<larder_terms> terms_;
};

// A sequence with one term, made of a value (see terms::push).
template <class T> terms term(const T &value) {
    terms own;
    own.append(value);
    return own;
}

// A sequence with one row: a tuple of these elements.
template <class... Ts> terms row(const Ts &...elements) {
    terms own;
    own.begin_tuple(sizeof...(Ts));
    (own.append(elements), ...);
    return own;
}

// A key, or a bound of a range: an integer, a text or a term. std::nullopt is no bound. A key
// refers to the text or term that it was made of.
class key {
public:
    template <
        class T,
        std::enable_if_t<detail::is_integer<T> && (std::is_signed_v<T> || sizeof(T) < 8), int> = 0>
    key(T integer) : key_(larder_key_i64(static_cast<std::int64_t>(integer))) {}
    template <class T, std::enable_if_t<detail::is_text<T>, int> = 0>
    key(const T &text) : key(std::string_view(text)) {}
    key(std::string_view text) : key_(larder_key_bytes(detail::bytes(text), text.size())) {}
    key(view of) : key_(larder_key_view(of)) {}
    key(std::nullopt_t) noexcept : key_{} {}
    // A null pointer is no text.
    key(std::nullptr_t) = delete;
    operator larder_key() const noexcept { return key_; }

private:
    larder_key key_;
};

} // namespace larderpp

#endif // LARDER_TERMS_HPP
