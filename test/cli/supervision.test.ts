/** What a child hears of the lease that it runs under. */
import { LeaseLostError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Child } from "../../packages/cli/src/work/child.ts";
import { type SupervisionOptions, superviseChild } from "../../packages/cli/src/work/supervision.ts";

/** A child that does nothing by itself, under a lease of a minute that ends when the test says so. */
function supervise(flags: Partial<SupervisionOptions["flags"]>, attended?: Promise<unknown>) {
  const clock = new ManualClock();
  const loss = new AbortController();
  const ended = Promise.withResolvers<number>();
  const terminated = Promise.withResolvers<void>();
  const got: string[] = [];
  const said: string[] = [];
  const lease = { signal: loss.signal, held: true, remainingMs: () => 60_000 };
  const child = {
    ended: ended.promise,
    terminated: terminated.promise,
    left: false,
    kill: (name: string) => void got.push(name),
    closePipe: () => void got.push("pipe closed"),
    hasLeftovers: () => child.left,
  };
  const none = {
    "on-lost": "term" as const,
    "kill-after": undefined,
    grace: undefined,
    max: undefined,
    fd: undefined,
  };
  const outcome = superviseChild(child as unknown as Child, {
    ...{ key: "k", lease, leaseMs: 60_000, clock, say: (line: string) => void said.push(line), attended },
    flags: { ...none, ...flags },
  });
  const lose = (): void => {
    lease.held = false;
    loss.abort(new LeaseLostError("k", "taken"));
  };
  const [terminate, end] = [terminated.resolve, ended.resolve];
  return { clock, child, lease, got, said, lose, terminate, end, outcome };
}

it("each time that its lease is about to end, a child that may go on is told so again", async () => {
  const { clock, lease, said, end, outcome } = supervise({ "on-lost": "ignore", grace: 5_000 });
  let endsAt = clock.monotonic() + 60_000;
  lease.remainingMs = () => endsAt - clock.monotonic();
  await clock.advance(55_000);
  expect(said).toEqual([
    "leasehold: k ends in 5.0s, and no renewal is confirmed; the child goes on (--on-lost ignore)",
  ]);
  endsAt += 60_000;
  await clock.advance(59_000);
  expect(said).toHaveLength(1);
  await clock.advance(1_000);
  expect(said).toHaveLength(2);
  end(0);
  expect(await outcome).toEqual({ code: 0, isLost: false, isTooLong: false });
  expect(clock.pending).toBe(0);
});

describe("a child that is stopped", () => {
  it("and ends in time gets no SIGKILL later: its number may be another process's by then", async () => {
    const { clock, got, end, outcome } = supervise({ max: 5_000, "kill-after": 10_000 });
    await clock.advance(5_000);
    end(143);
    expect(await outcome).toEqual({ code: 143, isLost: false, isTooLong: true });
    expect(clock.pending).toBe(0);
    expect(got).toEqual(["SIGTERM", "SIGCONT"]);
  });

  it("had its lease to its end, when that ends while the processes that it has left behind are waited for", async () => {
    const { clock, child, lease, got, end, outcome } = supervise({ max: 5_000, "kill-after": 10_000 });
    await clock.advance(5_000);
    child.left = true;
    end(143);
    await clock.advance(1_000);
    lease.held = false;
    await clock.advance(10_000);
    expect(await outcome).toEqual({ code: 143, isLost: false, isTooLong: true });
    expect(got).toEqual(["SIGTERM", "SIGCONT", "SIGKILL"]);
  });

  it("after --max, and loses its lease before it has ended, has lost it", async () => {
    const { clock, lose, end, outcome } = supervise({ max: 5_000 });
    await clock.advance(5_000);
    lose();
    end(0);
    expect(await outcome).toEqual({ code: 0, isLost: true, isTooLong: true });
  });

  it("after --max, and loses its lease before it has ended, is killed at once with --on-lost kill", async () => {
    const { clock, got, lose, end, outcome } = supervise({
      ...{ max: 5_000, "on-lost": "kill", "kill-after": 300_000 },
    });
    await clock.advance(5_000);
    expect(got).toEqual(["SIGTERM", "SIGCONT"]);
    lose();
    expect(got).toEqual(["SIGTERM", "SIGCONT", "pipe closed", "SIGKILL"]);
    end(137);
    expect(await outcome).toEqual({ code: 137, isLost: true, isTooLong: true });
    expect(clock.pending).toBe(0);
  });
});

it("a child may run for longer than a timer can last", async () => {
  const dayMs = 86_400_000;
  const { schedule } = ManualClock.prototype;
  const clamped = function (this: ManualClock, callback: () => void, delayMs: number): () => void {
    return schedule.call(this, callback, Math.min(delayMs, 2 ** 31 - 1));
  };
  const spy = vi.spyOn(ManualClock.prototype, "schedule").mockImplementation(clamped);
  onTestFinished(() => spy.mockRestore());
  const { clock, lease, got, end, outcome } = supervise({ max: 30 * dayMs });
  lease.remainingMs = () => 60 * dayMs;
  await clock.advance(30 * dayMs - 1);
  expect(got).toEqual([]);
  await clock.advance(1);
  expect(got).toEqual(["SIGTERM", "SIGCONT"]);
  end(143);
  expect(await outcome).toEqual({ code: 143, isLost: false, isTooLong: true });
  expect(clock.pending).toBe(0);
});

describe("a child that has ended, and has left behind what still writes to its pipe", () => {
  it("is told of the loss of its lease until the pipe ends", async () => {
    const pipe = Promise.withResolvers<void>();
    const { clock, got, lose, end, outcome } = supervise({}, pipe.promise);
    end(0);
    await clock.advance(1_000);
    lose();
    expect(got).toEqual(["pipe closed", "SIGTERM", "SIGCONT"]);
    pipe.resolve();
    expect(await outcome).toEqual({ code: 0, isLost: true, isTooLong: false });
    expect(clock.pending).toBe(0);
  });

  it("has had its lease to the end when its pipe cannot be read", async () => {
    const { clock, end, outcome } = supervise({}, Promise.reject(new Error("read EIO")));
    await clock.advance(1_000);
    end(0);
    expect(await outcome).toEqual({ code: 0, isLost: false, isTooLong: false });
  });
});

it("a child that goes on without its lease hears of the loss by its pipe", async () => {
  const { clock, got, lose, end, outcome } = supervise({ "on-lost": "ignore" });
  lose();
  await clock.advance(60_000);
  expect(got).toEqual(["pipe closed"]);
  end(0);
  expect(await outcome).toEqual({ code: 0, isLost: true, isTooLong: false });
});

describe("a child that gets the SIGTERM of others", () => {
  it("is killed --kill-after later, with what it has left behind", async () => {
    const { clock, child, got, terminate, end, outcome } = supervise({ "kill-after": 10_000 });
    terminate();
    await clock.advance(9_999);
    expect(got).toEqual([]);
    await clock.advance(1);
    expect(got).toEqual(["SIGKILL"]);
    child.left = true;
    end(137);
    expect(await outcome).toEqual({ code: 137, isLost: false, isTooLong: false });
    expect(got).toEqual(["SIGKILL", "SIGKILL"]);
    expect(clock.pending).toBe(0);
  });

  it("has no limit where none is given, and one limit where it was stopped before", async () => {
    const patient = supervise({});
    patient.terminate();
    await patient.clock.advance(3_600_000);
    expect(patient.got).toEqual([]);
    patient.end(0);
    expect(await patient.outcome).toEqual({ code: 0, isLost: false, isTooLong: false });
    const { clock, got, terminate, end, outcome } = supervise({ max: 5_000, "kill-after": 10_000 });
    await clock.advance(5_000);
    terminate();
    await clock.advance(10_000);
    end(137);
    await outcome;
    expect(got).toEqual(["SIGTERM", "SIGCONT", "SIGKILL"]);
  });
});
