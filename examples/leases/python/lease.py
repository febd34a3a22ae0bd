#!/usr/bin/env python3
"""Does a piece of work that only one replica should do at a time.

It takes a named lease from its sidecar, works while it renews the lease, stops when that is
lost, and releases it. Python 3.8 or newer, standard library only.

    python3 examples/leases/python/lease.py --name search.rebuild --ttl 15 --steps 20

Exit code 0: done; 75: somebody else does it; 1: lost or failed.
"""

import argparse
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("LEASECRON_URL", "http://127.0.0.1:9471")


class Held(Exception):
    """Somebody else holds the lease."""


class Lease:
    """A named lease: ``with Lease(name, holder, ttl) as lease: ...``

    ``lease.lost`` is an event that is set when the lease is lost, whatever hangs; the work must stop
    then. ``lease.token`` goes wherever the work writes.
    """

    def __init__(self, name, holder, ttl, url=URL):
        self.name, self.holder, self.ttl, self.url = name, holder, ttl, url
        self.token, self.reason = None, ""
        self.lost = threading.Event()
        self._until = 0.0
        self._stop = threading.Event()

    def __enter__(self):
        # The same key each time, so that a lease whose answer was lost is not held by nobody.
        key = str(uuid.uuid4())
        while True:
            before = time.monotonic()
            status, answer = self._post(
                "acquire", {"holder": self.holder, "ttlSeconds": self.ttl}, timeout=15, key=key)
            if status == 200:
                break
            if status == 409:
                raise Held(answer.get("detail", ""))
            if 0 < status < 500:
                raise RuntimeError("acquire: %d %s" % (status, answer.get("detail", "")))
            time.sleep(1)
        self.token = answer["token"]
        self._until = before + answer["validMillis"] / 1000
        # Two threads: a renewal that hangs must not keep the expiry from being noticed.
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._renew, self._expire)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        # So that the next need not wait. If it fails, the lease expires.
        self._post("release", {"token": self.token}, timeout=1)
        return False

    def _renew(self):
        wait = self.ttl / 3
        while not self._stop.wait(wait) and not self.lost.is_set():
            before = time.monotonic()
            status, answer = self._post(
                "renew", {"token": self.token}, timeout=max(0.1, self._until - before))
            if status == 200:
                self._until = before + answer["validMillis"] / 1000
                wait = self.ttl / 3
            elif status == 409:
                self._lose(answer.get("detail", ""))
            else:  # tried again, until it is too late
                wait = min(1, self.ttl / 10)

    def _expire(self):
        while not self._stop.is_set() and not self.lost.is_set():
            left = self._until - time.monotonic()
            if left <= 0:
                self._lose("its time is over")
            else:
                self._stop.wait(min(left, 0.1))

    def _lose(self, reason):
        self.reason = reason
        self.lost.set()

    def _post(self, verb, body, timeout, key=None):
        """Asks the sidecar; status 0 says that no answer came."""
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(
            "%s/v1/leases/%s/%s" % (self.url, self.name, verb), json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, json.loads(response.read() or b"{}")
        except urllib.error.HTTPError as error:
            try:
                return error.code, json.loads(error.read() or b"{}")
            except (OSError, ValueError):
                return error.code, {}
        except (OSError, ValueError):
            return 0, {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="search.rebuild", help="the lease")
    parser.add_argument("--ttl", type=int, default=15, help="seconds it lasts after each renewal")
    parser.add_argument("--steps", type=int, default=20, help="how much there is to do, a second each")
    args = parser.parse_args()
    holder = "python-%s-%d" % (socket.gethostname(), os.getpid())
    try:
        with Lease(args.name, holder, args.ttl) as lease:
            for step in range(args.steps):
                # Send the token along with each write, and let the store refuse a smaller one.
                print("step %d with token %d" % (step + 1, lease.token), flush=True)
                if lease.lost.wait(1):
                    print("lease lost: " + lease.reason)
                    return 1
    except Held as held:
        print("held by somebody else: %s" % held)
        return 75
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
