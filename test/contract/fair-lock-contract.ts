import { type Lease, LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { FairLock, QueueFullError } from "../../packages/client/src/entries/fair.ts";
import { eventually } from "../support/patience.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 2_000;
const clockSkewMs = 100;

/** What holds of a fair lock wherever it is kept. The place is told the clock of each test. */
export function fairLockContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;
  let served: string[];
  let leases: Map<string, Lease>;

  const lockOf = (owner: string, maxWaiters = 50): FairLock =>
    new FairLock(new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs }), key, {
      maxWaiters,
    });
  /** Joins the queue from a process of its own, and gives the end of its wait. */
  const queue = async (
    owner: string,
    options: object = {},
    lock = lockOf(owner),
  ): Promise<{ readonly got: Promise<Lease> }> => {
    const got = lock.acquire({ waitMs: 600_000, heartbeat: true, ...options }).then((lease) => {
      served.push(owner);
      leases.set(owner, lease);
      return lease;
    });
    got.catch(() => undefined);
    await eventually(async () => expect(await waiting()).toContain(owner));
    return { got };
  };
  const waiting = async (): Promise<string[]> =>
    (await lockOf("observer").inspect()).waiting.map(({ owner }) => owner);
  /** Moves the clock on, in steps that leave requests the time to be answered. */
  const until = async (isReached: () => boolean): Promise<void> => {
    const step = async (): Promise<void> => {
      await clock.advance(50);
      expect(isReached()).toBe(true);
    };
    await eventually(step);
  };

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("fair");
    served = [];
    leases = new Map();
  });

  describe("a fair lock", () => {
    it("serves those who wait in the order in which they came, and no newcomer before them", async () => {
      const first = await lockOf("first").acquire({ heartbeat: true });
      const order = ["a", "b", "c", "d"];
      for (const owner of order) await queue(owner);
      const state = await lockOf("observer").inspect();
      expect(state.holder?.owner).toBe("first");
      expect(state.waiting.map(({ owner, position: at }) => `${at} ${owner}`)).toEqual([
        "1 a",
        "2 b",
        "3 c",
        "4 d",
      ]);
      await first.release();
      for (const [index, owner] of order.entries()) {
        await expect(lockOf("newcomer").acquire()).rejects.toBeInstanceOf(LeaseUnavailableError);
        await until(() => served.length > index);
        await leases.get(owner)?.release();
      }
      expect(served).toEqual(order);
      const last = await lockOf("newcomer").acquire();
      expect(last.fencingToken).toBe(first.fencingToken + 5);
      expect(await lockOf("observer").inspect()).toMatchObject({
        holder: { owner: "newcomer" },
        waiting: [],
      });
    });

    it("gives the head of the queue what a dead holder left", async () => {
      await lockOf("dead").acquire();
      await queue("a");
      await queue("b");
      await clock.advance(leaseDurationMs + clockSkewMs);
      await until(() => served.length > 0);
      expect(served).toEqual(["a"]);
      expect(await waiting()).toEqual(["b"]);
    });

    it("passes over those who died waiting, and forgets them", async () => {
      const first = await lockOf("first").acquire();
      // Joined by hand, so to speak: nobody prolongs these places.
      const gone = new PatientClock(clock.now());
      const dead = new FairLock(new LeaseClient({ ...place(gone), clock: gone, owner: "dead" }), key);
      const abandoned = dead.acquire({ waitMs: 600_000 }).catch(() => undefined);
      await eventually(async () => expect(await waiting()).toEqual(["dead"]));
      await queue("a");
      await first.release();
      await until(() => served.length > 0);
      expect(served).toEqual(["a"]);
      expect(await waiting()).toEqual([]);
      void abandoned;
    });

    it("refuses the waiter beyond maxWaiters, and a place that is given up makes room", async () => {
      await lockOf("first").acquire({ heartbeat: true });
      const giveUp = new AbortController();
      const a = await queue("a", { signal: giveUp.signal }, lockOf("a", 1));
      const refusal = await lockOf("b", 1)
        .acquire({ waitMs: 1_000 })
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(QueueFullError);
      expect(refusal).toMatchObject({ waiting: 1, maxWaiters: 1 });
      giveUp.abort(new Error("enough"));
      await expect(a.got).rejects.toThrow("enough");
      await eventually(async () => expect(await waiting()).toEqual([]));
      await queue("b", {}, lockOf("b", 1));
    });

    it("renews, heartbeats and data work as for every lease", async () => {
      const lease = await lockOf("a").acquire({ data: { step: 1 }, heartbeat: true });
      await lease.renew();
      expect((await lockOf("observer").inspect()).holder?.data).toEqual({ step: 1 });
      expect(lease.toJSON().sortKey).toBeUndefined();
      expect(await lease.release()).toBe(true);
      expect(await lockOf("a").withLease({}, ({ held }) => held)).toBe(true);
    });

    it("serves callers without a thread in the order in which they checked in, each once however often it comes", async () => {
      const checkIn = async (owner: string): Promise<string> => {
        const visit = await lockOf("desk").checkIn({ owner, leaseDurationMs: 60_000 });
        return visit.state === "waiting" ? `waiting ${visit.position}` : visit.state;
      };
      const seen: string[] = [];
      for (const owner of ["a", "b", "c", "b", "a"]) seen.push(await checkIn(owner));
      expect(seen).toEqual(["held", "waiting 1", "waiting 2", "waiting 1", "held"]);
      expect(await lockOf("desk").checkOut({ owner: "a" })).toBe(true);
      expect(await checkIn("c")).toBe("waiting 2");
      expect(await checkIn("b")).toBe("held");
      expect(await lockOf("desk").checkOut({ owner: "c" })).toBe(true);
      expect(await waiting()).toEqual([]);
    });
  });
}
