import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Desk, deskProcesses, visitorNames } from "../support/simulated-desk.ts";
import type { Tamper } from "../support/simulated-weather.ts";
import {
  clockSkewMs,
  leaseDurationMs,
  type Mishap,
  mishaps,
  type Tally,
} from "../support/simulated-world.ts";
import {
  expectToHaveHappened,
  runs,
  type SentTest,
  violationOf,
  withoutTests,
} from "../support/simulations.ts";

/** The waits of callers with a thread are shorter: so no ticket lasts longer. */
const longestTicketMs = 70_000;

type Step =
  | Mishap
  | { readonly kind: "come"; readonly who: number; readonly desks: readonly number[]; readonly join: boolean }
  | { readonly kind: "go"; readonly who: number; readonly desks: readonly number[] }
  | { readonly kind: "rounds"; readonly pausesMs: readonly number[] }
  | { readonly kind: "acquire"; readonly process: number; readonly fair: boolean }
  | { readonly kind: "release" };

const who = fc.nat(visitorNames.length - 1);
const anyProcess = fc.nat(deskProcesses - 1);
/** Two of them: a visit of which two copies run at once. */
const desks = fc.array(anyProcess, { minLength: 1, maxLength: 2 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("come" as const), who, desks, join: fc.nat(4).map(Boolean) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("go" as const), who, desks }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("rounds" as const),
      pausesMs: fc.array(fc.integer({ min: 200, max: 2_500 }), { minLength: 2, maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("acquire" as const), process: anyProcess, fair: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("release" as const) }) },
  ...mishaps(deskProcesses, 20_000),
);

async function take(desk: Desk, one: Step): Promise<void> {
  if (one.kind === "come" || one.kind === "go") {
    const visitor = desk.visitors[one.who];
    if (visitor === undefined) return;
    for (const at of one.desks) {
      if (one.kind === "go") desk.go(visitor, at);
      else desk.comeOrGo(visitor, at, one.join);
    }
  } else if (one.kind === "rounds") {
    for (const pauseMs of one.pausesMs) await desk.round(desk.visitors, pauseMs);
  } else if (one.kind === "acquire") desk.acquire(one.process, one.fair);
  else if (one.kind === "release") desk.release();
  else await desk.world.befall(one);
  await desk.world.clock.advance(0);
}

function visits(tally: Tally, tamper?: Tamper): fc.IAsyncProperty<[number, Step[]]> {
  const steps = fc.array(step, { minLength: 30, maxLength: 90 });
  return fc.asyncProperty(fc.integer(), steps, async (seed, all) => {
    const desk = new Desk(seed, tally, tamper);
    const { world } = desk;
    for (const one of all) {
      await take(desk, one);
      world.check();
    }
    world.killAll();
    await world.clearUp();
    desk.leases.clear();
    await world.clock.advance(longestTicketMs + leaseDurationMs + 2 * clockSkewMs);
    await desk.expectAllToBeServed();
    world.check();
    expect(world.pending).toBe(0);
  });
}

const startsWith =
  (prefix: string, test: string) =>
  (sent: SentTest): boolean =>
    sent.attribute.startsWith(prefix) && sent.test === test;
const isGrant = ({ values }: { readonly values: object }): boolean => ":acquiredAt" in values;

describe("check-ins under delays, lost and late answers, deaths, freezes, copies and clocks that differ", () => {
  it("have one holder at most and one ticket for each, overtake nobody whose ticket stands, and are all served", async () => {
    const tally: Tally = {};
    await fc.assert(visits(tally), { seed: 1, numRuns: runs(100) });
    expectToHaveHappened(
      tally,
      "death",
      "request lost",
      "answer lost",
      "sent twice",
      "late arrival",
      "ttl removed an item",
      "told: absent",
      "told after its check-out",
      "rejected: QueueFullError",
    );
    // The property is empty where nobody comes in, is late, or meets a copy of itself.
    expect(tally["told: held"]).toBeGreaterThan(1_000);
    expect(tally["from the queue"]).toBeGreaterThan(200);
    expect(tally["passed over"]).toBeGreaterThan(200);
    expect(tally.takeover).toBeGreaterThan(80);
    expect(tally["unheard place"]).toBeGreaterThan(40);
    expect(tally["check-out of an earlier stay"]).toBeGreaterThan(40);
  });

  it.each<[string, (test: SentTest) => boolean, RegExp]>([
    ["a turn that is not bound to its ticket", startsWith("q:", "="), /drifted/],
    ["a second ticket for one owner", startsWith("q:", "missing"), /drifted|two tickets/],
    [
      "a newcomer that is let in past the line",
      ({ attribute, write }) => attribute === "waiting" && isGrant(write),
      /overtaken/,
    ],
    [
      "a takeover from a holder that has checked in again",
      ({ attribute, write }) => attribute === "version" && isGrant(write),
      /hold it at once/,
    ],
  ])("are seen through: %s", async (_, isMeant, violation) => {
    expect(await violationOf(visits({}, withoutTests(isMeant)))).toMatch(violation);
  });

  it("are seen through: a ticket that is removed though it was renewed", async () => {
    const mistake = withoutTests(startsWith("w:", "="), (name) => `attribute_exists(${name})`);
    expect(await violationOf(visits({}, mistake))).toMatch(/has lost its ticket/);
  });
});
