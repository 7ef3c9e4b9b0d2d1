/** What the tests of the audits share: evidence as a play collects it, and faults, each of which turns some checks red. */
import { expect, it } from "vitest";
import type { Grant, LoggedLeaseEvent } from "../leases.ts";
import type { Outcome } from "../scenario.ts";

/** Evidence that a test may spoil; the lines of an order stay as they are. */
export type Mutable<T> = T extends Error
  ? T
  : T extends unknown
    ? { -readonly [K in keyof T]: K extends "lines" ? T[K] : Mutable<T[K]> }
    : never;

/** Spoils the evidence, and names the checks that are red then. */
export type Fault<Evidence> = readonly [spoil: (evidence: Mutable<Evidence>) => unknown, ...red: string[]];

/** Judges evidence in which all went as it should, and once more with each fault. */
export function testsOfAudit<Evidence>(
  judge: (evidence: Evidence) => Outcome,
  right: () => Evidence,
  faults: Readonly<Record<string, Fault<Evidence>>>,
): { readonly redIn: (evidence: Evidence) => string[]; readonly spoilt: typeof spoilt } {
  const redIn = (evidence: Evidence): string[] =>
    judge(evidence).checks.flatMap(({ ok, label }) => (ok ? [] : [label]));
  const spoilt = (spoil: Fault<Evidence>[0]): Evidence => {
    const evidence = structuredClone(right()) as Mutable<Evidence>;
    spoil(evidence);
    return evidence as Evidence;
  };
  it("finds nothing where all went as it should, and nothing late", () => {
    expect(redIn(right())).toEqual([]);
    expect(judge(right()).late).toEqual([]);
  });
  it("has a fault for each of its checks", () => {
    const red = Object.values(faults).flatMap(([, ...labels]) => labels);
    expect(judge(right()).checks.flatMap(({ label }) => (red.includes(label) ? [] : [label]))).toEqual([]);
  });
  it.each(Object.entries(faults))("turns red for %s", (_, [spoil, ...red]) => {
    expect(redIn(spoilt(spoil))).toEqual(red);
  });
  return { redIn, spoilt };
}

/** What the table shows of a grant: of a lease of a second, or of another duration. */
export function grant(
  owner: string,
  fencingToken: number,
  acquiredAt: number,
  {
    from,
    sortKey = "lease",
    leaseMs = 1_000,
  }: Partial<Pick<Grant, "from" | "sortKey">> & { leaseMs?: number } = {},
): Grant {
  return { sortKey, owner, fencingToken, acquiredAt, expiresAt: acquiredAt + leaseMs, from };
}

/** An instance tells that it has got a lease. */
export function acquired(
  instance: string,
  fencingToken: number,
  sortKey = "lease",
  at = 0,
): LoggedLeaseEvent {
  const event = { type: "acquired", key: "key", sortKey, owner: instance, fencingToken } as const;
  return { instance, at, event: { ...event, waitedMs: 5, expiresAt: 0 } };
}

/** An instance tells that it has let a lease go. */
export function released(instance: string, sortKey: string, confirmed = true): LoggedLeaseEvent {
  const event = { type: "released", key: "key", sortKey, owner: instance, fencingToken: 1 } as const;
  return { instance, at: 0, event: { ...event, heldMs: 5, confirmed } };
}

/** An instance tells that its lease has run out. */
export function lost(instance: string, fencingToken: number): LoggedLeaseEvent {
  const event = { type: "lost", key: "key", sortKey: "lease", owner: instance, fencingToken } as const;
  return { instance, at: 0, event: { ...event, heldMs: 3_000, reason: "expired" } };
}

/** An entry of a list that has it. */
export function at<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new Error(`there is no entry ${index}`);
  return found;
}
