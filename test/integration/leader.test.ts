import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Leader } from "../../packages/client/src/leader/index.ts";
import { leaderContract } from "../contract/leader-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import { bentClock, makeTable, type TestTable } from "../support/table.ts";

describe("elections on an engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  leaderContract((clock) => engine.place(clock));
});

describe("elections on an engine, in real time", () => {
  let table: TestTable;
  beforeAll(async () => {
    table = await makeTable(inject("engine"));
  });
  afterAll(() => table.close());

  it("a leader that dies is succeeded once its lease is over", async () => {
    const key = table.newKey();
    // Its timers never fire: it neither renews nor notices anything, as if it had been killed.
    const dead = table.client({
      owner: "dead",
      leaseDurationMs: 700,
      clockSkewMs: 100,
      clock: { ...bentClock({}), schedule: () => () => undefined },
    });
    const first = await new Leader(dead, key).campaign();
    const two = new Leader(table.client({ owner: "two", leaseDurationMs: 700, clockSkewMs: 100 }), key);
    const second = await two.campaign();
    const gapMs = second.acquiredAt - first.expiresAt;
    expect(gapMs).toBeGreaterThan(0);
    expect(gapMs).toBeLessThan(3_000);
    expect(first.held).toBe(false);
    expect(second.fencingToken).toBe(first.fencingToken + 1);
    await two.resign();
  });

  it("a leader of short leases stays it over many of them, and its observer sees one reign", async () => {
    const key = table.newKey();
    const one = new Leader(table.client({ owner: "one", leaseDurationMs: 600, clockSkewMs: 100 }), key);
    const leadership = await one.campaign();
    const stop = AbortSignal.timeout(2_500);
    const seen = [];
    for await (const reign of one.observe({ signal: stop, everyMs: 100 })) seen.push(reign?.owner);
    expect(seen).toEqual(["one"]);
    expect(leadership.held).toBe(true);
    await one.resign();
  });
});
