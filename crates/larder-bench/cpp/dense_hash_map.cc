// Google's dense_hash_map: open addressing, quadratic probing. One key must be kept free: the
// greatest.
// header: sparsehash/dense_hash_map
// package: libsparsehash-dev
#include <sparsehash/dense_hash_map>
#include "peer.h"

template <class Value> struct Dense : google::dense_hash_map<uint64_t, Value> {
  Dense() { this->set_empty_key(UINT64_MAX); }
};

using Store = larder::Store<Dense<uint64_t>, Dense<std::string>>;
LARDER_PEER(dense_hash_map, larder::table<Store>("dense_hash_map"))
