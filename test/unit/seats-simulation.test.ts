import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ExpiryDetector } from "../../packages/client/src/protocol/expiry-detector.ts";
import { SeatForm } from "../../packages/client/src/seats/seat-form.ts";
import type { Condition, Write } from "../../packages/client/src/store/write.ts";
import { type SeatStep, SimulatedSeats, seatSteps, writerSteps } from "../support/simulated-seats.ts";
import type { Tally } from "../support/simulated-world.ts";
import { expectToHaveHappened, play, runs, violationOf } from "../support/simulations.ts";

const everything = seatSteps("permit", "read", "write");

function property(tally: Tally, step: fc.Arbitrary<SeatStep> = everything, mostSteps = 70) {
  const steps = fc.array(step, { minLength: 30, maxLength: mostSteps });
  return fc.asyncProperty(fc.integer(), fc.integer({ min: 1, max: 4 }), steps, async (seed, permits, all) => {
    const seats = new SimulatedSeats(seed, tally, permits);
    await play(seats, all, () => seats.expectAllToHeal());
  });
}

describe("seats under delays, lost and late answers, lagging reads, freezes, deaths and clocks that differ", () => {
  it("are within their bounds, prove themselves, and leave nothing stuck", async () => {
    const tally: Tally = {};
    await fc.assert(property(tally), { seed: 1, numRuns: runs(150) });
    const weather = ["death", "request lost", "answer lost", "sent twice", "late arrival"];
    expectToHaveHappened(tally, ...weather, "permit", "read", "write", "takeover", "ttl removed an item");
    expectToHaveHappened(tally, "checked write", "stale write", "reads beside its own write");
    // The property is empty where nobody gets anything.
    expect(tally.grant).toBeGreaterThan(1_500);
  });
});

describe("a planted mistake shows itself", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  type Change = (write: Write) => Write;
  /** Changes what one of the form's methods writes. */
  const plant = (method: "acquire" | "renew" | "release" | "cancel", change: Change): void => {
    const original = SeatForm.prototype[method] as (...args: unknown[]) => Write;
    vi.spyOn(SeatForm.prototype, method).mockImplementation(function (this: SeatForm, ...args: unknown[]) {
      return change(original.apply(this, args));
    } as never);
  };
  const insistingOn =
    (keep: (condition: Condition) => boolean): Change =>
    (write) => ({ ...write, insist: write.insist.filter(keep) });
  const attributeOf = (condition: Condition): string => ("anyOf" in condition ? "" : condition[0]);

  const without = (method: "acquire" | "renew", prefix: string) => (): void =>
    plant(
      method,
      insistingOn((condition) => !attributeOf(condition).startsWith(prefix)),
    );

  /** How it is planted, what shows it, and the steps in which it shows itself soon. */
  type Mistake = readonly [() => void, RegExp, fc.Arbitrary<SeatStep>?, number?];
  const mistakes: Record<string, Mistake> = {
    "a bound that is off by one": [
      () =>
        plant("acquire", (write) => ({
          ...write,
          insist: write.insist.map((condition) => {
            if (!("anyOf" in condition)) return condition;
            const anyOf = condition.anyOf.map((test) =>
              test[1] === "<=" ? ([test[0], "<=", Number(test[2]) + 1] as const) : test,
            );
            return { anyOf };
          }),
        })),
      /permits are held|two writers|reads while|a fencing token of/,
    ],
    "a counter that a release does not count down": [
      () => plant("release", ({ set: { permits: _, ...set }, ...write }) => ({ ...write, set })),
      /permits differs from what the seats take/,
    ],
    "passing a seat that was renewed since it was judged": [
      without("acquire", "s:"),
      /permits are held|two writers|reads while|differs from/,
    ],
    "a proof without the fencing number": [
      () => {
        const weak = (lease: { token: string }): Condition[] => [[`f:${lease.token}`, "exists"]];
        vi.spyOn(SeatForm.prototype, "proof").mockImplementation(weak);
      },
      /a stale write of .* went through/,
      writerSteps({ holdLong: false }),
      120,
    ],
    "no mark of a revoked token": [without("acquire", "releasedToken"), /a revoked token of .* came back/],
    "a seat that is taken twice by two copies of one write": [
      without("acquire", "f:"),
      /taken twice|differs from/,
    ],
    "a renewal that does not compare versions": [
      without("renew", "s:"),
      /two writers/,
      writerSteps({ holdLong: true }),
      200,
    ],
    "a cooldown that ends at once": [
      () => {
        const original = SeatForm.prototype.release;
        vi.spyOn(SeatForm.prototype, "release").mockImplementation(function (this: SeatForm, ending) {
          return original.call(this, { ...ending, cooldown: undefined });
        });
      },
      /permits are held/,
    ],
    "a takeover before the end of a lease": [
      () => {
        vi.spyOn(ExpiryDetector.prototype, "judgeAll").mockImplementation(
          (leases) => new Map(leases.map((lease) => [lease, { expired: true, reason: "serviceClock" }])),
        );
      },
      /permits are held|two writers|reads while|a fencing token of/,
    ],
    "a ttl that does not outlast the other seats": [
      () => plant("release", (write) => ({ ...write, set: { ...write.set, ttl: 1 } })),
      /permits are held|two writers|reads while|a fencing token of/,
    ],
    "a reentrant owner that nothing marks": [
      () =>
        plant("acquire", (write) => ({
          ...insistingOn((condition) => !attributeOf(condition).startsWith("o:"))(write),
          set: Object.fromEntries(Object.entries(write.set).filter(([name]) => !name.startsWith("o:"))),
        })),
      /has two seats, reentrantly/,
    ],
  };

  it.each(Object.keys(mistakes))("%s", async (name) => {
    const [plantIt, expected, step = everything, mostSteps = 70] = mistakes[name] as Mistake;
    plantIt();
    expect(await violationOf(property({}, step, mostSteps))).toMatch(expected);
  });
});
