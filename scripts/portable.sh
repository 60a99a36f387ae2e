#!/bin/sh
# Packs the portable binary into dist/vramtrack-VERSION-linux-ARCH.tar.gz, after checking that it needs only glibc, and that
# docs/install.md names the oldest glibc on which it runs.
#
#   scripts/portable.sh BUILD_DIR [ARCH]      BUILD_DIR: of the preset `portable`; ARCH: this machine's. OBJDUMP, CC: those for ARCH
set -eu
cd "$(dirname "$0")/.."
binary=$1/vramtrack
version=$(cat VERSION)
name=vramtrack-$version-linux-${2:-$(uname -m)}

foreign=$("${OBJDUMP:-objdump}" -p "$binary" | awk '/NEEDED/ { print $2 }' |
  grep -v -E '^(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[a-z0-9-]*)\.so\.[0-9]+$' || true)
if [ -n "$foreign" ]; then
  echo "portable: $binary also needs these libraries, which not every machine has:" $foreign >&2
  exit 1
fi

floor=$(scripts/glibc_floor.sh "$binary")
stated=$(sed -n 's/.*glibc \([0-9][0-9.]*[0-9]\) or newer.*/\1/p' docs/install.md | head -n 1)
if [ "$floor" != "$stated" ]; then
  echo "portable: the binary runs on glibc $floor or newer, docs/install.md says '${stated:-nothing}'" >&2
  # Releases are built on Debian 12; a newer distribution's libraries may require a newer glibc.
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    echo "portable: correct docs/install.md" >&2
    exit 1
  fi
fi

stage=$1/$name
rm -rf "$stage"
cmake --install "$1" --prefix "$PWD/$stage" --strip >/dev/null
scripts/third_party_licenses.sh >"$stage/THIRD_PARTY_LICENSES"

# The probe lies next to the binary, loads into old containers, and names a line. A binary for another processor is run where
# it is tested (scripts/try_portable.sh).
for probe in "$stage"/lib/vramtrack/libvramtrack_probe.so "$stage"/lib/vramtrack/libvramtrack_probe_cuda.so; do
  floor_of_probe=$(scripts/glibc_floor.sh "$probe")
  if [ "$(printf '%s\n' "$floor_of_probe" 2.17 | sort -V | tail -n 1)" != 2.17 ]; then
    echo "portable: $(basename "$probe") needs glibc $floor_of_probe; it is to load into programs of containers with 2.17" >&2
    exit 1
  fi
done
tests/packages/named_line.sh make "$1/named_line"
if [ "${2:-$(uname -m)}" = "$(uname -m)" ]; then
  tests/packages/named_line.sh run "$1/named_line" "$stage/bin/vramtrack"
fi

mkdir -p dist
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null ||
  date +%s)}" -C "$1" -cf - "$name" | gzip -9n >"dist/$name.tar.gz"
echo "dist/$name.tar.gz: $(du -h "dist/$name.tar.gz" | cut -f1), runs on glibc $floor or newer"
