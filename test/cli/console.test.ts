import { connect } from "node:net";
import { hostname } from "node:os";
import { LeaseClient, LeaseServiceError, type LeaseStore } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { Semaphore } from "@leasehold/client/semaphore";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Kept } from "../../packages/cli/src/console/table-reader.ts";
import { leasehold } from "../support/command-line.ts";
import { ask, busyStore, serveConsole, sessionOf } from "../support/console.ts";
import { put } from "../support/foreign-items.ts";
import { changedStore, lockTable } from "../support/lock-table.ts";
import { eventually } from "../support/patience.ts";
import { goodSettings, scriptedDynamoDb } from "../support/scripted-dynamodb.ts";
import { refuse } from "../support/scripted-server.ts";

const written = { "x-leasehold-write": "1", "content-type": "application/json" };
const dynamodb = scriptedDynamoDb();
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>\u202e\u001b[2J`;

/** They keep a page from doing anything else. */
const headersOfAll = {
  "content-security-policy": [
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; ",
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  ].join(""),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/**
 * A console with a session, or behind something that names this person. Each of its answers has the headers that all have
 * to have.
 */
async function openedConsole(
  store: LeaseStore = new MemoryLeaseStore(),
  args: readonly string[] = [],
  { person, ...options }: Parameters<typeof serveConsole>[2] & { readonly person?: string } = {},
) {
  const served = await serveConsole(store, args, options);
  const headers: Record<string, string> =
    person === undefined ? { cookie: await sessionOf(served) } : { "x-person": person };
  const asked = async (path: string, more: Parameters<typeof ask>[1]) => {
    const answer = await ask(`${served.origin}${path}`, more);
    expect(answer.headers).toMatchObject(headersOfAll);
    return answer;
  };
  const page = (path: string) => asked(path, { headers });
  const act = (name: string, fields: Record<string, string>) =>
    asked(`/act/${name}`, {
      method: "POST",
      headers: { ...written, ...headers },
      body: JSON.stringify(fields),
    });
  return { ...served, headers, page, act };
}

/** What a person reads. */
const textOf = (body: string): string => body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

/** What the form of an action on a page sends besides what is filled in. */
function hiddenIn(body: string, action: string): Record<string, string> {
  const form = body.split(`data-action="${action}"`)[1]?.split("</form>")[0] ?? "";
  const [, fields = "{}"] = /^ data-fields="([^"]*)"/.exec(form) ?? [];
  const characters: Record<string, string> = { "&quot;": '"', "&#39;": "'", "&lt;": "<", "&gt;": ">" };
  const text = fields.replace(/&(quot|#39|lt|gt);/g, (name) => characters[name] ?? "");
  return JSON.parse(text.replaceAll("&amp;", "&"));
}

/** The pages of a busy table, and what a person finds on each. */
const pages = [
  ["/", "&lt;script&gt;alert(1)"],
  ["/?all=1&free=1", "payment-api"],
  [`/key?${new URLSearchParams({ key: hostile })}`, "held"],
  ["/key?key=payment-api", "1 of 5 are taken"],
  ["/jobs", "2026-11-21T03:00:00.000Z: failed"],
  ["/jobs/job?job=report", "All jobs"],
  ["/jobs/run?job=report&slot=2026-11-21T03:00:00.000Z", "Skip this slot"],
  ["/tasks", 'aria-label="1 waiting, 0 running, 0 succeeded, 1 failed, 0 parked, 0 cancelled"'],
  ["/tasks/set?set=orders", "Requeue 1 failed"],
  ["/audit", "What operators did"],
] as const;

describe("the console", () => {
  it.each(pages)("shows what is hostile as text, and no token: %s", async (path, text) => {
    const { store, tokens } = await busyStore(hostile);
    for (const args of [[], ["--write"]]) {
      const { page } = await openedConsole(store, args);
      const { status, body } = await page(path);
      expect([status, body]).toEqual([200, expect.stringContaining(text)]);
      expect(body).not.toMatch(/<script>|<img|[\p{Cf}]/u);
      for (const token of tokens) expect(body).not.toContain(token);
      // Nothing is loaded from other hosts, and nothing of the content runs.
      expect(body).not.toMatch(/(src|href)="(https?:)?\/\/| on[a-z]+="|style="/);
    }
  });

  it("shows each attempt of a run, and the command for another", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "host-1" });
    const [job, slot] = ["nightly report", "2026-11-21T03:00:00.000Z"];
    const runs = new JobRuns(client, job, { maxAttempts: 3 });
    for (const failure of ["no paper", "no ink"])
      await runs.run(slot, () => Promise.reject(new Error(failure))).catch(() => undefined);
    const { page } = await openedConsole(store);
    const { body } = await page(`/jobs/run?${new URLSearchParams({ job, slot })}`);
    expect(body.match(/data-row="\d"/g)).toEqual(['data-row="1"', 'data-row="2"']);
    for (const remark of ["no paper", "no ink"]) expect(body).toContain(remark);
    expect(body).toContain(`leasehold jobs run &#39;${job}&#39; --slot ${slot} -- COMMAND`);
  });

  it.each([
    ["a rebound name", { host: "attacker.example:8787" }, 421],
    ["another origin", { origin: "https://attacker.example" }, 403],
    ["an origin that is hidden", { origin: "null" }, 403],
    ["another site's script", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 403],
  ])("refuses %s, whatever the session", async (_name, headers, expected) => {
    const { origin, headers: session } = await openedConsole();
    for (const path of ["/", "/script.js", "/key?key=a"]) {
      expect((await ask(`${origin}${path}`, { headers: { ...session, ...headers } })).status).toBe(expected);
    }
  });

  it("shows nothing without a session, and opens one by the secret alone, for no script and no other site", async () => {
    const { store } = await busyStore(hostile);
    const { origin, secret } = await serveConsole(store);
    for (const [path] of pages) {
      const { status, body } = await ask(`${origin}${path}`);
      expect([status, body]).toEqual([401, expect.not.stringContaining("payment-api")]);
    }
    const opening = { method: "POST", headers: written, body: secret };
    expect((await ask(`${origin}/session`, { ...opening, body: `${secret}x` })).status).toBe(401);
    const cookie = `leasehold-console-${new URL(origin).port}=${secret}`;
    expect((await ask(`${origin}/`, { headers: { cookie } })).status).toBe(401);
    const { headers } = await ask(`${origin}/session`, opening);
    expect(String(headers["set-cookie"])).toMatch(/; HttpOnly; SameSite=Strict; Path=\/$/);
  });

  it("keeps the sessions of two consoles apart, although a browser sends each the other's cookie", async () => {
    const one = await openedConsole();
    const other = await openedConsole();
    // A browser keeps one cookie of a name for a host, whatever the port: the later one takes the earlier one's place.
    const jar = new Map([one, other].map(({ headers }) => headers.cookie?.split("=") as [string, string]));
    const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
    for (const { origin } of [one, other]) {
      expect((await ask(`${origin}/`, { headers: { cookie } })).status).toBe(200);
    }
  });

  it.each([
    ["0.0.0.0", "127.0.0.1:8787", 401],
    ["0.0.0.0", "192.0.2.7:8787", 401],
    ["0.0.0.0", "[2001:db8::7]:9000", 401],
    ["0.0.0.0", "localhost:9000", 401],
    ["0.0.0.0", `${hostname()}:8787`, 401],
    ["0.0.0.0", "attacker.example:8787", 421],
    ["0.0.0.0", "127.0.0.1.attacker.example", 421],
    ["0.0.0.0", "attacker.example@127.0.0.1", 421],
    ["127.0.0.1", "192.0.2.7:8787", 421],
    ["127.0.0.1", "localhost:1", 421],
    ["127.0.0.1", "LOCALHOST:PORT", 401],
    ["127.0.0.1", "[::1]:PORT", 401],
  ])("that listens on %s takes requests to %j with %i", async (host, name, expected) => {
    const others = host === "0.0.0.0" ? ["--host", host, "--trust-header", "x-person"] : [];
    const served = await serveConsole(new MemoryLeaseStore(), others);
    const { port } = new URL(served.origin);
    const headers = { host: name.replace("PORT", port) };
    const { status } = await ask(`http://127.0.0.1:${port}/`, { headers });
    expect(status).toBe(expected);
  });

  it("writes and opens sessions under its public address, and under its own", async () => {
    const args = ["--write", "--public-url", "https://locks.example"];
    const served = await serveConsole(new MemoryLeaseStore(), args);
    const port = /listens on 127\.0\.0\.1, port (\d+)/.exec(served.said())?.[1] ?? "";
    const own = `127.0.0.1:${port}`;
    for (const [host, origin, isSecure] of [
      ["locks.example", "https://locks.example", true],
      [own, `http://${own}`, false],
    ] as const) {
      const opening = { method: "POST", headers: { ...written, host, origin }, body: served.secret };
      const { status, headers } = await ask(`http://${own}/session`, opening);
      expect(status).toBe(204);
      expect(String(headers["set-cookie"]).includes("; Secure")).toBe(isSecure);
      const wrong = { ...opening, headers: { ...written, host, origin: "http://locks.example" } };
      expect((await ask(`http://${own}/session`, wrong)).status).toBe(403);
    }
  });

  it("answers a filter at once, whatever pattern a link brings", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "a".repeat(200) });
    await client.acquire("import");
    const { page } = await openedConsole(store);
    // A regular expression of it takes longer than anybody waits.
    const endless = `${"*a".repeat(30)}*b`;
    expect((await page(`/?${new URLSearchParams({ owner: endless })}`)).body).toContain("No lock here");
    expect((await page(`/?${new URLSearchParams({ owner: `${"*a".repeat(30)}*` })}`)).body).toContain(
      "import",
    );
  });

  it("refuses every write in read-only mode, and those without the header", async () => {
    const { store, lease } = await busyStore(hostile);
    const readOnly = await openedConsole(store);
    const fields = { key: lease.key, word: lease.key, reason: "test" };
    expect((await readOnly.act("break", fields)).status).toBe(403);
    const open = await openedConsole(store, ["--write"]);
    const bare = { method: "POST", headers: open.headers, body: JSON.stringify(fields) };
    expect((await ask(`${open.origin}/act/break`, bare)).status).toBe(403);
    const without = { method: "POST", headers: written, body: JSON.stringify(fields) };
    expect((await ask(`${open.origin}/act/break`, without)).status).toBe(401);
    for (const { status } of [await open.page("/none"), await open.act("none", {})]) expect(status).toBe(404);
    expect(lease.held).toBe(true);
  });

  it.each([
    ["no JSON", "{", 400],
    ["no object", "[]", 400],
    ["values that are no text", '{"key":1}', 400],
    ["a megabyte", JSON.stringify({ key: "k".repeat(1_000_000) }), 413],
  ])("refuses a body with %s", async (_name, body, status) => {
    const { origin, headers } = await openedConsole(undefined, ["--write"]);
    const sent = { method: "POST", headers: { ...written, ...headers }, body };
    expect((await ask(`${origin}/act/stop`, sent)).status).toBe(status);
  });

  it("breaks the lease that the page has shown, never a later one, and only when the key is typed", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store });
    const { page, act, said } = await openedConsole(store, ["--write"]);
    const shown = async () => hiddenIn((await page("/key?key=import")).body, "break");
    const first = await client.acquire("import");
    const shownFirst = await shown();
    await first.release();
    const second = await client.acquire("import", { owner: "the next" });
    const typed = { reason: "INC-1", word: "import" };
    const late = await act("break", { ...shownFirst, ...typed });
    expect([late.status, late.body]).toEqual([
      409,
      '{"message":"Not done: the next holds it by now. Look again."}',
    ]);
    expect((await act("break", { ...(await shown()), ...typed, word: "imports" })).status).toBe(400);
    expect((await client.inspect("import"))?.token).toBe(second.token);
    expect((await act("break", { ...(await shown()), ...typed })).status).toBe(200);
    expect(await client.inspect("import")).toBeUndefined();
    expect((await page("/audit")).body).toMatch(/break.*INC-1/s);
    expect(said()).toContain("break import");
  });

  it("acts on what has characters that a page does not show as they are", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store });
    const { page, act } = await openedConsole(store, ["--write"]);
    const [key, remark] = ["a\u001b[2J\u202e\nb &#27;", "\u001b[31mno\u001b[0m"];
    await client.acquire(key);
    const { body } = await page(`/key?${new URLSearchParams({ key })}`);
    expect(body).toContain("<code>a\\x1b[2J\\u202e\\x0ab &amp;#27;</code>");
    const typed = { reason: "INC-1", word: "a\\x1b[2J\\u202e\\x0ab &#27;" };
    expect((await act("break", { ...hiddenIn(body, "break"), ...typed })).body).toContain("Broken.");
    const tasks = new TaskSet(client, "orders");
    await tasks.add([{ id: "one\u0007" }]);
    await (await tasks.claim())?.fail(remark, { final: true });
    const requeueing = hiddenIn((await page("/tasks/set?set=orders")).body, "requeue");
    expect((await act("requeue", requeueing)).body).toContain("1 requeued.");
  });

  it("pauses a lock for a while, shows it as paused, and resumes it", async () => {
    const store = new MemoryLeaseStore();
    const { page, act } = await openedConsole(store, ["--write"]);
    expect((await act("pause", { key: "feed", for: "2", reason: "vendor down" })).status).toBe(400);
    expect((await act("pause", { key: "feed", for: "2h", reason: "vendor down" })).status).toBe(200);
    const { body } = await page("/key?key=feed");
    expect(body).toContain("PAUSED");
    expect((await act("resume", hiddenIn(body, "resume"))).status).toBe(200);
    expect(await new LeaseClient({ store }).inspect("feed")).toBeUndefined();
  });

  it("shows what a write has changed, also where a page was read while it was under way", async () => {
    const store = new MemoryLeaseStore();
    let readPage: () => Promise<unknown> = async () => undefined;
    const slow = changedStore(store, {
      update: async (...call) => {
        await readPage();
        return await store.update(...call);
      },
      transact: async (...call) => {
        await readPage();
        return await store.transact(...call);
      },
    });
    const { page, act } = await openedConsole(slow, ["--write", "--every", "1h"]);
    readPage = async () => {
      readPage = async () => undefined;
      await page("/");
    };
    expect((await act("pause", { key: "feed", for: "2h", reason: "vendor down" })).status).toBe(200);
    expect((await page("/")).body).toContain("feed");
  });

  it("looks once for tabs that ask at the same time, again when the look is old, and keeps no look from before a write", async () => {
    let now = 0;
    const looks = Array.from({ length: 4 }, () => Promise.withResolvers<string>());
    const look = vi.fn(() => looks[look.mock.calls.length - 1]?.promise ?? Promise.reject(new Error("none")));
    const kept = new Kept<string>(
      look,
      () => 1_000,
      () => now,
    );
    const tabs = [kept.get(), kept.get()];
    now = 5_000;
    tabs.push(kept.get());
    looks[0]?.resolve("first");
    expect(await Promise.all(tabs)).toEqual(["first", "first", "first"]);
    expect(look).toHaveBeenCalledTimes(1);
    const before = kept.get();
    kept.forget();
    const after = kept.get();
    looks[1]?.reject(new Error("not now"));
    await expect(before).rejects.toThrow("not now");
    expect(kept.get()).toBe(after);
    looks[2]?.resolve("third");
    expect(await after).toBe("third");
  });

  it("says nothing of a person who leaves, nor of the looks that its own end cuts off", async () => {
    const store = new MemoryLeaseStore();
    const scan = vi.fn<LeaseStore["scan"]>(
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    const { origin, page, said, end } = await openedConsole(changedStore(store, { scan }));
    const before = said();
    const { host, port } = new URL(origin);
    const leaver = connect(Number(port), "127.0.0.1");
    const head = `POST /session HTTP/1.1\r\nHost: ${host}\r\nx-leasehold-write: 1\r\nContent-Length: 9\r\n\r\n`;
    leaver.write(`${head}half`, () => leaver.resetAndDestroy());
    const left = page("/").catch(() => undefined);
    await eventually(() => expect(scan).toHaveBeenCalled());
    expect(await end()).toBe(0);
    await left;
    expect(said()).toBe(before);
  });

  it("skips a slot and requeues tasks that have not changed since, under the name of the person in the trusted header", async () => {
    const { store, client } = await busyStore(hostile);
    const args = ["--write", "--trust-header", "X-Person"];
    const { origin, act, page } = await openedConsole(store, args, { person: "bob" });
    expect((await ask(`${origin}/`)).status).toBe(401);
    const slot = "2026-11-21T03:00:00.000Z";
    const failedRun = (await page(linked((await page("/jobs")).body, /^!$/))).body;
    const skipping = hiddenIn(failedRun, "skip");
    expect((await act("skip", { ...skipping, reason: "holiday" })).status).toBe(200);
    expect((await new JobRuns(client, "report").get(slot))?.state).toBe("skipped");
    const shown = hiddenIn((await page("/tasks/set?set=orders&state=failed")).body, "requeue");
    const requeueing = { ...shown, reason: "INC-2" };
    const changed = await act("requeue", { ...requeueing, remark: "another" });
    expect(changed.body).toContain("0 requeued. 1 have changed");
    expect((await act("requeue", requeueing)).body).toContain("1 requeued.");
    // What changes nothing leaves no trace.
    expect((await act("skip", { ...skipping, reason: "again" })).status).toBe(200);
    expect((await act("requeue", requeueing)).body).toContain("0 requeued.");
    const traces = await Array.fromAsync(new LeaseOperator(client, { by: "test" }).audit());
    expect(traces.map(({ action, key, sortKey, by, reason }) => [action, key, sortKey, by, reason])).toEqual(
      expect.arrayContaining([
        ["skip", "report", `run#${slot}`, "bob", "holiday"],
        ["requeue", "orders", "done#one", "bob", "INC-2"],
      ]),
    );
    expect(traces).toHaveLength(2);
    expect((await page("/audit")).body).toMatch(/requeue.*bob.*INC-2/s);
  });

  it("says how many tasks it has requeued where the service fails half-way", async () => {
    const store = new MemoryLeaseStore();
    const tasks = new TaskSet(new LeaseClient({ store }), "orders");
    await tasks.add([{ id: "one" }, { id: "two" }]);
    for (const _ of ["one", "two"]) await (await tasks.claim())?.fail("no", { final: true });
    const failure = new LeaseServiceError("LEASE_THROTTLED", "throttled");
    vi.spyOn(TaskSet.prototype, "requeue").mockResolvedValueOnce(true).mockRejectedValueOnce(failure);
    const { act } = await openedConsole(store, ["--write"]);
    const ids = JSON.stringify(["one", "two"]);
    const { status, body } = await act("requeue", { set: "orders", state: "parked", remark: "no", ids });
    expect([status, body]).toEqual([503, '{"message":"1 requeued. throttled"}']);
  });

  it("does not keep settings that could not be read: the next page reads them again", async () => {
    const { page } = await openedConsole(new MemoryLeaseStore(), [], { env: dynamodb.env });
    dynamodb.answer({ DescribeTable: refuse("AccessDeniedException") });
    expect((await page("/table")).body).toContain("The settings cannot be seen");
    dynamodb.answer(goodSettings);
    expect((await page("/table")).body).not.toContain("The settings cannot be seen");
  });
});

/** A table with this many locks, `key/0000` and so on; each has been held for 10 s longer than the next. */
async function manyLocks(count: number) {
  const { clock, store, holder } = lockTable();
  const client = holder("worker-1");
  for (let index = 0; index < count; index += 1) {
    const owner = index % 2 === 0 ? "even" : "odd";
    const key = `key/${String(index).padStart(4, "0")}`;
    await client.acquire(key, { owner, leaseDurationMs: 86_400_000 });
    await clock.advance(10_000);
  }
  const { page } = await openedConsole(store, [], { clock });
  return async (path: string): Promise<string> => (await page(path)).body;
}

const keysIn = (body: string): readonly string[] =>
  [...body.matchAll(/<bdi>(key\/\d+)</g)].map(([, key = ""]) => key);

/** The address behind a link's text. */
function linked(body: string, text: RegExp): string {
  const links = [...body.matchAll(/<a [^>]*?href="([^"]*)"[^>]*>(.*?)<\/a>/gs)];
  const found = links.find(([, , content = ""]) => text.test(content.replace(/<[^>]*>/g, "")));
  return (found?.[1] ?? "").replaceAll("&amp;", "&");
}

describe("a list of the console", () => {
  it("sorts by the column that is chosen, in both directions, and names it to screen readers", async () => {
    const page = await manyLocks(3);
    const plain = await page("/");
    expect(plain).not.toContain("aria-sort");
    expect(plain).toContain("<caption>A row for each key</caption>");
    expect(plain).toMatch(/<meter [^>]*aria-label="[^"]+ left">/);
    const longest = await page(linked(plain, /^Held for/));
    expect(keysIn(longest)).toEqual(["key/0000", "key/0001", "key/0002"]);
    expect(longest).toMatch(/class="number sorts" aria-sort="descending">/);
    const shortest = await page(linked(longest, /^Held for/));
    expect(keysIn(shortest)).toEqual(["key/0002", "key/0001", "key/0000"]);
    expect(shortest).toMatch(/class="number sorts" aria-sort="ascending">/);
    expect(keysIn(await page("/?sort=-key"))).toEqual(["key/0002", "key/0001", "key/0000"]);
    expect(keysIn(await page("/?sort=constructor"))).toHaveLength(3);
  });

  it("puts rows without a value last, in both directions", async () => {
    const { clock, store, holder } = lockTable();
    const client = holder("worker-1");
    await client.acquire("key/0001");
    await new Semaphore(client, "key/0000", { permits: 1 }).acquire();
    const { page } = await openedConsole(store, [], { clock });
    for (const order of ["held-for", "-held-for"]) {
      const { body } = await page(`/?sort=${order}`);
      expect(keysIn(body)).toEqual(["key/0001", "key/0000"]);
    }
  });

  it("has pages, which keep the order and the filters, and end with the last one", async () => {
    const page = await manyLocks(1_000);
    const first = await page("/?sort=-key&owner=odd");
    expect(keysIn(first)).toHaveLength(100);
    expect(first).toContain("1–100 of 500");
    expect(keysIn(first)[0]).toBe("key/0999");
    const second = await page(linked(first, /^Next$/));
    expect(second).toContain("101–200 of 500");
    expect(keysIn(second)[0]).toBe("key/0799");
    const last = await page(linked(first, /^Last$/));
    expect(keysIn(last).at(-1)).toBe("key/0001");
    expect(linked(last, /^Next$/)).toBe("");
    expect(keysIn(await page("/?sort=-key&owner=odd&page=99999"))).toEqual(keysIn(last));
    for (const none of ["0", "-1", "x", "1e9x"]) {
      expect(keysIn(await page(`/?sort=-key&owner=odd&page=${none}`))).toEqual(keysIn(first));
    }
  });

  it("shows each filter with a link that takes it away, and a link that clears all", async () => {
    const page = await manyLocks(4);
    expect(await page("/?sort=key")).not.toContain("Clear filters");
    const filtered = await page("/?owner=odd&prefix=key%2F0003&sort=key");
    expect(keysIn(filtered)).toContain("key/0003");
    expect(keysIn(filtered)).not.toContain("key/0001");
    expect(linked(filtered, /Remove the filter Holder: odd/)).toBe("/?prefix=key%2F0003&sort=key");
    expect(linked(filtered, /Remove the filter Key begins with/)).toBe("/?owner=odd&sort=key");
    expect(linked(filtered, /^Clear filters$/)).toBe("/?sort=key");
    expect(filtered).toMatch(
      /<form [^>]*method="get" action="\/"[^>]*><input type="hidden" name="sort" value="key">/,
    );
    const wrong = await page("/?older=2");
    expect(wrong).toContain("&quot;2&quot; is no duration");
    expect(linked(wrong, /^Clear filters$/)).toBe("/");
  });

  it("counts the locks of each state, and shows those of one", async () => {
    const { store } = await busyStore(hostile);
    const { page } = await openedConsole(store);
    const { body } = await page("/");
    expect(body.replace(/<[^>]*>/g, "")).toMatch(/In use 3.*Held 3.*Waited for 1.*Expired 0/s);
    const wanted = (await page(linked(body, /^Waited for/))).body;
    expect(wanted).toContain("&lt;script&gt;");
    expect(wanted).not.toContain("payment-api");
  });

  it("cuts a long key in its middle, and its own page has the whole", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store });
    const [one, other] = ["a", "b"].map((end) => "k".repeat(499) + end);
    for (const key of [one ?? "", other ?? ""]) await client.acquire(key);
    const { page } = await openedConsole(store);
    const { body } = await page("/");
    expect(body).toMatch(/>k+…k+a<\/bdi>/);
    expect(body).toMatch(/>k+…k+b<\/bdi>/);
    expect(body).not.toContain(`>${one}<`);
    expect((await page(linked(body, /a$/))).body).toContain(`>${one}<`);
  });
});

describe("the frame of the console's pages", () => {
  it("names the table and its place, and whether it writes, in words", async () => {
    const store = new MemoryLeaseStore("arn:aws:dynamodb:eu-central-1:111122223333:table/leases");
    for (const [args, mode] of [
      [[], "Read-only"],
      [["--write"], "Writes"],
    ] as const) {
      const { page, origin } = await openedConsole(store, args, { env: { AWS_PROFILE: "prod" } });
      const { body } = await page("/");
      expect(textOf(body)).toContain(`leases eu-central-1 account 111122223333 profile prod ${mode}`);
      expect(body).toMatch(/<body [^>]*>\s*<a class="skip" href="#main">/);
      expect(body).toContain(`data-mode="${mode === "Writes" ? "write" : "read"}"`);
      expect(/<title>(.*)<\/title>/.exec(body)?.[1]).toBe(
        mode === "Writes" ? "Locks · leases · WRITES · Leasehold" : "Locks · leases · Leasehold",
      );
      const locked = (await ask(`${origin}/`)).body;
      expect(locked).not.toContain("111122223333");
      expect(locked).not.toContain(mode);
    }
  });

  it("shows one place in one colour, and others in others", async () => {
    const colors = new Set<string | undefined>();
    for (const name of ["leases-prod", "leases-staging", "leases-dev"]) {
      const { page } = await openedConsole(new MemoryLeaseStore(name));
      const [one, other] = [(await page("/")).body, (await page("/jobs")).body];
      const color = (body: string) => /class="environment (color\d)"/.exec(body)?.[1];
      expect(color(one)).toBe(color(other));
      colors.add(color(one));
    }
    expect(colors.size).toBeGreaterThan(1);
  });
});

describe("what the console shows of work", () => {
  it("a job: its schedule, the next run, and its slots as marks with words, the missed one too", async () => {
    const { clock, store, holder } = lockTable();
    const client = holder("worker-1");
    const runs = new JobRuns(client, "report", { schedule: "rate(1 hour)" });
    await runs.run("2026-11-22T01:00:00.000Z", async () => undefined);
    await runs.run("2026-11-22T03:00:00.000Z", async () => {
      await new Promise<void>((resolve) => {
        clock.schedule(resolve, 5_000);
        void clock.advance(5_000);
      });
    });
    await clock.advance(120_000);
    const { page } = await openedConsole(store, [], { clock });
    const { body } = await page("/jobs");
    expect(textOf(body)).toMatch(
      /report rate\(1 hour\) UTC 2026-11-22 04:00:00 in 57m 55s succeeded 2026-11-22 03:00:00 5\.0s/,
    );
    expect(body).toContain('aria-label="2026-11-22T01:00:00.000Z: succeeded"');
    expect(body).toContain('aria-label="2026-11-22T02:00:00.000Z: missed"');
    const own = (await page(linked(body, /^report$/))).body;
    expect(own).toContain("rate(1 hour)");
    expect(own.match(/data-row="2026/g)?.length).toBeGreaterThan(3);
  });

  it("the other jobs, and the runs of one, where its schedule cannot be read on this machine", async () => {
    const { store } = lockTable();
    for (const job of ["report", "moon"]) {
      await new JobRuns(new LeaseClient({ store }), job, { schedule: "rate(1 hour)" }).run(
        new Date(Date.now() - 3_600_000).toISOString(),
        () => undefined,
      );
    }
    put(store, "leasehold/registry", "job#moon", { schedule: "rate(1 hour)", timeZone: "Moon/Tycho" });
    const { page } = await openedConsole(store);
    for (const path of ["/jobs", "/jobs/job?job=moon"]) {
      expect(await page(path)).toMatchObject({ status: 200, body: expect.stringContaining("Moon/Tycho") });
    }
    const { code, stdout, stderr } = await leasehold(["jobs", "--json"], { store });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject([
      { job: "moon" },
      { job: "report", missed: expect.any(Number) },
    ]);
    expect(stderr).toContain("moon: its schedule rate(1 hour) cannot be read here");
  });

  it("a set of tasks: links to those in one state", async () => {
    const { store } = await busyStore(hostile);
    const { page } = await openedConsole(store);
    const failed = (await page("/tasks/set?set=orders&state=failed")).body;
    expect(failed.match(/<tr role="row" data-row/g)).toHaveLength(1);
    expect(failed.replace(/<[^>]*>/g, "")).toMatch(/all 2.*waiting 1.*failed 1/);
  });

  it("a key: a bar for each holder and each waiting caller, with its times and its end in words", async () => {
    const { clock, store, holder } = lockTable();
    const client = holder("now");
    const first = await holder("before").acquire("import");
    await clock.advance(60_000);
    await first.release();
    await client.acquire("import", { leaseDurationMs: 600_000 });
    await clock.advance(30_000);
    const waiting = new AbortController();
    const wait = { order: fair(), waitMs: 600_000, signal: waiting.signal, owner: "next" };
    const waiter = client.acquire("import", wait).catch(() => undefined);
    onTestFinished(async () => {
      waiting.abort();
      await waiter;
      await client.close();
    });
    await clock.advance(10_000);
    const { page } = await openedConsole(store, [], { clock });
    const { body } = await page("/key?key=import");
    const rows = [...body.matchAll(/<tr role="row" data-row="(?:past|holds|waits) .*?<\/tr>/gs)].map(
      ([row]) => row,
    );
    expect(rows.map((row) => textOf(row).trim())).toEqual([
      "before 2026-11-22 03:00:00 1m 00s released",
      "now 2026-11-22 03:01:00 40s held",
      "next 2026-11-22 03:01:30 10s place 1",
    ]);
    const bars = rows.map((row) => /<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%"/.exec(row)?.slice(1));
    expect(bars).toEqual([
      ["past", "0.000", "60.000"],
      ["holds", "60.000", "40.000"],
      ["waits", "90.000", "10.000"],
    ]);
  });
});
