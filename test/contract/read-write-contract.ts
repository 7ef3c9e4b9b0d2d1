import {
  LeaseClient,
  type LeaseClientOptions,
  LeaseLostError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { ReadWriteLock } from "../../packages/client/src/entries/read-write.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/** What holds of a read-write lock wherever its leases are kept. The place is told the clock of each test. */
export function readWriteContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({ ...place(clock), clock, owner, leaseDurationMs, clockSkewMs, ...options });
  const lockOf = (owner: string): ReadWriteLock => new ReadWriteLock(clientOf(owner), key);

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("read-write");
  });

  describe("a read-write lock", () => {
    it("lets readers in together, and refuses a writer with what it has to know", async () => {
      const readers = await Promise.all(["a", "b", "c"].map((owner) => lockOf(owner).read()));
      expect(readers.every(({ held }) => held)).toBe(true);
      const refusal = await lockOf("w")
        .write()
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LeaseUnavailableError);
      expect(refusal).toMatchObject({ key, holder: expect.stringMatching(/^[abc]$/) });
      for (const reader of readers) expect(await reader.release()).toBe(true);
      expect((await lockOf("w").tryWrite())?.held).toBe(true);
    });

    it("lets a writer in alone, and the next one with a larger fencing token", async () => {
      const first = await lockOf("w").write();
      expect(await lockOf("r").tryRead()).toBeUndefined();
      expect(await lockOf("v").tryWrite()).toBeUndefined();
      expect(await first.release()).toBe(true);
      expect((await lockOf("v").write()).fencingToken).toBeGreaterThan(first.fencingToken);
    });

    it("passes dead readers, whose late renewal and release change nothing", async () => {
      const lock = lockOf("a");
      const dead = [await lock.read(), await lockOf("b").read()];
      const [handle] = dead.map((lease) => lease.toJSON());
      await clock.advance(pastLease);
      const writer = await lockOf("w").write();
      if (handle !== undefined)
        await expect(lock.adopt(handle).renew()).rejects.toBeInstanceOf(LeaseLostError);
      for (const lease of dead) expect(await lease.release()).toBe(false);
      await writer.renew();
      expect((await lockOf("x").inspect()).readers).toEqual([]);
    });

    it("passes a dead writer, who cannot renew any more", async () => {
      const lock = lockOf("w");
      const handle = (await lock.write()).toJSON();
      await clock.advance(pastLease);
      expect((await lockOf("r").read()).held).toBe(true);
      await expect(lock.adopt(handle).renew()).rejects.toBeInstanceOf(LeaseLostError);
      expect((await lockOf("x").inspect()).writer).toBeUndefined();
    });

    it("hands a read lock and a write lock over to another process", async () => {
      const lock = lockOf("b");
      for (const kind of ["read", "write"] as const) {
        const adopted = lock.adopt((await lockOf("a")[kind]()).toJSON());
        await adopted.renew();
        expect(await lockOf("w").tryWrite()).toBeUndefined();
        expect(await adopted.release()).toBe(true);
      }
      expect((await lockOf("w").tryWrite())?.held).toBe(true);
    });

    it("shows who reads, with their payloads, and who writes", async () => {
      const reader = await lockOf("r").read({ data: { page: 1 } });
      const shown = await lockOf("x").inspect();
      expect(shown.writer).toBeUndefined();
      expect(shown.readers).toMatchObject([{ key, owner: "r", data: { page: 1 }, token: reader.token }]);
      await reader.release();
      const writer = await lockOf("w").write();
      expect(await lockOf("x").inspect()).toMatchObject({
        writer: { owner: "w", token: writer.token },
        readers: [],
      });
    });
  });
}
