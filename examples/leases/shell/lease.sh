#!/bin/sh
# Runs a command that only one replica should run at a time: takes a named lease from the
# sidecar, runs the command while it renews the lease, ends the command when that is lost, and
# releases it. Needs curl.
#
#     examples/leases/shell/lease.sh search.rebuild 15 ./rebuild.sh --all
#
# The command finds the token in LEASE_TOKEN. It is ended by SIGTERM, so it must not leave
# children that go on. Exit code: the command's; 75: somebody else holds the lease; 1: lost.
set -u
url=${LEASECRON_URL:-http://127.0.0.1:9471}
[ $# -ge 3 ] || { echo "usage: $0 NAME TTL_SECONDS COMMAND [ARGUMENT...]" >&2; exit 64; }
name=$1 ttl=$2
shift 2
pause=$((ttl / 3 > 0 ? ttl / 3 : 1))
holder=shell-$(hostname)-$$
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# post VERB BODY SECONDS [HEADER] sets status (000: no answer) and answer.
post() {
	status=$(curl -s -o "$dir/answer" -w '%{http_code}' --max-time "$3" -X POST \
		-H 'Content-Type: application/json' ${4:+-H "$4"} -d "$2" "$url/v1/leases/$name/$1")
	answer=$(cat "$dir/answer" 2>/dev/null)
}
number() { printf '%s' "$answer" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }
detail() { printf '%s' "$answer" | sed -n 's/.*"detail":"\(\([^"\\]\|\\.\)*\)".*/\1/p' | sed 's/\\\(.\)/\1/g'; }
# Milliseconds, or whole seconds where date knows no better. This clock may be set; the sidecar
# notices that, and answers the next renewal with 409.
now() {
	nanos=$(date +%s%N)
	case $nanos in
	*[!0-9]* | ??????????) echo "$(date +%s)000" ;;
	*) echo "${nanos%??????}" ;;
	esac
}

# seconds MILLIS writes them as curl reads them.
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# The same key each time, so that a lease whose answer was lost is not held by nobody.
key=$$-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
while :; do
	before=$(now)
	post acquire "{\"holder\":\"$holder\",\"ttlSeconds\":$ttl}" 15 "Idempotency-Key: $key"
	case $status in
	200) break ;;
	409) echo "held by somebody else: $(detail)"; exit 75 ;;
	4??) echo "acquire: $status $(detail)"; exit 1 ;;
	esac
	sleep 1
done
token=$(number token)
until=$((before + $(number validMillis)))

LEASE_TOKEN=$token "$@" &
work=$!
trap 'kill "$work" 2>/dev/null' INT TERM

lose() {
	echo "lease lost: $1"
	: >"$dir/lost"
	kill "$work" 2>/dev/null
	exit
}
(
	trap - EXIT # the folder is the parent's
	wait=$pause
	while :; do
		sleep "$wait" >/dev/null 2>&1 # it outlives this, and must not keep the output open
		before=$(now)
		[ "$before" -lt "$until" ] || lose "its time is over"
		post renew "{\"token\":$token}" "$(seconds $((until - before)))"
		case $status in
		200) until=$((before + $(number validMillis))) wait=$pause ;;
		409) lose "$(detail)" ;;
		*) wait=1 ;; # tried again, until it is too late
		esac
	done
) &
renewer=$!

wait "$work" 2>/dev/null
code=$?
kill "$renewer" 2>/dev/null
wait "$renewer" 2>/dev/null
[ ! -e "$dir/lost" ] || code=1
# So that the next need not wait. If it fails, the lease expires.
post release "{\"token\":$token}" 1
[ "$code" -ne 0 ] || echo "done"
exit "$code"
