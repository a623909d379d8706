// Kyoto Cabinet's StashDB: a hash table of records packed as bytes, with its default number of
// buckets.
// header: kcstashdb.h
// link: kyotocabinet
// package: libkyotocabinet-dev
#include <cstdio>
#include <cstdlib>
#include <kcstashdb.h>
#include "peer.h"

namespace {

struct Store {
  kyotocabinet::StashDB words, bytes;
  Store() {
    for (auto db : {&words, &bytes})
      if (!db->open("", kyotocabinet::StashDB::OWRITER | kyotocabinet::StashDB::OCREATE)) fail(*db);
  }
  [[noreturn]] static void fail(const kyotocabinet::StashDB &db) {
    std::fprintf(stderr, "Kyoto Cabinet: %s\n", db.error().message());
    std::abort();
  }
};

const char *text(const uint64_t *word) { return reinterpret_cast<const char *>(word); }

void insert(void *store, const uint64_t *keys, const uint64_t *values, size_t n) {
  auto &db = static_cast<Store *>(store)->words;
  for (size_t i = 0; i < n; i++)
    if (!db.set(text(&keys[i]), 8, text(&values[i]), 8)) Store::fail(db);
}

size_t get(void *store, const uint64_t *keys, uint64_t *values, size_t n) {
  auto &db = static_cast<Store *>(store)->words;
  size_t found = 0;
  for (size_t i = 0; i < n; i++) found += db.get(text(&keys[i]), 8, reinterpret_cast<char *>(&values[i]), 8) == 8;
  return found;
}

void append(void *store, const uint64_t *keys, size_t n, const uint8_t *piece, size_t len) {
  auto &db = static_cast<Store *>(store)->bytes;
  for (size_t i = 0; i < n; i++)
    if (!db.append(text(&keys[i]), 8, reinterpret_cast<const char *>(piece), len)) Store::fail(db);
}

size_t read(void *store, uint64_t key, uint8_t *out, size_t room) {
  auto &db = static_cast<Store *>(store)->bytes;
  size_t size = 0;
  char *value = db.get(text(&key), 8, &size);
  if (!value) return SIZE_MAX;
  std::memcpy(out, value, size < room ? size : room);
  delete[] value;
  return size;
}

} // namespace

LARDER_PEER(kyoto_cabinet, {"Kyoto Cabinet StashDB", larder::make<Store>, larder::drop<Store>, insert, get, append, read})
