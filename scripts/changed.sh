#!/bin/sh
# Prints the files that differ from the main branch: what was committed since the branch left origin/main (without one: main), what is
# not committed yet, and what is new.
#
#   scripts/changed.sh [--or-recent] [PATH...]
#
# --or-recent: where nothing was committed since, what the last 20 commits changed
set -eu
cd "$(dirname "$0")/.."
recent=
if [ "${1:-}" = --or-recent ]; then recent=yes && shift; fi
base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || true)
if [ -n "$recent" ] && { [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; }; then
  base=$(git rev-list --first-parent --max-count=21 HEAD 2>/dev/null | tail -n 1)
fi
[ -n "$base" ] || { echo "changed: there is neither a branch origin/main nor main to compare with; 'git fetch origin main' gets one" >&2; exit 1; }
git diff --name-only "$base" -- "$@"
git ls-files --others --exclude-standard -- "$@"
