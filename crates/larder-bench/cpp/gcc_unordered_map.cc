// GCC's std::unordered_map: chains of nodes.
// header: unordered_map
// package: g++
#include <unordered_map>
#include "peer.h"

using Store = larder::Store<std::unordered_map<uint64_t, uint64_t>, std::unordered_map<uint64_t, std::string>>;
LARDER_PEER(gcc_unordered_map, larder::table<Store>("GCC unordered_map"))
