/** What the line of a lease looks like in its item, and what its writes make of it. */
import type { Item } from "@leasehold/client";
import { leaseItemKey, leaseSortKey, limits } from "@leasehold/client/schema";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { latestTime } from "../../packages/client/src/base/item-values.ts";
import {
  holdNoteIn,
  holdText,
  type QueueTicket,
  type TicketTerms,
  ticketIdOf,
  ticketsIn,
  ticketText,
} from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import {
  inTurn,
  type JoinTerms,
  joinIfRoom,
  leave,
  renewTickets,
} from "../../packages/client/src/primitives/fair/queue-writes.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { put } from "../support/foreign-items.ts";
import { setting } from "../support/recomposed.ts";

it.each([
  ["0f8fad5b-d9cb-469f-a165-70867728950e", "a16570867728950e"],
  ["a token of another length, 0123456789abcdef", "0123456789abcdef"],
])("a ticket's id is the end of its caller's token, without the dashes: %s", (token, id) => {
  expect(ticketIdOf(token)).toBe(id);
});

describe("a ticket", () => {
  const terms: TicketTerms = {
    ...{ since: 1_000_000, until: 1_060_000, leaseMs: 60_000 },
    ...{ isWatching: true, ownClock: false, shape: "permit:2:5", owner: "report of May" },
  };

  it.each<[string, Partial<TicketTerms>, string]>([
    ["of a waiter", {}, "lfls mpwg 1aao w permit:2:5 report of May"],
    ["of a waiter for a lease without seats", { shape: undefined }, "lfls mpwg 1aao w - report of May"],
    ["of a caller that checks in", { isWatching: false }, "lfls mpwg 1aao - permit:2:5 report of May"],
    ["without the service's time", { ownClock: true }, "lfls mpwg 1aao wo permit:2:5 report of May"],
    [
      "of a caller that checks in without it",
      { isWatching: false, ownClock: true },
      "lfls mpwg 1aao -o permit:2:5 report of May",
    ],
  ])("%s has the text that other processes read", (_, others, text) => {
    const said = { ...terms, ...others };
    expect(ticketText(said)).toBe(text);
    expect(ticketsIn({ "q:a1": 3, "w:a1": text })).toEqual([{ id: "a1", text, number: 3, ...said }]);
  });

  it.each([
    ["x".repeat(100), "x".repeat(64)],
    ["😀".repeat(20), "😀".repeat(16)],
  ])("has no more than 64 bytes of the owner %s", (owner, shown) => {
    expect(ticketText({ ...terms, owner })).toBe(ticketText({ ...terms, owner: shown }));
  });

  it("is as far ahead in line as its number is small, wherever it stands in the item", () => {
    const item = { "q:c": 12, "q:a": 101, "q:b": 9, "w:a": "a", "w:b": "b", "w:c": "c" };
    expect(ticketsIn(item).map(({ id }) => id)).toEqual(["b", "c", "a"]);
  });

  const readable = { "q:good": 2, "w:good": "lfls mpwg 1aao - - good" };

  it.each<[string, Item]>([
    ["a number that is a text", { "q:x": "1", "w:x": "lfls mpwg 1aao - - x" }],
    ["a number that is something else", { "q:x": Number.NaN, "w:x": "lfls mpwg 1aao - - x" }],
    ["a text that is a number", { "q:x": 1, "w:x": 5 }],
    ["a number without a text", { "q:x": 1 }],
    ["a text without a number", { "w:x": "lfls mpwg 1aao - - x" }],
  ])("is none with %s; the others keep their places", (_, strange) => {
    expect(ticketsIn({ ...strange, ...readable }).map(({ id }) => id)).toEqual(["good"]);
  });

  it("with times that none can have has expired: it would keep all others out", () => {
    const text = `${"z".repeat(12)} ${"z".repeat(12)} ${(limits.durationMs + 1).toString(36)} - - x`;
    expect(ticketsIn({ "q:x": 1, "w:x": text })).toMatchObject([{ since: 0, until: 0, leaseMs: 0 }]);
    const longest = `1 ${latestTime.toString(36)} ${limits.durationMs.toString(36)} - - x`;
    expect(ticketsIn({ "q:x": 1, "w:x": longest })).toMatchObject([
      { until: latestTime, leaseMs: limits.durationMs },
    ]);
  });

  it.each(["", "? ? ? ? -"])("with a text that says nothing, %j, has expired", (text) => {
    const nothing = { since: 0, until: 0, leaseMs: 0, shape: undefined, owner: "" };
    const flags = { isWatching: true, ownClock: false };
    expect(ticketsIn({ "q:x": 1, "w:x": text })).toEqual([
      { id: "x", number: 1, text, ...nothing, ...flags },
    ]);
  });
});

describe("what the last release has noted of the holds", () => {
  it.each([
    [
      "a typical hold",
      { typicalMs: 1_000, spreadMs: 60, fencingToken: 7, endedAt: 1_060_000 },
      "rs 1o 7 mpwg",
    ],
    [
      "a holder without the service's time",
      { typicalMs: 1_000, spreadMs: 60, fencingToken: 7, endedAt: undefined },
      "rs 1o 7",
    ],
  ])("is read as it was written: %s", (_, note, text) => {
    expect(holdText(note)).toBe(text);
    expect(holdNoteIn({ holds: text })).toEqual(note);
  });

  it.each(["rs 1o", "? 1o 7 mpwg", "rs -1 7 mpwg", "rs 1o ? mpwg", "rs 1o 7 ?"])(
    "counts for nothing where a part of it is missing or damaged: %j",
    (text) => {
      expect(holdNoteIn({ holds: text })).toBeUndefined();
    },
  );
});

describe("the writes of a line", () => {
  const queue = { key: "k", sortKey: "lease" };
  const key = leaseItemKey("k");
  const retentionMs = 8_000;
  const now = 1_000_000;
  let table: MemoryLeaseStore;

  beforeEach(() => {
    table = new MemoryLeaseStore();
  });

  const apply = (write: Write): boolean => table.updateNow(write.request()).applied;
  const itemNow = (): Item => table.peek(key) ?? {};
  const idsNow = (): string[] => ticketsIn(itemNow()).map(({ id }) => id);
  const joining = (
    id: string,
    { until = now, ...terms }: Partial<JoinTerms> & { until?: number } = {},
    passable: readonly QueueTicket[] = [],
  ): Write => {
    const snapshot = { item: table.peek(key), tickets: ticketsIn(table.peek(key)) };
    const ticket = { id, text: `text of ${id}`, until };
    return joinIfRoom(queue, snapshot, passable, ticket, { maxWaiters: 2, retentionMs, now, ...terms });
  };

  it("a newcomer to a line with room leaves expired tickets as they are: one may be renewed meanwhile", () => {
    apply(joining("a"));
    // The lease was used since it looked, too: a write that passes nobody does not depend on that.
    const write = joining("b", { free: { fence: 7, expiresAt: undefined } }, ticketsIn(itemNow()));
    apply(renewTickets(queue, [{ id: "a", text: "renewed", number: Number(itemNow()["q:a"]) }]));
    expect(apply(write)).toBe(true);
    expect(idsNow()).toEqual(["a", "b"]);
    expect(itemNow()).toMatchObject({ waiting: 2, "w:a": "renewed" });
  });

  it("a newcomer to a full line takes the place of the expired tickets, and counts for them", () => {
    apply(joining("a"));
    apply(joining("b"));
    expect(apply(joining("c", {}, ticketsIn(itemNow())))).toBe(true);
    expect(idsNow()).toEqual(["c"]);
    expect(itemNow()).toMatchObject({ waiting: 1 });
  });

  it("a newcomer takes nobody's place in a full line where the lease was used since it looked", () => {
    apply(joining("a"));
    apply(joining("b"));
    const use = (fence: number): boolean => apply(setting(key, { fence }, "attribute_exists(#waiting)"));
    use(7);
    const write = joining("c", { free: { fence: 7, expiresAt: undefined } }, ticketsIn(itemNow()));
    use(8);
    expect(apply(write)).toBe(false);
    expect(idsNow()).toEqual(["a", "b"]);
    use(7);
    expect(apply(write)).toBe(true);
  });

  it.each([
    ["was not released", 5_000, 6_000],
    ["was released", undefined, 6_000],
  ])(
    "a newcomer takes nobody's place in a full line where a lease that %s was renewed since it looked",
    (_, seen, renewed) => {
      apply(joining("a"));
      apply(joining("b"));
      const use = (attributes: Item): boolean =>
        apply(setting(key, attributes, "attribute_exists(#waiting)"));
      use(seen === undefined ? { fence: 7 } : { fence: 7, expiresAt: seen });
      const write = joining("c", { free: { fence: 7, expiresAt: seen } }, ticketsIn(itemNow()));
      const asItWas = itemNow();
      use({ expiresAt: renewed });
      expect(apply(write)).toBe(false);
      expect(idsNow()).toEqual(["a", "b"]);
      const { pk: _pk, sk: _sk, ...attributes } = asItWas;
      put(table, "k", leaseSortKey, attributes);
      expect(apply(write)).toBe(true);
    },
  );

  it("a second copy of a joining is refused by the ticket that the first has brought", () => {
    const write = joining("a");
    expect([apply(write), apply(write)]).toEqual([true, false]);
    expect(itemNow()).toMatchObject({ waiting: 1 });
  });

  it("a newcomer is refused by a line that has filled up since it looked", () => {
    apply(joining("a"));
    const write = joining("c");
    apply(joining("b"));
    expect(apply(write)).toBe(false);
    apply(leave(queue, "a"));
    expect(apply(write)).toBe(true);
  });

  it("a newcomer takes a place in a full line of a lease that nobody has had", () => {
    apply(joining("a"));
    apply(joining("b"));
    const neverHeld = { fence: 0, expiresAt: undefined };
    expect(apply(joining("c", { free: neverHeld }, ticketsIn(itemNow())))).toBe(true);
  });

  it("a newcomer that passes expired tickets takes no lease for which another waits since it looked", () => {
    apply(joining("a"));
    const write = inTurn(setting(key, { owner: "n" }), undefined, ticketsIn(itemNow()));
    apply(joining("b"));
    expect(apply(write)).toBe(false);
    apply(leave(queue, "b"));
    expect(apply(write)).toBe(true);
  });

  it("a newcomer makes the item last longer, and never less long", () => {
    apply(joining("a", { until: 2_000_000 }));
    expect(itemNow()).toMatchObject({ ttl: 2_008 });
    apply(joining("b", { until: 1_500_000, maxWaiters: 5 }));
    expect(itemNow()).toMatchObject({ ttl: 2_008 });
    apply(joining("c", { until: 2_500_000, maxWaiters: 5 }));
    expect(itemNow()).toMatchObject({ ttl: 2_508 });
  });

  it("a newcomer that takes a lease while nobody waits adds nothing to the item", () => {
    expect(apply(inTurn(setting(key, { owner: "a" }), undefined, []))).toBe(true);
    expect(itemNow()).toEqual({ ...key, owner: "a" });
  });
});
