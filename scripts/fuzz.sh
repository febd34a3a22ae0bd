#!/usr/bin/env bash
# Runs each fuzz test for the given time: go test takes only one at once.
set -euo pipefail
cd "$(dirname "$0")/.."

for package in $(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -r -n1 dirname | sort -u); do
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | cut -d' ' -f2); do
    echo "fuzzing $package $target for $1"
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$1"
  done
done
