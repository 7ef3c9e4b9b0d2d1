// Any request of the console, with a session and without: never an answer of 500, never a token or the secret in a page, and
// nothing written by a console that only reads.

import { request as httpRequest } from "node:http";
import { LeaseClient } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import fc from "fast-check";
import { beforeEach, expect, onTestFinished } from "vitest";
import { type ServedConsole, serveConsole, sessionOf } from "../support/console.ts";
import { itemsOf } from "../support/foreign-items.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText } from "./hostile.ts";

interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly hasSession: boolean;
  readonly isMeant: boolean;
}

interface Opened extends ServedConsole {
  readonly cookie: string;
  readonly store: MemoryLeaseStore;
  readonly tokens: readonly string[];
}

/** A slot that is due. */
const today = `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`;
const opened = new Map<string, Promise<Opened>>();
beforeEach(() => opened.clear());

/** One console for each mode and test, on a table with something of each kind. */
function consoleOf(...args: readonly string[]): Promise<Opened> {
  const id = args.join(" ");
  const known = opened.get(id) ?? open(args);
  opened.set(id, known);
  return known;
}

async function open(args: readonly string[]): Promise<Opened> {
  const store = new MemoryLeaseStore();
  const client = new LeaseClient({ store, owner: "holder" });
  const leases = [
    await client.acquire("k", { leaseDurationMs: 3_600_000 }),
    await new Semaphore(client, "sem", { permits: 2 }).acquire({ leaseDurationMs: 3_600_000 }),
  ];
  const waiting = new AbortController();
  const waiter = client
    .acquire("k", { order: fair(), waitMs: 3_600_000, signal: waiting.signal, owner: "waiter" })
    .catch(() => undefined);
  await new JobRuns(client, "job").run(today, async () => 1);
  const tasks = new TaskSet(client, "set", { maxAttempts: 1 });
  await tasks.add([{ id: "1" }, { id: "2" }]);
  await (await tasks.claim())?.fail("broken");
  onTestFinished(async () => {
    waiting.abort();
    await waiter;
    await client.close();
  });
  const served = await serveConsole(store, args);
  const tokens = leases.map(({ token }) => token);
  return { ...served, cookie: await sessionOf(served), store, tokens };
}

/** What a path of HTTP can hold. */
const pathText = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 20,
});
const path = fc.oneof(
  fc.constantFrom(
    "/",
    "//",
    "///x",
    "/key",
    "/jobs",
    "/jobs/run",
    "/tasks",
    "/tasks/set",
    "/table",
    "/audit",
    "/script.js",
    "/style.css",
    "/session",
    "/act/stop",
    "/act/break",
    "/act/pause",
    "/act/resume",
    "/act/skip",
    "/act/requeue",
    "/act/__proto__",
    "/act/constructor",
    "/../etc/passwd",
    "/%",
    "/%ff%00",
    "*",
    "http://[",
    "/key/..;/",
    "?key=k",
  ),
  pathText.map((text) => `/${text}`),
  pathText,
);
const text = fc.oneof(
  fc.constantFrom(
    "k",
    "sem",
    "job",
    "set",
    "lease",
    "semaphore",
    "1",
    "2025-11-21T08:00:00.000Z",
    "failed",
    "5m",
    "why",
    "[]",
    '["1"]',
    "[",
    "7",
    '{"a":1}',
    "null",
    "-1",
    "1e9",
    "NaN",
  ),
  hostileText,
);
const names =
  "key id sort-key reason word for job slot set state remark ids all free prefix owner older expired page limit since after sort q from to __proto__".split(
    " ",
  );
const pairs = fc.array(fc.tuple(fc.constantFrom(...names), text), { maxLength: 6 });
const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 30,
});
const headers = fc.array(
  fc.tuple(
    fc.constantFrom(
      "origin",
      "host",
      "sec-fetch-site",
      "sec-fetch-mode",
      "cookie",
      "x-leasehold-write",
      "content-type",
      "x-forwarded-user",
      "accept",
    ),
    fc.oneof(
      headerText,
      fc.constantFrom(
        "1",
        "same-origin",
        "cross-site",
        "null",
        "navigate",
        "leasehold-console=; leasehold-console",
        "application/json",
      ),
    ),
  ),
  { maxLength: 2 },
);
const body = fc.oneof(
  pairs.map((fields) => JSON.stringify(Object.fromEntries(fields))),
  fc.json(),
  hostileText,
  fc.constantFrom("", "[]", "null", '{"a":1}', '{"__proto__":"x"}', "x".repeat(70_000)),
);
/** As the console's own pages send it. */
const ofPage: fc.Arbitrary<Request> = fc.record({
  method: fc.constant("GET"),
  path: fc.constantFrom("/", "/key", "/jobs", "/jobs/run", "/tasks", "/tasks/set", "/table", "/audit"),
  query: fc.oneof(pairs, fc.constant(Object.entries({ key: "k", job: "job", slot: today, set: "set" }))),
  headers: fc.constant([]),
  body: fc.constant(""),
  hasSession: fc.boolean(),
  isMeant: fc.boolean(),
});
const fieldsOfActs: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<string>>>>> = {
  pause: { key: fc.constantFrom("k", "free", "other"), for: fc.constant("5m") },
  skip: {
    job: fc.constant("job"),
    slot: fc.oneof(
      fc.nat(86_400_000).map((ms) => new Date(Date.parse(today) - ms).toISOString()),
      fc.constant("soon"),
    ),
  },
  requeue: {
    ...{ set: fc.constant("set"), ids: fc.constantFrom('["1"]', '["2","3"]') },
    ...{ state: fc.constant("failed"), remark: fc.constant("broken") },
  },
};
const act: fc.Arbitrary<Request> = fc.constantFrom(...Object.entries(fieldsOfActs)).chain(([name, own]) => {
  const needed = { reason: fc.constantFrom("why", ""), ...own };
  const all: Readonly<Record<string, fc.Arbitrary<string>>> = { ...needed, more: hostileText };
  const fields = fc.record(all, { requiredKeys: Object.keys(needed) });
  return fc.record({
    method: fc.constant("POST"),
    path: fc.constant(`/act/${name}`),
    query: fc.constant([]),
    headers: fc.constant([]),
    body: fields.map((given) => JSON.stringify(given)),
    hasSession: fc.boolean(),
    isMeant: fc.constant(true),
  });
});
const anyRequest: fc.Arbitrary<Request> = fc.record({
  method: fc.constantFrom(
    "GET",
    "GET",
    "POST",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "PROPFIND",
  ),
  path,
  query: pairs,
  headers,
  body,
  hasSession: fc.boolean(),
  isMeant: fc.boolean(),
});
const request = fc.oneof({ weight: 2, arbitrary: anyRequest }, ofPage, act);

/** Sends exactly what is asked for; gives undefined where Node itself refuses to send or to read it. */
function send(
  { origin, cookie }: Opened,
  { method, path: target, query, headers: more, body: sent, hasSession, isMeant }: Request,
): Promise<{ readonly status: number; readonly text: string } | undefined> {
  const search =
    query.length === 0
      ? ""
      : `?${new URLSearchParams(query.map(([name, value]): [string, string] => [name, value]))}`;
  const given = isMeant
    ? [
        ["x-leasehold-write", "1"],
        ["content-type", "application/json"],
      ]
    : more;
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const asked = httpRequest(
      {
        hostname,
        port,
        method,
        path: `${target}${search}`,
        agent: false,
        timeout: 10_000,
        headers: { ...(hasSession ? { cookie } : {}), ...Object.fromEntries(given) },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", () => resolve(undefined));
      },
    );
    asked.on("timeout", () => resolve({ status: 0, text: "no answer in 10 s" }));
    // A body that is too large is cut off, and what is no HTTP is refused by Node.
    asked.on("error", () => resolve(undefined));
    asked.end(method === "GET" || method === "HEAD" ? undefined : sent);
  });
}

function checkAnswer(served: Opened, answer: Awaited<ReturnType<typeof send>>): void {
  if (answer === undefined) return;
  expect(answer.status, answer.text).toBeGreaterThanOrEqual(200);
  expect(answer.status === 500 ? answer.text : "").toBe("");
  for (const secret of [...served.tokens, served.secret]) expect(answer.text).not.toContain(secret);
  expect(answer.text).not.toMatch(/\n\s+at \S.*:\d+:\d+/);
}

/** How many items are there, and who holds the lock: the rest changes while a caller waits. */
const written = async ({ store }: Opened): Promise<unknown> => ({
  items: (await itemsOf(store)).length,
  holds: store.peek({ pk: "k", sk: "lease" })?.token,
});

const acts = Object.keys(fieldsOfActs).map((name) => `/act/${name}`);

for (const [title, args, accepted] of [
  ["reads answers any request, shows no token, and writes nothing", [], { share: 0.05, options: [] }],
  ["writes answers any request, and acts for a session alone", ["--write"], { share: 0.03, options: acts }],
] as const) {
  const writes = args.length > 0;
  fuzz(
    `a console that ${title}`,
    request,
    async (given) => {
      const served = await consoleOf(...args);
      const before = await written(served);
      const answer = await send(served, given);
      checkAnswer(served, answer);
      if (!writes || !given.hasSession) expect(await written(served)).toEqual(before);
      if (answer?.status !== 200) return undefined;
      if (!writes) return [];
      return given.path.startsWith("/act/") ? [given.path] : undefined;
    },
    { few: 300, many: 10_000, accepted },
  );
}
