#!/bin/sh
# Installs the program vramtrack: downloads the portable archive of this release for this machine's processor, compares it with the
# checksum below, unpacks it, and links the program into PREFIX/bin. It changes nothing else, and asks for no password.
#
#   sh install.sh [--prefix FOLDER] [--from URL|FOLDER] [--dry-run]
#
# PREFIX: ~/.local, or /usr/local for root. --from: where the archives are, instead of the release's page; a folder is read, not
# downloaded. --dry-run: says what would be done, and does nothing.
#
# scripts/dist.py fills in the next three lines. A copy in which they are empty belongs to no release, and installs nothing.
version=
releases=
checksums=''

set -eu
say() { printf 'install: %s\n' "$*"; }
fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:-}/.local; fi
from=$releases
run=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --from)
      [ $# -gt 1 ] || fail "$1 needs a value"
      [ "$1" = --prefix ] && prefix=$2 || from=$2
      shift
      ;;
    --dry-run) run=: ;;
    -h | --help)
      sed -n '2,9s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "unknown option '$1'; expected --prefix, --from or --dry-run" ;;
  esac
  shift
done

[ -n "$version" ] || fail "this copy belongs to no release: 'make dist' makes one, and 'make install' installs from the sources"
[ -n "$from" ] || fail "this copy does not know where its release is: name it with --from URL, or a folder with the archive"
case $prefix in /*) ;; *) fail "--prefix needs an absolute path, not '$prefix'" ;; esac
[ "$(uname -s)" = Linux ] || fail "vramtrack runs on Linux; this is $(uname -s)"
archive=vramtrack-$version-linux-$(uname -m).tar.gz
wanted=$(printf '%s\n' "$checksums" | sed -n "s/^\([0-9a-f]*\)  $archive\$/\1/p")
[ -n "$wanted" ] || fail "this release has no archive for $(uname -m); it has: $(printf '%s\n' "$checksums" | sed 's/.*  //' | tr '\n' ' ')"
folder=$prefix/lib/vramtrack-$version

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $from in
  http://* | https://*)
    say "download $from/$archive"
    if command -v curl >/dev/null; then
      $run curl -fsSL --proto-redir =https -o "$work/$archive" "$from/$archive" || fail "curl could not download it"
    elif command -v wget >/dev/null; then
      $run wget -q -O "$work/$archive" "$from/$archive" || fail "wget could not download it"
    else
      fail "neither curl nor wget is here: download the archive yourself, and name its folder with --from"
    fi
    ;;
  *)
    say "read $from/$archive"
    $run cp "$from/$archive" "$work/$archive" || fail "it cannot be read"
    ;;
esac
say "compare its SHA-256 with $wanted"
if [ -z "$run" ]; then
  got=$(sha256sum "$work/$archive" | cut -d' ' -f1)
  [ "$got" = "$wanted" ] || fail "its SHA-256 is $got: it is not the file of this release, and nothing was installed"
fi
say "unpack it into $folder"
if [ -z "$run" ]; then
  mkdir "$work/unpacked"
  tar -xzf "$work/$archive" --strip-components 1 --no-same-owner -C "$work/unpacked"
  "$work/unpacked/bin/vramtrack" --version >/dev/null 2>"$work/error" ||
    fail "the program does not start here, and nothing was installed: $(head -n 1 "$work/error")"
  mkdir -p "$prefix/lib" "$prefix/bin" || fail "$prefix cannot be written: name another folder with --prefix, or run this as root"
  rm -rf "$folder"
  cp -R "$work/unpacked" "$folder" # another file system than that of temporary files, perhaps
fi
say "link $prefix/bin/vramtrack to it"
$run ln -sfn "$folder/bin/vramtrack" "$prefix/bin/vramtrack"
[ -n "$run" ] && say "nothing was done (--dry-run)" && exit 0
say "installed vramtrack $version; to remove it: rm -r '$folder' '$prefix/bin/vramtrack'"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) say "$prefix/bin is not in PATH: add it, or run $prefix/bin/vramtrack" ;;
esac
