import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Leader, type LeaderOptions, type Leadership } from "../../packages/client/src/entries/leader.ts";
import { adminOf } from "../support/admin.ts";
import { eventually } from "../support/patience.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 3_000;
const clockSkewMs = 100;

/**
 * What holds of elections wherever leases are kept; run for memory and for an engine.
 *
 * The place is told the clock of each test: its service has to tell the same time, as it vouches for clocks.
 */
export function leaderContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;
  let told: string[];

  const candidate = (owner: string, options: LeaderOptions = {}): Leader => {
    const client = new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs });
    return new Leader(client, key, {
      onElected: () => told.push(`${owner} elected`),
      onLost: ({ reason }) => told.push(`${owner} lost: ${reason}`),
      onResigned: () => told.push(`${owner} resigned`),
      ...options,
    });
  };
  /** Lets timers fire and answers arrive until something holds. */
  const until = (holds: () => void): Promise<void> =>
    eventually(async () => {
      await clock.advance(10);
      holds();
    }, 2);
  /** The same, until something has come. */
  const come = async <T>(coming: Promise<T>): Promise<T> => {
    let isThere = false;
    const seen = coming.finally(() => {
      isThere = true;
    });
    await until(() => expect(isThere).toBe(true));
    return await seen;
  };

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("leader");
    told = [];
  });

  describe("a campaign", () => {
    it("is won at once where nobody leads", async () => {
      const one = candidate("one", { data: { address: "10.0.0.1" } });
      const leadership = await one.campaign();
      expect(leadership).toMatchObject({ key, owner: "one", held: true });
      expect(one.leadership).toBe(leadership);
      expect(await one.campaign()).toBe(leadership);
      expect(await candidate("x").current()).toEqual({
        owner: "one",
        fencingToken: leadership.fencingToken,
        since: leadership.acquiredAt,
        data: { address: "10.0.0.1" },
      });
      await one.resign();
    });

    it("is won by another when the leader resigns, with a larger fencing token", async () => {
      const [one, two] = [candidate("one"), candidate("two")];
      const first = await one.campaign();
      const coming = two.campaign();
      await clock.advance(100);
      expect(await one.resign()).toBe(true);
      expect(one.leadership).toBeUndefined();
      expect(first.signal.aborted).toBe(true);
      const second = await come(coming);
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      expect(told).toEqual(["one elected", "one resigned", "two elected"]);
      await two.resign();
    });

    it("is won by another when the leader has died, once its lease is over and soon after", async () => {
      // Its timers never fire: it neither renews nor notices anything.
      const dead = new LeaseClient({ ...place(clock), clock: new ManualClock(clock.now()), owner: "dead" });
      const first = await new Leader(dead, key, { leaseDurationMs }).campaign();
      const two = candidate("two");
      const second = await come(two.campaign());
      expect(second.held).toBe(true);
      expect(second.fencingToken).toBe(first.fencingToken + 1);
      expect(second.acquiredAt - first.expiresAt).toBeGreaterThan(0);
      expect(second.acquiredAt - first.expiresAt).toBeLessThan(leaseDurationMs);
      expect(told).toEqual(["two elected"]);
      await two.resign();
    });

    it("lasts while the leader lives, and ends when it is called off", async () => {
      const [one, two] = [candidate("one"), candidate("two")];
      await one.campaign();
      const controller = new AbortController();
      const coming = two.campaign({ signal: controller.signal });
      const outcome = expect(coming).rejects.toThrow("enough");
      for (let passedMs = 0; passedMs < 10_000; passedMs += 50) {
        await clock.advance(50);
      }
      expect(one.leadership?.held).toBe(true);
      controller.abort(new Error("enough"));
      await outcome;
      expect(told).toEqual(["one elected"]);
      await one.resign();
    });
  });

  it("a leader that loses its leadership stops, and is elected again later", async () => {
    const one = candidate("one", { pauseMs: 100 });
    const stop = new AbortController();
    const leaderships: Leadership[] = [];
    const leading = one.lead(
      async (leadership, signal) => {
        leaderships.push(leadership);
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
      { signal: stop.signal },
    );
    await until(() => expect(leaderships).toHaveLength(1));
    const operator = new LeaseClient({ ...place(clock), clock, owner: "operator" });
    await adminOf(operator).forceRelease(key, { token: leaderships[0]?.token ?? "" });
    await until(() => expect(leaderships).toHaveLength(2));
    expect(told).toEqual(["one elected", "one lost: released", "one elected"]);
    stop.abort(new Error("shut down"));
    await come(leading);
    expect(leaderships[1]?.held).toBe(false);
    expect(await one.current()).toBeUndefined();
    expect(told.at(-1)).toBe("one resigned");
  });

  it("of five candidates that lead in turn, never two lead at the same time, and each gets its turn", async () => {
    const stop = new AbortController();
    const inside = new Set<string>();
    const served = new Set<string>();
    let most = 0;
    let last = 0;
    const owners = ["a", "b", "c", "d", "e"];
    const leading = owners.map((owner) =>
      candidate(owner, { pauseMs: 4_000, retry: { strategy: "fixed", delayMs: 50 } }).lead(
        async (leadership) => {
          inside.add(owner);
          most = Math.max(most, inside.size);
          expect(leadership.fencingToken).toBeGreaterThan(last);
          last = leadership.fencingToken;
          served.add(owner);
          await new Promise<void>((resolve) => clock.schedule(resolve, 20));
          inside.delete(owner);
        },
        { signal: stop.signal },
      ),
    );
    await until(() => expect(served.size).toBe(owners.length));
    stop.abort();
    await come(Promise.all(leading));
    expect(most).toBe(1);
  });

  it("a leader stays it over many of its leases, and its observer sees one leader", async () => {
    const one = candidate("one");
    const leadership = await one.campaign();
    const stop = new AbortController();
    const seen: (string | undefined)[] = [];
    const observing = (async () => {
      for await (const leader of one.observe({ signal: stop.signal, everyMs: 200 })) seen.push(leader?.owner);
    })();
    await clock.advance(10 * leaseDurationMs);
    stop.abort();
    await come(observing);
    expect(seen).toEqual(["one"]);
    expect(leadership.held).toBe(true);
    expect(told).toEqual(["one elected"]);
    await one.resign();
  });

  it("an observer sees every leader of some duration, and the times without", async () => {
    const [one, two] = [candidate("one"), candidate("two")];
    const stop = new AbortController();
    const seen: (string | undefined)[] = [];
    const observing = (async () => {
      for await (const leader of candidate("observer").observe({ signal: stop.signal, everyMs: 200 })) {
        seen.push(leader?.owner);
      }
    })();
    await until(() => expect(seen).toEqual([undefined]));
    await one.campaign();
    await until(() => expect(seen.at(-1)).toBe("one"));
    await one.resign();
    await until(() => expect(seen.at(-1)).toBeUndefined());
    await two.campaign();
    await until(() => expect(seen).toEqual([undefined, "one", undefined, "two"]));
    await two.resign();
    stop.abort();
    await come(observing);
  });
}
