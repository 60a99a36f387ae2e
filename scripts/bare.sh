#!/bin/sh
# Bare systems for testing packages: for this machine's processor, or for aarch64, with programs that run under qemu-user on x86-64.
#
#   scripts/bare.sh make NAME ARCH SUITE [PACKAGE,...]   makes build/roots/NAME-SUITE-ARCH.tar, unless it is there, and prints its path
#   scripts/bare.sh unpack TAR FOLDER [NAMED_LINE]       unpacks it to FOLDER, which it empties first, and tests/packages/named_line.sh's program
#                                                        to NAMED_LINE, a folder in it
#
# ARCH is Debian's name, amd64 or arm64. Needs root and mmdebstrap; for another processor qemu-aarch64-static and the program of named_line.sh,
# both of which `make aarch64` leaves in build. `unpack` mounts in the caller's namespace, which it does not end.
set -eu
cd "$(dirname "$0")/.."

# If the kernel cannot run programs for ARCH, it starts qemu for them until this mount namespace ends, or, if binfmt_misc was already mounted,
# until this machine is restarted.
emulate() {
  [ "$1" != "$(dpkg --print-architecture)" ] || return 0
  misc=/proc/sys/fs/binfmt_misc
  [ -e $misc/register ] || mount -t binfmt_misc none $misc
  [ ! -e $misc/qemu-aarch64 ] || return 0
  qemu=$(command -v qemu-aarch64-static || echo "$PWD/build/roots/aarch64/usr/bin/qemu-aarch64-static")
  if [ ! -x "$qemu" ]; then
    echo "bare: $1 needs qemu-aarch64-static: install qemu-user-static, or run make aarch64" >&2
    exit 1
  fi
  # ELF, 64 bits, little endian, executable or position independent, machine 183. F: qemu is opened now, so it is found in every root.
  printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$qemu"':F' >$misc/register
}

if [ "$1" = make ]; then
  base=build/roots/$2-$4-$3.tar
  if [ ! -s "$base" ]; then
    if [ "${BARE_NAMESPACE:-}" = "" ]; then BARE_NAMESPACE=1 exec unshare --mount "$0" "$@"; fi
    mkdir -p build/roots
    emulate "$3"
    # Otherwise mmdebstrap would ask the package arch-test whether qemu is installed.
    mmdebstrap --quiet --format=tar --variant=minbase --skip=check/qemu --components=main,universe --architectures="$3" ${5:+--include="$5"} \
      "$4" "$base.new" >&2
    mv "$base.new" "$base"
  fi
  echo "$PWD/$base"
  exit 0
fi

arch=${2##*-}
arch=${arch%.tar}
emulate "$arch"
rm -rf "$3"
mkdir -p "$3"
tar -xf "$2" -C "$3"
mount -t proc proc "$3/proc"
if [ "${4:-}" != "" ]; then
  if [ "$arch" = "$(dpkg --print-architecture)" ]; then
    tests/packages/named_line.sh make "$3/$4"
  else
    cp -R build/aarch64/portable/named_line "$3/$4"
    echo cuMemAlloc >"$3/$4/wanted" # qemu-user lacks process_vm_readv, which the probe needs to read stacks: only the call can be named
  fi
fi
