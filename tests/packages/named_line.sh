#!/bin/sh
# Whether an installed vramtrack finds its probe and names the line of a program that leaks.
#
#   named_line.sh make FOLDER              compiles the program and the driver that it runs on
#   named_line.sh run FOLDER VRAMTRACK     needs nothing but FOLDER and the installed program
#
# The driver is a double: no GPU is needed, and none that is there is used.
set -eu
folder=$2

if [ "$1" = make ]; then
  sources=$(cd "$(dirname "$0")" && pwd)/named_line
  mkdir -p "$folder"
  "${CC:-cc}" -shared -fPIC -O2 -Wl,-soname,libcuda.so.1 -o "$folder/libcuda.so.1" "$sources/driver.c"
  "${CC:-cc}" -O1 -g -o "$folder/leak" "$sources/leak.c" -ldl
  echo "leak.c:$(grep -n 'LEAK HERE' "$sources/leak.c" | cut -d: -f1) decode_frame" >"$folder/wanted"
  cp "$0" "$folder/named_line.sh"
  exit 0
fi

vramtrack=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -m 700 "$work/runtime"
export XDG_RUNTIME_DIR="$work/runtime" XDG_CONFIG_HOME="$work" XDG_CACHE_HOME="$work"
LD_LIBRARY_PATH=$folder "$vramtrack" run --output "$work/trace" -- "$folder/leak" 2>"$work/said" || {
  cat "$work/said" >&2
  echo "named_line: the program failed under 'vramtrack run'" >&2
  exit 1
}
"$vramtrack" trace report "$work/trace" >"$work/report" || [ $? = 1 ] # 1: a line leaks
wanted=$(cat "$folder/wanted")
if ! grep -q "LEAK at .*$wanted" "$work/said" || ! grep -q "$wanted" "$work/report"; then
  cat "$work/said" "$work/report" >&2
  echo "named_line: '$wanted' was not named" >&2
  exit 1
fi
grep "LEAK at" "$work/said"
