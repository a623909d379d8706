# Which requests the library answers to: those of its own minor version, and of this one's earlier
# patches, as minor versions before 1.0.0 may change the interface.

set(PACKAGE_VERSION "@VERSION@")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)

string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _larder_own "${PACKAGE_VERSION}")
string(REGEX MATCH "^([0-9]+)(\\.([0-9]+))?" _larder_asked "${PACKAGE_FIND_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION AND
    "${_larder_asked}" STREQUAL "${_larder_own}")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()

unset(_larder_own)
unset(_larder_asked)
