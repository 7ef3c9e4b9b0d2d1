import { getEventListeners } from "node:events";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { settles, sleep, systemClock, WakeableSleep } from "../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import { TimedCall } from "../../packages/client/src/base/timed-call.ts";
import { ManualClock } from "../../packages/client/src/entries/testing.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

function budget(options: { readonly signal?: AbortSignal } = {}) {
  const now = { monotonic: 5_000, wall: 1_800_000_000_000 };
  const timers: (() => void)[] = [];
  const own = {
    monotonic: () => now.monotonic,
    now: () => now.wall,
    schedule(callback: () => void): () => void {
      timers.push(callback);
      return () => undefined;
    },
  };
  const clock = new ServiceClock(own, false, () => undefined);
  return { call: new TimedCall(clock, { withinMs: 2_000, ...options }), now, timers };
}

describe("a request is sent no more", () => {
  it.each([
    ["the monotonic clock, to the millisecond", "monotonic", 2_000],
    ["the wall clock, which may be set by a second meanwhile", "wall", 3_000],
  ] as const)("when its time is over by %s", (_, which, ms) => {
    const { call, now } = budget();
    now[which] += ms;
    expect(call.isCurrent()).toBe(true);
    now[which] += 1;
    expect(call.isCurrent()).toBe(false);
  });

  it("when its caller gives up, whose reason it gives on", () => {
    const outer = new AbortController();
    const { call } = budget({ signal: outer.signal });
    const reason = new Error("no more");
    outer.abort(reason);
    expect([call.isCurrent(), call.signal.reason]).toEqual([false, reason]);
  });

  it("when its timer has fired, with an error that says how long it had", () => {
    const { call, timers } = budget();
    for (const fire of timers) fire();
    const message = expect.stringContaining("2000 ms");
    expect([call.isCurrent(), call.signal.reason]).toMatchObject([
      false,
      { code: "LEASE_NO_ANSWER", message },
    ]);
  });
});

describe("nothing is left listening to a caller's signal", () => {
  it("by a call that has ended", () => {
    const { signal } = new AbortController();
    const { call } = budget({ signal });
    expect(listeners(signal)).toBe(1);
    call.end();
    expect(listeners(signal)).toBe(0);
  });

  it("by a sleep or a wait that is over, nor by one that was woken", async () => {
    const { signal } = new AbortController();
    const clock = new ManualClock();
    const woken = new WakeableSleep(clock);
    const all = Promise.all([
      sleep(clock, 10, signal),
      settles(clock, new Promise(() => undefined), 10, signal),
      woken.sleep(1_000, signal),
      new WakeableSleep(clock).sleep(10, undefined),
    ]);
    expect(listeners(signal)).toBe(3);
    woken.wake();
    await clock.advance(10);
    expect(await all).toEqual([undefined, false, true, false]);
    expect(listeners(signal)).toBe(0);
  });
});

describe("the machine's timers", () => {
  it("fire no earlier than they are due, at the longest delay in place of a longer one, and not once called off", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const fired: string[] = [];
    const schedule = (delayMs: number): (() => void) =>
      systemClock.schedule(() => fired.push(`${delayMs}`), delayMs);
    for (const delayMs of [10.2, -3, 2 ** 40]) schedule(delayMs);
    schedule(5)();
    vi.advanceTimersByTime(10);
    expect(fired).toEqual(["-3"]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(["-3", "10.2"]);
    vi.advanceTimersByTime(2 ** 31 - 1 - 12);
    expect(fired).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(fired).toHaveLength(3);
  });

  it("keep the process alive unless they are in the background", () => {
    const timers: { readonly unref: ReturnType<typeof vi.fn> }[] = [];
    vi.stubGlobal("setTimeout", () => {
      const timer = { unref: vi.fn() };
      timers.push(timer);
      return timer;
    });
    systemClock.schedule(() => undefined, 1);
    systemClock.schedule(() => undefined, 1, { background: true });
    expect(timers.map(({ unref }) => unref.mock.calls.length)).toEqual([0, 1]);
  });
});
