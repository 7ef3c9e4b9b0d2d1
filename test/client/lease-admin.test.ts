/** How other holders' leases are read: so that nothing that was written before is missed, on no page. */
import { LeaseClient } from "@leasehold/client";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock: new ManualClock(), owner: "me" });
});

describe.each<[string, () => Promise<unknown>]>([
  ["inspect", () => client.inspect("k")],
  ["inspectAll", () => adminOf(client).inspectAll("k")],
  ["describe", () => adminOf(client).describe("k")],
  ["doneSlot", () => client.doneSlot("k")],
  ["forceRelease of a permit", () => adminOf(client).forceRelease("k", { sortKey: "semaphore", token: "t" })],
])("%s", (_, read) => {
  it("reads once, and sees every earlier write", async () => {
    await read();
    expect(store.calls).toMatchObject([{ consistent: true, readsKey: "k" }]);
  });
});

describe("a key whose items do not fit into one page", () => {
  const sortKeys = ["lease", "semaphore", expect.stringMatching(/^task#/)];

  beforeEach(async () => {
    await (await client.acquire("k", { slot: "7" })).complete();
    await client.acquire("k");
    const tasks = new TaskSet(client, "k");
    await tasks.add([{ id: "a" }]);
    await tasks.claim();
    await new Semaphore(client, "k", { permits: 1 }).acquire();
    store.calls.length = 0;
    const query = store.query.bind(store);
    // Each page is larger than the one before, so that a walk from the beginning ends as well.
    store.query = (request, options) => query({ ...request, limit: 1 + store.count("query") }, options);
  });

  it("is inspected with each of its leases once", async () => {
    const leases = await adminOf(client).inspectAll("k");
    expect(leases.map(({ sortKey }) => sortKey)).toEqual(sortKeys);
    expect(store.count("query")).toBe(2);
  });

  it("is described with each of its leases once, and with the slot that is done", async () => {
    const { leases, doneSlot } = await adminOf(client).describe("k");
    expect(leases.map(({ sortKey }) => sortKey)).toEqual(sortKeys);
    expect(doneSlot).toBe("7");
  });
});

it("the past of a run is not described as the lock's", async () => {
  await new JobRuns(client, "k").run("2026-01-01T00:00:00.000Z", () => undefined);
  expect(await adminOf(client).describe("k")).toMatchObject({
    leases: [],
    lastHolder: undefined,
    doneSlot: undefined,
  });
});

describe("a list", () => {
  it("shows all locks with an empty prefix", async () => {
    for (const key of ["a", "b"]) await client.acquire(key);
    const keys: string[] = [];
    for await (const { key } of adminOf(client).list({ prefix: "" })) keys.push(key);
    expect(keys).toEqual(["a", "b"]);
  });

  it("shows the locks with a prefix, and no others", async () => {
    for (const key of ["a/1", "a/2", "b/1"]) await client.acquire(key);
    const keys: string[] = [];
    for await (const { key } of adminOf(client).list({ prefix: "a/" })) keys.push(key);
    expect(keys).toEqual(["a/1", "a/2"]);
  });

  it("goes on behind pages without any lease", async () => {
    await client.acquire("k");
    const scan = store.scan.bind(store);
    const next = { pk: "free", sk: "lease" };
    let empty = 2;
    store.scan = async ({ after: _, ...request }, call) =>
      empty-- > 0 ? { items: [], next } : await scan(request, call);
    const pages: unknown[] = [];
    for await (const page of adminOf(client).listPages()) pages.push(page);
    expect(pages).toMatchObject([{ leases: [], next }, { leases: [], next }, { leases: [{ key: "k" }] }]);
  });

  it("goes on behind a lease, by its key and its sort key", async () => {
    for (const key of ["a", "b"]) await client.acquire(key);
    const { value } = await adminOf(client)
      .listPages({ after: { pk: "a", sk: "lease" } })
      .next();
    expect(value).toMatchObject({ leases: [{ key: "b" }] });
  });

  it("has no cursor on its last page", async () => {
    expect((await adminOf(client).listPages().next()).value).toStrictEqual({ leases: [] });
  });
});
