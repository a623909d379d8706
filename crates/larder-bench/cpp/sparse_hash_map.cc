// Google's sparse_hash_map: groups of entries under bitmaps.
// header: sparsehash/sparse_hash_map
// package: libsparsehash-dev
#include <sparsehash/sparse_hash_map>
#include "peer.h"

using Store = larder::Store<google::sparse_hash_map<uint64_t, uint64_t>, google::sparse_hash_map<uint64_t, std::string>>;
LARDER_PEER(sparse_hash_map, larder::table<Store>("sparse_hash_map"))
