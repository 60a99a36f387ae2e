#!/bin/sh
# Installs CPython 3.14 into build/python3.14, for the tests that run each Python (tests/probe/python_frames.py): Debian's own
# packages from unstable, with the C library that they were built with. The system and apt's lists are left unchanged.
#
#   scripts/python314.sh
#
# Exits with 77, and prints the reason, if it is not available. Prints nothing if there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
folder=$PWD/build/python3.14
python=$folder/usr/bin/python3.14

skip() {
  echo "python3.14: SKIPPED: $*"
  exit 77
}

command -v python3.14 >/dev/null && python3.14 -c '' 2>/dev/null && exit 0
[ -e "$folder/complete" ] && exit 0
for tool in apt-get dpkg-deb patchelf; do
  command -v $tool >/dev/null || skip "there is no $tool"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e $keyring ] || skip "there is no $keyring: this is not Debian"

rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/packages"
cd "$folder"
echo "deb [signed-by=$keyring] http://deb.debian.org/debian unstable main" >apt/sources.list
: >apt/status
cat >apt.conf <<END
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt";
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Acquire::Languages "none";
APT::Sandbox::User "root";
END
export APT_CONFIG="$folder/apt.conf"
apt-get -qq update >log 2>&1 || skip "apt-get update: $(tail -n 1 log)"
(cd packages && apt-get -qq download libc6 python3.14 python3.14-minimal libpython3.14-minimal libpython3.14-stdlib zlib1g libexpat1 libffi8) \
  >log 2>&1 || skip "apt-get download: $(tail -n 1 log)"
for package in packages/*.deb; do
  dpkg-deb -x "$package" .
done
libraries=$folder/usr/lib/x86_64-linux-gnu
[ -e "$libraries/ld-linux-x86-64.so.2" ] || skip "the packages are not for x86-64"
patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --set-rpath "$libraries" "$python"
for module in usr/lib/python3.14/lib-dynload/*.so; do
  patchelf --set-rpath "$libraries" "$module"
done
"$python" -c 'import ctypes, json, socket, sys' || skip "it does not run here"
rm -rf apt apt.conf packages log
"$python" --version >complete
cat complete
