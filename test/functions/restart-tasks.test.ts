/** What a restart of task sets leaves in the register. */
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { TaskSet } from "@leasehold/jobs";
import { expect, test } from "vitest";
import { type RestartParts, restart } from "../../functions/claim-tasks/restart.ts";

const minute = 60_000;

test.each([
  [9 * minute, []],
  [11 * minute, ["orders"]],
])("a drained set that was registered %i ms ago, with a look that may lag", async (ageMs, expected) => {
  const [store, clock] = [new MemoryLeaseStore(), new ManualClock()];
  const forgotten: string[] = [];
  const registered = [{ set: "orders", addedAt: clock.now() - ageMs }];
  const sets = {
    all: async () => registered,
    forget: async ({ set }: { readonly set: string }) => void forgotten.push(set),
  } as unknown as RestartParts["sets"];
  const run = restart({
    sets,
    open: (set) => new TaskSet(new LeaseClient({ store, clock }), set),
    work: () => undefined,
    remainingMs: () => minute,
    now: () => clock.now(),
  });
  await clock.advance(minute);
  expect(await run).toMatchObject({ sets: 1, drained: expected.length });
  expect(forgotten).toEqual(expected);
});
