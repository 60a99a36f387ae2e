#!/bin/sh
# Fetches the Debian source packages of the three libraries that the portable build compiles itself into build/library-sources, in the
# versions whose headers are installed: cpp-httplib and prometheus-cpp, of which Debian has no archives, and re2, whose archive cannot
# become part of a shared library (the Python extension).
#
#   scripts/library_sources.sh
#
# apt verifies what it downloads. It uses this machine's package sources, with their deb lines read as deb-src lines.
set -eu
cd "$(dirname "$0")/.."
# The sources' own scripts need Debian's Python packages, so use Debian's python3, not one from a virtual environment or pyenv.
PATH=/usr/bin:/bin:$PATH
folder=$PWD/build/library-sources
wanted="cpp-httplib=$(dpkg-query -W -f '${source:Version}' libcpp-httplib-dev) prometheus-cpp=$(
  dpkg-query -W -f '${source:Version}' prometheus-cpp-dev) re2=$(dpkg-query -W -f '${source:Version}' libre2-dev)"
[ "$(cat "$folder/complete" 2>/dev/null)" != "$wanted" ] || exit 0

rm -rf "$folder"
mkdir -p "$folder/apt/parts" "$folder/apt/lists/partial"
log=$folder/apt/log
for file in /etc/apt/sources.list.d/*.sources; do
  if [ -r "$file" ]; then sed 's/^Types:.*/Types: deb-src/' "$file" >"$folder/apt/parts/$(basename "$file")"; fi
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  if [ -r "$file" ]; then sed -n 's/^deb /deb-src /p' "$file" >>"$folder/apt/parts/binary.list"; fi
done
apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/apt/parts" \
    -o Dir::State::Lists="$folder/apt/lists" -o APT::Sandbox::User=root "$@" >>"$log" 2>&1
}
cd "$folder"
apt update || true # a package source without source packages must not stop the others
for package in $wanted; do
  if ! apt source --download-only "$package"; then
    tail -n 5 "$log" >&2
    echo "library_sources: apt has no source package $package; add the deb-src lines of this distribution" >&2
    exit 1
  fi
  name=${package%%=*}
  dpkg-source --no-check --extract "$name"_*.dsc "$name" >>"$log" 2>&1
done
python3 "$folder/cpp-httplib/split.py" --out "$folder/cpp-httplib/out" >>"$log"
# Debian omits these tables, and generates them from its own package unicode-data.
make -C re2 REBUILD_TABLES=1 re2/perl_groups.cc re2/unicode_casefold.cc re2/unicode_groups.cc >>"$log"
rm -rf apt ./*.dsc ./*.tar.*
echo "$wanted" >complete
