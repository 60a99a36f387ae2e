#!/bin/sh
# Downloads the interpreters other than the system's that wheels are built for into a folder for scripts/wheels.sh
# (VRAMTRACK_PYTHONS): Debian 12 has only CPython 3.11, with a wheel that no other Python accepts.
#
#   scripts/pythons.sh FOLDER
#
# uv downloads them (python-build-standalone, from GitHub) and checks their built-in checksums; pip checks uv by requirements-pythons.txt.
set -eu
cd "$(dirname "$0")/.."
if [ $# != 1 ]; then
  echo "pythons: expected the folder that they go to: scripts/pythons.sh FOLDER" >&2
  exit 2
fi
scripts/setup.sh wheels
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install -q --disable-pip-version-check --require-hashes -r python/requirements-pythons.txt
# The oldest supported one, Ubuntu 22.04's, the first with the stable ABI, and the newest, on which that ABI's wheel is tested.
UV_PYTHON_INSTALL_DIR=$1 "$tools/venv/bin/uv" python install --no-bin 3.9 3.10 3.12 3.13
