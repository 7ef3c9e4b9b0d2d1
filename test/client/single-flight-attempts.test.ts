import { beforeEach, describe, expect, test } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights } from "../support/flights.ts";

const freshForMs = 10_000;
const leaseDurationMs = 3_000;

const flights = flightsWith({ freshForMs }, { leaseDurationMs });

beforeEach(renewFlights);

/** A computation that fails some times before it succeeds, and when it was begun. */
function failing(times: number): { readonly compute: () => string; readonly begunAt: number[] } {
  const begunAt: number[] = [];
  const start = clock.monotonic();
  const compute = (): string => {
    begunAt.push(clock.monotonic() - start);
    if (begunAt.length <= times) throw new Error(`down ${begunAt.length}`);
    return "value";
  };
  return { compute, begunAt };
}

const backoff = { delayMs: 1_000, maxDelayMs: 3_000 };

describe("a computation that fails", () => {
  test("is not repeated unless that is asked for", async () => {
    const { compute, begunAt } = failing(1);
    expect(await failureOf(flights().getOrCompute("k", { compute }))).toMatchObject({ message: "down 1" });
    expect(begunAt).toEqual([0]);
  });

  test("is repeated with growing waits, under the same lease, and stored once; an event tells of each attempt", async () => {
    const { compute, begunAt } = failing(3);
    const shared = flights({ maxAttempts: 4, backoff });
    const call = shared.getOrCompute("k", { compute });
    await clock.advance(4_500);
    expect(await call).toBe("value");
    // Three quarters of 1000, 2000 and 3000 ms.
    expect(begunAt).toEqual([0, 750, 2_250, 4_500]);
    expect(events).toMatchObject([
      { type: "computed", attempt: 1, tookMs: 0, error: { message: "down 1" } },
      { type: "computed", attempt: 2, tookMs: 0, error: { message: "down 2" } },
      { type: "computed", attempt: 3, tookMs: 0, error: { message: "down 3" } },
      { type: "computed", attempt: 4, tookMs: 0 },
      { type: "served", source: "computation" },
    ]);
    expect(
      new Set(events.flatMap((event) => (event.type === "computed" ? event.fencingToken : []))),
    ).toHaveLength(1);
  });

  test("fails with its last error when its attempts are used up, and only then is the failure remembered", async () => {
    const { compute, begunAt } = failing(9);
    const failed = failureOf(
      flights({ failureForMs: 5_000 }).getOrCompute("k", { compute, maxAttempts: 2, backoff }),
    );
    const waiting = failureOf(flights({ failureForMs: 5_000 }).getOrCompute("k", { compute }));
    await clock.advance(3_000);
    expect(await failed).toMatchObject({ message: "down 2" });
    expect(await waiting).toMatchObject({
      code: "LEASE_CACHED_FAILURE",
      message: expect.stringContaining("down 2"),
    });
    expect(begunAt).toHaveLength(2);
  });

  test("is not repeated where the wait would end after computeTimeoutMs: the error comes at once, and its own", async () => {
    const { compute, begunAt } = failing(9);
    const shared = flights({ maxAttempts: 9, backoff, computeTimeoutMs: 2_250 });
    const failed = failureOf(shared.getOrCompute("k", { compute }));
    await clock.advance(750);
    expect(await failed).toMatchObject({ message: "down 2" });
    expect(begunAt).toEqual([0, 750]);
  });

  test("is not repeated when nobody waits any more, nor told twice, and its lock is let go", async () => {
    const gone = new AbortController();
    const { compute, begunAt } = failing(9);
    const shared = flights({ maxAttempts: 9, backoff });
    const left = failureOf(shared.getOrCompute("k", { compute, signal: gone.signal }));
    await clock.advance(100);
    gone.abort();
    expect(await left).toMatchObject({ code: "LEASE_ABORTED" });
    await clock.advance(60_000);
    expect(begunAt).toEqual([0]);
    expect(events).toMatchObject([{ type: "computed", attempt: 1, error: { message: "down 1" } }]);
    expect(await flights().getOrCompute("k", { compute: () => "next", waitMs: 0 })).toBe("next");
    expect(clock.pending).toBe(0);
  });
});
