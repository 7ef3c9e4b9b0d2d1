/** Durable executions whose invocations run on machines with wrong clocks: the table's answers tell the right time. */
import { type DurableContext, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { LeaseClient } from "@leasehold/client";
import { type DurableLeaseOptions, withDurableLease } from "@leasehold/durable";
import { describe, expect, test } from "vitest";
import { DurableWorld } from "../support/durable-leases.ts";
import { Machine, type WrongClock, wrongClocks } from "../support/wrong-clocks.ts";

const minute = 60_000;
const hour = 60 * minute;
const key = "orders/7";

/** A world whose invocations run, one after the other, on these machines. */
function setUp(machines: readonly Pick<WrongClock, "wallMs">[]) {
  const world = new DurableWorld();
  const all = machines.map(({ wallMs }) => new Machine(world.clock, wallMs));
  const outcomes: string[] = [];
  let invocations = 0;
  /** Runs two steps with a time between them, under the lease; each invocation is a cold start. */
  const start = (
    name: string,
    { betweenSeconds = 3_600, ...options }: DurableLeaseOptions & { readonly betweenSeconds?: number } = {},
  ) => {
    const handler = withDurableExecution(async (_: unknown, context: DurableContext) => {
      const client = world.client(all[invocations++ % all.length]);
      return await withDurableLease(context, client, key, options, async (lease, own) => {
        await own.step("first", async () => void outcomes.push(`${name} first ${lease.fencingToken}`));
        await own.wait({ seconds: betweenSeconds });
        await own.step("second", async () => void outcomes.push(`${name} second ${lease.fencingToken}`));
      });
    });
    return world.service.start(handler, {}, name);
  };
  const right = (): LeaseClient =>
    new LeaseClient({ store: world.table, clock: world.clock, owner: "another" });
  return { world, machine: all[0] as Machine, start, right, outcomes };
}

const lost = (world: DurableWorld): unknown[] => world.events.filter(({ type }) => type === "lost");

describe.each(wrongClocks)("where the clock of each invocation is $name", (wrong) => {
  test("an execution waits for as long as it may, and gets the lock at its release", async () => {
    const { world, machine, start, right } = setUp([wrong]);
    const holder = await right().acquire(key, { leaseDurationMs: hour });
    const run = start("A", { betweenSeconds: 1, waitMs: 3 * minute });
    await world.play(minute);
    await wrong.midway(machine);
    await world.play(minute);
    expect(run).toMatchObject({ status: "RUNNING" });
    await holder.release();
    await world.play(2 * minute + 30_000);
    expect(run).toMatchObject({ status: "SUCCEEDED" });
  });

  test("an execution gives up when its time to wait is over, and not later", async () => {
    const { world, machine, start, right } = setUp([wrong]);
    await right().acquire(key, { leaseDurationMs: hour });
    const run = start("A", { waitMs: 3 * minute });
    await world.play(minute);
    await wrong.midway(machine);
    await world.play(3 * minute);
    expect(run).toMatchObject({ status: "FAILED" });
  });
});

describe.each([
  ["right, then 5 minutes fast", [0, 5 * minute]],
  ["5 minutes fast, then right", [5 * minute, 0]],
  ["3 hours slow, then right, then fast", [-3 * hour, 0, hour]],
])("where the clocks of the invocations are %s", (_, walls) => {
  test("the lease goes on from one to the next, and is released at the end", async () => {
    const { world, start, right, outcomes } = setUp(walls.map((wallMs) => ({ wallMs })));
    const run = start("A", { betweenSeconds: 2 * 3_600 });
    for (let part = 0; part < 11; part += 1) {
      await world.play(10 * minute);
      expect(await right().tryAcquire(key)).toBeUndefined();
    }
    await world.play(hour);
    expect(run).toMatchObject({ status: "SUCCEEDED" });
    expect(outcomes).toHaveLength(2);
    expect(lost(world)).toEqual([]);
    expect((await right().acquire(key)).held).toBe(true);
  });
});

test("a slot that was due when an execution began is not refused by a later, slow machine", async () => {
  const { world, start, outcomes } = setUp([{ wallMs: 0 }, { wallMs: -3 * hour }]);
  const run = start("A", { slot: new Date(world.clock.now()) });
  await world.play(2 * hour);
  expect(run).toMatchObject({ status: "SUCCEEDED" });
  expect(outcomes).toHaveLength(2);
});
