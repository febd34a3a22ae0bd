#!/usr/bin/env bash
# Prints the path of a tool that a go.mod below tools/ pins, and builds it first if the user's
# cache folder does not have it.
set -euo pipefail
cd "$(dirname "$0")/../tools"

tags=''
case $1 in
golangci-lint) package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint ;;
promtool)
  cd promtool # a module of its own, so that neither tool changes what the other is built from
  package=github.com/prometheus/prometheus/cmd/promtool
  tags=remove_all_sd # rules need no service discovery, which is most of its dependencies
  ;;
*)
  echo "tool.sh: unknown tool $1" >&2
  exit 2
  ;;
esac

pinned=$(cat go.mod go.sum <(go env GOVERSION) | git hash-object --stdin)
dir=${XDG_CACHE_HOME:-$HOME/.cache}/leasecron/tools/${pinned:0:12}
if [ ! -x "$dir/$1" ]; then
  echo "building $1 from source, which takes a few minutes; it is kept in $dir" >&2
  mkdir -p "$dir"
  GOWORK=off go build -trimpath -ldflags '-s -w' -tags "$tags" -o "$dir/$1.$$" "$package" >&2
  mv "$dir/$1.$$" "$dir/$1" # last, so that an interrupted build is not taken for a finished one
fi
echo "$dir/$1"
