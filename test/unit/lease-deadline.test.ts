/** How long a holder believes in its lease: until its own deadline, and not after the first reason against it. */
import { LeaseLostError } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { LeaseDeadline } from "../../packages/client/src/protocol/lease-deadline.ts";
import { ManualClock } from "../../packages/client/src/testing/index.ts";
import { ServiceClock } from "../../packages/client/src/time/service-clock.ts";

class ObservedClock extends ManualClock {
  /** With which options timers were set. */
  readonly options: unknown[] = [];

  override schedule(callback: () => void, delayMs: number, options?: { background?: boolean }): () => void {
    this.options.push(options);
    return super.schedule(callback, delayMs);
  }
}

let own: ObservedClock;
let clock: ServiceClock;
let ended: string[];
let deadline: LeaseDeadline;

beforeEach(() => {
  own = new ObservedClock();
  clock = new ServiceClock(own, true, () => undefined);
  ended = [];
  deadline = new LeaseDeadline("k", clock, { expiresAt: 1_000 }, { ended: (reason) => ended.push(reason) });
});

const confirm = (forMs: number, expiresAt = 2_000): void =>
  deadline.confirm({ since: clock.moment(), forMs }, expiresAt);

describe("a lease", () => {
  it("protects nothing before it is confirmed, and has not ended either", () => {
    expect([deadline.remainingMs(), deadline.lost, deadline.error]).toEqual([0, undefined, undefined]);
    expect(deadline.signal.aborted).toBe(false);
  });

  it("is believed in for as long as was confirmed, and ends then by itself", async () => {
    confirm(500);
    expect([deadline.remainingMs(), deadline.expiresAt]).toEqual([500, 2_000]);
    await own.advance(499);
    expect([deadline.remainingMs(), ended]).toEqual([1, []]);
    await own.advance(1);
    expect([deadline.remainingMs(), ended]).toEqual([0, ["expired"]]);
    expect(own.pending).toBe(0);
  });

  it("does not keep the process alive, and has one timer however often it is confirmed", () => {
    confirm(500);
    confirm(700);
    expect(own.pending).toBe(1);
    expect(own.options).toEqual([{ background: true }, { background: true }]);
    deadline.end("released");
    expect(own.pending).toBe(0);
  });

  it("ends once, for the first reason, whatever comes later", () => {
    confirm(500);
    deadline.end("taken", "held by somebody");
    deadline.end("released");
    confirm(9_000, 99_000);
    expect([deadline.lost, ended]).toEqual(["taken", ["taken"]]);
    expect([deadline.remainingMs(), deadline.expiresAt, own.pending]).toEqual([0, 2_000, 0]);
  });

  it("tells all who ask the same error", () => {
    confirm(500);
    deadline.end("taken", "held by somebody");
    expect(deadline.error).toBeInstanceOf(LeaseLostError);
    expect(deadline.error).toMatchObject({ key: "k", reason: "taken" });
    expect(deadline.error?.message).toContain("held by somebody");
    expect(deadline.error).toBe(deadline.error);
    expect(deadline.signal.reason).toBe(deadline.error);
  });
});

describe("its signal", () => {
  it("is one for all who read it, and aborts when the lease ends, after the lease has heard of it", () => {
    confirm(500);
    const { signal } = deadline;
    expect(deadline.signal).toBe(signal);
    const heard: string[][] = [];
    signal.addEventListener("abort", () => heard.push([...ended]));
    deadline.end("revoked");
    expect(heard).toEqual([["revoked"]]);
    expect(deadline.signal).toBe(signal);
  });

  it("looks at the clock when it is read, and has aborted where the time was over before", () => {
    confirm(500);
    own.freeze(500);
    expect(deadline.lost).toBeUndefined();
    expect(deadline.signal.aborted).toBe(true);
    expect(deadline.lost).toBe("expired");
  });
});
