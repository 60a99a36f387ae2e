#!/bin/sh
# Prints the licences of what is linked into a binary: they ask to travel with it.
#
#   scripts/third_party_licenses.sh wheel | portable
set -eu
packages="libfmt-dev zlib1g-dev libzstd-dev nlohmann-json3-dev libexpected-dev libtomlplusplus-dev libboost-dev libstdc++6"
case $1 in
  wheel) ;;
  portable) packages="$packages libsqlite3-dev libcli11-dev libncurses-dev libcpp-httplib-dev prometheus-cpp-dev libssl-dev libdw-dev liblzma-dev libbz2-dev" ;;
  *)
    echo "third_party_licenses: unknown binary '$1'; expected wheel or portable" >&2
    exit 2
    ;;
esac
for package in $packages; do
  if [ -r "/usr/share/doc/$package/copyright" ]; then
    printf '==== %s\n\n' "$package"
    cat "/usr/share/doc/$package/copyright"
  fi
done
