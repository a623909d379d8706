// Boost's unordered_map: chains of nodes.
// header: boost/unordered_map.hpp
// package: libboost1.81-dev
#include <boost/unordered_map.hpp>
#include "peer.h"

using Store = larder::Store<boost::unordered_map<uint64_t, uint64_t>, boost::unordered_map<uint64_t, std::string>>;
LARDER_PEER(boost_unordered_map, larder::table<Store>("Boost unordered_map"))
