#!/usr/bin/env bash
# Builds and runs the main job on one machine: the sidecar, standalone, with examples/jobs.yaml,
# and an example app that prints the callbacks it gets. Ctrl-C ends both.
set -euo pipefail
cd "$(dirname "$0")/.."

app_port=${EXAMPLE_PORT:-8080}
listen=${LEASECRON_LISTEN:-127.0.0.1:9470}
api=${LEASECRON_API_LISTEN:-127.0.0.1:9471}

# Before the build, which may take a while.
for address in "127.0.0.1:$app_port" "${listen/#:/127.0.0.1:}" "${api/#:/127.0.0.1:}"; do
  if (: <"/dev/tcp/${address%:*}/${address##*:}") 2>/dev/null; then
    cat >&2 <<END
run: $address is taken by another program. Stop that, or choose other addresses, such as

  EXAMPLE_PORT=8081 LEASECRON_LISTEN=127.0.0.1:9570 LEASECRON_API_LISTEN=127.0.0.1:9571 make run
END
    exit 1
  fi
done

echo "compiling (about half a minute the first time)"
make build example

app='' sidecar='' stopping=''
# The sidecar first: it reports its last runs while the app still answers. Both together get
# less than two seconds.
stop() {
  trap '' INT TERM
  stopping=yes
  for pid in $sidecar $app; do
    kill -TERM "$pid" 2>/dev/null || continue
    for _ in {1..16}; do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
}
trap stop INT TERM
# After Ctrl-C only this script should end the two, in order: hence groups of their own.
set -m

bin/example-app -listen "127.0.0.1:$app_port" -sidecar "http://${api/#:/127.0.0.1:}" &
app=$!
LEASECRON_JOBS_FILE=examples/jobs.yaml LEASECRON_ELECTION=standalone LEASECRON_LEDGER=memory \
  LEASECRON_TARGET=http://127.0.0.1:$app_port \
  LEASECRON_LISTEN=$listen LEASECRON_API_LISTEN=$api bin/sidecar run &
sidecar=$!
set +m

cat <<END

  leasecron runs examples/jobs.yaml and calls the example app on 127.0.0.1:$app_port.

    API           http://$api/v1/jobs
    leader        http://${listen/#:/127.0.0.1:}/leader
    metrics       http://${listen/#:/127.0.0.1:}/metrics
    readiness     http://${listen/#:/127.0.0.1:}/readyz?verbose

  Ctrl-C ends it.

END

status=0
wait -n "$sidecar" "$app" || status=$?
if [ -z "$stopping" ]; then # one of them ended by itself: end the other
  stop
  exit "$status"
fi
