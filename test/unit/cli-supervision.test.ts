/** What a child hears of the lease that it runs under. */
import { ManualClock } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import type { Child } from "../../packages/cli/src/work/child.ts";
import { superviseChild } from "../../packages/cli/src/work/supervision.ts";

it("each time that its lease is about to end, a child that may go on is told so again", async () => {
  const clock = new ManualClock();
  let endsAt = clock.monotonic() + 20_000;
  const lease = {
    signal: new AbortController().signal,
    held: true,
    remainingMs: () => endsAt - clock.monotonic(),
  };
  const ended = Promise.withResolvers<number>();
  const child = { ended: ended.promise, kill: () => undefined, closePipe: () => undefined };
  const said: string[] = [];
  const supervised = superviseChild(child as unknown as Child, {
    ...{ key: "k", lease, leaseMs: 20_000, clock, say: (line: string) => said.push(line) },
    flags: {
      ...{ "on-lost": "ignore", grace: 5_000 },
      ...{ "kill-after": undefined, max: undefined, fd: undefined },
    },
  });
  await clock.advance(15_000);
  expect(said).toEqual([
    "leasehold: k ends in 5.0s, and no renewal is confirmed; the child goes on (--on-lost ignore)",
  ]);
  endsAt += 20_000;
  await clock.advance(19_000);
  expect(said).toHaveLength(1);
  await clock.advance(1_000);
  expect(said).toHaveLength(2);
  ended.resolve(0);
  expect(await supervised).toEqual({ code: 0, isLost: false, isTooLong: false });
  expect(clock.pending).toBe(0);
});
