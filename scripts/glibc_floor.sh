#!/bin/sh
# Prints the oldest glibc on which a binary runs: the newest GLIBC_x.y symbol version that it needs.
#
#   scripts/glibc_floor.sh BINARY      OBJDUMP: that of another processor's binary
set -eu
floor=$("${OBJDUMP:-objdump}" -T "$1" | sed -n 's/.*GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -t. -k1,1n -k2,2n | tail -n 1)
if [ -z "$floor" ]; then
  echo "glibc_floor: $1 needs no versioned glibc symbol, or is no dynamic binary" >&2
  exit 1
fi
echo "$floor"
