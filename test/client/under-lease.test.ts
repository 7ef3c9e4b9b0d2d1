import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Lease, LeaseClient, LeaseLostError, type WorkTrace } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

type Work = (lease: Lease) => Promise<unknown> | unknown;

const leaseDurationMs = 30_000;
let clock: ManualClock;
let store: ScriptedStore;

const clientOf = (owner: string): LeaseClient => new LeaseClient({ store, clock, owner, leaseDurationMs });

const ways: [string, (work: Work) => Promise<unknown>][] = [
  ["withLease", (work) => clientOf("a").withLease("k", {}, work)],
  ["withLease, fair", (work) => clientOf("a").withLease("k", { order: fair() }, work)],
  ["withPermit", (work) => new Semaphore(clientOf("a"), "k", { permits: 1 }).withPermit({}, work)],
  [
    "withPermit, fair",
    (work) => new Semaphore(clientOf("a"), "k", { permits: 1, order: fair() }).withPermit({}, work),
  ],
  ["withRead", (work) => new ReadWriteLock(clientOf("a"), "k").withRead({}, work)],
  ["withWrite", (work) => new ReadWriteLock(clientOf("a"), "k").withWrite({}, work)],
];

/** What an operator does. */
const breakIt = async ({ key, sortKey, token }: Lease): Promise<void> => {
  expect(await adminOf(clientOf("operator")).forceRelease(key, { sortKey, token })).toBe(true);
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe.each(ways)("work in %s", (_, run) => {
  test("gives its result, and nothing stays held", async () => {
    expect(await run((lease) => lease.held)).toBe(true);
    expect(await adminOf(clientOf("b")).inspectAll("k")).toEqual([]);
  });

  test("is shown with its lease before it begins, and runs in the function of a tool that listens", async () => {
    const shown: WorkTrace[] = [];
    const order: string[] = [];
    const listen = (message: unknown): void => {
      const trace = message as WorkTrace;
      const { run: work } = trace;
      shown.push({ ...trace });
      trace.run = () => {
        order.push("tool");
        return work();
      };
    };
    subscribe("leasehold:work", listen);
    try {
      const [key, sortKey, fencingToken] = (await run((lease) => {
        order.push("work");
        return [lease.key, lease.sortKey, lease.fencingToken];
      })) as [string, string, number];
      expect(shown).toEqual([{ key, sortKey, fencingToken, run: expect.any(Function) }]);
    } finally {
      unsubscribe("leasehold:work", listen);
    }
    expect(order).toEqual(["tool", "work"]);
  });

  test("does not pass for protected where its lease was broken, though nobody has told it", async () => {
    const outcome = run(async (lease) => {
      await breakIt(lease);
      expect(lease.held).toBe(true);
      return "done";
    });
    await expect(outcome).rejects.toBeInstanceOf(LeaseLostError);
    await expect(outcome).rejects.toMatchObject({ key: "k", reason: "taken" });
  });

  test.each(["answer lost", "request lost", "rejected"] as const)(
    "gives its result whatever becomes of the release: %s",
    async (fate) => {
      const outcome = run(() => {
        store.next(fate);
        return 42;
      });
      expect(await outcome).toBe(42);
    },
  );
});

test("work that was asked to stop leaves its slot open", async () => {
  const outcome = clientOf("a").withLease("k", { slot: "7" }, async (lease) => {
    await adminOf(clientOf("operator")).requestRevocation("k", { token: lease.token });
    await lease.renew().catch(() => undefined);
    return "half-way";
  });
  expect(await outcome).toBe("half-way");
  expect(await clientOf("b").withLease("k", { slot: "7" }, () => "done")).toBe("done");
});
