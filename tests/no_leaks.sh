#!/bin/sh
# Runs a test program and fails, too, if LeakSanitizer reports a leak: criterion counts a test as
# passed before LeakSanitizer checks its process.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" 2>"$log"
status=$?
cat "$log" >&2
grep -q 'ERROR: LeakSanitizer' "$log" && exit 1
exit $status
