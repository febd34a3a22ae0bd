'use strict';
// An app for leasecron in Node.js 20 or later, without dependencies.
//
// It checks signatures and fencing tokens, does each occurrence once, and has a job that is done
// when it answers (/jobs/report) and one that is done later (/jobs/import). docs/callback.md has the
// contract.

const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const { setTimeout: delay } = require('node:timers/promises');
const { parseArgs } = require('node:util');

const MAX_BODY = 512 * 1024; // 256 KiB of data, and room for the rest
const TOLERANCE = 300; // seconds between a signature's time and now
const MAX_OCCURRENCES = 10_000; // that are remembered

/** A request that is no callback to carry out; its status is the answer. */
class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Work that failed. The sidecar tries again, unless it is final. */
class Failed extends Error {
  constructor(message, { final = false } = {}) {
    super(message);
    this.final = final;
  }
}

/** The sidecar takes no more reports for the run: stop working on it. */
class RunOver extends Error {}

// --- The signature: Standard Webhooks, HMAC-SHA256 over id.timestamp.body -------------------------

function readSecret(path) {
  const text = fs.readFileSync(path, 'utf8').trim();
  const key = Buffer.from(text.replace(/^whsec_/, ''), 'base64');
  if (!/^whsec_[A-Za-z0-9+/]+=*$/.test(text) || key.length < 24 || key.length > 64) {
    throw new Error(`${path}: want whsec_ and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)`);
  }
  return key;
}

/** Checks the signature of the body exactly as it arrived, and returns its ID. */
function verify(keys, request, body, now) {
  const [id, stamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => {
    const values = request.headersDistinct[name] ?? [];
    if (values.length !== 1) throw new Refused(401, `want one ${name}: does the sidecar sign?`);
    return values[0];
  });
  if (!/^[1-9][0-9]{0,11}$/.test(stamp) || id.includes('.')) throw new Refused(401, 'webhook-id or webhook-timestamp is malformed');
  let good = false;
  for (const key of keys) {
    const want = crypto.createHmac('sha256', key).update(`${id}.${stamp}.`).update(body).digest();
    for (const signature of signatures.split(' ').slice(0, 16)) {
      const [version, text] = signature.split(',', 2);
      const got = Buffer.from(text ?? '', 'base64');
      // Not ===, which takes the longer the more of the beginning is right.
      if (version === 'v1' && got.length === want.length && crypto.timingSafeEqual(got, want)) good = true;
    }
  }
  if (!good) throw new Refused(401, 'no signature matches: do sidecar and app have the same secret?');
  const off = Math.round(now / 1000) - Number(stamp);
  if (Math.abs(off) > TOLERANCE) throw new Refused(401, `signed ${off} s from now, at most ${TOLERANCE} are allowed`);
  return id;
}

// --- The run --------------------------------------------------------------------------------------

/**
 * Returns the run as an object. JSON.parse makes numbers doubles: one with more than 15 digits is
 * better written as a text in the job's data, or read from run.text, the body as it arrived.
 */
function parse(request, body) {
  if ((request.headers['content-type'] ?? '').split(';')[0].trim().toLowerCase() !== 'application/json') {
    throw new Refused(415, 'want Content-Type: application/json');
  }
  let run;
  const text = body.toString('utf8');
  try {
    run = JSON.parse(text);
  } catch (err) {
    throw new Refused(400, `the body is not JSON: ${err.message}`);
  }
  const hex = /^[0-9a-f]{32}$/;
  if (typeof run !== 'object' || run === null || !hex.test(run.id) || !hex.test(run.occurrence) || typeof run.job !== 'string') {
    throw new Refused(400, 'id, occurrence or job is missing: is this a callback of leasecron?');
  }
  if (!Number.isSafeInteger(run.attempt) || !(run.term === null || Number.isSafeInteger(run.term))) {
    throw new Refused(400, 'attempt and term are whole numbers, term may be null');
  }
  if (typeof run.data !== 'object' || Array.isArray(run.data)) throw new Refused(400, 'data is an object or null');
  return Object.assign(run, { text });
}

// --- What is remembered ---------------------------------------------------------------------------

/** The highest token of each job, in this process. Replicas that share a database compare it there. */
class Fence {
  #highest = new Map();

  check(run) {
    if (run.term === null) return; // a job of scope instance has none
    const seen = this.#highest.get(run.job) ?? 0;
    if (run.term < seen) throw new Refused(409, `token ${run.term} is older than ${seen}: another leader has taken over`);
    this.#highest.set(run.job, run.term);
  }
}

/**
 * The work of occurrences, in this process: a promise while it is under way, and afterwards for as
 * long as there is room. After a restart, and in another replica, nothing is known: keep it in a
 * database if work must not be done twice even then.
 */
class Occurrences {
  #known = new Map(); // occurrence -> promise of the message, the oldest first

  /** Does the work of an occurrence unless that is done or under way, and remembers it if it succeeds. */
  async once(run, work) {
    for (;;) {
      const before = this.#known.get(run.occurrence);
      if (before === undefined) break;
      try {
        return await before;
      } catch {
        // That delivery failed; whoever comes first does the work now.
      }
    }
    const promise = work();
    this.#known.set(run.occurrence, promise);
    try {
      const message = await promise;
      for (const oldest of this.#known.keys()) {
        if (this.#known.size <= MAX_OCCURRENCES) break;
        this.#known.delete(oldest);
      }
      return message;
    } catch (err) {
      this.#known.delete(run.occurrence); // so that the retry passes
      throw err;
    }
  }
}

// --- The sidecar's API ----------------------------------------------------------------------------

class Sidecar {
  constructor(base) {
    this.base = base.replace(/\/$/, '');
  }

  /** Sends one report. A RunOver is final; after any other error another try may succeed. */
  async post(run, what, body) {
    const answer = await fetch(`${this.base}/v1/runs/${run.id}/${what}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(15_000),
    });
    const text = await answer.text();
    if (answer.ok) return text;
    const why = `${what}: the sidecar answered ${answer.status} ${text.slice(0, 1024)}`;
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) throw new RunOver(why);
    throw new Error(why);
  }

  /** Sends the end of a run until it is answered. The same once more is harmless. */
  async insist(run, what, body) {
    for (let pause = 100; ; pause = Math.min(2 * pause, 5000)) {
      try {
        return await this.post(run, what, body);
      } catch (err) {
        if (err instanceof RunOver) throw err;
        await sleep(pause);
      }
    }
  }
}

/** Waits, or throws the reason of the signal when that comes first. */
async function sleep(ms, signal) {
  try {
    await delay(ms, undefined, { signal });
  } catch (err) {
    throw signal?.reason ?? err;
  }
}

/**
 * Sends a heartbeat each second until the work ends, and ends it when its run is over. A third of
 * heartbeatTimeout would do; more often tells sooner of a cancel.
 */
function heartbeats(sidecar, run, controller) {
  let progress = {};
  const ended = (async () => {
    while (!controller.signal.aborted) {
      try {
        await sidecar.post(run, 'heartbeat', progress);
      } catch (err) {
        if (err instanceof RunOver) controller.abort(err);
        else console.log(`heartbeat: ${err.message}`);
      }
      await sleep(1000, controller.signal).catch(() => {});
    }
  })();
  return {
    report: (percent, message) => (progress = { progress: percent, message }),
    stop: () => (controller.abort(new Failed('the work has ended')), ended),
  };
}

// --- The work -------------------------------------------------------------------------------------

/** Done when it returns; the text becomes the run's message. The signal ends when nobody waits any more. */
async function report(run, signal) {
  const { format, account, failTimes = 0 } = run.data ?? {};
  console.log(`work report occurrence=${run.occurrence} attempt=${run.attempt}`);
  await sleep(10, signal);
  if (run.attempt <= failTimes) throw new Failed('the printer is out of paper');
  return `${format} of account ${/"account":\s*(\d+)/.exec(run.text)?.[1] ?? account} for ${run.scheduledAt}`;
}

/** Works after its callback was answered. */
async function importFiles(run, signal, progress) {
  const { files = 0 } = run.data ?? {};
  console.log(`work import occurrence=${run.occurrence} attempt=${run.attempt}`);
  for (let n = 0; n < files; n++) {
    progress(Math.floor((100 * n) / files), `${n} of ${files} files`);
    await sleep(500, signal); // the work on one file
  }
  return `${files} files imported`;
}

// --- The server -----------------------------------------------------------------------------------

class App {
  constructor(keys, sidecar) {
    Object.assign(this, { keys, sidecar, fence: new Fence(), occurrences: new Occurrences(), tasks: new Set() });
  }

  async handle(request, response) {
    try {
      const work = { '/jobs/report': this.synchronous, '/jobs/import': this.asynchronous }[request.url];
      if (work === undefined) throw new Refused(404, 'no such job');
      if (request.method !== 'POST') throw new Refused(405, 'a callback is a POST');
      const body = await readBody(request);
      const signed = this.keys.length > 0 ? verify(this.keys, request, body, Date.now()) : undefined;
      const run = parse(request, body);
      if (signed !== undefined && signed !== run.id) throw new Refused(400, 'the signature is for another run');
      this.fence.check(run);
      await work.call(this, run, response);
    } catch (err) {
      if (!(err instanceof Refused)) console.log(err);
      answer(response, err.status ?? 500, err.status ? err.message : "the job failed: see the app's log");
    }
  }

  async synchronous(run, response) {
    const controller = new AbortController();
    // Closed before it was answered: the sidecar's timeout, or a cancel.
    response.on('close', () => controller.abort(new Failed('the sidecar no longer waits')));
    try {
      answer(response, 200, await this.occurrences.once(run, () => report(run, controller.signal)));
    } catch (err) {
      if (!(err instanceof Failed)) throw err;
      answer(response, err.final ? 422 : 500, err.message);
    }
  }

  async asynchronous(run, response) {
    const controller = new AbortController();
    const beats = heartbeats(this.sidecar, run, controller);
    const task = { controller };
    this.tasks.add(task);
    answer(response, 202, '');
    try {
      let outcome = ['complete', {}];
      try {
        outcome[1].message = await this.occurrences.once(run, () => importFiles(run, controller.signal, beats.report));
      } catch (err) {
        if (err instanceof RunOver) throw err; // nothing to tell
        if (!(err instanceof Failed)) console.log(err);
        const message = err instanceof Failed ? err.message : "the job failed: see the app's log";
        outcome = ['fail', { message, retryable: !err.final }];
      }
      await this.sidecar.insist(run, ...outcome);
    } catch (err) {
      console.log(`run ${run.id} ended otherwise for the sidecar: ${err.message}`);
    } finally {
      await beats.stop();
      this.tasks.delete(task);
    }
  }
}

async function readBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length <= MAX_BODY) chunks.push(chunk);
    // Read a little on: a connection that is closed in mid-body takes the answer with it.
    if (length > 8 * MAX_BODY) break;
  }
  if (length > MAX_BODY) throw new Refused(413, `the body has more than ${MAX_BODY} bytes`);
  return Buffer.concat(chunks);
}

function answer(response, status, text) {
  if (response.headersSent || response.destroyed) return;
  if (status === 413) response.setHeader('Connection', 'close'); // the rest of the body may still come
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(Buffer.from(text).subarray(0, 1024)); // as much as the sidecar keeps
}

function main() {
  const { values } = parseArgs({
    options: {
      listen: { type: 'string', default: '127.0.0.1:8080' },
      sidecar: { type: 'string', default: 'http://127.0.0.1:9471' },
      secrets: { type: 'string', default: '' }, // files, separated by commas; empty: signatures are not checked
    },
  });
  const app = new App(values.secrets.split(',').filter(Boolean).map(readSecret), new Sidecar(values.sidecar));
  const server = http.createServer((request, response) => app.handle(request, response));
  server.requestTimeout = 30_000; // for a request to arrive, not for the work
  const at = values.listen.lastIndexOf(':');
  server.listen(Number(values.listen.slice(at + 1)), values.listen.slice(0, at), () => {
    const { address, port } = server.address();
    console.log(`listening on http://${address}:${port}`);
  });
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.once(signal, () => {
      server.close();
      server.closeIdleConnections();
      // They fail, and are tried again elsewhere.
      for (const { controller } of app.tasks) controller.abort(new Failed('the app is shutting down'));
    });
  }
}

main();
