import { describe, expect, it } from "vitest";
import type { Moment } from "../../packages/client/src/base/clock.ts";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";

/** The service's time of the first answer, in whole seconds as its Date header has it. */
const told = 1_800_000_000_000;
/** A moment at which the monotonic clock shows this, and the wall clock so much after the first answer's time. */
const at = (monotonic: number, wall: number): Moment => ({
  monotonic,
  wall: told + wall,
  uptime: undefined,
});

/** A clock that an answer has told the time: sent at 9,900, arrived at 10,000; its wall clock shows this then. */
function clockOf(wallAtArrival = 400, isLocal = false) {
  const now = { monotonic: 10_000, wall: told + wallAtArrival };
  const own = { monotonic: () => now.monotonic, now: () => now.wall, schedule: () => () => undefined };
  const clock = new ServiceClock(own, isLocal, () => undefined);
  const note = (earliest: number, sent: Moment = at(9_900, wallAtArrival - 100)): void =>
    clock.note({ earliest: told + earliest, latest: told + earliest + 1_000 }, sent);
  return { clock, note, now };
}

function toldClock(wallAtArrival?: number) {
  const { note, ...rest } = clockOf(wallAtArrival);
  note(0);
  return { note, ...rest };
}

describe("the earliest time of the service", () => {
  it("does not fall back to an answer that shows less", () => {
    const { clock, note } = toldClock();
    note(-300);
    expect(clock.earliest(at(10_000, 400))).toBe(told);
  });

  it("is not known before the first answer, and nothing is past then", () => {
    const { clock } = clockOf();
    expect([clock.earliest(), clock.latest(), clock.ahead()]).toEqual([undefined, undefined, undefined]);
    expect(clock.isPast(0, at(10_000, 400))).toBe(false);
  });
});

describe("the latest time of the service", () => {
  const latestAt = (clock: ServiceClock, since: Moment): number =>
    // A wall clock that is wrong by hours has no part in it.
    clock.expiryOf({ ...since, wall: since.wall - 7_200_000 }, 999) - 1_000;

  it("is earlier by less than was shown for a moment before the request", () => {
    expect(latestAt(toldClock().clock, at(8_900, -700))).toBe(told + 1);
  });

  it("counts by the wall clock where that shows more, as after a suspension", () => {
    const { clock, now } = toldClock();
    now.monotonic = 9_900;
    now.wall = told + 10_300;
    expect(clock.latest()).toBe(told + 11_010);
  });

  it("follows an answer that shows less, and no other", () => {
    const { clock, note, now } = toldClock();
    now.monotonic = 9_900;
    now.wall = told + 300;
    note(-300);
    expect(clock.latest()).toBe(told + 700);
    note(200);
    expect(clock.latest()).toBe(told + 700);
  });
});

describe("an answer that contradicts the others", () => {
  const bounds = ({ clock }: { clock: ServiceClock }): (number | undefined)[] => [
    (clock.earliest() ?? 0) - told,
    Math.round((clock.latest() ?? 0) - told),
  ];

  it("is forgotten when the next one agrees with those before", () => {
    const { clock, note } = toldClock();
    note(5_000);
    note(100);
    expect(bounds({ clock })).toEqual([100, 1_100]);
  });

  it("is forgotten when another one contradicts it, too", () => {
    const { clock, note } = toldClock();
    note(5_000);
    note(50_000);
    note(5_100);
    expect(bounds({ clock })).toEqual([0, 6_200]);
  });

  it("is none where the clocks have drifted apart by less than a thousandth since", () => {
    const { clock, note, now } = toldClock();
    now.monotonic += 1_000_000;
    now.wall += 1_000_000;
    note(1_001_500, at(1_009_900, 1_000_300));
    expect(bounds({ clock })[0]).toBe(1_001_500);
  });

  it("does not move the time of first fencing tokens", () => {
    for (const wall of [400, -7_200_000]) {
      const { clock, note, now } = toldClock(wall);
      const before = clock.now();
      note(3_600_000, at(9_900, wall - 100));
      expect(clock.now()).toBe(before);
      expect(clock.timeOf(at(now.monotonic, wall)) - told).toBeLessThan(2_000);
    }
  });

  it("ends what it shows to be over", () => {
    const { clock, note } = toldClock();
    note(5_000);
    expect(clock.isPast(told + 5_000, at(10_000, 400))).toBe(true);
    expect(clock.isPast(told + 5_001, at(10_000, 400))).toBe(false);
  });
});

describe("an expiry", () => {
  it("stays the one that the table shows where the new one would be earlier by less than a second", () => {
    const { clock } = toldClock();
    const expiry = (shown: number): number => clock.expiryOf(at(10_000, 400), 5_000, told + shown) - told;
    expect([6_105, 6_107, 7_105, 7_106].map(expiry)).toEqual([6_106, 6_107, 7_105, 6_106]);
  });

  it("is sound where it covers more than a third of the lease, and does not outlast it by more than 5 s", () => {
    const { clock } = toldClock();
    const isSound = (expiresAt: number): boolean =>
      clock.checkExpiry(told + expiresAt, at(9_900, 300), 3_000).isSound;
    expect([2_001, 2_002, 9_000, 9_001].map(isSound)).toEqual([false, true, true, false]);
    // Covered for 5,000 ms by its holder's slow clock: exactly a third.
    const ofThird = (leaseDurationMs: number) =>
      clock.checkExpiry(told + 6_000, at(9_900, 300), leaseDurationMs);
    expect(ofThird(14_985)).toEqual({ believedMs: 4_995, isSound: false });
    expect(ofThird(14_984).isSound).toBe(true);
  });

  it("is not believed in at all where nobody has told the time, unless it says so", () => {
    const { clock } = clockOf();
    const check = (ownClock: boolean) => clock.checkExpiry(told + 9_000, at(10_000, 400), 3_000, ownClock);
    expect(check(false)).toEqual({ believedMs: 0, isSound: false });
    expect(check(true)).toEqual({ believedMs: 3_000, isSound: true });
  });

  it("stays where nobody has told the time, and is not brought forward", () => {
    const expiry = (shown: number) => clockOf().clock.expiryOf(at(10_000, 400), 3_000, told + shown) - told;
    expect([0, 3_399, 9_000_000].map(expiry)).toEqual([3_400, 3_400, 9_000_000]);
  });
});

describe("the wall clock is taken for right", () => {
  const timeOf = (wallAtArrival: number, since: Moment): number =>
    toldClock(wallAtArrival).clock.timeOf(since) - told;

  it("while it goes on with the monotonic one, within a tenth of a second and a thousandth", () => {
    expect(timeOf(400, at(11_900, 2_402))).toBe(2_402);
    expect(timeOf(400, at(11_900, 2_403))).toBe(3_105);
    expect(timeOf(400, at(11_900, 2_198))).toBe(2_198);
    expect(timeOf(400, at(11_900, 2_197))).toBe(3_002);
  });

  it("unless it is behind the earliest time of the service", () => {
    expect(timeOf(10, at(11_900, 1_899))).toBe(1_899);
    expect(timeOf(10, at(11_900, 1_890))).toBe(3_002);
    expect(timeOf(0, at(10_000, 0))).toBe(0);
  });

  it("unless it is at the latest time of the service, or beyond", () => {
    expect(timeOf(1_099, at(9_900, 999))).toBe(999);
    expect(timeOf(1_101, at(9_900, 1_001))).toBe(1_000);
  });

  it("in a store of the same process, whose time it is", () => {
    const { clock, note, now } = clockOf(400, true);
    note(9_000);
    expect([clock.earliest(), clock.latest(), clock.now()]).toEqual([now.wall, now.wall, now.wall]);
    expect(clock.expiryOf(at(10_000, 400), 5_000)).toBe(told + 5_400);
    expect(clock.isPast(0, at(10_000, 400))).toBe(false);
  });
});

it("the service is ahead of the wall clock by whole milliseconds, at least and at most", () => {
  expect(toldClock().clock.ahead(at(10_000, 400))).toEqual({ minMs: -400, maxMs: 701 });
});
