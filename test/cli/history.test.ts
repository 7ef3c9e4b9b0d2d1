import { type LeaseChange, LeaseOperator } from "@leasehold/client/admin";
import { historyItemOf } from "@leasehold/client/internal";
import { describe, expect, it } from "vitest";
import { put } from "../support/foreign-items.ts";
import { type LockTable, lockTable, tooWide } from "../support/lock-table.ts";
import { putItem } from "../support/recomposed.ts";

const hourMs = 3_600_000;

/** A report whose history is kept: a hold that ended in order, one that expired, and one that was broken. */
async function report(): Promise<LockTable> {
  const table = lockTable();
  const { clock, holder, store } = table;
  const client = holder("ip-10-0-9-4:3310");
  type Hold = Pick<LeaseChange, "owner" | "acquiredAt" | "fencingToken">;
  const note = (what: LeaseChange["what"], { owner, acquiredAt, fencingToken }: Hold): void => {
    const place = { key: "nightly-report", sortKey: "lease", at: clock.now(), reason: undefined };
    const change = { ...place, what, owner, acquiredAt, fencingToken };
    putItem(store, historyItemOf(change, 30 * 24 * hourMs));
  };
  const first = await client.acquire("nightly-report");
  note("acquired", first);
  await clock.advance(461_000);
  await first.release();
  note("completed", first);
  await clock.advance(24 * hourMs);
  const second = await client.acquire("nightly-report", { leaseDurationMs: 60_000 });
  note("acquired", second);
  await clock.advance(62_000);
  const third = await holder("ip-10-0-4-2:99").acquire("nightly-report");
  note("takenOver", second);
  note("acquired", third);
  await clock.advance(10_000);
  const operator = new LeaseOperator(client, { by: "alice@laptop" });
  await operator.break("nightly-report", { token: third.token, reason: "INC-4411, host is gone\u001b[2J" });
  note("broken", third);
  return table;
}

describe("leasehold history", () => {
  it("shows who had a key, for how long, how that ended, and what operators did", async () => {
    const { call } = await report();
    const { code, stdout } = await call(["history", "nightly-report"], { columns: 120 });
    expect(code).toBe(0);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
      WHEN (UTC)           WHAT        WHO                 HELD  DETAIL
      2026-11-22 03:00:00  acquired    ip-10-0-9-4:3310
      2026-11-22 03:07:41  completed   ip-10-0-9-4:3310  7m 41s  its slot is done
      2026-11-23 03:07:41  acquired    ip-10-0-9-4:3310
      2026-11-23 03:08:43  TAKEN OVER  ip-10-0-9-4:3310  1m 02s
      2026-11-23 03:08:43  acquired    ip-10-0-4-2:99
      2026-11-23 03:08:53  BROKEN      ip-10-0-4-2:99       10s  by alice@laptop: "INC-4411, host is gone\\u001b[2J"
      "
    `);
    expect(tooWide((await call(["history", "nightly-report"], { columns: 40 })).stdout, 40)).toEqual([]);
  });

  it("shows the latest of it, and what has happened since", async () => {
    const { call } = await report();
    const words = async (...args: readonly string[]): Promise<unknown[]> =>
      JSON.parse((await call(["history", "nightly-report", "--json", ...args])).stdout).map(
        ({ what }: { readonly what: string }) => what,
      );
    expect(await words("--limit", "2")).toEqual(["acquired", "broken"]);
    expect(await words("--since", "1h")).toEqual(["acquired", "takenOver", "acquired", "broken"]);
  });

  it("says how to keep a history where there is none, shows what operators did, and exits with 1", async () => {
    const { call, holder } = lockTable();
    await holder("worker").acquire("import");
    await call(["break", "import", "--yes", "--reason", "gone"]);
    const { code, stdout, stderr } = await call(["history", "import"]);
    expect(code).toBe(1);
    expect(stdout).toContain("BROKEN  worker");
    expect(stderr).toContain("No history of import is kept: only what operators did is.");
    expect(stderr).toContain("LeaseTable({ history");
  });

  it("gives leasehold get its last holders", async () => {
    const { call } = await report();
    const { stdout } = await call(["get", "nightly-report"]);
    expect(stdout).toContain("last 3 holders");
    expect(stdout).toContain("TAKEN OVER");
  });

  it.each([
    ["audit#", { action: "stop", by: "x", sortKey: "lease", reason: { why: "odd" } }],
    ["audit#", { action: "stop", by: "x", sortKey: "lease", holder: { owner: 8 } }],
    ["audit#", { action: "stop", by: "x" }],
    ["~history#", { what: "released", owner: "o", sortKey: "lease", fencingToken: 1, acquiredAt: "odd" }],
    [
      "~history#",
      { what: "released", owner: "o", sortKey: "lease", fencingToken: 1, acquiredAt: 1, reason: 5 },
    ],
  ])("leaves out what another program has written in their place: %s%j", async (prefix, content) => {
    const { call, holder, store } = lockTable();
    const { token } = await holder("worker").acquire("import");
    await call(["stop", "import", "--yes", "--token", token]);
    put(store, "import", `${prefix}2026-11-22T03:00:00.000Z#odd`, {
      data: JSON.stringify(content),
      ttl: 9e9,
    });
    for (const args of [["audit"], ["history", "import"], ["get", "import"]]) {
      const called = await call(args);
      expect(called.code).toBeLessThan(2);
      expect(called.stdout).toMatch(/stop/);
      await call([...args, "--json"]);
    }
  });
});
