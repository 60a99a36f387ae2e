#!/bin/sh
# Prints the files that differ from the main branch: those changed in commits since the branch left origin/main (or main if there is
# none), those with uncommitted changes, and new ones.
#
#   scripts/changed.sh [--or-recent] [PATH...]
#
# --or-recent: if there are no such commits, the files that the last 20 commits changed
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
