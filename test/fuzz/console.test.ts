// Any request of the console, with a session and without: never an answer of 500, never a token or the secret in a page, and
// nothing written by a console that only reads.

import fc from "fast-check";
import { beforeEach, expect } from "vitest";
import { type Answer, ask, busyStore, serveConsole, sessionOf } from "../support/console.ts";
import { itemsOf } from "../support/foreign-items.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText } from "./hostile.ts";

const pages = "/ /key /jobs /jobs/job /jobs/run /tasks /tasks/set /table /audit".split(" ");
const acts = "/act/stop /act/break /act/pause /act/resume /act/skip /act/requeue".split(" ");
const oddPaths =
  "// ///x /session /script.js /act/__proto__ /act/constructor /../etc/passwd /% /%ff%00 * http://[ /key/..;/ ?key=k".split(
    " ",
  );
const oddHeaders = "origin host sec-fetch-site sec-fetch-mode cookie x-leasehold-write content-type".split(
  " ",
);
const oddBodies = ["", "[]", "null", '{"a":1}', '{"__proto__":"x"}', "x".repeat(70_000)];

/** What a path and a header of HTTP can hold. */
const printable = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 30,
});

/** A value that fits to the table, mostly. */
function fitting(...values: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom(...values) },
    hostileText,
    fc.constantFrom("[", "null", "-1", "1e9", "NaN"),
  );
}

/** The parameters of pages, and the fields of actions. */
const fields = fc.record({
  key: fitting("import", "payment-api", "a", "b", "c", "d"),
  for: fitting("5m"),
  reason: fitting("why"),
  job: fitting("report"),
  slot: fitting("2026-11-21T03:00:00.000Z", "2026-11-20T03:00:00.000Z"),
  set: fitting("orders"),
  state: fitting("failed"),
  remark: fitting("broken"),
  ids: fitting('["one"]', '["two","three"]'),
  id: fitting("1"),
  "sort-key": fitting("lease", "semaphore"),
  older: fitting("1m"),
  page: fitting("2"),
});

const request = fc.record({
  method: fc.constantFrom(..."GET GET GET GET POST POST POST POST HEAD PUT TRACE".split(" ")),
  path: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...pages, ...acts, ...acts) },
    fc.constantFrom(...oddPaths),
    printable,
  ),
  query: fields.map((given) => String(new URLSearchParams(given))),
  body: fc.oneof(
    { weight: 6, arbitrary: fields.map((given) => JSON.stringify(given)) },
    fc.constantFrom(...oddBodies),
    hostileText,
  ),
  headers: fc.oneof(
    { weight: 3, arbitrary: fc.constant({ "x-leasehold-write": "1" }) },
    fc.dictionary(
      fc.constantFrom(...oddHeaders),
      fc.oneof(fc.constantFrom("1", "null", "same-origin", "cross-site", "navigate"), printable),
      { maxKeys: 2 },
    ),
  ),
  hasSession: fc.constantFrom(true, true, true, false),
});

async function open(args: readonly string[]) {
  const { store, tokens } = await busyStore("broken");
  const served = await serveConsole(store, args);
  return { ...served, store, cookie: await sessionOf(served), secrets: [...tokens, served.secret] };
}

/** One console for each mode and test. */
const opened = new Map<string, ReturnType<typeof open>>();
beforeEach(() => opened.clear());

for (const [title, args, accepted] of [
  ["reads answers any request, shows no token, and writes nothing", [], { share: 0.05, options: pages }],
  [
    "writes answers any request, and acts for a session alone",
    ["--write"],
    { share: 0.01, options: ["/act/pause", "/act/skip", "/act/requeue"] },
  ],
] as const) {
  const writes = args.length > 0;
  fuzz(
    `a console that ${title}`,
    request,
    async (given) => {
      const served = opened.get(title) ?? open(args);
      opened.set(title, served);
      const { origin, cookie, store, secrets } = await served;
      const { method, path, headers, hasSession } = given;
      /** How many items there are, and who holds the lock: the rest changes while a caller waits. */
      const written = async (): Promise<unknown> => ({
        items: (await itemsOf(store)).length,
        holder: store.peek({ pk: "import", sk: "lease" })?.token,
      });
      const before = await written();
      const isPost = method === "POST";
      const answer: Answer | undefined = await ask(origin, {
        method,
        path: isPost ? path : `${path}?${given.query}`,
        headers: { ...headers, ...(hasSession ? { cookie } : {}) },
        body: isPost ? given.body : "",
        // Node refuses to send or to read what is no HTTP, and a body that is too large is cut off.
      }).catch(() => undefined);
      if (answer !== undefined) {
        expect(answer.status, answer.body).not.toBe(500);
        for (const secret of secrets) expect(answer.body).not.toContain(secret);
        expect(answer.body).not.toMatch(/\n\s+at \S.*:\d+:\d+/);
      }
      if (!writes || !hasSession) expect(await written()).toEqual(before);
      return answer?.status === 200 && path.startsWith("/act/") === writes ? [path] : undefined;
    },
    { few: 500, many: 10_000, accepted },
  );
}
