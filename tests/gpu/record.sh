#!/bin/sh
# Records programs that leak on purpose, and healthy ones, on this machine's first GPU, in under 8 minutes:
#
#   tests/gpu/record.sh OUTPUT_FOLDER [OPTION...]
#
# OUTPUT_FOLDER/recordings then holds the labelled recordings (tests/recordings/README.md), OUTPUT_FOLDER/raw what they
# were made of. Options go to record.py: --seconds N for everything (465), --waves N (2), --only REGEX, --dry-run
# (no GPU needed). Needs Python 3.8 and cc; whichever of PyTorch, JAX and CuPy is missing is left out, and that is said.
# PYTHON names the Python that has them; VRAMTRACK a binary that watches beside it (build/release/vramtrack if there).
set -eu
[ $# -ge 1 ] || { echo "usage: $0 OUTPUT_FOLDER [--seconds N] [--waves N] [--only REGEX] [--dry-run]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
python=${PYTHON:-python3}
mkdir -p "$out/raw"

leak_cuda=$out/raw/leak_cuda
compiler=${CC:-cc}
if command -v "$compiler" >/dev/null; then
  "$compiler" -O2 -o "$leak_cuda" "$here/leak_cuda.c" -ldl -lm
else
  leak_cuda=
fi
vramtrack=${VRAMTRACK:-$here/../../build/release/vramtrack}
[ -x "$vramtrack" ] || vramtrack=

status=0
"$python" "$here/record.py" "$out" --leak-cuda "$leak_cuda" --vramtrack "$vramtrack" "$@" || status=$?
rm -f "$out/raw/leak_cuda"
[ "$status" = 0 ] || exit "$status"
"$python" "$here/pack.py" "$out/raw" "$out/recordings"
du -sh "$out/recordings"
