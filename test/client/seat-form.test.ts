/** The writes of an item of seats, each of them at its worst moment, against a table in memory. */
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { latestTime } from "../../packages/client/src/base/item-values.ts";
import { wasReleasedByHolder } from "../../packages/client/src/base/record.ts";
import { timeToLive } from "../../packages/client/src/base/schema.ts";
import { ServiceClock } from "../../packages/client/src/base/service-clock.ts";
import type { Item } from "../../packages/client/src/base/store.ts";
import { ExpiryDetector } from "../../packages/client/src/core/expiry-detector.ts";
import type { Availability } from "../../packages/client/src/core/form.ts";
import { readRule } from "../../packages/client/src/primitives/seats/read-write-lock.ts";
import {
  type SeatRecord,
  seatLimits,
  seatOf,
  seatsIn,
} from "../../packages/client/src/primitives/seats/seat.ts";
import {
  renewSeatUnlessRevoked,
  SeatForm,
  type SeatLimits,
  type SeatTerms,
} from "../../packages/client/src/primitives/seats/seat-form.ts";
import { askSeatToStop, breakSeat } from "../../packages/client/src/primitives/seats/seat-writes.ts";
import type { Grant } from "../../packages/client/src/statements/lock.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { said } from "../support/recomposed.ts";
import { watchedMs } from "../support/watching.ts";

const leaseDurationMs = 5_000;
const clockSkewMs = 500;
const retentionMs = 8_000;
const itemKey = { pk: "k", sk: "seats" };
const lease = { key: "k", sortKey: "seats" };

let clock: ManualClock;
let table: MemoryLeaseStore;
let detector: ExpiryDetector;

beforeEach(() => {
  clock = new ManualClock();
  table = new MemoryLeaseStore();
  detector = new ExpiryDetector(new ServiceClock(clock, true, () => undefined), clockSkewMs);
});

const formOf = ({
  bounds = {},
  ...terms
}: Partial<Omit<SeatTerms, "bounds">> & { bounds?: SeatLimits }): SeatForm =>
  new SeatForm({ key: "k", sortKey: "seats", kind: "permit", permits: 1, limits: () => bounds, ...terms });
const semaphore = (most: number, permits = 1): SeatForm =>
  formOf({ permits, bounds: { permit: most - permits } });
const reader = (reentrantOwner?: string): SeatForm =>
  formOf({ kind: "read", bounds: { write: 0, intent: 0, read: 999 }, exemptBy: "write", reentrantOwner });
const writer = (reentrantOwner?: string): SeatForm =>
  formOf({ kind: "write", bounds: { write: 0, read: 0 }, reentrantOwner });
const intent = formOf({ kind: "intent" });

const grantOf = (token: string, others: Partial<Grant> = {}): Grant => ({
  token,
  version: 1,
  owner: `owner of ${token}`,
  acquiredAt: clock.now(),
  expiresAt: clock.now() + leaseDurationMs,
  leaseDurationMs,
  retentionMs,
  reentrant: false,
  data: undefined,
  slot: undefined,
  ...others,
});
const apply = (write: Write): boolean => table.updateNow(write.request()).applied;
const itemNow = (): Item | undefined => table.peek(itemKey);
const seats = (): readonly SeatRecord[] => seatsIn(itemNow());
const tokens = (): string[] => seats().map(({ token }) => token);
const take = (form: SeatForm, token: string, others: Partial<Grant> = {}): SeatRecord => {
  expect(apply(form.acquire(grantOf(token, others), []))).toBe(true);
  return shownOf(token);
};
const shownOf = (token: string): SeatRecord => {
  const seat = seatOf(itemNow(), token);
  if (seat === undefined) throw new Error(`${token} has no seat`);
  return seat;
};
const ending = (shown: SeatRecord, cooldown?: { until: number; forMs: number }) => ({
  shown,
  now: clock.now(),
  retentionMs,
  slot: undefined,
  cooldown,
});
const renewal = (shown: SeatRecord, version = shown.version + 1) => ({
  shown,
  version,
  expiresAt: clock.now() + leaseDurationMs,
  leaseDurationMs,
  retentionMs,
});
const judge = (form: SeatForm, owner = "somebody", resumes = false): Availability =>
  form.judge(itemNow(), { owner, resumes }, detector);
const passedBy = (availability: Availability) => availability.takeovers.map(({ from }) => from);
const stillHeld = (form: SeatForm, lease: SeatRecord): boolean =>
  table.transactNow([form.proof(lease).entry()]).applied;

describe("bounds", () => {
  it("count what comes and goes, and no seats of another kind", () => {
    apply(semaphore(1).release(ending(take(semaphore(1), "a"))));
    expect(itemNow()).toMatchObject({ permits: 0 });
    for (const counter of ["readers", "writers", "intents"]) expect(itemNow()).not.toHaveProperty(counter);
  });

  it("say whether several seats may join at once, beside those that stand", async () => {
    const permits = new SeatForm({
      ...{ key: "k", sortKey: "seats", kind: "permit", permits: 1, capacity: 4 },
      limits: ({ permits: asked, capacity = 0 }) => ({ permit: capacity - asked }),
    });
    expect(reader().shape).toBe("read:1");
    expect(permits.shape).toBe("permit:1:4");
    take(permits, "a");
    const mayJoin = (...shapes: string[]): boolean => permits.mayJoin(itemNow(), shapes, detector);
    expect(mayJoin("permit:1", "permit:2")).toBe(true);
    expect(mayJoin("permit:1", "permit:2", permits.shape)).toBe(false);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(mayJoin("permit:1", "permit:2", "permit:1")).toBe(true);
    // Each by its own number, and by the asking form's where it says none.
    expect([mayJoin("permit:3:3", "permit:1"), mayJoin("permit:1", "permit:3:3")]).toEqual([true, false]);

    const lock = new SeatForm({ key: "k", sortKey: "seats", ...readRule });
    const beside = (...shapes: string[]): boolean => lock.mayJoin(undefined, shapes, detector);
    expect(beside("read:1", "read:1", "read:1")).toBe(true);
    expect([beside("read:1", "write:1"), beside("write:1", "read:1")]).toEqual([false, false]);
  });

  it("of a paused semaphore let nobody in, not even into an item that does not exist yet", () => {
    expect(apply(semaphore(0).acquire(grantOf("a"), []))).toBe(false);
    expect(judge(semaphore(0))).toMatchObject({ claimableInMs: 60_000, takeovers: [] });
  });

  it("let a reentrant owner read beside its own write lock, and nobody else", () => {
    take(writer("me"), "w", { owner: "me", reentrant: true });
    take(intent, "i");
    expect(apply(reader("you").acquire(grantOf("r1", { owner: "you", reentrant: true }), []))).toBe(false);
    expect(judge(reader("you"), "you", true)).toMatchObject({ blocker: { token: "w" }, takeovers: [] });
    expect(judge(reader("me"), "me", true)).toMatchObject({ claimableInMs: 0, takeovers: [] });
    take(reader("me"), "r2", { owner: "me", reentrant: true });
  });

  it("let a reentrant reader in where the item is gone", () => {
    expect(judge(reader("me"), "me", true)).toMatchObject({ claimableInMs: 0, takeovers: [] });
  });
});

describe("fencing tokens", () => {
  it("prove a seat: a late copy of its acquire brings neither the holder nor its checked write back", () => {
    const form = semaphore(2);
    const write = form.acquire(grantOf("a"), []);
    expect(apply(write)).toBe(true);
    const shown = shownOf("a");
    expect(stillHeld(form, shown)).toBe(true);
    expect(apply(form.release(ending(shown)))).toBe(true);
    expect(apply(write)).toBe(false);
    apply(form.release(ending(take(form, "b"))));
    // Another token has been released since: the copy takes a seat, for nobody.
    expect(apply(write)).toBe(true);
    expect(stillHeld(form, shown)).toBe(false);
    expect(apply(form.renew(renewal(shown)))).toBe(false);
    expect(apply(form.release(ending(shown)))).toBe(false);
  });
});

describe("a renewal", () => {
  it("keeps the item from ttl for as long as the seat is renewed", async () => {
    const form = semaphore(1);
    const shown = take(form, "a");
    for (let version = 2; version <= 5; version += 1) {
      await clock.advance(leaseDurationMs - 1);
      expect(apply(form.renew(renewal(shown, version)))).toBe(true);
      table.collectGarbage(clock.now());
    }
    expect(tokens()).toEqual(["a"]);
  });

  it("sets the ttl where it has not seen one, and puts it off only when less than 4/5 of the retention is left", async () => {
    const form = semaphore(1);
    const inTimeMs = leaseDurationMs + retentionMs;
    const startedAt = clock.now();
    const shown = take(form, "a");
    const ttlAfter = (version: number): unknown => {
      expect(apply(form.renew(renewal(shown, version)))).toBe(true);
      form.confirmed(itemNow());
      return itemNow()?.ttl;
    };
    expect(ttlAfter(2)).toBe(timeToLive(startedAt, inTimeMs));
    await clock.advance(0.2 * retentionMs);
    expect(ttlAfter(3)).toBe(timeToLive(startedAt, inTimeMs));
    await clock.advance(1);
    expect(ttlAfter(4)).toBe(timeToLive(clock.now(), inTimeMs));
  });

  it("that arrives after another one's does not take back the time until ttl that the other one has added", async () => {
    const [first, second] = [semaphore(2), semaphore(2)];
    const [a, b] = [take(first, "a"), take(second, "b")];
    for (const [form, shown] of [[first, a] as const, [second, b] as const]) {
      expect(apply(form.renew(renewal(shown)))).toBe(true);
      form.confirmed(itemNow());
    }
    await clock.advance(0.5 * retentionMs);
    const late = first.renew(renewal(a, 3));
    await clock.advance(0.2 * retentionMs);
    expect(apply(second.renew(renewal(b, 3)))).toBe(true);
    expect(apply(late)).toBe(true);
    expect(itemNow()?.ttl).toBeGreaterThanOrEqual(timeToLive(clock.now(), leaseDurationMs + retentionMs));
  });

  it("shows a request to stop, which goes with the seat", () => {
    const form = semaphore(1);
    const shown = take(form, "a");
    expect(apply(askSeatToStop(lease, "a", "maintenance"))).toBe(true);
    expect(apply(renewSeatUnlessRevoked(form, renewal(shown)))).toBe(false);
    expect(apply(form.renew(renewal(shown)))).toBe(true);
    expect(shownOf("a").revocation).toBe("maintenance");
    apply(form.release(ending(shown)));
    expect(apply(askSeatToStop(lease, "a", "too late"))).toBe(false);
    expect(Object.keys(itemNow() ?? {}).filter((name) => name.includes(":"))).toEqual([]);
  });
});

describe("seats whose time is over", () => {
  it("go with the write that takes their place, as many as it needs", async () => {
    for (const token of ["a", "b", "c"]) take(semaphore(3), token);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const form = semaphore(3, 2);
    const availability = judge(form);
    expect(availability).toMatchObject({ blocker: undefined, claimableInMs: 0 });
    expect(availability.takeovers).toMatchObject([{ reason: "serviceClock" }, { reason: "serviceClock" }]);
    expect(apply(form.acquire(grantOf("d"), passedBy(availability)))).toBe(true);
    expect(itemNow()).toMatchObject({ permits: 3 });
    expect(seats()).toHaveLength(2);
  });

  it("are waited for in the order in which they end, and the last one needed is told of", async () => {
    take(semaphore(3), "long", { expiresAt: clock.now() + 60_000, leaseDurationMs: 60_000 });
    take(semaphore(3), "short", { expiresAt: clock.now() + 1_000, leaseDurationMs: 1_000 });
    take(semaphore(3), "middle");
    expect(judge(semaphore(3)).blocker?.token).toBe("short");
    expect(judge(semaphore(3, 2)).blocker?.token).toBe("middle");
    expect(judge(semaphore(3, 2)).claimableInMs).toBe(watchedMs(leaseDurationMs));
    expect(judge(semaphore(3, 3)).blocker?.token).toBe("long");
  });

  it("go by hundreds, with as many in one write as DynamoDB's expressions take", async () => {
    const token = (index: number): string => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
    const many = 2 * seatLimits.passedPerWrite + 50;
    for (let index = 0; index < many; index += 1) {
      const owner = `owner ${index}`;
      take(formOf({ reentrantOwner: owner }), token(index), { owner, reentrant: true });
    }
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const form = semaphore(many, many);
    const passed = passedBy(judge(form));
    expect(passed).toHaveLength(many);
    const writes = [...form.clear(passed), form.acquire(grantOf("w"), passed)];
    expect(writes).toHaveLength(3);
    for (const write of writes) {
      const { update, condition } = write.request();
      expect(Math.max(update.length, condition.length)).toBeLessThan(4_096);
      expect((condition.match(/AND|OR|<>|<=|=|<|attribute_/g) ?? []).length).toBeLessThan(300);
      expect(apply(write)).toBe(true);
    }
    expect(Object.keys(itemNow() ?? {}).filter((name) => name.includes(":"))).toEqual(["s:w", "f:w"]);
    expect(itemNow()).toMatchObject({ permits: many });
  });

  it("all stay where one was renewed since they were judged", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `seat ${index}`);
    for (const token of names) take(semaphore(10), token);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const form = semaphore(10, 10);
    const passed = passedBy(judge(form));
    expect(apply(form.renew(renewal(shownOf("seat 5"))))).toBe(true);
    expect(apply(form.acquire(grantOf("w"), passed))).toBe(false);
    expect(tokens()).toEqual(names);
  });

  it("need no write of their own while one write takes them along", () => {
    const passed = Array<SeatRecord>(seatLimits.passedPerWrite).fill(take(semaphore(1), "a"));
    expect(semaphore(1).clear(passed)).toEqual([]);
  });
});

describe("a reentrant owner", () => {
  const mine = formOf({ bounds: { permit: 1 }, reentrantOwner: "me" });
  const grant = (token: string): Grant => grantOf(token, { owner: "me", reentrant: true });

  it("keeps its seat until the very write that takes its place, however many dead ones have to go before", async () => {
    const many = seatLimits.passedPerWrite + 1;
    for (let index = 0; index < many; index += 1) take(semaphore(many), `dead ${index}`);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    take(formOf({ reentrantOwner: "me" }), "a", { owner: "me", reentrant: true });
    const passed = passedBy(judge(mine, "me", true));
    expect(passed).toHaveLength(many);
    for (const write of mine.clear(passed)) expect(apply(write)).toBe(true);
    expect(tokens()).toContain("a");
    expect(apply(mine.acquire(grant("b"), passed))).toBe(true);
    expect(tokens()).not.toContain("a");
  });

  it("has no second seat by a takeover of somebody else's, where its own has come since it looked", async () => {
    for (const token of ["dead 1", "dead 2"]) take(semaphore(2), token);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const [one, other] = seats() as [SeatRecord, SeatRecord];
    const late = mine.acquire(grant("b"), [other]);
    expect(apply(mine.acquire(grant("a"), [one]))).toBe(true);
    expect(apply(late)).toBe(false);
    expect(tokens()).toEqual(["dead 2", "a"]);
  });

  it("still has its next seat when the cooldown of an earlier one is over", async () => {
    const many = formOf({ bounds: { permit: 8 }, reentrantOwner: "me" });
    const cooldown = { until: clock.now() + 2_000, forMs: 2_000 };
    apply(mine.acquire(grant("a"), []));
    expect(apply(mine.release(ending(shownOf("a"), cooldown)))).toBe(true);
    expect(apply(mine.acquire(grant("b"), []))).toBe(true);
    await clock.advance(cooldown.forMs + clockSkewMs + 1);
    const form = semaphore(2);
    expect(apply(form.acquire(grantOf("c"), passedBy(judge(form))))).toBe(true);
    expect(tokens()).toEqual(["b", "c"]);
    expect(apply(many.acquire(grant("d"), []))).toBe(false);
  });

  it("gets a new one once its own has been released, cancelled, broken, or has gone to somebody else", async () => {
    const ends = [
      () => apply(mine.release(ending(shownOf("a")))),
      () => apply(mine.cancel({ token: "a", now: clock.now(), retentionMs })),
      () => apply(breakSeat(shownOf("a"))),
      () => apply(semaphore(1).acquire(grantOf("other"), passedBy(judge(semaphore(1))))),
    ];
    for (const end of ends) {
      table = new MemoryLeaseStore();
      expect(apply(mine.acquire(grant("a"), []))).toBe(true);
      await clock.advance(leaseDurationMs + clockSkewMs + 1);
      expect(end()).toBe(true);
      expect(apply(mine.acquire(grant("b"), []))).toBe(true);
    }
  });
});

describe("a cooldown", () => {
  it("keeps the seat taken for nobody, until its time is over", async () => {
    const form = semaphore(1);
    const shown = take(form, "a", { data: '"secret"' });
    const cooldown = { until: clock.now() + 2_000, forMs: 2_000 };
    const release = form.release(ending(shown, cooldown));
    expect(apply(release)).toBe(true);
    expect(apply(release)).toBe(false);
    expect(stillHeld(form, shown)).toBe(false);
    expect(judge(form)).toMatchObject({
      blocker: { inCooldown: true, data: undefined },
      claimableInMs: watchedMs(2_000),
    });
    await clock.advance(2_501);
    expect(apply(form.acquire(grantOf("b"), passedBy(judge(form))))).toBe(true);
    expect(tokens()).toEqual(["b"]);
  });

  it("that is broken leaves the mark by which its holder recognises its own release", () => {
    const form = semaphore(1);
    apply(form.release(ending(take(form, "a"), { until: clock.now() + 2_000, forMs: 2_000 })));
    expect(apply(breakSeat(seats()[0] as SeatRecord))).toBe(true);
    expect(wasReleasedByHolder(itemNow(), "a")).toBe(true);
  });
});

describe("a seat with the time of its holder's own clock", () => {
  it("is judged by watching alone", async () => {
    take(semaphore(1), "a", { ownClock: true });
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(judge(semaphore(1)).claimableInMs).toBe(watchedMs(leaseDurationMs));
  });
});

describe("taking back", () => {
  it("an acquire that comes again is refused by its own seat, which it does not remove as another's", () => {
    const form = semaphore(2);
    const again = form.acquire(grantOf("a"), [take(form, "a")]);
    expect(said(again).remove).toEqual([]);
    expect(apply(again)).toBe(false);
  });

  it("removes a seat that has landed, and refuses one that lands later", () => {
    const form = semaphore(2);
    const cancellation = { token: "a", now: clock.now(), retentionMs };
    expect(apply(form.cancel(cancellation))).toBe(false);
    expect(apply(form.revoke(cancellation))).toBe(true);
    const late = form.acquire(grantOf("a"), []);
    expect(apply(late)).toBe(false);
    take(form, "b");
    expect(apply(form.revoke({ ...cancellation, token: "b" }))).toBe(false);
    expect(apply(form.cancel({ ...cancellation, token: "b" }))).toBe(true);
    expect(itemNow()).toMatchObject({ permits: 0, releasedToken: "b" });
  });
});

describe("a write names what its seat needs, and nothing else: the service evaluates all of it, each time", () => {
  const isNew = ["attribute_not_exists(f:a)", 'releasedToken <> "a"'];
  const upTo = (counter: string, most: number, ...beside: string[]) => {
    const exempt = beside.map((attribute) => ` OR attribute_exists(${attribute})`);
    return `(${counter} <= ${most} OR attribute_not_exists(${counter})${exempt.join("")})`;
  };
  it.each([
    [
      "of a reentrant permit",
      formOf({ bounds: { permit: 1 }, reentrantOwner: "me" }),
      [upTo("permits", 1), "attribute_not_exists(o:permit:me)"],
    ],
    [
      "of a reentrant reader",
      reader("me"),
      [
        ...[upTo("writers", 0, "o:write:me"), upTo("intents", 0, "o:write:me")],
        ...[upTo("readers", 999, "o:write:me"), "attribute_not_exists(o:read:me)"],
      ],
    ],
  ])("the acquire %s", (_, form, bounds) => {
    expect(said(form.acquire(grantOf("a"), [])).when).toEqual([...isNew, ...bounds]);
  });

  it("the cancellation, of the seat's own attributes", () => {
    const cancellation = { token: "a", now: clock.now(), retentionMs };
    expect(said(semaphore(2).cancel(cancellation)).remove).toEqual(["s:a", "f:a", "r:a"]);
    expect(said(writer("me").cancel(cancellation)).remove).toEqual(["s:a", "f:a", "r:a", "o:write:me"]);
  });
});

describe("an item that something else has written", () => {
  const spoilt = (change: Record<string, string | number | undefined>): Item => {
    take(semaphore(2), "a");
    return Object.fromEntries(
      Object.entries({ ...itemNow(), ...change }).filter(([, value]) => value !== undefined),
    ) as Item;
  };

  it.each([
    ["a counter that differs", { permits: 2 }, "permits"],
    ["a text that is none", { "s:a": Number.NaN }, "s:…"],
    ["a text that is no JSON", { "s:a": "0000000001 {" }, "s:…"],
    ["a kind that is a list", { "s:a": '0000000001 [["permit"],1,1,2,3,0,"o"]' }, "s:…"],
    ["an owner that is no text", { "s:a": '0000000001 ["permit",1,1,2,3,0,7]' }, "s:…"],
    ["a version that is none", { "s:a": 'version #1 ["permit",1,1,2,3,0,"o"]' }, "s:…"],
    ["a fencing number that is missing", { "f:a": undefined }, "s:…"],
    ["a time that no Date can have", { "s:a": '0000000001 ["permit",1,1,9e15,3,0,"o"]' }, "s:…"],
  ])("is refused, without a word of tokens: %s", (_, change, attribute) => {
    const item = spoilt(change as Record<string, string | number | undefined>);
    expect(() => seatsIn(item)).toThrow(
      expect.objectContaining({ code: "LEASE_ITEM_UNREADABLE", attribute }),
    );
  });

  const seatWith = (index: number, value: unknown): Item => {
    const fields: unknown[] = ["permit", 1, 1, 2, 3, 0, "o"];
    fields[index] = value;
    return { ...itemKey, permits: 1, "f:a": 1, "s:a": `0000000001 ${JSON.stringify(fields)}` };
  };
  it.each<[string, number, unknown]>([
    ["permits", 1, -1],
    ["acquiredAt", 2, 0.5],
    ["expiresAt", 3, latestTime + 1],
    ["leaseDurationMs", 4, "1"],
    ["reentrant", 5, null],
  ])("is refused where its %s, field %i, is %j", (_, index, value) => {
    expect(() => seatsIn(seatWith(index, value))).toThrow(expect.objectContaining({ attribute: "s:…" }));
  });

  it("is not refused for the latest time that a Date can have", () => {
    expect(seatsIn(seatWith(3, latestTime))).toMatchObject([{ expiresAt: latestTime }]);
  });

  it("is refused with what its seats take", () => {
    expect(() => seatsIn(spoilt({ permits: 2 }))).toThrow("; allowed: 1, or no seat");
  });

  it("shows its seats in the order in which they were taken, whatever order its attributes have", () => {
    for (const token of ["a", "b", "c"]) take(semaphore(3), token);
    const reversed = Object.fromEntries(Object.entries(itemNow() ?? {}).reverse());
    expect(seatsIn(reversed).map(({ token }) => token)).toEqual(["a", "b", "c"]);
  });
});
