import { getEventListeners } from "node:events";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { onAbort } from "../../packages/client/src/base/abort.ts";
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
  it("when its time is over by the monotonic clock, to the millisecond", () => {
    const { call, now } = budget();
    now.monotonic += 2_000;
    expect(call.isCurrent()).toBe(true);
    now.monotonic += 1;
    expect(call.isCurrent()).toBe(false);
  });

  it("when its time is over by the wall clock, which may be set by a second meanwhile", () => {
    const { call, now } = budget();
    now.wall += 3_000;
    expect(call.isCurrent()).toBe(true);
    now.wall += 1;
    expect(call.isCurrent()).toBe(false);
  });

  it("when its caller gives up, whose reason it gives on", () => {
    const outer = new AbortController();
    const { call } = budget({ signal: outer.signal });
    expect(call.isCurrent()).toBe(true);
    const reason = new Error("no more");
    outer.abort(reason);
    expect([call.isCurrent(), call.signal.reason]).toEqual([false, reason]);
  });

  it("when its timer has fired, with an error that says how long it had", () => {
    const { call, timers } = budget();
    for (const fire of timers) fire();
    expect(call.isCurrent()).toBe(false);
    expect(call.signal.reason).toMatchObject({
      code: "LEASE_NO_ANSWER",
      message: expect.stringContaining("2000 ms"),
    });
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
    ]);
    expect(listeners(signal)).toBe(3);
    woken.wake();
    await clock.advance(10);
    expect(await all).toEqual([undefined, false, true]);
    expect(listeners(signal)).toBe(0);
  });

  it("by a sleep that nothing but its time or a call ends", async () => {
    const clock = new ManualClock();
    const woken = new WakeableSleep(clock);
    const first = woken.sleep(10, undefined);
    await clock.advance(10);
    expect(await first).toBe(false);
    const second = woken.sleep(10, undefined);
    woken.wake();
    expect(await second).toBe(true);
  });

  it("after it was called back once, or called off", () => {
    const controller = new AbortController();
    const { signal } = controller;
    let count = 0;
    const ignore = onAbort(signal, () => {
      count += 1;
    });
    onAbort(signal, () => {
      count += 10;
    })();
    controller.abort();
    signal.dispatchEvent(new Event("abort"));
    ignore();
    expect(count).toBe(1);
  });
});

describe("the machine's timers", () => {
  const useTimers = (): void => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
  };

  it("take the longest delay in place of a longer one, which would fire at once", () => {
    useTimers();
    let fired = 0;
    const cancel = systemClock.schedule(() => {
      fired += 1;
    }, 2 ** 40);
    vi.advanceTimersByTime(2 ** 31 - 2);
    expect(fired).toBe(0);
    vi.advanceTimersByTime(1);
    expect(fired).toBe(1);
    cancel();
  });

  it("fire no earlier than they are due, and not at all once they are called off", () => {
    useTimers();
    const fired: string[] = [];
    systemClock.schedule(() => fired.push("due"), 10.2);
    const cancel = systemClock.schedule(() => fired.push("called off"), 5);
    systemClock.schedule(() => fired.push("at once"), -3);
    cancel();
    vi.advanceTimersByTime(10);
    expect(fired).toEqual(["at once"]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(["at once", "due"]);
  });

  it("keep the process alive unless they are in the background", () => {
    const timers: { readonly unref: ReturnType<typeof vi.fn> }[] = [];
    vi.stubGlobal("setTimeout", () => {
      const timer = { unref: vi.fn() };
      timers.push(timer);
      return timer;
    });
    onTestFinished(() => {
      vi.unstubAllGlobals();
    });
    systemClock.schedule(() => undefined, 1);
    systemClock.schedule(() => undefined, 1, { background: true });
    expect(timers.map(({ unref }) => unref.mock.calls.length)).toEqual([0, 1]);
  });
});
