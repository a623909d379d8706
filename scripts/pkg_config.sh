#!/bin/sh
# Prints what pkg-config is to know of the library for C.
#
#   scripts/pkg_config.sh PREFIX VERSION LIBRARIES
#
# LIBRARIES are what the archive asks the system for. A space in PREFIX separates no arguments.
set -eu
prefix=$(printf '%s' "$1" | sed 's/[ \\]/\\&/g')
cat <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: larder
Description: tables of tuples in memory, shared by many threads, queried by key, by order or by pattern
Version: $2
Cflags: -I\${includedir}
Libs: -L\${libdir} -llarder
Libs.private: $3
END
