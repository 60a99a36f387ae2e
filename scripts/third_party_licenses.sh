#!/bin/sh
# Prints the licences of the libraries linked into the portable program and the wheels, which must be distributed with them.
set -eu
for package in libfmt-dev zlib1g-dev libzstd-dev nlohmann-json3-dev libexpected-dev libtomlplusplus-dev libboost-dev libstdc++6 libre2-dev \
  libsnappy-dev libsqlite3-dev libcli11-dev libncurses-dev libcpp-httplib-dev prometheus-cpp-dev libssl-dev libdw-dev liblzma-dev libbz2-dev; do
  if [ -r "/usr/share/doc/$package/copyright" ]; then
    printf '==== %s\n\n' "$package"
    cat "/usr/share/doc/$package/copyright"
  fi
done
