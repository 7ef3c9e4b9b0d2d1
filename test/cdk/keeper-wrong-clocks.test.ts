/** A keeper beside a holder whose clock is wrong: it counts by Step Functions' time, and the table tells the holder. */
import { LeaseClient } from "@leasehold/client";
import { describe, expect, it } from "vitest";
import { beatMs, KeptWork, key, leaseDurationMs } from "../support/kept-work.ts";
import { farAway, lapses, Machine, type WrongClock, wrongClocks } from "../support/wrong-clocks.ts";

/** Work that a process on such a machine has put under a lease, its keeper, and another client. */
async function setUp(wrong: WrongClock) {
  const kept = new KeptWork();
  const store = farAway(kept.steps.store, () => kept.clock.now());
  const machine = new Machine(kept.clock, wrong.wallMs);
  const holder = new LeaseClient({ store, clock: machine, owner: "holder", leaseDurationMs });
  const other = new LeaseClient({ store, clock: kept.clock, owner: "other", leaseDurationMs });
  const work = kept.startWork();
  const lease = await holder.acquire(key, { owner: `workflow:${work}` });
  const keeper = kept.startKeeper({ lease: lease.toJSON(), guarded: work });
  await kept.clock.advance(0);
  return { kept, machine, holder, other, work, keeper, lease };
}

/** Beats at which the table shows the lease as another's, or as over. */
async function beat(
  { kept, other }: Pick<Awaited<ReturnType<typeof setUp>>, "kept" | "other">,
  times: number,
): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    await kept.clock.advance(beatMs);
    expect(await other.tryAcquire(key)).toBeUndefined();
    expect(kept.expiresAt()).toBeGreaterThan(kept.clock.now());
  }
}

describe.each([...wrongClocks, ...lapses])("beside a holder whose machine is $name", (wrong) => {
  it("keeps its lease, and lets nobody in", async () => {
    const world = await setUp(wrong);
    const { kept, machine, lease, keeper, work, other } = world;
    await beat(world, 3);
    await wrong.midway(machine);
    await beat(world, 10);
    expect(kept.token()).toBe(lease.token);
    expect(kept.status(keeper)).toBe("RUNNING");
    kept.steps.machines.stop(work);
    await kept.clock.advance(beatMs);
    expect(kept.status(keeper)).toBe("SUCCEEDED");
    expect((await other.acquire(key)).held).toBe(true);
  });

  it("hands the lease to a process on such a machine, which may believe in it", async () => {
    const world = await setUp(wrong);
    const { kept, machine, holder, lease } = world;
    await beat(world, 3);
    await wrong.midway(machine);
    const adopted = holder.adopt(lease.toJSON());
    await adopted.renew();
    expect(adopted.held).toBe(true);
    // Two write it now, the keeper and the process: neither stops the other.
    await beat(world, 2);
    await adopted.renew();
    await beat(world, 10);
    expect(adopted.remainingMs()).toBeLessThanOrEqual(leaseDurationMs);
    expect(kept.token()).toBe(lease.token);
  });
});

it.each([-400, 400])("keeps a lease though Step Functions' own clock is %d ms off", async (offMs) => {
  const kept = new KeptWork();
  const store = farAway(kept.steps.store, () => kept.clock.now() + offMs);
  const other = new LeaseClient({ store, clock: kept.clock, owner: "other", leaseDurationMs });
  const { lease, keeper } = await kept.guarded();
  await beat({ kept, other }, 20);
  expect(kept.token()).toBe(lease.token);
  expect(kept.status(keeper)).toBe("RUNNING");
});
