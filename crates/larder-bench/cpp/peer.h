// What a C++ peer gives to the bench: a table of functions. Calls take many keys at once, so that
// crossing into C++ costs nothing an operation. None of them lets an exception out: out of memory
// ends the process, as it should in a bench.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

struct larder_peer {
  const char *name;
  void *(*make)();
  void (*drop)(void *);
  // Puts values under keys that may be there already.
  void (*insert)(void *, const uint64_t *keys, const uint64_t *values, size_t n);
  // Writes the values of the keys that are there, and counts them.
  size_t (*get)(void *, const uint64_t *keys, uint64_t *values, size_t n);
  // Appends a piece to the bytes under each key; null if the peer has no bytes.
  void (*append)(void *, const uint64_t *keys, size_t n, const uint8_t *piece, size_t len);
  // Writes up to `room` of the bytes under a key and says how many there are; SIZE_MAX if there is
  // no such key.
  size_t (*read)(void *, uint64_t key, uint8_t *out, size_t room);
};

namespace larder {

// A map with find, end and operator[], and one of strings.
template <class Words, class Bytes> struct Store {
  Words words;
  Bytes bytes;
};

template <class S> void *make() noexcept { return new S; }
template <class S> void drop(void *store) noexcept { delete static_cast<S *>(store); }

template <class S> void insert(void *store, const uint64_t *keys, const uint64_t *values, size_t n) noexcept {
  auto &map = static_cast<S *>(store)->words;
  for (size_t i = 0; i < n; i++) map[keys[i]] = values[i];
}

template <class S> size_t get(void *store, const uint64_t *keys, uint64_t *values, size_t n) noexcept {
  auto &map = static_cast<S *>(store)->words;
  size_t found = 0;
  for (size_t i = 0; i < n; i++) {
    auto at = map.find(keys[i]);
    if (at != map.end()) {
      values[i] = at->second;
      found++;
    }
  }
  return found;
}

template <class S> void append(void *store, const uint64_t *keys, size_t n, const uint8_t *piece, size_t len) noexcept {
  auto &map = static_cast<S *>(store)->bytes;
  for (size_t i = 0; i < n; i++) map[keys[i]].append(reinterpret_cast<const char *>(piece), len);
}

template <class S> size_t read(void *store, uint64_t key, uint8_t *out, size_t room) noexcept {
  auto &map = static_cast<S *>(store)->bytes;
  auto at = map.find(key);
  if (at == map.end()) return SIZE_MAX;
  const std::string &value = at->second;
  std::memcpy(out, value.data(), value.size() < room ? value.size() : room);
  return value.size();
}

template <class S> constexpr larder_peer table(const char *name) {
  return {name, make<S>, drop<S>, insert<S>, get<S>, append<S>, read<S>};
}

} // namespace larder

// The table of a file `FILE.cc`.
#define LARDER_PEER(FILE, ...) extern "C" { extern const larder_peer larder_peer_##FILE; const larder_peer larder_peer_##FILE = __VA_ARGS__; }
