#!/usr/bin/env bash
# Builds the container image: image.sh NAME:TAG VERSION COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."

# without_engine says why there is no image, and what makes one all the same.
without_engine() {
  echo "image: $1" >&2
  echo "image: without an engine, 'make image-tar' writes the image into bin/leasecron.tar, which docker load and podman load take" >&2
  exit 1
}

builder='' silent=''
for engine in docker podman buildah; do
  command -v "$engine" >/dev/null || continue
  if "$engine" info >/dev/null 2>&1; then
    builder=$engine
    break
  fi
  silent+="${silent:+, }$engine"
done
if [ -z "$builder" ]; then
  [ -n "$silent" ] || without_engine "needs docker, podman or buildah"
  without_engine "$silent does not work here ('${silent%%,*} info' says why; is its daemon running?)"
fi
[ -z "$silent" ] || echo "image: $silent does not work here, so $builder builds" >&2

"$builder" build --build-arg "VERSION=$2" --build-arg "COMMIT=$3" -t "$1" . || without_engine "$builder build failed, see above"
echo "built $1 with $builder"
