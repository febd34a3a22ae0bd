#!/usr/bin/env python3
"""An app for leasecron in Python, with the standard library alone.

It checks signatures and fencing tokens, does each occurrence once, and has a job that is done when
it answers (/jobs/report) and one that is done later (/jobs/import). What it remembers is in an
SQLite file, so that it also knows after a restart. docs/callback.md has the contract.
"""

import argparse
import base64
import binascii
import decimal
import hashlib
import hmac
import http.server
import json
import re
import signal
import socketserver
import sqlite3
import threading
import time
import urllib.error
import urllib.request

MAX_BODY = 512 * 1024  # 256 KiB of data, and room for the rest
TOLERANCE = 300  # seconds between a signature's time and now
KEEP = 24 * 3600  # seconds for which a finished occurrence is remembered


class Refused(Exception):
    """A request that is no callback to carry out; its status is the answer."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Failed(Exception):
    """Work that failed. The sidecar tries again, unless it is final."""

    def __init__(self, message, final=False):
        super().__init__(message)
        self.final = final


class RunOver(Exception):
    """The sidecar takes no more reports for the run: stop working on it."""


# --- The signature: Standard Webhooks, HMAC-SHA256 over id.timestamp.body -------------------------


def read_secret(path):
    with open(path, encoding="ascii") as f:
        text = f.read(4096).strip()
    if not text.startswith("whsec_"):
        raise SystemExit(f"{path}: want a secret whsec_…; make one with: echo whsec_$(openssl rand -base64 32)")
    key = base64.b64decode(text[len("whsec_"):], validate=True)
    if not 24 <= len(key) <= 64:
        raise SystemExit(f"{path}: the secret has {len(key)} bytes, want 24 to 64")
    return key


def verify(keys, headers, body, now):
    """Checks the signature of the body exactly as it arrived."""
    parts = [headers.get_all(name, []) for name in ("Webhook-Id", "Webhook-Timestamp", "Webhook-Signature")]
    if any(len(values) != 1 for values in parts):
        raise Refused(401, "want one webhook-id, webhook-timestamp and webhook-signature: does the sidecar sign?")
    (ident,), (stamp,), (signatures,) = parts
    if not re.fullmatch(r"[1-9][0-9]{0,11}", stamp) or "." in ident:
        raise Refused(401, "webhook-id or webhook-timestamp is malformed")
    good = False
    for key in keys:
        digest = hmac.new(key, f"{ident}.{stamp}.".encode("utf-8") + body, hashlib.sha256).digest()
        for signature in signatures.split(" ")[:16]:
            version, _, text = signature.partition(",")
            try:
                given = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                continue
            # Not ==, which takes the longer the more of the beginning is right.
            good |= version == "v1" and hmac.compare_digest(digest, given)
    if not good:
        raise Refused(401, "no signature matches: do sidecar and app have the same secret?")
    if abs(now - int(stamp)) > TOLERANCE:
        raise Refused(401, f"signed {now - int(stamp):.0f} s from now, at most {TOLERANCE} are allowed")
    return ident


# --- The run --------------------------------------------------------------------------------------


def parse(headers, body):
    """Returns the run as a dictionary, with numbers exactly as they were written."""
    if headers.get_content_type() != "application/json":
        raise Refused(415, "want Content-Type: application/json")
    try:
        # Integers of Python have any length; other numbers become decimals instead of floats.
        run = json.loads(body.decode("utf-8"), parse_float=decimal.Decimal, parse_constant=lambda name: None)
    except (ValueError, RecursionError) as err:
        raise Refused(400, f"the body is not JSON: {err}") from None
    if not isinstance(run, dict):
        raise Refused(400, "the body is not a JSON object")
    for key, kind in (("id", str), ("occurrence", str), ("job", str), ("cause", str), ("attempt", int)):
        if not isinstance(run.get(key), kind):
            raise Refused(400, f"{key} is missing: is this a callback of leasecron?")
    if not re.fullmatch("[0-9a-f]{32}", run["id"]) or not re.fullmatch("[0-9a-f]{32}", run["occurrence"]):
        raise Refused(400, "id and occurrence are 32 lower-case hex digits")
    if run.get("term") is not None and not (isinstance(run["term"], int) and 0 < run["term"] < 2**63):
        raise Refused(400, "term is a whole number or null")
    if not isinstance(run.get("data"), (dict, type(None))):
        raise Refused(400, "data is an object or null")
    return run


# --- What is remembered ---------------------------------------------------------------------------


class Memory:
    """Finished occurrences and the highest token of each job, in SQLite.

    Replicas that share a database keep both there. Then an occurrence in progress belongs there
    too, with a time until which it is claimed; here, with one process, a set is enough.
    """

    def __init__(self, path):
        self.lock = threading.Condition()
        self.in_progress = set()
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.execute("CREATE TABLE IF NOT EXISTS done (occurrence TEXT PRIMARY KEY, message TEXT, at REAL)")
        self.db.execute("CREATE TABLE IF NOT EXISTS fences (job TEXT PRIMARY KEY, token INTEGER)")

    def check_token(self, run):
        """Refuses a token lower than one that was seen: its sender is no longer the leader.

        One statement compares and remembers. Where the work is a transaction of this database, run
        it there, so that nothing comes between the check and the work.
        """
        if run.get("term") is None:  # a job of scope instance has none
            return
        with self.lock:
            changed = self.db.execute(
                "INSERT INTO fences (job, token) VALUES (?, ?)"
                " ON CONFLICT (job) DO UPDATE SET token = excluded.token WHERE fences.token <= excluded.token",
                (run["job"], run["term"]),
            ).rowcount
        if changed != 1:
            raise Refused(409, f"token {run['term']} is older than one that was seen: another leader has taken over")

    def claim(self, run, wait=True):
        """Returns (True, None) if the caller shall do the work, (False, message) if it is done.

        While another delivery works on the occurrence, it waits: that may succeed, or fail and
        leave the work to this one. Without wait it returns (False, None) then.
        """
        with self.lock:
            self.db.execute("DELETE FROM done WHERE at < ?", (time.time() - KEEP,))
            while True:
                row = self.db.execute("SELECT message FROM done WHERE occurrence = ?", (run["occurrence"],)).fetchone()
                if row:
                    return False, row[0]
                if run["occurrence"] not in self.in_progress:
                    self.in_progress.add(run["occurrence"])
                    return True, None
                if not wait:
                    return False, None
                self.lock.wait()

    def finish(self, run, message):
        with self.lock:
            self.db.execute("INSERT OR REPLACE INTO done VALUES (?, ?, ?)", (run["occurrence"], message, time.time()))
            self.release(run)

    def forget(self, run):
        """After a failure, so that the retry passes."""
        with self.lock:
            self.release(run)

    def release(self, run):
        self.in_progress.discard(run["occurrence"])
        self.lock.notify_all()


# --- The sidecar's API ----------------------------------------------------------------------------


class Sidecar:
    def __init__(self, base):
        self.base = base.rstrip("/")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy on the way to loopback

    def post(self, run, what, body):
        """Sends one report; OSError says that another try may succeed."""
        request = urllib.request.Request(
            f"{self.base}/v1/runs/{run['id']}/{what}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with self.opener.open(request, timeout=15) as answer:
                return json.loads(answer.read(65536) or b"{}")
        except urllib.error.HTTPError as err:
            if err.code in (404, 409):
                raise RunOver(err.read(1024).decode("utf-8", "replace")) from None
            if err.code < 500 and err.code != 429:
                raise RuntimeError(f"{what}: the sidecar answered {err.code}") from None
            raise OSError(f"{what}: the sidecar answered {err.code}") from None

    def insist(self, run, what, body):
        """Sends the end of a run until it is answered. The same once more is harmless."""
        pause = 0.1
        while True:
            try:
                return self.post(run, what, body)
            except OSError:
                time.sleep(pause)
                pause = min(2 * pause, 5)


class Task:
    """An asynchronous run: a thread for its heartbeats beside the one that works."""

    def __init__(self, sidecar, run):
        self.sidecar, self.run = sidecar, run
        self.over = threading.Event()  # the run is over: stop
        self.wake = threading.Event()
        self.ended = False
        self.progress = {}
        threading.Thread(target=self.beat, daemon=True).start()

    def report(self, percent, message):
        self.progress = {"progress": percent, "message": message}
        self.wake.set()

    def beat(self):
        """A third of heartbeatTimeout would do; every few seconds tells sooner of a cancel."""
        while not self.ended and not self.over.is_set():
            self.wake.clear()
            try:
                self.sidecar.post(self.run, "heartbeat", self.progress)
            except RunOver as err:
                log(f"run {self.run['id']} is over: {err}")
                self.over.set()
            except (OSError, RuntimeError) as err:
                log(f"heartbeat: {err}")
            time.sleep(0.2)
            self.wake.wait(3)

    def end(self):
        self.ended = True
        self.wake.set()


# --- The work -------------------------------------------------------------------------------------


def log(text):
    print(text, flush=True)


def report(run):
    """Done when it returns; the text becomes the run's message."""
    data = run.get("data") or {}
    log(f"work report occurrence={run['occurrence']} attempt={run['attempt']}")
    if run["attempt"] <= data.get("failTimes", 0):
        raise Failed("the printer is out of paper")
    return f"{data.get('format')} of account {data.get('account')} for {run['scheduledAt']}"


def import_files(run, task):
    """Works after its callback was answered."""
    files = (run.get("data") or {}).get("files", 0)
    log(f"work import occurrence={run['occurrence']} attempt={run['attempt']}")
    for n in range(files):
        task.report(100 * n // files, f"{n} of {files} files")
        if task.over.wait(0.5):  # the work on one file
            raise Failed("canceled")
    return f"{files} files imported"


# --- The server -----------------------------------------------------------------------------------


class App(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, keys, memory, sidecar):
        super().__init__(address, Handler)
        self.keys, self.memory, self.sidecar = keys, memory, sidecar
        self.tasks = set()
        self.stopping = False

    def server_bind(self):  # without http.server's look-up of the host's name
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be idle, far longer than the sidecar keeps it

    def do_POST(self):
        try:
            work = {"/jobs/report": self.synchronous, "/jobs/import": self.asynchronous}.get(self.path)
            if work is None:
                raise Refused(404, "no such job")
            run = self.read()
            self.server.memory.check_token(run)
            work(run)
        except Refused as err:
            self.answer(err.status, str(err))

    def read(self):
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length):
            self.close_connection = True
            raise Refused(411, "want a Content-Length")
        if int(length) > MAX_BODY:
            self.close_connection = True
            # Read a little on: a connection that is closed in mid-body takes the answer with it.
            left = min(int(length), 8 * MAX_BODY)
            while left > 0 and (chunk := self.rfile.read(min(left, 65536))):
                left -= len(chunk)
            raise Refused(413, f"the body has more than {MAX_BODY} bytes")
        body = self.rfile.read(int(length))
        signed = verify(self.server.keys, self.headers, body, time.time()) if self.server.keys else None
        run = parse(self.headers, body)
        if signed is not None and signed != run["id"]:
            raise Refused(400, "the signature is for another run")
        return run

    def synchronous(self, run):
        memory = self.server.memory
        mine, message = memory.claim(run)
        if not mine:
            return self.answer(200, message)
        try:
            message = report(run)
        except Exception as err:  # whatever it is: the next attempt has to pass
            memory.forget(run)
            final = isinstance(err, Failed) and err.final
            return self.answer(422 if final else 500, str(err) if isinstance(err, Failed) else "the job failed: see the app's log")
        memory.finish(run, message)
        return self.answer(200, message)

    def asynchronous(self, run):
        mine, message = self.server.memory.claim(run, wait=False)
        if message is not None:
            return self.answer(200, message)
        self.answer(202, "")
        threading.Thread(target=self.carry_out, args=(run, mine), daemon=True).start()

    def carry_out(self, run, mine):
        memory, sidecar = self.server.memory, self.server.sidecar
        task = Task(sidecar, run)
        self.server.tasks.add(task)
        try:
            message = None
            if not mine:  # another delivery is at it
                mine, message = memory.claim(run)
            if mine:
                try:
                    message = import_files(run, task)
                except Exception as err:
                    memory.forget(run)
                    if not isinstance(err, Failed):
                        err = Failed("the job failed: see the app's log")
                    if not task.over.is_set() or self.server.stopping:
                        sidecar.insist(run, "fail", {"message": str(err), "retryable": not err.final})
                    return
                memory.finish(run, message)
            sidecar.insist(run, "complete", {"message": message})
        except (RunOver, RuntimeError) as err:
            log(f"run {run['id']} ended otherwise for the sidecar: {err}")
        finally:
            task.end()
            self.server.tasks.discard(task)

    def answer(self, status, text):
        body = text.encode("utf-8")[:1024]  # as much as the sidecar keeps
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:  # the rest of the body may still come
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--listen", default="127.0.0.1:8080", help="address to listen on (%(default)s)")
    options.add_argument("--sidecar", default="http://127.0.0.1:9471", help="the sidecar's API (%(default)s)")
    options.add_argument("--secrets", default="", help="files with signing secrets, separated by commas; empty: not checked")
    options.add_argument("--state", default=":memory:", help="SQLite file for what is remembered (%(default)s)")
    args = options.parse_args()

    keys = [read_secret(path) for path in args.secrets.split(",") if path]
    host, _, port = args.listen.rpartition(":")
    app = App((host, int(port)), keys, Memory(args.state), Sidecar(args.sidecar))

    def stop(*_):
        app.stopping = True
        for task in list(app.tasks):  # they fail, and are tried again elsewhere
            task.over.set()
        threading.Thread(target=app.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    log(f"listening on http://{app.server_address[0]}:{app.server_address[1]}")
    app.serve_forever(poll_interval=0.1)
    deadline = time.monotonic() + 20
    while app.tasks and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
