import { LeaseClient, type LeaseEvent } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];

const clientOf = (owner: string): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs: 10_000, onEvent: (event) => events.push(event) });

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
});

/** Lets the next write land, and then again: its caller gets the second answer, as where the SDK has repeated a request. */
function repeatNextWrite(inBetween: () => Promise<unknown>): void {
  const update = store.update.bind(store);
  store.update = async (request, options) => {
    store.update = update;
    await update(request, options);
    await inBetween();
    return { ...(await update(request, options)), retried: true };
  };
}

describe("a completion whose answer is lost", () => {
  it("of a slot that is not done stays unknown, and so does a release", async () => {
    for (const end of ["complete", "release"] as const) {
      const lease = await clientOf("a").acquire(`${end}-k`, { slot: "7" });
      const update = store.update.bind(store);
      store.update = async (request, options) => {
        store.update = update;
        await adminOf(clientOf("b")).forceRelease(lease.key, { token: lease.token });
        await (await clientOf("b").acquire(lease.key)).release();
        await (await clientOf("c").acquire(lease.key)).release();
        const { applied, item } = await update(request, options);
        const { brokenToken: _, ...rest } = item ?? {};
        return { applied, item: rest, retried: true };
      };
      await expect(lease[end]()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    }
  });
});

describe("an acquire whose answer is lost", () => {
  it("that waits recognises its own write at its next attempt, and holds a whole lease from then on", async () => {
    store.next("answer lost");
    const waiting = clientOf("a").acquire("k", { waitMs: 60_000 });
    await clock.advance(1_000);
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect(await clientOf("b").inspect("k")).toMatchObject({
      token: lease.token,
      expiresAt: lease.expiresAt,
    });
    expect(events.some((event) => event.type === "contended")).toBe(false);
  });

  it("and that lands late, while its caller waits for another holder, is recognised at the next look", async () => {
    const held = await clientOf("a").acquire("k", { leaseDurationMs: 60_000 });
    const waiting = clientOf("b").acquire("k", { waitMs: 60_000 });
    await clock.advance(100);
    const late = store.calls.at(-1)?.requests[0];
    await held.release();
    expect(late && store.table.updateNow(late).applied).toBe(true);
    await clock.advance(1_000);
    expect((await waiting).held).toBe(true);
  });

  it("and that lands late, unseen by its caller's last look, is taken back", async () => {
    store.next("request lost");
    const retry = { strategy: "fixed", delayMs: 600 } as const;
    const waiting = clientOf("a").acquire("k", { waitMs: 1_000, retry });
    const outcome = expect(waiting).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE" });
    await settled();
    const [late] = store.calls[0]?.requests ?? [];
    const held = await clientOf("b").acquire("k");
    await clock.advance(600);
    const lagging = store.table.peek({ pk: "k", sk: "lease" });
    store.get = async () => lagging;
    await held.release();
    expect(late && store.table.updateNow(late).applied).toBe(true);
    await clock.advance(400);
    await outcome;
    await settled();
    expect(await clientOf("b").tryAcquire("k")).toBeDefined();
  });

  it("and whose caller aborts is taken back", async () => {
    store.next("hangs");
    const controller = new AbortController();
    const acquiring = clientOf("a").acquire("k", { signal: controller.signal });
    await settled();
    controller.abort(new Error("enough"));
    await expect(acquiring).rejects.toThrow("enough");
    await settled();
    expect(await clientOf("b").inspect("k")).toBeUndefined();
  });

  it("and that never arrived is refused when it arrives after all, for its token is revoked", async () => {
    store.next("request lost");
    await expect(clientOf("a").acquire("k")).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await settled();
    const [late] = store.calls[0]?.requests ?? [];
    expect(late && store.table.updateNow(late).applied).toBe(false);
  });
});

it("a token that lands twice bears another version, so that whoever watched the first is not deceived", async () => {
  const watcher = clientOf("watcher");
  store.next("answer lost");
  const waiting = clientOf("a").acquire("k", { waitMs: 60_000, leaseDurationMs: 1_000 });
  await settled();
  expect(await watcher.tryAcquire("k")).toBeUndefined();
  const seen = await watcher.inspect("k");
  clock.freeze(2_001);
  const other = await clientOf("b").acquire("k", { leaseDurationMs: 1_000 });
  await other.release();
  await clock.advance(300);
  const lease = await waiting;
  expect(lease.token).toBe(seen?.token);
  expect((await watcher.inspect("k"))?.version).not.toBe(seen?.version);
  expect(await watcher.tryAcquire("k")).toBeUndefined();
  expect(lease.held).toBe(true);
});

it("a takeover that never arrived is refused when it arrives after all, for its token is revoked", async () => {
  await clientOf("dead").acquire("k");
  await clock.advance(11_001);
  store.next(undefined, "request lost");
  await expect(clientOf("a").acquire("k")).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  const late = store.calls[2]?.requests[0];
  await settled();
  expect(late?.values).toHaveProperty(":ifVersion");
  expect(late && store.table.updateNow(late).applied).toBe(false);
  expect((await clientOf("b").acquire("k")).held).toBe(true);
});

it("a takeover that lands while it is being taken back is taken back all the same", async () => {
  await clientOf("dead").acquire("k");
  await clock.advance(11_001);
  store.next(undefined, "request lost");
  const update = store.update.bind(store);
  store.update = async (request, options) => {
    const result = await update(request, options);
    const isCancel = request.condition.includes(" OR ");
    const late = store.calls[2]?.requests[0];
    if (isCancel && !result.applied && late) expect(store.table.updateNow(late).applied).toBe(true);
    return result;
  };
  await expect(clientOf("a").acquire("k")).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  await settled();
  expect(await clientOf("b").inspect("k")).toBeUndefined();
});

describe("a renewal whose answer is lost", () => {
  it("leaves the lease as it stands until its deadline, and may be repeated", async () => {
    const lease = await clientOf("a").acquire("k");
    await clock.advance(4_000);
    store.next("answer lost");
    await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(lease.remainingMs()).toBe(6_000);
    await lease.renew();
    expect(lease.remainingMs()).toBe(10_000);
  });

  it("and that the service repeats is recognised as one's own", async () => {
    const lease = await clientOf("a").acquire("k");
    const update = store.update.bind(store);
    store.update = async (request, options) => {
      await update(request, options);
      return await update(request, options);
    };
    await clock.advance(4_000);
    await lease.renew();
    expect(lease.remainingMs()).toBe(10_000);
    expect(await lease.release()).toBe(true);
  });
});

describe("a release whose answer is lost", () => {
  it("rejects, and says that the lock was free when it is called again", async () => {
    const lease = await clientOf("a").acquire("k");
    store.next("answer lost");
    await expect(lease.release()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(lease.held).toBe(false);
    expect(await lease.release()).toBe(true);
  });

  it("stays unconfirmed when others have had the lock since: it may have landed", async () => {
    const lease = await clientOf("a").acquire("k");
    store.next("answer lost");
    await expect(lease.release()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await (await clientOf("b").acquire("k")).release();
    for (let calls = 1; calls <= 2; calls += 1) {
      await expect(lease.release()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER", retryable: true });
    }
    await clientOf("c").acquire("k");
    await expect(lease.complete()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
  });

  it("and that the service repeats is lost for sure where the lease was broken", async () => {
    const outcome = clientOf("a").withLease("k", {}, async ({ token }) => {
      await adminOf(clientOf("operator")).forceRelease("k", { token });
      repeatNextWrite(async () => undefined);
    });
    await expect(outcome).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
  });

  it("does not hide the result of the work", async () => {
    const result = await clientOf("a").withLease("k", {}, () => {
      store.next("answer lost");
      return 42;
    });
    expect(result).toBe(42);
    expect(events.at(-1)).toMatchObject({ type: "released", confirmed: false });
  });
});
