#!/bin/sh
# Rewrites the files that are generated from the code: tables of documents, completions, the man page, goldens.
#
#   scripts/rewrite.sh BUILD_DIR      where `make rewrite` has built the programs
#
# The pictures (tests/browser/pictures.mjs) and the requests to Kubernetes (make test-kubernetes) need more than a build.
set -u
cd "$(dirname "$0")/.."
build=$1
failed=

# A test that writes its file and then fails has found another error.
rewrite() { # rewrite PROGRAM TESTS
  if ! VRAMTRACK_UPDATE=1 VRAMTRACK_UPDATE_GOLDEN=1 "$build/$1" --gtest_brief=1 --gtest_filter="$2"; then failed="$failed $1"; fi
}
rewrite core_test '*Reference*:*FieldDocuments*'
rewrite detect_test 'Registry.*'
rewrite cli_test 'Written.*:CommandLine.*:Moment.*'
rewrite top_test 'Screens/*'
rewrite period_test 'ReportForms.*'
rewrite explain_test 'Answers.*:Tables.*:Pasted.*'
rewrite trace_test 'AllocationEvents.*:HeapProfile.*:MemoryProfile.*:XPlane.*:TorchSnapshot.Errors*:RunOom.*:ProbeTrace.*:TraceReport.*:Render.*:Exports.*'
rewrite engine_test 'Scenarios.Every*'
python3 tests/cli/golden.py "$build/vramtrack" --update || failed="$failed golden.py"

git status --short
[ -z "$failed" ] || { echo "rewrite: failed:$failed" >&2; exit 1; }
echo "rewrite: read the difference (git diff) before you commit it"
