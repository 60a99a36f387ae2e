#!/bin/sh
# Downloads the interpreters that wheels are built for, beside the system's, into a folder for scripts/wheels.sh (VRAMTRACK_PYTHONS):
# Debian 12 has CPython 3.11 alone, whose wheel no other Python takes.
#
#   scripts/pythons.sh FOLDER
#
# uv fetches them (python-build-standalone, from GitHub) and checks them by the sums that it holds; pip checks uv by requirements-pythons.txt.
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
# The oldest that is served, Ubuntu 22.04's, the first with the stable ABI, and the newest, which that ABI's wheel is tried on.
UV_PYTHON_INSTALL_DIR=$1 "$tools/venv/bin/uv" python install --no-bin 3.9 3.10 3.12 3.13
