import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights } from "../support/flights.ts";

const freshForMs = 10_000;
const isCacheable = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);

const flights = flightsWith({ freshForMs, isCacheable });

beforeEach(renewFlights);

describe("a value that is not cacheable", () => {
  test.each([[undefined], [null], [""], [[]]])(
    "is given to its callers and not stored: %o",
    async (blank) => {
      const shared = flights();
      const { compute, run } = controlled<unknown>();
      const calls = [1, 2].map(() => shared.getOrComputeWithSource("k", { compute }));
      await settled();
      run(0).resolve(blank);
      const given = { value: blank, source: "computation" };
      expect(await Promise.all(calls)).toEqual([given, given]);
      // The lock is free, and the next call computes.
      expect(await flights().getOrCompute<unknown>("k", { compute: () => "full", waitMs: 0 })).toBe("full");
      expect(await shared.getOrCompute<unknown>("k", { compute: () => "computed in vain" })).toBe("full");
    },
  );

  test("leaves an old value as it was, also where it comes from a forced refresh", async () => {
    const shared = flights({ staleForMs: 60_000 });
    await shared.getOrCompute("k", { compute: () => "old" });
    expect(await shared.getOrCompute("k", { compute: () => "", forceRefresh: true })).toBe("");
    expect(await shared.getOrComputeWithSource("k", { compute: () => "" })).toEqual({
      value: "old",
      source: "cache",
    });
    await clock.advance(freshForMs);
    expect(await shared.getOrCompute("k", { compute: () => "" })).toBe("");
    let shown: unknown;
    const compute = ({ stale }: { readonly stale: string | undefined }): string => {
      shown = stale;
      return "new";
    };
    await shared.getOrCompute("k", { compute });
    expect(shown).toBe("old");
  });
});

test("without isCacheable a blank value is a value, so that it can be remembered that there is nothing", async () => {
  for (const blank of [null, "", []]) {
    const key = JSON.stringify(blank);
    const shared = flightsWith({ freshForMs })();
    await shared.getOrCompute<unknown>(key, { compute: () => blank });
    const again = await shared.getOrComputeWithSource<unknown>(key, { compute: () => "computed in vain" });
    expect(again).toEqual({ value: blank, source: "cache" });
  }
});

test("a value of undefined that isCacheable lets through is refused as ever", async () => {
  const shared = flights({ isCacheable: () => true });
  const failed = failureOf(shared.getOrCompute("k", { compute: () => undefined }));
  expect(await failed).toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "compute's result" });
});

describe("an isCacheable", () => {
  test("that throws, or gives no boolean, makes the call fail, though a stale value is there; the lock is let go", async () => {
    const keeping = { staleForMs: 60_000 };
    await flights(keeping).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    const bug = new TypeError("a bug");
    const throws = (): boolean => {
      throw bug;
    };
    const call = (judge: (value: unknown) => unknown): Promise<unknown> => {
      const options = { ...keeping, isCacheable: judge as (value: unknown) => boolean };
      return failureOf(flights(options).getOrCompute("k", { compute: () => "new" }));
    };
    expect(await call(throws)).toBe(bug);
    expect(await call(async () => false)).toMatchObject({ option: "isCacheable's answer" });
    expect(await flights(keeping).getOrCompute("k", { compute: () => "new", waitMs: 0 })).toBe("new");
  });

  test("during which the last caller leaves stores nothing", async () => {
    const caller = new AbortController();
    const cache = new Map<string, unknown>();
    const leaves = (): boolean => {
      caller.abort();
      return true;
    };
    const shared = flights({ cache, isCacheable: leaves });
    const left = failureOf(shared.getOrCompute("k", { compute: () => "new", signal: caller.signal }));
    expect(await left).toMatchObject({ code: "LEASE_ABORTED" });
    await settled();
    expect(cache.size).toBe(0);
    const error = expect.objectContaining({ message: 'nobody waits for "k" any more' });
    expect(events).toContainEqual({
      type: "cacheFailed",
      key: "k",
      operation: "write",
      reason: "threw",
      error,
    });
  });
});
