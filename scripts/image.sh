#!/usr/bin/env bash
# Builds the container image: image.sh NAME:TAG VERSION COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."

builder=$(command -v docker || command -v podman || command -v buildah) || {
  echo "image: needs docker, podman or buildah" >&2
  exit 1
}
"$builder" build --build-arg "VERSION=$2" --build-arg "COMMIT=$3" -t "$1" .
echo "built $1"
