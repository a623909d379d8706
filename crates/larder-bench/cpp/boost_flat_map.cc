// Boost's unordered_flat_map: open addressing, groups of tags.
// header: boost/unordered/unordered_flat_map.hpp
// package: libboost1.81-dev
#include <boost/unordered/unordered_flat_map.hpp>
#include "peer.h"

using Store = larder::Store<boost::unordered_flat_map<uint64_t, uint64_t>, boost::unordered_flat_map<uint64_t, std::string>>;
LARDER_PEER(boost_flat_map, larder::table<Store>("Boost unordered_flat_map"))
