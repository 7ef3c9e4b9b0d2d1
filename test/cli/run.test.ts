import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { LeaseClient, LeaseServiceError, type LeaseStore } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Child, checkExecutable } from "../../packages/cli/src/work/child.ts";
import { slotAt, slotOfNow } from "../../packages/cli/src/work/hold.ts";
import { leasehold } from "../support/command-line.ts";
import { changedStore, lockTable } from "../support/lock-table.ts";
import { eventually } from "../support/patience.ts";
import { signals, stubChild } from "../support/stub-child.ts";
import { farAway } from "../support/wrong-clocks.ts";

it.each([
  [75, "is held by bob;", []],
  [80, "is done; nothing to do", ["--slot", "2026-11-22"]],
])("leasehold run ends with %i where the service does not tell more: %s", async (exitCode, text, flags) => {
  const { store, clock, holder } = lockTable();
  const lease = await holder("bob").acquire("k", { slot: "2026-11-22" });
  if (flags.length > 0) await lease.complete();
  const query = () => Promise.reject(new LeaseServiceError("LEASE_SERVICE_FAILED", "busy"));
  const { code, stderr } = await leasehold(["run", "k", ...flags, "--", "true"], {
    ...{ store: changedStore(store, { query }), clock, env: { PATH: process.env.PATH } },
  });
  expect([code, stderr]).toEqual([exitCode, expect.stringContaining(text)]);
});

describe("a second kind of use of one key", () => {
  const env = { PATH: process.env.PATH };
  const kinds: Readonly<Record<string, readonly string[]>> = {
    lock: [],
    semaphore: ["--permits", "3"],
    "read-write lock": ["--read"],
  };
  const pairs = Object.keys(kinds).flatMap((first) =>
    Object.keys(kinds).flatMap((second) => (first === second ? [] : [[first, second] as const])),
  );
  const run = (store: MemoryLeaseStore, kind: string, ...flags: string[]) =>
    leasehold(["run", "k", ...(kinds[kind] ?? []), ...flags, "--", "true"], { store, env });

  it.each(pairs)("a %s is not used as a %s, unless it is allowed", async (first, second) => {
    const store = new MemoryLeaseStore();
    expect((await run(store, first)).code).toBe(0);
    const { code, stderr } = await run(store, second);
    expect(code).toBe(64);
    expect(stderr).toContain(`k is used as a ${first}`);
    expect(stderr).toContain("--mixed-ok");
    expect((await run(store, first)).code).toBe(0);
    expect((await run(store, second, "--mixed-ok")).code).toBe(0);
    // It is used in both ways from then on.
    expect((await run(store, second)).code).toBe(0);
  });

  it.each(Object.keys(kinds))("a pause is no use of a key: a %s is had after it", async (kind) => {
    const store = new MemoryLeaseStore();
    const operator = new LeaseOperator(new LeaseClient({ store }), { by: "alice" });
    await operator.pause("k", { forMs: 60_000, reason: "r" });
    expect((await run(store, kind)).code).toBe(75);
    await operator.resume("k");
    expect((await run(store, kind)).code).toBe(0);
  });
});

describe("a child of leasehold run", () => {
  const env = { PATH: process.env.PATH };
  it.each([
    ["that --max stops", 124, async () => undefined],
    [
      "whose lease an operator asks back",
      76,
      async (operator: LeaseOperator, token: string) => await operator.stop("k", { token }),
    ],
  ])("%s, and that ends with 0, has not done its slot: exit %i", async (_, exitCode, intervene) => {
    const [store, clock] = [new MemoryLeaseStore(), new ManualClock()];
    const client = new LeaseClient({ store, clock });
    const { started } = stubChild(0);
    const args = ["run", "k", "--slot", "s", "--max", "20s", "--", "true"];
    const called = leasehold(args, { store, clock, env });
    await started();
    const { token = "" } = (await client.inspect("k")) ?? {};
    await intervene(new LeaseOperator(client, { by: "alice" }), token);
    await clock.advance(20_000);
    expect((await called).code).toBe(exitCode);
    expect(await client.doneSlot("k")).toBeUndefined();
    expect(await client.inspect("k")).toBeUndefined();
  });

  it("is not started when its lease has ended before", async () => {
    const { store, clock, holder } = lockTable();
    const { promise: answer, resolve: answers } = Promise.withResolvers<void>();
    const query = vi.fn<LeaseStore["query"]>(async (...call) => {
      await answer;
      return await store.query(...call);
    });
    const { got } = stubChild(0);
    const start = vi.mocked(Child.start);
    const lease = await holder("another").acquire("k");
    const args = ["run", "k", "--wait", "1m", "--lease", "5s", "--no-heartbeat", "--", "true"];
    const called = leasehold(args, { store: changedStore(store, { query }), clock, env });
    // Who holds the lock is asked for the message alone, and answered late.
    await eventually(() => expect(query).toHaveBeenCalled());
    await lease.release();
    await clock.advance(3_000);
    expect((await holder("another").inspect("k"))?.owner).toContain("alice");
    await clock.advance(5_000);
    answers();
    const { code, stderr } = await called;
    expect(code).toBe(76);
    expect(stderr).toContain('the lease of "k" is lost (expired)');
    expect(start).not.toHaveBeenCalled();
    expect(got).toEqual([]);
  });

  it("gets the signals that come before it has started", async () => {
    const store = new MemoryLeaseStore();
    const { promise: hasStarted, resolve: start } = Promise.withResolvers<void>();
    const { got, started } = stubChild(0, hasStarted);
    const { onRedirect, send } = signals();
    const called = leasehold(["run", "k", "--", "true"], { store, env, onRedirect });
    await started();
    send("SIGUSR1");
    start();
    expect((await called).code).toBe(0);
    expect(got).toEqual(["SIGUSR1"]);
  });
});

describe("a command", () => {
  it("is looked for in the other folders of PATH where one of them cannot be read", async () => {
    const folder = await mkdtemp(join(tmpdir(), "leasehold-path-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    // Nobody can read it, root included.
    const loop = join(folder, "loop");
    await symlink(loop, loop);
    const env = { PATH: [loop, process.env.PATH].join(delimiter) };
    expect(() => checkExecutable("true", env)).not.toThrow();
    expect(() => checkExecutable("no-such-command", env)).toThrow("no-such-command: not found");
  });

  it("gets no slot of another leasehold run around it", async () => {
    const env = { PATH: process.env.PATH, LEASEHOLD_KEY: "outer", LEASEHOLD_SLOT: "2026-11-22" };
    const command = ["sh", "-c", 'test -z "$LEASEHOLD_SLOT"'];
    const { code } = await leasehold(["run", "k", "--", ...command], { store: new MemoryLeaseStore(), env });
    expect(code).toBe(0);
  });
});

describe("leasehold run --reentrant", () => {
  it("does not run where nobody holds the key any more, nor under the lease of another holder", async () => {
    const store = new MemoryLeaseStore();
    const env = { PATH: process.env.PATH, LEASEHOLD_KEY: "k", LEASEHOLD_TOKEN: "of the outer run" };
    const refused = { code: 76, stderr: expect.stringContaining("no longer holds k") };
    const call = () => leasehold(["run", "k", "--reentrant", "--", "true"], { store, env });
    expect(await call()).toMatchObject(refused);
    await new LeaseClient({ store, owner: "another" }).acquire("k");
    expect(await call()).toMatchObject(refused);
  });

  it.each([
    ["runs under the lease whose token and fencing token it was given", 0, 0],
    ["does not run where a late copy of the outer acquire has brought the token back alone", 1, 76],
  ])("%s", async (_, more, expected) => {
    const store = new MemoryLeaseStore();
    const { token, fencingToken } = await new LeaseClient({ store, owner: "outer" }).acquire("k");
    const given = { LEASEHOLD_TOKEN: token, LEASEHOLD_FENCING_TOKEN: String(fencingToken - more) };
    const env = { PATH: process.env.PATH, LEASEHOLD_KEY: "k", ...given };
    const { code } = await leasehold(["run", "k", "--reentrant", "--", "true"], { store, env });
    expect(code).toBe(expected);
  });

  it("does not run under a lease whose time is over, although nobody has taken it yet", async () => {
    const { store, clock, holder } = lockTable();
    const { token, fencingToken } = await holder("outer").acquire("k", { leaseDurationMs: 10_000 });
    const given = { LEASEHOLD_TOKEN: token, LEASEHOLD_FENCING_TOKEN: String(fencingToken) };
    const env = { PATH: process.env.PATH, LEASEHOLD_KEY: "k", ...given };
    await clock.advance(20_000);
    const { code } = await leasehold(["run", "k", "--reentrant", "--", "true"], { store, clock, env });
    expect(code).toBe(76);
  });
});

describe("the slot of now", () => {
  it("is a minute, an hour or a day in UTC", () => {
    const at = Date.parse("2026-11-22T02:07:09.500Z");
    expect(slotAt(at, "minute")).toBe("2026-11-22T02:07Z");
    expect(slotAt(at, "hour")).toBe("2026-11-22T02Z");
    expect(slotAt(at, "day")).toBe("2026-11-22");
  });

  it.each([
    ["is right", 0, "2026-11-22"],
    ["is behind by an hour", -3_600_000, "2026-11-22"],
    ["is ahead by three seconds, and cron has fired by it", 3_000, "2026-11-23"],
    ["is ahead by an hour", 3_600_000, "2026-11-22"],
  ])("goes by the service's time where the machine's clock %s", async (_, aheadMs, slot) => {
    const serviceTime = Date.parse("2026-11-22T23:59:58.000Z");
    const clock = new ManualClock(serviceTime + aheadMs);
    const store = farAway(new MemoryLeaseStore(), () => serviceTime);
    expect(await slotOfNow(new LeaseClient({ store, clock }), "k", "day")).toBe(slot);
  });
});
