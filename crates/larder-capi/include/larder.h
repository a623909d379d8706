/* Larder for C: tables of tuples in memory, shared by many threads, queried by key, by order or by
 * pattern.
 *
 * Made from the sources by `make header`: change those. docs/c.md has an introduction and an
 * example; link with -llarder.
 *
 * Every function that can fail gives a larder_status: LARDER_OK, or an error that larder_message()
 * explains. Nothing of the library ends the process. A pointer that must not be null is checked.
 * What else a pointer has to be is said under "Safety", and is yours to keep.
 *
 * Many threads may use a larder, a larder_table and a larder_prepared at once; everything else one
 * at a time.
 */

#ifndef LARDER_H
#define LARDER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The version of this header. That of the library that runs: larder_version_number().
#define LARDER_VERSION_MAJOR 0
#define LARDER_VERSION_MINOR 1
#define LARDER_VERSION_PATCH 0
#define LARDER_VERSION "0.1.0"
#define LARDER_VERSION_NUMBER \
    (10000 * LARDER_VERSION_MAJOR + 100 * LARDER_VERSION_MINOR + LARDER_VERSION_PATCH)

// How a call ended. `LARDER_OK` is 0 and `LARDER_NONE` 1; everything from 2 on is a failure, of
// which nothing is left in the table unless its line says otherwise, and `larder_message` tells
// more.
typedef enum larder_status {
  // Done.
  LARDER_OK = 0,
  // Done, and there is nothing: no such key, no next one, no more rows, or nothing was inserted
  // by what inserts only what is new.
  LARDER_NONE = 1,
  // The table was dropped.
  LARDER_NO_TABLE = 2,
  // The name is another table's.
  LARDER_ALREADY_EXISTS = 3,
  // A key that has to be there is not.
  LARDER_BAD_KEY = 4,
  // A row or default that is no tuple or too short to have a key, or a position that the row has
  // not or that may not be changed.
  LARDER_BAD_ROW = 5,
  // The element at the position is not an integer.
  LARDER_NOT_INTEGER = 6,
  // Done; but the sum does not fit into 64 bits. It is in the table.
  LARDER_BIG_SUM = 7,
  // The operation is not for tables of this type.
  LARDER_TABLE_TYPE = 8,
  // An option that is out of range, or that the structure has not; or no such structure.
  LARDER_BAD_OPTION = 9,
  // A match specification that does not compile.
  LARDER_BAD_SPEC = 10,
  // Text or bytes that are no term, a term that is not finished, a view of nothing.
  LARDER_BAD_TERM = 11,
  // A null pointer or a number out of range among the arguments.
  LARDER_BAD_ARGUMENT = 12,
  // The structure holds so many rows and no more.
  LARDER_FULL = 13,
  // Beyond what the engine can represent.
  LARDER_SYSTEM_LIMIT = 14,
  // A file that can't be written or read, or is damaged.
  LARDER_FILE = 15,
  // A fault of the library. The process goes on; please report it, with the message.
  LARDER_PANIC = 16,
  // The table is a snapshot, which can't be written.
  LARDER_READ_ONLY = 17,
  // The element at the position is not a map.
  LARDER_NOT_MAP = 18,
  // Another row has the value, and the index is unique.
  LARDER_NOT_UNIQUE = 19,
  // The table has no such index.
  LARDER_NO_INDEX = 20,
  // Others have changed what the transaction has read: it had no effect, and has begun anew.
  LARDER_CONFLICT = 21,
  // The value under the key is of another type than the one that was asked for.
  LARDER_VALUE_TYPE = 22,
} larder_status;

// The kind of a term.
typedef enum larder_kind {
  // No term: a zeroed view.
  LARDER_KIND_NOTHING = 0,
  // An integer of any size.
  LARDER_KIND_INTEGER = 1,
  // A float.
  LARDER_KIND_FLOAT = 2,
  // An atom.
  LARDER_KIND_ATOM = 3,
  // A reference.
  LARDER_KIND_REFERENCE = 4,
  // A fun.
  LARDER_KIND_FUN = 5,
  // A port.
  LARDER_KIND_PORT = 6,
  // A pid.
  LARDER_KIND_PID = 7,
  // A tuple.
  LARDER_KIND_TUPLE = 8,
  // A map.
  LARDER_KIND_MAP = 9,
  // The empty list.
  LARDER_KIND_NIL = 10,
  // A list with elements.
  LARDER_KIND_LIST = 11,
  // A binary.
  LARDER_KIND_BINARY = 12,
  // A bitstring that isn't a binary: its number of bits is no multiple of eight.
  LARDER_KIND_BITSTRING = 13,
} larder_kind;

// What happened to a row, or to a table.
typedef enum larder_event {
  // A row is new: `after`.
  LARDER_EVENT_INSERT = 1,
  // A row, `before`, was replaced by another with its key, `after`.
  LARDER_EVENT_REPLACE = 2,
  // A row is gone: `before`.
  LARDER_EVENT_DELETE = 3,
  // A row is gone as its time was over: `before`.
  LARDER_EVENT_EXPIRE = 4,
  // A row is gone as there was too much: `before`.
  LARDER_EVENT_EVICT = 5,
  // All rows are gone.
  LARDER_EVENT_CLEAR = 6,
  // The feed fell behind by more than its limit, and `lost` changes are lost. To follow the
  // table again, subscribe anew, with a snapshot.
  LARDER_EVENT_OVERFLOW = 7,
  // The table was dropped. Nothing follows.
  LARDER_EVENT_GONE = 8,
} larder_event;

// The type of a table: how many rows a key may have, and the order of keys.
typedef enum larder_type {
  // One row per key, in no order.
  LARDER_SET = 0,
  // One row per key, in the order of keys; 1 and 1.0 are the same key.
  LARDER_ORDERED_SET = 1,
  // Any number of different rows per key, in order of arrival.
  LARDER_BAG = 2,
  // Any number of rows per key, which may be equal, in order of arrival.
  LARDER_DUPLICATE_BAG = 3,
} larder_type;

// What happens when a table has reached its limit.
typedef enum larder_evict {
  // Writes that need room are refused: `LARDER_FULL`.
  LARDER_EVICT_NONE = 0,
  // Of a sample of rows, those are evicted that have not been read or written for the longest
  // time.
  LARDER_EVICT_LRU = 1,
  // Of a sample of rows, those are evicted that have been read or written least often lately; or
  // a new row, if its key hasn't been used more often.
  LARDER_EVICT_TINY_LFU = 2,
} larder_evict;

// What a secondary index is like: added up.
typedef enum larder_index_flags {
  // No two rows may have values that are equal.
  LARDER_INDEX_UNIQUE = 1,
  // The value is a list, each of whose elements is indexed. Rows with something else are not in
  // the index.
  LARDER_INDEX_EACH = 2,
} larder_index_flags;

// A world of tables. Any number of threads may use it at once.
typedef struct larder larder;

// A subscription to a table. For one thread at a time; it needs no handle of the table to stay.
typedef struct larder_feed larder_feed;

// A list of operations that take effect at one instant, if all of them hold: less work than a
// transaction, as the keys are known. For one thread at a time.
typedef struct larder_operations larder_operations;

// A match specification with parameters, compiled. It is of no table and no world; any number of
// threads may use it.
typedef struct larder_prepared larder_prepared;

// What a scan finds, as it is asked for. For one thread at a time; it needs no handle to stay.
typedef struct larder_rows larder_rows;

// A handle of a table. Any number of threads may use one, or several of the same table, at once.
typedef struct larder_table larder_table;

// A sequence of terms. Rows and keys are built in one, and results come in one; it may be used
// again and again. Its terms stay where they are until it is cleared, filled by a call that gives
// results, or freed: so long are views of them valid. For one thread at a time.
typedef struct larder_terms larder_terms;

// A transaction under way. For one thread at a time.
typedef struct larder_transaction larder_transaction;

// The options of a table. If all fields except the size are zero, the table is a set, and the key
// is the first element of a row.
typedef struct larder_options {
  // `sizeof(larder_options)`, by which the library knows the fields that the program has. Later
  // versions of the library may add fields at the end.
  size_t size;
  // A `larder_type`.
  int kind;
  // A `larder_evict`, for a table that has `max_size` or `max_memory`.
  int evict;
  // The position of the key in each row, counted from 1; 0 means 1.
  size_t keypos;
  // Whether `larder_table_find` finds the table by its name, which must then be unique.
  bool named;
  // Whether rows are compressed, which takes less memory, but more time for each access.
  bool compressed;
  // Whether rows are counted by several counters, which is faster for many writers, but makes
  // reading the size slower.
  bool decentralized_counters;
  // The structure of the table, with its options, such as `"btree"` or
  // `"catree(over=btree,m=16)"`; null for the default, which is best in nearly all cases.
  const char *structure;
  // The time in milliseconds after which a row expires, unless `larder_insert_for` sets another
  // one; 0: never. This and all following options are for sets and ordered_sets.
  uint64_t ttl_ms;
  // The least time in milliseconds after which a row expires that is neither written nor looked
  // up by its key; 0: never.
  uint64_t idle_ms;
  // The largest number of rows; 0: no limit.
  size_t max_size;
  // The largest number of bytes that the rows may take; 0: no limit.
  size_t max_memory;
} larder_options;

// A view of a term in a `larder_terms`, which must not be changed while the view is used. It may
// be copied freely. Read it with the functions `larder_view_…` only. A zeroed view is a view of
// nothing.
typedef struct larder_view {
  // The term in the library's own encoding.
  const uint8_t *bytes;
  // The number of bytes.
  size_t len;
} larder_view;

// A key, or a bound of a range, made by a function `larder_key_…`; zeroed, nothing. It leads to
// the text, the bytes or the term that it was made of, which have to stay as they are meanwhile.
typedef struct larder_key {
  // What it is.
  uint32_t form;
  // The integer.
  int64_t integer;
  // The bytes of a binary or a view.
  const uint8_t *bytes;
  // How many they are.
  size_t len;
} larder_key;

// A change, as a feed gives it. It is the feed's, and valid until the next one is asked for, with
// its views. Later versions of the library may add fields at the end.
typedef struct larder_change {
  // What happened.
  enum larder_event event;
  // Whether the next change is of the same commit: the two took effect together. A commit of
  // over 500 changes comes in parts, with one number.
  bool more;
  // The number of the commit. It only grows; a commit that changed several tables has the same
  // in each.
  uint64_t seq;
  // The row that was there, or nothing.
  struct larder_view before;
  // The row that is there, or nothing.
  struct larder_view after;
  // How many changes are lost.
  uint64_t lost;
} larder_change;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* --- Worlds; tables made and found --- */

// Makes an empty world. Never null.
struct larder *larder_new(void);

// Gives up a world. Its tables go with it, once their handles are given up, too. Null is nothing
// to give up. O(1); memory is freed behind.
//
// Safety:
// `world` is null, or came from `larder_new` and was not freed.
void larder_free(struct larder *world);

// Waits until all that was deleted, dropped or given up is freed, in all worlds, and ends the
// library's threads; `LARDER_NONE` if that has not come about after so many milliseconds, as it
// may be while others delete. The threads begin anew when there is something to do.
//
// For orderly ends: after `larder_free` and this nothing of the library is left to a leak checker.
// And before a `fork`, if the child is to use the library, too.
enum larder_status larder_quiesce(uint64_t timeout_ms);

// The version of the library that runs, such as "0.1.0": that of the header is `LARDER_VERSION`.
// Static.
const char *larder_version(void);

// The same as a number, to be compared with `LARDER_VERSION_NUMBER`: 10000 times the major
// version, 100 times the minor one, and the patch.
int32_t larder_version_number(void);

// Makes a table, and a handle of it in `*table`: to be given up with `larder_table_free`.
//
// `options` may be null: a set with the key in front. The table lives until it is dropped, or its
// world and all its handles are given up. `LARDER_BAD_OPTION` (a name over 255 characters, an
// option that is none, a size that is none), `LARDER_ALREADY_EXISTS` (the name of a named table).
//
// Safety:
// `world` is null or alive; `name` and `options->structure` are null or end with a NUL; `options`
// is null, or has as many bytes as its size says; `table` is null or may be written to.
enum larder_status larder_table_new(const struct larder *world,
                                    const char *name,
                                    const struct larder_options *options,
                                    struct larder_table **table);

// Finds a table that was made with `named`, and makes another handle of it in `*table`.
// `LARDER_NONE` if there is none.
//
// Safety:
// As for `larder_table_new`.
enum larder_status larder_table_find(const struct larder *world,
                                     const char *name,
                                     struct larder_table **table);

// Makes the table that a file holds, with the options it was saved with, and a handle of it in
// `*table`. The whole file is checked before the first row is taken from it. `LARDER_FILE` (no
// table's file, cut short, damaged, or what the system said), `LARDER_ALREADY_EXISTS`: nothing is
// left of the table then. The file's atoms are kept for ever: not for files from strangers.
//
// Safety:
// As for `larder_table_new`.
enum larder_status larder_table_load(const struct larder *world,
                                     const char *path,
                                     struct larder_table **table);

/* --- Errors --- */

// Why the last call of this thread that failed did so: a text in UTF-8, empty if none has failed.
// Valid until another one of the thread fails or the thread ends.
const char *larder_message(void);

// The name of a status as it is in the header, for logs; "?" for a number that is none. Static.
const char *larder_status_name(int32_t status);

/* --- Terms, pushed --- */

// Makes an empty sequence. Never null.
struct larder_terms *larder_terms_new(void);

// Frees a sequence and its terms. Null is nothing to free.
//
// Safety:
// `terms` is null, or came from `larder_terms_new` and was not freed; no view of its terms is used
// any more.
void larder_terms_free(struct larder_terms *terms);

// Makes a sequence empty, and gives up what was begun.
//
// Safety:
// `terms` is null or a sequence that nobody else uses; no view of its terms is used any more.
void larder_terms_clear(struct larder_terms *terms);

// How many whole terms there are. O(1).
//
// Safety:
// `terms` is null or a sequence that nobody changes meanwhile.
size_t larder_terms_count(const struct larder_terms *terms);

// A view of the term at `index`, from 0; nothing if there is none. O(1).
//
// Safety:
// As for `larder_terms_count`.
struct larder_view larder_terms_get(const struct larder_terms *terms, size_t index);

// Pushes an integer.
//
// Safety:
// `terms` is null or a sequence that nobody else uses.
enum larder_status larder_push_int(struct larder_terms *terms, int64_t value);

// Pushes an integer that may be above 2^63.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_uint(struct larder_terms *terms, uint64_t value);

// Pushes a float. `LARDER_BAD_TERM` for infinities and NaN, which Erlang has not.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_float(struct larder_terms *terms, double value);

// Pushes an atom of this name, at most 255 characters of UTF-8. Atoms are kept for ever: use them
// for names, binaries for data.
//
// Safety:
// As for `larder_push_int`; `name` is null or ends with a NUL.
enum larder_status larder_push_atom(struct larder_terms *terms, const char *name);

// Pushes a binary: a copy of these bytes, which may be anything.
//
// Safety:
// As for `larder_push_int`; `bytes` leads to `len` bytes, or `len` is 0.
enum larder_status larder_push_binary(struct larder_terms *terms, const uint8_t *bytes, size_t len);

// Begins a tuple: the next `size` terms pushed are its elements.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_tuple(struct larder_terms *terms, size_t size);

// Begins a list: the next `size` terms pushed are its elements. With 0, the empty list.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_list(struct larder_terms *terms, size_t size);

// Begins a map: the next terms pushed are its `pairs` keys and values, each key before its value,
// in any order of keys. Two identical keys make the push that would end the outermost term give
// `LARDER_BAD_TERM`, and the term is given up.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_map(struct larder_terms *terms, size_t pairs);

// Pushes a copy of a term. It may be one of this sequence.
//
// Safety:
// As for `larder_push_int`; the view's terms are as they were when it was made.
enum larder_status larder_push_view(struct larder_terms *terms, struct larder_view view);

// Pushes the term that a text in Erlang's syntax is, such as
// `{apple, 3, <<"red">>, #{price => 1.5}}`. `LARDER_BAD_TERM`, with the place, for what is none.
// The names in it become atoms, which are kept for ever: not for text from strangers.
//
// Safety:
// As for `larder_push_atom`.
enum larder_status larder_push_text(struct larder_terms *terms, const char *source);

// Pushes the term that bytes in Erlang's external format are, all of them; `LARDER_BAD_TERM` for
// what is none. `trusted`: whether it may make new atoms.
//
// Safety:
// As for `larder_push_binary`.
enum larder_status larder_push_etf(struct larder_terms *terms,
                                   const uint8_t *bytes,
                                   size_t len,
                                   bool trusted);

/* --- Terms, read --- */

// Returns the kind of the term. O(1).
//
// Safety:
// The view's terms are as they were when it was made.
enum larder_kind larder_view_kind(struct larder_view view);

// Gets the integer, if the term is one that fits in 64 bits. Otherwise returns false, and `*value`
// is unchanged.
//
// Safety:
// The view's terms are as they were when it was made; `value` is null or may be written to.
bool larder_view_int(struct larder_view view, int64_t *value);

// Gets the integer, if the term is one from 0 to 2^64 − 1. Otherwise returns false, and `*value`
// is unchanged.
//
// Safety:
// As for `larder_view_int`.
bool larder_view_uint(struct larder_view view, uint64_t *value);

// Gets the float, if the term is one. Otherwise returns false, and `*value` is unchanged.
//
// Safety:
// As for `larder_view_int`.
bool larder_view_float(struct larder_view view, double *value);

// Gets the text of the atom, if the term is one. Otherwise returns false. The text is UTF-8, isn't
// terminated by a NUL, and is never freed.
//
// Safety:
// The view's terms are as they were when it was made; `text` and `len` are null or may be written
// to.
bool larder_view_atom(struct larder_view view, const char **text, size_t *len);

// Gets the bytes of the binary, if the term is one. Otherwise returns false. The bytes aren't
// copied, and are valid as long as the term is.
//
// Safety:
// The view's terms are as they were when it was made; `bytes` and `len` are null or may be written
// to.
bool larder_view_binary(struct larder_view view, const uint8_t **bytes, size_t *len);

// Returns the number of elements of a tuple or list, of pairs of a map, or of bytes of a binary; 0
// for any other term. The tail of a list doesn't count as an element. O(1).
//
// Safety:
// As for `larder_view_kind`.
size_t larder_view_size(struct larder_view view);

// Returns the element of a tuple or list at `index`, counted from 0; nothing if there is none.
// O(index). To get all elements, use `larder_view_elements`.
//
// Safety:
// As for `larder_view_kind`. The element is valid as long as `view` is.
struct larder_view larder_view_element(struct larder_view view, size_t index);

// Writes views of the elements of a tuple or list to `out`; for a map, of its keys and values,
// each key before its value. Writes at most `capacity` views. Returns how many there are. O(n) in
// their number.
//
// Safety:
// As for `larder_view_kind`; `out` points to `capacity` views, or `capacity` is 0.
size_t larder_view_elements(struct larder_view view, struct larder_view *out, size_t capacity);

// Returns the tail of a list: `[]` for a proper list, any other term for an improper one; nothing
// if the term isn't a list. O(elements).
//
// Safety:
// As for `larder_view_element`.
struct larder_view larder_view_tail(struct larder_view view);

// Returns the value under an identical key of a map; nothing if there is none. O(pairs).
//
// Safety:
// As for `larder_view_element`, for both views.
struct larder_view larder_view_find(struct larder_view map, struct larder_view key);

// Returns whether two terms are identical, as by `=:=`: 1 is not 1.0. Two views of nothing are
// identical.
//
// Safety:
// As for `larder_view_kind`, for both views.
bool larder_view_same(struct larder_view a, struct larder_view b);

// Compares two terms in Erlang's order, in which 1 and 1.0 are equal. Returns a number less than,
// equal to or greater than 0 if `a` is less than, equal to or greater than `b`. Nothing is less
// than any term.
//
// Safety:
// As for `larder_view_kind`, for both views.
int32_t larder_view_compare(struct larder_view a, struct larder_view b);

// Writes the text of the term, as Erlang would print it, in UTF-8. Like `snprintf`, writes at most
// `capacity` bytes, of which the last is a NUL, and returns the length of the whole text without
// the NUL. `larder_push_text` reads the text.
//
// Safety:
// As for `larder_view_kind`; `out` points to `capacity` bytes, or `capacity` is 0.
size_t larder_view_text(struct larder_view view, char *out, size_t capacity);

// Writes the term in Erlang's external term format, as `term_to_binary` does. Writes at most
// `capacity` bytes, and returns how many there are. `larder_push_etf` reads the format.
//
// Safety:
// As for `larder_view_text`.
size_t larder_view_etf(struct larder_view view, uint8_t *out, size_t capacity);

/* --- Tables and their handles --- */

// Gives up a handle. The table itself stays: `larder_table_drop` ends it, or the end of its world.
// A snapshot ends with its handle. Null is nothing to give up.
//
// Safety:
// `table` is null, or a handle that was not given up, and no `larder_rows` of it is used any more.
void larder_table_free(struct larder_table *table);

// Drops the table, for all its handles, which answer `LARDER_NO_TABLE` from then on and are still
// to be given up. O(1); memory is freed behind.
//
// Safety:
// `table` is null or a handle that was not given up.
enum larder_status larder_table_drop(const struct larder_table *table);

// Gives the table another name, at most 255 characters. `LARDER_ALREADY_EXISTS`: a named table,
// and the name in use.
//
// Safety:
// As for `larder_table_drop`; `name` is null or ends with a NUL.
enum larder_status larder_table_rename(const struct larder_table *table, const char *name);

/* --- Rows by key --- */

// Inserts a row, a tuple: in a set in place of the one with its key, in a bag beside the others.
// Atomic. O(1), in an ordered_set O(log n). `LARDER_BAD_ROW` for what is no tuple or too short to
// have a key; `LARDER_FULL` from structures of a fixed size.
//
// Safety:
// As for `larder_table_drop`; the view's terms are as they were when it was made.
enum larder_status larder_insert(const struct larder_table *table, struct larder_view row);

// Inserts a row unless its key is there: then `LARDER_NONE`. Atomic. Else as `larder_insert`.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_insert_new(const struct larder_table *table, struct larder_view row);

// Inserts all rows of a sequence at once: nobody sees some of them without the others, and if one
// is bad none is inserted.
//
// Safety:
// As for `larder_table_drop`; `rows` is null or a sequence that nobody changes meanwhile.
enum larder_status larder_insert_all(const struct larder_table *table,
                                     const struct larder_terms *rows);

// Inserts all rows of a sequence at once unless one of their keys is there: then none, and
// `LARDER_NONE`.
//
// Safety:
// As for `larder_insert_all`.
enum larder_status larder_insert_all_new(const struct larder_table *table,
                                         const struct larder_terms *rows);

// Fills `out` with the rows under a key, in order of arrival; `LARDER_NONE` and an empty `out` if
// there are none. O(1), in an ordered_set O(log n), and the rows. `out` may be the sequence that
// the key is viewed in.
//
// Safety:
// As for `larder_insert`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_lookup(const struct larder_table *table,
                                 struct larder_view key,
                                 struct larder_terms *out);

// Fills `out` with the elements at `count` positions, from 1, of the rows under a key: those of
// one row after those of the other, in order of arrival, each in the order of the positions;
// `LARDER_NONE` and an empty `out` if there is no such key. The rest of the rows is not copied.
// Else as `larder_lookup`. `LARDER_BAD_ROW` if a position is 0, or past the end of one of the
// rows.
//
// Safety:
// As for `larder_lookup`; `positions` is null or points to `count` numbers.
enum larder_status larder_lookup_elements(const struct larder_table *table,
                                          struct larder_view key,
                                          const size_t *positions,
                                          size_t count,
                                          struct larder_terms *out);

// Whether there is a row under the key: `LARDER_OK` or `LARDER_NONE`.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_contains(const struct larder_table *table, struct larder_view key);

// Deletes what is under the key; how many rows went, in `*gone` unless that is null. `LARDER_NONE`
// if there was none.
//
// Safety:
// As for `larder_insert`; `gone` is null or may be written to.
enum larder_status larder_delete(const struct larder_table *table,
                                 struct larder_view key,
                                 size_t *gone);

// Deletes this very row, all its copies in a duplicate_bag; else as `larder_delete`.
//
// Safety:
// As for `larder_delete`.
enum larder_status larder_delete_row(const struct larder_table *table,
                                     struct larder_view row,
                                     size_t *gone);

// Deletes what is under the key and fills `out` with it, as `larder_lookup` does. Atomic: of
// several takers one gets it. If `out` is null, nothing is taken.
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_take(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

// Adds to the integer at a position, from 1, of the row under a key; the sum in `*sum` unless that
// is null. Atomic. If there is no such key, the row `otherwise`, with the key put in, is inserted
// first, unless it is a view of nothing: then `LARDER_BAD_KEY`. `LARDER_NOT_INTEGER`,
// `LARDER_BAD_ROW` (no such position, the key's, or `otherwise` too short), `LARDER_TABLE_TYPE`
// (bags); `LARDER_BIG_SUM`: it was added, and the sum is beyond 64 bits.
//
// Safety:
// As for `larder_insert`, for both views; `sum` is null or may be written to.
enum larder_status larder_add(const struct larder_table *table,
                              struct larder_view key,
                              size_t position,
                              int64_t increment,
                              struct larder_view otherwise,
                              int64_t *sum);

// Replaces the element at a position, from 1, of the row under a key; `LARDER_NONE` if there is no
// such key. Atomic. `LARDER_BAD_ROW` (no such position, or the key's), `LARDER_TABLE_TYPE` (bags).
//
// Safety:
// As for `larder_insert`, for both views.
enum larder_status larder_update(const struct larder_table *table,
                                 struct larder_view key,
                                 size_t position,
                                 struct larder_view element);

/* --- Keys in order --- */

// Fills `out` with the first key, in key order for an ordered_set; `LARDER_NONE` if the table is
// empty.
//
// Safety:
// As for `larder_table_drop`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_first(const struct larder_table *table, struct larder_terms *out);

// Fills `out` with the last key of an ordered_set; for other tables, as `larder_first`.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_last(const struct larder_table *table, struct larder_terms *out);

// Fills `out`, which may be the sequence that the key is viewed in, with the key after this one;
// `LARDER_NONE` if it is the last. An ordered_set takes any key; other tables one that is there,
// else `LARDER_BAD_KEY`. Keys that are there throughout are met once, whatever others write.
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_next(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

// As `larder_next`, towards the front of an ordered_set; for other tables, the same.
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_prev(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

/* --- Tables as a whole --- */

// Empties the table at one instant; how many rows went, in `*gone` unless that is null: exactly,
// if nobody was writing at that moment. O(1); memory is freed behind.
//
// Safety:
// As for `larder_table_drop`; `gone` is null or may be written to.
enum larder_status larder_clear(const struct larder_table *table, size_t *gone);

// The number of rows; 0 for a table that was dropped. O(1).
//
// Safety:
// As for `larder_table_drop`.
size_t larder_size(const struct larder_table *table);

// Bytes of memory that the table holds; binaries over 127 bytes are not among them. 0 for a table
// that was dropped. O(1).
//
// Safety:
// As for `larder_table_drop`.
size_t larder_memory(const struct larder_table *table);

// Fills `out` with one map with the properties of the table under the atoms `name`, `named`,
// `type`, `keypos`, `size`, `memory`, `compressed`, `decentralized_counters`, `structure`, and
// `stats`, a map of the structure's own figures.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_info(const struct larder_table *table, struct larder_terms *out);

// Writes the table to a file, in place of what is there: that stays until the new file is whole
// and on the disk. The file has the table as of one moment of the call. `LARDER_FILE` with what
// the system said.
//
// Safety:
// As for `larder_table_drop`; `path` is null or ends with a NUL.
enum larder_status larder_table_save(const struct larder_table *table, const char *path);

/* --- Keys and values, without terms --- */

// The integer as a key.
struct larder_key larder_key_i64(int64_t key);

// The binary of a text's bytes, without the NUL, as a key. Null is nothing.
//
// Safety:
// `key` is null or ends with a NUL.
struct larder_key larder_key_str(const char *key);

// The binary of `len` bytes, which may be anything, as a key.
struct larder_key larder_key_bytes(const uint8_t *key, size_t len);

// The term as a key; of a view of nothing, nothing.
struct larder_key larder_key_view(struct larder_view key);

// Inserts the row `{Key, Value}`, as `larder_insert`: in a set in place of the one with the key.
// `LARDER_TABLE_TYPE`, as for all functions on pairs: the table's key is not in front.
//
// Safety:
// As for `larder_table_drop`; the view's terms, and what the key leads to, are as they were when
// they were made.
enum larder_status larder_put(const struct larder_table *table,
                              struct larder_key key,
                              struct larder_view value);

// As `larder_put`; the value is an integer.
//
// Safety:
// As for `larder_put`.
enum larder_status larder_put_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t value);

// As `larder_put`; the value is a float. `LARDER_BAD_TERM` for infinities and NaN.
//
// Safety:
// As for `larder_put`.
enum larder_status larder_put_f64(const struct larder_table *table,
                                  struct larder_key key,
                                  double value);

// As `larder_put`; the value is the binary of a text's bytes, without the NUL.
//
// Safety:
// As for `larder_put`; `value` is null or ends with a NUL.
enum larder_status larder_put_str(const struct larder_table *table,
                                  struct larder_key key,
                                  const char *value);

// As `larder_put`; the value is the binary of `len` bytes, which may be anything.
//
// Safety:
// As for `larder_put`; `value` leads to `len` bytes, or `len` is 0.
enum larder_status larder_put_bytes(const struct larder_table *table,
                                    struct larder_key key,
                                    const uint8_t *value,
                                    size_t len);

// Fills `out` with the value under a key: the second element of its row, in a bag of the row that
// came first. `LARDER_NONE`, and an empty `out`, if there is none; `LARDER_BAD_ROW` if the row has
// no second element. As `larder_lookup_elements`.
//
// Safety:
// As for `larder_table_drop`; what the key leads to is as it was when it was made; `out` is null
// or a sequence that nobody else uses.
enum larder_status larder_get(const struct larder_table *table,
                              struct larder_key key,
                              struct larder_terms *out);

// As `larder_get`; the integer, in `*value`, which else stays as it is. `LARDER_VALUE_TYPE` if it
// is none of 64 bits.
//
// Safety:
// As for `larder_get`; `value` is null or may be written to.
enum larder_status larder_get_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t *value);

// As `larder_get`; the float, in `*value`, which else stays as it is. `LARDER_VALUE_TYPE` if it is
// none.
//
// Safety:
// As for `larder_get_i64`.
enum larder_status larder_get_f64(const struct larder_table *table,
                                  struct larder_key key,
                                  double *value);

// As `larder_get`; the binary's bytes, as `snprintf` writes: `capacity` at most, the last a NUL,
// which is not the binary's; how many it has, in `*len` unless that is null. What is there was cut
// if `*len` is `capacity` or more. `LARDER_VALUE_TYPE` if the value is no binary.
//
// Safety:
// As for `larder_get`; `out` points to `capacity` bytes, or `capacity` is 0; `len` is null or may
// be written to.
enum larder_status larder_get_str(const struct larder_table *table,
                                  struct larder_key key,
                                  char *out,
                                  size_t capacity,
                                  size_t *len);

// Adds to the integer under a key; the sum in `*sum` unless that is null. A counter that is not
// there begins with 0. Atomic. As `larder_add`.
//
// Safety:
// As for `larder_put`; `sum` is null or may be written to.
enum larder_status larder_add_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t increment,
                                  int64_t *sum);

// Whether there is a row under a key: `LARDER_OK` or `LARDER_NONE`.
//
// Safety:
// As for `larder_table_drop`; what the key leads to is as it was when it was made.
enum larder_status larder_has(const struct larder_table *table, struct larder_key key);

// Deletes what is under a key. `LARDER_NONE` if that is nothing.
//
// Safety:
// As for `larder_has`.
enum larder_status larder_remove(const struct larder_table *table, struct larder_key key);

/* --- Maps in rows --- */

// Sets the value under a key of a map. The map is the element at `position`, counted from 1, of
// the row under `key`. Atomic. No other part of the row is read or copied. `LARDER_NONE` if there
// is no such row; `LARDER_NOT_MAP` if the element isn't a map; `LARDER_BAD_ROW` if there is no
// such position, or if it is the key's; `LARDER_TABLE_TYPE` for bags.
//
// Safety:
// As for `larder_insert`, for all views.
enum larder_status larder_map_put(const struct larder_table *table,
                                  struct larder_view key,
                                  size_t position,
                                  struct larder_view map_key,
                                  struct larder_view value);

// Removes a key from a map, if the map has it. Otherwise like `larder_map_put`.
//
// Safety:
// As for `larder_map_put`.
enum larder_status larder_map_remove(const struct larder_table *table,
                                     struct larder_view key,
                                     size_t position,
                                     struct larder_view map_key);

// Adds to the integer under a key of a map, and writes the sum to `*sum`, unless `sum` is null.
// Atomic. If the map doesn't have the key, the counter starts from `*initial`; if `initial` is
// null, this is `LARDER_BAD_KEY`. So is a row that doesn't exist. Otherwise like `larder_add` and
// `larder_map_put`.
//
// Safety:
// As for `larder_map_put`; `initial` is null or may be read, `sum` is null or may be written to.
enum larder_status larder_map_add(const struct larder_table *table,
                                  struct larder_view key,
                                  size_t position,
                                  struct larder_view map_key,
                                  int64_t increment,
                                  const int64_t *initial,
                                  int64_t *sum);

/* --- Rows that expire --- */

// Inserts a row, as `larder_insert`, that lives for so many milliseconds, whatever the table's
// `ttl_ms`; a negative number stands for ever. `LARDER_TABLE_TYPE`: the table was made without
// bounds.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_insert_for(const struct larder_table *table,
                                     struct larder_view row,
                                     int64_t ttl_ms);

// Gives the row under a key so many milliseconds to live, from now on; a negative number stands
// for ever. `LARDER_NONE` if there is no row. Feeds are not told. As `larder_insert_for`.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_expire(const struct larder_table *table,
                                 struct larder_view key,
                                 int64_t ttl_ms);

// How many milliseconds the row under a key has left, in `*ttl_ms` unless that is null: -1 for
// ever. `LARDER_NONE` if there is no row. It is no read that `idle_ms` counts. As
// `larder_insert_for`.
//
// Safety:
// As for `larder_insert`; `ttl_ms` is null or may be written to.
enum larder_status larder_time_left(const struct larder_table *table,
                                    struct larder_view key,
                                    int64_t *ttl_ms);

/* --- Queries, ranges and scans --- */

// Begins to look for what a match specification, written as in Erlang, gives:
// `[{{'$1','$2'},[{'<','$2',5}],['$1']}]`. A handle in `*rows`, to be given up with
// `larder_rows_free`; `larder_rows_next` gives results. `backward`: from the end of an
// ordered_set. Guards on the key of an ordered_set, and a key that is known, limit what is looked
// at. `LARDER_BAD_SPEC`, with the reason.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `rows` is null or may be written
// to.
enum larder_status larder_select(const struct larder_table *table,
                                 const char *spec,
                                 bool backward,
                                 struct larder_rows **rows);

// Begins to give every row: as `larder_select`.
//
// Safety:
// As for `larder_select`.
enum larder_status larder_each(const struct larder_table *table,
                               bool backward,
                               struct larder_rows **rows);

// Begins to give the rows of an ordered_set with keys from `low` on and before `high`, in order; a
// key of nothing is no bound. As `larder_select`. `LARDER_TABLE_TYPE` for other tables. O(log n),
// and the rows that are given.
//
// Safety:
// As for `larder_select`; what the keys lead to is as it was when they were made.
enum larder_status larder_range(const struct larder_table *table,
                                struct larder_key low,
                                struct larder_key high,
                                bool backward,
                                struct larder_rows **rows);

// Fills `out` with the next results, `most` or, at the end, fewer; `LARDER_NONE`, and an empty
// `out`, when there are no more. Nothing is held between calls: others write, and a row that is
// there throughout is met once. O(rows that are looked at).
//
// Safety:
// `rows` is null, or a scan that was not given up and nobody else uses; `out` is null or a
// sequence that nobody else uses.
enum larder_status larder_rows_next(struct larder_rows *rows,
                                    size_t most,
                                    struct larder_terms *out);

// Gives up a scan, at its end or before. Null is nothing to give up.
//
// Safety:
// `rows` is null, or a scan that was not given up.
void larder_rows_free(struct larder_rows *rows);

// How many rows a match specification gives `true` for, in `*count` unless that is null.
// `LARDER_BAD_SPEC`.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `count` is null or may be written
// to.
enum larder_status larder_select_count(const struct larder_table *table,
                                       const char *spec,
                                       uint64_t *count);

// Deletes the rows that a match specification gives `true` for, each by itself; how many, in
// `*count` unless that is null. `LARDER_BAD_SPEC`.
//
// Safety:
// As for `larder_select_count`.
enum larder_status larder_select_delete(const struct larder_table *table,
                                        const char *spec,
                                        uint64_t *count);

// Deletes the rows that a match specification matches, each by itself, and fills `out` with its
// results for them, which are those that `larder_select` would give; `LARDER_NONE`, and an empty
// `out`, if nothing matched. Atomic for each row: of several takers one gets it. If `out` is null,
// nothing is taken. `LARDER_BAD_SPEC`.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `out` is null or a sequence that
// nobody else uses.
enum larder_status larder_select_take(const struct larder_table *table,
                                      const char *spec,
                                      struct larder_terms *out);

// Replaces the rows that a match specification matches by its results, which have to keep the key,
// each atomically; how many, in `*count` unless that is null. `LARDER_BAD_SPEC`;
// `LARDER_TABLE_TYPE` if a key might change, and for bags.
//
// Safety:
// As for `larder_select_count`.
enum larder_status larder_select_replace(const struct larder_table *table,
                                         const char *spec,
                                         uint64_t *count);

/* --- Queries with parameters --- */

// Compiles a match specification in which `{bind, N}` stands for the Nth value, from 1 to 255:
// `[{{{user,{bind,1}},'$1'},[{'<','$1',{bind,2}}],['$1']}]`. A handle in `*prepared`, to be given
// up with `larder_prepared_free`. The functions `larder_…_prepared` take it with values, and
// compile nothing. A value is a constant, whatever it is. `LARDER_BAD_SPEC`, with the reason.
//
// Safety:
// `spec` is null or ends with a NUL; `prepared` is null or may be written to.
enum larder_status larder_prepare(const char *spec, struct larder_prepared **prepared);

// How many values it wants: the greatest number of a parameter.
//
// Safety:
// `prepared` is null, or a handle that was not given up.
size_t larder_prepared_parameters(const struct larder_prepared *prepared);

// Gives up the handle. Scans that were begun with it go on. Null is nothing to give up.
//
// Safety:
// `prepared` is null, or a handle that was not given up.
void larder_prepared_free(struct larder_prepared *prepared);

// As `larder_select`, with a prepared specification and its values: all terms of `values`, which
// is null for none. What is looked at is chosen for the values. `LARDER_BAD_SPEC` if there are
// more or fewer than it has parameters.
//
// Safety:
// As for `larder_table_drop`; `prepared` is null or a handle that was not given up; `values` is
// null or a sequence that nobody changes meanwhile; `rows` is null or may be written to.
enum larder_status larder_select_prepared(const struct larder_table *table,
                                          const struct larder_prepared *prepared,
                                          const struct larder_terms *values,
                                          bool backward,
                                          struct larder_rows **rows);

// As `larder_select_count`, with a prepared specification: see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_prepared`; `count` is null or may be written to.
enum larder_status larder_select_count_prepared(const struct larder_table *table,
                                                const struct larder_prepared *prepared,
                                                const struct larder_terms *values,
                                                uint64_t *count);

// As `larder_select_delete`, with a prepared specification: see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_count_prepared`.
enum larder_status larder_select_delete_prepared(const struct larder_table *table,
                                                 const struct larder_prepared *prepared,
                                                 const struct larder_terms *values,
                                                 uint64_t *count);

// As `larder_select_replace`, with a prepared specification: see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_count_prepared`.
enum larder_status larder_select_replace_prepared(const struct larder_table *table,
                                                  const struct larder_prepared *prepared,
                                                  const struct larder_terms *values,
                                                  uint64_t *count);

// As `larder_select_take`, with a prepared specification: see `larder_select_prepared`. `out` may
// be `values`.
//
// Safety:
// As for `larder_select_prepared`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_select_take_prepared(const struct larder_table *table,
                                               const struct larder_prepared *prepared,
                                               const struct larder_terms *values,
                                               struct larder_terms *out);

/* --- Ranks --- */

// The rank of the row under a key of an ordered_set, 1 for the first, in `*rank` unless that is
// null; `LARDER_NONE` if there is no such row. O(log n); the first question about ranks counts the
// table once, each later one what has changed since.
//
// Exact while nobody inserts or deletes, and of a snapshot. Otherwise a row that is there
// throughout the call counts once; one that comes or goes meanwhile may count or not.
// `LARDER_TABLE_TYPE`: a table that is no ordered_set, or on a structure other than the usual.
//
// Safety:
// As for `larder_insert`; `rank` is null or may be written to.
enum larder_status larder_rank(const struct larder_table *table,
                               struct larder_view key,
                               uint64_t *rank);

// Fills `out` with the n-th row of an ordered_set: from 1 on from the first, from -1 on from the
// last. `LARDER_NONE`, and an empty `out`, if there are fewer, and for 0. As `larder_rank`.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_nth(const struct larder_table *table,
                              int64_t n,
                              struct larder_terms *out);

// Fills `out` with rows of an ordered_set, in order, from the n-th on, which is counted as by
// `larder_nth`: `most`, or as many as there are. `LARDER_NONE`, and an empty `out`, if that is
// none. As `larder_rank`, and O(rows).
//
// Safety:
// As for `larder_first`.
enum larder_status larder_slice(const struct larder_table *table,
                                int64_t n,
                                size_t most,
                                struct larder_terms *out);

// How many rows of an ordered_set have keys from `low` on and before `high`, in `*count` unless
// that is null. As `larder_rank`.
//
// Safety:
// As for `larder_insert`, for both views; `count` is null or may be written to.
enum larder_status larder_count_range(const struct larder_table *table,
                                      struct larder_view low,
                                      struct larder_view high,
                                      uint64_t *count);

/* --- Secondary indexes --- */

// Adds an index of the element at a position, from 1, of each row; rows that are shorter are not
// in it. `flags` are `larder_index_flags`. Others read and write the table meanwhile; match
// specifications find the index by themselves. `LARDER_BAD_OPTION` (a name that another index has,
// a position or flags that are none), `LARDER_NOT_UNIQUE`, `LARDER_TABLE_TYPE` (a structure other
// than the usual, a snapshot). O(n log n).
//
// From then on a write that would give a unique index a value twice is `LARDER_NOT_UNIQUE`.
//
// Safety:
// As for `larder_table_drop`; `name` is null or ends with a NUL.
enum larder_status larder_add_index(const struct larder_table *table,
                                    const char *name,
                                    size_t position,
                                    uint32_t flags);

// Adds an index of what an expression of match specifications gives for each row, `'$_'`:
// `{map_get, zip, {element, 5, '$_'}}`. Rows for which it fails are not in it. As
// `larder_add_index`.
//
// Safety:
// As for `larder_add_index`; `expression` is null or ends with a NUL.
enum larder_status larder_add_index_on(const struct larder_table *table,
                                       const char *name,
                                       const char *expression,
                                       uint32_t flags);

// Drops an index. O(1). `LARDER_NO_INDEX`.
//
// Safety:
// As for `larder_add_index`.
enum larder_status larder_drop_index(const struct larder_table *table, const char *name);

// Fills `out` with the rows that have a value in an index; `LARDER_NONE`, and an empty `out`, if
// there are none. A row that has it throughout the call is there once. `out` may be the sequence
// that the value is viewed in. `LARDER_NO_INDEX`. O(log n), and O(log n) for each row.
//
// Safety:
// As for `larder_lookup`; `name` is null or ends with a NUL.
enum larder_status larder_index_lookup(const struct larder_table *table,
                                       const char *name,
                                       struct larder_view value,
                                       struct larder_terms *out);

// Fills `out` with what a match specification gives for the rows of an index, in the order of
// their values there; `LARDER_NONE`, and an empty `out`, if that is nothing. A row whose value
// changes meanwhile may be met twice or not at all. `LARDER_NO_INDEX`, `LARDER_BAD_SPEC`.
//
// Safety:
// As for `larder_index_lookup`; `spec` is null or ends with a NUL.
enum larder_status larder_index_select(const struct larder_table *table,
                                       const char *name,
                                       const char *spec,
                                       struct larder_terms *out);

/* --- Snapshots and feeds --- */

// Takes snapshots of `count` tables of one world, all of one moment, and puts a handle of each in
// `snapshots`, in the tables' order: to be given up with `larder_table_free`, which ends it. O(1)
// for each table; nothing is copied.
//
// Every function that reads takes a snapshot for a table; those that write answer
// `LARDER_READ_ONLY`. A snapshot stays as it is when its table is emptied or dropped. While it
// lives, the first change of each key in the table keeps what was there. `larder_size` counts a
// snapshot's rows the first time. `LARDER_TABLE_TYPE`: a snapshot, or a table on a structure other
// than the usual.
//
// Safety:
// `tables` is null or has `count` pointers, each null or a handle that was not given up;
// `snapshots` is null or has room for `count` pointers.
enum larder_status larder_snapshot(const struct larder_table *const *tables,
                                   size_t count,
                                   struct larder_table **snapshots);

// Puts what has to be done to one snapshot's rows to get another's, both of one table, in place of
// what `out` holds: `{insert, New}`, `{replace, Old, New}` and `{delete, Old}`, in no order.
// `LARDER_NONE` if there is nothing. Takes the time of what changed since the oldest snapshot that
// lives; keys that did not are not read, unless the table was cleared between the two.
// `LARDER_TABLE_TYPE`: one is no snapshot, or they are of different tables.
//
// Safety:
// `old` and `new` are null or handles that were not given up; `out` is null or a sequence that
// nobody else uses, and no view of its terms is used any more.
enum larder_status larder_diff(const struct larder_table *old,
                               const struct larder_table *new_,
                               struct larder_terms *out);

// Subscribes to all that changes in a table from here on; a handle of the feed in `*feed`, to be
// given up with `larder_feed_free`.
//
// `filter` is null, or a match specification: the changes of rows, old or new, that match.
// `limit`: so many changes the feed may fall behind, 0 for 10,000; older ones are lost, which it
// says. `snapshot`, unless it is null, gets a handle of a snapshot of the moment at which the feed
// begins: no change is in both, and none in neither. `LARDER_BAD_SPEC`; `LARDER_TABLE_TYPE`: a
// snapshot, or a table on a structure other than the usual.
//
// Safety:
// As for `larder_table_drop`; `filter` is null or ends with a NUL; `snapshot` and `feed` are null
// or may be written to.
enum larder_status larder_subscribe(const struct larder_table *table,
                                    const char *filter,
                                    size_t limit,
                                    struct larder_table **snapshot,
                                    struct larder_feed **feed);

// Puts the next change into `*change`; waits for it so many milliseconds: with 0 not at all, with
// a negative number as long as it takes. `LARDER_NONE`, and null in `*change`, if none has come;
// `LARDER_NO_TABLE` after `LARDER_EVENT_GONE`.
//
// Safety:
// `feed` is null, or a feed that was not given up and nobody else uses; `change` is null or may be
// written to.
enum larder_status larder_feed_next(struct larder_feed *feed,
                                    int64_t timeout_ms,
                                    const struct larder_change **change);

// Calls `f` with `data` and each change, on this thread, as it comes, until `f` answers false or
// the table is dropped: `LARDER_OK`, or `LARDER_NO_TABLE` if the feed was over before. For a
// thread of the program's own that follows a table. `f` may do everything with every table; it
// must not use or give up this feed, leave by `longjmp`, or throw.
//
// Safety:
// As for `larder_feed_next`; `f` is null or a function that takes these, and keeps the rules.
enum larder_status larder_feed_each(struct larder_feed *feed,
                                    bool (*f)(void *data, const struct larder_change *change),
                                    void *data);

// Ends a subscription. Null is nothing to end.
//
// Safety:
// `feed` is null, or a feed that was not given up; no change of it is used any more.
void larder_feed_free(struct larder_feed *feed);

/* --- Several changes at one instant --- */

// Makes an empty list. Never null.
struct larder_operations *larder_operations_new(void);

// Gives up a list. Null is nothing to give up.
//
// Safety:
// `operations` is null, or came from `larder_operations_new` and was not given up.
void larder_operations_free(struct larder_operations *operations);

// Makes a list empty.
//
// Safety:
// `operations` is null, or a list that was not given up and nobody else uses.
void larder_operations_clear(struct larder_operations *operations);

// Adds: insert a row, as `larder_insert`. The list copies it.
//
// Safety:
// `operations` is null, or a list that was not given up and nobody else uses; otherwise as for
// `larder_insert`.
enum larder_status larder_op_insert(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view row);

// Adds: insert a row. Holds if there is none under its key.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_insert_new(struct larder_operations *operations,
                                        const struct larder_table *table,
                                        struct larder_view row);

// Adds: nothing. Holds if the rows under the key are those of the sequence, in their order; null
// is none.
//
// Safety:
// As for `larder_op_insert`; `rows` is null or a sequence that nobody changes meanwhile.
enum larder_status larder_op_check(struct larder_operations *operations,
                                   const struct larder_table *table,
                                   struct larder_view key,
                                   const struct larder_terms *rows);

// Adds: delete what is under a key, if there is something.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_delete(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view key);

// Adds: delete this very row, if it is there.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_delete_row(struct larder_operations *operations,
                                        const struct larder_table *table,
                                        struct larder_view row);

// Adds: add to the integer at a position, from 1, of the row under a key. Holds if there is a row.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_add(struct larder_operations *operations,
                                 const struct larder_table *table,
                                 struct larder_view key,
                                 size_t position,
                                 int64_t increment);

// Adds: replace the element at a position, from 1, of the row under a key. Holds if there is a
// row.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_update(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view key,
                                    size_t position,
                                    struct larder_view element);

// Lets the operations of a list take effect, at one instant, in their order: each sees what those
// before it did. `LARDER_OK` if all hold. `LARDER_NONE` if one doesn't: then nothing has happened,
// and the number of the first, from 1, is in `*first` unless that is null. Errors are those of
// `larder_begin` and of each operation's function; nothing has happened then.
//
// The list stays as it is, and may be tried again.
//
// Safety:
// `operations` is null, or a list that was not given up and nobody changes meanwhile; `first` is
// null or may be written to.
enum larder_status larder_operations_commit(const struct larder_operations *operations,
                                            size_t *first);

// Begins a transaction on `count` tables of one world, and puts a handle of it in `*transaction`,
// to be given up with `larder_transaction_free`. O(1) for each table.
//
// Read and write the tables that `larder_transaction_table` gives in their stead: they are as of
// one instant, with what the transaction has written itself; nobody else sees that yet. Then
// `larder_commit`, in a loop: `do { … } while ((status = larder_commit(transaction)) ==
// LARDER_CONFLICT);`
//
// `LARDER_BAD_OPTION` (a table twice), `LARDER_TABLE_TYPE`: a snapshot, or a table on a structure
// other than the usual.
//
// Safety:
// `tables` is null or has `count` pointers, each null or a handle that was not given up;
// `transaction` is null or may be written to.
enum larder_status larder_begin(const struct larder_table *const *tables,
                                size_t count,
                                struct larder_transaction **transaction);

// The table to use within a transaction for the one at `index`, from 0, of those that it was begun
// on; null if there is none. It belongs to the transaction: it is not to be given up, and is valid
// as long as that one. When the transaction has ended it answers `LARDER_NO_TABLE`.
//
// Safety:
// `transaction` is null, or one that was not given up.
const struct larder_table *larder_transaction_table(const struct larder_transaction *transaction,
                                                    size_t index);

// Whether nobody has changed what was read or written so far: `LARDER_OK`, or `LARDER_CONFLICT` if
// `larder_commit` would answer that. For one that takes long, and would rather begin anew at once,
// by `larder_commit`, than at its end. If it is `LARDER_OK`, somebody may change it at any moment.
// `LARDER_NO_TABLE`: one was dropped, or the transaction has ended.
//
// Safety:
// `transaction` is null, or one that was not given up and nobody else uses.
enum larder_status larder_validate(const struct larder_transaction *transaction);

// Makes what was written take effect, at one instant, if nobody has changed what was read: ranges
// and absences count, too.
//
// `LARDER_CONFLICT`: somebody has. Nothing has happened, and the transaction has begun anew, of
// this moment: its tables are the same pointers, and what was read is to be read again. One that
// loses again and again gets its turn before others.
//
// After every other answer the transaction has ended, and is to be given up: `LARDER_OK`;
// `LARDER_NO_TABLE` (one was dropped, or the transaction had ended), `LARDER_NOT_UNIQUE`,
// `LARDER_FULL`: nothing has happened.
//
// Safety:
// `transaction` is null, or one that was not given up and nobody else uses; scans of its tables
// are not used any more.
enum larder_status larder_commit(struct larder_transaction *transaction);

// Gives up a transaction; without `larder_commit` it had no effect. Null is nothing to give up.
//
// Safety:
// `transaction` is null, or one that was not given up; its tables are not used any more.
void larder_transaction_free(struct larder_transaction *transaction);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LARDER_H */
