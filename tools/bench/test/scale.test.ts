// How far one key goes, on paper: by the units of requests, and by what seats and tickets take of their items.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { seatSortKeys } from "@leasehold/client/internal";
import { leaseSortKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../packages/cli/src/view/read-cost.ts";
import { seatBytes, ticketBytes } from "../costs/scale.ts";

const pageOf = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../../../docs", name), "utf8");

/** What each of ten more processes adds to the bytes of an item, with an owner as long as those by default. */
async function growthOf(sk: string, join: (client: LeaseClient) => Promise<unknown>): Promise<number> {
  const clock = new ManualClock();
  const store = new MemoryLeaseStore();
  const sizes: number[] = [];
  for (let process = 10_000; process < 10_012; process += 1) {
    const owner = `ip-10-0-0-0.ec2.internal:${process}:00000000`;
    // Ignored: it waits in line until the test is over.
    void join(new LeaseClient({ store, clock, owner })).catch(() => undefined);
    await settled();
    sizes.push(bytesOf(store.peek({ pk: "key", sk }) ?? {}));
  }
  // The first one makes the item, and the second one the line.
  return ((sizes.at(-1) ?? 0) - (sizes[1] ?? 0)) / 10;
}

it("the seats of a semaphore and the tickets of a line take as many bytes as the figures say", async () => {
  const seat = await growthOf(seatSortKeys.semaphore, (client) =>
    new Semaphore(client, "key", { permits: 100 }).acquire(),
  );
  const ticket = await growthOf(leaseSortKey, (client) =>
    client.acquire("key", { order: fair(), waitMs: 3_600_000 }),
  );
  expect([seat, ticket].map(Math.round)).toEqual([seatBytes, ticketBytes]);
});

/** The cells of a row of a page's table, by its first cell. */
function cellsOf(name: string, row: string): string[] {
  const line =
    pageOf(name)
      .split("\n")
      .find((each) => each.startsWith(`| ${row} |`)) ?? "";
  return line.split("|").map((cell) => cell.trim());
}

describe("docs/scale.md calculates from the figures of other pages:", () => {
  const perHour = (lease: string): { transitions: number; beats: number } => {
    const [, , transitions, writes] = cellsOf("costs.md", lease);
    return { transitions: Number(transitions?.replace(",", "")), beats: Number(writes) };
  };
  const shown = (value: number): string => Math.floor(value).toLocaleString("en-US");

  it("keepers, by looks and by transitions", () => {
    for (const [lease, row] of [
      ["3 minutes", "keepers, leases of 3 minutes"],
      ["30 seconds", "keepers, leases of 30 s"],
    ] as const) {
      // A keeper looks at each fifth beat: test/cdk/keeper.test.ts.
      const looksPerSecond = perHour(lease).beats / 5 / 3_600;
      expect(cellsOf("scale.md", row)[2]).toBe(
        `${shown(15 / looksPerSecond)}; ${shown(10 / looksPerSecond)}`,
      );
    }
    const transitionsPerSecond = perHour("3 minutes").transitions / 3_600;
    const byTransitions = cellsOf("scale.md", "keepers by state transitions alone, 3 minutes")[2];
    expect(byTransitions).toBe(
      `${shown(1_500 / transitionsPerSecond)}; ${shown(500 / transitionsPerSecond)}`,
    );
  });

  it("runs of a leased workflow", () => {
    const transitions = Number(cellsOf("costs.md", "gets the lock at once")[2]);
    const runs = cellsOf("scale.md", "runs of a leased workflow that begin in a second")[2];
    expect(runs).toBe(`${shown(1_500 / transitions)}; ${Math.round(500 / transitions)}`);
  });
});
