// How far one key goes: the real client on a table with DynamoDB's limits finds what the paper says.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { Random } from "../../../test/worlds/random.ts";
import { generatedIn } from "../costs/markdown.ts";
import { LimitedTable, roundTripMs } from "../scale/limited-table.ts";
import { command, compare, compareAll, type Figure, handOverReport, scaleReport } from "../scale/paper.ts";
import { keepPermits } from "../scale/scenarios.ts";

const pageOf = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../../../docs", name), "utf8");

/** Writes of one item of a size, one after the other, each sent at the same moment; gives how many were served. */
async function served(
  writes: number,
  bytes: number,
  ms: number,
): Promise<{ served: number; table: LimitedTable }> {
  const clock = new ManualClock();
  const table = new LimitedTable(clock, new Random(1));
  let count = 0;
  for (let index = 0; index < writes; index += 1) {
    const request = {
      key: { pk: "k", sk: "s" },
      update: "SET #data = :data",
      condition: "attribute_not_exists(#none)",
      names: { "#data": "data", "#none": "none" },
      values: { ":data": "x".repeat(bytes) },
      returnsItem: false,
    };
    const options = { signal: AbortSignal.timeout(60_000), isCurrent: () => true };
    // Ignored: it was throttled for longer than the client tries.
    void table.update(request, options).then(
      () => (count += 1),
      () => undefined,
    );
  }
  await clock.advance(ms);
  return { served: count, table };
}

describe("the table with limits", () => {
  it("serves a key's thousand units in its first moment, and throttles what is beyond", async () => {
    const { served: count, table } = await served(1_500, 10, roundTripMs);
    expect(count).toBe(1_000);
    expect(table.load.throttled).toBe(500);
  });

  it("bills a write for each started KB of its item", async () => {
    expect((await served(1_500, 4_000, roundTripMs)).served).toBe(250);
    expect((await served(10, 4_000, roundTripMs)).table.load.written).toBe(40);
  });

  it("lets what was throttled in later, as the SDK tries again", async () => {
    expect((await served(1_100, 10, 2_000)).served).toBe(1_100);
  });

  it("takes an answer's time for each request", async () => {
    const clock = new ManualClock();
    const client = new LeaseClient({ store: new LimitedTable(clock, new Random(1)), clock });
    let isGranted = false;
    void client.acquire("k").then(() => {
      isGranted = true;
    });
    await clock.advance(roundTripMs - 1);
    expect(isGranted).toBe(false);
    await clock.advance(1);
    expect(isGranted).toBe(true);
  });
});

describe("on one key", () => {
  it("a figure that is wrong by more than it may is found", async () => {
    const wrong: Figure = {
      what: "x",
      because: "y",
      paper: 100,
      within: 0.1,
      simulate: async () => 111,
    };
    expect(await compare(wrong)).toMatchObject({ agrees: false });
    expect(await compare({ ...wrong, within: undefined })).toMatchObject({ agrees: false });
    expect(await compare({ ...wrong, simulate: async () => 91 })).toMatchObject({ agrees: true });
  });

  it("a number of holders that is far beyond loses leases, which is what the page warns of", {
    tags: ["long"],
  }, async () => {
    expect((await keepPermits(200, 30_000)).lost).toBe(0);
    expect((await keepPermits(400, 30_000)).lost).toBeGreaterThan(0);
  });
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

// Half a minute of computing on an idle core.
const long = { tags: ["long"], timeout: 900_000 };
describe("the simulation's figures, else run npm run bench -- scale:", () => {
  it("docs/scale.md has them", long, async () => {
    const compared = await compareAll();
    expect(compared.filter(({ agrees }) => !agrees)).toEqual([]);
    expect(generatedIn(pageOf("scale.md"), command)).toBe(scaleReport(compared));
  });

  it("docs/primitives/fair-lock.md has them", long, async () => {
    expect(generatedIn(pageOf("primitives/fair-lock.md"), command)).toBe(await handOverReport());
  });
});
