/** An event tells that the wall clock and the service's are too far apart, and does not tell it all the time. */
import type { LeaseEvent } from "@leasehold/client";
import { describe, expect, it } from "vitest";
import { timeWatch } from "../../packages/client/src/protocol/time-watch.ts";
import type { Moment } from "../../packages/client/src/time/clock.ts";
import type { ServiceClock } from "../../packages/client/src/time/service-clock.ts";

const clockSkewMs = 1_000;

function watch() {
  const state: { ahead: { minMs: number; maxMs: number } | undefined } = { ahead: undefined };
  const events: LeaseEvent[] = [];
  const clock = { ahead: () => state.ahead } as unknown as ServiceClock;
  const look = timeWatch(clock, clockSkewMs, (event) => events.push(event));
  return {
    events,
    /** How many events there are when the service is ahead by so much, at a time of the monotonic clock. */
    look(minMs: number, maxMs: number, monotonic = 0): number {
      state.ahead = { minMs, maxMs };
      look({ monotonic } as Moment);
      return events.length;
    },
    lookWithoutAnswer: () => look({ monotonic: 0 } as Moment),
  };
}

it("the service's unknown time is told once, and not where it is known", () => {
  const events: LeaseEvent[] = [];
  const clock = { ahead: () => undefined, isUntold: false };
  const look = timeWatch(clock as unknown as ServiceClock, clockSkewMs, (event) => events.push(event));
  const moment = { monotonic: 0 } as Moment;
  look(moment);
  expect(events).toEqual([]);
  clock.isUntold = true;
  look(moment);
  look(moment);
  expect(events).toEqual([{ type: "timeUnknown" }]);
});

describe("clocks that are too far apart are told", () => {
  it("when the service is ahead by more than the allowance at least, or behind by more than that", () => {
    expect(watch().look(1_000, 2_000)).toBe(0);
    expect(watch().look(1_001, 2_000)).toBe(1);
    expect(watch().look(-2_000, -1_000)).toBe(0);
    expect(watch().look(-2_000, -1_001)).toBe(1);
    expect(watch().look(-5_000, 5_000)).toBe(0);
  });

  it("with what is known", () => {
    const { events, look } = watch();
    look(1_500, 2_500);
    expect(events).toEqual([{ type: "skew", offsetMinMs: 1_500, offsetMaxMs: 2_500, clockSkewMs }]);
  });

  it("at most once a minute", () => {
    const { look } = watch();
    expect([0, 59_999, 60_000, 60_001].map((at) => look(1_500, 2_500, at))).toEqual([1, 1, 2, 2]);
  });

  it("not before an answer has told the service's time", () => {
    const { events, lookWithoutAnswer } = watch();
    lookWithoutAnswer();
    expect(events).toEqual([]);
  });
});
