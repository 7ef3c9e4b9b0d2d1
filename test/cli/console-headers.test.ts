/** Every answer of the console carries the headers that keep a page from doing anything else. */
import { LeaseClient } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { type Answer, ask, serveConsole, sessionOf } from "../support/console.ts";

const written = { "x-leasehold-write": "1", "content-type": "application/json" };
const expected = {
  "content-security-policy": expect.stringContaining("default-src 'none'"),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

it.each<
  [
    string,
    readonly string[],
    (to: (path: string, write?: string) => Promise<Answer>) => Promise<Answer>,
    number,
  ]
>([
  ["a page", [], (to) => to("/"), 200],
  ["no page", [], (to) => to("/none"), 404],
  ["a script", [], (to) => to("/script.js"), 200],
  ["a write", ["--write"], (to) => to("/act/pause", `{"key":"other","for":"1m","reason":"r"}`), 200],
  ["a write that is refused", ["--write"], (to) => to("/act/stop", `{"key":"k","id":"1"}`), 409],
  ["a write that is wrong", ["--write"], (to) => to("/act/skip", "[]"), 400],
  ["a write without an action", ["--write"], (to) => to("/act/none", "{}"), 404],
  ["a write to a console that only reads", [], (to) => to("/act/stop", "{}"), 403],
])("on %s", async (_, args, request, status) => {
  const store = new MemoryLeaseStore();
  await new LeaseClient({ store }).acquire("k", { leaseDurationMs: 60_000 });
  const served = await serveConsole(store, args);
  const cookie = await sessionOf(served);
  const answer = await request((path, write) =>
    ask(`${served.origin}${path}`, {
      headers: { cookie, ...(write === undefined ? {} : written) },
      ...(write === undefined ? {} : { method: "POST", body: write }),
    }),
  );
  expect(answer.status).toBe(status);
  expect(answer.headers).toMatchObject(expected);
});

it("a look that has failed is not kept: the next page looks again", async () => {
  const store = new MemoryLeaseStore();
  await new LeaseClient({ store }).acquire("shown again", { leaseDurationMs: 60_000 });
  const scan = store.scan.bind(store);
  store.scan = async () => Promise.reject(new Error("not now"));
  const served = await serveConsole(store, []);
  const headers = { cookie: await sessionOf(served) };
  expect((await ask(`${served.origin}/`, { headers })).status).toBe(500);
  store.scan = scan;
  const { status, body } = await ask(`${served.origin}/`, { headers });
  expect(status).toBe(200);
  expect(body).toContain("shown again");
});
