import { LeaseClient } from "@leasehold/client";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

interface Wish {
  readonly owner: string;
  readonly reentrant: true;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

let clock: ManualClock;
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  client = new LeaseClient({ store: new ScriptedStore(), clock, owner: "me", leaseDurationMs: 600_000 });
});

describe.each([
  ["a semaphore", () => new Semaphore(client, "k", { permits: 1 })],
  ["a read-write lock", () => new ReadWriteLock(client, "k")],
] as const)("calls of one reentrant owner to %s, held by another", (_, make) => {
  const again = { owner: "me", reentrant: true } as const;

  it("wait for each other no longer than each one's own patience and a call may take", async () => {
    const primitive = make();
    const take = (wish: Wish): Promise<unknown> =>
      primitive instanceof Semaphore ? primitive.acquire(wish) : primitive.write(wish);
    const other = { owner: "other" };
    await (primitive instanceof Semaphore ? primitive.acquire(other) : primitive.write(other));

    const patient = take({ ...again, waitMs: 300_000 });
    const outcome = patient.catch((error: unknown) => error);
    await clock.advance(10);
    const hasty = take(again).catch((error: unknown) => error);
    const stop = new AbortController();
    const stopped = take({ ...again, waitMs: 300_000, signal: stop.signal });
    stop.abort(new Error("stop"));
    await expect(stopped).rejects.toThrow("stop");
    await clock.advance(10_000);
    expect(await hasty).toMatchObject({ code: "LEASE_UNAVAILABLE" });
    await clock.advance(300_000);
    expect(await outcome).toMatchObject({ code: "LEASE_UNAVAILABLE" });
  });
});
