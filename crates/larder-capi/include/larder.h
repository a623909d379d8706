/* Larder for C: tables of tuples in memory, shared by many threads, queried by key, by order or by
 * pattern.
 *
 * Made from the sources by `make header`: change those. docs/c.md has an introduction and an
 * example; link with -llarder.
 *
 * Every function that can fail returns a larder_status: LARDER_OK, or an error, which
 * larder_message() explains. Only a lack of memory ends the process. A pointer that must not be
 * null is checked. The caller has to meet the other requirements for pointers, which stand under
 * "Safety". Until a call returns, nobody else may free an object that it uses, or change a text, an
 * array or terms that it reads.
 *
 * Many threads may use a larder, a larder_table and a larder_prepared at once; everything else one
 * at a time.
 *
 * What holds for all functions, and isn't repeated with each:
 *
 * - Statuses. LARDER_BAD_ARGUMENT: a pointer that is needed is null, a text isn't UTF-8, or a
 *   number is out of range. LARDER_BAD_TERM: a view or a key is of nothing, or the last term of a
 *   sequence isn't complete. LARDER_NO_TABLE: the table was dropped. LARDER_READ_ONLY: a function
 *   that writes was called with a snapshot. LARDER_FULL and LARDER_NOT_UNIQUE: a row was to be
 *   inserted or changed, and a limit or a unique index is in the way. LARDER_PANIC: a bug in the
 *   library.
 * - Cost. n is the number of rows in the table. O(1) in a table that isn't ordered is expected
 *   time. Reading and writing rows, keys and terms also takes time in proportion to their bytes.
 *   Costs are those of the default structure.
 * - Other threads. An operation on one key takes effect at one instant between its call and its
 *   return, for all threads. It waits at most while another thread changes the same leaf or commits
 *   a change of the same key. If a list is being inserted that is short, or has the key many times,
 *   it first helps to finish that. If a function takes effect at more than one instant, its
 *   description says so.
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

// The result of a call. `LARDER_OK` is 0 and `LARDER_NONE` is 1. All others are failures, which
// `larder_message` explains. A failed call has changed nothing in the table, unless the
// description of its status says otherwise.
typedef enum larder_status {
  // Success.
  LARDER_OK = 0,
  // Success, but there is nothing: no such key, no next key, or no more rows. Or nothing was
  // inserted because the key exists, or because a value is taken in a unique index.
  LARDER_NONE = 1,
  // The table was dropped.
  LARDER_NO_TABLE = 2,
  // Another named table has the name.
  LARDER_ALREADY_EXISTS = 3,
  // The key must exist, but doesn't.
  LARDER_BAD_KEY = 4,
  // A row or a default isn't a tuple, or is too short to have a key. Or the row has no such
  // position, or the element there may not be changed.
  LARDER_BAD_ROW = 5,
  // The element at the position is not an integer.
  LARDER_NOT_INTEGER = 6,
  // The sum doesn't fit in 64 bits. The addition has taken effect.
  LARDER_BIG_SUM = 7,
  // The operation is not for tables of this type or structure, or needs bounds that the table
  // doesn't have, or is not for tables with bounds.
  LARDER_TABLE_TYPE = 8,
  // An option is out of range, or the structure doesn't have it. Or there is no such structure.
  LARDER_BAD_OPTION = 9,
  // The match specification doesn't compile.
  LARDER_BAD_SPEC = 10,
  // A text or bytes are not a term, a term isn't complete, or a view is of nothing.
  LARDER_BAD_TERM = 11,
  // An argument is a null pointer, a text that isn't UTF-8, or a number that is out of range. Or
  // a table of a transaction can't be renamed or dropped.
  LARDER_BAD_ARGUMENT = 12,
  // There is no room for the row: the table has a limit and doesn't evict, or its structure has
  // a fixed size. All functions that insert or change rows may return it.
  LARDER_FULL = 13,
  // The operation exceeds what the engine can represent, such as an integer of more than 2^26
  // bits.
  LARDER_SYSTEM_LIMIT = 14,
  // The file can't be written or read, or is damaged.
  LARDER_FILE = 15,
  // A bug in the library. The process continues. Please report it, with the message.
  LARDER_PANIC = 16,
  // The table is a snapshot, which can't be changed.
  LARDER_READ_ONLY = 17,
  // The element at the position is not a map.
  LARDER_NOT_MAP = 18,
  // Another row already has the value in a unique index.
  LARDER_NOT_UNIQUE = 19,
  // The table has no such index, or it is still being added.
  LARDER_NO_INDEX = 20,
  // Others have changed what the transaction has read. It had no effect, and has been restarted.
  LARDER_CONFLICT = 21,
  // The value under the key has another type than the requested one.
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
  // A bitstring that isn't a binary: its number of bits isn't a multiple of eight.
  LARDER_KIND_BITSTRING = 13,
} larder_kind;

// What happened to a row, or to the table.
typedef enum larder_event {
  // The row `after` was inserted.
  LARDER_EVENT_INSERT = 1,
  // The row `before` was replaced by the row `after`, which has the same key.
  LARDER_EVENT_REPLACE = 2,
  // The row `before` was deleted.
  LARDER_EVENT_DELETE = 3,
  // The row `before` has expired.
  LARDER_EVENT_EXPIRE = 4,
  // The row `before` was evicted, because the table had reached its limit.
  LARDER_EVENT_EVICT = 5,
  // All rows were deleted.
  LARDER_EVENT_CLEAR = 6,
  // The feed fell behind by more than its limit, and `lost` changes were lost. To follow the
  // table again, subscribe again, with a snapshot.
  LARDER_EVENT_OVERFLOW = 7,
  // The table was dropped. No change follows.
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
  // Of a sample of rows, in the order of their insertion, the next ones are evicted that have
  // not been read or written since it was last their turn (SIEVE).
  LARDER_EVICT_SIEVE = 3,
} larder_evict;

// Properties of a secondary index, which may be added up.
typedef enum larder_index_flags {
  // No two rows may have equal values.
  LARDER_INDEX_UNIQUE = 1,
  // The value is a list, and each of its elements is indexed. Rows with any other value aren't
  // in the index.
  LARDER_INDEX_EACH = 2,
} larder_index_flags;

// A world: a set of tables. Any number of threads may use it at once.
typedef struct larder larder;

// A subscription to a table. Only one thread at a time may use it. It doesn't need the table's
// handle to stay.
typedef struct larder_feed larder_feed;

// A list of operations that take effect at one instant, if the conditions of all hold. It costs
// less than a transaction, but all keys must be known beforehand. Only one thread at a time may
// use it.
typedef struct larder_operations larder_operations;

// A compiled match specification with parameters. It doesn't belong to a table or a world. Any
// number of threads may use it at once.
typedef struct larder_prepared larder_prepared;

// A scan, whose results are returned page by page. Only one thread at a time may use it. It
// doesn't need the table's handle to stay.
typedef struct larder_rows larder_rows;

// A handle of a table. A table may have several handles, and any number of threads may use a
// handle at once.
typedef struct larder_table larder_table;

// A sequence of terms. Rows and keys are built in one, and results are returned in one. It may be
// reused. Views of its terms are valid until it is cleared, filled with results by a call, or
// freed. Only one thread at a time may use it.
typedef struct larder_terms larder_terms;

// An open transaction. Only one thread at a time may use it.
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
  // Whether rows are counted by several counters, which is faster for many writers, but takes
  // 4 KiB for the table, and makes reading the size slower. A table with limits ignores it.
  bool decentralized_counters;
  // The structure of the table, with its options, such as `"btree"` or
  // `"catree(over=btree,m=16)"`; null for the default, which is best in nearly all cases.
  const char *structure;
  // The time in milliseconds after which a row expires, unless `larder_insert_for` sets another
  // one; 0: never. This and all following options are for sets and ordered_sets with the default
  // structure.
  uint64_t ttl_ms;
  // The least time in milliseconds after which a row expires that is neither written nor looked
  // up by its key; 0: never.
  uint64_t idle_ms;
  // The largest number of rows; 0: no limit.
  size_t max_size;
  // The largest number of bytes that the rows may take; 0: no limit. They are those of the key
  // and the elements as they are stored, of long binaries, and 32 more for each row.
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

// A key, or a bound of a range, as made by a function `larder_key_…`. A zeroed key is a key of
// nothing. It refers to the text, the bytes or the term of which it was made, which must stay
// unchanged while the key is used.
typedef struct larder_key {
  // The form of the key, which is internal.
  uint32_t form;
  // The integer.
  int64_t integer;
  // The bytes of a binary or a view.
  const uint8_t *bytes;
  // The number of bytes.
  size_t len;
} larder_key;

// A change. It belongs to the feed. It and its views are valid until the next one is requested.
// Later versions of the library may add fields at the end.
typedef struct larder_change {
  // What happened.
  enum larder_event event;
  // Whether the next change belongs to the same commit: both took effect at the same instant. A
  // commit of more than 500 changes is split into parts. Those of a transaction have the same
  // number, those of a list that is inserted have not.
  bool more;
  // The number of the commit. Numbers never decrease. A commit that changed several tables has
  // the same number in each of them.
  uint64_t seq;
  // The row before the change, or a view of nothing.
  struct larder_view before;
  // The row after the change, or a view of nothing.
  struct larder_view after;
  // The number of changes that were lost.
  uint64_t lost;
} larder_change;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* --- Worlds; tables made and found --- */

// Makes an empty world. Never returns null. O(1).
struct larder *larder_new(void);

// Frees a world. Its tables are dropped when all their handles are freed, too: those of tables and
// snapshots, and the scans, transactions and lists of operations that use them. A feed doesn't
// count: it ends with `LARDER_EVENT_GONE`. Does nothing if `world` is null. O(1) for each table;
// memory is freed in the background.
//
// Safety:
// `world` is null, or came from `larder_new` and was not freed; nobody uses it any more.
void larder_free(struct larder *world);

// Waits until all memory of what was deleted, dropped or freed is given back, in all worlds, and
// ends the library's threads. `LARDER_NONE` if that isn't achieved within `timeout_ms`
// milliseconds, of which a day is the most, as may happen while others delete. The threads start
// again when they are needed. Other threads may use tables meanwhile. It takes the time that the
// library's threads need to free the memory.
//
// Call this after `larder_free` at the end of a program, so that a leak checker finds nothing of
// the library. Also call it before a `fork`, if the child process is to use the library. While
// there are tables whose rows may expire or be evicted, the thread that removes these rows stays:
// drop such tables before. Otherwise nothing is removed in the child, and what the thread had
// locked stays locked there.
enum larder_status larder_quiesce(uint64_t timeout_ms);

// Returns the version of the library that runs, such as "0.1.0". The version of the header is
// `LARDER_VERSION`. The text is never freed.
const char *larder_version(void);

// Returns the version of the library that runs as a number, for comparisons with
// `LARDER_VERSION_NUMBER`: 10000 times the major version, plus 100 times the minor version, plus
// the patch level.
int32_t larder_version_number(void);

// Makes a table, and writes a handle of it to `*table`, which must be freed by
// `larder_table_free`. O(1).
//
// If `options` is null, the table is a set, and the key is the first element of each row. The
// table exists until it is dropped, or its world and all its handles are freed.
// `LARDER_BAD_OPTION` if the name has more than 255 characters, if an option doesn't exist, is out
// of range or isn't for this type of table, or if the size is wrong; the message says which.
// `LARDER_ALREADY_EXISTS` if the option `named` is set, and another named table of the world has
// the name. The name is kept until the process ends, so don't make names of data.
//
// Safety:
// `world` is null or a world that was not freed; `name` and `options->structure` are null or end
// with a NUL; `options` is null, or has as many bytes as its size says, and each `bool` of it is
// true or false; `table` is null or may be written to.
enum larder_status larder_table_new(const struct larder *world,
                                    const char *name,
                                    const struct larder_options *options,
                                    struct larder_table **table);

// Finds a table of the world that was made with the option `named`, and writes another handle of
// it to `*table`. `LARDER_NONE`, and an unchanged `*table`, if there is none with this name. O(1).
// While another thread renames the table, it is found by its old name, its new one, or for a
// moment by both.
//
// Safety:
// `world` is null or a world that was not freed; `name` is null or ends with a NUL; `table` is
// null or may be written to.
enum larder_status larder_table_find(const struct larder *world,
                                     const char *name,
                                     struct larder_table **table);

// Loads a table from a file, and writes a handle of it to `*table`. It has the type, key position,
// name and compression of the table that was saved, but none of its limits, lifetimes and indexes.
// The whole file is checked before the first row is loaded. O(n), in an ordered_set O(n log n). If
// it is a named one, `larder_table_find` finds it before the call returns, with a part of its
// rows.
//
// `LARDER_FILE` if the file isn't that of a table, is truncated or damaged, or if the system
// reports an error. `LARDER_ALREADY_EXISTS` if the table was saved as a named one, and another
// named table has the name. After an error no table is left. Atoms in the file are never freed, so
// don't load untrusted files.
//
// Safety:
// `world` is null or a world that was not freed; `path` is null or ends with a NUL; `table` is
// null or may be written to.
enum larder_status larder_table_load(const struct larder *world,
                                     const char *path,
                                     struct larder_table **table);

/* --- Errors --- */

// Returns why the last failed call of this thread failed: a text in UTF-8, which is empty if none
// has failed. A call that succeeds doesn't change it. It is valid until another call of the thread
// fails, or the thread ends. O(1).
const char *larder_message(void);

// Returns the name of a status as in the header, for logs; "?" if there is no such status. The
// name is never freed.
const char *larder_status_name(int32_t status);

/* --- Terms, pushed --- */

// Makes an empty sequence. Never returns null. O(1).
struct larder_terms *larder_terms_new(void);

// Frees a sequence and its terms. Does nothing if `terms` is null. O(terms).
//
// Safety:
// `terms` is null, or came from `larder_terms_new` and was not freed; nobody uses it or a view of
// its terms any more.
void larder_terms_free(struct larder_terms *terms);

// Removes all terms from a sequence, and also a term that has been begun and isn't complete. Does
// nothing if `terms` is null. O(terms).
//
// Safety:
// `terms` is null or a sequence that nobody else uses; no view of its terms is used any more.
void larder_terms_clear(struct larder_terms *terms);

// Returns the number of complete terms; 0 if `terms` is null. O(1).
//
// Safety:
// `terms` is null or a sequence that nobody changes meanwhile.
size_t larder_terms_count(const struct larder_terms *terms);

// Returns a view of the term at `index`, counted from 0; a view of nothing if there is none. O(1).
//
// Safety:
// As for `larder_terms_count`.
struct larder_view larder_terms_get(const struct larder_terms *terms, size_t index);

// Pushes an integer. It is a term of the sequence, or the next element of the container that was
// begun last and isn't complete. As for all functions that push: O(1), and when the outermost
// container is complete, time in proportion to it. After an error of an argument nothing was
// pushed.
//
// Safety:
// `terms` is null or a sequence that nobody else uses.
enum larder_status larder_push_int(struct larder_terms *terms, int64_t value);

// Pushes an integer that may be 2^63 or more. Like `larder_push_int`.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_uint(struct larder_terms *terms, uint64_t value);

// Pushes a float. `LARDER_BAD_TERM` if it is infinite or NaN, which no term is. Like
// `larder_push_int`.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_float(struct larder_terms *terms, double value);

// Pushes the atom with this name, which has at most 255 characters of UTF-8. `LARDER_BAD_TERM` if
// it has more. Atoms are never freed: use them for names, and binaries for data. Like
// `larder_push_int`.
//
// Safety:
// As for `larder_push_int`; `name` is null or ends with a NUL.
enum larder_status larder_push_atom(struct larder_terms *terms, const char *name);

// Pushes a binary with a copy of `len` arbitrary bytes. Like `larder_push_int`, and O(len).
//
// Safety:
// As for `larder_push_int`; `bytes` points to `len` bytes, or `len` is 0.
enum larder_status larder_push_binary(struct larder_terms *terms, const uint8_t *bytes, size_t len);

// Begins a tuple. The next `size` terms that are pushed are its elements. If `size` is 0, pushes
// the empty tuple. Like `larder_push_int`.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_tuple(struct larder_terms *terms, size_t size);

// Begins a list. The next `size` terms that are pushed are its elements. If `size` is 0, pushes
// the empty list. Like `larder_push_int`.
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_list(struct larder_terms *terms, size_t size);

// Begins a map. The next terms that are pushed are its keys and values: `pairs` keys in any order,
// each followed by its value. If two keys are identical, the push that completes the outermost
// term returns `LARDER_BAD_TERM`, and the term is discarded. If `pairs` is 0, pushes the empty
// map. Like `larder_push_int`; completing a map of p pairs takes O(p log p).
//
// Safety:
// As for `larder_push_int`.
enum larder_status larder_push_map(struct larder_terms *terms, size_t pairs);

// Pushes a copy of a term, which may be one of this sequence. Like `larder_push_int`, and O(bytes
// of the term).
//
// Safety:
// As for `larder_push_int`; the view's terms are as they were when it was made.
enum larder_status larder_push_view(struct larder_terms *terms, struct larder_view view);

// Pushes the term that a text describes in Erlang's syntax, such as `{apple, 3, <<"red">>, #{price
// => 1.5}}`. `LARDER_BAD_TERM` if the text isn't a term; the message says where. Names in the text
// become atoms, which are never freed. So don't use this function for untrusted text. Like
// `larder_push_int`, and O(length of the text).
//
// Safety:
// As for `larder_push_int`; `source` is null or ends with a NUL.
enum larder_status larder_push_text(struct larder_terms *terms, const char *source);

// Pushes the term that `len` bytes encode in Erlang's external term format. `LARDER_BAD_TERM` if
// they aren't exactly one term; the message says why. Only if `trusted` is set may the bytes
// create new atoms, which are never freed; otherwise a new atom is `LARDER_BAD_TERM`. Like
// `larder_push_int`, and O(len), or O(bytes of the term) if it is compressed.
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
// is unchanged. O(1).
//
// Safety:
// The view's terms are as they were when it was made; `value` is null or may be written to.
bool larder_view_int(struct larder_view view, int64_t *value);

// Gets the integer, if the term is one from 0 to 2^64 − 1. Otherwise returns false, and `*value`
// is unchanged. O(1).
//
// Safety:
// As for `larder_view_int`.
bool larder_view_uint(struct larder_view view, uint64_t *value);

// Gets the float, if the term is one. Otherwise returns false, and `*value` is unchanged. An
// integer isn't converted. O(1).
//
// Safety:
// As for `larder_view_int`.
bool larder_view_float(struct larder_view view, double *value);

// Gets the text of the atom, if the term is one. Otherwise returns false, and nothing is written.
// The text is UTF-8, isn't terminated by a NUL, and is never freed. O(1).
//
// Safety:
// The view's terms are as they were when it was made; `text` and `len` are null or may be written
// to.
bool larder_view_atom(struct larder_view view, const char **text, size_t *len);

// Gets the bytes of the binary, if the term is one. Otherwise returns false, and nothing is
// written. The bytes aren't copied, and are valid as long as the term is. O(1).
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

// Returns the element of a tuple or list at `index`, counted from 0; a view of nothing if there is
// none. (Positions in rows, as in `larder_add`, are counted from 1.) O(index). To get all
// elements, use `larder_view_elements`.
//
// Safety:
// As for `larder_view_kind`. The element is valid as long as `view` is.
struct larder_view larder_view_element(struct larder_view view, size_t index);

// Writes views of the elements of a tuple or list to `out`; for a map, of its keys and values,
// each key before its value. Writes at most `capacity` views. Returns how many there are, so a
// result greater than `capacity` says that some are missing; 0 for any other term. O(views
// written).
//
// Safety:
// As for `larder_view_kind`; `out` points to `capacity` views, or `capacity` is 0.
size_t larder_view_elements(struct larder_view view, struct larder_view *out, size_t capacity);

// Returns the tail of a list: `[]` for a proper list, any other term for an improper one; a view
// of nothing if the term isn't a list. O(1), for an improper list O(elements).
//
// Safety:
// As for `larder_view_element`.
struct larder_view larder_view_tail(struct larder_view view);

// Returns the value under an identical key of a map; a view of nothing if there is none, or the
// term isn't a map. O(pairs).
//
// Safety:
// As for `larder_view_element`, for both views.
struct larder_view larder_view_find(struct larder_view map, struct larder_view key);

// Returns whether two terms are identical, as by `=:=`: 1 is not 1.0. Two views of nothing are
// identical. Linear in the terms, up to their first difference.
//
// Safety:
// As for `larder_view_kind`, for both views.
bool larder_view_same(struct larder_view a, struct larder_view b);

// Compares two terms in Erlang's order, in which 1 and 1.0 are equal. Returns a number less than,
// equal to or greater than 0 if `a` is less than, equal to or greater than `b`. A view of nothing
// is less than any term. Linear in the terms, up to their first difference; the keys of maps are
// put in order first.
//
// Safety:
// As for `larder_view_kind`, for both views.
int32_t larder_view_compare(struct larder_view a, struct larder_view b);

// Writes the text of the term, as Erlang would print it, in UTF-8. Like `snprintf`, writes at most
// `capacity` bytes, of which the last is a NUL, and returns the length of the whole text without
// the NUL. A truncated text may end within a character. A view of nothing has the empty text.
// `larder_push_text` reads the text. O(length of the whole text).
//
// Safety:
// As for `larder_view_kind`; `out` points to `capacity` bytes, or `capacity` is 0.
size_t larder_view_text(struct larder_view view, char *out, size_t capacity);

// Writes the term in Erlang's external term format, as `term_to_binary` does. Writes at most
// `capacity` bytes, and returns how many there are; 0 for a view of nothing. `larder_push_etf`
// reads the format. O(bytes of the term).
//
// Safety:
// As for `larder_view_text`.
size_t larder_view_etf(struct larder_view view, uint8_t *out, size_t capacity);

/* --- Tables and their handles --- */

// Frees a handle. The table itself continues to exist until it is dropped by `larder_table_drop`,
// or its world and all its handles are freed. A snapshot ends with its handle and its scans. Does
// nothing if `table` is null. O(1); memory is freed in the background.
//
// Safety:
// `table` is null or a handle that was not freed, and isn't one of those that
// `larder_transaction_table` returns; nobody uses it any more.
void larder_table_free(struct larder_table *table);

// Drops the table. From then on, all its handles return `LARDER_NO_TABLE`; they must still be
// freed. Calls of other threads in progress complete, or return `LARDER_NO_TABLE`. Snapshots of it
// stay. `LARDER_BAD_ARGUMENT` for a table of a transaction. O(1); memory is freed in the
// background.
//
// Safety:
// `table` is null or a handle that was not freed.
enum larder_status larder_table_drop(const struct larder_table *table);

// Renames the table. `LARDER_BAD_OPTION` if the name has more than 255 characters.
// `LARDER_ALREADY_EXISTS` if the table is a named one, and a named table has the name, this one
// included. `LARDER_BAD_ARGUMENT` for a table of a transaction. O(1). For a moment
// `larder_table_find` finds the table by both names. The name is kept until the process ends.
//
// Safety:
// As for `larder_table_drop`; `name` is null or ends with a NUL.
enum larder_status larder_table_rename(const struct larder_table *table, const char *name);

/* --- Rows by key --- */

// Inserts a row, which is a tuple. In a set or ordered_set it replaces the row with the same key;
// in a bag it is added to the others. Atomic: a reader of the key sees the old row or the new one.
// O(1), in an ordered_set O(log n); in a bag O(log m) if there are m rows under the key, and many.
// `LARDER_BAD_ROW` if the row isn't a tuple, or is too short to have a key. `LARDER_FULL` if there
// is no room: the table has a limit and doesn't evict, or its structure has a fixed size.
// `LARDER_NOT_UNIQUE` if another row has the value in a unique index.
//
// Safety:
// As for `larder_table_drop`; the view's terms are as they were when it was made.
enum larder_status larder_insert(const struct larder_table *table, struct larder_view row);

// Inserts a row if its key doesn't exist. Otherwise returns `LARDER_NONE`, also if another row has
// the value in a unique index. Atomic: of several threads that insert the same new key, one gets
// `LARDER_OK`. Apart from that like `larder_insert`.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_insert_new(const struct larder_table *table, struct larder_view row);

// Inserts all rows of a sequence at once: no reader sees some of them without the others, but for
// a scan that began before. If one of them is bad, none is inserted. The cost is that of
// `larder_insert` for each row. Meanwhile other threads read and write single keys. Other calls on
// the table, such as `larder_next` and `larder_select`, first help to finish the list. Statuses
// are those of `larder_insert`.
//
// Safety:
// As for `larder_table_drop`; `rows` is null or a sequence that nobody changes meanwhile.
enum larder_status larder_insert_all(const struct larder_table *table,
                                     const struct larder_terms *rows);

// Inserts all rows of a sequence at once, if none of their keys exists. Otherwise inserts none,
// and returns `LARDER_NONE`; so it does if a row has a value that is taken in a unique index.
// Apart from that like `larder_insert_all`, and a lookup of each key before.
//
// Safety:
// As for `larder_insert_all`.
enum larder_status larder_insert_all_new(const struct larder_table *table,
                                         const struct larder_terms *rows);

// Fills `out` with the rows under a key, in order of arrival. `LARDER_NONE`, and an empty `out`,
// if there are none. All rows of the key are seen as of one instant. Takes no lock: it waits at
// most while another thread changes the same leaf, or commits a change of the key. O(1) plus the
// rows; in an ordered_set O(log n) plus the rows. `out` may be the sequence that contains the key.
//
// Safety:
// As for `larder_insert`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_lookup(const struct larder_table *table,
                                 struct larder_view key,
                                 struct larder_terms *out);

// Fills `out` with the elements at `count` positions, counted from 1, of the rows under a key.
// Rows are in order of arrival, and the elements of each row are in the order of the positions.
// The rest of the rows isn't copied. `LARDER_NONE`, and an empty `out`, if there is no such key.
// `LARDER_BAD_ROW` if a position is 0, or one of the rows is shorter. O(elements up to the
// greatest position) for each row. Apart from that like `larder_lookup`.
//
// Safety:
// As for `larder_lookup`; `positions` is null or points to `count` numbers.
enum larder_status larder_lookup_elements(const struct larder_table *table,
                                          struct larder_view key,
                                          const size_t *positions,
                                          size_t count,
                                          struct larder_terms *out);

// Returns whether there is a row under the key: `LARDER_OK` or `LARDER_NONE`. Copies nothing, and
// doesn't count as a read for `idle_ms`. O(1), in an ordered_set O(log n). Apart from that like
// `larder_lookup`.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_contains(const struct larder_table *table, struct larder_view key);

// Deletes all rows under the key. Writes their number to `*gone`, unless `gone` is null.
// `LARDER_NONE`, and 0 in `*gone`, if there was none. Atomic: a reader of the key sees all of them
// or none. O(1), in an ordered_set O(log n), and O(1) for each row of a bag.
//
// Safety:
// As for `larder_insert`; `gone` is null or may be written to.
enum larder_status larder_delete(const struct larder_table *table,
                                 struct larder_view key,
                                 size_t *gone);

// Deletes the row that is identical to this one; in a duplicate_bag, all copies of it. Other rows
// of the key stay. `LARDER_BAD_ROW` if the row isn't a tuple, or is too short to have a key. Apart
// from that like `larder_delete`.
//
// Safety:
// As for `larder_delete`.
enum larder_status larder_delete_row(const struct larder_table *table,
                                     struct larder_view row,
                                     size_t *gone);

// Deletes all rows under the key, and fills `out` with them like `larder_lookup`: `LARDER_NONE`,
// and an empty `out`, if there are none. Atomic: if several threads take the same row, only one
// gets it. If `out` is null, nothing is deleted. The cost is that of `larder_lookup` and
// `larder_delete`.
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_take(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

// Adds to the integer at a position, counted from 1, of the row under a key. Writes the sum to
// `*sum`, unless `sum` is null. Atomic: no addition is lost, however many threads add. If the key
// doesn't exist, first inserts the row `otherwise` with this key; if `otherwise` is a view of
// nothing, returns `LARDER_BAD_KEY`. The cost is that of `larder_insert`, and of finding the
// position.
//
// `LARDER_NOT_INTEGER` if the element isn't an integer. `LARDER_BAD_ROW` if there is no such
// position, if it is the key's, or if `otherwise` is too short. `LARDER_TABLE_TYPE` for bags.
// `LARDER_BIG_SUM` if the sum doesn't fit in 64 bits; the addition has taken effect, and `*sum` is
// unchanged. `LARDER_SYSTEM_LIMIT` if the sum is larger than integers can be.
//
// Safety:
// As for `larder_insert`, for both views; `sum` is null or may be written to.
enum larder_status larder_add(const struct larder_table *table,
                              struct larder_view key,
                              size_t position,
                              int64_t increment,
                              struct larder_view otherwise,
                              int64_t *sum);

// Replaces the element at a position, counted from 1, of the row under a key. `LARDER_NONE` if the
// key doesn't exist. Atomic: a reader sees the old element or the new one. The row's bytes are
// copied, so the cost is that of `larder_insert`. `LARDER_BAD_ROW` if there is no such position,
// or if it is the key's. `LARDER_TABLE_TYPE` for bags.
//
// Safety:
// As for `larder_insert`, for both views.
enum larder_status larder_update(const struct larder_table *table,
                                 struct larder_view key,
                                 size_t position,
                                 struct larder_view element);

/* --- Keys in order --- */

// Fills `out` with the first key; in an ordered_set, with the least one. Other tables have an
// order of their own, which stays as it is while nobody inserts or deletes. `LARDER_NONE`, and an
// empty `out`, if the table is empty. The key was the first at an instant during the call. O(1),
// in an ordered_set O(log n).
//
// Safety:
// As for `larder_table_drop`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_first(const struct larder_table *table, struct larder_terms *out);

// Fills `out` with the greatest key of an ordered_set. For other tables the same as
// `larder_first`. Apart from that like `larder_first`.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_last(const struct larder_table *table, struct larder_terms *out);

// Fills `out` with the key after this one. `LARDER_NONE`, and an empty `out`, if it is the last.
// `out` may be the sequence that contains the key. In an ordered_set the key need not exist; in
// other tables, `LARDER_BAD_KEY` if it doesn't. A traversal finds each key that exists throughout
// exactly once, whatever others write; a key that is inserted or deleted meanwhile may be found or
// not. O(1), in an ordered_set O(log n).
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_next(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

// Like `larder_next`, but in descending order in an ordered_set: fills `out` with the key before
// this one. In other tables the same as `larder_next`.
//
// Safety:
// As for `larder_lookup`.
enum larder_status larder_prev(const struct larder_table *table,
                               struct larder_view key,
                               struct larder_terms *out);

/* --- Tables as a whole --- */

// Deletes all rows at one instant: a reader sees all of them or none. Writes their number to
// `*gone`, unless `gone` is null. The number is exact if nobody was writing at that instant. O(1);
// memory is freed in the background. In a table of a transaction O(n).
//
// Safety:
// As for `larder_table_drop`; `gone` is null or may be written to.
enum larder_status larder_clear(const struct larder_table *table, size_t *gone);

// Returns the number of rows; 0 for a table that was dropped. Rows that have expired count until
// the library has removed them. O(1). The first call for a snapshot counts its rows, and so does
// each call in a transaction, which has read all of them then: O(n).
//
// Safety:
// As for `larder_table_drop`.
size_t larder_size(const struct larder_table *table);

// Returns the memory that the table takes, in bytes, with its indexes and what it keeps for
// snapshots, and without binaries of more than 127 bytes; 0 for a table that was dropped. O(1). A
// program that has many tables adds them up.
//
// Safety:
// As for `larder_table_drop`.
size_t larder_memory(const struct larder_table *table);

// Fills `out` with one map of the properties of the table. Its keys are the atoms `name`, `named`,
// `type`, `keypos`, `size`, `memory` (in bytes), `compressed`, `decentralized_counters`,
// `structure` and `stats`. The value of `stats` is a map of figures of the structure. The
// properties are read one after the other, and not at one instant. O(1); the size of a snapshot as
// in `larder_size`.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_info(const struct larder_table *table, struct larder_terms *out);

// Writes the table to a file, as of one instant during the call, whatever other threads write
// meanwhile. An existing file is replaced when the new one is complete and on the disk.
// `LARDER_FILE` if the system reports an error, which is in the message; the existing file is
// unchanged then. Nobody waits for it. (A table with another structure than the default is written
// as a scan sees it.) O(n).
//
// Safety:
// As for `larder_table_drop`; `path` is null or ends with a NUL.
enum larder_status larder_table_save(const struct larder_table *table, const char *path);

/* --- Keys and values, without terms --- */

// Returns a key that is an integer. O(1).
struct larder_key larder_key_i64(int64_t key);

// Returns a key that is the binary of a text's bytes, without the NUL. If `key` is null, it is a
// key of nothing. O(length). The text isn't copied.
//
// Safety:
// `key` is null or ends with a NUL.
struct larder_key larder_key_str(const char *key);

// Returns a key that is a binary of `len` arbitrary bytes. While the key is used, `key` must point
// to `len` bytes, unless `len` is 0. O(1). The bytes aren't copied.
struct larder_key larder_key_bytes(const uint8_t *key, size_t len);

// Returns a key that is a term. Of a view of nothing, it is a key of nothing. O(1).
struct larder_key larder_key_view(struct larder_view key);

// Inserts the row `{Key, Value}`, like `larder_insert`: the same cost, the same statuses, and the
// same for readers. In a set or ordered_set it replaces the row with the same key.
// `LARDER_TABLE_TYPE`, as for all functions on pairs, if the key isn't the first element of the
// table's rows.
//
// Safety:
// As for `larder_table_drop`; the view's terms, and what the key refers to, are as they were when
// the view and the key were made.
enum larder_status larder_put(const struct larder_table *table,
                              struct larder_key key,
                              struct larder_view value);

// Like `larder_put`, but the value is an integer.
//
// Safety:
// As for `larder_put`.
enum larder_status larder_put_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t value);

// Like `larder_put`, but the value is a float. `LARDER_BAD_TERM` if it is infinite or NaN.
//
// Safety:
// As for `larder_put`.
enum larder_status larder_put_f64(const struct larder_table *table,
                                  struct larder_key key,
                                  double value);

// Like `larder_put`, but the value is the binary of a text's bytes, without the NUL.
//
// Safety:
// As for `larder_put`; `value` is null or ends with a NUL.
enum larder_status larder_put_str(const struct larder_table *table,
                                  struct larder_key key,
                                  const char *value);

// Like `larder_put`, but the value is a binary of `len` arbitrary bytes.
//
// Safety:
// As for `larder_put`; `value` points to `len` bytes, or `len` is 0.
enum larder_status larder_put_bytes(const struct larder_table *table,
                                    struct larder_key key,
                                    const uint8_t *value,
                                    size_t len);

// Fills `out` with the value under a key: the second element of its row; in a bag, that of the row
// that arrived first. `LARDER_NONE`, and an empty `out`, if there is no such key. `LARDER_BAD_ROW`
// if a row has no second element. Apart from that like `larder_lookup_elements`. As for all
// functions `larder_get…`, it counts as a read for `idle_ms`.
//
// Safety:
// As for `larder_table_drop`; what the key refers to is as it was when the key was made; `out` is
// null or a sequence that nobody else uses.
enum larder_status larder_get(const struct larder_table *table,
                              struct larder_key key,
                              struct larder_terms *out);

// Like `larder_get`, but writes the integer to `*value`. `LARDER_VALUE_TYPE` if the value isn't an
// integer of 64 bits. If the status isn't `LARDER_OK`, `*value` is unchanged.
//
// Safety:
// As for `larder_get`; `value` is null or may be written to.
enum larder_status larder_get_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t *value);

// Like `larder_get`, but writes the float to `*value`. `LARDER_VALUE_TYPE` if the value isn't a
// float. If the status isn't `LARDER_OK`, `*value` is unchanged.
//
// Safety:
// As for `larder_get_i64`.
enum larder_status larder_get_f64(const struct larder_table *table,
                                  struct larder_key key,
                                  double *value);

// Like `larder_get`, but writes the bytes of a binary to `out`, as `snprintf` does: at most
// `capacity` bytes, of which the last is a NUL that isn't part of the binary. Writes the length of
// the binary to `*len`, unless `len` is null. If `*len` is `capacity` or more, the bytes were
// truncated. `LARDER_VALUE_TYPE` if the value isn't a binary. If the status isn't `LARDER_OK`,
// nothing is written.
//
// Safety:
// As for `larder_get`; `out` points to `capacity` bytes, or `capacity` is 0; `len` is null or may
// be written to.
enum larder_status larder_get_str(const struct larder_table *table,
                                  struct larder_key key,
                                  char *out,
                                  size_t capacity,
                                  size_t *len);

// Adds to the integer under a key, the second element of its row. Writes the sum to `*sum`, unless
// `sum` is null. A counter that doesn't exist starts from 0. Atomic. Apart from that like
// `larder_add`.
//
// Safety:
// As for `larder_put`; `sum` is null or may be written to.
enum larder_status larder_add_i64(const struct larder_table *table,
                                  struct larder_key key,
                                  int64_t increment,
                                  int64_t *sum);

// Returns whether there is a row under a key: `LARDER_OK` or `LARDER_NONE`. Apart from that like
// `larder_contains`.
//
// Safety:
// As for `larder_table_drop`; what the key refers to is as it was when the key was made.
enum larder_status larder_has(const struct larder_table *table, struct larder_key key);

// Deletes all rows under a key. `LARDER_NONE` if there is none. Apart from that like
// `larder_delete`.
//
// Safety:
// As for `larder_has`.
enum larder_status larder_remove(const struct larder_table *table, struct larder_key key);

/* --- Maps in rows --- */

// Sets the value under a key of a map. The map is the element at `position`, counted from 1, of
// the row under `key`. Atomic: a reader sees the old map or the new one. The row's bytes are
// copied, but not decoded: linear in the row, and O(1), in an ordered_set O(log n), to find it.
// `LARDER_NONE` if there is no such row; `LARDER_NOT_MAP` if the element isn't a map;
// `LARDER_BAD_ROW` if there is no such position, or if it is the key's; `LARDER_TABLE_TYPE` for
// bags.
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

// Inserts a row, like `larder_insert`, that expires after `ttl_ms` milliseconds, whatever the
// table's own `ttl_ms` is. If it is negative, the row doesn't expire. In a transaction the time
// begins at the commit. `LARDER_TABLE_TYPE` if the table was made without bounds.
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_insert_for(const struct larder_table *table,
                                     struct larder_view row,
                                     int64_t ttl_ms);

// Sets the time to live of the row under a key to `ttl_ms` milliseconds from now, in a transaction
// from its commit. If it is negative, the row doesn't expire. Atomic. Feeds don't report this.
// `LARDER_NONE` if there is no row. `LARDER_TABLE_TYPE` if the table was made without bounds.
// O(1), in an ordered_set O(log n).
//
// Safety:
// As for `larder_insert`.
enum larder_status larder_expire(const struct larder_table *table,
                                 struct larder_view key,
                                 int64_t ttl_ms);

// Gets the remaining time of the row under a key in milliseconds, or -1 if the row doesn't expire.
// Writes it to `*ttl_ms`, unless `ttl_ms` is null. This doesn't count as a read for `idle_ms`. In
// a snapshot it is the time that was left at its instant. `LARDER_NONE`, and an unchanged
// `*ttl_ms`, if there is no row. `LARDER_TABLE_TYPE` if the table was made without bounds. The
// cost is that of `larder_contains`.
//
// Safety:
// As for `larder_insert`; `ttl_ms` is null or may be written to.
enum larder_status larder_time_left(const struct larder_table *table,
                                    struct larder_view key,
                                    int64_t *ttl_ms);

/* --- Queries, ranges and scans --- */

// Begins a scan for the results of a match specification in Erlang's syntax, such as
// `[{{'$1','$2'},[{'<','$2',5}],['$1']}]`. Writes a handle of the scan to `*rows`, which must be
// freed by `larder_rows_free`. `larder_rows_next` returns the results. If `backward` is set, the
// scan of an ordered_set is in descending order; other tables have one order only. If the key is
// known, or guards limit the key of an ordered_set, or an index has what is asked for, only
// matching rows are examined. Otherwise all are: O(n) in all. The call itself compiles the
// specification, in time in proportion to it, and takes O(1), in an ordered_set O(log n).
// `LARDER_BAD_SPEC` if the specification doesn't compile; the message has the reason.
//
// A row that exists throughout the scan is found exactly once. One that is inserted, deleted or
// replaced meanwhile may be found in either state, or not. A scan of a snapshot sees one instant.
// While a scan exists, its world and its table stay, as with a handle.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `rows` is null or may be written
// to.
enum larder_status larder_select(const struct larder_table *table,
                                 const char *spec,
                                 bool backward,
                                 struct larder_rows **rows);

// Begins a scan of all rows, which `larder_rows_next` returns. O(1), in an ordered_set O(log n).
// Apart from that like `larder_select`.
//
// Safety:
// As for `larder_select`.
enum larder_status larder_each(const struct larder_table *table,
                               bool backward,
                               struct larder_rows **rows);

// Begins a scan of the rows of an ordered_set whose keys are at least `low` and less than `high`.
// A key of nothing is no bound. There are no rows if `low` isn't less than `high`.
// `LARDER_TABLE_TYPE` for other tables. O(log n) plus the rows that are returned. Apart from that
// like `larder_select`.
//
// Safety:
// As for `larder_select`; what the keys refer to is as it was when they were made.
enum larder_status larder_range(const struct larder_table *table,
                                struct larder_key low,
                                struct larder_key high,
                                bool backward,
                                struct larder_rows **rows);

// Fills `out` with the next results: `most` of them, or fewer at the end. `LARDER_NONE`, and an
// empty `out`, if there are no more. `LARDER_BAD_ARGUMENT` if `most` is 0. `LARDER_NO_TABLE` if
// the table was dropped, or the attempt of the transaction has ended. Nothing is locked between
// calls: others may write. A row that exists throughout the scan is found exactly once. O(rows
// that are examined).
//
// Safety:
// `rows` is null, or a scan that was not freed and nobody else uses; `out` is null or a sequence
// that nobody else uses.
enum larder_status larder_rows_next(struct larder_rows *rows,
                                    size_t most,
                                    struct larder_terms *out);

// Frees a scan, which need not be at its end. Does nothing if `rows` is null. O(1).
//
// Safety:
// `rows` is null, or a scan that was not freed; nobody uses it any more.
void larder_rows_free(struct larder_rows *rows);

// Counts the rows for which a match specification returns `true`. Writes their number to `*count`,
// unless `count` is null. Examines the rows that `larder_select` does, and sees writes of others
// as that does. `LARDER_BAD_SPEC` if the specification doesn't compile.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `count` is null or may be written
// to.
enum larder_status larder_select_count(const struct larder_table *table,
                                       const char *spec,
                                       uint64_t *count);

// Deletes the rows for which a match specification returns `true`. Writes their number to
// `*count`, unless `count` is null. Each row, in a bag all rows of a key, is deleted at one
// instant, and not all of them together: others may see some of them gone. Examines the rows that
// `larder_select` does. `LARDER_BAD_SPEC` if the specification doesn't compile; nothing is deleted
// then.
//
// Safety:
// As for `larder_select_count`.
enum larder_status larder_select_delete(const struct larder_table *table,
                                        const char *spec,
                                        uint64_t *count);

// Deletes the rows that a match specification matches, and fills `out` with its results for them,
// which are those that `larder_select` would return. Each row, in a bag all rows of a key, is
// taken at one instant, and not all of them together. If several threads take the same row, only
// one gets it. `LARDER_NONE`, and an empty `out`, if nothing matched. If `out` is null, nothing is
// deleted. Examines the rows that `larder_select` does. `LARDER_BAD_SPEC` if the specification
// doesn't compile. If the table is dropped meanwhile, `LARDER_NO_TABLE`, and the rows that were
// taken are lost.
//
// Safety:
// As for `larder_table_drop`; `spec` is null or ends with a NUL; `out` is null or a sequence that
// nobody else uses.
enum larder_status larder_select_take(const struct larder_table *table,
                                      const char *spec,
                                      struct larder_terms *out);

// Replaces the rows that a match specification matches by its results, each at one instant, and
// only if it is still the row that was matched. A result must have the key of its row. Writes the
// number of rows to `*count`, unless `count` is null. Examines the rows that `larder_select` does.
// `LARDER_BAD_SPEC` if the specification doesn't compile. `LARDER_TABLE_TYPE` if a key might
// change, and for bags. After `LARDER_NOT_UNIQUE` or `LARDER_FULL` the rows before are replaced.
//
// Safety:
// As for `larder_select_count`.
enum larder_status larder_select_replace(const struct larder_table *table,
                                         const char *spec,
                                         uint64_t *count);

/* --- Queries with parameters --- */

// Compiles a match specification in which `{bind, N}` stands for the Nth value, from 1 to 255:
// `[{{{user,{bind,1}},'$1'},[{'<','$1',{bind,2}}],['$1']}]`. Writes a handle to `*prepared`, which
// must be freed by `larder_prepared_free`. The functions `larder_…_prepared` take it with values,
// and don't compile it again. Any term may be a value, and is taken as a constant.
// `LARDER_BAD_SPEC` if the specification doesn't compile; the message has the reason. O(s log s)
// for a specification of size s.
//
// Safety:
// `spec` is null or ends with a NUL; `prepared` is null or may be written to.
enum larder_status larder_prepare(const char *spec, struct larder_prepared **prepared);

// Returns the number of values that the specification needs, which is the greatest number of a
// parameter; 0 if `prepared` is null. O(1).
//
// Safety:
// `prepared` is null, or a handle that was not freed.
size_t larder_prepared_parameters(const struct larder_prepared *prepared);

// Frees the handle. Scans that were begun with it continue. Does nothing if `prepared` is null.
// O(1).
//
// Safety:
// `prepared` is null, or came from `larder_prepare` and was not freed; nobody uses it any more.
void larder_prepared_free(struct larder_prepared *prepared);

// Like `larder_select`, but with a prepared specification and its values, which are the terms of
// `values`; none if `values` is null. Nothing is compiled: it takes time in proportion to the
// values. The rows to examine are chosen for these values. `LARDER_BAD_SPEC` if the number of
// values isn't that of the parameters.
//
// Safety:
// As for `larder_table_drop`; `prepared` is null or a handle that was not freed; `values` is null
// or a sequence that nobody changes meanwhile; `rows` is null or may be written to.
enum larder_status larder_select_prepared(const struct larder_table *table,
                                          const struct larder_prepared *prepared,
                                          const struct larder_terms *values,
                                          bool backward,
                                          struct larder_rows **rows);

// Like `larder_select_count`, but with a prepared specification; see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_prepared`; `count` is null or may be written to.
enum larder_status larder_select_count_prepared(const struct larder_table *table,
                                                const struct larder_prepared *prepared,
                                                const struct larder_terms *values,
                                                uint64_t *count);

// Like `larder_select_delete`, but with a prepared specification; see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_count_prepared`.
enum larder_status larder_select_delete_prepared(const struct larder_table *table,
                                                 const struct larder_prepared *prepared,
                                                 const struct larder_terms *values,
                                                 uint64_t *count);

// Like `larder_select_replace`, but with a prepared specification; see `larder_select_prepared`.
//
// Safety:
// As for `larder_select_count_prepared`.
enum larder_status larder_select_replace_prepared(const struct larder_table *table,
                                                  const struct larder_prepared *prepared,
                                                  const struct larder_terms *values,
                                                  uint64_t *count);

// Like `larder_select_take`, but with a prepared specification; see `larder_select_prepared`.
// `out` may be `values`.
//
// Safety:
// As for `larder_select_prepared`; `out` is null or a sequence that nobody else uses.
enum larder_status larder_select_take_prepared(const struct larder_table *table,
                                               const struct larder_prepared *prepared,
                                               const struct larder_terms *values,
                                               struct larder_terms *out);

/* --- Ranks --- */

// Gets the rank of the row under a key of an ordered_set, which is 1 for the first row. Writes it
// to `*rank`, unless `rank` is null. `LARDER_NONE`, and an unchanged `*rank`, if there is no such
// row. O(log n). The first call of a function about ranks also counts all rows of the table, and
// later calls count what has changed since.
//
// The rank is exact in a snapshot, and if nobody inserts or deletes meanwhile. Otherwise, a row
// that exists throughout the call counts once, and a row that is inserted or deleted meanwhile may
// count or not. `LARDER_TABLE_TYPE` if the table isn't an ordered_set, has bounds (`ttl_ms`,
// `idle_ms`, `max_size` or `max_memory`), or has another structure than the default.
//
// Safety:
// As for `larder_insert`; `rank` is null or may be written to.
enum larder_status larder_rank(const struct larder_table *table,
                               struct larder_view key,
                               uint64_t *rank);

// Fills `out` with the n-th row of an ordered_set. 1 is the first row, 2 the second, and so on; -1
// is the last row, -2 the one before it, and so on. `LARDER_NONE`, and an empty `out`, if there is
// no such row, as for 0. Apart from that like `larder_rank`.
//
// Safety:
// As for `larder_first`.
enum larder_status larder_nth(const struct larder_table *table,
                              int64_t n,
                              struct larder_terms *out);

// Fills `out` with `most` rows of an ordered_set, in order, from the n-th row on, or with fewer if
// there are fewer. `n` is counted as by `larder_nth`. `LARDER_NONE`, and an empty `out`, if there
// are none. Apart from that like `larder_rank`, plus O(rows).
//
// Safety:
// As for `larder_first`.
enum larder_status larder_slice(const struct larder_table *table,
                                int64_t n,
                                size_t most,
                                struct larder_terms *out);

// Counts the rows of an ordered_set whose keys are at least `low` and less than `high`. Writes the
// number to `*count`, unless `count` is null. Apart from that like `larder_rank`.
//
// Safety:
// As for `larder_insert`, for both views; `count` is null or may be written to.
enum larder_status larder_count_range(const struct larder_table *table,
                                      struct larder_view low,
                                      struct larder_view high,
                                      uint64_t *count);

/* --- Secondary indexes --- */

// Adds an index on the element at a position, counted from 1, of each row. Shorter rows aren't in
// the index. `flags` are `larder_index_flags`. Others may read and write the table meanwhile; they
// can't use the index before the call has returned. Match specifications use the index
// automatically. `LARDER_BAD_OPTION` if another index has the name, or if the position or the
// flags are invalid. `LARDER_NOT_UNIQUE` if a unique index would have a value twice.
// `LARDER_TABLE_TYPE` if it is a table of a transaction, or has another structure than the
// default. After an error there is no such index. O(n log n).
//
// From then on, a write that would add a value to a unique index twice returns
// `LARDER_NOT_UNIQUE`, and functions that insert what is new return `LARDER_NONE`.
//
// Safety:
// As for `larder_table_drop`; `name` is null or ends with a NUL.
enum larder_status larder_add_index(const struct larder_table *table,
                                    const char *name,
                                    size_t position,
                                    uint32_t flags);

// Adds an index on the value of an expression of match specifications, in which `'$_'` is the row:
// `{map_get, zip, {element, 5, '$_'}}`. Rows for which the expression fails aren't in the index.
// Apart from that like `larder_add_index`.
//
// Safety:
// As for `larder_add_index`; `expression` is null or ends with a NUL.
enum larder_status larder_add_index_on(const struct larder_table *table,
                                       const char *name,
                                       const char *expression,
                                       uint32_t flags);

// Drops an index. `LARDER_NO_INDEX` if there is none with this name. `LARDER_TABLE_TYPE` for a
// table of a transaction. Calls of others that read the index complete, or return
// `LARDER_NO_INDEX`. O(1); memory is freed in the background.
//
// Safety:
// As for `larder_add_index`.
enum larder_status larder_drop_index(const struct larder_table *table, const char *name);

// Fills `out` with the rows that have a value in an index. Values are compared as
// `larder_view_compare` does: 1 and 1.0 are one. `LARDER_NONE`, and an empty `out`, if there are
// none. Each row had the value at an instant during the call, and a row that has the value
// throughout is found exactly once. In a snapshot and in a transaction the rows are those of its
// instant. `out` may be the sequence that contains the value. `LARDER_NO_INDEX` if there is no
// such index, or if it is still being added. O(log n), plus O(log n) for each row.
//
// Safety:
// As for `larder_lookup`; `name` is null or ends with a NUL.
enum larder_status larder_index_lookup(const struct larder_table *table,
                                       const char *name,
                                       struct larder_view value,
                                       struct larder_terms *out);

// Fills `out` with the results of a match specification for the rows of an index, in the order of
// their values in the index. `LARDER_NONE`, and an empty `out`, if there are none. If the
// specification limits the indexed element, only the entries within the limits are read: O(log n)
// for each. A row whose value changes meanwhile may be found twice or not at all.
// `LARDER_NO_INDEX` if there is no such index. `LARDER_BAD_SPEC` if the specification doesn't
// compile.
//
// Safety:
// As for `larder_index_lookup`; `spec` is null or ends with a NUL.
enum larder_status larder_index_select(const struct larder_table *table,
                                       const char *name,
                                       const char *spec,
                                       struct larder_terms *out);

/* --- Snapshots and feeds --- */

// Takes snapshots of `count` tables of one world at one instant. Writes a handle of each to
// `snapshots`, in the order of the tables. `larder_table_free` frees a handle and ends its
// snapshot. O(1) for each table; nothing is copied. If a list is being inserted into a table, the
// call first helps to finish that. Nobody else waits. `LARDER_TABLE_TYPE` if a table is a snapshot
// itself or belongs to a transaction, or has another structure than the default; then no snapshot
// is taken.
//
// All functions that read a table also accept a snapshot. Those that write return
// `LARDER_READ_ONLY`. A snapshot doesn't change when its table is cleared or dropped. While it
// exists, the first change of each key in the table preserves the old rows. The first call of
// `larder_size` counts the rows of a snapshot.
//
// Safety:
// `tables` is null or has `count` pointers, each null or a handle that was not freed; `snapshots`
// is null or has room for `count` pointers.
enum larder_status larder_snapshot(const struct larder_table *const *tables,
                                   size_t count,
                                   struct larder_table **snapshots);

// Compares two snapshots of one table. Replaces the contents of `out` by the changes that turn the
// rows of `old` into those of `new`: `{insert, New}`, `{replace, Old, New}` and `{delete, Old}`,
// in no order. `LARDER_NONE`, and an empty `out`, if there are none. O(changes since the oldest
// snapshot that exists): keys that haven't changed aren't read, unless the table was cleared
// between the two, or has bounds. `LARDER_TABLE_TYPE` if one isn't a snapshot, or they are of
// different tables.
//
// Safety:
// `old` and `new` are null or handles that were not freed; `out` is null or a sequence that nobody
// else uses, and no view of its terms is used any more.
enum larder_status larder_diff(const struct larder_table *old,
                               const struct larder_table *new_,
                               struct larder_terms *out);

// Subscribes to the changes of a table from this moment on. Writes a handle of the feed to
// `*feed`, which must be freed by `larder_feed_free`. O(1). While there is a feed, each write of
// the table copies its old and its new row. Writers never wait for a feed.
//
// If `filter` isn't null, it is a match specification, and the feed only has changes of rows whose
// old or new form matches. `limit` is the number of changes by which the feed may fall behind; 0
// means 10,000. Beyond that, the oldest changes are lost, which the feed reports. Changes that the
// filter excludes count, too. If `snapshot` isn't null, a handle of a snapshot of the moment at
// which the feed begins is written to it. Each change is either in the snapshot or in the feed,
// and none is in both, with one exception: a row that had expired then, and was not removed yet,
// may be reported as expired, or as deleted or replaced by a transaction that had seen it, though
// the snapshot doesn't have it. `LARDER_BAD_SPEC` if the filter doesn't compile.
// `LARDER_TABLE_TYPE` if the table is a snapshot or belongs to a transaction, or has another
// structure than the default.
//
// Safety:
// As for `larder_table_drop`; `filter` is null or ends with a NUL; `snapshot` and `feed` are null
// or may be written to.
enum larder_status larder_subscribe(const struct larder_table *table,
                                    const char *filter,
                                    size_t limit,
                                    struct larder_table **snapshot,
                                    struct larder_feed **feed);

// Writes the address of the next change to `*change`. Waits for it for `timeout_ms` milliseconds;
// without a limit, if that is negative; not at all, if it is 0. `LARDER_NONE`, and null in
// `*change`, if there was no change. `LARDER_NO_TABLE`, and null in `*change`, after
// `LARDER_EVENT_GONE`. Changes come in the order of their commits, each once. O(changes that are
// read until one passes the filter), for at most 10 ms beyond the timeout.
//
// Safety:
// `feed` is null, or a feed that was not freed and nobody else uses; `change` is null or may be
// written to.
enum larder_status larder_feed_next(struct larder_feed *feed,
                                    int64_t timeout_ms,
                                    const struct larder_change **change);

// Calls `f` with `data` and each change, on this thread, as changes happen. Waits without a limit
// for the next one. Returns `LARDER_OK` when `f` returns false, or when the table was dropped.
// `LARDER_NO_TABLE` if the feed had already ended. This function is for a thread of the program
// that follows a table. `f` may use all tables. It must not use or free this feed, call `longjmp`
// to leave, or throw an exception. No lock is held while it runs.
//
// Safety:
// As for `larder_feed_next`; `f` is null or a function with these parameters that follows these
// rules and may be called with `data`.
enum larder_status larder_feed_each(struct larder_feed *feed,
                                    bool (*f)(void *data, const struct larder_change *change),
                                    void *data);

// Ends a subscription, and frees its feed. Does nothing if `feed` is null. O(changes that were not
// read).
//
// Safety:
// `feed` is null, or came from `larder_subscribe` and was not freed; nobody uses it or a change of
// it any more.
void larder_feed_free(struct larder_feed *feed);

/* --- Several changes at one instant --- */

// Makes an empty list. Never returns null. O(1).
struct larder_operations *larder_operations_new(void);

// Frees a list. Does nothing if `operations` is null. O(operations).
//
// Safety:
// `operations` is null, or came from `larder_operations_new` and was not freed; nobody uses it any
// more.
void larder_operations_free(struct larder_operations *operations);

// Removes all operations from a list. Does nothing if `operations` is null. O(operations).
//
// Safety:
// `operations` is null, or a list that was not freed and nobody else uses.
void larder_operations_clear(struct larder_operations *operations);

// Adds an operation to a list: inserts a row, like `larder_insert`. As for all functions
// `larder_op_…`: the list copies the terms, in time in proportion to them, and keeps the table as
// a handle does. The table isn't changed, and what is wrong with a row or a position is said by
// the commit.
//
// Safety:
// `operations` is null, or a list that was not freed and nobody else uses; otherwise as for
// `larder_insert`.
enum larder_status larder_op_insert(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view row);

// Adds an operation to a list: inserts a row. Its condition is that there is no row under the key.
// Apart from that like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_insert_new(struct larder_operations *operations,
                                        const struct larder_table *table,
                                        struct larder_view row);

// Adds a condition to a list: that the rows under the key are those of the sequence, in the same
// order. If `rows` is null, there must be none. Apart from that like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`; `rows` is null or a sequence that nobody changes meanwhile.
enum larder_status larder_op_check(struct larder_operations *operations,
                                   const struct larder_table *table,
                                   struct larder_view key,
                                   const struct larder_terms *rows);

// Adds an operation to a list: deletes all rows under a key, if there are any. Apart from that
// like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_delete(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view key);

// Adds an operation to a list: deletes the row that is identical to this one, if there is one.
// Apart from that like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_delete_row(struct larder_operations *operations,
                                        const struct larder_table *table,
                                        struct larder_view row);

// Adds an operation to a list: adds to the integer at a position, counted from 1, of the row under
// a key. Its condition is that there is a row. Apart from that like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`.
enum larder_status larder_op_add(struct larder_operations *operations,
                                 const struct larder_table *table,
                                 struct larder_view key,
                                 size_t position,
                                 int64_t increment);

// Adds an operation to a list: replaces the element at a position, counted from 1, of the row
// under a key. Its condition is that there is a row. Apart from that like `larder_op_insert`.
//
// Safety:
// As for `larder_op_insert`, for both views.
enum larder_status larder_op_update(struct larder_operations *operations,
                                    const struct larder_table *table,
                                    struct larder_view key,
                                    size_t position,
                                    struct larder_view element);

// Commits the operations of a list. They take effect at one instant, in their order: each sees the
// effects of those before it. No lookup, snapshot or transaction of another thread sees some of
// them without the others; a scan of a table may. `LARDER_OK` if all conditions hold, also for an
// empty list. `LARDER_NONE` if one doesn't; the number of the first such operation, counted from
// 1, is then written to `*first`, unless `first` is null. Errors are those of `larder_begin`, but
// for a table that occurs twice, and of the function of each operation. Unless the status is
// `LARDER_OK`, nothing has changed.
//
// The cost is that of each operation's function, and of a lock for each key. Others who read or
// write one of the keys wait while the operations are applied. The list doesn't change, and may be
// committed again.
//
// Safety:
// `operations` is null, or a list that was not freed and nobody changes meanwhile; `first` is null
// or may be written to.
enum larder_status larder_operations_commit(const struct larder_operations *operations,
                                            size_t *first);

// Begins a transaction on `count` tables of one world, and writes a handle of it to
// `*transaction`, which must be freed by `larder_transaction_free`. O(1) for each table. If a list
// is being inserted into a table, the call first helps to finish that. While a transaction has
// priority (see `larder_commit`), others wait here, for at most 100 ms.
//
// In the transaction, use the tables that `larder_transaction_table` returns in place of the
// others. They have the contents of one instant, and what the transaction itself has written,
// which nobody else sees yet. Then call `larder_commit`, in a loop: `do { … } while ((status =
// larder_commit(transaction)) == LARDER_CONFLICT);`
//
// `LARDER_BAD_ARGUMENT` if `count` is 0. `LARDER_BAD_OPTION` if a table occurs twice.
// `LARDER_TABLE_TYPE` if a table is a snapshot or belongs to a transaction, or has another
// structure than the default.
//
// Safety:
// `tables` is null or has `count` pointers, each null or a handle that was not freed;
// `transaction` is null or may be written to.
enum larder_status larder_begin(const struct larder_table *const *tables,
                                size_t count,
                                struct larder_transaction **transaction);

// Returns the table to use in a transaction in place of the one at `index`, counted from 0, of
// those on which it was begun; null if there is none. O(1). The table belongs to the transaction:
// it must not be freed, and is valid as long as the transaction. It can't be dropped or renamed,
// and has no snapshots, feeds or new indexes. Any number of threads may use it at once. But if one
// of them writes while another reads by rank, ranks may be wrong for the rest of the attempt.
// After the transaction has ended, the table returns `LARDER_NO_TABLE`.
//
// Safety:
// `transaction` is null, or one that was not freed and nobody else uses.
const struct larder_table *larder_transaction_table(const struct larder_transaction *transaction,
                                                    size_t index);

// Checks whether anybody has changed what the transaction has read or written so far. `LARDER_OK`
// if not, and `LARDER_CONFLICT` if somebody has: `larder_commit` would return that, too, if the
// transaction has written anything. This doesn't restart the transaction. Use it in a long
// transaction, to call `larder_commit` early, and so restart it. After `LARDER_OK`, others may
// change the data at any moment. `LARDER_NO_TABLE` if a table was dropped, or the transaction has
// ended. Linear in what was read and written.
//
// Safety:
// `transaction` is null, or one that was not freed and nobody else uses.
enum larder_status larder_validate(const struct larder_transaction *transaction);

// Commits a transaction. Its writes take effect at one instant, if nobody has changed what it has
// read, including ranges and keys that don't exist. No lookup, snapshot or transaction of another
// thread sees some of the writes without the others; a scan of a table may. Linear in what was
// read; for each row that was written the cost of `larder_insert`. Others who read or write one of
// these keys wait while the writes are applied. A transaction that has written nothing doesn't
// fail.
//
// `LARDER_CONFLICT` if somebody has. Then nothing has changed, and the transaction is restarted
// with the contents of this moment. Its tables are the same pointers, and everything must be read
// again. Scans of them have to be begun again. A transaction that fails more than ten times is
// given priority: for at most 100 ms no other one begins.
//
// Other threads may use the tables of the transaction meanwhile. A call that is under way when the
// attempt ends may see rows as they are at that moment, some of the commit's among them. A later
// one belongs to the next attempt, or returns `LARDER_NO_TABLE`; `larder_size` and `larder_memory`
// may return 0. What is written to the attempt that ends may have no effect.
//
// After any other status the transaction has ended, and must be freed. These are `LARDER_OK`, and
// errors after which nothing has changed: `LARDER_NO_TABLE` (a table was dropped, or the
// transaction had already ended), `LARDER_NOT_UNIQUE` and `LARDER_FULL`.
//
// Safety:
// `transaction` is null, or one that was not freed and nobody else uses.
enum larder_status larder_commit(struct larder_transaction *transaction);

// Frees a transaction. If it wasn't committed, it has no effect. Does nothing if `transaction` is
// null. Linear in what it has written.
//
// Safety:
// `transaction` is null, or came from `larder_begin` and was not freed; nobody uses it or its
// tables any more.
void larder_transaction_free(struct larder_transaction *transaction);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LARDER_H */
