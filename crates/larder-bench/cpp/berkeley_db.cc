// Berkeley DB in memory: two B-trees without a file, in a cache so large that they are never
// written out. Keys are big-endian, so that its order is theirs.
// header: db.h
// link: db
// package: libdb-dev
#include <cstdio>
#include <cstdlib>
#include <db.h>
#include <vector>
#include "peer.h"

namespace {

constexpr uint32_t GIBIBYTES = 4;

void must(int result, const char *what) {
  if (result == 0) return;
  std::fprintf(stderr, "Berkeley DB: %s: %s\n", what, db_strerror(result));
  std::abort();
}

struct Tree {
  DB *db = nullptr;
  Tree() {
    must(db_create(&db, nullptr, 0), "create");
    must(db->set_cachesize(db, GIBIBYTES, 0, 1), "cache");
    must(db->open(db, nullptr, nullptr, nullptr, DB_BTREE, DB_CREATE, 0), "open");
  }
  ~Tree() { db->close(db, DB_NOSYNC); }
};

struct Store {
  Tree words, bytes;
  std::vector<uint8_t> scratch;
};

DBT thing(void *data, size_t size) {
  DBT out;
  std::memset(&out, 0, sizeof out);
  out.data = data;
  out.size = static_cast<uint32_t>(size);
  return out;
}

DBT room(void *data, size_t size) {
  DBT out = thing(data, 0);
  out.ulen = static_cast<uint32_t>(size);
  out.flags = DB_DBT_USERMEM;
  return out;
}

void insert(void *store, const uint64_t *keys, const uint64_t *values, size_t n) {
  DB *db = static_cast<Store *>(store)->words.db;
  for (size_t i = 0; i < n; i++) {
    uint64_t key = __builtin_bswap64(keys[i]), value = values[i];
    DBT k = thing(&key, 8), v = thing(&value, 8);
    must(db->put(db, nullptr, &k, &v, 0), "put");
  }
}

size_t get(void *store, const uint64_t *keys, uint64_t *values, size_t n) {
  DB *db = static_cast<Store *>(store)->words.db;
  size_t found = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t key = __builtin_bswap64(keys[i]);
    DBT k = thing(&key, 8), v = room(&values[i], 8);
    int result = db->get(db, nullptr, &k, &v, 0);
    if (result == DB_NOTFOUND) continue;
    must(result, "get");
    found++;
  }
  return found;
}

// The whole value, in the scratch; false if there is none.
bool fetch(Store *store, uint64_t number, size_t *size) {
  DB *db = store->bytes.db;
  uint64_t key = __builtin_bswap64(number);
  if (store->scratch.size() < 256) store->scratch.resize(256);
  for (;;) {
    DBT k = thing(&key, 8), v = room(store->scratch.data(), store->scratch.size());
    int result = db->get(db, nullptr, &k, &v, 0);
    if (result == DB_NOTFOUND) return false;
    *size = v.size;
    if (result == DB_BUFFER_SMALL) {
      store->scratch.resize(v.size * 2);
      continue;
    }
    must(result, "get");
    return true;
  }
}

void append(void *opaque, const uint64_t *keys, size_t n, const uint8_t *piece, size_t len) {
  Store *store = static_cast<Store *>(opaque);
  for (size_t i = 0; i < n; i++) {
    size_t size = 0;
    if (!fetch(store, keys[i], &size)) size = 0;
    // A put of a part, at the end of what is there.
    uint64_t key = __builtin_bswap64(keys[i]);
    DBT k = thing(&key, 8), v = thing(const_cast<uint8_t *>(piece), len);
    v.flags = DB_DBT_PARTIAL;
    v.doff = static_cast<uint32_t>(size);
    v.dlen = 0;
    must(store->bytes.db->put(store->bytes.db, nullptr, &k, &v, 0), "append");
  }
}

size_t read(void *opaque, uint64_t key, uint8_t *out, size_t size) {
  Store *store = static_cast<Store *>(opaque);
  size_t have = 0;
  if (!fetch(store, key, &have)) return SIZE_MAX;
  std::memcpy(out, store->scratch.data(), have < size ? have : size);
  return have;
}

} // namespace

LARDER_PEER(berkeley_db, {"Berkeley DB", larder::make<Store>, larder::drop<Store>, insert, get, append, read})
