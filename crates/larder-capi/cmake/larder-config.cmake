# The library for C, for CMake: find_package(larder CONFIG), then
#
#   target_link_libraries(program PRIVATE larder::larder)          # the shared object
#   target_link_libraries(program PRIVATE larder::larder_static)   # the archive
#
# It lies in PREFIX/lib/cmake/larder, and finds the rest from there.

# Where /lib is a link to /usr/lib, CMake may find the folder as /lib/cmake/larder, and the headers
# are not in /include.
get_filename_component(_larder_lib "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
get_filename_component(_larder_include "${_larder_lib}/../include" ABSOLUTE)

include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)

if(NOT TARGET larder::larder)
  add_library(larder::larder SHARED IMPORTED)
  set_target_properties(larder::larder PROPERTIES
    IMPORTED_LOCATION "${_larder_lib}/liblarder.so"
    IMPORTED_SONAME "liblarder.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_larder_include}")
endif()

if(NOT TARGET larder::larder_static)
  add_library(larder::larder_static STATIC IMPORTED)
  set_target_properties(larder::larder_static PROPERTIES
    IMPORTED_LOCATION "${_larder_lib}/liblarder.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_larder_include}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

unset(_larder_lib)
unset(_larder_include)
