import {
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseUnavailableError,
} from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { Semaphore } from "../../packages/client/src/entries/semaphore.ts";
import { eventually } from "../support/patience.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/** What holds of a semaphore wherever its permits are kept. The place is told the clock of each test. */
export function semaphoreContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs, ...options });
  const semaphoreOf = (
    owner: string,
    permits: number,
    options: Partial<LeaseClientOptions> = {},
  ): Semaphore => new Semaphore(clientOf(owner, options), key, { permits });

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("semaphore");
  });

  describe("a semaphore", () => {
    it("gives N permits to N callers, and refuses the next one with what it has to know", async () => {
      const held = await Promise.all(["a", "b", "c"].map((owner) => semaphoreOf(owner, 3).acquire()));
      expect(new Set(held.map((lease) => lease.fencingToken)).size).toBe(3);
      const refusal = await semaphoreOf("d", 3)
        .acquire()
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LeaseUnavailableError);
      expect(refusal).toMatchObject({ key, holder: expect.stringMatching(/^[abc]$/) });
      expect((refusal as LeaseUnavailableError).retryAfterMs).toBeLessThanOrEqual(pastLease);
      const state = await semaphoreOf("d", 3).inspect();
      expect(state.held.map(({ owner }) => owner).sort()).toEqual(["a", "b", "c"]);
      expect(state.free).toBe(0);
    });

    it("gives a released permit on, with a larger fencing token of its own", async () => {
      const first = await semaphoreOf("a", 1).acquire();
      expect(await first.release()).toBe(true);
      const second = await semaphoreOf("b", 1).acquire();
      expect(second.fencingToken).toBe(first.fencingToken + 1);
      expect((await semaphoreOf("b", 1).inspect()).held).toHaveLength(1);
    });

    it("takes over the permits of dead holders, one by one, and a stale release of theirs changes nothing", async () => {
      const dead = await Promise.all(["a", "b"].map((owner) => semaphoreOf(owner, 2).acquire()));
      await clock.advance(pastLease);
      const semaphore = semaphoreOf("c", 2);
      const taken = [await semaphore.acquire(), await semaphore.acquire()];
      expect(await semaphore.tryAcquire()).toBeUndefined();
      for (const lease of dead) expect(await lease.release()).toBe(false);
      for (const lease of taken) await lease.renew();
    });

    it("renews a permit by its heartbeat, beside others of the client", async () => {
      const semaphore = semaphoreOf("a", 2);
      const leases = [
        await semaphore.acquire({ heartbeat: true }),
        await semaphore.acquire({ heartbeat: true }),
      ];
      const before = leases.map(({ expiresAt }) => expiresAt);
      await clock.advance(leaseDurationMs / 3);
      await eventually(() => {
        for (const [index, lease] of leases.entries()) {
          expect(lease.expiresAt).toBeGreaterThan(before[index] ?? 0);
        }
      });
      await Promise.all(leases.map((lease) => lease.release()));
    });

    it("lets a waiting caller in after a release", async () => {
      const held = await semaphoreOf("a", 1, { leaseDurationMs: 60_000 }).acquire();
      let got: Lease | undefined;
      void semaphoreOf("b", 1)
        .acquire({ waitMs: 20_000 })
        .then((lease) => {
          got = lease;
        });
      await held.release();
      await eventually(async () => {
        await clock.advance(5);
        expect(got?.held).toBe(true);
      });
    });

    it("lets the same owner in again elsewhere, by taking its permit over", async () => {
      const options = { owner: "request-7", reentrant: true };
      const before = await semaphoreOf("a", 3).acquire(options);
      const told: LeaseEvent[] = [];
      const onEvent = (event: LeaseEvent): void => void told.push(event);
      const after = await semaphoreOf("b", 3, { onEvent }).acquire(options);
      expect(told).toContainEqual(expect.objectContaining({ type: "takeover", reason: "sameOwner" }));
      expect(after.toJSON().sortKey).toBe(before.toJSON().sortKey);
      expect(after.fencingToken).toBe(before.fencingToken + 1);
    });

    it("gives permits by the number, all of them or none", async () => {
      const three = await semaphoreOf("a", 4).acquire({ permits: 3 });
      expect(await semaphoreOf("b", 4).tryAcquire({ permits: 2 })).toBeUndefined();
      const one = await semaphoreOf("b", 4).acquire();
      expect((await semaphoreOf("c", 4).inspect()).free).toBe(0);
      await three.release();
      expect((await semaphoreOf("c", 4).inspect()).free).toBe(3);
      expect((await semaphoreOf("c", 4).acquire({ permits: 3 })).fencingToken).toBeGreaterThan(
        one.fencingToken,
      );
    });

    it("is paused with no permits, and drained once its holders have finished", async () => {
      const lease = await semaphoreOf("a", 2, { leaseDurationMs: 60_000 }).acquire();
      const paused = semaphoreOf("b", 0);
      expect(await paused.tryAcquire()).toBeUndefined();
      await expect(paused.drain()).rejects.toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "a" });
      let isDrained = false;
      void paused.drain({ waitMs: 20_000 }).then(() => {
        isDrained = true;
      });
      await lease.renew();
      await lease.release();
      await eventually(async () => {
        await clock.advance(5);
        expect(isDrained).toBe(true);
      });
    });

    it("has a permit that proves itself in a transaction, as long as it is held", async () => {
      const lease = await semaphoreOf("a", 2).acquire();
      const handle = lease.toJSON();
      const adopted = semaphoreOf("b", 2).adopt(handle);
      await adopted.renew();
      expect(adopted.conditionCheck()).toEqual(lease.conditionCheck());
      expect(await adopted.release()).toBe(true);
    });

    it("counts permits beyond a lowered N", async () => {
      const many = semaphoreOf("a", 5);
      const leases: Lease[] = [];
      for (let count = 0; count < 5; count += 1) leases.push(await many.acquire());
      const few = new Semaphore(clientOf("b"), key, { permits: 2 });
      for (const lease of leases.slice(0, 3)) {
        await lease.release();
        expect(await few.tryAcquire()).toBeUndefined();
      }
      await leases[3]?.release();
      expect((await few.tryAcquire())?.held).toBe(true);
      expect(await few.tryAcquire()).toBeUndefined();
    });

    it("reads as many permits as there may be", async () => {
      const semaphore = semaphoreOf("a", 40);
      await Promise.all(Array.from({ length: 40 }, () => semaphore.acquire()));
      expect((await semaphore.inspect()).held).toHaveLength(40);
      expect(await semaphoreOf("b", 40).tryAcquire()).toBeUndefined();
    });
  });
}
