#!/bin/sh
# Prints the licences of what the portable binary and the wheels have linked in: they ask to travel with it.
#
#   scripts/third_party_licenses.sh
set -eu
for package in libfmt-dev libsqlite3-dev zlib1g-dev libzstd-dev nlohmann-json3-dev libcli11-dev \
  libexpected-dev libtomlplusplus-dev libstdc++6; do
  if [ -r "/usr/share/doc/$package/copyright" ]; then
    printf '==== %s\n\n' "$package"
    cat "/usr/share/doc/$package/copyright"
  fi
done
